//! Concurrent requests for one object are merged into one fetch that streams to all of them.

use crate::net::{Call, Net, Options, Pace, Page};
use std::time::Duration;

const URL: &str = "http://o.test/a";
const LENGTH: usize = 1_000_000;

fn steady() -> Net {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(LENGTH).fresh(60).steady());
    net
}

#[test]
fn requests_before_the_head_share_one_fetch() {
    let mut net = steady();
    let ids: Vec<_> = (0..20).map(|_| net.call(Call::get(URL))).collect();
    net.settle();
    assert!(ids.iter().all(|id| net.client(*id).is_ok()));
    assert_eq!((net.origin.asked(URL), net.origin.sent), (1, LENGTH as u64));
    assert_eq!(net.client(0).cache(), "fwd=uri-miss; fwd-status=200; stored");
    assert_eq!(net.client(1).cache(), "fwd=uri-miss; fwd-status=200; stored; collapsed");
    let requests = net.report().requests;
    assert_eq!((requests.miss, requests.collapsed), (1, 19));
    net.done();
}

#[test]
fn requests_in_mid_transfer_get_all_from_the_beginning() {
    let mut net = steady();
    let mut ids = Vec::new();
    for _ in 0..10 {
        ids.push(net.call(Call::get(URL)));
        net.pass(Duration::from_millis(10));
    }
    assert!(ids.iter().all(|id| net.client(*id).head.is_some()), "nobody waits for the end");
    net.settle();
    assert!(ids.iter().all(|id| net.client(*id).is_ok()));
    assert_eq!((net.origin.asked(URL), net.origin.sent), (1, LENGTH as u64));
    net.done();
}

#[test]
fn a_merged_fetch_runs_at_the_pace_of_its_fastest_reader() {
    let mut net = steady();
    let stalled = net.call(Call::get(URL).pace(Pace::Stalls(10_000)));
    let slow = net.call(Call::get(URL).pace(Pace::Slow(50)));
    let fast = net.call(Call::get(URL));
    net.pass(Duration::from_millis(200));
    assert!(net.client(fast).is_ok());
    assert!(net.client(slow).end.is_none() && net.client(stalled).end.is_none());
    net.hurry(slow);
    net.hurry(stalled);
    assert!(net.client(slow).is_ok() && net.client(stalled).is_ok());
    assert_eq!(net.origin.sent, LENGTH as u64);
    net.done();
}

#[test]
fn when_the_fastest_reader_leaves_the_others_go_on() {
    let mut net = steady();
    let slow = net.call(Call::get(URL).pace(Pace::Slow(2000)));
    net.call(Call::get(URL).pace(Pace::Leaves(500_000)));
    net.settle();
    assert!(net.client(slow).is_ok());
    assert_eq!(net.origin.sent, LENGTH as u64);
    net.done();
}

#[test]
fn when_the_first_asker_leaves_before_the_head_the_others_are_served() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(LENGTH).fresh(60).waiting(Duration::from_secs(1)));
    let first = net.call(Call::get(URL));
    let second = net.call(Call::get(URL));
    net.pass(Duration::from_millis(10));
    net.leave(first);
    net.settle();
    assert!(net.client(second).is_ok());
    assert_eq!(net.origin.asked(URL), 1);
    net.done();
}

#[test]
fn a_response_that_may_not_be_shared_goes_to_who_asked_and_the_others_ask_for_themselves() {
    let mut net = Net::new();
    let page = Page::of(LENGTH).with("cache-control", "private");
    net.origin.put(URL, page.waiting(Duration::from_millis(5)));
    let ids: Vec<_> = (0..5).map(|_| net.call(Call::get(URL))).collect();
    net.settle();
    assert!(ids.iter().all(|id| net.client(*id).is_ok()));
    assert_eq!(net.origin.asked(URL), 5);
    net.done();
}

