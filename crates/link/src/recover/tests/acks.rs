//! Acknowledgements: what they measure, which of them are dropped, and what they name as lost.

use std::time::Duration;

use super::super::{Config, Timer};
use super::middle::{ISS, Middle, ack, ack_with, at, data, with};
use super::{Plain, end, packet, segment};
use crate::{Flags, Header, Lost, Notice, Outcome};

/// RFC 6298, section 3 (Karn): of two copies it is not known which one was acknowledged. What came after it had to wait
/// for it.
#[test]
fn only_what_passed_once_measures_a_round_trip() {
    type Act = fn(&mut Middle);
    let acts: [(Act, u32); 5] = [
        (|it| it.pass([0, 1]), 1),
        // Its sender, or a router before this one, sends it again.
        (|it| it.pass([0, 1, 1]), 0),
        (|it| it.pass([0, 0, 1]), 0),
        // So does this router.
        (
            |it| {
                it.pass([0, 1]);
                it.verdict(data(1), 3, Outcome::GivenUp);
                it.verdict(data(1), 3, Outcome::Acked);
            },
            0,
        ),
        (
            |it| {
                it.pass([0]);
                assert!(it.forward(data(1)), "the MAC still has it");
            },
            0,
        ),
    ];
    for (number, (act, samples)) in acts.into_iter().enumerate() {
        let mut it = Middle::new(Config::default());
        act(&mut it);
        it.wait(30);
        assert!(it.forward(ack(2)));
        assert_eq!(it.flow().rtt.samples(), samples, "act {number}");
    }
}

/// The mean deviation of one sample is its half (RFC 6298, section 2.2); the receiver is as many hops away as its
/// acknowledgement's time to live tells.
#[test]
fn deviations_are_shown_by_hops() {
    let mut it = Middle::new(Config::default());
    it.pass([0]);
    it.wait(30);
    assert!(it.forward(ack(1)));
    let shown: Vec<_> = it.engine.deviations().collect();
    assert!(matches!(shown[..], [(5, seconds)] if (seconds - 0.015).abs() < 1e-9), "{shown:?}");
}

/// Algorithm 2, line 11: what is older than the last acknowledgement is dropped; not if it says something else.
#[test]
fn an_old_acknowledgement_that_says_more_goes_on() {
    let mut it = Middle::new(Config::default());
    it.pass(0..3);
    assert!(it.forward(ack(2)));
    assert!(!it.forward(ack(1)));
    assert!(it.forward(ack_with(1, &[(2, 3)])));
    assert!(it.forward(with(ack(1), |tcp| tcp.payload = 1)));
    let mut it = Middle::new(Config::default());
    it.pass(1..3);
    assert!(it.forward(ack(0)), "what the receiver has is not known yet");
    let mut it = Middle::new(Config { suppress: false, ..Config::default() });
    it.pass(0..3);
    assert!(it.forward(ack(2)) && it.forward(ack(1)));
}

/// RFC 2018, section 3: blocks lie above the acknowledgement and below what was sent.
#[test]
fn blocks_of_what_is_not_missing_or_not_sent_name_nothing() {
    for block in [(3, 3), (4, 3), (0, 1), (0, 3), (4, 7)] {
        let mut it = Middle::new(Config::default());
        it.pass(0..6);
        assert!(it.forward(ack(1)));
        it.forward(ack_with(1, &[block]));
        assert_eq!((it.cached(0), it.flow().sacked), (vec![1, 2, 3, 4, 5], None), "{block:?}");
    }
    let mut it = Middle::new(Config::default());
    it.pass(0..6);
    assert!(it.forward(ack_with(1, &[(3, 4), (5, 6)])));
    assert_eq!(it.cached(0), [1, 2, 4]);
    assert_eq!(it.engine.counters().evicted_acked, 3);
    let (end, rank) = it.flow().sacked.unwrap();
    assert!(end == at(6) && rank == it.flow().order, "number 5 left last");
    assert!(it.forward(ack_with(1, &[(3, 4)])));
    assert_eq!(it.flow().sacked, Some((end, rank)), "the highest stays");
    assert!(it.forward(ack(5)));
    assert_eq!(it.flow().sacked, Some((end, rank)), "it is not acknowledged yet");
    assert!(it.forward(ack(6)));
    assert_eq!(it.flow().sacked, None);
}

