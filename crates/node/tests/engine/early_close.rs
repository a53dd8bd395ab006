//! An origin that closes early: the part is never taken for the whole (RFC 9111 §3.3).

use crate::net::{Call, Net, Pace, Page};
use node::{FetchError, Forbidden};

const URL: &str = "http://o.test/a";

#[test]
fn every_reader_of_a_broken_transfer_is_told_and_nothing_is_stored() {
    for page in [Page::of(500_000), Page::of(500_000).chunked()] {
        for at in [0, 1, 8192, 300_000, 499_999] {
            let mut net = Net::new();
            net.origin.put(URL, page.clone().fresh(60).breaking_at(at));
            let ids = [Pace::Fast, Pace::Fast, Pace::Slow(20_000)]
                .map(|pace| net.call(Call::get(URL).pace(pace)));
            net.settle();
            assert!(ids.iter().all(|id| net.client(*id).is_broken()), "at {at}");
            net.origin.put(URL, page.clone().fresh(60));
            let again = net.get(URL);
            assert!(net.client(again).is_ok());
            assert_eq!(net.origin.asked(URL), 2);
            net.done();
        }
    }
}

#[test]
fn a_relayed_response_that_breaks_is_broken_for_its_client() {
    let mut net = Net::new();
    net.origin.put(URL, Page::of(500_000).with("cache-control", "private").breaking_at(100_000));
    let id = net.get(URL);
    assert!(net.client(id).is_broken());
    assert_eq!(net.client(id).content.len(), 100_000);
    net.done();
}

#[test]
fn less_than_was_announced_is_not_stored_even_if_it_seems_to_end_well() {
    let mut net = Net::new();
    // Chunked, so that the origin here adds no length of its own.
    let page = Page::of(100_000).fresh(60).chunked().with("content-length", "100001");
    net.origin.put(URL, page.unchecked());
    let id = net.get(URL);
    assert!(net.client(id).is_broken());
    net.origin.put(URL, Page::of(100_000).fresh(60));
    let again = net.get(URL);
    assert!(net.client(again).is_ok());
    assert_eq!(net.origin.asked(URL), 2);
    net.done();
}

#[test]
fn a_fetch_that_fails_before_its_head_is_an_honest_error() {
    for (error, status, kind) in [
        (FetchError::Unresolved, 502, "dns_error"),
        (FetchError::Forbidden(Forbidden::Inward), 403, "destination_ip_prohibited"),
        (FetchError::Unreachable, 502, "destination_unavailable"),
        (FetchError::TimedOut, 504, "connection_timeout"),
        (FetchError::Malformed, 502, "http_protocol_error"),
        (FetchError::Truncated, 502, "http_response_incomplete"),
    ] {
        let mut net = Net::new();
        net.origin.down = Some(error);
        let ids = [
            Call::get(URL),
            Call::get(URL),
            Call::head(URL),
            Call::get(URL).with("range", "bytes=0-1"),
        ]
        .map(|call| net.call(call));
        net.settle();
        for id in ids {
            assert_eq!(net.client(id).status(), status);
            assert!(net.client(id).is_whole());
            let said = net.client(id).header("proxy-status");
            assert_eq!(said, format!("hearsay; error={kind}"));
        }
        net.done();
    }
}
