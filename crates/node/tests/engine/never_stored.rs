//! What must not be stored never is (RFC 9111 §3), and says why.

use crate::net::{Call, Net, Page};
use std::time::Duration;

const URL: &str = "http://o.test/a";

fn asked_twice(page: Page, call: impl Fn() -> Call) -> Net {
    let mut net = Net::new();
    net.origin.put(URL, page);
    for asked in 1..3 {
        let id = net.call(call());
        net.settle();
        assert!(net.client(id).is_whole());
        assert_eq!(net.origin.asked(URL), asked, "{:?}", net.client(id));
    }
    net.done();
    net
}

#[test]
fn responses_that_forbid_it_are_not_stored() {
    for (control, detail) in [
        ("no-store", "no-store"),
        ("no-store, max-age=60", "no-store"),
        ("private, max-age=60", "private"),
        ("private=\"x\", max-age=60", "private"),
        ("max-age=0", "unusable"),
    ] {
        let net = asked_twice(Page::of(50_000).with("cache-control", control), || Call::get(URL));
        assert!(net.client(1).cache().ends_with(&format!("detail={detail}")), "{control}");
        assert!(net.report().not_stored.occurred().any(|(reason, _)| reason.name() == detail));
    }
}

#[test]
fn requests_that_forbid_it_are_not_stored_nor_answered_from_the_store() {
    let fresh = || Page::of(500).fresh(60);
    asked_twice(fresh(), || Call::get(URL).with("cache-control", "no-store"));
    asked_twice(fresh(), || Call::get(URL).with("authorization", "Basic x"));
    asked_twice(fresh(), || Call { has_body: true, ..Call::get(URL) });
}

#[test]
fn a_cookie_is_shared_only_where_the_origin_says_how_long() {
    let modified = "Wed, 18 May 2033 03:16:40 GMT";
    asked_twice(Page::of(5).with("set-cookie", "a=b").with("last-modified", modified), || {
        Call::get(URL)
    });
    let mut net = Net::new();
    net.origin.put(URL, Page::of(5).with("set-cookie", "a=b").fresh(60));
    net.get(URL);
    net.get(URL);
    assert_eq!(net.origin.asked(URL), 1);
}

#[test]
fn a_cookie_is_set_at_the_client_that_asked_the_origin_and_at_nobody_else() {
    let mut net = Net::new();
    let page = Page::of(50_000).fresh(60).etag("a").with("set-cookie", "user=1").steady();
    net.origin.put(URL, page.with("set-cookie", "way=2").waiting(Duration::from_millis(5)));
    let first = net.call(Call::get(URL));
    let waits = net.call(Call::get(URL));
    net.pass(Duration::from_millis(6));
    let joins = net.call(Call::get(URL));
    net.settle();
    let hit = net.get(URL);
    assert_eq!(net.client(first).cookies(), ["user=1", "way=2"]);
    for other in [waits, joins, hit] {
        assert!(net.client(other).is_ok());
        assert!(net.client(other).cookies().is_empty(), "{:?}", net.client(other).head);
    }
    assert_eq!(net.origin.asked(URL), 1);
    // A 304 may set some, too.
    net.pass_seconds(70);
    let renews = net.get(URL);
    assert_eq!(net.client(renews).cache(), "fwd=stale; fwd-status=304");
    let hit = net.get(URL);
    assert_eq!(net.client(renews).cookies(), ["user=1", "way=2"]);
    assert!(net.client(hit).cookies().is_empty());
    net.done();
}

#[test]
fn what_was_asked_with_a_cookie_is_shared_only_where_the_origin_says_how_long() {
    let modified = "Wed, 18 May 2022 03:16:40 GMT";
    let page = || Page::of(5).with("last-modified", modified);
    let net = asked_twice(page(), || Call::get(URL).with("cookie", "a=b"));
    assert!(net.client(1).cache().ends_with("detail=cookie"), "{}", net.client(1).cache());
    let mut net = Net::new();
    net.origin.put(URL, page().fresh(60));
    net.call(Call::get(URL).with("cookie", "a=b"));
    net.settle();
    net.get(URL);
    assert_eq!(net.origin.asked(URL), 1);
}

