//! How a connection recovers from losses (RFC 5681, 6298, 6582, 3042).

use super::{CLIENT, Config, Instant, MS, Pair, SERVER, data, numbers, round};
use crate::net::tcp::{End, Recovery, State};

fn twenty_of_which_are_lost(lost: &[u32]) -> (Pair, Instant) {
    super::twenty_of_which_are_lost(round(), lost)
}

#[test]
fn the_third_duplicate_brings_a_retransmission_and_the_first_two_new_data() {
    let (mut pair, start) = twenty_of_which_are_lost(&[0]);
    pair.write(CLIENT, data(100_000));
    assert_eq!(numbers(&pair, start, 0), (0..20).collect::<Vec<_>>());
    pair.run_for(100 * MS);
    // 19 duplicates arrive at once. Each of the first two lets one new segment out, the third the lost one.
    // The window is then 10 + 3 segments, and each of the other 16 duplicates adds one: 29, and 22 of those
    // are already sent.
    let expected: Vec<_> = [20, 21, 0].into_iter().chain(22..29).collect();
    assert_eq!(numbers(&pair, start, 100), expected);
    assert_eq!(pair.client.slow_start_threshold(), 10_000);
    pair.run_for(99 * MS);
    let counters = pair.client.counters();
    assert_eq!((counters.recoveries, counters.retransmitted, counters.timeouts), (1, 1, 0));
    pair.run_for(MS);
    // All 22 are acknowledged, and the window is halved. The next seven are acknowledged too, and each adds a
    // tenth of a segment.
    assert!((10_000..=10_700).contains(&pair.client.congestion_window()));
    pair.run_for(3000 * MS);
    assert!(pair.got[SERVER] == data(100_000));
    assert_eq!(pair.client.counters().retransmitted, 1);
}

#[test]
fn each_partial_acknowledgement_repairs_one_loss_at_once_and_the_window_is_halved_once() {
    let (mut pair, start) = twenty_of_which_are_lost(&[0, 3, 7]);
    pair.write(CLIENT, data(100_000));
    pair.run_for(100 * MS);
    assert!(numbers(&pair, start, 100).contains(&0));
    pair.run_for(100 * MS);
    assert!(numbers(&pair, start, 200).contains(&3));
    pair.run_for(100 * MS);
    assert!(numbers(&pair, start, 300).contains(&7));
    assert_eq!(pair.client.slow_start_threshold(), 10_000);
    pair.run_for(5000 * MS);
    let counters = pair.client.counters();
    assert_eq!((counters.recoveries, counters.retransmitted, counters.timeouts), (1, 3, 0));
    assert!(pair.got[SERVER] == data(100_000));
}

#[test]
fn when_many_are_lost_the_timer_ends_a_slow_recovery() {
    // One gap is repaired every 100 ms. Only the first partial acknowledgement restarts the timer, so it
    // expires at 200 + 400 ms.
    let (mut pair, _) = twenty_of_which_are_lost(&[0, 2, 4, 6, 8, 10]);
    pair.write(CLIENT, data(100_000));
    pair.run_for(599 * MS);
    assert_eq!(pair.client.counters().timeouts, 0);
    pair.run_for(MS);
    assert_eq!(pair.client.counters().timeouts, 1);
    pair.run_for(10_000 * MS);
    assert!(pair.got[SERVER] == data(100_000));
}

#[test]
fn the_last_segment_lost_is_sent_again_by_the_timer() {
    let (mut pair, start) = twenty_of_which_are_lost(&[9]);
    pair.write(CLIENT, data(10_000));
    pair.run_for(100 * MS);
    assert_eq!(pair.client.flight(), 1000);
    // The last acknowledgement restarted the timer, at 100 ms.
    pair.run_for(399 * MS);
    assert_eq!(pair.data_sent(CLIENT, start).len(), 10);
    pair.run_for(MS);
    assert_eq!(numbers(&pair, start, 500), [9]);
    assert_eq!((pair.client.congestion_window(), pair.client.slow_start_threshold()), (1000, 2000));
    assert_eq!(pair.client.rto(), 800 * MS);
    pair.run_for(1000 * MS);
    assert!(pair.got[SERVER] == data(10_000));
}

