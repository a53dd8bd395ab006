//! What engines of a mesh say that they do: connections, whom they ask, what they overhear and publish.

use crate::determinism::busy;
use crate::net::{Call, Mesh, Page, Plan, noise};
use node::events::{LinkEnd, NextSource, SourceKind};
use node::{Event, Stale};

const URL: &str = "http://o.test/a";

fn watched(mut mesh: Mesh) -> Mesh {
    (0..mesh.count()).for_each(|node| mesh.watch(node));
    mesh.origin.put(URL, Page::of(2_000_000).fresh(600).steady());
    mesh
}

fn sources(events: &[Event]) -> Vec<SourceKind> {
    let source = |event: &Event| match event {
        Event::Source { of, .. } => Some(*of),
        _ => None,
    };
    events.iter().filter_map(source).collect()
}

#[test]
fn each_hop_says_whom_it_asks() {
    let mut mesh = watched(Mesh::chain(3));
    mesh.get(2, URL);
    let next = |node: usize| SourceKind::Peer { peer: mesh.id(node) };
    let expected = [SourceKind::Origin, next(0), next(1)];
    for (node, source) in expected.into_iter().enumerate() {
        let did = mesh.did(node);
        assert_eq!(sources(&did), [source], "{did:?}");
        let asker = (node < 2).then(|| mesh.id(node + 1));
        let asked = |event: &Event| matches!(event, Event::Request { peer, .. } if *peer == asker);
        assert_eq!(did.iter().filter(|event| asked(event)).count(), 1, "{did:?}");
    }
    mesh.done();
}

#[test]
fn a_next_hop_that_dies_is_told_and_so_is_who_is_asked_then() {
    let mut mesh = watched(Mesh::chain(4));
    let id = mesh.call(3, Call::get(URL));
    mesh.pass_millis(300);
    let dead = mesh.id(2);
    mesh.did(3);
    mesh.kill(2);
    mesh.finish();
    assert!(mesh.client(id).is_ok());
    let did = mesh.did(3);
    let fetch = node::FetchId(1);
    let told = [
        Event::LinkDown { peer: dead, why: LinkEnd::Closed },
        Event::NextSource { fetch, why: NextSource::Lost },
        Event::Source { fetch, of: SourceKind::Peer { peer: mesh.id(0) } },
    ];
    let mut rest = did.iter();
    for event in told {
        assert!(rest.any(|it| *it == event), "{event:?} in its turn: {did:?}");
    }
    mesh.done();
}

#[test]
fn chunks_that_are_overheard_are_told() {
    let plan = Plan { overhear: Some(8 << 20), ..Plan::listening() };
    let mut mesh = watched(Mesh::tree_of(&plan, &[0, 0]));
    mesh.air.listen(2, 0, 1);
    mesh.get(1, URL);
    let entered = mesh.report(2).overheard.units;
    let did = mesh.did(2);
    let overheard = |event: &&Event| matches!(event, Event::Overheard { fetch: None, .. });
    assert_eq!(did.iter().filter(overheard).count() as u64, entered);
    assert!(entered > 50, "{entered}");
}

#[test]
fn what_is_published_and_taken_back_is_told() {
    let mut mesh = watched(Mesh::chain(1));
    let object = mesh.publish(0, Page::new(noise(1, 300_000)));
    assert!(mesh.did(0).contains(&Event::Published { object, published: true }));
    mesh.withdraw(0, object).expect("it was published");
    assert!(mesh.did(0).contains(&Event::Published { object, published: false }));
    mesh.done();
}

#[test]
fn what_a_peer_sends_for_a_request_that_is_over_is_stale() {
    let mut mesh = watched(Mesh::chain(3));
    mesh.get(1, URL);
    let id = mesh.call(2, Call::get(URL));
    // A hop takes two milliseconds: the answer is on its way.
    mesh.pass_millis(3);
    mesh.leave(id);
    mesh.pass_seconds(5);
    let did = mesh.did(2);
    assert!(did.contains(&Event::Stale { what: Stale::PeerAnswer }), "{did:?}");
    mesh.done();
}

#[test]
fn whether_somebody_watches_changes_nothing_else() {
    assert_eq!(busy(3, true), busy(3, false));
}
