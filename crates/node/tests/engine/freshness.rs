//! What is fresh is served without asking, with its age; what is not is asked for (RFC 9111 §4.2).

use crate::net::{BEGIN, Call, Net, Page};
use node::FetchError;
use wire::Date;

const URL: &str = "http://o.test/a";

fn stored(page: Page) -> Net {
    let mut net = Net::new();
    net.origin.put(URL, page);
    let first = net.get(URL);
    assert!(net.client(first).is_ok());
    net
}

#[test]
fn a_fresh_object_is_served_from_the_store_until_it_is_stale() {
    let mut net = stored(Page::of(50_000).fresh(60));
    let first = net.client(0);
    assert_eq!(first.cache(), "fwd=uri-miss; fwd-status=200; stored");
    net.pass_seconds(59);
    let hit = net.get(URL);
    assert!(net.client(hit).is_ok());
    assert_eq!(net.client(hit).cache(), "hit; ttl=1");
    assert_eq!(net.client(hit).header("age"), "59");
    assert!(net.client(hit).header("via").starts_with("1.1 hearsay"));
    assert_eq!(net.origin.asked(URL), 1);
    net.pass_seconds(1);
    net.get(URL);
    assert_eq!(net.origin.asked(URL), 2);
    net.done();
}

#[test]
fn an_age_that_the_origin_says_counts() {
    let mut net = stored(Page::of(100).fresh(60).with("age", "50"));
    net.pass_seconds(9);
    let hit = net.get(URL);
    assert_eq!(net.client(hit).header("age"), "59");
    net.pass_seconds(1);
    net.get(URL);
    assert_eq!(net.origin.asked(URL), 2);
}

#[test]
fn a_shared_lifetime_goes_before_a_private_one_and_before_a_date() {
    let control = ("cache-control", "max-age=5, s-maxage=100");
    let mut net = stored(Page::of(9).with(control.0, control.1).with("expires", "0"));
    net.pass_seconds(99);
    net.get(URL);
    assert_eq!(net.origin.asked(URL), 1);
}

#[test]
fn an_object_that_was_modified_long_ago_is_fresh_for_a_tenth_of_that() {
    // 1,000 s before the world begins.
    let modified = "Wed, 18 May 2033 03:16:40 GMT";
    let mut net = stored(Page::of(9).with("last-modified", modified));
    net.pass_seconds(99);
    net.get(URL);
    assert_eq!(net.origin.asked(URL), 1);
    net.pass_seconds(2);
    net.get(URL);
    assert_eq!(net.origin.asked(URL), 2);
}

#[test]
fn a_client_may_want_it_fresher() {
    let mut net = stored(Page::of(9).fresh(60));
    net.pass_seconds(30);
    for wish in ["max-age=29", "min-fresh=31", "no-cache"] {
        let asked = net.origin.asked(URL);
        net.call(Call::get(URL).with("cache-control", wish));
        net.settle();
        assert_eq!(net.origin.asked(URL), asked + 1, "{wish}");
        net.pass_seconds(30);
    }
}

#[test]
fn a_client_may_take_it_stale_unless_the_origin_forbids() {
    for (control, asked) in [("max-age=10", 1), ("max-age=10, must-revalidate", 2)] {
        let mut net = stored(Page::of(9).with("cache-control", control));
        net.pass_seconds(20);
        let stale = net.call(Call::get(URL).with("cache-control", "max-stale=10"));
        net.settle();
        assert!(net.client(stale).is_ok());
        assert_eq!(net.origin.asked(URL), asked, "{control}");
    }
}

#[test]
fn only_if_cached_gets_the_stored_response_or_an_error() {
    let mut net = stored(Page::of(9).fresh(10));
    let only = || Call::get(URL).with("cache-control", "only-if-cached");
    let hit = net.call(only());
    net.pass_seconds(20);
    let miss = net.call(only());
    net.settle();
    assert!(net.client(hit).is_ok());
    assert_eq!(net.client(miss).status(), 504);
    assert_eq!(net.origin.asked(URL), 1);
    net.done();
}

