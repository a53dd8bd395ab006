//! Whom a scheme asks for what is not here: the one thing in which schemes differ. A file a protocol.
//!
//! *Who calls it:* `source`, for every request of ours that may be asked of a peer. What holds under every scheme is
//! decided before: what is for the origin alone, who has the request already, who was tried in vain, who answers
//! nothing. *How to add one:* docs/adding-a-scheme.md.

mod ph_thcp;
mod thcp;

use crate::input::FetchId;
use crate::ways::Ways;
use bytes::Bytes;
use ph_thcp::PhThcp;
use std::net::{IpAddr, SocketAddr};
use thcp::Thcp;
use wire::{Instant, ObjectKey, Selection};

/// What is sought, and whom it may be asked.
pub struct Query<'a> {
    /// The request of ours, until [`Select::end`].
    pub id: FetchId,
    /// The name of the object, alike on all nodes of a mesh.
    pub key: ObjectKey,
    /// Whether a peer that asks wishes that each hop looks, keeps and forwards; `None` for our own clients.
    pub per_hop: Option<bool>,
    /// What leads towards the gateway.
    pub ways: Ways,
    /// Whether a node may be asked.
    pub may: &'a dyn Fn(IpAddr) -> bool,
}

/// Whom to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The node with this address.
    Found(IpAddr),
    /// It is not known yet: the scheme finds out, once it is told to [`begin`](Select::begin).
    Later,
    /// No peer.
    Nobody,
}

/// What a scheme says by itself.
#[derive(Debug)]
pub enum Said {
    /// A datagram to another node.
    Datagram(SocketAddr, Bytes),
    /// It is known now whom to ask: [`choose`](Select::choose) answers something else than [`Answer::Later`].
    Known(FetchId),
}

/// A scheme. Time, datagrams and questions come in; what it says is polled after each.
pub trait Select {
    /// Whom to ask, as far as is known: asked at the beginning, and again whenever who was named did not help.
    /// It is also asked what *would* be chosen, so nothing follows from a question alone.
    fn choose(&self, query: &Query<'_>) -> Answer;

    /// Begins to find out for a request of which it said [`Answer::Later`], once more where it says that again. It has
    /// to say [`Said::Known`] of it soon, whatever comes: after two seconds the request goes on without the scheme.
    fn begin(&mut self, _now: Instant, _query: &Query<'_>) {}

    /// Nothing more is wanted of a request, whether or not it was begun to find out for it.
    fn end(&mut self, _id: FetchId) {}

    /// A datagram has come. Anybody may have sent it.
    fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, _bytes: &[u8]) {}

    /// The time that [`poll_timeout`](Self::poll_timeout) named has come: it names a later one now, or none.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// When it wants to be woken.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// One thing that it says.
    fn poll(&mut self) -> Option<Said> {
        None
    }
}

/// The protocol of this name.
pub fn of(selection: Selection) -> Box<dyn Select> {
    match selection {
        Selection::Thcp => Box::new(Thcp),
        Selection::PhThcp => Box::new(PhThcp),
    }
}

/// The first on the way towards the gateway that may be asked, as a request wishes; if it wishes nothing, as
/// `per_hop` says.
pub fn on_the_way(query: &Query<'_>, per_hop: bool) -> Answer {
    let per_hop = query.per_hop.unwrap_or(per_hop);
    query.ways.choose(per_hop, query.may).map_or(Answer::Nobody, Answer::Found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
    const GATEWAY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    /// Whom a scheme asks, where a request wishes this and only some may be asked.
    fn asked(selection: Selection, per_hop: Option<bool>, may: &[IpAddr]) -> Answer {
        let ways = Ways { next_hop: Some(HOP), gateway: Some(GATEWAY) };
        let may = |address| may.contains(&address);
        let query = Query { id: FetchId(1), key: ObjectKey([0; 32]), per_hop, ways, may: &may };
        of(selection).choose(&query)
    }

    #[test]
    fn our_own_clients_requests_go_as_the_scheme_has_it() {
        let both = [HOP, GATEWAY];
        assert_eq!(asked(Selection::PhThcp, None, &both), Answer::Found(HOP));
        assert_eq!(asked(Selection::Thcp, None, &both), Answer::Found(GATEWAY));
    }

    #[test]
    fn a_peers_request_goes_as_the_peer_wishes() {
        for selection in Selection::ALL {
            let both = [HOP, GATEWAY];
            assert_eq!(asked(selection, Some(true), &both), Answer::Found(HOP));
            assert_eq!(asked(selection, Some(false), &both), Answer::Found(GATEWAY));
        }
    }

    #[test]
    fn the_next_hop_is_never_asked_in_the_gateways_place() {
        assert_eq!(asked(Selection::PhThcp, None, &[GATEWAY]), Answer::Found(GATEWAY));
        assert_eq!(asked(Selection::Thcp, None, &[HOP]), Answer::Nobody);
        assert_eq!(asked(Selection::PhThcp, None, &[]), Answer::Nobody);
    }
}
