//! What holds for pacing whatever happens: order, an account of each packet, bounds of waiting and of tables.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use link::pace::{Config, Output, Pace};
use link::{Header, Kind, Message, Packet as _, Probe};
use proptest::prelude::*;
use wire::Instant;

use crate::common::{self, Packet, ack, datagram, ip};

const ME: usize = 1;

/// What happens to a router.
#[derive(Clone, Debug)]
enum Event {
    /// Some packets to a host leave through a neighbour: with payload, or ACKs, each of which acknowledges so much more.
    Datagrams {
        host: usize,
        hop: usize,
        count: usize,
        bytes: u32,
    },
    Acks {
        host: usize,
        hop: usize,
        more: Vec<u32>,
    },
    /// A packet of a host comes.
    Passed {
        host: usize,
        node: usize,
        hop: usize,
    },
    /// A node probes, and perhaps claims a host.
    Probe {
        node: usize,
        towards: Option<usize>,
        hop: usize,
    },
    /// The last probe to be sent is answered, or another number.
    Echo {
        node: usize,
        is_true: bool,
    },
    /// The MAC has finished.
    Finished,
    /// Time passes.
    Wait(Duration),
}

fn event() -> impl Strategy<Value = Event> {
    let (host, node) = (50..54_usize, 10..13_usize);
    // Most of the time, one router is on the way.
    let hop = prop_oneof![6 => Just(2_usize), 1 => Just(3_usize)];
    prop_oneof![
        4 => (host.clone(), hop.clone(), 1..6_usize, 40..1500_u32)
            .prop_map(|(host, hop, count, bytes)| Event::Datagrams { host, hop, count, bytes }),
        4 => (host.clone(), hop.clone(), prop::collection::vec(0..3_u32, 1..6))
            .prop_map(|(host, hop, more)| Event::Acks { host, hop, more }),
        4 => (host.clone(), node.clone(), hop.clone())
            .prop_map(|(host, node, hop)| Event::Passed { host, node, hop }),
        2 => (node.clone(), prop::option::of(host), hop)
            .prop_map(|(node, towards, hop)| Event::Probe { node, towards, hop }),
        4 => (node, prop::bool::weighted(0.9))
            .prop_map(|(node, is_true)| Event::Echo { node, is_true }),
        8 => Just(Event::Finished),
        6 => (0..30_000_u64).prop_map(|it| Event::Wait(Duration::from_micros(it))),
        1 => (0..2_000_u64).prop_map(|it| Event::Wait(Duration::from_millis(it))),
    ]
}

struct World {
    pace: Pace<Packet>,
    now: Instant,
    /// The MAC finishes at once.
    is_instant: bool,
    in_mac: u32,
    enqueued: Vec<(Packet, Instant, usize)>,
    sent: Vec<(u64, Instant)>,
    acks: BTreeMap<usize, u32>,
    probes: Vec<(usize, u32)>,
    /// How many packets found a queue full.
    dropped: u64,
}

impl World {
    fn new(config: Config, is_instant: bool) -> Self {
        Self {
            pace: Pace::new(ip(ME), config),
            now: Instant::ZERO,
            is_instant,
            in_mac: 0,
            enqueued: Vec::new(),
            sent: Vec::new(),
            acks: BTreeMap::new(),
            probes: Vec::new(),
            dropped: 0,
        }
    }

    fn send(&mut self, packet: Packet, hop: usize) {
        let number = self.enqueued.len() as u64;
        let packet = Packet { number, ..packet };
        self.enqueued.push((packet.clone(), self.now, self.pace.waiting()));
        self.pace.enqueue(self.now, &packet.header(), packet, ip(hop));
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.pace.poll_output() {
            match output {
                Output::Transmit { frame, .. } => {
                    self.sent.push((frame.packet.number, self.now));
                    self.in_mac += 1;
                }
                Output::Dropped { .. } => self.dropped += 1,
                Output::Originate { to, message } => {
                    let mut packet = datagram(0, ME, common::node(to), message.bytes());
                    packet.header.kind = Kind::Message(message);
                    if let Message::Probe(probe) = message {
                        self.probes.push((common::node(to), probe.number));
                    }
                    self.send(packet, 2);
                }
            }
            while self.is_instant && self.in_mac > 0 {
                self.finished();
            }
        }
    }

