//! Whole responses and requests, exact whatever happens to them.

use crate::bytes::{edited, noise, page};
use crate::net::{Link, Net};
use node::{FetchError, FetchId};
use std::time::Duration;

#[test]
fn what_an_origin_sends_arrives() {
    let mut net = Net::up(Link::FAST);
    for (path, length) in [("/empty", 0), ("/byte", 1), ("/small", 2000), ("/large", 3_000_000)] {
        let body = noise(length as u64, length);
        net.origin(path, body.clone());
        assert!(net.get_all(path).0 == body, "{path}");
    }
}

#[test]
fn the_second_time_only_references_cross() {
    let mut net = Net::up(Link::SLOW);
    let body = noise(1, 1_000_000);
    net.origin("/a", body.clone());
    net.origin("/b", body.clone());
    let (first, crossed) = net.get_all("/a");
    assert!(first == body && crossed < 1_005_000, "{crossed}");
    let begun = net.now;
    let (second, crossed) = net.get_all("/b");
    assert!(second == body && crossed < 1000, "{crossed}");
    let took = net.now.since(begun);
    assert!(took < Duration::from_millis(420), "two round trips, not {took:?}");
}

#[test]
fn the_first_bytes_do_not_wait_for_a_long_batch() {
    let mut net = Net::up(Link::SLOW);
    net.origin("/a", noise(21, 500_000));
    let begun = net.now;
    let id = net.get("/a");
    net.until(|net| net.answers[&id].first_byte.is_some());
    let took = net.now.since(begun);
    assert!(took < Duration::from_millis(550), "200 ms, and 250 for 16 KB: {took:?}");
}

#[test]
fn what_differs_a_little_crosses_as_a_difference() {
    let mut net = Net::up(Link::SLOW);
    let old = noise(1, 1_000_000);
    let new = edited(&old, 10, 2);
    net.origin("/old", old);
    net.origin("/new", new.clone());
    net.get_all("/old");
    let (body, crossed) = net.get_all("/new");
    assert!(body == new);
    assert!(crossed < 125_000, "a tenth is new: {crossed}");
}

#[test]
fn many_flows_at_once_are_all_exact() {
    let mut net = Net::up(Link::FAST);
    let bodies: Vec<_> = (0..60).map(|seed| page(seed % 20, 100 + 97 * seed as usize)).collect();
    net.get_together(&bodies);
}

#[test]
fn a_hundred_who_want_the_same_share_one_crossing() {
    let mut net = Net::up(Link::FAST);
    let body = noise(5, 500_000);
    net.origin("/video", body.clone());
    let before = net.crossed.0;
    let ids: Vec<_> = (0..100).map(|_| net.get("/video")).collect();
    net.until(|net| ids.iter().all(|id| net.answers[id].end.is_some()));
    assert!(ids.iter().all(|id| net.answers[id].body == body));
    let crossed = net.crossed.0 - before;
    assert!(crossed < 700_000, "{crossed}");
}

#[test]
fn a_reader_that_takes_nothing_gets_nothing_and_holds_up_nobody() {
    let mut net = Net::up(Link::FAST);
    let body = noise(6, 9_000_000);
    net.origin("/big", body.clone());
    net.origin("/other", noise(7, 100_000));
    net.grant = 0;
    let slow = net.get("/big");
    net.run_for(Duration::from_secs(20));
    assert!(net.answers[&slow].body.is_empty() && net.answers[&slow].status.is_some());
    let crossed = net.crossed.0;
    assert!(crossed < 5_000_000, "no more than the window: {crossed}");
    net.grant = u64::MAX / 2;
    assert_eq!(net.get_all("/other").0.len(), 100_000);
    let mut taken = 0;
    while net.answers[&slow].end.is_none() {
        net.allow(slow, 100_000);
        net.run_for(Duration::from_millis(100));
        let have = net.answers[&slow].body.len();
        assert!(have < taken + 100_000 + 20_000, "it gets about what it takes");
        taken += 100_000;
    }
    assert!(net.answers[&slow].body == body);
}

#[test]
fn what_is_cancelled_stops_and_spoils_nothing_for_others() {
    let mut net = Net::up(Link::SLOW);
    let body = noise(8, 2_000_000);
    net.origin("/a", body.clone());
    net.origin("/b", body.clone());
    let (first, second) = (net.get("/a"), net.get("/b"));
    net.run_for(Duration::from_secs(3));
    net.cancel(first);
    net.until(|net| net.answers[&second].end.is_some());
    assert!(net.answers[&second].body == body && net.answers[&first].end.is_none());
    let before = net.crossed.0;
    net.run_for(Duration::from_secs(5));
    assert!(net.crossed.0 - before < 200_000, "nothing more of what nobody wants crosses");
}

#[test]
fn a_small_answer_does_not_wait_for_a_download() {
    let mut net = Net::up(Link::SLOW);
    net.origin("/download", noise(9, 3_000_000));
    net.get("/download");
    net.run_for(Duration::from_secs(5));
    let mut worst = Duration::ZERO;
    for number in 0..20 {
        let path = format!("/small{number}");
        net.origin(&path, page(1000 + number, 130));
        let begun = net.now;
        net.get_all(&path);
        worst = worst.max(net.now.since(begun));
        net.run_for(Duration::from_millis(130));
    }
    assert!(worst < Duration::from_millis(550), "{worst:?}");
}

#[test]
fn a_body_that_pauses_is_not_held_back() {
    let mut net = Net::up(Link::FAST);
    net.origin("/events", page(3, 20));
    net.open_ended.push("/events".into());
    let id = net.get("/events");
    net.run_for(Duration::from_millis(200));
    assert!(net.answers[&id].body == page(3, 20));
    assert_eq!(net.answers[&id].end, None);
}

#[test]
fn what_the_far_end_cannot_find_goes_past_it() {
    let mut net = Net::up(Link::FAST);
    let id = net.get("/not-there");
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.past, [FetchId(id)]);
}

#[test]
fn content_of_a_request_crosses_too_and_only_once() {
    let mut net = Net::up(Link::SLOW);
    let body = noise(11, 300_000);
    let costs = [net.echo(&body), net.echo(&body)];
    assert!(costs[0].1 > 300_000 && costs[1].1 < 3_000 && costs[1].0 < 3_000, "{costs:?}");
}

#[test]
fn a_far_end_that_falls_silent_is_noticed_within_five_seconds() {
    let mut net = Net::up(Link::FAST);
    net.origin("/a", noise(12, 50_000_000));
    let begun = net.get("/a");
    net.run_for(Duration::from_millis(300));
    net.open_ended.push("/b".into());
    net.origin("/b", Vec::new());
    net.silence();
    let cut = net.now;
    let asked = net.get("/unanswered");
    net.until(|net| net.answers[&begun].end.is_some());
    assert!(net.now.since(cut) <= Duration::from_millis(5100), "{:?}", net.now.since(cut));
    assert_eq!(net.answers[&begun].end, Some(Err(FetchError::Truncated)), "the node resumes it");
    assert_eq!(net.past, [FetchId(asked)], "what has no answer yet is asked elsewhere");
    assert!(!net.near.is_up());
    // Before that it is said of the one that waits for its head, once.
    let [(at, id)] = net.silent[..] else { panic!("{:?}", net.silent) };
    assert_eq!(id, FetchId(asked));
    let after = at.since(cut);
    // A beat goes out after a second of silence, which began a moment before the cut, and is missed for another.
    assert!((1_950..2_100).contains(&after.as_millis()), "{after:?}");
}
