//! Data that comes again: absorbed while a copy is on its way, answered if the receiver has it, else sent on.

use std::time::Duration;

use super::super::{Config, LinkRed, Timer};
use super::middle::{ISS, MSS, Middle, ack, at, data, other, with};
use super::{end, packet, router, segment};
use crate::{Flags, Outcome, Tcp, Verdict};

/// A round trip of 50 ms was measured, and number 1 has just left the MAC.
fn timed() -> Middle {
    let mut it = Middle::new(Config::default());
    it.pass([0]);
    it.wait(50);
    assert!(it.forward(ack(1)));
    it.pass([1]);
    it
}

/// The sender knows of no loss sooner than after a round trip.
#[test]
fn a_copy_that_comes_a_round_trip_after_the_first_is_its_senders() {
    for (nanos, goes_on) in [(49_999_999, false), (50_000_000, true)] {
        let mut it = timed();
        it.now = it.now + Duration::from_nanos(nanos);
        assert_eq!(it.forward(data(1)), goes_on, "{nanos}");
        assert_eq!(it.engine.counters().data_absorbed, u64::from(!goes_on));
    }
}

#[test]
fn a_copy_that_says_something_new_goes_on() {
    let changes: [fn(&mut Tcp); 3] =
        [|tcp| tcp.ack += 1, |tcp| tcp.window += 1, |tcp| tcp.flags = Flags::ACK | Flags::PSH];
    for change in changes {
        let mut it = timed();
        assert!(it.forward(with(data(1), change)));
    }
}

#[test]
fn copies_of_what_was_sent_again_four_times_go_on() {
    let mut it = timed();
    for resends in 1..=4 {
        assert!(!it.forward(data(1)));
        it.verdict(data(1), 3, Outcome::GivenUp);
        assert_eq!(it.took(), [(data(1), 3)], "{resends}");
        it.verdict(data(1), 3, Outcome::Acked);
    }
    assert!(it.forward(data(1)));
    assert_eq!(it.engine.counters().data_absorbed, 4);
}

/// Without listening to neighbours, a router knows only the packets that the MAC still has, and only if it keeps account of them.
#[test]
fn without_overhearing_a_copy_is_absorbed_while_the_mac_has_one() {
    for mac_trigger in [true, false] {
        let config = Config { overheard_loss: false, mac_trigger, ..Config::default() };
        let mut it = Middle::new(config);
        assert!(it.forward(data(0)));
        assert_eq!(it.forward(data(0)), !mac_trigger);
        it.verdict(data(0), 3, Outcome::Acked);
        it.verdict(data(0), 3, Outcome::Acked);
        assert!(it.forward(data(0)));
    }
}

/// The receiver has numbers 0 and 1, and has said so.
fn acknowledged(config: Config) -> Middle {
    let mut it = Middle::new(config);
    // Its own data, so that acknowledgements of the sender are known.
    assert!(it.forward(packet(end(9), end(0), segment(76, 1, ISS))));
    it.pass(0..3);
    assert!(it.forward(ack(2)));
    it.verdict(ack(2), 1, Outcome::Acked);
    it.took();
    it
}

/// Half of the shortest timeout that senders have, which is Linux' 0.2 s.
#[test]
fn an_answer_leaves_once_the_last_is_a_tenth_of_a_second_old() {
    let mut it = acknowledged(Config::default());
    it.wait(99);
    assert!(!it.forward(data(1)));
    assert_eq!(it.took(), []);
    it.wait(1);
    assert!(!it.forward(data(1)));
    assert_eq!(it.took(), [(ack(2), 1)]);
    it.wait(500);
    assert!(!it.forward(data(1)));
    assert_eq!(it.took(), [], "the MAC still has the answer");
    let counters = it.engine.counters();
    assert_eq!((counters.data_answered, counters.acks_answered), (3, 1));
}

/// The paper answers each (algorithm 1, line 9).
#[test]
fn without_overhearing_each_copy_is_answered_once_the_last_answer_left() {
    let mut it =
        acknowledged(Config { overheard_loss: false, timer: Timer::Off, ..Config::default() });
    for _ in 0..2 {
        assert!(!it.forward(data(1)));
        assert_eq!(it.took(), [(ack(2), 1)]);
        it.verdict(ack(2), 1, Outcome::Acked);
    }
}

