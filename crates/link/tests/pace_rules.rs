//! Pacing's rules one by one: what goes first, who is believed, which ACKs are dropped.

use std::net::IpAddr;
use std::time::Duration;

use link::pace::{Config, Counters, Output, Pace};
use link::{
    Flags, Header, Interlay, Kind, Message, Packet as _, Probe, SACK_BLOCKS_MAX, Sack, Tcp,
};
use wire::Instant;

use crate::common::{self, Packet, ack, at, datagram, ip};

const ME: usize = 1;
/// The interlay node downstream, and the router on the way to it.
const NODE: usize = 4;
const HOP: usize = 2;
/// A host behind it, and another router.
const HOST: usize = 9;
const ELSEWHERE: usize = 3;

struct Bench {
    pace: Pace<Packet>,
    number: u64,
    sent: Vec<Packet>,
    /// Numbers of what found a queue full.
    dropped: Vec<u64>,
    messages: Vec<(IpAddr, Message)>,
}

impl Bench {
    fn new(config: Config) -> Self {
        let pace = Pace::new(ip(ME), config);
        Self { pace, number: 0, sent: Vec::new(), dropped: Vec::new(), messages: Vec::new() }
    }

    /// A bench whose path to [`NODE`] takes this long for a packet as long as a probe.
    fn measured(config: Config, half: Duration) -> Self {
        let mut bench = Self::new(config);
        bench.passes(Instant::ZERO, HOST, ME, NODE, HOP);
        bench.answer(Instant::ZERO, half);
        bench
    }

    fn send(&mut self, now: Instant, packet: Packet, hop: usize) -> u64 {
        self.number += 1;
        let packet = Packet { number: self.number, ..packet };
        self.pace.enqueue(now, &packet.header(), packet, ip(hop));
        self.drain();
        self.number
    }

    fn finished(&mut self, now: Instant) {
        self.pace.finished(now);
        self.drain();
    }

    /// The MAC finishes with frames until it has none, and time goes on to this moment.
    fn run(&mut self, until: Instant) {
        self.finish_all(Instant::ZERO);
        while let Some(due) = self.pace.poll_timeout().filter(|due| *due <= until) {
            self.pace.handle_timeout(due);
            self.drain();
            self.finish_all(due);
        }
    }

    fn finish_all(&mut self, now: Instant) {
        loop {
            let before = self.sent.len();
            self.finished(now);
            if self.sent.len() == before {
                return;
            }
        }
    }

    fn passes(&mut self, now: Instant, source: usize, to: usize, node: usize, from: usize) {
        let header = datagram(0, source, to, 1000).header;
        self.pace.passed(now, &header, ip(node).into(), ip(from));
        self.drain();
    }

    fn probe(&mut self, now: Instant, by: usize, towards: Option<usize>, from: usize) {
        let towards = towards.map(ip);
        let probe = Probe { from: ip(by), number: 7, towards, hops: 0, bytes: 64 };
        let header = datagram(0, by, ME, 64).header;
        self.pace.probe(now, &header, &probe, ip(from));
        self.drain();
    }

    /// The last probe is sent, and its answer comes after twice this time.
    fn answer(&mut self, now: Instant, half: Duration) {
        let (to, probe) = self.last_probe();
        let mut packet = datagram(0, ME, common::node(to), 64);
        packet.header.kind = Kind::Message(Message::Probe(probe));
        self.send(now, packet, HOP);
        self.finished(now);
        self.echo(now + 2 * half, common::node(to), probe.number);
    }

    fn echo(&mut self, now: Instant, by: usize, number: u32) {
        let echo = Probe { from: ip(by), number, towards: None, hops: 3, bytes: 64 };
        let header = Header { ttl: Header::TTL - 2, ..datagram(0, by, ME, 64).header };
        self.pace.echo(now, &header, &echo);
    }

