//! What must not be stored never is (RFC 9111 §3), and says why.

use crate::net::{Call, Net, Page};

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
        assert!(net.report().not_stored.contains_key(detail));
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
    let mut net = Net::with(options());
    net.origin.put(URL, Page::of(400_000).fresh(60).chunked());
    net.get(URL);
    net.get(URL);
    assert_eq!(net.origin.asked(URL), 1);
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
