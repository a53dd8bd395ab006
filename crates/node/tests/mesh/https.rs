//! `https` URLs in a mesh: they travel from router to router like others, and only the gateway speaks TLS.

use crate::net::{Call, Heard, Mesh, Page, Plan, ask};
use http::Method;
use node::FetchError;
use std::time::Duration;
use wire::peer::{Get, Message, Options, Outcome, Passed, Request};

const URL: &str = "https://o.test/a";
const PLAIN: &str = "http://o.test/a";

/// A chain of four under each scheme; the gateway is the first.
fn chains() -> [Mesh; 2] {
    [Plan::default(), Plan::thcp()].map(|plan| {
        let mut mesh = Mesh::chain_of(&plan, 4);
        mesh.origin.put(URL, Page::of(60_000).fresh(600).etag("a"));
        mesh
    })
}

#[test]
fn only_the_gateway_fetches_it_and_each_scheme_keeps_it() {
    for mut mesh in chains() {
        let id = mesh.get(3, URL);
        assert!(mesh.client(id).is_ok());
        assert_eq!(mesh.origin.askers(URL), [0]);
        assert!(mesh.origin.seen.iter().all(|seen| seen.url == URL), "in clear");
        let id = mesh.get(3, URL);
        assert!(mesh.client(id).cache().contains("hit"), "{}", mesh.client(id).cache());
        let id = mesh.get(0, URL);
        assert!(mesh.client(id).cache().contains("hit"), "{}", mesh.client(id).cache());
        let id = mesh.get(1, URL);
        assert!(mesh.client(id).is_ok());
        assert_eq!(mesh.origin.asked(URL), 1, "somebody asked again");
        mesh.done();
    }
}

#[test]
fn by_http_it_is_another_object() {
    let mut mesh = Mesh::chain(3);
    mesh.origin.put(URL, Page::of(60_000).fresh(600));
    mesh.origin.put(PLAIN, Page::of(0).status(404));
    mesh.get(2, URL);
    let id = mesh.get(2, PLAIN);
    assert_eq!((mesh.client(id).status(), mesh.origin.asked(PLAIN)), (404, 1));
    mesh.done();
}

#[test]
fn what_is_only_passed_on_goes_by_the_gateway_too() {
    for mut mesh in chains() {
        let secret = Call::get(URL).with("authorization", "Basic x");
        let part = Call::get(URL).with("range", "bytes=100-199");
        let calls = [(secret, 200), (Call::new(Method::HEAD, URL), 200), (part, 206)];
        for (asked, (call, status)) in (1..).zip(calls) {
            let is_head = call.method == Method::HEAD;
            let id = mesh.call(3, call);
            mesh.finish();
            assert!(mesh.client(id).is_whole(), "{:?}", mesh.client(id).head);
            assert_eq!(mesh.client(id).status(), status);
            if is_head {
                assert_eq!(mesh.client(id).header("content-length"), "60000");
            }
            assert_eq!(mesh.origin.asked(URL), asked, "it was stored on the way");
        }
        assert_eq!(mesh.origin.askers(URL), [0, 0, 0]);
        let ranges = mesh.origin.seen.iter().filter_map(|seen| seen.headers.get("range"));
        assert_eq!(ranges.collect::<Vec<_>>(), ["bytes=100-199"]);
        mesh.done();
    }
}

#[test]
fn a_part_comes_from_what_a_router_on_the_way_holds() {
    let mut mesh = Mesh::chain(3);
    mesh.origin.put(URL, Page::of(60_000).fresh(600).etag("a"));
    mesh.get(0, URL);
    for (range, status) in [("bytes=100-199", 206), ("bytes=-7", 206), ("bytes=70000-", 416)] {
        let id = mesh.call(2, Call::get(URL).with("range", range));
        mesh.finish();
        assert_eq!((mesh.client(id).status(), mesh.origin.asked(URL)), (status, 1), "{range}");
        assert!(mesh.client(id).is_whole(), "{range}");
    }
    let id = mesh.call(2, Call::new(Method::HEAD, URL));
    mesh.finish();
    assert_eq!(mesh.client(id).header("content-length"), "60000");
    assert_eq!(mesh.origin.asked(URL), 1);
    mesh.done();
}

