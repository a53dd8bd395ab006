//! Which peers are alive, which are silent, and what the pings cost.

use super::net::Net;
use super::{Event, Peers, node, told};
use crate::peers::Down;
use wire::peer::{Message, Request};

fn pair(one: Peers, other: Peers) -> Net {
    let mut net = Net::new([one, other], &[20]);
    net.dial(0, 1);
    net.run(1_000);
    net.events(0);
    net.events(1);
    net
}

#[test]
fn an_idle_pair_stays_and_says_little() {
    let mut net = pair(node(1, 1, None), node(2, 2, None));
    let bytes = |net: &Net| net.nodes[0].peers.list(net.now)[0].out_bytes;
    let before = bytes(&net);
    net.run(600_000);
    assert_eq!((net.cables(), net.events(0).len(), net.events(1).len()), (1, 0, 0));
    // One ping or pong in 300 s: two messages of some 30 bytes in 600 s.
    assert!(bytes(&net) - before < 100, "{} bytes", bytes(&net) - before);
}

#[test]
fn a_silent_peer_goes_down() {
    // Without a message to it, a silent peer is down after 315 s; with one, after 20 s.
    for (asks, early, late) in [(false, 313_000, 2_500), (true, 19_000, 1_500)] {
        let mut net = pair(node(1, 1, None), node(2, 2, None));
        let id = net.nodes[1].peers.own_id();
        net.cut(1);
        if asks {
            net.with(0, |it, now| it.send(now, id, &Message::Cancel(Request(1))));
        }
        net.run(early);
        assert!(net.events(0).is_empty());
        net.run(late);
        assert_eq!(told(&net.events(0)), told(&[Event::Down(id, Down::Silent)]));
        assert!(net.nodes[0].peers.links.is_empty());
    }
}

#[test]
fn who_answers_slowly_is_pinged_and_stays() {
    let mut net = pair(node(1, 1, None), node(2, 2, None));
    let id = net.nodes[1].peers.own_id();
    for _ in 0..20 {
        net.with(0, |it, now| it.send(now, id, &Message::Cancel(Request(1))));
        net.run(7_000);
    }
    assert_eq!(net.cables(), 1);
    assert!(net.events(0).is_empty());
}

#[test]
fn who_leaves_a_ping_unanswered_is_mute_until_something_comes() {
    let mut net = pair(node(1, 1, None), node(2, 2, None));
    let (id, since) = (net.nodes[1].peers.own_id(), net.now);
    let mute = |net: &mut Net, millis: u64| {
        net.run(millis);
        net.with(0, |it, now| it.doubt(now, id, since));
        net.nodes[0].peers.is_mute(net.now, id)
    };
    for _ in 0..20 {
        // The peer answers each ping.
        assert!(!mute(&mut net, 1_000));
    }
    net.run(100);
    net.cut(1);
    let silent = (1..).find(|_| mute(&mut net, 500)).expect("it is silent");
    // For 20 s the peer has sent only pongs: the next ping follows after 10 s of silence.
    assert!((20..30).contains(&silent), "after {silent} half seconds");
}

#[test]
fn who_is_asked_now_is_mute_after_four_seconds_of_silence() {
    let mut net = pair(node(1, 1, None), node(2, 2, None));
    net.run(100_000);
    let (id, since) = (net.nodes[1].peers.own_id(), net.now);
    net.cut(1);
    for (millis, mute) in [(1_900, false), (200, false), (1_900, false), (200, true)] {
        net.run(millis);
        net.with(0, |it, now| it.doubt(now, id, since));
        assert_eq!(net.nodes[0].peers.is_mute(net.now, id), mute);
    }
}

#[test]
fn who_is_known_to_answer_slowly_has_more_time() {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[1_500]);
    net.dial(0, 1);
    net.run(15_000);
    let (id, since) = (net.nodes[1].peers.own_id(), net.now);
    let asked = |net: &mut Net, millis: u64| {
        net.run(millis);
        net.with(0, |it, now| it.doubt(now, id, since));
        net.nodes[0].peers.is_mute(net.now, id)
    };
    // The first ping measures the round-trip time: 3 s.
    assert!(!asked(&mut net, 2_000) && asked(&mut net, 2_500));
    assert!(!asked(&mut net, 1_000));
    net.cut(1);
    let silent = (1..).find(|_| asked(&mut net, 500)).expect("it is silent");
    assert!((24..32).contains(&silent), "after {silent} half seconds");
}

#[test]
fn the_same_seeds_make_the_same_bytes() {
    let run = |seed: u8| {
        let mut net = Net::new((1..4).map(|it| node(it, seed + it, Some(1))), &[3, 80, 20]);
        for (one, other) in [(0, 1), (1, 0), (1, 2), (2, 0)] {
            net.dial(one, other);
        }
        net.run(3_000);
        let ids: Vec<_> = net.nodes.iter().map(|it| it.peers.own_id()).collect();
        for id in &ids[1..] {
            net.with(0, |it, now| it.open_data(now, *id));
        }
        net.run(100_000);
        net.log.finalize()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
