//! The uplink, or the resolver, is gone: what is stored is served, and nothing else changes.

use crate::classes::options;
use crate::net::{Call, Net, Page};
use node::{Dial, FetchError};
use std::time::Duration;

/// A page that stays fresh, one that becomes stale, and an index of a class, on one host that is dialled at `ADDRESS`.
const FRESH: &str = "http://o.test/fresh";
const PAGE: &str = "http://o.test/page";
const INDEX: &str = "http://o.test/dists/InRelease";
const ADDRESS: &str = "192.0.2.1:80";

const TABLE: &str = r#"
name = "apt"
hosts = ["o.test", "p.test"]

[[changing]]
paths = ["/dists/**"]
lifetime = "5m"
stale = "1d"
"#;

fn net() -> Net {
    let mut net = Net::with(options(TABLE));
    net.names.insert("o.test".into(), vec![[192, 0, 2, 1].into(), [192, 0, 2, 2].into()]);
    net.origin.put(FRESH, Page::of(5_000).fresh(36_000));
    net.origin.put(PAGE, Page::of(5_000).fresh(60).etag("1"));
    net.origin.put(INDEX, Page::of(5_000).etag("1"));
    net
}

/// Asks for it by interception, and returns the status and what `Cache-Status` says.
fn dialling(net: &mut Net, url: &str, address: &str) -> (u16, String) {
    asking(net, Call::get(url).dialling(address))
}

fn asking(net: &mut Net, call: Call) -> (u16, String) {
    let id = net.call(call);
    net.settle();
    let client = net.client(id);
    (client.status(), client.cache().to_owned())
}

fn explicit(net: &mut Net, url: &str) -> String {
    asking(net, Call::get(url)).1
}

fn stored(net: &mut Net) {
    for url in [FRESH, PAGE, INDEX] {
        assert!(dialling(net, url, ADDRESS).1.ends_with("stored"), "{url}");
    }
}

fn notices(net: &mut Net) -> Vec<String> {
    std::mem::take(&mut net.notices)
}

#[test]
fn without_a_resolver_who_dials_what_was_the_host_has_what_is_stored_and_nothing_is_stored() {
    let mut net = net();
    stored(&mut net);
    net.resolver_is_silent = true;
    net.pass_seconds(61);
    for address in [ADDRESS, "192.0.2.2:80", "[::ffff:192.0.2.2]:80", "[64:ff9b::192.0.2.1]:80"] {
        let (status, told) = dialling(&mut net, FRESH, address);
        assert!(status == 200 && told.starts_with("hit; ttl="), "{address}: {told}");
    }
    net.pass_seconds(300);
    assert_eq!(dialling(&mut net, INDEX, ADDRESS).1, "hit; detail=unreachable");
    let before = net.origin.seen.len();
    net.origin.put("http://o.test/new", Page::of(9).fresh(60));
    for asked in 1..3 {
        let told = dialling(&mut net, "http://o.test/new", ADDRESS).1;
        assert_eq!(told, "fwd=bypass; fwd-status=200; detail=host-unknown");
        assert_eq!(net.origin.last().dial, Dial::Address(ADDRESS.parse().unwrap()));
        assert_eq!(net.origin.seen.len(), before + asked, "it is not stored");
    }
    // What its class does not let be stale is asked for where the client dialled.
    let told = dialling(&mut net, PAGE, ADDRESS).1;
    assert_eq!(told, "fwd=bypass; fwd-status=200; detail=host-unknown");
    net.done();
}

#[test]
fn without_a_resolver_who_dials_elsewhere_gets_what_is_there() {
    let mut net = net();
    stored(&mut net);
    net.resolver_is_silent = true;
    net.pass_seconds(61);
    for address in ["192.0.2.9:80", "[2001:db8::1]:80"] {
        let told = dialling(&mut net, FRESH, address).1;
        assert_eq!(told, "fwd=bypass; fwd-status=200; detail=host-unknown");
        assert_eq!(net.origin.last().dial, Dial::Address(address.parse().unwrap()));
    }
    assert!(dialling(&mut net, FRESH, "192.0.2.1:8080").1.contains("host-mismatch"));
    // A host that nobody has dialled before.
    net.origin.put("http://p.test/", Page::of(9).fresh(60));
    assert!(dialling(&mut net, "http://p.test/", ADDRESS).1.contains("host-unknown"));
    net.done();
}

