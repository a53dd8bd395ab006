//! Nodes at needed addresses get a place, however many other peers are connected.

use super::net::{Net, address};
use super::{Event, at, node};
use crate::input::{LinkId, LinkInput};
use crate::output::LinkOutput;
use crate::peers::{DIALS_MAX, Down, HANDSHAKES_MAX, PEERS_MAX, Peers};
use std::net::SocketAddr;
use wire::NodeId;
use wire::peer::{ChunkHead, Source};

/// Node 0 has as many peers as it can have, and node 1 was the first. Three more nodes exist.
fn full() -> Net {
    let nodes = (0..PEERS_MAX + 4).map(|it| {
        let it = u8::try_from(it).expect("few");
        node(it, it, None)
    });
    let mut net = Net::new(nodes, &[5]);
    for other in 1..=PEERS_MAX {
        net.dial(other, 0);
        net.run(100);
    }
    assert_eq!(peers(&net).len(), PEERS_MAX);
    net
}

fn peers(net: &Net) -> Vec<NodeId> {
    net.nodes[0].peers.list(net.now).iter().map(|it| it.id).collect()
}

fn id(net: &Net, other: usize) -> NodeId {
    net.nodes[other].peers.own_id()
}

#[test]
fn who_is_needed_finds_a_place_by_either_dial() {
    for own in [false, true] {
        let mut net = full();
        net.nodes[0].peers.keep_place_for([address(PEERS_MAX + 1).ip()]);
        match own {
            true => net.dial(0, PEERS_MAX + 1),
            false => net.dial(PEERS_MAX + 1, 0),
        }
        net.run(1_000);
        assert!(peers(&net).contains(&id(&net, PEERS_MAX + 1)));
        // Of the peers that exchanged no units, the oldest has left. Its connection was closed.
        assert!(!peers(&net).contains(&id(&net, 1)));
        assert_eq!((peers(&net).len(), net.nodes[0].peers.displaced()), (PEERS_MAX, 1));
        assert!(net.events(1).iter().any(|it| matches!(it, Event::Down(_, Down::Closed))));
        // Its next dial displaces no other peer.
        net.dial(1, 0);
        net.run(1_000);
        assert!(!peers(&net).contains(&id(&net, 1)));
    }
}

#[test]
fn who_is_needed_does_not_leave_for_another_who_is() {
    let mut net = full();
    let (first, second) = (1, PEERS_MAX + 1);
    net.nodes[0].peers.keep_place_for([first, second].map(|it| address(it).ip()));
    net.dial(second, 0);
    net.run(1_000);
    let left = [first, second].map(|it| peers(&net).contains(&id(&net, it)));
    assert_eq!(left, [true, true]);
    assert!(!peers(&net).contains(&id(&net, 2)));
}

#[test]
fn a_needed_address_has_one_place_however_many_come_from_there() {
    let mut net = full();
    net.nodes[0].peers.keep_place_for([address(PEERS_MAX + 1).ip()]);
    net.dial(PEERS_MAX + 1, 0);
    net.run(1_000);
    for number in 100..110 {
        net.replace(PEERS_MAX + 1, node(number, number, None));
        net.dial(PEERS_MAX + 1, 0);
        net.run(1_000);
        assert!(peers(&net).contains(&id(&net, PEERS_MAX + 1)));
    }
    assert!((2..=PEERS_MAX).all(|it| peers(&net).contains(&id(&net, it))));
}

#[test]
fn who_is_of_no_use_for_a_minute_leaves_for_any_other() {
    let mut net = full();
    let (first, second) = (PEERS_MAX + 1, PEERS_MAX + 2);
    net.dial(first, 0);
    net.run(1_000);
    assert!(!peers(&net).contains(&id(&net, first)), "all have just come");
    net.run(60_000);
    // By either dial.
    net.dial(first, 0);
    net.run(1_000);
    net.dial(0, second);
    net.run(1_000);
    let left = [1, 2, 3, first, second].map(|it| peers(&net).contains(&id(&net, it)));
    assert_eq!(left, [false, false, true, true, true]);
    assert_eq!((peers(&net).len(), net.nodes[0].peers.displaced()), (PEERS_MAX, 2));
}

#[test]
fn who_gave_units_outlasts_who_took_some_and_both_outlast_the_idle() {
    let mut net = full();
    // Node 1 receives a unit, and node 2 sends one. Both connected before all others.
    for (giver, taker) in [(0, 1), (2, 0)] {
        let (from, to) = (id(&net, giver), id(&net, taker));
        net.with(taker, |it, now| it.open_data(now, from));
        net.run(1_000);
        let bytes = vec![7; 100];
        let name = content::name(&bytes);
        let head = ChunkHead { name, total: 100, offset: 0, length: 100, source: Source::Held };
        net.with(giver, |it, now| it.send_chunk(now, to, head, bytes.into()));
        net.run(1_000);
    }
    let leave = |net: &mut Net| {
        let least = net.with(0, |it, now| it.who_leaves_for(now, address(PEERS_MAX + 1).ip()));
        let least = least.expect("there is one");
        net.with(0, |it, _| it.remove(least, Down::Closed));
        least
    };
    net.nodes[0].peers.keep_place_for([address(PEERS_MAX + 1).ip()]);
    let order: Vec<NodeId> = (0..PEERS_MAX).map(|_| leave(&mut net)).collect();
    let expected: Vec<NodeId> = (3..=PEERS_MAX).chain([1, 2]).map(|it| id(&net, it)).collect();
    assert_eq!(order, expected);
}

fn accept(peers: &mut Peers, number: u64, from: [u8; 4]) -> LinkId {
    let link = LinkId::accepted(number);
    peers.handle(at(number), LinkInput::Accepted(link, SocketAddr::new(from.into(), 9)));
    link
}

#[test]
fn a_handshake_with_who_is_needed_outlasts_those_with_any_number_of_strangers() {
    let mut peers = node(1, 1, None);
    peers.keep_place_for([[10, 0, 0, 9].into()]);
    let needed = accept(&mut peers, 0, [10, 0, 0, 9]);
    for number in 1..200 {
        accept(&mut peers, number, [10, 0, 1, u8::try_from(number).expect("a byte")]);
        assert!(peers.links.len() <= HANDSHAKES_MAX && peers.links.contains_key(&needed));
    }
}

#[test]
fn a_stranger_who_connects_often_pushes_out_its_own_handshakes() {
    let mut peers = node(1, 1, None);
    let other = accept(&mut peers, 0, [10, 0, 0, 9]);
    for number in 1..200 {
        accept(&mut peers, number, [10, 0, 1, 1]);
        assert!(peers.links.len() <= HANDSHAKES_MAX && peers.links.contains_key(&other));
    }
}

#[test]
fn who_is_needed_is_dialled_though_as_many_dials_are_under_way_as_may_be() {
    let mut peers = node(1, 1, None);
    for other in 2..2 + DIALS_MAX {
        peers.dial(at(0), address(other));
    }
    let needed = address(200);
    peers.dial(at(0), needed);
    peers.keep_place_for([needed.ip()]);
    peers.dial(at(0), needed);
    peers.dial(at(0), needed);
    let outputs = std::iter::from_fn(|| peers.poll_output());
    let dials = outputs.filter(|it| matches!(it, LinkOutput::Connect(_, to) if *to == needed));
    assert_eq!(dials.count(), 1);
}
