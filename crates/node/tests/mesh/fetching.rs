//! What a node does not hold comes through the mesh, and stays where the scheme keeps it.

use crate::net::{Call, Mesh, Page, Plan};
use bytes::Bytes;
use std::time::Duration;

const URL: &str = "http://o.test/a";
const LENGTH: usize = 100_000;

fn chain(plan: &Plan, count: usize) -> Mesh {
    let mut mesh = Mesh::chain_of(plan, count);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh
}

#[test]
fn a_page_comes_through_the_chain_and_the_gateway_alone_asks_the_origin() {
    for plan in [Plan::default(), Plan::thcp()] {
        for hops in 1..=5 {
            let mut mesh = chain(&plan, hops + 1);
            let id = mesh.get(hops, URL);
            assert!(mesh.client(id).is_ok(), "{hops} hops: {:?}", mesh.client(id).head);
            assert_eq!(mesh.origin.askers(URL), [0], "{hops} hops");
            assert_eq!(mesh.report(hops).served_peer_bytes, LENGTH as u64);
            mesh.done();
        }
    }
}

#[test]
fn an_object_as_large_as_permitted_is_kept_on_its_way_and_a_larger_one_is_not() {
    let mut plan = Plan::default();
    plan.node.object_bytes_max = LENGTH as u64;
    for (page, is_kept) in [
        (Page::of(LENGTH), true),
        (Page::of(LENGTH).chunked(), true),
        (Page::of(LENGTH + 1), false),
        (Page::of(10 * LENGTH).chunked(), false),
    ] {
        let mut mesh = Mesh::chain_of(&plan, 2);
        mesh.origin.put(URL, page.fresh(600));
        mesh.get(1, URL);
        let again = mesh.get(1, URL);
        assert!(mesh.client(again).is_ok());
        assert_eq!(mesh.is_hit(again), is_kept, "{}", mesh.cache(again));
        mesh.done();
    }
}

#[test]
fn a_second_client_at_the_same_router_is_served_there_and_nothing_leaves() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = chain(&plan, 4);
        mesh.get(3, URL);
        let sent = |mesh: &Mesh| -> Vec<u64> { (0..3).map(|to| mesh.wrote(3, to)).collect() };
        let before = sent(&mesh);
        let id = mesh.call(3, Call::get(URL));
        mesh.pass_millis(10);
        assert!(mesh.client(id).is_ok() && mesh.is_hit(id), "{}", mesh.cache(id));
        assert_eq!(sent(&mesh), before);
        assert_eq!(mesh.report(3).served_local_bytes, LENGTH as u64);
        mesh.done();
    }
}

#[test]
fn hop_by_hop_every_router_on_the_way_keeps_what_passed() {
    let mut mesh = chain(&Plan::default(), 5);
    mesh.get(4, URL);
    for node in [3, 2, 1, 0] {
        let asked = mesh.report(node).asks_out;
        let id = mesh.get(node, URL);
        assert!(mesh.client(id).is_ok() && mesh.is_hit(id), "{node}: {}", mesh.cache(id));
        assert_eq!(mesh.report(node).asks_out, asked);
    }
    assert_eq!(mesh.origin.askers(URL), [0]);
    mesh.done();
}

#[test]
fn end_to_end_the_routers_on_the_way_are_not_asked() {
    let mut mesh = chain(&Plan::thcp(), 5);
    mesh.get(4, URL);
    assert!((1..4).all(|node| mesh.report(node).asks_in == 0));
    assert_eq!((mesh.report(0).asks_in, mesh.report(4).asks_out), (1, 1));
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok() && !mesh.is_hit(id));
    assert_eq!(mesh.report(0).asks_in, 2);
    assert_eq!(mesh.origin.askers(URL), [0]);
    mesh.done();
}

#[test]
fn a_router_beside_the_way_gets_it_from_where_the_ways_meet() {
    // 3 and 4 behind 2, 2 behind 1, 1 behind 0.
    let mut mesh = Mesh::tree_of(&Plan::default(), &[0, 1, 2, 2]);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(600));
    mesh.get(3, URL);
    let passed = mesh.data(1, 2);
    let id = mesh.get(4, URL);
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.data(1, 2), passed);
    assert!(mesh.data(2, 4) >= LENGTH as u64);
    mesh.done();
}

#[test]
fn a_small_object_takes_one_round_trip_once_the_routers_have_met() {
    let latency = Duration::from_millis(10);
    for scheme in [Plan::default(), Plan::thcp()] {
        let mut mesh = chain(&Plan { latency, rate: 100_000_000, ..scheme }, 4);
        for (length, url) in [(1, "http://o.test/1"), (16_384, "http://o.test/16k")] {
            mesh.origin.put(url, Page::of(length).fresh(600));
            let id = mesh.get(3, url);
            assert!(mesh.client(id).is_ok());
            let round_trip = latency * 6;
            assert!(mesh.took(id) < round_trip + latency, "{length}: {:?}", mesh.took(id));
        }
        mesh.done();
    }
}

