//! Programs on the node's own machine: they share what any client could get, and have the rest for themselves.

use crate::net::{Call, Net, Page};
use http::Method;
use node::{Caller, ExchangeId, FetchError, Forbidden};

const URL: &str = "http://o.test/a";

fn net() -> Net {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(5_000).fresh(60));
    net
}

fn ask(net: &mut Net, call: Call) -> usize {
    let id = net.call(call);
    net.settle();
    id
}

fn callers(net: &Net) -> Vec<Caller> {
    net.origin.seen.iter().map(|seen| seen.caller).collect()
}

#[test]
fn what_any_client_may_have_is_shared_with_them() {
    let mut net = net();
    let home = ask(&mut net, Call::get(URL).at_home());
    assert!(net.client(home).is_ok());
    assert_eq!(callers(&net), [Caller::Explicit]);
    let other = net.get(URL);
    assert!(net.client(other).cache().starts_with("hit"), "{}", net.client(other).cache());
    net.done();
}

#[test]
fn what_is_dialled_for_no_other_client_is_kept_apart() {
    for error in [FetchError::Forbidden(Forbidden::Inward), FetchError::Unresolved] {
        let mut net = net();
        net.origin.refuses = Some((Caller::Explicit, error));
        let home = ask(&mut net, Call::get(URL).at_home());
        assert!(net.client(home).is_ok());
        assert_eq!(callers(&net), [Caller::Explicit, Caller::ThisMachine]);
        let other = net.get(URL);
        assert!(net.client(other).status() >= 400, "it was given what is not dialled for it");
        let again = ask(&mut net, Call::get(URL).at_home());
        assert!(net.client(again).is_ok());
        assert!(net.client(again).cache().starts_with("hit"), "{}", net.client(again).cache());
        net.done();
    }
}

#[test]
fn content_is_sent_once_and_with_the_exemption() {
    let mut net = net();
    net.origin.refuses = Some((Caller::Explicit, FetchError::Forbidden(Forbidden::Inward)));
    let post = Call { has_body: true, ..Call::new(Method::POST, URL) };
    let id = ask(&mut net, post.at_home());
    assert_eq!(net.client(id).status(), 200);
    assert_eq!(callers(&net), [Caller::ThisMachine]);
    assert_eq!(net.origin.last().exchange, Some(ExchangeId(id as u64)));
    net.done();
}

#[test]
fn an_upgrade_is_asked_for_once_and_with_the_exemption() {
    let mut net = net();
    net.origin.refuses = Some((Caller::Explicit, FetchError::Forbidden(Forbidden::Inward)));
    let call = Call::get(URL).with("connection", "upgrade").with("upgrade", "echo");
    ask(&mut net, call.at_home());
    assert_eq!(callers(&net), [Caller::ThisMachine]);
}

#[test]
fn an_origin_that_was_dialled_is_not_dialled_again() {
    for error in [FetchError::NoRoute, FetchError::Unreachable, FetchError::TimedOut] {
        let mut net = net();
        net.origin.refuses = Some((Caller::Explicit, error));
        let id = ask(&mut net, Call::get(URL).at_home());
        assert!(net.client(id).status() >= 502, "{}", net.client(id).status());
        assert_eq!(callers(&net), [Caller::Explicit]);
        net.done();
    }
}
