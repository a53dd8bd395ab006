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