/// Algorithm 2, lines 17 to 20: three repetitions, and then three again. Those that the first copies caused say nothing
/// of a later copy, which ours waits for.
#[test]
fn a_copy_is_sent_again_after_three_more_repetitions_or_once_it_is_overdue() {
    let paper = Config { link_red: None, ..Config::inpcm() };
    for (config, at_once) in [(Config::default(), false), (paper, true)] {
        let mut it = Middle::new(config);
        it.pass(0..6);
        assert!(it.forward(ack(1)));
        (0..3).for_each(|_| _ = it.forward(ack(1)));
        it.verdict(data(1), 3, Outcome::Acked);
        it.took();
        (0..2).for_each(|_| _ = it.forward(ack(1)));
        assert!(!it.took().contains(&(data(1), 3)));
        it.forward(ack(1));
        assert_eq!(it.took().contains(&(data(1), 3)), at_once);
        if !at_once {
            it.now = it.now + (it.flow().rtt.timeout() - Duration::from_nanos(1));
            it.forward(ack(1));
            assert!(!it.took().contains(&(data(1), 3)));
            it.now = it.now + Duration::from_nanos(1);
            it.forward(ack(1));
            assert!(it.took().contains(&(data(1), 3)));
        }
    }
}

/// The paper drops them, as its timer sends the data again (section 3.3). Who has no such timer, or another signal, lets
/// the sender know.
#[test]
fn repetitions_are_dropped_where_a_timer_alone_sees_to_the_loss() {
    for (timer, overheard_loss, goes_on) in [
        (Timer::TcpLike, false, false),
        (Timer::Off, false, true),
        (Timer::TcpLike, true, true),
        (Timer::Off, true, true),
    ] {
        let mut it = Middle::new(Config { timer, overheard_loss, ..Config::default() });
        it.pass(0..3);
        assert!(it.forward(ack(1)));
        assert_eq!(it.forward(ack(1)), goes_on, "{timer:?} {overheard_loss}");
    }
}

/// Elsewhere a router nearer to the receiver knows first.
#[test]
fn only_beside_the_receiver_does_a_new_acknowledgement_name_a_loss() {
    for (hop, names) in [(3, false), (9, true)] {
        let mut it = Middle::new(Config::default());
        it.hop = hop;
        it.pass(0..6);
        it.wait(1000);
        assert!(it.forward(ack(1)));
        assert_eq!(it.took().contains(&(data(1), hop)), names, "overdue");
        let mut it = Middle::new(Config::default());
        it.hop = hop;
        it.pass(0..6);
        assert!(it.forward(ack_with(1, &[(3, 4)])));
        let again: Vec<_> = it.took().into_iter().filter(|it| it.1 == hop).collect();
        assert_eq!(again, if names { vec![(data(1), 9), (data(2), 9)] } else { vec![] }, "passed");
    }
}

/// Number 3 left before those that were acknowledged; the rest left after them, a moment ago.
#[test]
fn beside_the_receiver_what_left_before_acknowledged_data_is_lost() {
    let mut it = Middle::new(Config::default());
    it.hop = 9;
    it.pass([3, 0, 1, 2, 4]);
    assert!(it.forward(ack(2)));
    assert_eq!(it.took(), [(ack(2), 1)], "number 2 left after number 1");
    assert!(it.forward(ack(3)));
    assert_eq!(it.took(), [(data(3), 9), (ack(3), 1)]);
}

#[test]
fn the_hole_is_the_packet_that_the_receiver_waits_for() {
    let mut it = Middle::new(Config::default());
    it.pass([0, 2]);
    assert_eq!(it.flow().hole(), Some(0), "what it has is not known: the first");
    assert!(it.forward(ack(1)));
    assert_eq!((it.cached(0), it.flow().hole()), (vec![2], None), "number 1 is not here");
    it.pass([1]);
    assert_eq!((it.cached(0), it.flow().hole()), (vec![1, 2], Some(0)));
    assert!(it.forward(ack(3)));
    assert_eq!(it.flow().hole(), None);
    let mut it = Middle::new(Config::default());
    it.pass([0]);
    it.engine.notice(it.now, &Notice { from: end(0), to: end(9), lost: Lost::Data(at(1)) });
    assert_eq!(it.flow().hole(), None, "nothing is cached");
}

