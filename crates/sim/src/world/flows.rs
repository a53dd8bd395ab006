//! Flows over TCP and UDP: saturated, at a constant rate, like a video, or like a session of ssh.
//!
//! *What this is:* [`Endpoint`], the program of a machine that sends and receives flows. *Who calls it:*
//! `experiment.rs`, and code that measures contention in a world of its own. *Where to start:* [`Flow`], then
//! `flows/source.rs`, the sending end, and `flows/sink.rs`, the receiving end.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddrV4;
use std::time::Duration;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore as _, SeedableRng as _};
use wire::Instant;

use super::{Program, address};
use crate::net::tcp::End;
use crate::net::{Event, Host, SocketId};
use crate::scenario;

mod shell;
mod sink;
mod source;
mod stamp;
mod video;

pub use sink::Sink;
pub use source::Source;
pub use stamp::STAMP_BYTES;

/// Payload of a UDP packet of [`Kind::Udp`], in bytes.
pub const DATAGRAM_BYTES: usize = 1460;

/// The first flow's port at its receiver; each flow has its own.
const PORT: u16 = 5001;
/// Number of the flows' random streams among those of a seed. Changing it changes runs.
const FLOW: u16 = 7;
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
    /// When it ends: from then on nothing more is sent but what a TCP connection has taken before. `None`:
    /// with the run.
    pub ends: Option<Instant>,
    /// What it sends, and over which transport.
    pub kind: Kind,
}

/// What a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A TCP connection whose sender never runs out of data.
    Tcp,
    /// UDP packets of [`DATAGRAM_BYTES`] at a constant rate. They contain nothing.
    Udp {
        /// Rate of payload, in bits per second.
        bits_per_second: u64,
    },
    /// UDP packets at a constant rate, numbered, so that delays can be measured.
    Cbr {
        /// Rate of payload, in bits per second.
        bits_per_second: u64,
        /// Payload of a packet, in bytes, at least [`STAMP_BYTES`].
        bytes: usize,
    },
    /// A coded video: each of its frames is sent at once, in numbered UDP packets.
    Vbr {
        /// Mean rate of payload, in bits per second.
        bits_per_second: u64,
        /// Payload of a full packet, in bytes, at least [`STAMP_BYTES`].
        bytes: usize,
    },
    /// Key strokes over TCP, which the other end echoes, with output now and then.
    Ssh,
}

impl Flow {
    /// When it ended in a run that lasted until `over`.
    pub(super) fn ended_at(&self, over: Instant) -> Instant {
        self.ends.map_or(over, |ends| ends.min(over))
    }

    /// How long it lasted in a run until `over`.
    pub(super) fn lasted(&self, over: Instant) -> Duration {
        self.ended_at(over) - self.starts.min(over)
    }
}

impl Kind {
    /// Time from one packet or frame to the next; `None` for kinds over TCP.
    fn interval(self) -> Option<Duration> {
        let nanos = match self {
            Self::Tcp | Self::Ssh => return None,
            Self::Vbr { .. } => return Some(video::INTERVAL),
            Self::Udp { bits_per_second } => interval_nanos(1, DATAGRAM_BYTES, bits_per_second),
            Self::Cbr { bits_per_second, bytes } => interval_nanos(1, bytes, bits_per_second),
        };
        Some(Duration::from_nanos(nanos.unwrap_or(0)))
    }
}

/// The kind with its rate in Mbit/s, like `cbr@2.66`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mbps = |bits_per_second: &u64| *bits_per_second as f64 / 1e6;
        match self {
            Self::Tcp => f.write_str("tcp"),
            Self::Ssh => f.write_str("ssh"),
            Self::Udp { bits_per_second } => write!(f, "udp@{}", mbps(bits_per_second)),
            Self::Cbr { bits_per_second, .. } => write!(f, "cbr@{}", mbps(bits_per_second)),
            Self::Vbr { bits_per_second, .. } => write!(f, "vbr@{}", mbps(bits_per_second)),
        }
    }
}

