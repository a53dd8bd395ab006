//! What the ends remember, lose, and agree on.

use crate::bytes::{edited, noise};
use crate::net::{Link, Net};
use std::time::Duration;

/// Gets the same again at another URL, and says what crossed.
fn again(net: &mut Net, number: u32, body: &[u8]) -> u64 {
    let path = format!("/again{number}");
    net.origin(&path, body.to_vec());
    let (got, crossed) = net.get_all(&path);
    assert!(got == body);
    crossed
}

#[test]
fn after_a_break_the_history_is_used_again() {
    let mut net = Net::up(Link::FAST);
    let body = noise(1, 400_000);
    assert!(again(&mut net, 0, &body) > 400_000);
    net.cut();
    net.run_for(Duration::from_secs(600));
    net.mend();
    net.until(Net::is_up);
    assert!(again(&mut net, 1, &body) < 1000);
}

#[test]
fn each_end_may_restart_with_its_history() {
    let mut net = Net::up(Link::FAST);
    let body = noise(2, 400_000);
    again(&mut net, 0, &body);
    net.restart_far(true);
    net.until(Net::is_up);
    assert!(again(&mut net, 1, &body) < 1000);
    net.restart_near(true);
    net.until(Net::is_up);
    assert!(again(&mut net, 2, &body) < 1000);
}

#[test]
fn each_end_may_lose_its_history_and_nothing_is_wrong() {
    for loses_far in [true, false] {
        let mut net = Net::up(Link::FAST);
        let body = noise(3, 400_000);
        again(&mut net, 0, &body);
        if loses_far {
            net.restart_far(false)
        } else {
            net.restart_near(false)
        }
        net.until(Net::is_up);
        assert!(again(&mut net, 1, &body) > 400_000, "it begins anew");
        assert!(again(&mut net, 2, &body) < 1000);
    }
}

#[test]
fn a_break_in_the_middle_leaves_both_with_the_same() {
    let mut net = Net::up(Link::SLOW);
    let body = noise(4, 400_000);
    for round in 0..10 {
        net.origin(&format!("/{round}"), edited(&body, 50, round));
        net.get(&format!("/{round}"));
        net.run_for(Duration::from_millis(700 + 130 * round));
        net.cut();
        net.mend();
        net.until(Net::is_up);
    }
    let new = edited(&body, 50, 99);
    again(&mut net, 0, &new);
    assert!(again(&mut net, 1, &new) < 1000);
}

#[test]
fn what_the_receiver_has_lost_is_asked_for_again() {
    // The gateway keeps 40 units, some 300 kB; the far end learns with each beat which are gone.
    let mut net = Net::with_histories(Link::FAST, 40, 100_000);
    net.until(|net| net.near.is_up());
    let first = noise(5, 200_000);
    again(&mut net, 0, &first);
    for number in 1..6 {
        again(&mut net, number, &noise(100 + u64::from(number), 200_000));
    }
    again(&mut net, 7, &first);
    net.run_for(Duration::from_secs(60));
    again(&mut net, 8, &first);
}

#[test]
fn what_the_sender_has_dropped_crosses_anew() {
    let mut net = Net::with_histories(Link::FAST, 100_000, 40);
    net.until(|net| net.near.is_up());
    for number in 0..12 {
        let body = noise(u64::from(number % 4), 200_000);
        again(&mut net, number, &body);
    }
}