#[test]
fn a_large_object_streams() {
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = Mesh::chain_of(&plan, 4);
        mesh.origin.put(URL, Page::of(10_000_000).fresh(600).steady());
        let id = mesh.get(3, URL);
        assert!(mesh.client(id).is_ok());
        let times = mesh.times(id);
        let first = times.first.expect("content") - times.asked;
        assert!(first < Duration::from_millis(300), "the first byte after {first:?}");
        assert!(mesh.took(id) > Duration::from_secs(2), "{:?}", mesh.took(id));
        assert!(mesh.took(id) < Duration::from_secs(6), "{:?}", mesh.took(id));
        mesh.done();
    }
}

#[test]
fn a_large_object_comes_through_little_memory() {
    let mut plan = Plan::default();
    plan.node.memory_bytes = 1 << 20;
    let mut mesh = Mesh::chain_of(&plan, 4);
    mesh.origin.put(URL, Page::of(6_000_000).fresh(600));
    for node in [3, 2, 3] {
        let id = mesh.get(node, URL);
        assert!(mesh.client(id).is_ok());
    }
    assert_eq!(mesh.origin.askers(URL), [0]);
    mesh.done();
}

#[test]
fn what_is_said_beside_the_bytes_is_little() {
    const LENGTH: u64 = 10_000_000;
    for plan in [Plan::default(), Plan::thcp()] {
        let mut mesh = Mesh::chain_of(&plan, 4);
        mesh.origin.put(URL, Page::of(LENGTH as usize).fresh(600));
        let id = mesh.get(3, URL);
        assert!(mesh.client(id).is_ok());
        let per_hop = plan.selection == wire::Selection::PhThcp;
        let pairs = if per_hop { vec![(0, 1), (1, 2), (2, 3)] } else { vec![(0, 3)] };
        for (above, below) in pairs {
            let data = mesh.data(above, below);
            assert!((LENGTH..LENGTH / 100 * 102).contains(&data), "{data} bytes in frames");
            let said = mesh.control(above, below) + mesh.control(below, above);
            assert!(said < LENGTH / 50, "{said} bytes in messages");
        }
        mesh.done();
    }
}

#[test]
fn an_empty_object_and_one_without_an_announced_length_come_through() {
    let mut mesh = Mesh::chain(4);
    mesh.origin.put("http://o.test/0", Page::of(0).fresh(600));
    mesh.origin.put("http://o.test/c", Page::of(300_000).fresh(600).chunked());
    mesh.origin.put("http://o.test/c0", Page::of(0).fresh(600).chunked());
    for url in ["http://o.test/0", "http://o.test/c", "http://o.test/c0"] {
        for _ in 0..2 {
            let id = mesh.get(3, url);
            assert!(mesh.client(id).is_ok(), "{url}: {:?}", mesh.client(id).head);
        }
        assert_eq!(mesh.origin.askers(url), [0]);
    }
    mesh.done();
}

#[test]
fn what_is_counted_is_what_crossed() {
    let mut mesh = chain(&Plan::default(), 3);
    mesh.get(2, URL);
    let sent: u64 = mesh.wrote(1, 0) + mesh.wrote(1, 2);
    let received: u64 = mesh.wrote(0, 1) + mesh.wrote(2, 1);
    let report = mesh.report(1);
    assert_eq!((report.peer_out_bytes, report.peer_in_bytes), (sent, received));
    assert_eq!(report.peer_units_in_bytes, LENGTH as u64);
    assert_eq!(report.peer_units_out_bytes, LENGTH as u64);
    assert_eq!((report.asks_in, report.asks_out, report.peers), (1, 1, 2));
    let recent = mesh.report(2).recent.pop().expect("an object");
    assert_eq!((recent.uri.as_str(), recent.peer_bytes), (URL, LENGTH as u64));
    assert_eq!((recent.bytes, recent.source.as_str()), (LENGTH as u64, "n1"));
    mesh.done();
}

#[test]
fn what_is_here_does_not_hold_back_what_is_missing() {
    const LATENCY: Duration = Duration::from_millis(100);
    const OTHER: &str = "http://o.test/b";
    let plan = Plan { latency: LATENCY, ..Plan::default() };
    let mut mesh = Mesh::chain_of(&plan, 2);
    let page = Page::of(4_000_000).fresh(600);
    let mut body = page.body.to_vec();
    for place in (100_000..body.len()).step_by(200_000) {
        body[place] ^= 1;
    }
    mesh.origin.put(URL, page);
    mesh.origin.put(OTHER, Page::new(Bytes::from(body)).fresh(600));
    mesh.get(1, URL);
    mesh.get(0, OTHER);
    let id = mesh.get(1, OTHER);
    assert!(mesh.client(id).is_ok(), "{}", mesh.cache(id));
    // If stored bytes counted in the windows of 256 KiB, it would take 16 round trips.
    assert!(mesh.took(id) < 2 * LATENCY * 7, "{:?}", mesh.took(id));
    mesh.done();
}
