//! Who may use it, and what it is not: an open proxy, a way in, an endless loop.

use crate::net::{Call, End, Net, Pace, Page};
use http::Method;
use node::{Dial, Settings};

const URL: &str = "http://o.test/a";

#[test]
fn strangers_are_refused_and_those_who_are_allowed_are_not() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(5_000).fresh(60));
    for (from, status) in
        [("8.8.8.8", 403), ("192.0.2.7", 200), ("10.0.0.1", 200), ("fe80::1", 200)]
    {
        let id = net.call(Call { from: from.parse().unwrap(), ..Call::get(URL) });
        net.settle();
        assert_eq!(net.client(id).status(), status, "{from}");
        assert!(net.client(id).is_whole());
    }
    net.done();
}

#[test]
fn other_clients_may_be_allowed_while_it_runs_and_who_is_served_goes_on() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(400_000).fresh(60));
    let call = |from: &str| Call { from: from.parse().unwrap(), ..Call::get(URL) };
    let old = net.call(call("192.0.2.7").pace(Pace::Stalls(50_000)));
    net.settle();
    let allow = vec!["198.51.100.0/24".parse().unwrap()];
    net.set(Settings { allow, ..Settings::default() });
    let (new, again) = (net.call(call("198.51.100.7")), net.call(call("192.0.2.7")));
    net.hurry(old);
    assert_eq!((net.client(new).status(), net.client(again).status()), (200, 403));
    assert!(net.client(old).is_ok(), "{:?}", net.client(old));
    net.done();
}

#[test]
fn a_request_that_was_here_before_is_refused() {
    let mut net = Net::new();
    net.get(URL);
    let via = net.origin.last().headers["via"].to_str().unwrap().to_owned();
    for (via, status) in [(via, 508), ("1.1 hearsay".into(), 404)] {
        let id = net.call(Call::get(URL).with("via", &format!("1.1 other, {via}")));
        net.settle();
        assert_eq!(net.client(id).status(), status, "others may bear the same name");
    }
    net.done();
}

#[test]
fn connect_is_a_tunnel_for_clients_of_the_proxy_alone() {
    let mut net = Net::new();
    let tunnel = net.call(Call::new(Method::CONNECT, "o.test:443"));
    net.settle();
    assert_eq!(net.client(tunnel).end, Some(End::Tunnelled));
    assert_eq!(net.tunnels, [Dial::Name("o.test".into(), 443)]);
    for call in [Call::new(Method::CONNECT, "o.test"), Call::new(Method::CONNECT, "o.test:0")] {
        let id = net.call(call);
        net.settle();
        assert_eq!(net.client(id).status(), 400);
    }
    net.done();
}

#[test]
fn what_is_not_asked_as_of_a_proxy_is_refused() {
    let mut net = Net::new();
    for url in ["/a", "ftp://o.test/a", "http://user@o.test/a"] {
        let id = net.call(Call::get(url));
        net.settle();
        assert_eq!(net.client(id).status(), 400, "{url}");
    }
    assert!(net.origin.seen.is_empty());
    net.done();
}

#[test]
fn spellings_of_one_url_are_one_object() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(5_000).fresh(60));
    for url in [URL, "http://O.TEST/a", "http://o.test:80/a", "HTTP://o.test./a"] {
        let id = net.get(url);
        assert!(net.client(id).is_ok(), "{url}");
    }
    assert_eq!(net.origin.seen.len(), 1);
}
