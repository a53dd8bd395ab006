//! How many proxies a TRACE or an OPTIONS may pass (RFC 9110 §7.6.2).

use crate::net::{Call, Net, Page};
use http::Method;

const URL: &str = "http://o.test/a";

fn asked(method: &Method, max: &str) -> (Net, usize) {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(500));
    let call = Call::new(method.clone(), URL).with("max-forwards", max).with("x-mine", "1");
    let id = net.call(call.with("cookie", "a=b").with("proxy-authorization", "Basic x"));
    net.settle();
    net.done();
    (net, id)
}

#[test]
fn one_that_may_pass_none_is_answered_here() {
    let (net, id) = asked(&Method::OPTIONS, "0");
    assert_eq!((net.client(id).status(), net.client(id).content.len()), (200, 0));
    assert!(net.origin.seen.is_empty());
    let (net, id) = asked(&Method::TRACE, "0");
    assert_eq!(net.client(id).status(), 200);
    assert_eq!(net.client(id).header("content-type"), "message/http");
    let text = std::str::from_utf8(&net.client(id).content).expect("ASCII");
    let expected = "TRACE http://o.test/a HTTP/1.1\r\nmax-forwards: 0\r\nx-mine: 1\r\n\r\n";
    assert_eq!(text, expected, "without what is secret");
    assert!(net.client(id).is_whole() && net.origin.seen.is_empty());
}

#[test]
fn one_that_may_pass_more_is_counted_down() {
    for method in [Method::OPTIONS, Method::TRACE] {
        for (max, told) in
            [("1", "0"), ("10", "9"), ("99999999999999999999999", "18446744073709551614")]
        {
            let (net, _) = asked(&method, max);
            assert_eq!(net.origin.last().headers["max-forwards"], told);
        }
    }
}

#[test]
fn what_is_no_number_and_what_another_method_says_is_left_alone() {
    for (method, max) in [(Method::TRACE, "x"), (Method::OPTIONS, "1, 0"), (Method::GET, "0")] {
        let (net, _) = asked(&method, max);
        assert_eq!(net.origin.last().headers["max-forwards"], max);
    }
}
