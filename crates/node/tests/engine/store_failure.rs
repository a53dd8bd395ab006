//! Where the store fails, clients do not notice.

use crate::net::{Call, Net, Options, Pace, Page};
use bytes::Bytes;

const URL: &str = "http://o.test/a";
const LENGTH: usize = 1_500_000;

fn net() -> Net {
    let mut net = Net::with(Options { memory_bytes: 2 << 20, ..Options::default() });
    net.origin.put(URL, Page::of(LENGTH).fresh(600).steady());
    net
}

#[test]
fn with_a_full_disk_everybody_gets_everything_uncached() {
    let mut net = net();
    net.disk.fail_appends = true;
    let ids = [Pace::Fast, Pace::Slow(3_000), Pace::Fast].map(|p| net.call(Call::get(URL).pace(p)));
    net.settle();
    assert!(ids.iter().all(|id| net.client(*id).is_ok()));
    assert!(!net.report().store_works && net.report().store_failures > 0);
    let again = net.get(URL);
    assert!(net.client(again).is_ok());
    assert_eq!(net.client(again).cache(), "fwd=uri-miss; fwd-status=200; detail=store");
    net.done();
}

#[test]
fn a_store_that_failed_is_tried_again_later() {
    let mut net = net();
    net.disk.fail_appends = true;
    net.get(URL);
    net.disk.fail_appends = false;
    net.pass_seconds(31);
    assert!(net.report().store_works);
    net.get(URL);
    let hit = net.get(URL);
    assert!(net.client(hit).is_ok());
    assert!(net.client(hit).cache().starts_with("hit"));
    net.done();
}

#[test]
fn nothing_is_said_to_be_stored_that_may_not_be() {
    let mut net = net();
    net.disk.fail_appends = true;
    net.get(URL);
    for _ in 0..2 {
        net.pass_seconds(31);
        let again = net.get(URL);
        assert_eq!(net.client(again).cache(), "fwd=uri-miss; fwd-status=200");
    }
    net.disk.fail_appends = false;
    net.pass_seconds(31);
    net.get(URL);
    net.pass_seconds(6);
    net.origin.put("http://o.test/b", Page::of(1000).fresh(600));
    let other = net.get("http://o.test/b");
    assert_eq!(net.client(other).cache(), "fwd=uri-miss; fwd-status=200; stored");
    net.done();
}

#[test]
fn a_store_that_cannot_be_written_serves_what_it_has_and_nothing_is_said_to_be_stored() {
    let mut net = net();
    net.get(URL);
    net.restart(&Options { memory_bytes: 2 << 20, ..Options::default() });
    (net.disk.fail_appends, net.disk.fail_changes, net.disk.fail_syncs) = (true, true, true);
    // As the daemon says it of a store that is read-only.
    net.say_unsynced();
    for number in 0..4 {
        let url = format!("http://o.test/{number}");
        net.origin.put(&url, Page::of(50_000).fresh(600));
        let new = net.get(&url);
        assert!(net.client(new).is_ok());
        assert_eq!(net.client(new).cache(), "fwd=uri-miss; fwd-status=200; detail=store");
        let held = net.get(URL);
        assert!(net.client(held).is_ok() && net.client(held).cache().starts_with("hit"));
        net.pass_seconds(20);
    }
    assert!(!net.report().store_works);
    (net.disk.fail_appends, net.disk.fail_changes, net.disk.fail_syncs) = (false, false, false);
    net.pass_seconds(31);
    let new = net.get("http://o.test/0");
    assert_eq!(net.client(new).cache(), "fwd=uri-miss; fwd-status=200");
    net.pass_seconds(6);
    let next = net.get("http://o.test/1");
    assert_eq!(net.client(next).cache(), "fwd=uri-miss; fwd-status=200; stored");
    net.done();
}

#[test]
fn a_disk_that_fills_in_mid_transfer_breaks_nobody() {
    let mut net = net();
    let ids = [Pace::Fast, Pace::Slow(1_500), Pace::Slow(4_000)]
        .map(|pace| net.call(Call::get(URL).pace(pace)));
    net.pass(std::time::Duration::from_millis(60));
    net.disk.fail_appends = true;
    net.settle();
    assert!(ids.iter().all(|id| net.client(*id).is_ok()));
    let again = net.get(URL);
    assert!(net.client(again).is_ok());
    assert_eq!(net.origin.asked(URL), 2);
    net.done();
}

