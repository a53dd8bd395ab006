//! Data connections.

use super::net::{Net, address};
use super::{Event, node, told};
use crate::input::{LinkId, LinkInput};
use crate::output::LinkOutput;
use crate::peers::chunks::{ChunkReader, NoFrame};
use crate::peers::{Down, WINDOW};
use bytes::Bytes;
use wire::peer::{ChunkHead, Connection, Preamble, Refusal, Source};
use wire::{ChunkId, NodeId};

fn frame(fill: u8, length: u32) -> (ChunkHead, Bytes) {
    let name = ChunkId([fill; 32]);
    let head = ChunkHead { name, total: length, offset: 0, length, source: Source::Held };
    (head, Bytes::from(vec![fill; length as usize]))
}

/// Two peers. The first has opened a data connection.
fn pair() -> (Net, [NodeId; 2]) {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[20]);
    net.dial(0, 1);
    net.run(1_000);
    let ids = [net.nodes[0].peers.own_id(), net.nodes[1].peers.own_id()];
    assert_eq!(net.nodes[1].peers.chunk_room(ids[0]), 0);
    net.with(0, |it, now| it.open_data(now, ids[1]));
    net.with(0, |it, now| it.open_data(now, ids[1]));
    net.run(1_000);
    assert_eq!(net.cables(), 2);
    let events = net.events(1);
    assert!(matches!(events[..], [_, Event::Room(it)] if it == ids[0]), "{events:?}");
    net.events(0);
    (net, ids)
}

/// Sends this many frames, each once there is room.
fn send(net: &mut Net, to: NodeId, frames: usize) {
    for i in 0..frames {
        let mut turns = 0;
        while net.nodes[1].peers.chunk_room(to) == 0 {
            net.events(1);
            net.run(10);
            turns += 1;
            assert!(turns < 1_000, "no room any more");
            let events = &net.nodes[1].events;
            let has_room = net.nodes[1].peers.chunk_room(to) > WINDOW / 2;
            assert!(!has_room || events.iter().any(|it| matches!(it, Event::Room(_))));
        }
        let (head, bytes) = frame(u8::try_from(i % 256).expect("a byte"), 16_000);
        net.with(1, |it, now| it.send_chunk(now, to, head, bytes));
        let queued: usize = net.nodes[1].peers.links.values().map(|it| it.out.len()).sum();
        assert!(queued <= WINDOW + 50 + 16_000);
    }
    net.run(5_000);
}

#[test]
fn frames_arrive_whole_and_in_order() {
    let (mut net, ids) = pair();
    send(&mut net, ids[0], 300);
    let events = net.events(0);
    assert_eq!(events.len(), 300);
    for (i, event) in events.into_iter().enumerate() {
        let Event::Chunk(from, head, bytes) = event else { panic!("{event:?}") };
        assert_eq!((from, head, bytes), {
            let (head, bytes) = frame(u8::try_from(i % 256).expect("a byte"), 16_000);
            (ids[1], head, bytes)
        });
    }
    assert_eq!(net.nodes[0].peers.peers[&ids[1]].tried, None, "what has worked is not tried again");
    let info = |node: usize| net.nodes[node].peers.list(net.now)[0].clone();
    assert_eq!(info(0).units_in_bytes, 300 * 16_000);
    assert_eq!(info(1).units_out_bytes, 300 * 16_000);
    assert!(info(0).in_bytes > 300 * 16_050);
}

#[test]
fn who_accepts_no_chunks_is_sent_few() {
    let (mut net, ids) = pair();
    net.with(0, |it, _| it.accept_chunks(false));
    let room = |net: &Net| net.nodes[1].peers.chunk_room(ids[0]);
    for i in 0..1_000u32 {
        if room(&net) == 0 {
            break;
        }
        assert!(i < 100, "nothing holds it back");
        let (head, bytes) = frame(1, 16_000);
        net.with(1, |it, now| it.send_chunk(now, ids[0], head, bytes));
        net.run(100);
    }
    let received = net.events(0).len();
    net.run(10_000);
    assert!(net.events(0).is_empty());
    net.with(0, |it, _| it.accept_chunks(true));
    net.run(10_000);
    assert!(!net.events(0).is_empty() && received > 0);
    assert!(matches!(net.events(1)[..], [Event::Room(_)]));
    assert_eq!(room(&net), WINDOW);
}

#[test]
fn a_connection_that_breaks_is_opened_again_with_another_token() {
    let (mut net, ids) = pair();
    for _ in 0..10 {
        send(&mut net, ids[0], 1);
        net.events(0);
        let data = net.nodes[1].peers.peers[&ids[0]].data_out.expect("a data connection");
        net.with(1, |it, now| {
            let link = it.hang_up(data).expect("a link");
            it.ended(now, link, Down::Closed);
        });
        net.run(1_000);
        assert_eq!(told(&net.events(0)), told(&[Event::DataLost(ids[1])]));
        net.with(0, |it, now| it.open_data(now, ids[1]));
        net.run(3_000);
        assert_eq!(net.cables(), 2);
    }
    assert!(told(&net.events(1)).is_empty(), "no connection is rejected");
}

