//! Several connections with one peer: exactly one is kept, and both sides agree which.

use super::net::{Net, address};
use super::{Event, node};
use crate::peers::Down;
use proptest::prelude::*;
use wire::NodeId;
use wire::peer::{Message, Request};

fn ids(net: &Net) -> Vec<NodeId> {
    net.nodes.iter().map(|it| it.peers.own_id()).collect()
}

/// Asserts that one connection joins the first two nodes, and that messages arrive both ways.
fn assert_joined(net: &mut Net) {
    assert_eq!(net.cables(), 1);
    let ids = ids(net);
    for node in 0..2 {
        net.events(1 - node);
        let message = Message::Cancel(Request(1));
        assert!(net.with(node, |it, now| it.send(now, ids[1 - node], &message)));
        net.run(2_000);
        let events = net.events(1 - node);
        assert!(matches!(events[..], [Event::Message(..)]), "{events:?}");
        assert_eq!(net.nodes[node].peers.links.len(), 1);
    }
}

fn dialled_up(events: &[Event]) -> usize {
    events.iter().filter(|it| matches!(it, Event::Up { dialled: Some(_), .. })).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn two_who_dial_each_other_come_to_one_connection(
        latencies in prop::collection::vec(1u64..1_200, 2),
        wait in prop_oneof![Just(0), 0u64..5_000],
        swapped: bool,
        key in prop::option::of(Just(3)),
    ) {
        let (first, second) = if swapped { (2, 1) } else { (1, 2) };
        let mut net = Net::new([node(first, 11, key), node(second, 12, key)], &latencies);
        net.dial(0, 1);
        net.run(wait);
        net.dial(1, 0);
        net.run(30_000);
        for node in 0..2 {
            let events = net.events(node);
            prop_assert_eq!(dialled_up(&events), 1, "{:?}", events);
            prop_assert!(events.iter().all(|it| matches!(it, Event::Up { .. })), "{:?}", events);
        }
        assert_joined(&mut net);
    }

    #[test]
    fn a_node_that_restarts_and_dials_is_taken_back(
        latencies in prop::collection::vec(1u64..800, 4),
        both: bool,
        wait in 0u64..3_000,
    ) {
        let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &latencies);
        net.dial(0, 1);
        net.run(20_000);
        net.events(0);
        net.replace(1, node(2, 3, None));
        net.run(wait);
        net.dial(1, 0);
        if both {
            net.dial(0, 1);
        }
        net.run(8_000);
        let id = ids(&net)[1];
        let events = net.events(0);
        let last_two: Vec<_> = events.iter().filter(|it| {
            !matches!(it, Event::Up { dialled: Some(_), .. })
        }).collect();
        prop_assert!(
            matches!(last_two[..], [Event::Down(peer, Down::Closed), Event::Up { .. }] if *peer == id),
            "{:?}", events
        );
        prop_assert_eq!(dialled_up(&net.events(1)), 1);
        assert_joined(&mut net);
    }
}

#[test]
fn who_has_lost_a_connection_that_the_other_believes_in_gets_another() {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[30]);
    net.dial(0, 1);
    net.run(1_000);
    let id = ids(&net)[1];
    net.forget(1);
    net.events(0);
    net.events(1);
    net.dial(1, 0);
    net.run(4_000);
    assert!(net.events(0).is_empty(), "the old connection may still answer");
    net.run(2_000);
    let events = net.events(0);
    assert!(
        matches!(events[..], [Event::Down(it, Down::Silent), Event::Up { .. }] if it == id),
        "{events:?}"
    );
    assert_joined(&mut net);
}

