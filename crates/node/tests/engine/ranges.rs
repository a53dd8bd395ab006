//! Parts of stored objects (RFC 9110 §14); parts of what is not stored are relayed.

use crate::net::{Call, Client, Net, Page};
use bytes::Bytes;

const URL: &str = "http://o.test/a";
const LENGTH: usize = 300_000;

fn stored() -> (Net, Bytes) {
    let mut net = Net::new();
    let page = Page::of(LENGTH).fresh(60).etag("a").with("content-type", "text/x");
    let body = page.body.clone();
    net.origin.put(URL, page);
    net.get(URL);
    (net, body)
}

fn ask<'a>(net: &'a mut Net, range: &str) -> &'a Client {
    let id = net.call(Call::get(URL).with("range", range));
    net.settle();
    net.client(id)
}

#[test]
fn a_part_of_a_stored_object_comes_from_the_store() {
    let (mut net, body) = stored();
    for (range, part) in [
        ("bytes=0-0", 0..1),
        ("bytes=8191-8192", 8191..8193),
        ("bytes=100000-250000", 100_000..250_001),
        ("bytes=299999-", 299_999..LENGTH),
        ("bytes=-5000", LENGTH - 5000..LENGTH),
        ("bytes=299000-999999999", 299_000..LENGTH),
    ] {
        let client = ask(&mut net, range);
        assert_eq!(client.status(), 206, "{range}");
        assert!(client.is_whole());
        assert_eq!(client.content, body[part.clone()], "{range}");
        let place = format!("bytes {}-{}/{LENGTH}", part.start, part.end - 1);
        assert_eq!(client.header("content-range"), place);
    }
    assert_eq!(net.origin.asked(URL), 1);
    net.done();
}

#[test]
fn a_part_beyond_the_end_is_refused_with_the_length() {
    let (mut net, _) = stored();
    let client = ask(&mut net, "bytes=300000-");
    assert_eq!(client.status(), 416);
    assert_eq!(client.header("content-range"), "bytes */300000");
    assert!(client.is_whole());
}

#[test]
fn a_range_that_makes_no_sense_is_ignored() {
    let (mut net, _) = stored();
    for range in ["bytes=9-5", "lines=1-2", "bytes=0-299999,0-299999"] {
        assert!(ask(&mut net, range).is_ok(), "{range}");
    }
}

#[test]
fn several_parts_come_in_one_response() {
    let (mut net, body) = stored();
    let client = ask(&mut net, "bytes=0-9,200000-210000,-7");
    assert_eq!(client.status(), 206);
    assert!(client.is_whole());
    let kind = client.header("content-type");
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
    let parts = [0..10, 200_000..210_001, LENGTH - 7..LENGTH].map(|range| {
        let place = format!("bytes {}-{}/{LENGTH}", range.start, range.end - 1);
        let head =
            format!("\r\n--{boundary}\r\nContent-Type: text/x\r\nContent-Range: {place}\r\n\r\n");
        [head.as_bytes(), &body[range]].concat()
    });
    let wanted = [parts.concat(), format!("\r\n--{boundary}--\r\n").into()].concat();
    assert!(client.content == wanted);
    net.done();
}

#[test]
fn a_slow_client_gets_its_parts_within_its_credit() {
    let (mut net, _) = stored();
    let call = Call::get(URL).with("range", "bytes=5-20000,250000-260000");
    let id = net.call(call.pace(crate::net::Pace::Slow(100)));
    net.settle();
    assert!(net.client(id).is_whole());
    assert_eq!(net.client(id).status(), 206);
    net.done();
}

#[test]
fn a_condition_on_the_range_decides_between_the_part_and_the_whole() {
    let (mut net, _) = stored();
    for (tag, status) in [("\"a\"", 206), ("\"b\"", 200), ("W/\"a\"", 200)] {
        let id = net.call(Call::get(URL).with("range", "bytes=0-9").with("if-range", tag));
        net.settle();
        assert_eq!(net.client(id).status(), status, "{tag}");
        assert!(net.client(id).is_whole());
    }
}

#[test]
fn a_part_of_what_is_not_stored_is_relayed_and_not_stored() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(LENGTH).fresh(60));
    for asked in 1..3 {
        let client = ask(&mut net, "bytes=10-19");
        assert_eq!((client.status(), client.content.len()), (206, 10));
        assert_eq!(client.cache(), "fwd=partial; fwd-status=206; detail=range");
        assert_eq!(net.origin.asked(URL), asked);
    }
    net.get(URL);
    assert_eq!(net.origin.asked(URL), 3, "a part is not taken for the whole");
    net.done();
}

#[test]
fn a_part_is_not_joined_to_a_transfer_of_the_whole() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(LENGTH).fresh(60).steady());
    let whole = net.call(Call::get(URL));
    net.pass(std::time::Duration::from_millis(5));
    let part = ask(&mut net, "bytes=10-19");
    assert_eq!((part.status(), part.content.len()), (206, 10));
    assert!(net.client(whole).is_ok());
    net.done();
}