#[test]
fn what_can_be_sent_only_once_is_dialled_where_it_is_asked() {
    let mut mesh = Mesh::chain(2);
    mesh.origin.put(URL, Page::of(10));
    let id = mesh.call(1, Call::new(Method::POST, URL));
    mesh.finish();
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.origin.askers(URL), [1]);
    mesh.done();
}

#[test]
fn without_peers_a_node_speaks_tls_itself() {
    for call in [Call::get(URL), Call::get(URL).with("range", "bytes=0-9")] {
        let mut mesh = Mesh::chain(2);
        mesh.origin.put(URL, Page::of(60_000).fresh(600));
        mesh.kill(0);
        let id = mesh.call(1, call);
        mesh.finish();
        assert!(mesh.client(id).is_whole());
        assert_eq!(mesh.origin.askers(URL), [1]);
        mesh.done();
    }
    let mut mesh = Mesh::chain(2);
    mesh.origin.put(URL, Page::of(60_000).fresh(600));
    mesh.route(1, node::RouteTable::default());
    mesh.call(1, Call::get(URL));
    mesh.finish();
    assert_eq!(mesh.origin.askers(URL), [1]);
    mesh.done();
}

#[test]
fn a_gateway_that_dies_before_it_answers_is_replaced() {
    let mut mesh = Mesh::chain(2);
    mesh.origin.put(URL, Page::of(60_000).waiting(Duration::from_secs(5)));
    let id = mesh.call(1, Call::get(URL).with("authorization", "Basic x"));
    mesh.pass_seconds(1);
    assert_eq!(mesh.origin.askers(URL), [0]);
    mesh.kill(0);
    mesh.finish();
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.origin.askers(URL), [0, 1]);
    mesh.done();
}

#[test]
fn what_tls_says_of_an_origin_is_told_to_the_client() {
    for (error, name) in [
        (FetchError::Untrusted, "tls_certificate_error"),
        (FetchError::NotTls, "tls_protocol_error"),
    ] {
        let mut mesh = Mesh::chain(3);
        mesh.origin.down = Some(error);
        let id = mesh.get(2, URL);
        assert_eq!(mesh.client(id).status(), 502, "{error:?}");
        assert!(mesh.client(id).header("proxy-status").ends_with(name), "{error:?}");
        assert!(mesh.origin.askers(URL).iter().all(|asker| *asker == 0), "{error:?}");
        mesh.done();
    }
}

#[test]
fn a_scheme_that_is_not_known_ends_the_request_and_not_the_connection() {
    let mut mesh = Mesh::tree_of(&Plan::default(), &[0]);
    let heard = Heard::default();
    mesh.start_liar(1, heard.play());
    mesh.pass_seconds(40);
    mesh.origin.put(URL, Page::of(100).fresh(600));
    let passed = Options { passed: Some(Passed::Get), ..Options::default() };
    let get = Get { options: passed, ..ask(3, URL) };
    let asks = [ask(1, "gopher://o.test/a"), ask(2, "no URI"), get];
    let asks = asks.map(|ask| Message::Get(Box::new(ask)));
    mesh.liar_says(1, 0, asks.into());
    mesh.pass_seconds(1);
    for (number, outcome) in
        [(1, Outcome::NotUnderstood), (2, Outcome::Malformed), (3, Outcome::Complete)]
    {
        assert_eq!(heard.of(number), [Message::End(Request(number), outcome)]);
    }
    assert_eq!((mesh.report(0).asks_unknown, mesh.has_expelled(0, 1)), (1, false));
    mesh.done();
}
