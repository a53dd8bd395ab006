//! A transfer without readers finishes only if little remains.

use crate::net::{Call, Net, Pace, Page};

const URL: &str = "http://o.test/a";

fn abandoned(page: Page, at: u64) -> Net {
    let mut net = Net::new();
    net.origin.put(URL, page.fresh(60));
    net.call(Call::get(URL).pace(Pace::Leaves(at)));
    net.settle();
    net.done();
    assert_eq!(net.origin.busy(), 0);
    net
}

#[test]
fn with_a_mebibyte_left_it_finishes() {
    let mut net = abandoned(Page::of(1_500_000), 600_000);
    assert_eq!(net.origin.sent, 1_500_000);
    let hit = net.get(URL);
    assert!(net.client(hit).is_ok() && net.client(hit).cache().starts_with("hit"));
}

#[test]
fn with_more_left_it_is_broken_off() {
    let mut net = abandoned(Page::of(5_000_000), 600_000);
    assert!(net.origin.sent < 1_200_000);
    let miss = net.get(URL);
    assert!(net.client(miss).is_ok());
    assert_eq!(net.origin.asked(URL), 2);
}

#[test]
fn with_nobody_knows_how_much_left_it_is_broken_off() {
    let net = abandoned(Page::of(1_500_000).chunked(), 600_000);
    assert!(net.origin.sent < 1_200_000);
}

#[test]
fn what_is_relayed_is_broken_off() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(300_000).with("cache-control", "private"));
    net.call(Call::get(URL).pace(Pace::Leaves(1000)));
    net.settle();
    net.done();
    assert!(net.origin.sent < 100_000 && net.origin.busy() == 0);
}

#[test]
fn it_can_be_joined_again_meanwhile() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(900_000).fresh(60).steady());
    net.call(Call::get(URL).pace(Pace::Leaves(100_000)));
    net.pass(std::time::Duration::from_millis(50));
    let id = net.get(URL);
    assert!(net.client(id).is_ok());
    assert_eq!(net.origin.asked(URL), 1);
    net.done();
}

#[test]
fn it_is_not_finished_for_a_store_that_has_failed() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(1_500_000).fresh(60).steady());
    net.disk.fail_appends = true;
    // By then units were written, in vain, and less than a mebibyte is to come.
    net.call(Call::get(URL).pace(Pace::Leaves(800_000)));
    net.settle();
    net.done();
    assert!(!net.report().store_works);
    assert!(net.origin.sent < 1_200_000 && net.origin.busy() == 0, "{} bytes", net.origin.sent);
}

#[test]
fn it_is_broken_off_when_the_store_fails() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(900_000).fresh(60).steady());
    net.disk.stuck = true;
    net.call(Call::get(URL).pace(Pace::Leaves(100_000)));
    net.pass(std::time::Duration::from_millis(50));
    assert_eq!(net.origin.busy(), 1, "it is finished for the store");
    net.disk.fail_appends = true;
    net.unstick();
    net.done();
    assert!(net.origin.sent < 600_000 && net.origin.busy() == 0, "{} bytes", net.origin.sent);
}

#[test]
fn it_has_a_minute_and_not_for_ever() {
    let mut net = Net::new();
    let mut page = Page::of(900_000).fresh(60);
    (page.piece, page.pause) = (1_000, std::time::Duration::from_secs(5));
    net.origin.put(URL, page);
    net.call(Call::get(URL).pace(Pace::Leaves(2_000)));
    net.pass_seconds(50);
    assert_eq!(net.origin.busy(), 1, "little remains, so it goes on");
    net.pass_seconds(60);
    assert_eq!(net.origin.busy(), 0, "but not at this pace");
    net.done();
}

/// A page of 5 MB with a strong validator, left at each of these offsets.
fn left_at(offsets: &[u64]) -> Net {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(5_000_000).fresh(60).etag("1"));
    for at in offsets {
        net.call(Call::get(URL).pace(Pace::Leaves(*at)));
        // Not `settle`, which lets the part's hour pass.
        net.pass_seconds(1);
    }
    assert_eq!(net.origin.busy(), 0);
    net
}

#[test]
fn a_part_goes_on_where_it_was_left_if_its_version_is_sure() {
    let mut net = left_at(&[1_250_000, 2_500_000, 3_500_000]);
    assert_eq!(net.report().parts, 1);
    let id = net.get(URL);
    assert!(net.client(id).is_ok());
    assert_eq!(net.client(id).cache(), "fwd=uri-miss; fwd-status=200; stored");
    let last = net.origin.last();
    assert!(last.headers["range"].to_str().unwrap().starts_with("bytes=3"), "{last:?}");
    assert_eq!(last.headers["if-range"], "\"1\"");
    // What an origin may be ahead is lost each time.
    assert!(net.origin.sent <= 5_000_000 + 3 * 300_000, "{}", net.origin.sent);
    let hit = net.get(URL);
    assert!(net.client(hit).is_ok() && net.client(hit).cache().starts_with("hit"));
    assert_eq!((net.origin.asked(URL), net.report().parts), (4, 0));
    net.done();
}

