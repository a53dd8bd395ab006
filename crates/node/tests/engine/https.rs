//! `https` URLs of explicit clients: the driver is told to speak TLS, itself or by the far end of the uplink.

use crate::net::{Call, Net, Options, Page};
use http::Method;
use node::{Access, Caller, Dial, FetchError, Settings};

const URL: &str = "https://o.test/a";
const PLAIN: &str = "http://o.test/a";

fn net() -> Net {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(300_000).fresh(600).etag("a"));
    net
}

fn text(net: &Net, id: usize) -> String {
    String::from_utf8(net.client(id).content.clone()).expect("a sentence")
}

#[test]
fn it_is_stored_by_the_rules_of_http_and_fetched_by_tls() {
    let mut net = net();
    for (url, cache) in [(URL, "fwd=uri-miss"), (URL, "hit"), ("https://O.test.:443/a", "hit")] {
        let id = net.get(url);
        assert!(net.client(id).is_ok() && net.client(id).cache().starts_with(cache), "{url}");
    }
    assert_eq!(net.origin.asked(URL), 1);
    let seen = net.origin.last();
    assert_eq!((&seen.dial, seen.caller), (&Dial::Name("o.test".into(), 443), Caller::Explicit));
    assert_eq!(seen.headers["host"], "o.test");
    net.pass_seconds(601);
    let id = net.get(URL);
    assert_eq!(net.client(id).cache(), "fwd=stale; fwd-status=304");
    net.done();
}

#[test]
fn the_same_path_by_http_is_another_object() {
    let mut net = net();
    net.get(URL);
    net.origin.put(PLAIN, Page::of(1_000).fresh(600));
    net.origin.put("http://o.test:443/a", Page::of(2_000).fresh(600));
    for url in [PLAIN, "http://o.test:443/a"] {
        let id = net.get(url);
        assert!(net.client(id).cache().starts_with("fwd=uri-miss"), "{url}");
        assert_eq!(net.origin.asked(url), 1, "it was asked by TLS");
    }
    net.done();
}

#[test]
fn an_unsafe_request_invalidates_what_is_stored_by_its_own_scheme() {
    let mut net = net();
    net.origin.put(PLAIN, Page::of(1_000).fresh(600));
    net.get(URL);
    net.get(PLAIN);
    net.origin.put("https://o.test/b", Page::of(10).with("location", PLAIN));
    let id = net.call(Call::new(Method::POST, "https://o.test/b"));
    net.settle();
    assert!(net.client(id).is_ok());
    let id = net.get(PLAIN);
    assert!(net.client(id).cache().starts_with("hit"), "another origin invalidated it");
    net.origin.put("https://o.test/b", Page::of(10).with("location", URL));
    net.call(Call::new(Method::POST, "https://o.test/b"));
    net.settle();
    let id = net.get(URL);
    assert!(net.client(id).cache().starts_with("fwd"));
    net.done();
}

#[test]
fn credentials_and_cookies_count_as_by_http() {
    let mut net = net();
    for (name, asked) in [("authorization", 1), ("authorization", 2), ("cookie", 3), ("cookie", 3)]
    {
        let id = net.call(Call::get(URL).with(name, "x"));
        net.settle();
        assert!(net.client(id).is_ok());
        assert_eq!(net.origin.asked(URL), asked, "{name}");
    }
    net.done();
}

#[test]
fn a_body_that_breaks_off_is_resumed_by_tls() {
    let mut net = net();
    net.origin.put(URL, Page::of(300_000).fresh(600).etag("a").breaking_at(100_000));
    let id = net.call(Call::get(URL));
    net.pass_seconds(30);
    assert!(net.client(id).is_ok());
    assert_eq!(net.origin.seen[1].headers["range"], "bytes=100000-");
    assert!(net.origin.seen.iter().all(|seen| seen.url == URL), "it was resumed in clear");
    net.done();
}

#[test]
fn holes_of_a_stored_object_are_filled_by_tls() {
    let mut net = net();
    net.get(URL);
    net.restart(&Options::default());
    net.disk.corrupt = true;
    let id = net.get(URL);
    assert!(net.client(id).is_ok());
    assert!(net.origin.seen.iter().any(|seen| seen.headers.contains_key("range")));
    assert!(net.origin.seen.iter().all(|seen| seen.url == URL), "a hole was filled in clear");
    net.done();
}

#[test]
fn failures_of_tls_are_named() {
    for (error, name, sentence) in [
        (FetchError::NoTls, "proxy_configuration_error", "no list of trusted CAs"),
        (FetchError::Untrusted, "tls_certificate_error", "certificate"),
        (FetchError::NotTls, "tls_protocol_error", "speaks no TLS"),
    ] {
        let mut net = net();
        net.origin.down = Some(error);
        let id = net.get(URL);
        assert_eq!(net.client(id).status(), 502, "{error:?}");
        assert_eq!(net.client(id).header("proxy-status"), format!("hearsay; error={name}"));
        assert!(text(&net, id).contains(sentence), "{}", text(&net, id));
        assert_eq!(net.origin.seen.len(), 1, "it was tried again");
        net.done();
    }
}

#[test]
fn a_client_on_this_machine_may_no_more_than_others() {
    let mut net = net();
    for url in ["https://127.0.0.1/a", "https://o.test:8443/a"] {
        let id = net.call(Call::get(url).at_home());
        net.settle();
        assert_eq!(net.client(id).status(), 403, "{url}");
    }
    net.origin.refuses = Some((Caller::Explicit, FetchError::Forbidden(node::Forbidden::Inward)));
    let id = net.call(Call::get(URL).at_home());
    net.settle();
    assert_eq!((net.client(id).status(), net.origin.asked(URL)), (403, 1));
    net.origin.refuses = None;
    let access = Access { ports: vec![8443], ..Access::default() };
    net.set(Settings { access, ..Settings::default() });
    net.origin.put("https://o.test:8443/a", Page::of(1_000).fresh(60));
    for call in [Call::get("https://o.test:8443/a").at_home(), Call::get("https://o.test:8443/a")] {
        let id = net.call(call);
        net.settle();
        assert!(net.client(id).is_ok());
    }
    assert_eq!(net.origin.asked("https://o.test:8443/a"), 1, "they share what is stored");
    net.done();
}

#[test]
fn an_intercepted_client_cannot_ask_for_it() {
    let mut net = net();
    let id = net.call(Call { is_absolute: true, ..Call::get(URL).dialling("192.0.2.9:80") });
    net.settle();
    assert_eq!(net.client(id).status(), 400);
    assert!(net.origin.seen.is_empty());
    net.done();
}
