//! ACKs of steady transfers that wait for a newer one: how long, and which never do.

use std::time::Duration;

use link::pace::{Config, Output, Pace};
use link::{Header, Kind, Packet as _, Tcp};
use wire::Instant;

use crate::common::{Packet, ack, at, datagram, ip};

const HOST: usize = 9;
const HOP: usize = 2;
/// Two segments.
const PIECE: u32 = 2 * 1460;

/// A router whose MAC is at once done with what it gets: the ACKs that it got, and when.
struct Bench {
    pace: Pace<Packet>,
    now: Instant,
    sent: Vec<(Duration, Tcp)>,
}

impl Bench {
    fn new(config: Config) -> Self {
        Self { pace: Pace::new(ip(1), config), now: Instant::ZERO, sent: Vec::new() }
    }

    fn run(&mut self, until: Instant) {
        while let Some(due) = self.pace.poll_timeout().filter(|due| *due <= until) {
            self.now = due;
            self.pace.handle_timeout(due);
            self.drain();
        }
        self.now = until;
    }

    fn send(&mut self, when: f64, tcp: Tcp) {
        self.run(at(when));
        let packet = ack(0, 0, HOST, 0);
        let bytes = packet.header.bytes + tcp.payload;
        let packet =
            Packet { header: Header { kind: Kind::Tcp(tcp), bytes, ..packet.header }, ..packet };
        self.pace.enqueue(self.now, &packet.header(), packet, ip(HOP));
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.pace.poll_output() {
            if let Output::Transmit { frame, .. } = output {
                let tcp = frame.packet.header.tcp().copied();
                self.sent.extend(tcp.map(|tcp| (self.now - Instant::ZERO, tcp)));
                self.pace.finished(self.now);
            }
        }
    }

    /// The ACK that went last.
    fn last(&self) -> u32 {
        self.sent.last().expect("one went").1.ack
    }
}

fn pure(number: u32) -> Tcp {
    *ack(0, 0, HOST, number).header.tcp().expect("it is TCP")
}

/// A bench after this many ACKs of two segments each, one every 10 ms from the beginning.
fn steady(acks: u32) -> Bench {
    let mut bench = Bench::new(Config::default());
    for number in 1..=acks {
        bench.send(0.01 * f64::from(number), pure(PIECE * number));
    }
    bench
}

#[test]
fn of_a_steady_transfer_one_ack_goes_for_eight_segments() {
    let bench = steady(400);
    let late = bench.sent.iter().filter(|(when, _)| *when > Duration::from_secs(1));
    let late: Vec<_> = late.map(|(_, tcp)| tcp.ack).collect();
    assert!(late.len() > 60, "{}", late.len());
    assert!(late.windows(2).all(|it| it[1] - it[0] == 4 * PIECE), "{late:?}");
    assert!(bench.pace.counters().acks_thinned > 200);
}

#[test]
fn the_last_ack_goes_when_no_other_comes() {
    for acks in 98..102 {
        let mut bench = steady(acks);
        let since = bench.now;
        bench.run(at(20.0));
        assert_eq!(bench.last(), PIECE * acks);
        let waited = bench.sent.last().expect("one went").0 - (since - Instant::ZERO);
        assert!(waited < Duration::from_millis(50), "{waited:?}");
        assert_eq!(bench.pace.waiting(), 0);
    }
}

#[test]
fn no_ack_waits_longer_than_it_may() {
    let mut bench = Bench::new(Config::default());
    let wait = Config::default().ack_wait;
    // So slow that eight segments take longer.
    for number in 1..=100 {
        bench.send(0.3 * f64::from(number), pure(PIECE * number));
    }
    let gaps = bench.sent.windows(2).map(|it| it[1].0 - it[0].0);
    assert!(gaps.max().expect("some went") <= wait.max(Duration::from_millis(600)));
    assert!(bench.pace.counters().acks_thinned > 0);
}

#[test]
fn duplicates_and_data_go_at_once_after_what_waits() {
    let data = |number| Tcp { payload: 10, ..pure(number) };
    for last in [pure(PIECE * 101), data(PIECE * 101), data(PIECE * 102)] {
        let mut bench = steady(101);
        let before = bench.sent.len();
        assert!(bench.pace.waiting() == 1, "one waits");
        let when = bench.now;
        bench.send(1.011, last);
        let sent: Vec<_> = bench.sent[before..].iter().map(|(_, tcp)| *tcp).collect();
        assert_eq!(sent, [pure(PIECE * 101), last]);
        assert_eq!(bench.now, when + Duration::from_millis(1));
        // After it none waits until the transfer is steady again.
        bench.send(1.02, pure(PIECE * 103));
        assert_eq!(bench.last(), PIECE * 103);
    }
}

#[test]
fn acks_of_key_strokes_and_of_short_transfers_do_not_wait() {
    let mut typing = Bench::new(Config::default());
    for number in 1..=200 {
        typing.send(0.02 * f64::from(number), pure(40 * number));
        assert_eq!(typing.last(), 40 * number);
    }
    let mut short = Bench::new(Config::default());
    for number in 1..=16 {
        short.send(0.01 * f64::from(number), pure(PIECE * number));
        assert_eq!(short.last(), PIECE * number);
    }
}

#[test]
fn other_packets_pass_an_ack_that_waits() {
    let mut bench = steady(101);
    assert_eq!(bench.pace.waiting(), 1);
    let other = datagram(0, 0, HOST, 1000);
    bench.pace.enqueue(bench.now, &other.header(), other, ip(HOP));
    assert!(matches!(bench.pace.poll_output(), Some(Output::Transmit { .. })));
}
