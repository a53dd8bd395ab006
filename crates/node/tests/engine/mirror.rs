//! Requests of a mirror's clients: redirects and tokens are dealt with inside.

use crate::classes::options;
use crate::net::{Call, Net, Page};
use http::{HeaderMap, Method};

const TABLE: &str = r#"
name = "oci"
hosts = ["r.test", "auth.test"]
redirects = ["*.cdn.test", "*.odd.test:8443", "r.test:8443"]

[[immutable]]
paths = ["/v2/**/blobs/sha256:*"]
digest = "last-segment"

[[changing]]
paths = ["/v2/**/manifests/*"]
lifetime = "5m"
stale = "1d"
negotiated = true
"#;

const MANIFEST: &str = "https://r.test/v2/library/x/manifests/1";
const OTHER: &str = "https://r.test/v2/library/x/manifests/2";
const TOKEN: &str = "https://auth.test/token?service=r.test&scope=repository:library/x:pull";
const CHALLENGE: &str = "Bearer realm=\"https://auth.test/token\",service=\"r.test\",scope=\"repository:library/x:pull\"";

fn net() -> Net {
    Net::with(options(TABLE))
}

fn mirrored(net: &mut Net, url: &str) -> usize {
    let id = net.call(Call::get(url).by_mirror(None));
    net.settle();
    id
}

fn redirect(status: u16, to: &str) -> Page {
    Page::of(0).status(status).with("location", to)
}

#[test]
fn a_redirect_is_followed_and_its_content_is_stored_under_the_first_url() {
    for (status, to) in [
        (301, "https://1.cdn.test/a?sig=x"),
        (302, "//1.cdn.test/a?sig=x"),
        (303, "/v2/elsewhere"),
        (307, "https://r.test/b"),
        (308, "https://2.odd.test:8443/c"),
    ] {
        let mut net = net();
        net.origin.put(MANIFEST, redirect(status, to));
        let place = match to.strip_prefix("//") {
            Some(rest) => format!("https://{rest}"),
            None if to.starts_with('/') => format!("https://r.test{to}"),
            None => to.to_owned(),
        };
        net.origin.put(&place, Page::of(200_000));
        let id = mirrored(&mut net, MANIFEST);
        assert!(net.client(id).is_ok() && net.client(id).cache().contains("stored"), "{to}");
        let id = mirrored(&mut net, MANIFEST);
        assert!(net.client(id).cache().starts_with("hit"));
        assert_eq!((net.origin.seen.len(), net.report().detours), (2, 1));
        assert_eq!(net.origin.busy(), 0, "the first response was left open");
        net.done();
    }
}

#[test]
fn a_client_of_the_proxy_gets_redirects_and_challenges_as_they_are() {
    let mut net = net();
    net.origin.put(MANIFEST, redirect(307, "https://1.cdn.test/a"));
    net.origin.put(OTHER, Page::of(0).status(401).with("www-authenticate", CHALLENGE));
    let (moved, denied) = (net.get(MANIFEST), net.get(OTHER));
    assert_eq!((net.client(moved).status(), net.client(denied).status()), (307, 401));
    assert_eq!(net.client(moved).header("location"), "https://1.cdn.test/a");
    net.done();
}

/// The credentials that each request to an origin had, for a client's request with all kinds of them.
fn credentials_along(hops: &[(&str, &str)]) -> Vec<usize> {
    const KINDS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];
    let mut net = net();
    for (from, to) in hops {
        net.origin.put(from, redirect(302, to));
    }
    let (_, last) = hops.last().expect("a hop");
    net.origin.put(last, Page::of(1_000));
    let call = Call::get(hops[0].0).by_mirror(None);
    let id = net.call(KINDS.iter().fold(call, |call, kind| call.with(kind, "secret")));
    net.settle();
    assert!(net.client(id).is_ok(), "{hops:?}");
    let places: Vec<_> = net.origin.seen.iter().skip(1).map(|seen| seen.url.as_str()).collect();
    assert_eq!(places, hops.iter().map(|(_, to)| *to).collect::<Vec<_>>());
    let has =
        |headers: &HeaderMap| KINDS.iter().filter(|kind| headers.contains_key(**kind)).count();
    let counts = net.origin.seen.iter().map(|seen| has(&seen.headers)).collect();
    net.done();
    counts
}

#[test]
fn credentials_stay_with_the_origin_that_they_were_sent_to() {
    let (near, cdn) = ("https://r.test/v2/other", "https://1.cdn.test/a?X-Amz-Signature=1");
    // `Proxy-Authorization` is for this node alone.
    assert_eq!(credentials_along(&[(MANIFEST, near)]), [2, 2], "it stays with its origin");
    assert_eq!(credentials_along(&[(MANIFEST, cdn)]), [2, 0], "another host");
    let other_port = "https://r.test:8443/c";
    assert_eq!(credentials_along(&[(MANIFEST, other_port)]), [2, 0], "another port");
    assert_eq!(credentials_along(&[(MANIFEST, near), (near, cdn)]), [2, 2, 0], "later");
    assert_eq!(credentials_along(&[(MANIFEST, cdn), (cdn, near)]), [2, 0, 0], "and not back");
}

