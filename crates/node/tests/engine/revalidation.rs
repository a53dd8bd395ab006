//! What is stale is asked about with its validators, and a 304 makes it fresh (RFC 9111 §4.3).

use crate::net::{Call, Net, Page};

const URL: &str = "http://o.test/a";

fn stale(page: Page) -> Net {
    let mut net = Net::new();
    net.origin.put(URL, page.fresh(10));
    net.get(URL);
    net.pass_seconds(20);
    net
}

#[test]
fn an_entity_tag_is_asked_about_and_a_304_makes_the_object_fresh() {
    let mut net = stale(Page::of(70_000).etag("a"));
    let sent = net.origin.sent;
    let again = net.get(URL);
    assert!(net.client(again).is_ok());
    assert_eq!(net.client(again).cache(), "fwd=stale; fwd-status=304");
    assert_eq!(net.origin.last().headers["if-none-match"], "\"a\"");
    assert_eq!(net.origin.sent, sent, "no byte of content came again");
    let hit = net.get(URL);
    assert_eq!(net.client(hit).cache(), "hit; ttl=10");
    net.done();
}

#[test]
fn a_date_is_asked_about_where_there_is_no_tag() {
    let modified = "Wed, 18 May 2033 03:16:40 GMT";
    let mut net = stale(Page::of(70_000).with("last-modified", modified));
    let again = net.get(URL);
    assert!(net.client(again).is_ok());
    assert_eq!(net.origin.last().headers["if-modified-since"], modified);
    assert_eq!(net.client(again).cache(), "fwd=stale; fwd-status=304");
}

#[test]
fn a_changed_object_takes_the_place_of_the_old() {
    let mut net = stale(Page::of(70_000).etag("a"));
    net.origin.put(URL, Page::of(80_000).etag("b").fresh(10));
    let new = net.get(URL);
    assert_eq!(net.client(new).cache(), "fwd=stale; fwd-status=200; stored");
    let hit = net.get(URL);
    assert!(net.client(hit).is_ok());
    assert_eq!(net.client(hit).header("etag"), "\"b\"");
    net.done();
}

#[test]
fn the_clients_own_conditions_are_met_from_the_store() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(70_000).etag("a").fresh(10));
    net.get(URL);
    let has = net.call(Call::get(URL).with("if-none-match", "W/\"a\", \"x\""));
    let lacks = net.call(Call::get(URL).with("if-none-match", "\"x\""));
    net.pass_seconds(20);
    let stale = net.call(Call::get(URL).with("if-none-match", "\"a\""));
    net.settle();
    assert_eq!(net.client(has).status(), 304);
    assert!(net.client(has).is_whole() && net.client(lacks).is_ok());
    assert_eq!(net.client(stale).status(), 304);
    assert_eq!(net.origin.asked(URL), 2);
    net.done();
}

#[test]
fn conditions_without_a_stored_object_are_the_origins_to_judge() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(70_000).etag("a").fresh(10));
    let has = net.call(Call::get(URL).with("if-none-match", "\"a\""));
    net.settle();
    assert_eq!(net.client(has).status(), 304);
    let whole = net.get(URL);
    assert!(net.client(whole).is_ok());
    assert_eq!(net.origin.asked(URL), 2);
    net.done();
}

#[test]
fn a_304_that_speaks_of_another_version_confirms_nothing() {
    let mut net = stale(Page::of(70_000).etag("a"));
    // Answers 304 for a version that we do not have, though the condition names another.
    net.origin.put(URL, Page::of(70_000).etag("b").fresh(10));
    net.origin.add(URL, Page::of(0).etag("b").status(304).only_for("if-none-match", "\"a\""));
    let again = net.get(URL);
    assert!(net.client(again).is_ok());
    assert_eq!(net.client(again).header("etag"), "\"b\"");
    assert_eq!(net.origin.asked(URL), 3);
    net.done();
}

#[test]
fn what_says_no_cache_is_asked_about_every_time() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(70_000).etag("a").with("cache-control", "no-cache, max-age=60"));
    for asked in 1..4 {
        let id = net.get(URL);
        assert!(net.client(id).is_ok());
        assert_eq!(net.origin.asked(URL), asked);
    }
    assert_eq!(net.origin.sent, 70_000);
}

#[test]
fn an_object_that_was_confirmed_but_lost_its_content_is_fetched_whole() {
    let mut net = stale(Page::of(200_000).etag("a"));
    net.disk.lose_segments = true;
    net.restart(&crate::net::Options::default());
    let again = net.get(URL);
    assert!(net.client(again).is_ok(), "{:?}", net.client(again).end);
    net.done();
}

#[test]
fn a_part_of_a_stale_object_comes_from_the_store_once_it_is_confirmed() {
    let mut net = stale(Page::of(200_000).etag("a"));
    let sent = net.origin.sent;
    let part = net.call(Call::get(URL).with("range", "bytes=100000-"));
    net.settle();
    assert_eq!(net.client(part).status(), 206);
    assert!(net.client(part).is_whole());
    assert_eq!(net.origin.sent, sent);
    net.done();
}

#[test]
fn a_part_of_an_object_that_has_changed_is_not_given_to_who_has_the_old_one() {
    let mut net = stale(Page::of(200_000).etag("a"));
    net.origin.put(URL, Page::of(200_000).etag("b").fresh(10));
    let part = net.call(Call::get(URL).with("range", "bytes=100000-").with("if-range", "\"a\""));
    net.settle();
    assert_eq!(net.client(part).status(), 200, "bytes of two versions would be joined");
    assert!(net.client(part).is_ok());
    net.done();
}

#[test]
fn what_cannot_be_asked_about_is_fetched_anew() {
    let mut net = stale(Page::of(70_000));
    let again = net.get(URL);
    assert!(net.client(again).is_ok());
    let asked = &net.origin.last().headers;
    assert!(!asked.contains_key("if-none-match") && !asked.contains_key("if-modified-since"));
}