#[test]
fn a_client_waits_for_a_silent_resolver_once_and_its_return_is_seen_within_five_seconds() {
    let mut net = net();
    stored(&mut net);
    net.resolver_is_silent = true;
    net.pass_seconds(61);
    let waited = |net: &mut Net| {
        let before = net.now();
        dialling(net, FRESH, ADDRESS);
        net.now() - before
    };
    assert!(waited(&mut net) >= Duration::from_secs(2));
    assert!(waited(&mut net) < Duration::from_millis(500));
    net.pass_seconds(6);
    net.resolver_is_silent = false;
    assert!(waited(&mut net) < Duration::from_millis(500), "it is asked beside");
    net.origin.put("http://o.test/new", Page::of(9).fresh(60));
    assert!(dialling(&mut net, "http://o.test/new", ADDRESS).1.ends_with("stored"));
    net.done();
}

#[test]
fn what_was_remembered_never_overrules_an_answer() {
    let mut net = net();
    stored(&mut net);
    net.resolver_is_silent = true;
    net.pass_seconds(61);
    assert!(dialling(&mut net, FRESH, ADDRESS).1.starts_with("hit"));
    net.resolver_is_silent = false;
    for answer in [vec![[192, 0, 2, 7].into()], vec![]] {
        net.names.insert("o.test".into(), answer);
        net.pass_seconds(61);
        dialling(&mut net, FRESH, ADDRESS);
        let told = dialling(&mut net, FRESH, ADDRESS).1;
        assert!(told.contains("host-mismatch"), "{told}");
    }
    net.done();
}

#[test]
fn the_addresses_are_known_after_a_restart() {
    let mut net = net();
    stored(&mut net);
    net.pass_seconds(70);
    net.restart(&options(TABLE));
    net.resolver_is_silent = true;
    assert!(dialling(&mut net, FRESH, ADDRESS).1.starts_with("hit; ttl="));
    assert!(dialling(&mut net, FRESH, "192.0.2.9:80").1.contains("host-unknown"));
    net.done();
}

#[test]
fn without_an_uplink_all_that_is_stored_is_served_at_once_and_an_origin_is_dialled_until_one_answers()
 {
    let mut net = net();
    stored(&mut net);
    net.origin.put("http://p.test/a", Page::of(9).fresh(60).etag("1"));
    assert!(explicit(&mut net, "http://p.test/a").ends_with("stored"));
    net.pass_seconds(400);
    net.origin.down = Some(FetchError::Unreachable);
    assert_eq!(explicit(&mut net, PAGE), "fwd=stale; detail=unreachable");
    let said = notices(&mut net);
    assert!(
        matches!(&said[..], [one] if one.contains("o.test") && one.contains("p.test")),
        "{said:?}"
    );
    assert!(!net.report().uplink_up);
    let before = net.origin.seen.len();
    for url in [INDEX, PAGE, FRESH] {
        assert!(explicit(&mut net, url).starts_with("hit"), "{url}: also what is of no class");
    }
    assert_eq!(net.origin.seen.len(), before, "nobody is asked");
    net.pass_seconds(30);
    let report = net.report();
    assert!((30..32).contains(&report.uplink_down_seconds), "{}", report.uplink_down_seconds);
    assert!(notices(&mut net).is_empty(), "it is said once");
    net.origin.down = None;
    // A probe is sent each 5 s, and answered soon after.
    net.pass(Duration::from_millis(5_010));
    assert!(net.report().uplink_up && net.report().uplink_down_seconds == 0);
    assert!(matches!(&notices(&mut net)[..], [one] if one.contains("is back")));
    assert!(explicit(&mut net, PAGE).starts_with("fwd=stale; fwd-status=304"));
    assert!(explicit(&mut net, INDEX).starts_with("fwd=stale; fwd-status=304"));
    net.done();
}