#[test]
fn a_dial_that_the_other_side_loses_is_made_again_with_the_same_token() {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[20]);
    net.dial(0, 1);
    net.run(1_000);
    let id = net.nodes[1].peers.own_id();
    net.with(0, |it, now| it.open_data(now, id));
    let dial = net.nodes[0].peers.peers[&id].data_in.expect("a dial");
    net.with(0, |it, now| it.handle(now, LinkInput::Closed(dial)));
    net.with(0, |it, now| it.open_data(now, id));
    net.run(900);
    assert_eq!(net.nodes[0].peers.peers[&id].data_in, None, "after a second");
    net.run(500);
    assert!(net.nodes[0].peers.peers[&id].data_in.is_some());
}

#[test]
fn a_token_that_comes_before_the_answer_is_good_later() {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[100, 1]);
    net.dial(0, 1);
    // The third message arrives after 500 ms, and the answer to it 100 ms later.
    net.run(505);
    let id = net.nodes[0].peers.own_id();
    net.with(1, |it, now| it.open_data(now, id));
    net.run(50);
    assert!(matches!(net.events(1)[..], [Event::Up { .. }, Event::DataLost(_)]));
    net.run(10);
    net.with(1, |it, now| it.open_data(now, id));
    net.run(2_000);
    assert_eq!(net.cables(), 2);
    let events = net.events(0);
    assert!(matches!(events[..], [Event::Up { .. }, Event::Room(_)]), "{events:?}");
}

#[test]
fn a_token_opens_one_connection() {
    let (mut net, ids) = pair();
    let used = net.nodes[0].peers.peers[&ids[1]].tried.expect("a token that was tried");
    net.events(1);
    let preamble = Preamble { connection: Connection::Data, sealed: false }.encode();
    let bytes = Bytes::from([&preamble[..], used.as_bytes()].concat());
    let link = LinkId(999);
    let peers = &mut net.nodes[1].peers;
    peers.handle(net.now, LinkInput::Accepted(link, address(7)));
    peers.handle(net.now, LinkInput::Received(link, bytes));
    assert!(!peers.links.contains_key(&link));
    assert!(matches!(peers.poll_event(), Some(Event::Rejected(_, Refusal::Token))));
    assert!(peers.chunk_room(ids[0]) > 0, "the first one stays");
}

#[test]
fn frames_are_read_wherever_they_are_split() {
    let frames = [frame(1, 70), frame(2, 1), frame(3, 120)];
    let stream: Vec<u8> =
        frames.iter().flat_map(|(head, bytes)| [&head.encode()[..], bytes].concat()).collect();
    for first in 0..stream.len() {
        for second in [first, (first + 57).min(stream.len())] {
            let (mut reader, mut found) = (ChunkReader::default(), Vec::new());
            for piece in [&stream[..first], &stream[first..second], &stream[second..]] {
                let mut piece = Bytes::copy_from_slice(piece);
                while !piece.is_empty() {
                    found.extend(reader.next(&mut piece).expect("sound frames"));
                }
            }
            assert_eq!(found, frames, "split at {first} and {second}");
        }
    }
}

#[test]
fn what_a_unit_lacks_gathers_up_to_a_first_window_but_for_its_last_packet() {
    let (mut net, ids) = pair();
    let data = net.nodes[0].peers.peers[&ids[1]].data_in.expect("a data connection");
    let (head, bytes) = frame(1, 20_000);
    let mut input = Bytes::from([&head.encode()[..], &bytes].concat());
    let mut gathered = Vec::new();
    for length in [ChunkHead::LENGTH - 1, 101, 10_000, input.len()] {
        let piece = input.split_to(length.min(input.len()));
        net.with(0, |it, now| {
            it.handle(now, LinkInput::Received(data, piece));
            let outputs = std::iter::from_fn(|| it.poll_output());
            gathered.push(outputs.filter_map(gather).collect::<Vec<_>>());
        });
    }
    assert_eq!(gathered, [vec![], vec![14 * 1024], vec![9_900 - 1_460], vec![]]);
}

fn gather(output: LinkOutput) -> Option<u64> {
    match output {
        LinkOutput::ReadThreshold(_, bytes) => Some(bytes),
        _ => None,
    }
}

#[test]
fn what_is_no_frame_expels_who_sends_it() {
    let mut input = Bytes::from_static(&[7; 64]);
    assert_eq!(ChunkReader::default().next(&mut input), Err(NoFrame));
    let (mut net, ids) = pair();
    let data = net.nodes[0].peers.peers[&ids[1]].data_in.expect("a data connection");
    let garbage = LinkInput::Received(data, Bytes::from_static(&[7; 64]));
    net.with(0, |it, now| it.handle(now, garbage));
    let events = net.events(0);
    assert!(
        matches!(events[..], [Event::Expelled(..), Event::Down(_, Down::Misbehaved)]),
        "{events:?}"
    );
    net.run(1_000);
    assert_eq!(net.cables(), 0);
}