/// If a machine sends several UDP flows, each starts up to a packet's or a frame's interval later, drawn by the
/// seed. In step, the first flow would find room in the queue each time, and the others hardly ever.
pub(super) fn out_of_step(flows: &[Flow], seed: u64) -> Vec<Flow> {
    let mut udp_from = BTreeMap::new();
    let udp = flows.iter().filter(|it| it.kind.interval().is_some());
    udp.for_each(|it| *udp_from.entry(it.from).or_insert(0) += 1);
    let mut chance = SplitMix64::seed_from_u64(seed);
    let mut late = |flow: &Flow| match flow.kind.interval() {
        Some(interval) if udp_from[&flow.from] > 1 => {
            let nanos = (u128::from(chance.next_u64()) * interval.as_nanos()) >> 64;
            Duration::from_nanos(nanos as u64)
        }
        _ => Duration::ZERO,
    };
    flows.iter().map(|flow| Flow { starts: flow.starts + late(flow), ..*flow }).collect()
}

/// How long this many UDP packets last.
fn interval_nanos(packets: u64, bytes: usize, bits_per_second: u64) -> Option<u64> {
    let bits = u128::from(packets) * 8 * bytes as u128;
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

/// The endpoints of these flows on `machines` machines, by machine. `seed` is the run's: frames of videos and
/// key strokes are drawn by it.
///
/// # Panics
///
/// If there are more flows than ports, or a flow names a machine that does not exist.
pub fn endpoints(machines: usize, flows: &[Flow], seed: u64) -> Vec<Endpoint> {
    let mut endpoints: Vec<_> = (0..machines).map(|_| Endpoint::default()).collect();
    for (number, flow) in flows.iter().enumerate() {
        let port = u16::try_from(number).ok().and_then(|it| PORT.checked_add(it));
        let port = port.expect("each flow has a port");
        let to = SocketAddrV4::new(address(flow.to), port);
        let seed = scenario::seed(seed, number, FLOW);
        endpoints[flow.from].sources.push(Source::new(number, to, *flow, seed));
        endpoints[flow.to].sinks.push(Sink::new(number, port, flow, seed));
    }
    endpoints
}

impl Endpoint {
    /// The sending ends of flows from this machine.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

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

    fn source(&mut self, id: SocketId) -> Option<&mut Source> {
        self.sources.iter_mut().find(|it| it.has(id))
    }

    fn sink(&mut self, id: SocketId) -> Option<&mut Sink> {
        self.sinks.iter_mut().find(|it| it.has(id))
    }
}

impl Program for Endpoint {
    fn start(&mut self, _now: Instant, host: &mut Host) {
        self.sinks.iter().for_each(|it| it.listen(host));
        self.plan();
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event) {
        match event {
            Event::Connected(id) => {
                self.source(id).into_iter().for_each(|it| it.begin(now, host, id));
                self.plan();
            }
            Event::Writable(id) => match self.source(id) {
                Some(source) => source.fill(now, host, id),
                None => self.sink(id).into_iter().for_each(|it| it.write(now, host, id)),
            },
            Event::Accepted { id, local, .. } => {
                let sink = self.sinks.iter_mut().find(|it| it.port == local.port());
                sink.into_iter().for_each(|it| it.accept(host, id));
            }
            Event::Readable(id) => match self.sink(id) {
                Some(sink) => sink.read(now, host, id),
                None => self.source(id).into_iter().for_each(|it| it.read(now, host, id)),
            },
            Event::PeerClosed(id) => match self.sink(id) {
                Some(sink) => sink.end(now, host, id),
                None => host.close(now, id),
            },
            Event::Closed { id, why } => {
                self.source(id).into_iter().for_each(|it| it.end(now, host, why));
                self.plan();
            }
            Event::Datagram { to, payload, .. } => {
                let sink = self.sinks.iter_mut().find(|it| it.port == to.port());
                sink.into_iter().for_each(|it| it.receive(now, &payload));
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        for source in self.sources.iter_mut().filter(|it| it.due().is_some_and(|at| at <= now)) {
            source.handle_timeout(now, host);
        }
        self.plan();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
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
        let flow = |from, kind| Flow { from, to: 9, starts, ends: None, kind };
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