#[test]
fn a_private_response_does_not_go_to_another_when_who_asked_has_left() {
    let mut net = Net::new();
    for user in ["a", "b"] {
        let page = Page::of(500).with("cache-control", "private").with("x-user", user);
        net.origin.add(URL, page.waiting(Duration::from_millis(5)).only_for("cookie", user));
    }
    let first = net.call(Call::get(URL).with("cookie", "a"));
    let second = net.call(Call::get(URL).with("cookie", "b"));
    net.pass(Duration::from_millis(1));
    net.leave(first);
    net.settle();
    assert_eq!(net.client(second).header("x-user"), "b");
    net.done();
}

#[test]
fn a_response_that_is_to_be_asked_about_each_time_is_not_joined() {
    // RFC 9111 §4: requests are collapsed only where the response may be reused for them.
    for control in ["no-cache", "max-age=0"] {
        let mut net = Net::new();
        let page = Page::of(LENGTH).etag("a").with("cache-control", control);
        net.origin.put(URL, page.steady());
        let first = net.call(Call::get(URL));
        net.pass_seconds(1);
        let first_again = net.call(Call::get(URL).pace(Pace::Slow(5000)));
        net.pass(Duration::from_millis(20));
        let second = net.call(Call::get(URL));
        net.settle();
        assert!([first, first_again, second].iter().all(|id| net.client(*id).is_ok()));
        assert_eq!(net.origin.asked(URL), 3, "{control}");
        net.done();
    }
}

#[test]
fn a_transfer_that_has_outlived_its_lifetime_is_not_joined() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(LENGTH).fresh(5));
    let slow = net.call(Call::get(URL).pace(Pace::Stalls(1000)));
    net.pass_seconds(4);
    let joins = net.call(Call::get(URL).pace(Pace::Stalls(1000)));
    net.pass_seconds(4);
    assert!(net.client(joins).cache().ends_with("collapsed"));
    assert_eq!(net.client(joins).header("age"), "4");
    let late = net.call(Call::get(URL));
    net.settle();
    assert!(net.client(late).is_ok());
    assert_eq!(net.origin.asked(URL), 2);
    net.hurry(slow);
    net.hurry(joins);
    net.done();
}

#[test]
fn a_client_that_insists_does_not_join() {
    let mut net = steady();
    net.call(Call::get(URL));
    net.pass(Duration::from_millis(5));
    let insists = net.call(Call::get(URL).with("cache-control", "no-cache"));
    net.settle();
    assert!(net.client(insists).is_ok());
    assert_eq!(net.origin.asked(URL), 2);
    assert!(net.client(insists).cache().starts_with("fwd=request"));
    net.done();
}

#[test]
fn two_urls_with_the_same_content_are_stored_once() {
    let mut net = Net::new();
    let page = Page::of(LENGTH).fresh(60);
    net.origin.put("http://o.test/b", page.clone());
    net.origin.put(URL, page);
    net.get(URL);
    let second = net.get("http://o.test/b");
    assert!(net.client(second).is_ok());
    let report = net.report();
    assert!(report.known_bytes >= LENGTH as u64 && report.index.bytes_on_disk < 1_500_000);
    net.done();
}

#[test]
fn a_transfer_whose_units_another_was_about_to_write_outlives_it() {
    let mut net = Net::with(Options { memory_bytes: 1 << 20, ..Options::default() });
    let page = Page::of(200_000).fresh(60).steady();
    net.origin.put("http://o.test/b", page.clone());
    net.origin.put("http://o.test/other", Page::of(2_000_000).fresh(60));
    net.origin.put(URL, page.breaking_at(150_000));
    net.call(Call::get(URL));
    let second = net.call(Call::get("http://o.test/b"));
    net.settle();
    assert!(net.client(0).is_broken() && net.client(second).is_ok());
    // Pushes out what is in memory only.
    net.get("http://o.test/other");
    let hit = net.get("http://o.test/b");
    assert!(net.client(hit).is_ok());
    assert_eq!(net.client(hit).cache(), "hit; ttl=60");
    net.done();
}
