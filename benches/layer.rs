//! How many packets of a thousand flows a router's link plane passes in a second, on one core.
//!
//! Each packet comes with an interlay node's header and leaves for another, whose path is measured; the MAC finishes at
//! once. Half of the packets are pure ACKs, each of the data that its flow sent just before. So recovery caches each data packet,
//! and each ACK removes one.

use std::collections::VecDeque;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use link::{
    Config, Flags, Frame, Header, Kind, Layer, Message, Next, Outcome, Output, Packet, Probe, Sack,
    Tcp, Verdict, pace, recover,
};
use wire::Instant;

const FLOWS: usize = 1000;
/// Interlay nodes on each of the two sides.
const NODES: usize = 4;
const PACKETS: u64 = 10_000;
/// Time between two packets.
const STEP: Duration = Duration::from_nanos(500);

/// A packet as drivers have it: a handle.
#[derive(Clone)]
struct Light(Rc<Header>);

impl Packet for Light {
    fn header(&self) -> Header {
        *self.0
    }
}

fn ip(group: u8, number: usize) -> IpAddr {
    let [.., high, low] = (number as u32).to_be_bytes();
    Ipv4Addr::new(10, group, high, low).into()
}

struct Router {
    now: Instant,
    layer: Layer<Light>,
    packets: u64,
    in_mac: VecDeque<(Frame<Light>, IpAddr)>,
}

impl Router {
    fn new(pace: Option<pace::Config>, recover: Option<recover::Config>) -> Self {
        let layer = Layer::new(Config { me: ip(0, 1), pace, recover });
        Self { now: Instant::ZERO, layer, packets: 0, in_mac: VecDeque::new() }
    }

    /// A packet comes, and is sent on: data from the left to the right, ACKs from the right to the left.
    fn pass(&mut self) {
        self.packets += 1;
        self.now = self.now + STEP;
        let number = self.packets as usize / 2 % FLOWS;
        let is_ack = !self.packets.is_multiple_of(2);
        let (left, right) = (ip(1, number), ip(2, number));
        // A flow's ACK follows its data, and acknowledges it.
        let round = (self.packets / 2 / FLOWS as u64) as u32;
        let (from, to, from_side, to_side) =
            if is_ack { (right, left, 4, 3) } else { (left, right, 3, 4) };
        let payload = if is_ack { 0 } else { 1460 };
        let tcp = Tcp {
            seq: if is_ack { 1 } else { round.wrapping_mul(1460) },
            ack: if is_ack { round.wrapping_add(1).wrapping_mul(1460) } else { 1 },
            payload,
            flags: Flags::ACK,
            window: 1000,
            sack: Sack::default(),
            stamps: None,
            has_other_options: false,
        };
        let header = Header {
            bytes: 40 + payload,
            ttl: 60,
            from: SocketAddr::new(from, 80),
            to: SocketAddr::new(to, 80),
            kind: Kind::Tcp(tcp),
        };
        let frame = Frame {
            interlay: Some(ip(from_side, number % NODES).into()),
            packet: Light(Rc::new(header)),
        };
        self.layer.receive(self.now, frame, ip(from_side + 2, 0));
        self.drain(ip(to_side + 2, 0));
        if self.layer.poll_timeout().is_some_and(|at| at <= self.now) {
            self.layer.handle_timeout(self.now);
            self.drain(ip(to_side + 2, 0));
        }
    }

    fn drain(&mut self, hop: IpAddr) {
        let next = Next { hop, other: None };
        loop {
            while let Some(output) = self.layer.poll_output() {
                match output {
                    Output::Transmit { frame, next } => self.in_mac.push_back((frame, next)),
                    Output::Deliver(packet) => self.layer.send(self.now, packet, next),
                    Output::Originate { to, message } => self.originate(to, message, next),
                }
            }
            let Some((frame, next)) = self.in_mac.pop_front() else { return };
            let verdict = Verdict { outcome: Outcome::Acked, tries: 1 };
            let header = *frame.packet.0;
            self.layer.verdict(self.now, black_box(frame), next, verdict);
            if let Kind::Message(Message::Probe(probe)) = header.kind {
                self.answer(header, probe, next);
            }
        }
    }

    /// A probe is answered after the time of two packets.
    fn answer(&mut self, header: Header, probe: Probe, hop: IpAddr) {
        let from = header.to;
        let echo = Probe { from: from.ip(), towards: None, ..probe };
        let kind = Kind::Message(Message::Echo(echo));
        let header = Header { from, to: header.from, kind, ..header };
        let frame = Frame { interlay: Some(from.ip().into()), packet: Light(Rc::new(header)) };
        self.layer.receive(self.now + STEP * 2, frame, hop);
    }

    fn originate(&mut self, to: IpAddr, message: Message, next: Next) {
        let from = SocketAddr::new(ip(0, 1), 1);
        let kind = Kind::Message(message);
        let bytes = message.bytes();
        let header = Header { bytes, ttl: Header::TTL, from, to: SocketAddr::new(to, 1), kind };
        self.layer.send(self.now, Light(Rc::new(header)), next);
    }
}

fn thousand_flows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("layer");
    group.throughput(Throughput::Elements(PACKETS));
    let paced = pace::Config::default();
    // Room for both directions of each flow.
    let room = |config| recover::Config { flows_max: 4 * FLOWS, ..config };
    let (theirs, recovered) = (room(recover::Config::inpcm()), room(recover::Config::default()));
    for (name, pace, recover) in [
        ("none", None, None),
        ("wine", Some(pace::Config::wine()), None),
        ("inpcm", None, Some(theirs)),
        ("pace", Some(paced), None),
        ("recover", None, Some(recovered)),
        ("both", Some(paced), Some(recovered)),
    ] {
        let mut router = Router::new(pace, recover);
        (0..20 * PACKETS).for_each(|_| router.pass());
        group.bench_function(name, |bencher| {
            bencher.iter(|| (0..PACKETS).for_each(|_| router.pass()));
        });
        let counters = router.layer.counters();
        // Both engines did their work: none is fast because it looks away.
        let share = |count: u64| count * 5 > router.packets * 2;
        let paced = counters.pace.paced + counters.pace.acks_thinned;
        assert!(pace.is_none() || share(paced), "{name}: {counters:?}");
        let acked = counters.recover.evicted_acked;
        assert!(recover.is_none() || share(acked), "{name}: {counters:?}");
        assert_eq!(counters.recover.data_resent(), 0, "{name}: nothing is lost");
    }
    group.finish();
}

criterion_group!(benches, thousand_flows);
criterion_main!(benches);