#[test]
fn a_dial_that_waits_is_taken_up_when_ours_comes_to_nothing() {
    // The node with the lower id has sent its introduction, which never arrives.
    let nodes = [node(1, 1, None), node(2, 2, None)];
    let lower = usize::from(nodes[0].own_id() > nodes[1].own_id());
    let mut net = Net::new(nodes, &[20]);
    net.dial(lower, 1 - lower);
    net.run(90);
    net.cut_cable(0);
    net.run(5_000);
    net.dial(1 - lower, lower);
    net.run(1_000);
    assert!(net.events(0).is_empty() && net.events(1).is_empty());
    net.run(5_000);
    for (node, other) in [(0, 1), (1, 0)] {
        let events = net.events(node);
        assert!(
            matches!(events[..], [Event::Up { dialled: Some(it), .. }] if it == address(other)),
            "{events:?}"
        );
    }
    assert_joined(&mut net);
}

#[test]
fn a_connection_that_answers_is_not_replaced_by_one_that_was_let_go() {
    // The second dial begins later but completes sooner. The first is dropped for it, but its end is
    // not delivered.
    let nodes = [node(1, 1, None), node(2, 2, None)];
    let lower = usize::from(nodes[0].own_id() > nodes[1].own_id());
    let mut net = Net::new(nodes, &[20, 10]);
    net.dial(1 - lower, lower);
    net.run(35);
    net.dial(lower, 1 - lower);
    net.run(66);
    assert_eq!(net.nodes[lower].peers.links.len(), 2, "one stands, and one waits");
    net.cut_cable(0);
    net.run(20_000);
    for node in 0..2 {
        let events = net.events(node);
        assert!(events.iter().all(|it| matches!(it, Event::Up { .. })), "{events:?}");
    }
    assert_joined(&mut net);
}

#[test]
fn another_address_of_a_peer_is_one_more_name_for_it() {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[30]);
    net.dial(0, 1);
    net.run(1_000);
    net.dial(0, 101);
    net.run(1_000);
    let id = ids(&net)[1];
    assert_eq!(dialled_up(&net.events(0)), 2);
    assert_eq!(net.nodes[0].peers.at(address(101).ip()), Some(id));
    assert_joined(&mut net);
    // Both addresses are dialled at once.
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[30, 37]);
    net.dial(0, 101);
    net.dial(0, 1);
    net.run(8_000);
    let events = net.events(0);
    assert_eq!((events.len(), dialled_up(&events)), (2, 2), "{events:?}");
    assert_joined(&mut net);
}

#[test]
fn a_dial_that_finds_another_run_of_a_peer_replaces_the_old_connection() {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[30]);
    net.dial(0, 1);
    net.run(1_000);
    net.events(0);
    net.replace(1, node(2, 3, None));
    // An address that is not yet known to be the peer's.
    net.dial(0, 101);
    net.run(1_000);
    let events = net.events(0);
    assert!(
        matches!(events[..], [Event::Down(_, Down::Closed), Event::Up { dialled: Some(_), .. }]),
        "{events:?}"
    );
    assert_joined(&mut net);
}

#[test]
fn a_dial_to_a_peer_that_is_there_says_so() {
    let mut net = Net::new([node(1, 1, None), node(2, 2, None)], &[30]);
    net.dial(0, 1);
    net.run(1_000);
    net.events(1);
    net.dial(1, 0);
    let events = net.events(1);
    let up = |it: &Event| matches!(it, Event::Up { dialled: Some(it), .. } if *it == address(0));
    assert!(events.len() == 1 && up(&events[0]), "{events:?}");
    net.dial(0, 1);
    net.run(1_000);
    assert_joined(&mut net);
}

#[test]
fn three_nodes_that_all_dial_each_other_are_joined_pairwise() {
    let mut net = Net::new((1..4).map(|it| node(it, it, None)), &[13, 70, 5, 200, 40, 90]);
    for (one, other) in [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)] {
        net.dial(one, other);
    }
    net.run(10_000);
    assert_eq!(net.cables(), 3);
    for node in 0..3 {
        assert_eq!(net.nodes[node].peers.list(net.now).len(), 2);
        assert_eq!(dialled_up(&net.events(node)), 2);
    }
}
