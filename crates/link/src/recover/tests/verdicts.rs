//! Reports of the MAC and of neighbours on packets that have left.

use super::super::{Config, OnNotice, Timer};
use super::middle::{ISS, MSS, Middle, ack, ack_with, at, data, with};
use super::{end, router};
use crate::{Lost, Next, Notice, Outcome};

/// The MAC gets it three times more; then the timer, or other routers, must see to it.
#[test]
fn what_the_mac_gives_up_goes_to_it_again_three_times_in_a_row() {
    let mut it = Middle::new(Config::default());
    assert!(it.forward(data(0)));
    for _ in 0..3 {
        it.took();
        it.verdict(data(0), 3, Outcome::GivenUp);
        assert_eq!(it.took(), [(data(0), 3)]);
    }
    it.verdict(data(0), 3, Outcome::GivenUp);
    assert_eq!((it.took(), it.cached(0)), (vec![], vec![0]));
    assert_eq!(it.engine.counters().resent_given_up, 3);
}

#[test]
fn what_another_copy_still_waits_for_is_not_sent_again() {
    let mut it =
        Middle::new(Config { suppress: false, overheard_loss: false, ..Config::default() });
    it.pass([0]);
    assert!(it.forward(data(0)));
    it.verdict(data(0), 3, Outcome::Acked);
    let slot = it.engine.table.find((end(0), end(9))).unwrap();
    it.engine.table.flow(slot).cache.get_mut(0).unwrap().waiting = 2;
    it.took();
    it.verdict(data(0), 3, Outcome::GivenUp);
    assert_eq!(it.took(), []);
    it.verdict(data(0), 3, Outcome::GivenUp);
    assert_eq!(it.took(), [(data(0), 3)]);
}

/// Its sender must see the loss, but only once no copy is left that may arrive.
#[test]
fn a_packet_that_found_the_queue_full_is_given_up_with_its_last_copy() {
    for overheard_loss in [false, true] {
        let mut it =
            Middle::new(Config { overheard_loss, mac_trigger: false, ..Config::default() });
        it.engine.outgoing(it.now, &data(0).0, data(0), Next { hop: router(3), other: None });
        it.engine.outgoing(it.now, &data(0).0, data(0), Next { hop: router(3), other: None });
        it.verdict(data(0), 3, Outcome::QueueFull);
        let is_heard = |it: &Middle| it.flow().cache.get(0).map(|entry| entry.is_heard);
        assert_eq!(is_heard(&it), Some(false));
        it.verdict(data(0), 3, Outcome::QueueFull);
        // Who overhears keeps it, to absorb what the router before this one may repeat.
        assert_eq!(is_heard(&it), overheard_loss.then_some(true));
        assert_eq!(it.engine.counters().evicted_other, u64::from(!overheard_loss));
    }
}

/// Eight times by whatever cause; then its sender must see to it.
#[test]
fn what_was_sent_again_eight_times_leaves_the_cache() {
    let mut it = Middle::new(Config::default());
    it.pass(0..2);
    for round in 1..=8 {
        // Each success begins the row of failures anew.
        it.verdict(data(0), 3, Outcome::GivenUp);
        assert_eq!(it.took(), [(data(0), 3)], "{round}");
        it.verdict(data(0), 3, Outcome::Acked);
    }
    it.verdict(data(0), 3, Outcome::GivenUp);
    let counters = it.engine.counters();
    assert_eq!((it.took(), it.cached(0), counters.evicted_hopeless), (vec![], vec![1], 1));
    assert_eq!(counters.data_resent(), 8);
}