#[test]
fn units_that_were_refused_after_the_last_byte_still_reach_a_slow_reader() {
    let mut net = Net::with(Options { memory_bytes: 1 << 20, ..Options::default() });
    net.origin.put(URL, Page::of(200_000).fresh(600));
    net.origin.put("http://o.test/b", Page::of(1_500_000).fresh(600));
    net.disk.stuck = true;
    let slow = net.call(Call::get(URL).pace(Pace::Stalls(1000)));
    net.settle();
    net.disk.fail_appends = true;
    net.unstick();
    // The store is tried again, and pushes out what is in memory only.
    net.disk.fail_appends = false;
    net.pass_seconds(31);
    net.get("http://o.test/b");
    net.get("http://o.test/b");
    net.hurry(slow);
    assert!(net.client(slow).is_ok(), "{:?}", net.client(slow).end);
    let again = net.get(URL);
    assert!(net.client(again).is_ok());
    net.done();
}

#[test]
fn repeated_content_reaches_readers_though_nothing_can_be_written() {
    let mut net = Net::with(Options { memory_bytes: 256 << 10, ..Options::default() });
    let block = crate::net::noise(7, 70_000);
    let body: Vec<u8> = (0..12u8).flat_map(|n| [&block[..], &[n; 9000]].concat()).collect();
    net.origin.put(URL, Page::new(Bytes::from(body)).fresh(600).steady());
    net.disk.fail_appends = true;
    let ids =
        [Pace::Slow(3_000), Pace::Slow(700), Pace::Fast].map(|p| net.call(Call::get(URL).pace(p)));
    net.settle();
    assert!(ids.iter().all(|id| net.client(*id).is_ok()));
    net.done();
}

#[test]
fn a_catalogue_that_fails_costs_only_the_cache() {
    let mut net = net();
    net.disk.fail_changes = true;
    for _ in 0..3 {
        let id = net.get(URL);
        assert!(net.client(id).is_ok());
        net.pass_seconds(31);
    }
    net.disk.fail_changes = false;
    net.pass_seconds(31);
    let id = net.get(URL);
    assert!(net.client(id).is_ok());
    net.done();
}

#[test]
fn stalled_readers_of_what_could_not_be_written_do_not_hinder_others() {
    let mut net = Net::with(Options { memory_bytes: 1 << 20, ..Options::default() });
    for number in 0..20 {
        let url = format!("http://o.test/{number}");
        net.origin.put(&url, Page::of(600_000).fresh(600).steady());
        net.call(Call::get(&url).pace(Pace::Stalls(1000)));
    }
    net.pass(std::time::Duration::from_millis(4));
    net.disk.fail_appends = true;
    net.settle();
    net.disk.fail_appends = false;
    net.pass_seconds(31);
    let id = net.get(URL);
    assert_eq!(net.client(id).status(), 404);
    net.origin.put(URL, Page::of(LENGTH).fresh(60));
    let id = net.get(URL);
    assert!(net.client(id).is_ok(), "{:?}", net.client(id).end);
    (0..20).for_each(|id| net.leave(id));
    net.done();
}

#[test]
fn what_is_written_is_made_durable_in_time() {
    let mut net = net();
    net.get(URL);
    assert_eq!(net.disk.syncs, 0);
    net.pass_seconds(5);
    assert_eq!(net.disk.syncs, 1);
    net.pass_seconds(60);
    assert_eq!(net.disk.syncs, 1, "nothing was written since");
}

#[test]
fn a_stalled_reader_of_what_could_not_be_written_does_not_hold_others_once_it_has_left() {
    let mut net = net();
    let stalled = net.call(Call::get(URL).pace(Pace::Stalls(1000)));
    let fast = net.call(Call::get(URL));
    net.disk.fail_appends = true;
    net.settle();
    net.leave(stalled);
    assert!(net.client(fast).is_ok());
    net.done();
}
