//! Bounds of memory, of times, and of repetitions.

use std::time::Duration;

use super::super::{Config, Timer};
use super::middle::{ISS, MSS, Middle, ack, data, other, with};
use super::{end, packet, segment};
use crate::Outcome;

#[test]
fn the_flow_with_most_data_gives_way() {
    let config = Config { cache_bytes: 10 * 1040, ..Config::default() };
    let mut it = Middle::new(config);
    it.pass(0..20);
    assert_eq!(it.engine.cached_bytes(), 10 * 1040);
    for n in 0..5 {
        let small = packet(end(1), end(9), segment(ISS.wrapping_add(n * MSS), MSS, 77));
        assert!(it.forward(small));
        assert_eq!(it.engine.cached_bytes(), 10 * 1040);
    }
    assert_eq!(it.engine.counters().evicted_budget, 5);
    let sixth = packet(end(1), end(9), segment(ISS.wrapping_add(5 * MSS), MSS, 77));
    let cached = it.engine.counters().cached;
    assert!(it.forward(sixth));
    assert_eq!(it.engine.counters().cached, cached, "both have their share");
}

/// The losses of the oldest packets will be known first.
#[test]
fn the_newest_packet_of_the_largest_flow_leaves_the_cache_unless_one_was_heard() {
    let mut it = Middle::new(Config { cache_bytes: 5 * 1040, ..Config::default() });
    it.pass(0..5);
    assert_eq!(it.cached(0), [0, 1, 2, 3, 4], "what fits exactly has room");
    assert!(it.forward(other(0)));
    assert_eq!((it.cached(0), it.cached(1)), (vec![0, 1, 2, 3], vec![0]));
    it.overhear(data(0), 3);
    it.overhear(data(1), 3);
    assert!(it.forward(other(1)));
    assert_eq!((it.cached(0), it.cached(1)), (vec![1, 2, 3], vec![0, 1]));
    // Now both are equal once it is in, and its own flow has none to give.
    assert!(it.forward(other(2)));
    assert_eq!((it.cached(0), it.cached(1)), (vec![1, 2, 3], vec![0, 1]));
    it.pass([4]);
    assert_eq!(it.cached(0), [2, 3, 4], "the heard one makes room, also in its own flow");
    assert_eq!(it.engine.counters().evicted_budget, 3);
}

#[test]
fn a_packet_that_exceeds_the_budget_evicts_no_other() {
    let mut it = Middle::new(Config { cache_bytes: 1040, ..Config::default() });
    it.pass([0]);
    it.overhear(data(0), 3);
    assert!(it.forward(with(data(1), |tcp| tcp.payload = MSS + 1)));
    assert_eq!(it.cached(0), [0]);
}

/// Each expiry doubles the timer (RFC 6298, section 5.5), six times here; the next one ends the flow.
#[test]
fn the_timer_is_doubled_six_times_and_then_the_flow_is_over() {
    let mut it = Middle::new(Config { timer: Timer::TcpLike, ..Config::inpcm() });
    it.pass(0..3);
    // Number 0 left 4 ms before; no round trip was measured, so that the timer is half a second.
    it.wait(500 - 4);
    for doublings in 1..=6 {
        assert_eq!(it.took(), [(data(0), 3)]);
        it.verdict(data(0), 3, Outcome::Acked);
        let due = it.now + Duration::from_millis(500 << doublings);
        assert_eq!(it.engine.poll_timeout(), Some(due), "{doublings} doublings");
        it.wait((500 << doublings) - 1);
        assert_eq!(it.took(), []);
        it.wait(1);
    }
    assert_eq!(it.took(), []);
    let counters = it.engine.counters();
    assert_eq!((counters.resent_timer, counters.evicted_hopeless), (6, 3));
    assert_eq!((it.cached(0), it.engine.poll_timeout()), (vec![], None));
}

/// The next packet's timer begins when that left, and is not doubled.
#[test]
fn a_new_acknowledgement_ends_the_doublings() {
    let mut it = Middle::new(Config { timer: Timer::TcpLike, ..Config::default() });
    it.pass(0..2);
    let left = it.now;
    it.wait(498);
    assert_eq!(it.took(), [(data(0), 3)]);
    it.verdict(data(0), 3, Outcome::Acked);
    assert!(it.forward(ack(1)));
    it.verdict(ack(1), 1, Outcome::Acked);
    assert_eq!(it.engine.poll_timeout(), Some(left + Duration::from_millis(500)));
}

#[test]
fn small_segments_cost_their_entries() {
    let mut it = Middle::new(Config { cache_bytes: 100 * 512, ..Config::default() });
    for n in 0..10_000 {
        let seq = ISS.wrapping_add(2 * n);
        assert!(it.forward(packet(end(0), end(9), segment(seq, 2, 77))));
    }
    assert_eq!((it.engine.cached_bytes(), it.engine.counters().cached), (100 * 512, 100));
}