    fn finished(&mut self) {
        if self.in_mac > 0 {
            self.in_mac -= 1;
            self.pace.finished(self.now);
            self.drain();
        }
    }

    fn wait(&mut self, until: Instant) {
        while let Some(due) = self.pace.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.pace.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Datagrams { host, hop, count, bytes } => {
                (0..count).for_each(|_| self.send(datagram(0, 0, host, bytes), hop));
            }
            Event::Acks { host, hop, more } => {
                for more in more {
                    let number = self.acks.entry(host).or_default();
                    *number += more;
                    let packet = ack(0, 0, host, *number);
                    self.send(packet, hop);
                }
            }
            Event::Passed { host, node, hop } => {
                let header = datagram(0, host, ME, 1000).header;
                self.pace.passed(self.now, &header, ip(node).into(), ip(hop));
            }
            Event::Probe { node, towards, hop } => {
                let towards = towards.map(ip);
                let probe = Probe { from: ip(node), number: 1, towards, hops: 0, bytes: 64 };
                self.pace.probe(self.now, &datagram(0, node, ME, 64).header, &probe, ip(hop));
            }
            Event::Echo { node, is_true } => {
                let probe = self.probes.iter().rev().find(|it| !is_true || it.0 == node);
                if let Some((_, number)) = probe.copied() {
                    let from = ip(node);
                    let echo = Probe { from, number, towards: None, hops: 1, bytes: 64 };
                    self.pace.echo(self.now, &datagram(0, node, ME, 64).header, &echo);
                }
            }
            Event::Finished => self.finished(),
            Event::Wait(time) => self.wait(self.now + time),
        }
        self.drain();
    }

    /// Lets all that waits go, with a MAC that takes all.
    fn end(&mut self) {
        for _ in 0..100_000 {
            if self.pace.waiting() == 0 {
                return;
            }
            while self.in_mac > 0 {
                self.finished();
            }
            self.wait(self.pace.poll_timeout().unwrap_or(self.now));
        }
        panic!("{} packets wait for ever", self.pace.waiting());
    }

    /// The packets of each flow that were sent, in that order.
    fn flows(&self) -> BTreeMap<(SocketAddr, SocketAddr, bool), Vec<&Packet>> {
        let mut flows: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (number, _) in &self.sent {
            let packet = &self.enqueued[*number as usize].0;
            let Header { from, to, kind, .. } = packet.header;
            if !matches!(kind, Kind::Message(_)) {
                flows.entry((from, to, matches!(kind, Kind::Tcp(_)))).or_default().push(packet);
            }
        }
        flows
    }
}

fn small(thin_acks: bool) -> Config {
    Config {
        thin_acks,
        gain: 0.5,
        queue_packets_max: 8,
        active_packets_max: 12,
        neighbours_max: 2,
        destinations_max: 3,
        flows_max: 3,
        claims_max: 2,
        gap_max: Duration::from_millis(100),
        ..Config::default()
    }
}