#[test]
fn a_redirect_elsewhere_is_refused_with_a_sentence() {
    for to in [
        "https://evil.test/a",
        "http://1.cdn.test/a",
        "https://1.cdn.test:444/a",
        "https://10.0.0.1/a",
        "https://127.0.0.1:8443/",
        "ftp://1.cdn.test/",
        "a/relative/path",
        "https://",
        MANIFEST,
    ] {
        let mut net = net();
        net.origin.put(MANIFEST, redirect(302, to));
        let id = mirrored(&mut net, MANIFEST);
        assert_eq!(net.client(id).status(), 502, "{to}");
        let told = String::from_utf8(net.client(id).content.clone()).expect("a sentence");
        assert!(told.contains("[mirror] allow"), "{told}");
        assert!(net.origin.seen.iter().all(|seen| seen.url == MANIFEST), "{to}");
        assert!(net.origin.seen.len() <= 6);
        net.done();
    }
}

#[test]
fn a_token_that_anyone_gets_is_fetched_and_used_again() {
    let mut net = net();
    for (number, url) in [MANIFEST, OTHER].into_iter().enumerate() {
        net.origin.put(url, Page::of(0).status(401).with("www-authenticate", CHALLENGE));
        net.origin.add(url, Page::of(5_000 + number).only_for("authorization", "Bearer abc"));
    }
    net.origin
        .put(TOKEN, Page::new((&br#"{"token":"abc","expires_in":300}"#[..]).into()).unchecked());
    let id = mirrored(&mut net, MANIFEST);
    assert!(net.client(id).is_ok() && net.client(id).cache().contains("stored"));
    assert_eq!(net.origin.seen.len(), 3);
    let id = mirrored(&mut net, OTHER);
    assert!(net.client(id).is_ok());
    assert_eq!(net.origin.seen.len(), 4, "the token served once more, without a challenge");
    net.pass_seconds(301);
    let id = mirrored(&mut net, OTHER);
    assert!(net.client(id).is_ok());
    assert_eq!(net.origin.asked(TOKEN), 2, "it had expired");
    net.done();
}

#[test]
fn a_token_is_not_shown_to_the_place_of_a_redirect() {
    let mut net = net();
    net.origin.put(MANIFEST, Page::of(0).status(401).with("www-authenticate", CHALLENGE));
    let to = redirect(307, "https://1.cdn.test/a").only_for("authorization", "Bearer abc");
    net.origin.add(MANIFEST, to);
    net.origin.put("https://1.cdn.test/a", Page::of(1_000));
    net.origin.put(TOKEN, Page::new((&br#"{"token":"abc"}"#[..]).into()).unchecked());
    let id = mirrored(&mut net, MANIFEST);
    assert!(net.client(id).is_ok());
    assert!(net.origin.last().headers.get("authorization").is_none());
    net.done();
}

#[test]
fn who_wants_more_than_a_token_for_anyone_is_left_to_the_client() {
    for (challenge, status) in
        [("Basic realm=\"x\"", 401), ("Bearer realm=\"https://evil.test/token\"", 502)]
    {
        let mut net = net();
        net.origin.put(MANIFEST, Page::of(9).status(401).with("www-authenticate", challenge));
        let id = mirrored(&mut net, MANIFEST);
        assert_eq!(net.client(id).status(), status, "{challenge}");
        assert_eq!((net.origin.seen.len(), net.origin.busy()), (1, 0));
        net.done();
    }
    // A client with credentials of its own asks for its own token.
    let mut net = net();
    net.origin.put(MANIFEST, Page::of(9).status(401).with("www-authenticate", CHALLENGE));
    let call = Call::get(MANIFEST).by_mirror(None).with("authorization", "Bearer own");
    let id = net.call(call);
    net.settle();
    assert_eq!((net.client(id).status(), net.origin.seen.len()), (401, 1));
    net.done();
}

#[test]
fn a_token_that_was_withdrawn_is_replaced_at_once() {
    for status in [401, 400, 403] {
        let mut net = net();
        let token = |text: &str| {
            Page::new(format!("{{\"token\":\"{text}\",\"expires_in\":3600}}").into_bytes().into())
                .unchecked()
        };
        let refusal = || Page::of(0).status(401).with("www-authenticate", CHALLENGE);
        net.origin.put(MANIFEST, refusal());
        net.origin.add(MANIFEST, Page::of(5_000).only_for("authorization", "Bearer old"));
        net.origin.put(TOKEN, token("old"));
        let id = mirrored(&mut net, MANIFEST);
        assert!(net.client(id).is_ok());
        net.origin.put(OTHER, refusal());
        net.origin.add(OTHER, Page::of(0).status(status).only_for("authorization", "Bearer old"));
        net.origin.add(OTHER, Page::of(6_000).only_for("authorization", "Bearer new"));
        net.origin.put(TOKEN, token("new"));
        for _ in 0..2 {
            let id = mirrored(&mut net, OTHER);
            assert!(net.client(id).is_ok(), "{status}: {}", net.client(id).status());
            assert_eq!(net.client(id).content.len(), 6_000);
        }
        assert_eq!(net.origin.asked(TOKEN), 2, "{status}");
        net.done();
    }
}

#[test]
fn a_token_that_does_not_help_ends_in_the_registrys_refusal() {
    let mut net = net();
    net.origin.put(MANIFEST, Page::of(9).status(401).with("www-authenticate", CHALLENGE));
    net.origin.put(TOKEN, Page::new((&br#"{"token":"abc"}"#[..]).into()).unchecked());
    let id = mirrored(&mut net, MANIFEST);
    assert_eq!((net.client(id).status(), net.origin.seen.len()), (401, 3));
    net.done();
}

#[test]
fn a_token_service_that_talks_nonsense_is_an_error() {
    let endless = Page::of(100_000).unchecked();
    let nonsense = Page::new((&b"<html>"[..]).into()).unchecked();
    for page in
        [endless, nonsense, Page::of(0).status(500), Page::of(100).unchecked().breaking_at(50)]
    {
        let mut net = net();
        net.origin.put(MANIFEST, Page::of(9).status(401).with("www-authenticate", CHALLENGE));
        net.origin.put(TOKEN, page);
        let id = mirrored(&mut net, MANIFEST);
        assert_eq!(net.client(id).status(), 502);
        assert_eq!(net.origin.busy(), 0);
        net.done();
    }
}

#[test]
fn a_head_and_a_part_follow_too() {
    let mut net = net();
    net.origin.put(MANIFEST, redirect(307, "https://1.cdn.test/a"));
    net.origin.put("https://1.cdn.test/a", Page::of(100_000));
    let head = net.call(Call { method: Method::HEAD, ..Call::get(MANIFEST).by_mirror(None) });
    let part = Call::get(MANIFEST).by_mirror(None).with("range", "bytes=10-19");
    let part = net.call(part);
    net.settle();
    assert_eq!((net.client(head).status(), net.client(part).status()), (200, 206));
    net.done();
}

#[test]
fn a_client_that_leaves_on_the_way_leaves_nothing_behind() {
    let mut net = net();
    net.origin.put(MANIFEST, redirect(307, "https://1.cdn.test/a"));
    net.origin
        .put("https://1.cdn.test/a", Page::of(100_000).waiting(std::time::Duration::from_secs(9)));
    let id = net.call(Call::get(MANIFEST).by_mirror(None));
    net.pass_seconds(1);
    net.leave(id);
    assert_eq!(net.origin.busy(), 0);
    net.done();
}

#[test]
fn an_archive_that_is_asked_too_often_is_left_alone_and_what_was_stored_is_served() {
    let mut net = net();
    let cache = |net: &mut Net, url| {
        let id = mirrored(net, url);
        (net.client(id).status(), net.client(id).cache().to_owned())
    };
    net.origin.put(MANIFEST, Page::of(500));
    net.origin.put(OTHER, Page::of(600));
    for url in [MANIFEST, OTHER] {
        assert!(cache(&mut net, url).1.contains("stored"));
    }
    net.pass_seconds(400);
    for url in [MANIFEST, OTHER] {
        net.origin.put(url, Page::of(9).status(429).with("retry-after", "60"));
    }
    assert_eq!(cache(&mut net, MANIFEST), (200, "fwd=stale; fwd-status=429".into()));
    for url in [OTHER, MANIFEST] {
        assert_eq!(cache(&mut net, url), (200, "hit; detail=retry-after".into()));
    }
    assert_eq!((net.origin.asked(MANIFEST), net.origin.asked(OTHER)), (2, 1));
    net.pass_seconds(60);
    assert_eq!(cache(&mut net, OTHER), (200, "fwd=stale; fwd-status=429".into()));
    let third = "https://r.test/v2/library/x/manifests/3";
    net.origin.put(third, Page::of(9).status(429));
    assert_eq!(cache(&mut net, third).0, 429, "nothing is stored");
    net.done();
}

#[test]
fn a_client_gets_no_form_that_another_has_negotiated() {
    let mut net = net();
    let asks = |net: &mut Net, accept| {
        let id = net.call(Call::get(MANIFEST).by_mirror(None).with("accept", accept));
        net.settle();
        (net.client(id).content.len(), net.client(id).cache().starts_with("hit"))
    };
    net.origin.put(MANIFEST, Page::of(500).only_for("accept", "a/old"));
    net.origin.add(MANIFEST, Page::of(600).only_for("accept", "a/list, a/old"));
    assert_eq!(asks(&mut net, "a/old"), (500, false));
    assert_eq!(asks(&mut net, "a/list, a/old"), (600, false));
    assert_eq!(asks(&mut net, "A/List;q=1.0,a/old"), (600, true));
    assert_eq!(asks(&mut net, "a/old"), (500, true));
    net.done();
}
