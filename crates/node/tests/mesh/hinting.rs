//! PH-HINTS: routers tell towards the gateway what they store, and name nearer copies.

use crate::net::{Mesh, Page, Plan, address};
use std::time::Duration;
use wire::Selection;
use wire::peer::{Copies, Cost, Message, Reach};

const URL: &str = "http://o.test/a";
const LENGTH: usize = 100_000;
/// At the end of one branch, two hops from the gateway …
const ASKER: usize = 2;
/// … and at the end of the other, where the asker hears it.
const HOLDER: usize = 4;

fn plan() -> Plan {
    Plan { selection: Selection::PhHints, ..Plan::default() }
}

/// A ring: 0 is the gateway, 1 and 2 are one branch, 3 and 4 the other. All have told of themselves.
fn ring(plan: &Plan) -> Mesh {
    let mut mesh = Mesh::ring_of(plan);
    mesh.pass_seconds(30);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(6000));
    mesh
}

/// How many requests of peers each node got.
fn asks(mesh: &Mesh) -> Vec<u64> {
    (0..5).map(|node| mesh.report(node).asks_in).collect()
}

#[test]
fn the_gateway_names_a_copy_that_is_no_farther_though_it_has_one_itself() {
    let mut mesh = ring(&plan());
    mesh.get(HOLDER, URL);
    let before = asks(&mesh);
    assert_eq!(before, [1, 0, 0, 1, 0]);
    let id = mesh.get(ASKER, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    // By 1 to the gateway, which names the holder, and then there.
    assert_eq!(asks(&mesh), [2, 1, 0, 1, 1]);
    assert_eq!(mesh.origin.askers(URL), [0]);
    assert_eq!(mesh.report(ASKER).recent.pop().expect("an object").source, "n4");
    let report = mesh.report(ASKER);
    assert_eq!((report.searches_located, report.searches_in_vain), (1, 0));
    assert_eq!((0..5).map(|node| mesh.report(node).redirects).sum::<u64>(), 1);
    mesh.done();
}

#[test]
fn what_came_from_off_the_way_is_told_and_found() {
    let mut mesh = ring(&plan());
    mesh.get(HOLDER, URL);
    mesh.get(ASKER, URL);
    mesh.pass_seconds(15);
    // 1 did not see the answer: the asker has told it.
    let id = mesh.get(1, URL);
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.report(1).recent.pop().expect("an object").source, "n2");
    assert_eq!((mesh.report(0).asks_in, mesh.origin.askers(URL).len()), (2, 1));
    mesh.done();
}