#[test]
fn a_part_of_another_version_is_dropped() {
    for changed in [Page::of(5_100_000), Page::of(100_000), Page::of(5_100_000).chunked()] {
        let mut net = left_at(&[2_000_000]);
        net.origin.put(URL, changed.fresh(60).etag("2"));
        let id = net.get(URL);
        assert!(net.client(id).is_ok(), "what it gets is one version: {:?}", net.client(id).head);
        assert_eq!((net.origin.asked(URL), net.report().parts), (2, 0));
        let hit = net.get(URL);
        assert!(net.client(hit).cache().starts_with("hit"));
        net.done();
    }
}

#[test]
fn without_a_strong_validator_nothing_is_kept() {
    for page in
        [Page::of(5_000_000).fresh(60), Page::of(5_000_000).fresh(60).with("etag", "W/\"1\"")]
    {
        let mut net = Net::new();
        net.origin.put(URL, page);
        net.call(Call::get(URL).pace(Pace::Leaves(2_000_000)));
        net.pass_seconds(1);
        assert_eq!(net.report().parts, 0);
        net.get(URL);
        assert!(!net.origin.last().headers.contains_key("range"));
        net.done();
    }
}

#[test]
fn a_range_that_does_not_continue_the_part_is_not_taken_for_it() {
    // Another place, another length, another version, or none: none of them is what was asked for.
    for (range, tag) in [
        ("bytes 0-9/5000000", "\"1\""),
        ("bytes 2000000-2999999/3000000", "\"1\""),
        ("bytes 1-4999999/5000000", "\"1\""),
        ("bytes */5000000", "\"1\""),
        ("", "\"1\""),
    ] {
        let mut net = left_at(&[2_000_000]);
        let lie = Page::of(3_000_000).status(206).with("etag", tag).with("content-range", range);
        net.origin.put(URL, lie.unchecked().only_for("if-range", "\"1\""));
        net.origin.add(URL, Page::of(4_000_000).fresh(60).etag("3"));
        let id = net.get(URL);
        assert!(net.client(id).is_ok(), "{range}: {:?}", net.client(id).head);
        assert_eq!(net.client(id).status(), 200, "{range}");
        assert_eq!(net.client(id).content.len(), 4_000_000, "{range}");
        assert_eq!((net.origin.asked(URL), net.report().parts), (3, 0), "{range}");
        net.done();
    }
}

#[test]
fn an_error_keeps_the_part() {
    let mut net = left_at(&[2_000_000]);
    net.origin.put(URL, Page::of(9).status(503));
    let id = net.call(Call::get(URL));
    net.pass_seconds(1);
    assert_eq!(net.client(id).status(), 503);
    assert_eq!(net.report().parts, 1);
    net.done();
}

#[test]
fn what_an_origin_broke_off_goes_on_when_it_is_back() {
    let mut net = Net::new();
    let page = Page::of(5_000_000).fresh(60).etag("1");
    net.origin.put(URL, page.clone().breaking_at(2_000_000));
    let id = net.call(Call::get(URL));
    net.pass(std::time::Duration::from_millis(300));
    net.origin.down = Some(node::FetchError::Unreachable);
    net.pass_seconds(120);
    assert!(!net.client(id).is_ok());
    assert_eq!(net.report().parts, 1);
    net.origin.down = None;
    net.origin.sent = 0;
    net.origin.put(URL, page);
    let id = net.get(URL);
    assert!(net.client(id).is_ok());
    assert!(net.origin.sent <= 3_300_000, "{}", net.origin.sent);
    net.done();
}

#[test]
fn a_part_is_forgotten_after_an_hour() {
    let mut net = left_at(&[2_000_000]);
    net.pass_seconds(3_590);
    assert_eq!(net.report().parts, 1);
    net.pass_seconds(10);
    assert_eq!(net.report().parts, 0);
    net.get(URL);
    assert!(!net.origin.last().headers.contains_key("range"));
    net.done();
}

#[test]
fn an_operator_who_removes_the_object_removes_its_part() {
    let mut net = left_at(&[2_000_000]);
    net.purge(URL);
    net.settle();
    assert_eq!(net.report().parts, 0);
    let id = net.get(URL);
    assert!(net.client(id).is_ok() && !net.origin.last().headers.contains_key("range"));
    net.done();
}
