//! Arbitrary bytes and events at any stage cause no panic and no growth.

use super::net::address;
use super::{Peers, at, node};
use crate::input::{LinkId, LinkInput};
use crate::output::LinkOutput;
use crate::peers::{Event, HANDSHAKES_MAX};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use wire::peer::{ChunkHead, Message, Request, Source};
use wire::{ChunkId, NodeId};

/// One call or event that a node is given.
#[derive(Clone, Debug)]
enum Step {
    Dial,
    Open(NodeId),
    Accepted(u64),
    Connected(u64),
    Room(u64),
    Bytes(u64, Vec<u8>),
    Closed(u64),
}

fn apply(peers: &mut Peers, millis: u64, step: &Step) {
    let input = match step {
        Step::Dial => return peers.dial(at(millis), address(1)),
        Step::Open(peer) => return peers.open_data(at(millis), *peer),
        Step::Accepted(link) => LinkInput::Accepted(LinkId(*link), address(1)),
        Step::Connected(link) => LinkInput::Connected(LinkId(*link)),
        Step::Room(link) => LinkInput::Room(LinkId(*link), 1 << 20),
        Step::Bytes(link, bytes) => LinkInput::Received(LinkId(*link), Bytes::from(bytes.clone())),
        Step::Closed(link) => LinkInput::Closed(LinkId(*link)),
    };
    peers.handle(at(millis), input);
}

/// Connects two nodes without latency; they exchange messages, open data connections and send
/// chunks. Returns the steps of each node, in order.
fn session() -> [Vec<Step>; 2] {
    let mut nodes = [node(1, 1, None), node(2, 2, None)];
    let ids = [nodes[0].own_id(), nodes[1].own_id()];
    let mut steps = [Vec::new(), Vec::new()];
    let mut give = |nodes: &mut [Peers; 2], to: usize, step: Step| {
        apply(&mut nodes[to], 0, &step);
        steps[to].push(step);
    };
    let mut joined: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    let mut accepted = 1;
    give(&mut nodes, 0, Step::Dial);
    for round in 0..60 {
        for from in 0..2 {
            while let Some(output) = nodes[from].poll_output() {
                let to = 1 - from;
                match output {
                    LinkOutput::Connect(LinkId(link), _) => {
                        accepted += 2;
                        joined.insert((from, link), accepted);
                        joined.insert((to, accepted), link);
                        give(&mut nodes, to, Step::Accepted(accepted));
                        give(&mut nodes, to, Step::Room(accepted));
                        give(&mut nodes, from, Step::Connected(link));
                        give(&mut nodes, from, Step::Room(link));
                    }
                    LinkOutput::Write(LinkId(link), bytes) => {
                        let step = Step::Bytes(joined[&(from, link)], bytes.to_vec());
                        give(&mut nodes, to, step);
                    }
                    LinkOutput::Receive(..) => {}
                    LinkOutput::ReadThreshold(..) | LinkOutput::BulkData(_) => {}
                    LinkOutput::Hangup(_) => panic!("no node hangs up"),
                }
            }
        }
        // By now the control connection is established.
        if round == 10 {
            give(&mut nodes, 0, Step::Open(ids[1]));
            give(&mut nodes, 1, Step::Open(ids[0]));
        }
        if round > 20 {
            let bytes = vec![1; 300];
            nodes[0].send(at(0), ids[1], &Message::Bytes(Request(1), 0, bytes));
            nodes[1].send(at(0), ids[0], &Message::Cancel(Request(1)));
            let name = ChunkId([1; 32]);
            let head =
                ChunkHead { name, total: 999, offset: 99, length: 900, source: Source::Origin };
            nodes[1].send_chunk(at(0), ids[0], head, Bytes::from(vec![2; 900]));
            nodes[0].send_chunk(at(0), ids[1], head, Bytes::from(vec![2; 900]));
        }
    }
    let chunks = std::iter::from_fn(|| nodes[0].poll_event());
    assert!(chunks.filter(|it| matches!(it, Event::Chunk(..))).count() > 30);
    steps
}

/// A change to the steps of a node.
#[derive(Clone, Debug)]
enum Harm {
    Flip(usize, usize, u8),
    Cut(usize, usize),
    Insert(usize, Vec<u8>),
    Drop(usize),
    Twice(usize),
    Close(usize),
}