proptest! {
    #[test]
    fn flows_keep_their_order_and_each_packet_is_accounted_for(
        events in prop::collection::vec(event(), 0..400),
        thin_acks: bool,
        is_instant: bool,
    ) {
        let mut world = World::new(small(thin_acks), is_instant);
        events.into_iter().for_each(|it| world.happen(it));
        world.end();
        let counters = world.pace.counters();
        let lost = counters.dropped + counters.dropped_active + counters.acks_thinned;
        prop_assert_eq!(world.enqueued.len() as u64, world.sent.len() as u64 + lost);
        prop_assert_eq!(world.dropped, counters.dropped + counters.dropped_active);
        prop_assert!(thin_acks || counters.acks_thinned == 0);
        let once: BTreeSet<_> = world.sent.iter().map(|(number, _)| number).collect();
        prop_assert_eq!(once.len(), world.sent.len());
        for packets in world.flows().values() {
            prop_assert!(packets.is_sorted_by_key(|it| it.number));
        }
    }

    #[test]
    fn no_packet_waits_longer_than_those_before_it_may_take(
        events in prop::collection::vec(event(), 0..400),
    ) {
        let config = small(false);
        let mut world = World::new(config, true);
        events.into_iter().for_each(|it| world.happen(it));
        world.end();
        for (number, at) in &world.sent {
            let (_, enqueued, before) = &world.enqueued[*number as usize];
            let bound = config.gap_max * (*before as u32 + 1);
            prop_assert!(at.since(*enqueued) <= bound, "{:?}", at.since(*enqueued));
        }
        let bound = config.gap_max * config.queue_packets_max as u32;
        prop_assert!(world.pace.counters().held_max <= bound);
    }

    /// Nothing but pure ACKs is lost in queues without a bound, and each that is lost is followed by one of its flow that
    /// acknowledges more.
    #[test]
    fn only_acks_that_a_newer_one_includes_are_dropped(
        events in prop::collection::vec(event(), 0..400),
        is_instant: bool,
    ) {
        let bounds = Config { queue_packets_max: 1000, active_packets_max: 1000, ..small(true) };
        let mut world = World::new(bounds, is_instant);
        events.into_iter().for_each(|it| world.happen(it));
        world.end();
        let sent: BTreeSet<_> = world.sent.iter().map(|(number, _)| *number).collect();
        let number = |packet: &Packet| packet.header.tcp().map(|tcp| tcp.ack);
        let mut last = BTreeMap::new();
        for (packet, ..) in &world.enqueued {
            let Some(ack) = number(packet) else {
                prop_assert!(sent.contains(&packet.number));
                continue;
            };
            let before = last.insert(packet.header.to, ack);
            if !sent.contains(&packet.number) {
                prop_assert!(before.is_some_and(|before| before < ack), "a duplicate or the first");
                let is_newer = |it: &&(Packet, Instant, usize)| {
                    it.0.number > packet.number && it.0.header.to == packet.header.to
                };
                let newer = world.enqueued.iter().filter(is_newer);
                let mut newer = newer.filter(|it| sent.contains(&it.0.number));
                prop_assert!(newer.any(|it| number(&it.0).is_some_and(|it| it > ack)));
            }
        }
    }
}

/// A million flows, and as many probes and headers that lie; fewer without optimisation.
#[test]
fn tables_keep_their_bounds_whatever_comes() {
    let config = Config { destinations_max: 500, flows_max: 300, ..small(true) };
    let mut pace = Pace::new(ip(ME), config);
    let mut random = 1_u64;
    let mut draw = |below: usize| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let mut in_mac = 0_u32;
    let turns = if cfg!(debug_assertions) { 50_000 } else { 1_000_000 };
    for turn in 0..turns {
        let now = Instant::from_nanos(turn * 10_000);
        let (host, other) = (draw(60_000), draw(60_000));
        let mut packet = ack(turn, other, host, draw(1 << 30) as u32);
        packet.header.from.set_port(draw(1 << 16) as u16);
        pace.enqueue(now, &packet.header(), packet, ip(2));
        let header = datagram(0, other, host, 1000).header;
        pace.passed(now, &header, ip(draw(60_000)).into(), ip(2));
        let probe =
            Probe { from: ip(other), number: 1, towards: Some(ip(host)), hops: 0, bytes: 64 };
        pace.probe(now, &datagram(0, other, ME, 64).header, &probe, ip(2));
        while let Some(output) = pace.poll_output() {
            in_mac += u32::from(matches!(output, Output::Transmit { .. }));
        }
        if draw(2) == 0 && in_mac > 0 {
            in_mac -= 1;
            pace.finished(now);
        }
        if turn % 1000 == 0 {
            pace.handle_timeout(now);
            let (destinations, flows) = pace.rows();
            assert!(destinations <= 500 && flows <= 300 && pace.neighbours().count() <= 2);
            assert!(pace.waiting() <= 12 + 12 + 2 * 8 + 2 * 8, "{}", pace.waiting());
        }
    }
    let counters = pace.counters();
    assert!(counters.neighbours_evicted > turns / 2 && counters.destinations_evicted > turns / 2);
    // A slot sends one probe in each interval, and answers are not counted here.
    let intervals = turns as f64 * 1e-5 / config.probe_interval.as_secs_f64() + 1.0;
    assert!(counters.probes_sent as f64 <= 2.0 * intervals, "{counters:?}");
}
