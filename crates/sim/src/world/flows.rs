//! Saturated flows over TCP, or over UDP at a constant rate.
//!
//! *What this is:* [`Endpoint`], the program of a machine that sends and receives flows. *Who calls it:*
//! `experiment.rs`, and code that measures contention in a world of its own.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::time::Duration;

use bytes::Bytes;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore as _, SeedableRng as _};
use wire::Instant;

use super::arrivals::Arrivals;
use super::{Program, address};
use crate::net::tcp::End;
use crate::net::{Event, Host, SocketId};

/// Payload of a UDP packet, in bytes.
pub const DATAGRAM_BYTES: usize = 1460;

/// The first flow's port at its receiver; each flow has its own.
const PORT: u16 = 5001;
/// The content of flows.
static NOTHING: [u8; 65_536] = [0; 65_536];

/// One flow between two machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The machine that sends.
    pub from: usize,
    /// The machine that receives.
    pub to: usize,
    /// When it begins.
    pub starts: Instant,
    /// Over TCP or UDP.
    pub kind: Kind,
}

/// The transport of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A TCP connection whose sender never runs out of data.
    Tcp,
    /// UDP packets of [`DATAGRAM_BYTES`] at a constant rate.
    Udp {
        /// Rate of payload, in bits per second.
        bits_per_second: u64,
    },
}

/// If a machine sends several UDP flows, each starts up to a packet's interval later, drawn by the seed. In
/// step, the first flow would find room in the queue each time, and the others hardly ever.
pub(super) fn out_of_step(flows: &[Flow], seed: u64) -> Vec<Flow> {
    let is_udp = |flow: &Flow| matches!(flow.kind, Kind::Udp { .. });
    let mut udp_from = BTreeMap::new();
    flows.iter().filter(|it| is_udp(it)).for_each(|it| *udp_from.entry(it.from).or_insert(0) += 1);
    let mut chance = SplitMix64::seed_from_u64(seed);
    let mut late = |flow: &Flow| match flow.kind {
        Kind::Udp { bits_per_second } if udp_from[&flow.from] > 1 => {
            let interval = interval_nanos(1, bits_per_second).unwrap_or(0);
            let nanos = (u128::from(chance.next_u64()) * u128::from(interval)) >> 64;
            Duration::from_nanos(nanos as u64)
        }
        _ => Duration::ZERO,
    };
    flows.iter().map(|flow| Flow { starts: flow.starts + late(flow), ..*flow }).collect()
}

/// How long this many UDP packets last.
fn interval_nanos(packets: u64, bits_per_second: u64) -> Option<u64> {
    let bits = u128::from(packets) * 8 * DATAGRAM_BYTES as u128;
    u64::try_from(bits * 1_000_000_000 / u128::from(bits_per_second.max(1))).ok()
}

/// The flows that begin and end at a machine.
#[derive(Debug, Default)]
pub struct Endpoint {
    sources: Vec<Source>,
    sinks: Vec<Sink>,
    /// When the next flow sends next.
    due: Option<Instant>,
}

#[derive(Debug)]
struct Source {
    to: SocketAddrV4,
    flow: Flow,
    /// Number of UDP packets sent; for TCP 1 once the connection has begun.
    sent: u64,
    socket: Option<SocketId>,
    number: usize,
    /// How the connection ended, if it has.
    ended: Option<End>,
}

/// The receiving end of a flow.
#[derive(Debug)]
pub struct Sink {
    /// The flow's index in the list of flows.
    pub number: usize,
    /// Bytes of payload received.
    pub bytes: u64,
    /// Arrival times.
    pub arrivals: Arrivals,
    port: u16,
    socket: Option<SocketId>,
    is_tcp: bool,
}

/// The endpoints of these flows on `machines` machines, by machine.
///
/// # Panics
///
/// If there are more flows than ports, or a flow names a machine that does not exist.
pub fn endpoints(machines: usize, flows: &[Flow]) -> Vec<Endpoint> {
    let mut endpoints: Vec<_> = (0..machines).map(|_| Endpoint::default()).collect();
    for (number, flow) in flows.iter().enumerate() {
        let port = u16::try_from(number).ok().and_then(|it| PORT.checked_add(it));
        let port = port.expect("each flow has a port");
        let to = SocketAddrV4::new(address(flow.to), port);
        endpoints[flow.from].sources.push(Source {
            to,
            flow: *flow,
            sent: 0,
            socket: None,
            number,
            ended: None,
        });
        endpoints[flow.to].sinks.push(Sink {
            number,
            bytes: 0,
            arrivals: Arrivals::default(),
            port,
            socket: None,
            is_tcp: flow.kind == Kind::Tcp,
        });
    }
    endpoints
}