#[test]
fn an_origin_that_cannot_be_reached_is_stood_in_for_where_that_is_permitted() {
    let tagged = || Page::of(60_000).etag("a");
    for (page, control, status) in [
        (tagged(), "max-age=5", 200),
        (Page::of(60_000), "max-age=5", 200),
        (tagged(), "max-age=5, must-revalidate", 502),
    ] {
        let mut net = stored(page.with("cache-control", control));
        net.pass_seconds(20);
        net.origin.down = Some(FetchError::Unreachable);
        let stale = net.get(URL);
        assert_eq!(net.client(stale).status(), status, "{control}");
        assert!(net.client(stale).is_whole());
        let head = net.call(Call::head(URL));
        net.settle();
        assert_eq!(net.client(head).status(), status, "HEAD, {control}");
        net.done();
    }
}

#[test]
fn a_server_error_is_stood_in_for_only_with_permission() {
    for (control, status) in [("max-age=5", 503), ("max-age=5, stale-if-error=60", 200)] {
        let mut net = stored(Page::of(9).etag("a").with("cache-control", control));
        net.pass_seconds(20);
        net.origin.put(URL, Page::of(5).status(503));
        let stale = net.get(URL);
        assert_eq!(net.client(stale).status(), status, "{control}");
        net.done();
    }
}

#[test]
fn while_it_is_revalidated_a_stale_object_may_be_used() {
    let mut net =
        stored(Page::of(9).etag("a").with("cache-control", "max-age=5, stale-while-revalidate=60"));
    net.pass_seconds(20);
    let stale = net.get(URL);
    assert!(net.client(stale).is_ok());
    assert_eq!(net.client(stale).cache(), "hit; ttl=-15");
    assert_eq!(net.origin.asked(URL), 2, "in the background");
    let fresh = net.get(URL);
    assert_eq!(net.client(fresh).cache(), "hit; ttl=5");
    net.done();
}

#[test]
fn a_changed_object_is_fetched_whole_in_the_background() {
    let page = || Page::of(300_000).with("cache-control", "max-age=5, stale-while-revalidate=60");
    let mut net = stored(page().etag("a"));
    net.pass_seconds(20);
    net.origin.put(URL, page().etag("b"));
    net.get(URL);
    let fresh = net.get(URL);
    assert!(net.client(fresh).is_ok());
    assert_eq!(net.client(fresh).header("etag"), "\"b\"");
    assert_eq!(net.client(fresh).cache(), "hit; ttl=5");
    net.done();
}

#[test]
fn a_background_revalidation_asks_for_the_whole_whatever_the_client_asked() {
    // Requests that join it asked for the whole, too.
    let page = || Page::of(90_000).with("cache-control", "max-age=5, stale-while-revalidate=60");
    let calls: [fn() -> Call; 3] = [
        || Call::get(URL).with("range", "bytes=5-9"),
        || Call::head(URL),
        || Call::get(URL).with("if-none-match", "\"b\""),
    ];
    for call in calls {
        let mut net = stored(page());
        net.pass_seconds(20);
        net.origin.put(URL, page().etag("b"));
        net.call(call());
        let insists = net.call(Call::get(URL).with("cache-control", "max-age=19"));
        net.settle();
        assert_eq!(net.client(insists).status(), 200);
        assert!(net.client(insists).is_ok(), "{:?}", call());
        assert_eq!(net.origin.asked(URL), 2, "{:?}", call());
        net.done();
    }
}

#[test]
fn with_a_clock_that_is_wrong_spans_still_count_but_are_not_trusted_later() {
    let mut net = Net::new();
    net.set_clock(Date::from_unix(100));
    net.origin.put(URL, Page::of(9).fresh(60).etag("a"));
    net.get(URL);
    net.pass_seconds(30);
    let hit = net.get(URL);
    assert_eq!(net.client(hit).cache(), "hit; ttl=30");
    net.set_clock(BEGIN);
    let unknown = net.get(URL);
    assert_eq!(net.client(unknown).cache(), "fwd=stale; fwd-status=304");
    let hit = net.get(URL);
    assert_eq!(net.client(hit).cache(), "hit; ttl=60");
    net.done();
}
