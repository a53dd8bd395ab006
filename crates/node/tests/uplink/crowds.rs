//! Many flows at once, and more than an end remembers.

use crate::bytes::{noise, page};
use crate::net::{Link, Net};
use bytes::Bytes;
use http::Method;
use node::uplink::{FlowId, NearInput};
use node::{Fetch, FetchError, FetchId};
use std::time::Duration;

/// A long path that does not compress.
fn path(seed: u64) -> String {
    format!("/{}", blake3::hash(&seed.to_le_bytes()).to_hex().repeat(8))
}

/// Sends content that fits into the room that there is.
fn post(net: &mut Net, body: &[u8]) -> u64 {
    let fetch = Fetch { method: Method::POST, ..Net::fetch_of("/echo") };
    let id = net.fetch(fetch, true);
    let body = Bytes::copy_from_slice(body);
    net.near.handle_input(net.now, NearInput::Content(FlowId::Fetch(FetchId(id)), body));
    net.near.handle_input(net.now, NearInput::ContentEnd(FlowId::Fetch(FetchId(id)), Ok(())));
    net.run_for(Duration::from_millis(1));
    id
}

#[test]
fn content_does_not_overtake_its_request() {
    let mut net = Net::up(Link::SLOW);
    let body = noise(1, 100_000);
    let first = post(&mut net, &body);
    net.until(|net| net.answers[&first].end.is_some());
    for seed in 0..100 {
        net.origin(&path(seed), page(seed, 10));
        net.get(&path(seed));
    }
    let second = post(&mut net, &body);
    net.until(|net| net.answers[&second].end.is_some());
    assert!(net.answers[&first].body == body && net.answers[&second].body == body);
}

#[test]
fn content_does_not_overtake_its_head() {
    let mut net = Net::up(Link::SLOW);
    let body = page(1, 500);
    net.origin("/page", body.clone());
    net.get_all("/page");
    let ids: Vec<_> = (0..300).map(|_| net.get("/page")).collect();
    net.until(|net| ids.iter().all(|id| net.answers[id].end.is_some()));
    assert!(ids.iter().all(|id| net.answers[id].body == body));
}

#[test]
fn what_is_lost_again_and_again_is_fetched_again_and_again() {
    let mut net = Net::with_histories(Link::FAST, 40, 100_000);
    net.until(|net| net.near.is_up());
    let body = noise(2, 3_000_000);
    for path in ["/a", "/b", "/c"] {
        net.origin(path, body.clone());
        let (got, crossed) = net.get_all(path);
        assert!(got == body && crossed < 3_100_000, "{crossed}");
    }
}

#[test]
fn short_flows_do_not_hold_up_a_long_one_for_ever() {
    let mut net = Net::up(Link::SLOW);
    net.origin("/download", noise(3, 1_000_000));
    let download = net.get("/download");
    net.run_for(Duration::from_secs(2));
    let (mut ids, mut ended) = (Vec::new(), 0);
    while ended < 3000 {
        while ids.len() < ended + 400 {
            let path = format!("/{}", ids.len());
            net.origin(&path, noise(1000 + ids.len() as u64, 300));
            ids.push(net.get(&path));
        }
        net.run_for(Duration::from_millis(500));
        ended = ids.iter().filter(|id| net.answers[id].end.is_some()).count();
    }
    let results: Vec<_> = ids.iter().filter_map(|id| net.answers[id].end).collect();
    let failed: Vec<FetchError> = results.into_iter().filter_map(Result::err).collect();
    assert_eq!((net.near.report().connections, failed), (1, vec![]));
    assert!(net.answers[&download].body.len() > 100_000, "it goes on meanwhile");
}

#[test]
fn a_far_end_that_has_missed_a_break_takes_the_next_connection() {
    let mut net = Net::up(Link::FAST);
    net.silence();
    net.get("/unanswered");
    net.until(|net| !net.near.is_up());
    net.mend();
    net.until(|net| net.near.is_up());
    net.run_for(Duration::from_secs(1));
    assert_eq!((net.is_up(), net.near.report().connections), (true, 2));
}