#[test]
fn what_is_evicted_is_told_and_a_wrong_hint_costs_one_question() {
    let mut mesh = ring(&plan());
    mesh.get(HOLDER, URL);
    // The holder begins anew with an empty store, and nobody knows.
    mesh.restart_empty(HOLDER);
    mesh.pass_seconds(1);
    let id = mesh.get(ASKER, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert_eq!(mesh.origin.askers(URL), [0]);
    assert!(mesh.report(ASKER).searches_in_vain <= 1);
    mesh.done();
}

#[test]
fn requests_of_others_that_wait_for_the_same_answer_are_sent_anew() {
    // 5 is behind 1, too, and far from the holder.
    let mut mesh = Mesh::tree_of(&plan(), &[0, 1, 0, 3, 1]);
    mesh.mend(ASKER, HOLDER);
    mesh.chart();
    mesh.pass_seconds(30);
    mesh.origin.put(URL, Page::of(LENGTH).fresh(6000));
    mesh.get(HOLDER, URL);
    let first = mesh.call(ASKER, crate::net::Call::get(URL));
    let second = mesh.call(5, crate::net::Call::get(URL));
    mesh.finish();
    for id in [first, second] {
        assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    }
    assert_eq!(mesh.origin.askers(URL), [0]);
    mesh.done();
}

#[test]
fn without_a_gateways_signature_nothing_is_taken_from_who_is_named() {
    let mut mesh = ring(&plan());
    // For a while the holder is a gateway itself, and signs what it fetches.
    mesh.links.ground.uplinks.insert(HOLDER);
    mesh.route(HOLDER, crate::net::gateway(HOLDER));
    mesh.get(HOLDER, URL);
    mesh.links.ground.uplinks.remove(&HOLDER);
    mesh.route(HOLDER, crate::net::via(3, Some(0), 2));
    mesh.chart();
    mesh.pass_seconds(30);
    let id = mesh.get(ASKER, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert_eq!(mesh.origin.askers(URL), [HOLDER, 0]);
    mesh.done();
}

#[test]
fn hints_for_everything_and_delivery_of_nothing_cost_questions_only() {
    let mut mesh = ring(&plan());
    // A liar in the holder's place says that it is near everybody and has the page.
    mesh.start_liar(HOLDER, Box::new(|_, _, _| {}));
    let id = {
        let reach = Reach {
            id: wire::NodeId([77; 16]),
            address: address(HOLDER),
            gateway: 2,
            paths: vec![Cost { router: address(3), cost: 1 }],
        };
        let names = (0..200).map(|number| wire::Hint([number; 8])).collect();
        let copies = Copies { router: address(HOLDER), stored: names, evicted: Vec::new() };
        let said = vec![Message::Reach(Box::new(reach)), Message::Copies(copies)];
        mesh.liar_says(HOLDER, 3, said);
        mesh.pass_seconds(15);
        mesh.get(ASKER, URL)
    };
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert!(mesh.took(id) < Duration::from_secs(10), "{:?}", mesh.took(id));
    assert_eq!(mesh.report(0).copies, 200 + 2, "what the liar said, and who was given the page");
    mesh.done();
}

#[test]
fn cut_off_from_the_gateway_routers_of_a_mesh_with_a_key_search() {
    for (key, finds) in [(Some([7; 32]), true), (None, false)] {
        let mut mesh = ring(&Plan { selection: Selection::Auto, key, ..plan() });
        mesh.get(HOLDER, URL);
        mesh.cut(0, 1);
        mesh.cut(0, 3);
        for node in 1..5 {
            mesh.route(node, node::RouteTable::default());
        }
        mesh.chart();
        mesh.pass_seconds(5);
        let id = mesh.get(ASKER, URL);
        assert_eq!(mesh.client(id).is_ok(), finds, "{:?}", mesh.client(id).head);
        let report = mesh.report(ASKER);
        let count = u64::from(finds);
        assert_eq!((report.searches, report.searches_located), (count, count));
        assert_eq!(mesh.report(HOLDER).asks_in, count);
        assert_eq!(mesh.origin.askers(URL)[0], 0);
        mesh.done();
    }
}

#[test]
fn with_a_way_to_the_gateway_nobody_waits_for_a_search() {
    let mut mesh = ring(&Plan { selection: Selection::Auto, key: Some([7; 32]), ..plan() });
    mesh.get(HOLDER, URL);
    let id = mesh.get(ASKER, URL);
    assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
    assert_eq!(asks(&mesh), [2, 1, 0, 1, 1]);
    assert_eq!((mesh.report(ASKER).searches, mesh.broadcasts.len()), (0, 0));
    mesh.done();
}

/// A liar that ends each request so, and what a client of the node behind it gets.
fn sent_elsewhere(outcome: wire::peer::Outcome) -> (Mesh, usize) {
    let mut mesh = ring(&plan());
    let ends = move |now, peers: &mut node::testing::Peers, event| {
        if let node::testing::Event::Message(peer, Message::Get(get)) = event {
            peers.send(now, peer, &Message::End(get.request, outcome.clone()));
        }
    };
    mesh.start_liar(1, Box::new(ends));
    mesh.pass_seconds(5);
    let id = mesh.get(ASKER, URL);
    (mesh, id)
}

#[test]
fn who_is_sent_elsewhere_again_and_again_asks_the_gateway() {
    use wire::peer::{Outcome, Router};
    let nowhere =
        Router { id: wire::NodeId([9; 16]), address: Some([10, 0, 0, 99].into()), cost: Some(1) };
    for routers in [Vec::new(), vec![nowhere]] {
        let (mut mesh, id) = sent_elsewhere(Outcome::Elsewhere(routers));
        assert!(mesh.client(id).is_ok(), "{:?}", mesh.client(id).head);
        assert!(mesh.took(id) < Duration::from_secs(30), "{:?}", mesh.took(id));
        mesh.done();
    }
}