/// The MAC has said of none of them when it left.
#[test]
fn beside_the_receiver_a_packet_without_a_verdict_is_not_passed_over() {
    for comes in [ack(1), ack_with(1, &[(3, 4)])] {
        let mut it = Middle::new(Config::default());
        it.hop = 9;
        assert!(it.forward(data(1)) && it.forward(data(3)));
        it.took();
        it.wait(2000);
        assert!(it.forward(comes));
        assert_eq!(it.took(), [(comes, 1)]);
    }
}

/// The last acknowledgement that left.
fn last(it: &Middle) -> Option<u32> {
    it.flow().ack.as_ref().map(|it| it.number)
}

/// No acknowledgement without data is longer than two headers with all their options, 60 bytes each.
#[test]
fn only_plain_acknowledgements_are_kept() {
    let long = |bytes| Plain(Header { bytes, ..ack(1).0 });
    let fin = with(ack(1), |tcp| tcp.flags = Flags::ACK | Flags::FIN);
    for (it, is_kept) in [
        (ack(1), true),
        (long(120), true),
        (long(121), false),
        (long(2000), false),
        (with(ack(1), |tcp| tcp.payload = 1), false),
        (fin, false),
    ] {
        let mut middle = Middle::new(Config::default());
        middle.pass(0..2);
        assert!(middle.forward(it));
        assert_eq!(last(&middle), is_kept.then_some(at(1)), "{it:?}");
    }
    let mut it = Middle::new(Config::default());
    it.pass(0..2);
    assert!(it.forward(packet(end(9), end(0), segment(77, 100, ISS))));
    assert!(it.forward(with(ack(1), |tcp| tcp.seq = 176)));
    assert_eq!(last(&it), None, "it asks whether the other end is there");
}

#[test]
fn the_highest_acknowledgement_that_is_possible_is_kept() {
    let mut it = Middle::new(Config { suppress: false, ..Config::default() });
    it.forward(ack(50));
    it.pass(0..3);
    assert_eq!(last(&it), Some(at(50)), "when it left nothing was known to be sent");
    assert!(it.forward(ack(1)));
    assert_eq!(last(&it), Some(at(1)));
    assert!(it.forward(ack(3)) && it.forward(ack(2)) && it.forward(ack(4)));
    assert_eq!(last(&it), Some(at(3)), "one is old, and the other of the future");
}

#[test]
fn copies_of_an_acknowledgement_wait_for_the_mac_together() {
    let mut it = Middle::new(Config { suppress: false, ..Config::default() });
    it.pass(0..3);
    let waiting = |it: &Middle| it.flow().ack.as_ref().unwrap().waiting;
    assert!(it.forward(ack(1)) && it.forward(ack(1)));
    assert_eq!(waiting(&it), 2);
    it.verdict(ack(1), 1, Outcome::Acked);
    assert_eq!(waiting(&it), 1);
    assert!(it.forward(ack(2)));
    assert_eq!(waiting(&it), 1, "it is another one");
    it.verdict(ack(1), 1, Outcome::Acked);
    assert_eq!(waiting(&it), 1, "so is this one");
}

/// A sender whose packets are all acknowledged sends the next one because of the acknowledgement (section 3.8).
#[test]
fn new_data_shows_that_the_acknowledgement_before_it_arrived() {
    type Act = fn(&mut Middle);
    let left: Act = |it| it.verdict(ack(1), 1, Outcome::Acked);
    // Data sent, whether the acknowledgement leaves the MAC, what comes then; whether it arrived, and was timed.
    let cases: [(u32, Act, u32, bool, u32); 6] = [
        (1, left, 1, true, 1),
        (1, left, 0, false, 0),
        (1, |_| (), 1, true, 0),
        (2, left, 2, true, 0),
        (2, left, 1, false, 0),
        (
            1,
            |it| {
                it.verdict(ack(1), 1, Outcome::GivenUp);
                it.verdict(ack(1), 1, Outcome::Acked);
            },
            1,
            true,
            0,
        ),
    ];
    for (number, (sent, act, comes, arrived, timed)) in cases.into_iter().enumerate() {
        let mut it = Middle::new(Config::default());
        it.pass(0..sent);
        assert!(it.forward(ack(1)));
        act(&mut it);
        it.wait(150);
        it.forward(data(comes));
        assert_eq!(it.flow().ack.as_ref().unwrap().is_heard, arrived, "case {number}");
        assert_eq!(it.flow().idle.samples(), timed, "case {number}");
    }
}
