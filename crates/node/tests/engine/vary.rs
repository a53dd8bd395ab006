//! `Vary`: each variant for those who asked for it (RFC 9111 §4.1).

use crate::net::{Call, Net, Page};
use std::time::Duration;

const URL: &str = "http://o.test/a";

/// A page in German and in French; the head takes a while.
fn two_languages() -> Net {
    let mut net = Net::new();
    for language in ["de", "fr"] {
        let page = Page::of(50_000).fresh(60).with("vary", "Accept-Language");
        let page = page.with("content-language", language).etag(language);
        let page = page.waiting(Duration::from_millis(5));
        net.origin.add(URL, page.only_for("accept-language", language));
    }
    net
}

fn in_language(language: &str) -> Call {
    Call::get(URL).with("accept-language", language)
}

#[test]
fn each_variant_is_stored_and_served_beside_the_others() {
    let mut net = two_languages();
    for (language, cache) in [
        ("de", "fwd=uri-miss; fwd-status=200; stored"),
        ("fr", "fwd=vary-miss; fwd-status=200; stored"),
        ("de", "hit; ttl=60"),
        ("fr", "hit; ttl=60"),
    ] {
        let id = net.call(in_language(language));
        net.settle();
        assert!(net.client(id).is_ok());
        assert_eq!(net.client(id).header("content-language"), language);
        assert_eq!(net.client(id).cache(), cache);
    }
    assert_eq!(net.origin.asked(URL), 2);
    net.done();
}

#[test]
fn who_waits_for_another_variant_fetches_alone() {
    let mut net = two_languages();
    let ids: Vec<_> = ["de", "fr", "de", "fr"].map(|l| net.call(in_language(l))).into();
    net.settle();
    for (id, language) in ids.into_iter().zip(["de", "fr", "de", "fr"]) {
        assert!(net.client(id).is_ok());
        assert_eq!(net.client(id).header("content-language"), language);
    }
    net.done();
}

#[test]
fn who_waits_behind_a_client_that_left_gets_its_own_variant() {
    let mut net = two_languages();
    let first = net.call(in_language("de"));
    let second = net.call(in_language("fr"));
    net.pass(Duration::from_millis(2));
    net.leave(first);
    net.settle();
    assert_eq!(net.client(second).header("content-language"), "fr");
    assert!(net.client(second).is_ok());
    net.done();
}

#[test]
fn a_transfer_under_way_is_not_joined_by_who_wants_another_variant() {
    let mut net = two_languages();
    let slow = net.call(in_language("de").pace(crate::net::Pace::Stalls(1000)));
    net.settle();
    let other = net.call(in_language("fr"));
    net.settle();
    assert_eq!(net.client(other).header("content-language"), "fr");
    net.hurry(slow);
    net.done();
}

#[test]
fn a_stale_variant_does_not_stand_in_for_another() {
    let mut net = Net::new();
    let page = |language: &str| {
        let control = "max-age=5, stale-if-error=600";
        let page = Page::of(5_000).with("cache-control", control).with("vary", "accept-language");
        page.etag(language).waiting(Duration::from_millis(5)).only_for("accept-language", language)
    };
    net.origin.add(URL, page("de"));
    net.call(in_language("de"));
    net.pass_seconds(20);
    net.origin.put(URL, Page::of(9).status(503).waiting(Duration::from_millis(5)));
    let has = net.call(in_language("de"));
    let lacks = net.call(in_language("fr"));
    net.settle();
    assert!(net.client(has).end.is_some());
    assert_eq!(net.client(lacks).status(), 503);
    net.pass_seconds(10);
    net.origin.down = Some(node::FetchError::Unreachable);
    let has = net.call(in_language("de"));
    let lacks = net.call(in_language("fr"));
    net.settle();
    assert_eq!((net.client(has).status(), net.client(lacks).status()), (200, 502));
    net.done();
}

#[test]
fn what_varies_by_everything_is_not_stored() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(500).fresh(60).with("vary", "*"));
    net.get(URL);
    let again = net.get(URL);
    assert_eq!(net.client(again).cache(), "fwd=uri-miss; fwd-status=200; detail=vary");
    assert_eq!(net.origin.asked(URL), 2);
    net.done();
}
