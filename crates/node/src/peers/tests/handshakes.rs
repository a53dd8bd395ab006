//! Which nodes become peers, and which are refused.

use super::net::{Net, address};
use super::{at, hello, node, told};
use crate::input::{LinkId, LinkInput};
use crate::misbehaviour::Misbehaviour;
use crate::output::LinkOutput;
use crate::peers::connecting::Signatures;
use crate::peers::{Down, Event};
use bytes::Bytes;
use wire::peer::{Message, Refusal, Request};

/// The first node dials the second; 30 s pass.
fn meet(one: super::Peers, other: super::Peers) -> Net {
    let mut net = Net::new([one, other], &[20]);
    net.dial(0, 1);
    net.run(30_000);
    net
}

#[test]
fn two_nodes_meet_and_talk() {
    for key in [None, Some(7)] {
        let mut net = meet(node(1, 1, key), node(2, 2, key));
        let ids = [net.nodes[0].peers.own_id(), net.nodes[1].peers.own_id()];
        let up = |node: usize, dialled| Event::Up { peer: ids[1 - node], dialled };
        assert_eq!(told(&net.events(0)), told(&[up(0, Some(address(1)))]));
        assert_eq!(told(&net.events(1)), told(&[up(1, None)]));
        for (node, name) in [(0, "node 2"), (1, "node 1")] {
            let peers = &net.nodes[node].peers;
            assert_eq!(peers.hello(ids[1 - node]), Some(&hello(name)));
            assert_eq!(peers.at(address(1 - node).ip()), Some(ids[1 - node]));
            let infos = peers.list(net.now);
            assert_eq!((infos.len(), infos[0].hello.name.as_str()), (1, name));
            assert!(infos[0].in_bytes > 100 && infos[0].out_bytes > 100);
            let message = Message::Cancel(Request(9));
            assert!(net.with(node, |it, now| it.send(now, ids[1 - node], &message)));
            net.run(100);
            let heard = Event::Message(ids[node], message);
            assert_eq!(told(&net.events(1 - node)), told(&[heard]));
        }
    }
}

#[test]
fn a_key_that_differs_is_refused_on_both_sides_once() {
    for (one, other) in [(Some(1), Some(2)), (Some(1), None), (None, Some(1))] {
        let mut net = meet(node(1, 1, one), node(2, 2, other));
        let failed = Event::Failed(address(1), Down::Refused(Refusal::MeshKey));
        assert_eq!(told(&net.events(0)), told(&[failed]));
        let events = net.events(1);
        let is_rejected = |it: &Event| matches!(it, Event::Rejected(_, Refusal::MeshKey));
        assert!(events.len() == 1 && is_rejected(&events[0]), "{events:?}");
        // A refusal is reported once a minute.
        net.dial(0, 1);
        net.run(20_000);
        assert!(net.events(1).is_empty());
        net.run(60_000);
        net.dial(0, 1);
        net.run(1_000);
        assert_eq!(net.events(1).len(), 1);
        assert_eq!(net.cables(), 0);
    }
}

#[test]
fn a_node_that_does_not_prove_its_identity_is_no_peer() {
    for (impostor, honest) in [(0, 1), (1, 0)] {
        let mut nodes = [node(1, 1, None), node(2, 2, None)];
        let stolen = *nodes[honest].noise.public();
        nodes[impostor].signatures = Signatures::new(&nodes[impostor].me, &stolen);
        let mut net = Net::new(nodes, &[5]);
        net.dial(0, 1);
        net.run(20_000);
        let failed = Event::Failed(address(1), Down::Refused(Refusal::Identity));
        assert_eq!(told(&net.events(0)), told(&[failed]));
        assert_eq!(net.events(1).len(), if honest == 1 { 1 } else { 0 });
        assert_eq!(net.cables(), 0);
    }
}

#[test]
fn a_signature_of_who_was_dialled_does_not_serve_who_dials() {
    let mut one = node(1, 1, None);
    std::mem::swap(&mut one.signatures.dialling, &mut one.signatures.accepting);
    let mut net = meet(one, node(2, 2, None));
    let failed = Event::Failed(address(1), Down::Refused(Refusal::Identity));
    assert_eq!(told(&net.events(0)), told(&[failed]));
}

