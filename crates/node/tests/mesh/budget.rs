//! Requests of peers use a bounded part of a node's memory, for any number of peers and requests; a peer that asks
//! little gets memory beside peers that ask as much as they may.

use crate::net::{Heard, Mesh, Page, Plan, address, ask};
use node::Report;
use std::time::Duration;
use wire::peer::{Get, Message, Outcome, Request, Want};

/// Peers that ask all they may: 1 and following. After them comes an honest node.
const GREEDY: usize = 10;
const HONEST: usize = GREEDY + 1;
/// The engine's part for them, of the memory that a plan has.
const PART: u64 = (8 << 20) / 4;
const URL: &str = "http://o.test/honest";

fn url(number: usize) -> String {
    format!("http://o.test/{number}")
}

fn greedy(plan: &Plan) -> (Mesh, Vec<Heard>) {
    let mut mesh = Mesh::tree_of(plan, &[0; HONEST]);
    let heard: Vec<_> = (0..GREEDY).map(|_| Heard::default()).collect();
    for (number, heard) in heard.iter().enumerate() {
        mesh.start_liar(number + 1, heard.play());
    }
    mesh.pass_seconds(40);
    mesh.origin.put(URL, Page::of(100_000).fresh(600));
    (mesh, heard)
}

/// The node's own client gets what others asked for at the gateway too.
fn serves_who_asks_little(mesh: &mut Mesh) {
    let id = mesh.get(HONEST, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).end);
    assert!(mesh.data(0, HONEST) >= 100_000, "{}", mesh.cache(id));
}

/// An ask with as many bytes of fields as one may have.
fn large(number: u32, url: &str) -> Message {
    let fields = (0..3).map(|it| (format!("x-{it}"), vec![b'x'; 4000])).collect();
    Message::Get(Box::new(Get { fields, ..ask(number, url) }))
}

#[test]
fn peers_that_ask_all_they_may_leave_room_for_one_that_asks_little() {
    let (mut mesh, heard) = greedy(&Plan::default());
    for number in 0..GREEDY * 100 {
        // None of these is answered while the test lasts.
        mesh.origin.put(&url(number), Page::of(1000).waiting(Duration::from_secs(500)));
    }
    for peer in 0..GREEDY {
        let asks: Vec<_> = (0..100).map(|it| large(it, &url(peer * 100 + it as usize))).collect();
        for some in asks.chunks(25) {
            mesh.liar_says(peer + 1, 0, some.to_vec());
            mesh.pass_seconds(1);
        }
    }
    let Report { asked_bytes, asks_short, exchanges, .. } = mesh.report(0);
    assert!(asked_bytes <= PART && asked_bytes > PART / 2, "{asked_bytes}");
    assert!(asks_short > 0 && exchanges < 60, "{asks_short} of {exchanges} were refused");
    // They are told, and the first and the last of them have about the same.
    let busy = |heard: &Heard| {
        let is_busy = |it: &Message| matches!(it, Message::End(_, Outcome::Busy));
        (0..100).filter(|it| heard.of(*it).iter().any(is_busy)).count()
    };
    assert!(heard.iter().all(|heard| (92..100).contains(&busy(heard))));
    serves_who_asks_little(&mut mesh);
    (1..=GREEDY).for_each(|peer| mesh.kill(peer));
    mesh.pass_seconds(60);
    assert_eq!(mesh.report(0).asked_bytes, 0);
}

#[test]
fn one_peer_alone_may_have_a_hundred_requests_of_the_usual_size() {
    let (mut mesh, heard) = greedy(&Plan { node: roomy(), ..Plan::default() });
    for number in 0..100 {
        mesh.origin.put(&url(number), Page::of(1000).fresh(600).waiting(Duration::from_secs(20)));
    }
    let asks = (0..100).map(|it| Message::Get(Box::new(ask(it, &url(it as usize)))));
    mesh.liar_says(1, 0, asks.collect());
    mesh.pass_seconds(30);
    let is_head = |it: &Message| matches!(it, Message::Head(..));
    assert!((0..100).all(|it| heard[0].of(it).iter().any(is_head)));
    assert_eq!(mesh.report(0).asks_short, 0);
}

/// A router with the memory that one has by default.
fn roomy() -> crate::common::Options {
    crate::common::Options { memory_bytes: 16 << 20, ..crate::common::Options::default() }
}

#[test]
fn units_that_peers_want_and_do_not_take_have_their_part_too() {
    let mut plan = Plan::default();
    plan.node.disk_delay = Duration::from_millis(200);
    let (mut mesh, heard) = greedy(&plan);
    let objects = 60;
    for number in 0..objects {
        mesh.origin.put(&url(number), Page::of(150_000).fresh(6000));
        mesh.get(0, &url(number));
    }
    for peer in 0..GREEDY {
        let asks = (0..objects).map(|it| Message::Get(Box::new(ask(it as u32, &url(it)))));
        mesh.liar_says(peer + 1, 0, asks.collect());
    }
    mesh.pass_seconds(5);
    // All want all units at once, and take none.
    for (peer, heard) in heard.iter().enumerate() {
        let wants = (0..objects as u32).map(|it| Message::Want(Request(it), wants(heard, it)));
        let wants: Vec<_> = wants.collect();
        mesh.with_liar(peer + 1, |now, peers| {
            let gateway = peers.at(address(0)).expect("they have met");
            peers.open_data(now, gateway);
        });
        mesh.liar_says(peer + 1, 0, wants);
        mesh.links.deaf.insert(peer + 1);
    }
    let mut most = 0;
    for _ in 0..100 {
        mesh.pass_millis(20);
        most = most.max(mesh.report(0).asked_bytes);
    }
    assert!(most > PART / 2 && most <= PART + GREEDY as u64 * 64 * 1024, "{most}");
    serves_who_asks_little(&mut mesh);
}

/// All units that a peer was told of, of one request.
fn wants(heard: &Heard, number: u32) -> Vec<Want> {
    let heard = heard.of(number);
    let segments = heard.iter().filter_map(|message| match message {
        Message::Segment(_, _, bytes) => content::Segment::decode(bytes).ok(),
        _ => None,
    });
    let entries = segments.flat_map(|segment| segment.entries);
    entries.map(|it| Want { name: it.id, length: it.length, missing: Vec::new() }).collect()
}

#[test]
fn a_large_head_is_charged_with_its_size() {
    let (mut mesh, heard) = greedy(&Plan::default());
    const HEAD: usize = 20_000;
    let page = Page::of(1000).fresh(600);
    mesh.origin.put(&url(0), page.with("x-large", &"x".repeat(HEAD)));
    mesh.get(0, &url(0));
    for (number, requests) in [(0, 1), (1, 2)] {
        mesh.liar_says(1, 0, vec![Message::Get(Box::new(ask(number, &url(0))))]);
        mesh.pass_seconds(1);
        assert!(heard[0].of(number).iter().any(|it| matches!(it, Message::Head(..))));
        let asked_bytes = mesh.report(0).asked_bytes;
        assert!(asked_bytes >= requests * HEAD as u64, "{asked_bytes} of {requests}");
    }
}
