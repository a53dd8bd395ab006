//! Tests of peers that are connected in virtual time.

mod chunks;
mod garbage;
mod handshakes;
mod limits;
mod liveness;
mod net;
mod places;
mod rivals;
mod unknown;

use super::{Event, Peers};
use crate::input::MeshConfig;
use std::time::Duration;
use wire::Instant;
use wire::peer::Hello;

const PORT: u16 = 4404;

/// A node whose identity and random numbers come from one byte each.
fn node(identity: u8, seed: u8, key: Option<u8>) -> Peers {
    let config = MeshConfig {
        selection: wire::Selection::PhThcp,
        search: crate::input::SearchConfig::default(),
        squares: crate::input::Squares::default(),
        identity: [identity; 32],
        key: key.map(|it| [it; 32]),
        gateways: Vec::new(),
        port: PORT,
        overhear: None,
    };
    Peers::new(&config, hello(&format!("node {identity}")), [seed; 32])
}

fn hello(name: &str) -> Hello {
    Hello { name: name.to_owned(), profile: 1, ..Hello::default() }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The events as text, without `Room`.
fn told(events: &[Event]) -> Vec<String> {
    let told = events.iter().filter(|event| !matches!(event, Event::Room(_)));
    told.map(|event| format!("{event:?}")).collect()
}