impl Endpoint {
    /// The receiving ends of flows to this machine.
    pub fn sinks(&self) -> &[Sink] {
        &self.sinks
    }

    /// Flows from this machine whose connections have ended, and how.
    pub fn ended(&self) -> impl Iterator<Item = (usize, End)> {
        self.sources.iter().filter_map(|it| Some((it.number, it.ended?)))
    }

    fn plan(&mut self) {
        self.due = self.sources.iter().filter_map(Source::due).min();
    }

    fn fill(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        if self.sources.iter().any(|it| it.socket == Some(id)) {
            let mut data = Bytes::from_static(&NOTHING);
            while host.write(now, id, &mut data) > 0 {
                data = Bytes::from_static(&NOTHING);
            }
        }
    }

    fn read(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        let Some(sink) = self.sinks.iter_mut().find(|it| it.socket == Some(id)) else { return };
        let before = sink.bytes;
        while let Some(data) = host.read(now, id, usize::MAX) {
            sink.bytes += data.len() as u64;
        }
        if sink.bytes > before {
            sink.arrivals.add(now);
        }
    }
}

impl Program for Endpoint {
    fn start(&mut self, _now: Instant, host: &mut Host) {
        for sink in &self.sinks {
            if sink.is_tcp { host.listen(sink.port) } else { host.listen_datagrams(sink.port) }
        }
        self.plan();
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event) {
        match event {
            Event::Connected(id) | Event::Writable(id) => self.fill(now, host, id),
            Event::Accepted { id, local, .. } => {
                let sink = self.sinks.iter_mut().find(|it| it.port == local.port());
                sink.into_iter().for_each(|it| it.socket = Some(id));
            }
            Event::Readable(id) => self.read(now, host, id),
            Event::PeerClosed(id) => host.close(now, id),
            Event::Closed { id, why } => {
                let source = self.sources.iter_mut().find(|it| it.socket == Some(id));
                source.into_iter().for_each(|it| it.ended = Some(why));
            }
            Event::Datagram { to, payload, .. } => {
                if let Some(sink) = self.sinks.iter_mut().find(|it| it.port == to.port()) {
                    sink.bytes += payload.len() as u64;
                    sink.arrivals.add(now);
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        for source in self.sources.iter_mut().filter(|it| it.due().is_some_and(|at| at <= now)) {
            match source.flow.kind {
                Kind::Tcp => source.socket = host.connect(now, source.to).ok(),
                Kind::Udp { .. } => {
                    let payload = Bytes::from_static(&NOTHING[..DATAGRAM_BYTES]);
                    host.send_datagram(now, source.to.port(), source.to, payload);
                }
            }
            source.sent += 1;
        }
        self.plan();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }
}

impl Source {
    /// When it sends its next packet, or opens its connection.
    fn due(&self) -> Option<Instant> {
        match self.flow.kind {
            Kind::Tcp => (self.sent == 0).then_some(self.flow.starts),
            Kind::Udp { bits_per_second } => {
                // Times are computed from the flow's start, so that they do not drift.
                let nanos = interval_nanos(self.sent, bits_per_second)?;
                self.flow.starts.as_nanos().checked_add(nanos).map(Instant::from_nanos)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_udp_from_one_machine_begin_within_an_interval() {
        // A packet of 1460 bytes every millisecond.
        let kind = Kind::Udp { bits_per_second: 11_680_000 };
        let starts = Instant::ZERO + Duration::from_secs(1);
        let flow = |from, kind| Flow { from, to: 9, starts, kind };
        let flows = [flow(0, kind), flow(0, kind), flow(0, Kind::Tcp), flow(1, kind)];
        let late = |seed| {
            let moved = out_of_step(&flows, seed);
            moved.iter().map(|it| (it.starts - starts).as_nanos()).collect::<Vec<_>>()
        };
        let once = late(1);
        assert!(once[..2].iter().all(|nanos| (1..1_000_000).contains(nanos)) && once[0] != once[1]);
        assert_eq!(once[2..], [0, 0], "TCP, and the only one of its machine");
        assert_eq!(once, late(1));
        assert_ne!(once, late(2));
    }
}