#[test]
fn the_timeout_doubles_up_to_a_minute_until_the_peer_is_believed_gone() {
    let (mut pair, start) = twenty_of_which_are_lost(&[]);
    pair.lose(|_| true);
    pair.write(CLIENT, data(1000));
    pair.run_for(1_000_000 * MS);
    let times: Vec<_> = pair.data_sent(CLIENT, start).iter().map(|it| it.0).collect();
    let gaps: Vec<_> = times.windows(2).map(|it| it[1] - it[0]).collect();
    assert_eq!(gaps, [400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000]);
    assert_eq!((pair.client.state(), pair.client.end()), (State::Closed, Some(End::TimedOut)));
    assert_eq!(pair.client.poll_timeout(), None);
}

#[test]
fn what_was_sent_twice_is_not_measured_and_the_doubled_timeout_stays() {
    let (mut pair, _) = twenty_of_which_are_lost(&[0]);
    pair.write(CLIENT, data(1000));
    pair.run_for(500 * MS);
    assert_eq!((pair.client.rto(), pair.client.flight()), (800 * MS, 0));
    pair.write(CLIENT, data(1000));
    pair.run_for(100 * MS);
    assert_eq!(pair.client.rto(), 400 * MS);
}

#[test]
fn after_a_timeout_slow_start_goes_over_all_of_it_without_a_fast_retransmission() {
    let (mut pair, _) = twenty_of_which_are_lost(&[0, 1, 2, 3, 4, 5, 6, 7]);
    pair.write(CLIENT, data(10_000));
    pair.run_for(3000 * MS);
    let counters = pair.client.counters();
    assert_eq!((counters.timeouts, counters.recoveries), (1, 0));
    assert!(pair.got[SERVER] == data(10_000));
}

#[test]
fn a_lost_retransmission_is_left_to_the_timer() {
    let (mut pair, start) = twenty_of_which_are_lost(&[0, 0]);
    pair.write(CLIENT, data(20_000));
    pair.run_for(5000 * MS);
    let again: Vec<_> =
        pair.data_sent(CLIENT, start).iter().filter(|it| it.1 == 0).map(|it| it.0).collect();
    // Sent first, by fast retransmit, and when the timer of the first copy expires: no new data was
    // acknowledged in between.
    assert_eq!(again, [0, 100, 400]);
    assert!(pair.got[SERVER] == data(20_000));
}

#[test]
fn lost_acknowledgements_hardly_matter() {
    let mut pair = Pair::opened(Config { delayed_ack: 1, ..round() });
    let mut count = 0;
    pair.lose(move |sent| {
        count += u32::from(sent.from == SERVER);
        sent.from == SERVER && count.is_multiple_of(2)
    });
    pair.write(CLIENT, data(100_000));
    pair.run_for(5000 * MS);
    assert!(pair.got[SERVER] == data(100_000));
    assert!(pair.client.counters().retransmitted <= 1);
}

#[test]
fn reno_leaves_its_recovery_at_a_partial_acknowledgement_and_waits_for_the_timer() {
    let reno = Config { recovery: Recovery::Reno, ..round() };
    let (mut pair, start) = super::twenty_of_which_are_lost(reno, &[0, 3]);
    pair.write(CLIENT, data(100_000));
    pair.run_for(100 * MS);
    // As in NewReno: two by limited transmit, the lost one, and what 16 further duplicates allow, less one
    // because only 18 arrived.
    let expected: Vec<_> = [20, 21, 0].into_iter().chain(22..28).collect();
    assert_eq!(numbers(&pair, start, 100), expected);
    pair.run_for(100 * MS);
    assert_eq!(
        (pair.client.congestion_window(), pair.client.slow_start_threshold()),
        (10_000, 10_000)
    );
    // The duplicates of 20 and 21 came before the partial acknowledgement and let one out each.
    assert_eq!(numbers(&pair, start, 200), [28, 29]);
    // 27 segments are in flight, and duplicates of the one that is missing start no second recovery. The
    // partial acknowledgement restarted the timer.
    pair.run_for(399 * MS);
    assert_eq!((pair.client.counters().recoveries, pair.client.counters().timeouts), (1, 0));
    assert_eq!(pair.data_sent(CLIENT, start).len(), 20 + expected.len() + 2);
    pair.run_for(MS);
    assert_eq!((numbers(&pair, start, 600), pair.client.counters().timeouts), (vec![3], 1));
    pair.run_for(5000 * MS);
    assert!(pair.got[SERVER] == data(100_000));
}
