//! The selection scheme: which peer is asked for a missing object. Schemes differ only here, one
//! file or folder each.
//!
//! *Who calls it:* `source`, for each of our requests that may go to a peer. Rules of all schemes
//! are applied before: what only the origin may get, peers that already have the request, peers
//! tried before, and peers that do not answer. *How to add one:* docs/adding-a-scheme.md.

mod auto;
mod bcp;
mod doubts;
mod ghcp;
mod oldest;
mod ph_hints;
mod ph_thcp;
mod thcp;

use crate::copies::Copies;
use crate::input::{FetchId, MeshConfig};
use crate::routes::Routes;
use auto::Auto;
use bcp::Bcp;
use bytes::Bytes;
use ghcp::Ghcp;
use ph_hints::PhHints;
use ph_thcp::PhThcp;
use std::net::{IpAddr, SocketAddr};
use thcp::Thcp;
use wire::{Date, Hint, Instant, ObjectKey, Selection};

/// A request, and the peers that it may go to.
pub struct Query<'a> {
    /// The time.
    pub now: Instant,
    /// Our request's number, valid until [`Select::end`].
    pub id: FetchId,
    /// The object's name, the same on all nodes of a mesh.
    pub key: ObjectKey,
    /// Whether a peer wants each hop to look up, store and forward; `None` for our own clients.
    pub per_hop: Option<bool>,
    /// The routes towards the gateway and to other routers.
    pub routes: &'a Routes,
    /// Where copies are, as routers tell.
    pub copies: &'a Copies,
    /// The routers that were named for this request in place of an answer, the nearest first.
    pub referred: Vec<IpAddr>,
    /// Whether a node may be asked.
    pub may: &'a dyn Fn(IpAddr) -> bool,
}

/// What a scheme may look up.
pub struct Here<'a> {
    /// The time.
    pub now: Instant,
    /// The date.
    pub date: Date,
    /// The routes towards the gateway and to other routers.
    pub routes: &'a Routes,
    /// Whether this node has a fresh copy of the object with this short name.
    pub holds: &'a dyn Fn(&Hint) -> bool,
}

/// The peer to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The node with this address.
    Found(IpAddr),
    /// A node off the way is said to have the object, and is to answer from its store alone.
    Holder {
        /// Its address.
        at: IpAddr,
        /// The node that the request is sent to: the same, or one that leads there.
        by: IpAddr,
    },
    /// Not known yet: the scheme finds out after [`begin`](Select::begin).
    Later,
    /// No peer.
    Nobody,
}

/// What a scheme does on its own.
#[derive(Debug)]
pub enum Said {
    /// Sends a datagram to another node.
    Datagram(SocketAddr, Bytes),
    /// Sends a datagram to all neighbours' port for peers.
    Broadcast(Bytes),
    /// The peer is known now: [`choose`](Select::choose) no longer returns [`Answer::Later`].
    Known(FetchId),
}

/// What was counted of searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Searches begun here.
    pub searches: u64,
    /// Searches after which another router than those on the way was asked.
    pub located: u64,
    /// Routers that were asked because of an answer, and did not help.
    pub in_vain: u64,
    /// Locates of others passed on.
    pub passed_on: u64,
    /// Locates of others not passed on, because too much air was used for them.
    pub spared: u64,
    /// Locates of others answered.
    pub answered: u64,
    /// Datagrams that could not be read, or were replayed.
    pub refused: u64,
}

/// A scheme. Time, datagrams and queries come in; its output is polled after each.
pub trait Select {
    /// The peer to ask, as far as is known. Called first at the beginning, and again after each
    /// peer that did not help. It is also called to learn what *would* be chosen, so it must have
    /// no effects.
    fn choose(&self, query: &Query<'_>) -> Answer;

    /// Starts to find a peer for a request for which `choose` returned [`Answer::Later`]; called
    /// again if it does so again. The scheme must say [`Said::Known`] soon: after two seconds the
    /// request goes on without it.
    fn begin(&mut self, _here: &Here<'_>, _query: &Query<'_>) {}

    /// A request is sent to the node that `choose` named.
    fn asked(&mut self, _here: &Here<'_>, _query: &Query<'_>, _answer: Answer) {}

    /// The node `at` this address, as which `choose` named an [`Answer::Holder`], did not help with this request.
    /// `denied`: it has said so.
    fn in_vain(&mut self, _now: Instant, _id: FetchId, _at: IpAddr, _denied: bool) {}

    /// The node `at` this address, as which `choose` named an [`Answer::Holder`], has sent all of the object.
    fn helped(&mut self, _now: Instant, _id: FetchId, _at: IpAddr) {}

    /// A request has ended, whether or not `begin` was called for it.
    fn end(&mut self, _now: Instant, _id: FetchId) {}

    /// A datagram has arrived; its sender is not authenticated.
    fn handle_datagram(&mut self, _here: &Here<'_>, _from: SocketAddr, _bytes: &[u8]) {}

    /// The time of [`poll_timeout`](Self::poll_timeout) has come; from now on that returns a later
    /// time or `None`.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// The next time at which the scheme has something to do.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Takes the next output.
    fn poll(&mut self) -> Option<Said> {
        None
    }

    /// Whether the nodes that are asked may name others that have the object.
    fn roams(&self) -> bool {
        false
    }

    /// Whether it may find a peer for a request although there is no way to a gateway.
    fn searches_without_way(&self) -> bool {
        false
    }

    /// What was counted, if the scheme searches.
    fn counts(&self) -> Counts {
        Counts::default()
    }
}

/// The scheme of this configuration; the seed is for its chance.
pub fn of(config: &MeshConfig, seed: &[u8; 32]) -> Box<dyn Select> {
    match config.selection {
        Selection::Thcp => Box::new(Thcp),
        Selection::PhThcp => Box::new(PhThcp),
        Selection::Bcp | Selection::PhBcp => Box::new(Bcp::new(config, seed)),
        Selection::Ghcp | Selection::PhGhcp => Box::new(Ghcp::new(config)),
        Selection::Auto => Box::new(Auto::new(config, seed)),
        Selection::PhHints => Box::<PhHints>::default(),
    }
}

/// The scheme of a node without peers: it has nobody to ask.
pub fn none() -> Box<dyn Select> {
    Box::new(Thcp)
}

/// The first node towards the gateway that may be asked: hop by hop or end to end as the request
/// says, or else as `per_hop` says.
pub fn on_the_way(query: &Query<'_>, per_hop: bool) -> Answer {
    let per_hop = query.per_hop.unwrap_or(per_hop);
    query.routes.ways().choose(per_hop, query.may).map_or(Answer::Nobody, Answer::Found)
}

#[cfg(test)]
mod tests;
