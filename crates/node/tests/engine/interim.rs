//! Interim responses (RFC 9110 §15.2): they go to the client whose request the origin answers, and nowhere else.

use crate::net::{Call, Net, Page};
use http::Version;

const URL: &str = "http://o.test/a";

fn page() -> Page {
    Page::of(500).fresh(60).saying(102, "x-step", "1").saying(103, "link", "</style.css>")
}

/// The statuses of the interim responses that a client got.
fn statuses(net: &Net, id: usize) -> Vec<u16> {
    net.client(id).interims.iter().map(|(status, _)| *status).collect()
}

#[test]
fn they_come_before_the_response_and_are_not_stored() {
    let mut net = Net::new();
    net.origin.put(URL, page());
    let first = net.get(URL);
    assert!(net.client(first).is_ok());
    assert_eq!(statuses(&net, first), [102, 103]);
    assert_eq!(net.client(first).interims[1].1["link"], "</style.css>");
    assert!(net.client(first).interims[1].1.contains_key("via"));
    assert_eq!(net.client(first).header("link"), "");
    let second = net.get(URL);
    assert!(net.client(second).is_ok());
    assert_eq!((statuses(&net, second), net.origin.seen.len()), (vec![], 1));
    assert_eq!(net.client(second).header("link"), "");
    net.done();
}

#[test]
fn what_is_not_stored_has_them_too() {
    let mut net = Net::new();
    net.origin.put(URL, page().with("cache-control", "no-store"));
    for call in [Call::get(URL), Call::get(URL).with("authorization", "Basic x")] {
        let id = net.call(call);
        net.settle();
        assert_eq!(statuses(&net, id), [102, 103]);
    }
    net.done();
}

#[test]
fn who_joined_the_request_and_who_speaks_http_1_0_gets_none() {
    let mut net = Net::new();
    net.origin.put(URL, page());
    let (leads, joins) = (net.call(Call::get(URL)), net.call(Call::get(URL)));
    net.settle();
    assert!(net.client(leads).is_ok() && net.client(joins).is_ok());
    assert_eq!((statuses(&net, leads), statuses(&net, joins)), (vec![102, 103], vec![]));
    assert_eq!(net.origin.seen.len(), 1);
    let mut old = Call::get("http://o.test/b");
    old.version = Version::HTTP_10;
    net.origin.put("http://o.test/b", page());
    let old = net.call(old);
    net.settle();
    assert!(net.client(old).is_ok());
    assert!(statuses(&net, old).is_empty());
    net.done();
}

#[test]
fn their_fields_of_one_hop_end_here() {
    let mut net = Net::new();
    let hops = Page::of(5).saying(103, "connection", "close").saying(103, "content-length", "9");
    net.origin.put(URL, hops);
    let id = net.get(URL);
    let only_via = |headers: &http::HeaderMap| headers.len() == 1 && headers.contains_key("via");
    assert_eq!(net.client(id).interims.len(), 2);
    assert!(net.client(id).interims.iter().all(|(_, headers)| only_via(headers)));
    net.done();
}