    fn last_probe(&self) -> (IpAddr, Probe) {
        let probe = |(to, message): &(IpAddr, Message)| match message {
            Message::Probe(probe) => Some((*to, *probe)),
            _ => None,
        };
        self.messages.iter().rev().find_map(probe).expect("a probe was sent")
    }

    fn drain(&mut self) {
        while let Some(output) = self.pace.poll_output() {
            match output {
                Output::Transmit { frame, .. } => {
                    assert_eq!(frame.interlay.map(|it| it.node), Some(ip(ME)));
                    self.sent.push(frame.packet);
                }
                Output::Originate { to, message } => self.messages.push((to, message)),
                Output::Dropped { packet, .. } => self.dropped.push(packet.number),
            }
        }
    }

    /// Numbers of what the MAC got, without control.
    fn numbers(&self) -> Vec<u64> {
        let is_traffic = |it: &&Packet| matches!(it.header.kind, Kind::Other | Kind::Tcp(_));
        self.sent.iter().filter(is_traffic).map(|it| it.number).collect()
    }

    fn counters(&self) -> Counters {
        self.pace.counters()
    }
}

fn to_host(bytes: u32) -> Packet {
    datagram(0, 0, HOST, bytes)
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn control_goes_before_what_waits_for_the_mac() {
    let mut bench = Bench::new(Config::default());
    let first = bench.send(at(0.0), to_host(1500), HOP);
    bench.send(at(0.0), to_host(1500), HOP);
    let mut control = to_host(60);
    control.header.kind = Kind::Control;
    let control = bench.send(at(0.0), control, HOP);
    bench.finished(at(0.0));
    let order: Vec<_> = bench.sent.iter().map(|it| it.number).collect();
    assert_eq!(order, [first, control]);
}

#[test]
fn the_gap_is_the_time_of_the_packet_before() {
    // Half a round trip of 8 ms for probe and overhead; a packet twice as long in sum takes 16 ms.
    let config = Config::default();
    let long = 2 * (u32::from(config.probe_bytes) + config.overhead_bytes) - config.overhead_bytes;
    let mut bench = Bench::measured(config, 8 * MS);
    for bytes in [long, config.probe_bytes.into(), 500] {
        bench.send(at(0.1), to_host(bytes), HOP);
    }
    bench.finish_all(at(0.1));
    assert_eq!(bench.numbers().len(), 1);
    for (until, sent) in [(0.1159, 1), (0.1161, 2), (0.1239, 2), (0.1241, 3)] {
        bench.run(at(until));
        assert_eq!(bench.numbers().len(), sent, "{until}");
    }
    assert!((15 * MS..=25 * MS).contains(&bench.counters().held_max));
}

#[test]
fn the_papers_gap_is_the_packets_length_over_the_rate() {
    let config = Config::wine();
    let mut bench = Bench::measured(config, 8 * MS);
    // Three hops. As long as the probe and γ in sum: half the round trip.
    let bytes = u32::from(config.probe_bytes) + 3 * config.overhead_bytes;
    bench.send(at(0.1), to_host(bytes), HOP);
    bench.send(at(0.1), to_host(bytes), HOP);
    bench.run(at(0.1079));
    assert_eq!(bench.numbers().len(), 1);
    bench.run(at(0.1081));
    assert_eq!(bench.numbers().len(), 2);
}

#[test]
fn a_quantum_goes_at_once() {
    let config = Config { quantum_bytes: 4000, ..Config::default() };
    let mut bench = Bench::measured(config, 8 * MS);
    for _ in 0..6 {
        bench.send(at(0.1), to_host(1500), HOP);
    }
    bench.finish_all(at(0.1));
    assert_eq!(bench.numbers().len(), 1);
    bench.run(at(0.12));
    // 4000 bytes hold two of them.
    assert_eq!(bench.numbers().len(), 3);
}

#[test]
fn the_active_queue_has_one_packet_of_a_neighbour() {
    let mut bench = Bench::measured(Config::default(), MS);
    // The MAC is busy with another packet.
    bench.send(at(0.1), datagram(0, 0, 20, 1500), ELSEWHERE);
    for _ in 0..5 {
        bench.send(at(0.1), to_host(1500), HOP);
    }
    let waiting = |bench: &Bench| bench.pace.neighbours().map(|it| it.waiting).sum::<usize>();
    assert_eq!((waiting(&bench), bench.pace.waiting()), (4, 5));
    // However long the MAC takes.
    bench.pace.handle_timeout(at(0.2));
    bench.drain();
    assert_eq!((waiting(&bench), bench.pace.waiting()), (4, 5));
}

#[test]
fn a_full_queue_drops_the_newest() {
    let config = Config { queue_packets_max: 3, active_packets_max: 2, ..Config::default() };
    let mut bench = Bench::measured(config, 8 * MS);
    let sent: Vec<_> = (0..6).map(|_| bench.send(at(0.1), to_host(1500), HOP)).collect();
    assert_eq!(bench.counters().dropped, 2);
    bench.run(at(1.0));
    assert_eq!(bench.numbers(), sent[..4]);

    let mut bench = Bench::new(config);
    for _ in 0..6 {
        bench.send(at(0.1), to_host(1500), HOP);
    }
    assert_eq!(bench.counters().dropped_active, 3);
}

#[test]
fn only_packets_through_the_router_it_was_learned_from_are_paced() {
    let mut bench = Bench::measured(Config::default(), 8 * MS);
    for _ in 0..4 {
        bench.send(at(0.1), to_host(1500), ELSEWHERE);
    }
    bench.finish_all(at(0.1));
    assert_eq!(bench.numbers().len(), 4);
    assert_eq!(bench.counters().paced, 0);
    // A node off the way puts itself on it in vain.
    bench.passes(at(0.2), HOST, ME, NODE, HOP);
    assert_eq!(bench.counters().claims_refused, 1);
}

#[test]
fn claims_are_believed_only_of_the_next_router_for_traffic_that_flows() {
    let mut bench = Bench::new(Config::default());
    bench.probe(at(0.0), NODE, Some(HOST), HOP);
    assert_eq!(bench.counters().claims_refused, 1, "no packet goes there");
    bench.send(at(0.1), to_host(1500), HOP);
    bench.finish_all(at(0.1));
    bench.probe(at(0.2), NODE, Some(HOST), ELSEWHERE);
    assert_eq!(bench.counters().claims_refused, 2, "packets go another way");
    assert_eq!(bench.counters().neighbours_found, 0);
    bench.probe(at(0.2), NODE, Some(HOST), HOP);
    assert_eq!((bench.counters().claims_taken, bench.counters().claims_refused), (1, 2));
    bench.probe(at(0.3), 5, Some(HOST), HOP);
    assert_eq!(bench.counters().claims_refused, 3, "another node has it");
    bench.probe(at(9.0), NODE, Some(HOST), HOP);
    assert_eq!(bench.counters().claims_refused, 4, "its packets have ceased");
    // Each was answered, whether it was believed or not.
    let is_echo = |it: &&(IpAddr, Message)| matches!(it.1, Message::Echo(_));
    assert_eq!(bench.messages.iter().filter(is_echo).count(), 5);
}

#[test]
fn a_node_can_claim_only_so_many_destinations() {
    let config = Config { claims_max: 4, ..Config::default() };
    let mut bench = Bench::new(config);
    for host in 20..40 {
        bench.send(at(0.1), datagram(0, 0, host, 100), HOP);
        bench.finish_all(at(0.1));
        bench.probe(at(0.1), NODE, Some(host), HOP);
    }
    assert_eq!(bench.counters().claims_taken, 4);
    // Those that it no longer uses do not count.
    bench.send(at(4.0), datagram(0, 0, 50, 100), HOP);
    bench.probe(at(4.0), NODE, Some(50), HOP);
    assert_eq!(bench.counters().claims_taken, 5);
}

#[test]
fn answers_count_once_and_only_for_probes_that_left() {
    let mut bench = Bench::new(Config::default());
    bench.passes(at(0.0), HOST, ME, NODE, HOP);
    let (to, probe) = bench.last_probe();
    assert_eq!(to, ip(NODE));
    let is_measured = |bench: &Bench| bench.pace.neighbours().any(|it| it.rate.is_some());
    bench.echo(at(0.1), NODE, probe.number);
    assert!(!is_measured(&bench), "the probe is not sent yet");
    let mut packet = datagram(0, ME, NODE, 64);
    packet.header.kind = Kind::Message(Message::Probe(probe));
    bench.send(at(0.1), packet, HOP);
    bench.echo(at(0.2), NODE, probe.number.wrapping_add(1));
    bench.echo(at(0.2), 5, probe.number);
    assert!(!is_measured(&bench), "neither number nor node are right");
    bench.echo(at(0.2), NODE, probe.number);
    assert!(is_measured(&bench));
    let before: Vec<_> = bench.pace.neighbours().collect();
    bench.echo(at(0.9), NODE, probe.number);
    assert_eq!(before, bench.pace.neighbours().collect::<Vec<_>>());
    assert_eq!((bench.counters().probes_answered, bench.counters().probes_late), (1, 4));
}

#[test]
fn an_answer_is_never_longer_than_its_probe() {
    let mut bench = Bench::new(Config::default());
    let probe = Probe { from: ip(NODE), number: 1, towards: None, hops: 0, bytes: u16::MAX };
    bench.pace.probe(at(0.0), &datagram(0, NODE, ME, 64).header, &probe, ip(HOP));
    // Nor does it go to another.
    bench.pace.probe(at(0.0), &datagram(0, HOST, ME, 64).header, &probe, ip(HOP));
    bench.drain();
    assert_eq!(bench.messages.len(), 1);
    assert!(bench.messages.iter().all(|(to, it)| *to == ip(NODE) && it.bytes() == 64));
}

#[test]
fn new_names_do_not_raise_the_rate_of_probes() {
    let config = Config { neighbours_max: 4, ..Config::default() };
    let mut bench = Bench::new(config);
    for name in 0..1000 {
        bench.passes(at(0.001 * name as f64), HOST, ME, 100 + name, HOP);
        bench.pace.handle_timeout(at(0.001 * name as f64));
    }
    let seconds = 1.0 + config.probe_interval.as_secs_f64();
    let most = 4.0 * seconds / config.probe_interval.as_secs_f64();
    assert!(bench.counters().probes_sent as f64 <= most, "{:?}", bench.counters());
    assert_eq!(bench.counters().neighbours_evicted, 996);
}

#[test]
fn names_that_nobody_answers_to_do_not_drive_out_who_answers() {
    let config = Config { neighbours_max: 4, ..Config::default() };
    let mut bench = Bench::measured(config, 20 * MS);
    for name in 0..1000 {
        bench.passes(at(0.2), HOST, ME, 100 + name, HOP);
    }
    assert!(bench.pace.gap(ip(NODE), 1000).is_some(), "{:?}", bench.counters());
    assert_eq!(bench.counters().neighbours_evicted, 997);
    // Where all answer, there is no room.
    let mut bench = Bench::measured(Config { neighbours_max: 1, ..config }, 20 * MS);
    bench.passes(at(0.2), HOST, ME, NODE + 1, HOP);
    assert_eq!((bench.counters().neighbours_refused, bench.pace.neighbours().count()), (1, 1));
    assert!(bench.pace.gap(ip(NODE), 1000).is_some());
}

#[test]
fn a_mac_that_says_nothing_counts_as_free_after_a_while() {
    let mut bench = Bench::new(Config::default());
    let sent = [0, 1].map(|_| bench.send(at(0.0), to_host(1000), HOP));
    assert_eq!(bench.numbers(), sent[..1]);
    let due = bench.pace.poll_timeout().expect("it is not waited for for ever");
    bench.pace.handle_timeout(due);
    bench.drain();
    assert_eq!(bench.numbers(), sent);
    assert_eq!(bench.counters().verdicts_missing, 1);
}

#[test]
fn what_goes_on_by_another_interface_has_left() {
    let mut bench = Bench::measured(Config::default(), 20 * MS);
    let number = |number| Interlay { node: ip(NODE), number: Some(number), left: None };
    bench.pace.gone(at(0.5), number(1));
    bench.drain();
    assert_eq!(bench.messages.last(), Some(&(ip(NODE), Message::Left)));
    let count = bench.messages.len();
    bench.pace.gone(at(0.5), number(2));
    bench.pace.gone(at(0.5), Interlay { node: ip(ELSEWHERE), ..number(1) });
    bench.drain();
    assert_eq!(bench.messages.len(), count, "it was told just now, and strangers are not told");
}

#[test]
fn probes_count_while_a_node_says_nothing_of_what_has_left_it() {
    let mut bench = Bench::measured(Config::default(), 20 * MS);
    let gap = |bench: &Bench| bench.pace.gap(ip(NODE), 1000).expect("it is paced");
    let first = gap(&bench);
    bench.passes(at(0.5), HOST, ME, NODE, HOP);
    bench.send(at(0.5), to_host(1000), HOP);
    bench.run(at(1.0));
    bench.answer(at(1.0), 10 * MS);
    assert_eq!(gap(&bench), first, "news may still come");
    bench.passes(at(2.9), HOST, ME, NODE, HOP);
    bench.run(at(2.9));
    bench.answer(at(2.9), 10 * MS);
    assert_eq!(gap(&bench), first / 2);
}

/// ACKs in the queue of a neighbour, behind one packet that takes its time.
fn acks_that_wait(segments: &[Tcp]) -> (Vec<u64>, u64) {
    let mut bench = Bench::measured(Config::default(), 20 * MS);
    // What the flow sent before: its last number was 100.
    bench.send(at(0.1), ack(0, 0, HOST, 100), HOP);
    bench.finish_all(at(0.1));
    let first = bench.number;
    for tcp in segments {
        let packet = ack(0, 0, HOST, 0);
        let bytes = packet.header.bytes + tcp.payload;
        let header = Header { kind: Kind::Tcp(*tcp), bytes, ..packet.header };
        bench.send(at(0.1), Packet { header, ..packet }, HOP);
    }
    bench.run(at(2.0));
    let sent = bench.numbers().into_iter().filter(|it| *it > first).map(|it| it - first - 1);
    (sent.collect(), bench.counters().acks_thinned)
}

fn pure(number: u32) -> Tcp {
    *ack(0, 0, HOST, number).header.tcp().expect("it is TCP")
}

fn sack(blocks: &[(u32, u32)]) -> Sack {
    assert!(blocks.len() <= SACK_BLOCKS_MAX);
    let mut sack = Sack::default();
    blocks.iter().for_each(|block| sack.push(*block));
    sack
}

#[test]
fn of_pure_acks_that_wait_the_newest_goes() {
    let segments: Vec<_> = (1..9).map(|it| pure(100 + 1000 * it)).collect();
    assert_eq!(acks_that_wait(&segments), (vec![7], 7));
    // Also across the end of the numbers.
    let segments = [pure(0x7000_0000), pure(0xe000_0000), pure(0x100)];
    assert_eq!(acks_that_wait(&segments), (vec![2], 2));
}

#[test]
fn what_is_more_than_an_older_ack_stays() {
    let is_kept = |segments: &[Tcp]| acks_that_wait(segments).1 == 0;
    let window = |tcp: Tcp, window| Tcp { window, ..tcp };
    let flags = |tcp: Tcp, flags| Tcp { flags: Flags::ACK | flags, ..tcp };
    assert!(is_kept(&[pure(100), pure(100), pure(100)]), "duplicates");
    assert!(is_kept(&[pure(100), pure(200)]), "a duplicate before a new one");
    assert!(is_kept(&[window(pure(100), 5), window(pure(100), 9), pure(200)]), "windows");
    assert!(is_kept(&[pure(200), Tcp { seq: 0, ..pure(300) }]), "a keep-alive, a probe");
    assert!(is_kept(&[pure(200), Tcp { payload: 10, ..pure(300) }]), "payload");
    assert!(is_kept(&[Tcp { payload: 10, ..pure(200) }, pure(300)]), "payload before");
    assert!(is_kept(&[pure(300), pure(200)]), "an older one");
    for other in [Flags::SYN, Flags::FIN, Flags::RST, Flags::ECE, Flags::CWR, Flags::PSH] {
        assert!(is_kept(&[flags(pure(200), other), pure(300)]), "{other:?}");
        assert!(is_kept(&[pure(200), flags(pure(300), other)]), "{other:?} after");
    }
    let unknown = |tcp: Tcp| Tcp { has_other_options: true, ..tcp };
    assert!(is_kept(&[unknown(pure(200)), pure(300)]), "MPTCP");
    assert!(is_kept(&[pure(200), unknown(pure(300))]), "MPTCP after");
}

#[test]
fn an_ack_is_never_dropped_over_another_segment_of_its_flow() {
    let data = Tcp { payload: 10, ..pure(200) };
    let reset = Tcp { flags: Flags::RST, ..pure(0) };
    assert_eq!(acks_that_wait(&[pure(200), data, pure(300)]), (vec![0, 1, 2], 0));
    assert_eq!(acks_that_wait(&[pure(200), reset, pure(300)]), (vec![0, 1, 2], 0));
    assert_eq!(acks_that_wait(&[pure(200), pure(200), pure(300)]), (vec![0, 1, 2], 0));
}

#[test]
fn what_sacks_say_is_kept() {
    let with = |number, blocks: &[(u32, u32)]| Tcp { sack: sack(blocks), ..pure(number) };
    let thinned = |older, newer| acks_that_wait(&[older, newer]).1;
    assert_eq!(thinned(with(200, &[(400, 500)]), pure(300)), 0, "the newer one lacks it");
    assert_eq!(thinned(with(200, &[(400, 500)]), with(300, &[(450, 600)])), 0, "a part of it");
    assert_eq!(thinned(with(200, &[(400, 500)]), with(300, &[(400, 600)])), 1);
    assert_eq!(thinned(with(200, &[(400, 500)]), pure(500)), 1, "all of it is acknowledged");
    assert_eq!(thinned(with(200, &[(100, 150)]), pure(300)), 0, "duplicate SACK");
    let inside = with(200, &[(420, 430), (400, 500)]);
    assert_eq!(thinned(inside, with(600, &[])), 0, "duplicate SACK above");
}

#[test]
fn acks_of_other_flows_and_without_thinning_stay() {
    let mut bench = Bench::measured(Config::default(), 20 * MS);
    for number in 0..6 {
        let mut packet = ack(0, 0, HOST, 100 + number);
        packet.header.from.set_port(1000 + (number % 3) as u16);
        bench.send(at(0.1), packet, HOP);
    }
    // The first of a flow is not dropped: nothing is known of what it sent before.
    assert_eq!(bench.counters().acks_thinned, 0);
    let mut bench = Bench::measured(Config::wine(), 20 * MS);
    for number in 100..109 {
        bench.send(at(0.1), ack(0, 0, HOST, number), HOP);
    }
    assert_eq!(bench.counters().acks_thinned, 0);
}

#[test]
fn acks_are_thinned_before_the_mac_too() {
    let mut bench = Bench::new(Config::default());
    let sent: Vec<_> =
        (0..6).map(|it| bench.send(at(0.1), ack(0, 0, HOST, 100 + it), HOP)).collect();
    bench.finish_all(at(0.1));
    assert_eq!(bench.numbers(), [sent[0], sent[5]]);
    assert_eq!(bench.counters().acks_thinned, 4);
}