#[test]
fn data_with_other_control_bits_or_options_is_not_answered() {
    let changes: [fn(&mut Tcp); 2] =
        [|tcp| tcp.flags = Flags::ACK | Flags::URG, |tcp| tcp.has_other_options = true];
    for change in changes {
        let mut it = acknowledged(Config::default());
        it.wait(200);
        assert!(it.forward(with(data(1), change)));
    }
    let mut it = acknowledged(Config::default());
    it.wait(200);
    assert!(!it.forward(with(data(1), |tcp| tcp.flags = Flags::ACK | Flags::PSH)));
    let mut it = acknowledged(Config { suppress: false, ..Config::default() });
    it.wait(200);
    assert!(it.forward(data(1)));
}

/// Packets for the router itself are only looked at.
#[test]
fn only_strays_with_data_begin_this_routers_own_flow_anew() {
    let here = end(2);
    let mut it = Middle::new(Config::default());
    assert!(it.forward(packet(here, end(0), segment(77, 0, ISS))));
    let sent = |it: &Middle| {
        let slot = it.engine.table.find((end(0), here)).unwrap();
        it.engine.table.get(slot).sent
    };
    assert!(it.engine.incoming(it.now, &packet(end(0), here, segment(ISS, MSS, 77)).0));
    assert_eq!(sent(&it), Some(at(1)));
    let stray = |it: &mut Middle, payload| {
        let stray = packet(end(0), here, segment(ISS.wrapping_add(1 << 28), payload, 77));
        assert!(it.engine.incoming(it.now, &stray.0));
    };
    (0..20).for_each(|_| stray(&mut it, 0));
    (0..7).for_each(|_| stray(&mut it, MSS));
    assert_eq!(sent(&it), Some(at(1)));
    stray(&mut it, MSS);
    assert_eq!(sent(&it), None);
}

/// A SYN with the number of the last one is that one again (RFC 9293, section 3.4).
#[test]
fn a_repeated_syn_forgets_nothing() {
    let syn = with(data(0), |tcp| (tcp.payload, tcp.flags) = (0, Flags::SYN));
    let mut it = Middle::new(Config::default());
    assert!(it.forward(syn));
    it.verdict(syn, 3, Outcome::Acked);
    it.wait(1000);
    assert!(it.forward(syn));
    let counters = it.engine.counters();
    assert_eq!((counters.cached, counters.evicted_other), (1, 0));
    let anew = with(syn, |tcp| tcp.seq = tcp.seq.wrapping_add(77));
    assert!(it.forward(anew));
    let counters = it.engine.counters();
    assert_eq!((counters.cached, counters.evicted_other), (2, 1));
}

#[test]
fn data_that_covers_cached_packets_takes_their_place() {
    let mut it = Middle::new(Config::default());
    it.pass(0..3);
    assert!(it.forward(with(data(0), |tcp| tcp.payload = 2 * MSS)));
    let counters = it.engine.counters();
    assert_eq!((it.cached(0), counters.cached, counters.evicted_other), (vec![0, 2], 4, 2));
}

#[test]
fn what_is_forgotten_is_counted() {
    let mut it = Middle::new(Config { flows_max: 2, ..Config::default() });
    it.pass(0..2);
    assert!(it.forward(other(0)));
    assert_eq!(it.engine.flows(), 2);
    let third = packet(end(4), end(9), segment(ISS, MSS, 77));
    assert!(it.forward(third));
    let counters = it.engine.counters();
    assert_eq!((it.engine.flows(), counters.flows_evicted, counters.evicted_other), (2, 1, 2));
    assert!(it.forward(with(third, |tcp| tcp.flags = Flags::RST)));
    assert_eq!(it.engine.counters().evicted_other, 3);
    assert_eq!(it.engine.cached_bytes(), 1040);
}

/// InPCM, section 3.9: data is dropped; what acknowledges, or opens a connection, is not.
#[test]
fn link_red_drops_data_alone() {
    let link_red = Some(LinkRed { min: 0.0, max: 1.0, probability_max: 1.0 });
    let mut it = Middle::new(Config { link_red, ..Config::default() });
    for _ in 0..20 {
        let verdict = Verdict { outcome: Outcome::Acked, tries: 9 };
        it.engine.verdict(it.now, &ack(0).0, ack(0), router(1), verdict);
    }
    let syn = with(data(0), |tcp| (tcp.payload, tcp.flags) = (0, Flags::SYN));
    for packet in [data(0), with(data(1), |tcp| tcp.payload = 1), ack(0), syn] {
        assert!(it.forward(packet));
    }
    assert_eq!(it.took(), [(ack(0), 1), (syn, 3)]);
    let counters = it.engine.counters();
    assert_eq!((counters.red_dropped, counters.sent, counters.cached), (2, 2, 1));
}
