//! A router off the way that says that it has an object, and does not deliver: what it costs, and that no byte is wrong
//! (decision 0033).

use crate::net::{Mesh, Page, Plan, address, noise};
use bytes::Bytes;
use node::{Instead, Tamper};
use std::time::Duration;
use wire::peer::{ChunkHead, Message};
use wire::{Instant, NodeId, Selection};

const URL: &str = "http://o.test/a";
const LENGTH: usize = 100_000;
/// At the end of one branch, two hops from the gateway …
const ASKER: usize = 2;
/// … and at the end of the other, where the asker hears it.
const LIAR: usize = 4;

/// What the liar does when it is asked. On the way it is honest.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    /// It does not answer.
    Silence,
    /// It gives the record, and no units.
    Stop,
    /// It gives other bytes than it should.
    Damage,
    /// None.
    Honest,
}

impl Tamper for Lie {
    fn hears(&mut self, _now: Instant, _from: NodeId, message: &Message) -> Instead {
        let is_off_the_way =
            matches!(message, Message::Get(get) if get.options.towards == Some(address(LIAR)));
        (*self == Self::Silence && is_off_the_way).then(Vec::new)
    }

    fn says(&mut self, _now: Instant, _to: NodeId, _message: &Message) -> Instead {
        None
    }

    fn sends(&mut self, _to: NodeId, _head: &ChunkHead, bytes: Bytes) -> Option<Bytes> {
        match self {
            Self::Silence | Self::Honest => Some(bytes),
            Self::Stop => None,
            Self::Damage => Some(bytes.iter().map(|byte| !byte).collect()),
        }
    }
}

/// A ring: 0 is the gateway, 1 and 2 are one branch, 3 and 4 the other. Only the liar has the page.
fn ring(selection: Selection, lie: Lie) -> Mesh {
    let mut mesh = Mesh::ring_of(&Plan { selection, ..Plan::default() });
    mesh.pass_seconds(30);
    mesh.origin.put(URL, Page::new(noise(1, LENGTH)).fresh(6000));
    mesh.get(LIAR, URL);
    if selection != Selection::PhHints {
        [0, 3].into_iter().for_each(|node| mesh.restart_empty(node));
    }
    mesh.pass_seconds(5);
    mesh.tamper(LIAR, Box::new(lie));
    mesh
}

#[test]
fn who_is_silent_stops_or_damages_costs_little_and_every_byte_is_right() {
    for selection in [Selection::PhHints, Selection::Bcp, Selection::PhBcp] {
        for lie in [Lie::Silence, Lie::Stop, Lie::Damage] {
            let mut mesh = ring(selection, lie);
            let id = mesh.get(ASKER, URL);
            assert!(mesh.client(id).is_ok(), "{selection} {lie:?} {:?}", mesh.client(id).end);
            assert!(mesh.client(id).content == noise(1, LENGTH)[..]);
            let took = mesh.took(id);
            assert!(took < Duration::from_secs(3), "{selection} {lie:?} {took:?}");
            let report = mesh.report(ASKER);
            let asked = (report.searches_located, report.searches_in_vain);
            assert_eq!(asked, (1, 1), "{selection} {lie:?}");
            mesh.done();
        }
    }
}

#[test]
fn who_did_not_help_is_not_asked_again() {
    let mut mesh = ring(Selection::PhHints, Lie::Silence);
    mesh.get(ASKER, URL);
    for number in 0..8 {
        let url = format!("http://o.test/{number}");
        mesh.origin.put(&url, Page::of(1000).fresh(6000));
        mesh.get(LIAR, &url);
        let id = mesh.get(ASKER, &url);
        assert!(mesh.client(id).is_ok());
    }
    // The router behind it, which has the same objects, helps.
    let report = mesh.report(ASKER);
    assert_eq!(report.searches_in_vain, 1);
    assert!(report.searches_located > 2, "{}", report.searches_located);
    mesh.done();
}

#[test]
fn who_has_helped_is_forgiven() {
    let mut mesh = ring(Selection::PhBcp, Lie::Honest);
    let urls: Vec<_> = (0..8).map(|number| format!("http://o.test/{number}")).collect();
    for (number, url) in (2..).zip(&urls) {
        mesh.origin.put(url, Page::new(noise(number, 20_000)).fresh(6000));
        mesh.get(LIAR, url);
    }
    [0, 3].into_iter().for_each(|node| mesh.restart_empty(node));
    mesh.pass_seconds(5);
    for (number, url) in urls.iter().enumerate() {
        mesh.tamper(LIAR, Box::new(if number == 5 { Lie::Silence } else { Lie::Honest }));
        let id = mesh.get(ASKER, url);
        assert!(mesh.client(id).is_ok(), "{number}");
    }
    // The one after the failure goes along the way.
    let report = mesh.report(ASKER);
    assert_eq!((report.searches_located, report.searches_in_vain), (7, 1));
    mesh.done();
}
