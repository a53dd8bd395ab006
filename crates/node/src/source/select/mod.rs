//! The selection scheme: which peer is asked for a missing object. Schemes differ only here, one
//! file each.
//!
//! *Who calls it:* `source`, for each of our requests that may go to a peer. Rules of all schemes
//! are applied before: what only the origin may get, peers that already have the request, peers
//! tried before, and peers that do not answer. *How to add one:* docs/adding-a-scheme.md.

mod ph_thcp;
mod thcp;

use crate::input::FetchId;
use crate::ways::Ways;
use bytes::Bytes;
use ph_thcp::PhThcp;
use std::net::{IpAddr, SocketAddr};
use thcp::Thcp;
use wire::{Instant, ObjectKey, Selection};

/// A request, and the peers that it may go to.
pub struct Query<'a> {
    /// Our request's number, valid until [`Select::end`].
    pub id: FetchId,
    /// The object's name, the same on all nodes of a mesh.
    pub key: ObjectKey,
    /// Whether a peer wants each hop to look up, store and forward; `None` for our own clients.
    pub per_hop: Option<bool>,
    /// The routes towards the gateway.
    pub ways: Ways,
    /// Whether a node may be asked.
    pub may: &'a dyn Fn(IpAddr) -> bool,
}

/// The peer to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The node with this address.
    Found(IpAddr),
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
    /// The peer is known now: [`choose`](Select::choose) no longer returns [`Answer::Later`].
    Known(FetchId),
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
    fn begin(&mut self, _now: Instant, _query: &Query<'_>) {}

    /// A request has ended, whether or not `begin` was called for it.
    fn end(&mut self, _id: FetchId) {}

    /// A datagram has arrived; its sender is not authenticated.
    fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, _bytes: &[u8]) {}

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
}

/// The scheme of this name.
pub fn of(selection: Selection) -> Box<dyn Select> {
    match selection {
        Selection::Thcp => Box::new(Thcp),
        Selection::PhThcp => Box::new(PhThcp),
    }
}

/// The first node towards the gateway that may be asked: hop by hop or end to end as the request
/// says, or else as `per_hop` says.
pub fn on_the_way(query: &Query<'_>, per_hop: bool) -> Answer {
    let per_hop = query.per_hop.unwrap_or(per_hop);
    query.ways.choose(per_hop, query.may).map_or(Answer::Nobody, Answer::Found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
    const GATEWAY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    /// The peer that a scheme chooses for this request, if only these may be asked.
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
