//! Other methods go to the origin, and make what is stored doubtful (RFC 9111 §4.4).

use crate::net::{Call, Net, Options, Page};
use http::Method;

const URL: &str = "http://o.test/a";

fn stored() -> Net {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(5_000).fresh(600).etag("a"));
    net.get(URL);
    net
}

fn change(net: &mut Net, url: &str) -> usize {
    let id = net.call(Call { has_body: true, ..Call::new(Method::POST, url) });
    net.settle();
    id
}

#[test]
fn a_successful_post_makes_the_stored_object_be_asked_about() {
    let mut net = stored();
    let post = change(&mut net, URL);
    assert_eq!(net.client(post).cache(), "fwd=method; fwd-status=200; detail=method");
    net.get(URL);
    assert_eq!(net.origin.asked(URL), 3);
    let hit = net.get(URL);
    assert!(net.client(hit).cache().starts_with("hit"), "it was confirmed");
    net.done();
}

#[test]
fn it_does_so_too_for_what_only_the_catalogue_has() {
    let mut net = stored();
    net.restart(&Options::default());
    change(&mut net, URL);
    let id = net.get(URL);
    assert!(net.client(id).is_ok());
    assert_eq!(net.origin.asked(URL), 3);
    net.done();
}

#[test]
fn it_does_so_even_while_the_catalogue_is_being_asked() {
    let mut net = stored();
    let slow = Options { disk_delay: std::time::Duration::from_millis(50), ..Options::default() };
    net.restart_slowly(&slow);
    let post = net.call(Call { has_body: true, ..Call::new(Method::POST, URL) });
    let during = net.call(Call::get(URL));
    net.settle();
    assert!(net.client(post).is_whole() && net.client(during).is_ok());
    net.origin.put(URL, Page::of(6_000).fresh(600).etag("b"));
    change(&mut net, URL);
    let id = net.get(URL);
    assert_eq!(net.client(id).header("etag"), "\"b\"");
}

#[test]
fn a_failed_post_leaves_it_alone() {
    let mut net = stored();
    net.origin.put(URL, Page::of(5).status(500));
    change(&mut net, URL);
    let hit = net.get(URL);
    assert!(net.client(hit).cache().starts_with("hit"));
}

#[test]
fn what_location_names_on_the_same_host_is_doubtful_too() {
    for (location, asked) in [("/a", 2), ("http://o.test/a", 2), ("http://other.test/a", 1)] {
        let mut net = stored();
        net.origin.put("http://o.test/form", Page::of(0).status(201).with("location", location));
        change(&mut net, "http://o.test/form");
        net.get(URL);
        assert_eq!(net.origin.asked(URL), asked, "{location}");
    }
}

#[test]
fn safe_methods_leave_it_alone_and_are_relayed() {
    let mut net = stored();
    net.call(Call::new(Method::OPTIONS, URL));
    net.settle();
    let hit = net.get(URL);
    assert!(net.client(hit).cache().starts_with("hit"));
    assert_eq!(net.origin.asked(URL), 2);
    net.done();
}