#[test]
fn what_was_asked_with_a_cookie_and_is_stale_at_once_reaches_nobody_else() {
    for stale in [("cache-control", "max-age=0"), ("expires", "0")] {
        let mut net = Net::new();
        net.origin.put(URL, Page::of(5).etag("a").with(stale.0, stale.1));
        let own = net.call(Call::get(URL).with("cookie", "a=b"));
        net.settle();
        assert!(net.client(own).is_ok());
        assert!(net.client(own).cache().ends_with("detail=cookie"), "{}", net.client(own).cache());
        let other = net.call(Call::get(URL).with("cache-control", "max-stale"));
        net.settle();
        assert_eq!(net.origin.asked(URL), 2, "{}", net.client(other).cache());
        net.done();
    }
}

#[test]
fn what_was_confirmed_to_a_cookie_gets_no_lifetime_by_that() {
    let modified = "Wed, 18 May 2033 03:32:00 GMT";
    let mut net = Net::new();
    net.origin.put(URL, Page::of(5).with("last-modified", modified));
    net.get(URL);
    net.pass_seconds(90_000);
    for (asked, with_cookie) in [(2, true), (3, false), (3, false)] {
        let call = Call::get(URL);
        let id = net.call(if with_cookie { call.with("cookie", "a=b") } else { call });
        net.settle();
        assert!(net.client(id).is_ok());
        assert_eq!(net.origin.asked(URL), asked, "{}", net.client(id).cache());
    }
    net.done();
}

#[test]
fn a_part_is_not_stored_though_nobody_asked_for_one() {
    let page = Page::of(50).fresh(60).status(206);
    asked_twice(page, || Call::get(URL));
}

#[test]
fn an_object_larger_than_permitted_is_not_stored() {
    let options = || crate::net::Options { object_bytes_max: 400_000, ..Default::default() };
    for page in [Page::of(400_001).fresh(60), Page::of(1_000_000).fresh(60).chunked()] {
        let mut net = Net::with(options());
        net.origin.put(URL, page);
        for asked in 1..3 {
            let id = net.get(URL);
            assert!(net.client(id).is_ok());
            assert_eq!(net.origin.asked(URL), asked);
        }
        net.done();
    }
    for page in [Page::of(400_000).fresh(60), Page::of(400_000).fresh(60).chunked()] {
        let mut net = Net::with(options());
        net.origin.put(URL, page);
        net.get(URL);
        net.get(URL);
        assert_eq!(net.origin.asked(URL), 1, "it is as large as permitted");
    }
}

#[test]
fn an_object_too_large_to_store_still_reaches_slow_readers() {
    let mut net =
        Net::with(crate::net::Options { object_bytes_max: 400_000, ..Default::default() });
    net.origin.put(URL, Page::of(1_500_000).fresh(60).chunked());
    let slow = net.call(Call::get(URL).pace(crate::net::Pace::Slow(2000)));
    let fast = net.call(Call::get(URL));
    net.settle();
    assert!(net.client(slow).is_ok() && net.client(fast).is_ok());
    net.done();
}

#[test]
fn upgrades_are_passed_on_with_their_fields() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(0).status(101).with("upgrade", "x").with("connection", "upgrade"));
    let call = Call::get(URL).with("connection", "upgrade").with("upgrade", "x");
    let id = net.call(call);
    net.settle();
    assert_eq!((net.client(id).status(), net.client(id).header("upgrade")), (101, "x"));
    let asked = &net.origin.last().headers;
    assert_eq!(
        (&asked["upgrade"], &asked["connection"]),
        (&"x".parse().unwrap(), &"upgrade".parse().unwrap())
    );
    net.done();
}