/// Six packets in a row were given up: the neighbour is gone, and nothing more goes to it.
#[test]
fn data_goes_to_another_neighbour_if_the_next_is_gone() {
    for (other, again) in [(None, false), (Some(4), true)] {
        let mut it = Middle::new(Config::default());
        it.other = other;
        (0..7).for_each(|n| assert!(it.forward(data(n))));
        it.took();
        (0..5).for_each(|n| it.verdict(data(n), 3, Outcome::GivenUp));
        assert_eq!(it.took().len(), 5, "it may still be there");
        it.verdict(data(5), 3, Outcome::GivenUp);
        let expected = if again { vec![(data(5), 4)] } else { vec![] };
        assert_eq!(it.took(), expected);
    }
}

#[test]
fn an_acknowledgement_goes_another_way_if_the_mac_gives_it_up() {
    let mut it = Middle::new(Config { notify: true, ..Config::default() });
    it.pass(0..2);
    it.other = Some(4);
    assert!(it.forward(ack(1)));
    it.took();
    for hop in [4, 1, 4] {
        it.verdict(ack(1), 1, Outcome::GivenUp);
        assert_eq!(it.took(), [(ack(1), hop)]);
        assert_eq!(it.flow().ack.as_ref().unwrap().waiting, 1);
    }
    it.verdict(ack(1), 4, Outcome::GivenUp);
    assert_eq!((it.took(), it.engine.counters().acks_resent), (vec![], 3));
    assert_eq!(it.messages, [], "the MAC is no timer");
}

#[test]
fn an_acknowledgement_does_not_go_again_to_neighbours_that_are_gone() {
    for (other, mac_trigger, again) in
        [(None, true, false), (Some(4), true, true), (Some(4), false, false)]
    {
        let mut it = Middle::new(Config { mac_trigger, ..Config::default() });
        it.other = other;
        it.pass(0..2);
        assert!(it.forward(ack(1)));
        // Other packets to it were given up.
        (0..5).for_each(|_| it.verdict(ack(7), 1, Outcome::GivenUp));
        it.took();
        it.verdict(ack(1), 1, Outcome::GivenUp);
        assert_eq!(it.took().len(), usize::from(again), "{other:?} {mac_trigger}");
    }
    let mut it = Middle::new(Config::default());
    it.pass(0..2);
    assert!(it.forward(ack(1)));
    it.took();
    it.verdict(ack(1), 1, Outcome::QueueFull);
    assert_eq!(it.took(), [], "the queue is full");
}

/// InPCM, section 3.7: its timer is halted.
#[test]
fn a_notice_is_of_one_packet_or_acknowledgement() {
    let data_lost = |n| Notice { from: end(0), to: end(9), lost: Lost::Data(at(n)) };
    let ack_lost = |n| Notice { from: end(9), to: end(0), lost: Lost::Ack(at(n)) };
    let mut it = Middle::new(Config { link_red: None, ..Config::inpcm() });
    it.pass(0..4);
    assert!(it.forward(ack(2)));
    it.engine.notice(it.now, &data_lost(3));
    assert_eq!(it.cached(0), [3]);
    it.engine.notice(it.now, &data_lost(3));
    it.engine.notice(it.now, &ack_lost(1));
    assert!(it.flow().ack.is_some(), "an older one was lost");
    it.engine.notice(it.now, &ack_lost(2));
    assert!(it.flow().ack.is_none());
    let counters = it.engine.counters();
    assert_eq!((counters.notices_obeyed, counters.evicted_other), (2, 1));
}

