//! When what is sent again, and how often.

use std::time::Duration;

use wire::Instant;

use super::super::{Beta, Config, Timer};
use super::middle::{Middle, ack, data};
use super::router;
use crate::{Outcome, Verdict};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A round trip of this length was measured; the next packet has just left.
fn timed(timer: Timer, round_trip: u64) -> Middle {
    let mut it = Middle::new(Config { timer, ..Config::default() });
    it.pass([0]);
    it.wait(round_trip);
    assert!(it.forward(ack(1)));
    it.verdict(ack(1), 1, Outcome::Acked);
    it.pass([1]);
    it
}

/// After how long the next timer expires.
fn due(it: &Middle) -> Option<Duration> {
    it.engine.poll_timeout().map(|at: Instant| at.since(it.now))
}

/// Equation 1: the smoothed round trip and β times the deviation that the line gives, here half of the round trip, as one
/// sample leaves it (RFC 6298, section 2.2).
#[test]
fn the_timer_is_the_round_trip_and_beta_deviations() {
    let fixed = Timer::Esrto { beta: Beta::Fixed(1.5) };
    assert_eq!(due(&timed(fixed, 30)), Some(Duration::from_micros(30_000 + 22_500)));
    assert_eq!(due(&timed(Timer::TcpLike, 30)), Some(ms(30 + 4 * 15)));
    assert_eq!(due(&timed(Timer::Off, 30)), None);
}

/// The same in milliseconds.
fn milliseconds(it: &Middle) -> f64 {
    due(it).unwrap().as_secs_f64() * 1e3
}

#[test]
fn beta_makes_the_timer_expire_after_half_of_the_senders_timeout() {
    let timer = Timer::Esrto { beta: Beta::SenderTimeout };
    // For the second β would be 18, and for the last 2/9: it is 6 at most, and a half at least.
    for (round_trip, time) in [(30, 100.0), (10, 10.0 + 6.0 * 5.0), (90, 90.0 + 0.5 * 45.0)] {
        assert!((milliseconds(&timed(timer, round_trip)) - time).abs() < 0.01, "{round_trip}");
    }
}

/// The average of repetitions moves by an eighth: 9 tries make it 1, a single one after them 7/8.
#[test]
fn beta_grows_with_the_tries_of_the_mac() {
    for (verdicts, beta) in [(0, 1.5), (1, 1.5 * (1.0 + 0.875)), (50, 6.0)] {
        let mut it = timed(Timer::Esrto { beta: Beta::Contention }, 30);
        for _ in 0..verdicts {
            let verdict = Verdict { outcome: Outcome::Acked, tries: 9 };
            it.engine.verdict(it.now, &ack(9).0, ack(9), router(1), verdict);
        }
        it.verdict(data(1), 3, Outcome::Acked);
        assert!((milliseconds(&it) - (30.0 + beta * 15.0)).abs() < 0.01, "{verdicts}");
    }
}

#[test]
fn a_verdict_that_does_not_come_in_two_seconds_has_gone_astray() {
    let mut it = Middle::new(Config { timer: Timer::TcpLike, ..Config::default() });
    assert!(it.forward(data(0)));
    it.wait(1999);
    assert_eq!(due(&it), Some(ms(1)));
    it.took();
    it.wait(1);
    assert_eq!((it.took(), due(&it)), (vec![], Some(ms(500))), "now it counts as left");
}

/// The next hop has forwarded this many packets, each 5 ms after it left.
fn heard(it: &mut Middle, numbers: std::ops::Range<u32>) {
    for number in numbers {
        it.pass([number]);
        it.wait(5);
        it.overhear(data(number), 3);
    }
}

/// A neighbour gets 20 ms, as its forwarding takes less; each time twice as long, and three times.
#[test]
fn data_that_is_not_heard_in_time_goes_again_three_times() {
    let mut it = Middle::new(Config::default());
    heard(&mut it, 0..4);
    it.pass([4]);
    for wait in [20, 40, 80] {
        it.wait(wait - 1);
        assert_eq!(it.took(), []);
        it.wait(1);
        assert_eq!(it.took(), [(data(4), 3)]);
        it.verdict(data(4), 3, Outcome::Acked);
    }
    assert_eq!(due(&it), None, "the rest is the sender's concern");
    assert_eq!(it.engine.counters().resent_unheard, 3);
}

