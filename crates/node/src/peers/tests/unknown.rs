//! What later versions may add is skipped or refused, counted, and costs no connection.

use super::net::{Net, address};
use super::{at, node, told};
use crate::input::{LinkId, LinkInput};
use crate::output::LinkOutput;
use crate::peers::link::Role;
use crate::peers::{Event, Peers};
use bytes::Bytes;
use wire::NodeId;
use wire::peer::{Get, Message, Outcome, Refusal, Request};

/// Two nodes that have met.
fn met() -> (Net, [NodeId; 2]) {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[20]);
    net.dial(0, 1);
    net.run(1_000);
    let ids = [0, 1].map(|node| net.nodes[node].peers.own_id());
    for node in [0, 1] {
        net.events(node);
    }
    (net, ids)
}

/// Sends bytes as a message, whatever they are.
fn say_raw(peers: &mut Peers, to: NodeId, bytes: &[u8]) {
    let control = peers.peers[&to].control;
    let link = peers.links.get_mut(&control).expect("it is connected");
    let Role::Control(_, session) = &mut link.role else { panic!("it is a control link") };
    link.out.append(|out| session.seal(bytes, out));
    peers.write(control);
}

#[test]
fn unknown_messages_and_parts_are_skipped_and_counted() {
    let (mut net, ids) = met();
    let known = Message::Cancel(Request(9)).encode().expect("it is short");
    let longer = [&known[..], &[1, 2, 3]].concat();
    for bytes in [&[200, 1, 2, 3][..], &[20], &longer] {
        net.with(0, |peers, _| say_raw(peers, ids[1], bytes));
    }
    net.run(200);
    let heard = Event::Message(ids[0], Message::Cancel(Request(9)));
    assert_eq!(told(&net.events(1)), told(&[heard]));
    let unknown = net.nodes[1].peers.unknown;
    assert_eq!((unknown.messages, unknown.parts, unknown.requests), (2, 1, 0));
    assert_eq!(net.nodes[1].peers.count(), 1);
}

#[test]
fn a_request_that_requires_what_is_unknown_ends_and_the_connection_stays() {
    let (mut net, ids) = met();
    let get = Get { request: Request(7), uri: "http://o.test/".into(), ..Get::default() };
    let mut bytes = Message::Get(Box::new(get)).encode().expect("it is short");
    assert_eq!(bytes.pop(), Some(0), "it has no options");
    // One option, of the unknown odd type 11.
    bytes.extend([1, 11, 0]);
    net.with(0, |peers, _| say_raw(peers, ids[1], &bytes));
    net.run(200);
    assert_eq!(told(&net.events(1)), told(&[]));
    let end = Message::End(Request(7), Outcome::NotUnderstood);
    assert_eq!(told(&net.events(0)), told(&[Event::Message(ids[1], end)]));
    assert_eq!((net.nodes[1].peers.unknown.requests, net.nodes[0].peers.count()), (1, 1));
}

#[test]
fn a_malformed_message_still_expels() {
    let (mut net, ids) = met();
    net.with(0, |peers, _| say_raw(peers, ids[1], &[10, 1]));
    net.run(200);
    assert_eq!(net.nodes[1].peers.count(), 0);
}

#[test]
fn a_kind_of_connection_that_is_not_known_is_refused_with_a_code() {
    let mut peers = node(1, 1, None);
    let link = LinkId(1);
    peers.handle(at(0), LinkInput::Accepted(link, address(9)));
    peers.handle(at(0), LinkInput::Room(link, 100));
    let preamble = Bytes::from_static(b"HSPR\x02\x07\xff\x00 whatever follows");
    peers.handle(at(0), LinkInput::Received(link, preamble));
    let outputs: Vec<_> = std::iter::from_fn(|| peers.poll_output()).collect();
    let is_refusal =
        |it: &LinkOutput| matches!(it, LinkOutput::Write(_, bytes) if **bytes == [0, 0, 6]);
    assert!(outputs.iter().any(is_refusal), "{outputs:?}");
    assert!(matches!(peers.poll_event(), Some(Event::Rejected(_, Refusal::Kind))));
    assert_eq!(peers.links.len(), 0);
}