#[test]
fn what_may_not_be_stale_is_not_served_without_an_uplink() {
    let mut net = net();
    let strict = "http://o.test/strict";
    net.origin
        .put(strict, Page::of(9).with("cache-control", "max-age=5, must-revalidate").etag("1"));
    explicit(&mut net, strict);
    stored(&mut net);
    net.pass_seconds(400);
    net.origin.down = Some(FetchError::Unreachable);
    explicit(&mut net, PAGE);
    explicit(&mut net, PAGE);
    assert!(!net.report().uplink_up);
    assert_eq!(asking(&mut net, Call::get(strict)).0, 502);
    assert_eq!(asking(&mut net, Call::get("http://o.test/none")).0, 502, "it is tried");
    net.done();
}

#[test]
fn while_an_origin_is_silent_clients_get_what_is_stale_and_the_answer_is_for_the_next() {
    let mut net = net();
    stored(&mut net);
    net.pass_seconds(400);
    let late = Page::of(6_000).etag("2").waiting(Duration::from_secs(8));
    net.origin.put(INDEX, late);
    let ids = [net.call(Call::get(INDEX)), net.call(Call::get(INDEX))];
    net.pass(Duration::from_secs(2));
    assert!(ids.iter().all(|id| net.client(*id).head.is_none()), "they wait");
    net.say_silent();
    for id in ids {
        assert_eq!(net.client(id).cache(), "fwd=stale; detail=unreachable");
    }
    assert_eq!(explicit(&mut net, INDEX), "hit; detail=unreachable");
    net.pass_seconds(7);
    let told = explicit(&mut net, INDEX);
    assert!(told.starts_with("hit; ttl="), "the request went on: {told}");
    assert_eq!(net.origin.asked(INDEX), 2);
    net.done();
}

#[test]
fn who_may_have_nothing_stale_waits_for_a_silent_origin() {
    let mut net = net();
    let strict = "http://o.test/strict";
    net.origin
        .put(strict, Page::of(9).with("cache-control", "max-age=5, must-revalidate").etag("1"));
    explicit(&mut net, strict);
    net.pass_seconds(400);
    net.origin.put(strict, Page::of(8).fresh(60).waiting(Duration::from_secs(8)));
    let ids = [net.call(Call::get(strict)), net.call(Call::get("http://o.test/fresh"))];
    net.pass(Duration::from_secs(2));
    net.say_silent();
    assert!(net.client(ids[0]).head.is_none());
    net.settle();
    assert_eq!(net.client(ids[0]).cache(), "fwd=stale; fwd-status=200; stored");
    assert!(net.client(ids[1]).cache().ends_with("stored"));
    net.done();
}

#[test]
fn who_asks_for_what_is_not_stored_waits_for_a_silent_origin_only_while_others_are_reached() {
    let mut net = net();
    stored(&mut net);
    net.origin.put("http://o.test/new", Page::of(9).fresh(60).waiting(Duration::from_secs(30)));
    let id = net.call(Call::get("http://o.test/new"));
    net.pass(Duration::from_secs(2));
    net.say_silent();
    net.pass(Duration::from_secs(1));
    assert!(net.client(id).head.is_none() && net.report().uplink_up, "another origin is reached");
    net.settle();
    assert!(net.client(id).is_ok());
    net.origin.down = Some(FetchError::Unreachable);
    net.pass_seconds(400);
    explicit(&mut net, PAGE);
    assert!(!net.report().uplink_up);
    net.origin.down = None;
    net.origin.put("http://o.test/never", Page::of(9).waiting(Duration::from_secs(30)));
    let id = net.call(Call::get("http://o.test/never"));
    net.pass(Duration::from_secs(2));
    net.say_silent();
    assert_eq!(net.client(id).status(), 504);
    net.pass_seconds(60);
    net.done();
}

#[test]
fn nothing_is_dialled_while_all_is_well() {
    let mut net = net();
    stored(&mut net);
    net.pass_seconds(400);
    explicit(&mut net, INDEX);
    assert!(net.report().uplink_up);
    assert_eq!(net.probes, 0);
}
