//! `HEAD`, and responses without content.

use crate::net::{Call, Net, Page};

const URL: &str = "http://o.test/a";

#[test]
fn head_is_answered_from_a_stored_get() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(90_000).fresh(60).etag("a"));
    net.get(URL);
    let head = net.call(Call::head(URL));
    net.settle();
    let client = net.client(head);
    assert_eq!((client.status(), client.header("content-length")), (200, "90000"));
    assert_eq!((client.header("etag"), client.cache()), ("\"a\"", "hit; ttl=60"));
    assert!(client.is_whole() && client.content.is_empty());
    assert_eq!(net.origin.asked(URL), 1);
    net.done();
}

#[test]
fn head_of_what_is_not_stored_is_relayed_and_stores_nothing() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(90_000).fresh(60));
    for asked in 1..3 {
        let head = net.call(Call::head(URL));
        net.settle();
        assert_eq!(net.client(head).header("content-length"), "90000");
        assert!(net.client(head).is_whole());
        assert_eq!(net.origin.asked(URL), asked);
    }
    let whole = net.get(URL);
    assert!(net.client(whole).is_ok());
    net.done();
}

#[test]
fn head_of_a_stale_object_asks_whether_it_holds() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(90_000).fresh(10).etag("a"));
    net.get(URL);
    net.pass_seconds(20);
    let head = net.call(Call::head(URL));
    net.settle();
    assert_eq!(net.client(head).status(), 200);
    assert_eq!(net.client(head).header("content-length"), "90000");
    assert_eq!(net.origin.last().method, http::Method::HEAD);
    net.done();
}

#[test]
fn responses_without_content_are_stored_like_others() {
    for (page, length) in [
        (Page::of(0).fresh(60), "0"),
        (Page::of(0).fresh(60).chunked(), "0"),
        (Page::of(0).fresh(60).status(204), ""),
        (Page::of(0).fresh(60).status(404), "0"),
        (Page::of(0).fresh(60).status(301).with("location", "/b"), "0"),
    ] {
        let mut net = Net::new();
        let status = page.status;
        net.origin.put(URL, page);
        net.get(URL);
        let hit = net.get(URL);
        let client = net.client(hit);
        assert_eq!((client.status(), client.header("content-length")), (status, length));
        assert!(client.is_whole());
        assert_eq!(client.cache(), "hit; ttl=60");
        assert_eq!(net.origin.asked(URL), 1);
        net.done();
    }
}

#[test]
fn a_body_whose_length_is_not_announced_is_stored_with_its_length() {
    for length in [1, 2048, 64 * 1024, 300_000] {
        let mut net = Net::new();
        net.origin.put(URL, Page::of(length).fresh(60).chunked());
        let first = net.get(URL);
        assert!(net.client(first).is_ok());
        assert_eq!(net.client(first).head.as_ref().and_then(|head| head.length), None);
        let hit = net.get(URL);
        assert!(net.client(hit).is_ok());
        assert_eq!(net.client(hit).header("content-length"), length.to_string());
        net.done();
    }
}