#[test]
fn silence_tells_nothing_before_four_samples_or_of_two_packets_or_beside_the_receiver() {
    let mut it = Middle::new(Config::default());
    heard(&mut it, 0..3);
    it.pass([3]);
    assert_eq!(due(&it), None, "three samples");
    let mut it = Middle::new(Config::default());
    heard(&mut it, 0..4);
    it.pass([4, 5]);
    assert_eq!(due(&it), None, "two packets");
    it.overhear(data(4), 3);
    assert_eq!(due(&it), Some(ms(20)), "one, since the one before was heard");
    let mut it = Middle::new(Config::default());
    heard(&mut it, 0..4);
    it.hop = 9;
    it.pass([4]);
    assert_eq!(due(&it), None, "the receiver forwards nothing");
}

/// A neighbour that takes long to forward gets its own timeout: 100 ms, steadily.
#[test]
fn a_slow_neighbour_gets_more_time() {
    let mut it = Middle::new(Config::default());
    for number in 0..40 {
        it.pass([number]);
        it.wait(100);
        it.overhear(data(number), 3);
    }
    it.pass([40]);
    let after = due(&it).unwrap();
    assert!(after > ms(97) && after < ms(103), "{after:?} after it left, 2 ms later");
}

/// The acknowledgements of this many packets, each of which the next hop has forwarded after 5 ms.
fn heard_acks(it: &mut Middle, numbers: std::ops::Range<u32>) {
    for number in numbers {
        it.pass([number]);
        assert!(it.forward(ack(number + 1)));
        it.verdict(ack(number + 1), 1, Outcome::Acked);
        it.wait(5);
        it.overhear(ack(number + 1), 1);
        it.took();
    }
}

/// InPCM, section 3.8: three times. Here after 50 ms without a sound, then twice as long.
#[test]
fn an_acknowledgement_that_is_not_heard_in_time_goes_again_three_times() {
    let mut it = Middle::new(Config { notify: true, ..Config::default() });
    heard_acks(&mut it, 0..4);
    it.pass([4, 5]);
    assert!(it.forward(ack(5)));
    assert_eq!(due(&it), Some(ms(2000)), "the MAC has it");
    it.took();
    it.verdict(ack(5), 1, Outcome::Acked);
    for wait in [50, 100, 200] {
        it.wait(wait - 1);
        assert_eq!(it.took(), []);
        it.wait(1);
        assert_eq!(it.took(), [(ack(5), 1)]);
        it.verdict(ack(5), 1, Outcome::Acked);
    }
    assert_eq!((due(&it), it.engine.counters().acks_resent), (None, 3));
    assert_eq!(it.messages, [], "silence is no timer");
}

#[test]
fn an_acknowledgement_waits_for_ever_before_four_samples_and_once_it_was_heard() {
    let mut it = Middle::new(Config::default());
    heard_acks(&mut it, 0..3);
    it.pass([3, 4]);
    assert!(it.forward(ack(4)));
    it.verdict(ack(4), 1, Outcome::Acked);
    assert_eq!(due(&it), None, "three samples");
    it.wait(5);
    it.overhear(ack(4), 1);
    assert_eq!(it.flow().forwarding_acks.samples(), 4);
    assert_eq!(due(&it), None, "it was heard");
}

/// Beside the sender, only if everything sent is acknowledged and new data does not come: half a second before the first
/// sample (section 3.8).
#[test]
fn beside_the_sender_the_last_acknowledgement_goes_again_if_no_data_comes() {
    for (sent, after) in [(1, Some(ms(500))), (2, None)] {
        let mut it = Middle::new(Config { notify: true, ..Config::default() });
        it.back = 0;
        it.pass(0..sent);
        assert!(it.forward(ack(1)));
        it.verdict(ack(1), 0, Outcome::Acked);
        it.took();
        assert_eq!(due(&it), after, "{sent} sent");
        it.wait(500);
        let again = if after.is_some() { vec![(ack(1), 0)] } else { vec![] };
        assert_eq!((it.took(), it.messages.len()), (again.clone(), again.len()));
    }
}

#[test]
fn an_acknowledgements_verdict_that_does_not_come_has_gone_astray() {
    let mut it = Middle::new(Config::default());
    it.back = 0;
    it.pass(0..1);
    assert!(it.forward(ack(1)));
    it.took();
    it.wait(2000);
    assert_eq!((it.took(), due(&it)), (vec![], Some(ms(500))));
}