fn harm() -> impl Strategy<Value = Harm> {
    // At least half of the changes are to the first 20 steps, where most can go wrong.
    let place = || prop_oneof![0usize..20, 0usize..200];
    prop_oneof![
        (place(), 0usize..1200, 1u8..).prop_map(|(at, byte, bits)| Harm::Flip(at, byte, bits)),
        (place(), 0usize..1200).prop_map(|(at, byte)| Harm::Cut(at, byte)),
        (place(), prop::collection::vec(any::<u8>(), 1..80))
            .prop_map(|(at, it)| Harm::Insert(at, it)),
        place().prop_map(Harm::Drop),
        place().prop_map(Harm::Twice),
        place().prop_map(Harm::Close),
    ]
}

fn link(step: &Step) -> Option<u64> {
    match step {
        Step::Bytes(link, _) | Step::Room(link) | Step::Connected(link) => Some(*link),
        _ => None,
    }
}

fn harmed(mut steps: Vec<Step>, harms: &[Harm]) -> Vec<Step> {
    for harm in harms {
        let length = steps.len();
        match harm {
            Harm::Flip(at, byte, bits) => {
                if let Step::Bytes(_, bytes) = &mut steps[at % length] {
                    let byte = byte % bytes.len();
                    bytes[byte] ^= bits;
                }
            }
            Harm::Cut(at, byte) => {
                if let Step::Bytes(_, bytes) = &mut steps[at % length] {
                    bytes.truncate(1 + byte % bytes.len());
                }
            }
            Harm::Insert(at, bytes) => {
                if let Some(link) = link(&steps[at % length]) {
                    steps.insert(at % length, Step::Bytes(link, bytes.clone()));
                }
            }
            Harm::Drop(at) => drop(steps.remove(at % length)),
            Harm::Twice(at) => steps.insert(at % length, steps[at % length].clone()),
            Harm::Close(at) => {
                if let Some(link) = link(&steps[at % length]) {
                    steps.insert(at % length, Step::Closed(link));
                }
            }
        }
    }
    steps
}

fn assert_small(peers: &mut Peers) {
    assert!(peers.peers.len() <= 1);
    assert!(peers.links.len() <= HANDSHAKES_MAX + 4);
    while peers.poll_output().is_some() || peers.poll_event().is_some() {}
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_session_with_harm_done_to_it_ends_in_order(
        side in 0usize..2,
        harms in prop::collection::vec(harm(), 1..4),
    ) {
        thread_local!(static SESSION: [Vec<Step>; 2] = session());
        let steps = harmed(SESSION.with(|it| it[side].clone()), &harms);
        let side = u8::try_from(side).expect("two sides");
        let mut peers = node(side + 1, side + 1, None);
        for (i, step) in steps.iter().enumerate() {
            apply(&mut peers, i as u64 * 10, step);
            assert_small(&mut peers);
        }
        for i in 0..20 {
            peers.handle_timeout(at(10_000 + i * 20_000));
            assert_small(&mut peers);
        }
        prop_assert!(peers.links.is_empty() && peers.peers.is_empty(), "all is silent");
        prop_assert_eq!(peers.poll_timeout(), None);
    }

    #[test]
    fn a_connection_that_sends_garbage_is_no_peer(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..8),
        begins in prop::sample::select(vec![
            &b""[..], b"HSPR\x01\x01\x00\x00", b"HSPR\x01\x02\x00\x00",
            b"HSPR\x01\x01\x00\x00\x00\x20", b"HSPR\x01\x01\x01\x00",
        ]),
        accepted: bool,
    ) {
        let mut peers = node(1, 1, None);
        let link = if accepted { 1 } else { 2 };
        if accepted {
            apply(&mut peers, 0, &Step::Accepted(link));
        } else {
            apply(&mut peers, 0, &Step::Dial);
            apply(&mut peers, 0, &Step::Connected(link));
        }
        apply(&mut peers, 0, &Step::Room(link));
        for bytes in std::iter::once(begins.to_vec()).chain(pieces) {
            apply(&mut peers, 0, &Step::Bytes(link, bytes));
            let held: usize = peers.links.len();
            prop_assert!(held <= 1 && peers.peers.is_empty());
        }
        peers.handle_timeout(at(20_000));
        prop_assert!(peers.links.is_empty());
    }
}