#[test]
fn a_notice_doubles_the_timer_of_what_left_and_is_awaited_once() {
    let on_notice = OnNotice::Double;
    let config = Config { timer: Timer::TcpLike, on_notice, ..Config::inpcm() };
    let lost = |n| Notice { from: end(0), to: end(9), lost: Lost::Data(at(n)) };
    let mut it = Middle::new(Config { link_red: None, ..config });
    it.pass(0..2);
    it.engine.notice(it.now, &lost(2));
    assert_eq!(it.flow().backoff, 0, "number 1 is not awaited");
    it.engine.notice(it.now, &lost(1));
    it.engine.notice(it.now, &lost(1));
    assert_eq!((it.flow().backoff, it.engine.counters().notices_obeyed), (1, 1));
    assert!(it.forward(ack(1)));
    let ack_lost = Notice { from: end(9), to: end(0), lost: Lost::Ack(at(1)) };
    let backoff = |it: &Middle| it.flow().ack.as_ref().unwrap().backoff;
    it.engine.notice(it.now, &ack_lost);
    assert_eq!(backoff(&it), 0, "the MAC has it");
    it.verdict(ack(1), 1, Outcome::Acked);
    it.wait(5);
    (0..2).for_each(|_| it.engine.notice(it.now, &ack_lost));
    assert_eq!((backoff(&it), it.engine.counters().notices_obeyed), (1, 2));
    assert_eq!(it.flow().ack.as_ref().unwrap().at, it.now);
}

/// Notices go to where the packet came from, but not if that is here.
#[test]
fn the_sender_itself_needs_no_notice() {
    let config = Config { link_red: None, timer: Timer::TcpLike, ..Config::inpcm() };
    let mut it = Middle::new(config);
    let own = super::packet(end(2), end(9), super::segment(ISS, MSS, 77));
    assert!(it.forward(own));
    it.verdict(own, 3, Outcome::Acked);
    it.wait(500);
    let counters = it.engine.counters();
    assert_eq!((counters.resent_timer, counters.notices_sent, it.messages.len()), (1, 0, 0));
    let mut it = Middle::new(Config { notify: false, ..config });
    it.pass([0]);
    it.wait(500);
    assert_eq!((it.engine.counters().resent_timer, it.messages.len()), (1, 0));
    let mut it = Middle::new(config);
    it.pass([0]);
    it.wait(500);
    assert_eq!((it.engine.counters().notices_sent, it.messages.len()), (1, 1));
}

/// The time from a packet's leaving, or from the one before it, to the neighbour's forwarding it.
#[test]
fn forwarding_is_timed_from_the_packet_or_the_one_before_it() {
    let mut it = Middle::new(Config::default());
    it.pass(0..2);
    it.wait(8);
    it.overhear(data(0), 3);
    it.wait(30);
    it.overhear(data(1), 3);
    let forwarding = it.flow().forwarding;
    let smoothed = forwarding.smoothed().unwrap().as_secs_f64() * 1e3;
    // 10 ms, and 30 ms from then on: the average moves by an eighth.
    assert!(forwarding.samples() == 2 && (smoothed - (10.0 + 20.0 / 8.0)).abs() < 1e-6);
}

#[test]
fn what_passed_twice_or_has_not_left_is_not_timed() {
    let mut it = Middle::new(Config::default());
    it.pass([0, 0]);
    it.wait(8);
    it.overhear(data(0), 3);
    assert!(it.forward(data(1)));
    it.overhear(data(1), 3);
    assert_eq!(it.flow().forwarding.samples(), 0);
    assert!(it.flow().cache.iter().all(|entry| entry.is_heard));
    it.overhear(with(data(1), |tcp| tcp.payload = 1), 3);
    it.overhear(data(2), 3);
    assert_eq!(it.flow().forwarding.samples(), 0, "neither is known");
}

/// Not what left after the one that was heard, is in the MAC's queue, went elsewhere, or was sent again three times.
#[test]
fn only_what_left_before_to_the_same_neighbour_was_passed_over() {
    let mut it = Middle::new(Config::default());
    it.pass([0, 1]);
    it.hop = 4;
    it.pass([2]);
    it.hop = 3;
    it.pass([4, 5]);
    assert!(it.forward(data(3)));
    it.took();
    it.overhear(data(4), 3);
    assert_eq!(it.took(), [(data(0), 3), (data(1), 3)]);
    for resends in 2..=4 {
        it.verdict(data(0), 3, Outcome::Acked);
        let number = 10 + resends;
        it.pass([number]);
        it.overhear(data(number), 3);
        let again = it.took().contains(&(data(0), 3));
        assert_eq!(again, resends <= 3, "{resends}");
    }
}