#[test]
fn a_node_does_not_meet_itself() {
    let mut net = Net::new([node(1, 1, None)], &[5]);
    net.dial(0, 0);
    net.run(20_000);
    let failed = Event::Failed(address(0), Down::Refused(Refusal::Identity));
    assert_eq!(told(&net.events(0)), told(&[failed]));
    assert_eq!(net.cables(), 0);
}

#[test]
fn a_version_that_is_not_known_is_refused_in_clear() {
    let mut peers = node(1, 1, None);
    let link = LinkId(1);
    peers.handle(at(0), LinkInput::Accepted(link, address(9)));
    peers.handle(at(0), LinkInput::Room(link, 100));
    let preamble = Bytes::from_static(b"HSPR\x01\x01\x00\x00 whatever follows");
    peers.handle(at(0), LinkInput::Received(link, preamble));
    let outputs: Vec<_> = std::iter::from_fn(|| peers.poll_output()).collect();
    let is_refusal =
        |it: &LinkOutput| matches!(it, LinkOutput::Write(_, bytes) if **bytes == [0, 0, 1]);
    assert!(is_refusal(&outputs[1]), "{outputs:?}");
    assert!(matches!(outputs[2], LinkOutput::Hangup(_)), "{outputs:?}");
    assert!(matches!(peers.poll_event(), Some(Event::Rejected(_, Refusal::Version))));
    assert_eq!(peers.links.len(), 0);
}

#[test]
fn a_refusal_in_clear_reaches_who_dialled() {
    let mut peers = node(1, 1, None);
    peers.dial(at(0), address(9));
    let Some(LinkOutput::Connect(link, _)) = peers.poll_output() else { panic!("no dial") };
    peers.handle(at(0), LinkInput::Connected(link));
    for byte in [0, 0, 1] {
        peers.handle(at(0), LinkInput::Received(link, Bytes::copy_from_slice(&[byte])));
    }
    let failed = Event::Failed(address(9), Down::Refused(Refusal::Version));
    let events: Vec<_> = std::iter::from_fn(|| peers.poll_event()).collect();
    assert_eq!(told(&events), told(&[failed]));
}

#[test]
fn what_is_not_there_or_says_nothing_fails() {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[5]);
    net.dial(0, 77);
    net.run(100);
    let failed = |it| Event::Failed(address(it), Down::Unreachable);
    assert_eq!(told(&net.events(0)), told(&[failed(77)]));
    net.dial(0, 1);
    net.cut(1);
    net.run(9_000);
    assert!(net.events(0).is_empty());
    net.run(2_000);
    assert_eq!(told(&net.events(0)), told(&[failed(1)]));
    assert!(net.nodes[0].peers.links.is_empty());
}

#[test]
fn a_slow_way_is_long_enough() {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[1_900]);
    net.dial(0, 1);
    net.run(30_000);
    assert!(matches!(net.events(0)[..], [Event::Up { .. }]));
    assert_eq!(net.cables(), 1);
}

#[test]
fn a_hello_that_changes_reaches_all() {
    let mut net = meet(node(1, 1, None), node(2, 2, None));
    net.events(1);
    let id = net.nodes[0].peers.own_id();
    for _ in 0..2 {
        net.with(0, |it, now| it.introduce(now, hello("another name")));
        net.run(100);
    }
    assert_eq!(told(&net.events(1)), told(&[Event::Hello(id, hello("another name"))]));
    // A hello that changes during the handshake arrives too.
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[20]);
    net.dial(0, 1);
    net.run(90);
    net.with(0, |it, now| it.introduce(now, hello("another name")));
    net.run(1_000);
    assert_eq!(net.nodes[1].peers.hello(id), Some(&hello("another name")));
}

#[test]
fn an_expelled_peer_is_not_listened_to_for_a_minute() {
    let mut net = meet(node(1, 1, None), node(2, 2, None));
    net.events(0);
    let (me, id) = (net.nodes[1].peers.own_id(), net.nodes[0].peers.own_id());
    net.with(1, |it, now| it.expel(now, id, Misbehaviour::Message));
    net.run(100);
    assert_eq!(told(&net.events(0)), told(&[Event::Down(me, Down::Closed)]));
    net.events(1);
    net.dial(0, 1);
    net.run(1_000);
    let failed = Event::Failed(address(1), Down::Refused(Refusal::Identity));
    assert_eq!(told(&net.events(0)), told(&[failed]));
    net.run(60_000);
    net.dial(0, 1);
    net.run(1_000);
    assert_eq!(net.cables(), 1);
}
