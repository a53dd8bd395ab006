//! Limits on the memory that other nodes can make this node use.

use super::net::{Net, address};
use super::{Event, at, node};
use crate::input::{LinkId, LinkInput};
use crate::output::LinkOutput;
use crate::peers::{CONTROL_BACKLOG_MAX, Down, HANDSHAKES_MAX, PEERS_MAX};
use std::net::SocketAddr;
use wire::peer::{Message, Refusal, Request};

#[test]
fn of_many_who_do_not_say_who_they_are_the_oldest_go() {
    let mut peers = node(1, 1, None);
    for i in 0..200u64 {
        let from = SocketAddr::new([10, 0, 1, u8::try_from(i % 200).expect("a byte")].into(), 9);
        peers.handle(at(i), LinkInput::Accepted(LinkId::accepted(i), from));
        peers.handle(at(i), LinkInput::Room(LinkId::accepted(i), 100));
        assert!(peers.links.len() <= HANDSHAKES_MAX);
    }
    assert!(peers.links.keys().all(|it| it.0 > (200 - HANDSHAKES_MAX as u64) * 2));
    let events: Vec<_> = std::iter::from_fn(|| peers.poll_event()).collect();
    assert_eq!(events.len(), 64, "addresses that are told of within a minute");
    assert!(events.iter().all(|it| matches!(it, Event::Rejected(_, Refusal::Busy))));
    let granted = std::iter::from_fn(|| peers.poll_output()).filter_map(|it| match it {
        LinkOutput::Receive(_, bytes) => Some(bytes),
        _ => None,
    });
    assert!(granted.max() <= Some(4096));
    peers.handle_timeout(at(20_000));
    assert_eq!((peers.links.len(), peers.poll_timeout()), (0, None));
}

#[test]
fn more_than_so_many_peers_are_refused() {
    let nodes = (0..PEERS_MAX + 3).map(|it| {
        let it = u8::try_from(it).expect("few");
        node(it, it, None)
    });
    let mut net = Net::new(nodes, &[5]);
    for other in 1..PEERS_MAX + 2 {
        net.dial(other, 0);
        net.run(100);
    }
    assert_eq!(net.nodes[0].peers.list(net.now).len(), PEERS_MAX);
    let busy = |it: &Event| matches!(it, Event::Failed(_, Down::Refused(Refusal::Busy)));
    assert!(matches!(&net.events(PEERS_MAX + 1)[..], [it] if busy(it)));
    assert!(net.events(0).iter().any(|it| matches!(it, Event::Rejected(_, Refusal::Busy))));
    net.dial(0, PEERS_MAX + 2);
    net.run(1_000);
    assert!(net.events(0).iter().any(busy));
    assert!(net.events(PEERS_MAX + 2).is_empty());
    assert_eq!(net.nodes[0].peers.links.len(), PEERS_MAX);
}

#[test]
fn who_takes_no_messages_is_hung_up() {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[20]);
    net.dial(0, 1);
    net.run(1_000);
    let id = net.nodes[1].peers.own_id();
    net.events(0);
    net.cut(1);
    let message = Message::Bytes(Request(1), 0, vec![7; Message::BYTES_MAX]);
    let mut sent = 0;
    while net.with(0, |it, now| it.send(now, id, &message)) {
        sent += 1;
        assert!(net.nodes[0].peers.backlog(id) <= CONTROL_BACKLOG_MAX);
        assert!(sent < 100);
    }
    assert!(sent > 60, "{sent}");
    assert!(matches!(net.events(0)[..], [Event::Down(_, Down::Silent)]));
    assert_eq!(net.nodes[0].peers.backlog(id), 0);
    assert!(!net.with(0, |it, now| it.send(now, id, &message)));
}

#[test]
fn of_many_who_take_no_messages_the_one_with_the_most_is_hung_up() {
    let mut net = Net::new((1..6).map(|it| node(it, it, None)), &[20]);
    let ids: Vec<_> = net.nodes.iter().map(|it| it.peers.own_id()).collect();
    for other in 1..5 {
        net.dial(0, other);
        net.run(1_000);
        net.cut(other);
    }
    net.nodes[0].peers.limit_backlogs(CONTROL_BACKLOG_MAX);
    let message = Message::Bytes(Request(1), 0, vec![7; Message::BYTES_MAX]);
    // Node 2 has the longest backlog; a message to node 4 exceeds the limit for all.
    for (other, count) in [(1, 20), (2, 30), (3, 20)] {
        for _ in 0..count {
            assert!(net.with(0, |it, now| it.send(now, ids[other], &message)));
        }
    }
    net.events(0);
    assert!((0..12).all(|_| net.with(0, |it, now| it.send(now, ids[4], &message))));
    assert!(matches!(net.events(0)[..], [Event::Down(gone, Down::Silent)] if gone == ids[2]));
    assert!(net.nodes[0].peers.backlogs() <= CONTROL_BACKLOG_MAX);
    assert!([1, 3, 4].iter().all(|it| net.nodes[0].peers.backlog(ids[*it]) > 0));
}

#[test]
fn messages_that_fit_are_written_together() {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[20]);
    net.dial(0, 1);
    net.run(1_000);
    let id = net.nodes[1].peers.own_id();
    let peers = &mut net.nodes[0].peers;
    for i in 0..100 {
        peers.send(net.now, id, &Message::Cancel(Request(i)));
    }
    assert_eq!(peers.backlog(id), 0);
    let outputs: Vec<_> = std::iter::from_fn(|| peers.poll_output()).collect();
    assert!(matches!(outputs[..], [LinkOutput::Write(..)]), "{}", outputs.len());
}

#[test]
fn no_more_than_so_many_dials_are_begun() {
    let mut peers = node(1, 1, None);
    for i in 0..100 {
        peers.dial(at(0), address(i));
        peers.dial(at(0), address(i));
    }
    assert_eq!(peers.links.len(), 64);
    assert_eq!(std::iter::from_fn(|| peers.poll_event()).count(), 2 * 36);
}
