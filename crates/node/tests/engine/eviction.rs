//! A store that is full makes room, and what left it is fetched anew.

use crate::net::{Net, Options, Page};

fn options(store_bytes: u64) -> Options {
    Options { store_bytes, memory_bytes: 1 << 20, ..Options::default() }
}

fn url(number: usize) -> String {
    format!("http://o.test/{number}")
}

#[test]
fn a_store_never_outgrows_its_budget_and_still_serves() {
    let mut net = Net::with(options(4 << 20));
    for number in 0..30 {
        net.origin.put(&url(number), Page::of(500_000).fresh(600));
        let id = net.get(&url(number));
        assert!(net.client(id).is_ok());
        assert!(net.report().index.bytes_on_disk <= 4 << 20);
        assert_eq!(net.report().store_failures, 0, "room was made in time");
    }
    let newest = net.get(&url(29));
    assert!(
        net.client(newest).cache().starts_with("hit"),
        "{:?} {:?}",
        net.client(newest).cache(),
        net.report()
    );
    assert!(net.report().index.evicted_units > 0);
    net.done();
}

#[test]
fn an_object_whose_units_left_is_fetched_anew() {
    let mut net = Net::with(options(4 << 20));
    for number in (0..20).chain(0..20) {
        if net.origin.asked(&url(number)) == 0 {
            net.origin.put(&url(number), Page::of(500_000).fresh(600));
        }
        let id = net.get(&url(number));
        // Units beyond those that were looked at first may have left: then it is asked for again.
        assert!(net.client(id).is_ok() || net.client(id).is_broken());
        let again = net.get(&url(number));
        assert!(net.client(again).is_ok(), "{number}");
    }
    net.done();
}

/// A net in which `http://o.test/a` is stale and its units have left.
fn with_a_hollow_object() -> Net {
    let mut net = Net::with(options(4 << 20));
    net.origin.put("http://o.test/a", Page::of(300_000).etag("a").fresh(5));
    net.get("http://o.test/a");
    for number in 0..20 {
        net.origin.put(&url(number), Page::of(500_000).fresh(600));
        net.get(&url(number));
    }
    net.pass_seconds(10);
    net
}

#[test]
fn a_stale_object_whose_units_left_is_not_confirmed_but_fetched() {
    let mut net = with_a_hollow_object();
    let id = net.get("http://o.test/a");
    assert!(net.client(id).is_ok(), "{:?}", net.client(id).end);
    net.done();
}

#[test]
fn a_stale_object_whose_units_left_does_not_stand_in_for_its_origin() {
    let mut net = with_a_hollow_object();
    net.origin.down = Some(node::FetchError::Unreachable);
    let id = net.get("http://o.test/a");
    assert_eq!(net.client(id).status(), 502);
    assert!(net.client(id).is_whole());
    net.done();
}

#[test]
fn a_store_that_became_too_large_for_its_budget_shrinks() {
    let mut net = Net::with(options(16 << 20));
    for number in 0..20 {
        net.origin.put(&url(number), Page::of(500_000).fresh(6000));
        net.get(&url(number));
    }
    net.restart(&options(4 << 20));
    for number in 20..30 {
        net.origin.put(&url(number), Page::of(500_000).fresh(6000));
        let id = net.get(&url(number));
        assert!(net.client(id).is_ok());
        net.pass_seconds(60);
    }
    let hit = net.get(&url(29));
    assert!(net.client(hit).cache().starts_with("hit"), "nothing is stored any more");
    assert!(net.report().index.bytes_on_disk <= 4 << 20);
    net.done();
}

#[test]
fn a_small_store_makes_room_in_time_however_its_objects_are_used() {
    for store_bytes in [2 << 20, 4 << 20, 8 << 20] {
        let mut net = Net::with(options(store_bytes));
        for number in 0..40 {
            net.origin.put(&url(number), Page::of(500_000).fresh(600));
            net.get(&url(number));
            let again = net.get(&url(number));
            assert!(net.client(again).is_ok());
        }
        assert_eq!(net.report().store_failures, 0, "{store_bytes}");
        net.done();
    }
}
