//! How long a connection is in slow start and in congestion avoidance, and what is acknowledged.

use super::*;
use crate::net::tcp::{PhaseTimes, State};

/// The times until now: in slow start, in congestion avoidance, ms.
fn times(pair: &Pair) -> (u64, u64) {
    let PhaseTimes { slow_start, congestion_avoidance } = pair.client.phase_times(pair.now);
    (ms(slow_start), ms(congestion_avoidance))
}

#[test]
fn a_connection_is_in_slow_start_from_its_opening_to_its_first_recovery() {
    let mut pair = Pair::new(round());
    pair.run_for(90 * MS);
    assert_eq!(times(&pair), (0, 0));
    pair.run_for(50 * MS);
    assert_eq!(times(&pair), (40, 0));
    let (mut pair, _) = twenty_of_which_are_lost(round(), &[0]);
    pair.write(CLIENT, data(50_000));
    pair.run_for(99 * MS);
    // It was opened 100 ms before.
    assert_eq!(times(&pair), (199, 0));
    pair.run_for(51 * MS);
    assert!(pair.client.congestion_window() > pair.client.slow_start_threshold());
    assert_eq!(times(&pair), (200, 50), "fast recovery counts as congestion avoidance");
    pair.run_for(1000 * MS);
    assert_eq!(times(&pair), (200, 1050));
    assert_eq!(pair.client.counters().acknowledged, 50_000);
}

#[test]
fn a_timeout_begins_slow_start_until_the_threshold() {
    let (mut pair, _) = twenty_of_which_are_lost(round(), &[9]);
    pair.write(CLIENT, data(10_000));
    pair.run_for(550 * MS);
    // The timer has expired at 500 ms. The threshold is two segments, which one acknowledgement reaches.
    assert_eq!((pair.client.slow_start_threshold(), pair.client.counters().timeouts), (2000, 1));
    assert_eq!((times(&pair), pair.client.counters().acknowledged), ((650, 0), 9000));
    pair.run_for(100 * MS);
    assert_eq!((times(&pair), pair.client.counters().acknowledged), ((700, 50), 10_000));
}

#[test]
fn the_clock_stops_at_the_end() {
    let mut pair = Pair::opened(round());
    pair.run_for(300 * MS);
    pair.then(CLIENT, Connection::abort);
    assert_eq!(times(&pair), (400, 0));
    pair.run_for(300 * MS);
    assert_eq!(times(&pair), (400, 0));
    let mut pair = Pair::opened(round());
    pair.then(CLIENT, Connection::close);
    pair.run_for(60 * MS);
    pair.then(SERVER, Connection::close);
    pair.run_for(50 * MS);
    // Opened 100 ms before its close, it ends when the peer's FIN arrives.
    assert_eq!((pair.client.state(), times(&pair)), (State::TimeWait, (210, 0)));
    pair.run_for(2000 * MS);
    assert_eq!((pair.client.state(), times(&pair)), (State::Closed, (210, 0)));
}