#[test]
fn fields_that_end_here_are_neither_sent_on_nor_stored() {
    let mut net = Net::new();
    let page = Page::of(50).fresh(60).with("connection", "x-hop").with("x-hop", "1");
    net.origin.put(URL, page.with("keep-alive", "5"));
    net.call(Call::get(URL).with("connection", "x-mine").with("x-mine", "1"));
    net.settle();
    let hit = net.get(URL);
    for id in [0, hit] {
        assert_eq!(net.client(id).header("x-hop"), "");
        assert_eq!(net.client(id).header("keep-alive"), "");
    }
    let asked = &net.origin.last().headers;
    assert!(!asked.contains_key("x-mine") && asked.contains_key("via"));
}

/// A page for all, whatever the credentials with which it was asked for.
fn for_all(directive: &str) -> Page {
    Page::of(50_000).with("cache-control", &format!("max-age=60, {directive}"))
}

#[test]
fn what_is_sent_for_credentials_is_shared_where_the_origin_permits_it() {
    for directive in ["public", "must-revalidate", "s-maxage=60"] {
        let mut net = Net::new();
        net.origin.put(URL, for_all(directive));
        let with = |net: &mut Net, name| {
            let id = net.call(Call::get(URL).with("authorization", name));
            net.settle();
            assert!(net.client(id).is_ok());
            net.client(id).cache().to_owned()
        };
        assert!(with(&mut net, "Basic x").ends_with("stored"), "{directive}");
        assert!(with(&mut net, "Basic y").starts_with("hit"), "{directive}");
        let id = net.get(URL);
        assert!(net.client(id).cache().starts_with("hit"), "{directive}");
        assert_eq!(net.origin.last().headers["authorization"], "Basic x");
        assert_eq!(net.origin.asked(URL), 1);
        net.done();
    }
}

#[test]
fn credentials_get_nothing_that_was_not_said_to_be_for_all() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(500).fresh(60));
    net.get(URL);
    let id = net.call(Call::get(URL).with("authorization", "Basic x"));
    net.settle();
    assert!(net.client(id).cache().ends_with("detail=authorization"));
    assert_eq!(net.origin.asked(URL), 2);
    // Nor did that answer replace the stored one.
    let id = net.get(URL);
    assert!(net.client(id).cache().starts_with("hit"));
    net.done();
}

#[test]
fn credentials_that_select_a_response_are_not_stored_with_it() {
    let page = || for_all("public").with("vary", "accept, Authorization");
    let credentials = || Call::get(URL).with("authorization", "Basic x");
    let net = asked_twice(page(), credentials);
    assert!(net.client(1).cache().ends_with("detail=authorization"));
    asked_twice(page(), || Call::get(URL));
}

#[test]
fn requests_with_credentials_wait_for_no_other_and_no_other_for_them() {
    let mut net = Net::new();
    net.origin.put(URL, for_all("public").waiting(Duration::from_millis(50)));
    let calls = [None, Some("Basic x"), Some("Basic y"), None].map(|credentials| {
        let call = Call::get(URL);
        net.call(credentials.map_or(call.clone(), |it| call.with("authorization", it)))
    });
    net.settle();
    assert!(calls.iter().all(|id| net.client(*id).is_ok()));
    // The two without share one.
    assert_eq!(net.origin.asked(URL), 3);
    net.done();
}

#[test]
fn a_confirmation_for_credentials_does_not_share_what_it_makes_private() {
    let page = |control| Page::new("the same".into()).etag("a").with("cache-control", control);
    let mut net = Net::new();
    net.origin.put(URL, page("max-age=60, public"));
    net.get(URL);
    net.pass_seconds(70);
    net.origin.put(URL, page("max-age=60").with("x", "mine"));
    let id = net.call(Call::get(URL).with("authorization", "Basic x"));
    net.settle();
    assert_eq!(net.client(id).cache(), "fwd=stale; fwd-status=304");
    assert_eq!(net.client(id).header("x"), "mine");
    net.origin.put(URL, page("max-age=60, public"));
    let id = net.get(URL);
    assert_eq!(net.client(id).cache(), "fwd=stale; fwd-status=304", "what was private was stored");
    assert_eq!(net.client(id).header("x"), "");
    net.done();
}
