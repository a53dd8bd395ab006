//! A place among the peers: the next hop always finds one, and who is of use keeps theirs.

use crate::net::{Mesh, Page, Plan, via};
use wire::Selection;

const URL: &str = "http://o.test/a";
const STRANGERS: usize = 64;
const LAST: usize = STRANGERS + 1;

/// 1 is between the gateway 0, which is not there yet, and more neighbours than it has places for.
fn crowd(selection: Selection) -> Mesh {
    let parents: Vec<_> = std::iter::once(0).chain([1; STRANGERS]).collect();
    let mut mesh = Mesh::asleep(&Plan::default(), &parents);
    mesh.kill(0);
    mesh.plan(1).selection = selection;
    for node in 1..=LAST {
        mesh.start(node);
        mesh.pass_millis(20);
    }
    mesh.pass_seconds(2);
    assert_eq!(mesh.peers(1), (2..=LAST).collect());
    mesh
}

/// The gateway is there now; until 1 has met it.
fn meet_gateway(mesh: &mut Mesh) {
    mesh.start(0);
    let met = (0..60).any(|_| {
        mesh.pass_seconds(1);
        mesh.peers(1).contains(&0)
    });
    assert!(met);
}

#[test]
fn the_next_hop_finds_a_place_among_as_many_strangers_as_there_are_places() {
    let mut mesh = crowd(Selection::PhThcp);
    meet_gateway(&mut mesh);
    let peers = mesh.peers(1);
    assert!(peers.contains(&0), "{peers:?}");
    assert_eq!((peers.len(), mesh.report(1).peers_displaced), (STRANGERS, 1));
    // It serves, and those who are left get on by it.
    mesh.origin.put(URL, Page::of(100_000).fresh(600));
    let id = mesh.get(1, URL);
    assert!(mesh.client(id).is_ok());
    assert_eq!(mesh.origin.askers(URL), vec![0]);
}

#[test]
fn of_the_other_peers_one_leaves_that_was_of_no_use() {
    let mut mesh = crowd(Selection::PhThcp);
    mesh.origin.put(URL, Page::of(100_000).fresh(600));
    // The one that has been there the longest takes something.
    let id = mesh.get(2, URL);
    assert!(mesh.client(id).is_ok() && mesh.data(1, 2) > 0);
    meet_gateway(&mut mesh);
    let peers = mesh.peers(1);
    assert!(peers.contains(&0) && peers.contains(&2) && !peers.contains(&3), "{peers:?}");
}

#[test]
fn a_peer_that_becomes_the_next_hop_keeps_its_place() {
    // It meets the gateway too, which needs a place.
    let mut mesh = crowd(Selection::Thcp);
    // The route leads over the one that would have left first.
    mesh.route(1, via(2, Some(0), 2));
    meet_gateway(&mut mesh);
    let peers = mesh.peers(1);
    assert!(peers.contains(&0) && peers.contains(&2) && !peers.contains(&3), "{peers:?}");
}