#[test]
fn a_packet_without_a_verdict_or_of_which_there_are_copies_passes_over_none() {
    let mut it = Middle::new(Config::default());
    it.pass([0, 1, 1]);
    it.overhear(data(1), 3);
    assert_eq!(it.took(), [], "it may be the first copy, or the second");
    let mut it = Middle::new(Config::default());
    for number in [1, 0] {
        assert!(it.forward(data(number)));
        it.wait(2000);
    }
    it.took();
    it.overhear(data(1), 3);
    assert_eq!(it.took(), [], "the MAC has said of neither when it left");
    let mut it = Middle::new(Config { link_red: None, ..Config::inpcm() });
    it.pass(0..2);
    it.overhear(data(1), 3);
    assert_eq!(it.took(), [], "order is not looked at");
}

/// Half of the share is what is not known; each judgement moves it by a sixteenth.
#[test]
fn a_neighbour_is_judged_by_what_it_forwards_once_it_has_the_copy() {
    let suspected = |it: &mut Middle| {
        it.pass([0, 1]);
        it.overhear(data(1), 3);
        assert_eq!(it.took(), [(data(0), 3)]);
    };
    let wrong = |it: &Middle| {
        let mut neighbours = it.engine.neighbours.clone();
        (0..20)
            .take_while(|_| {
                neighbours.judge(router(3), 0, false);
                neighbours.suspects(router(3), 0)
            })
            .count()
    };
    let mut it = Middle::new(Config::default());
    assert_eq!(wrong(&it), 7);
    suspected(&mut it);
    assert_eq!(wrong(&it), 7, "not judged yet");
    it.overhear(data(0), 3);
    assert_eq!(wrong(&it), 6, "it had the first copy: the new one has not left");
    let mut it = Middle::new(Config::default());
    suspected(&mut it);
    it.verdict(data(0), 3, Outcome::Acked);
    it.overhear(data(0), 3);
    assert!(wrong(&it) > 7, "it forwards the new copy");
    it.overhear(data(0), 3);
    let right = wrong(&it);
    let mut it = Middle::new(Config::default());
    suspected(&mut it);
    it.verdict(data(0), 3, Outcome::Acked);
    assert!(it.forward(ack(2)));
    assert_eq!(wrong(&it), 6, "it was acknowledged, and not heard");
    assert!(right > 7, "the same copy is judged once");
}

/// The last acknowledgement is heard if the neighbour it went to forwards it, or a later one.
#[test]
fn an_acknowledgement_is_heard_from_its_neighbour() {
    let is_heard = |heard, from| {
        let mut it = Middle::new(Config::default());
        it.pass(0..3);
        assert!(it.forward(ack(2)));
        it.verdict(ack(2), 1, Outcome::Acked);
        it.wait(7);
        it.overhear(heard, from);
        (it.flow().ack.as_ref().unwrap().is_heard, it.flow().forwarding_acks.samples())
    };
    assert_eq!(is_heard(ack(2), 1), (true, 1));
    assert_eq!(is_heard(ack(3), 1), (true, 0), "it says nothing of this one's time");
    assert_eq!(is_heard(ack(1), 1), (false, 0));
    assert_eq!(is_heard(ack(2), 3), (false, 0));
    assert_eq!(is_heard(ack_with(2, &[(2, 3)]), 1), (true, 1));
    let mut it = Middle::new(Config::default());
    it.pass(0..3);
    assert!(it.forward(ack(2)));
    it.overhear(ack(2), 1);
    assert_eq!(it.flow().forwarding_acks.samples(), 0, "it has not left");
    it.verdict(ack(2), 1, Outcome::Acked);
    it.wait(9);
    it.overhear(ack(2), 1);
    assert_eq!(it.flow().forwarding_acks.samples(), 0, "it was heard before");
}
