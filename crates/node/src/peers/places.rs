//! Which nodes get one of the [`PEERS_MAX`] places among the peers, and which peer leaves for another.
//!
//! A node must always reach the peers that it sends requests to: the next hop and the gateway
//! ([`Peers::keep_place_for`]). A handshake proves an identity, not that the peer is needed, so strangers could
//! take every place and keep it. When all places are taken, a peer leaves for a node at a needed address; for
//! any other node, only one that has been of no use for [`IDLE`], because a mesh may have more routers than
//! there are places:
//!
//! 1. a peer at the same address, if there is one: only one place is reserved for each needed address;
//! 2. else a peer that never sent us a unit, rather than one that did;
//! 3. among these, a peer that we never sent an answer or a unit, rather than one that we did;
//! 4. else the peer for which that was the longest ago; among peers with neither, the one that
//!    connected first.
//!
//! If too many accepted connections are in the handshake, one of them is closed too: from a needed address only as a
//! last resort, else from the address that has the most, and the oldest of these.

use super::link::Link;
use super::peer::Peer;
use super::{DIALS_MAX, Down, HANDSHAKES_MAX, PEERS_MAX, Peers};
use crate::input::LinkId;
use std::cmp::Reverse;
use std::net::IpAddr;
use std::time::Duration;
use wire::peer::Refusal;
use wire::{Instant, NodeId};

/// The most addresses with a reserved place: the next hop and the gateway.
const NEEDED_MAX: usize = 2;
/// A peer that has sent and taken nothing for this long may have to leave.
const IDLE: Duration = Duration::from_secs(60);

impl Peers {
    /// Reserves a place for a peer at each of the first two of these addresses.
    pub fn keep_place_for(&mut self, addresses: impl IntoIterator<Item = IpAddr>) {
        let addresses = addresses.into_iter().map(|address| address.to_canonical());
        self.needed = addresses.take(NEEDED_MAX).collect();
    }

    /// Whether a place is reserved for a peer at this address.
    pub(super) fn is_needed(&self, address: IpAddr) -> bool {
        self.needed.contains(&address.to_canonical())
    }

    /// Whether another dial may begin. A dial to a needed address always may: at most two are needed.
    pub(super) fn may_dial(&self, address: IpAddr) -> bool {
        let dials = self.links.values().filter(|link| link.is_own_dial());
        dials.count() < DIALS_MAX || self.is_needed(address)
    }

    /// Whether a place is free for this node, or a peer would leave for a node at this address.
    pub(super) fn may_enter(&self, now: Instant, them: &NodeId, address: IpAddr) -> bool {
        self.has_place(them) || self.who_leaves_for(now, address).is_some()
    }

    /// Makes a place for a node at this address; false if none is free and no peer leaves for it.
    pub(super) fn make_place(&mut self, now: Instant, them: &NodeId, address: IpAddr) -> bool {
        if self.has_place(them) {
            return true;
        }
        let Some(least) = self.who_leaves_for(now, address) else { return false };
        self.drop_parked(least);
        self.remove(least, Down::Refused(Refusal::Busy));
        self.displaced += 1;
        true
    }

    fn has_place(&self, them: &NodeId) -> bool {
        self.peers.contains_key(them) || self.peers.len() < PEERS_MAX
    }

    /// The peer that leaves for a node at this address, if one does.
    pub(super) fn who_leaves_for(&self, now: Instant, address: IpAddr) -> Option<NodeId> {
        let is_kept = |peer: &Peer| peer.addresses.iter().any(|it| self.is_needed(*it));
        let others = self.peers.iter().filter(|(_, peer)| !is_kept(peer));
        if !self.is_needed(address) {
            let idle = others.filter(|(_, peer)| now - peer.used() >= IDLE);
            return idle.min_by_key(|(_, peer)| peer.usefulness()).map(|(id, _)| *id);
        }
        let least = others.min_by_key(|(_, peer)| peer.usefulness()).map(|(id, _)| *id);
        self.at(address).or(least)
    }

    /// The accepted connection to end before another is accepted, if too many have not proven an
    /// identity.
    pub(super) fn unknown_to_leave(&self) -> Option<LinkId> {
        let unknown = || self.links.iter().filter(|(_, link)| link.is_unknown());
        if unknown().count() < HANDSHAKES_MAX {
            return None;
        }
        let from = |link: &Link| link.address.ip().to_canonical();
        let beside = |one: &Link| unknown().filter(|(_, it)| from(it) == from(one)).count();
        let rank = |(id, link): &(&LinkId, &Link)| {
            let is_needed = self.is_needed(from(link));
            (Reverse(is_needed), beside(link), Reverse((link.since, **id)))
        };
        unknown().max_by_key(rank).map(|(id, _)| *id)
    }
}

impl Peer {
    /// When it was last of use, or else connected.
    fn used(&self) -> Instant {
        self.gave_unit.max(self.took).map_or(self.since, |used| used.max(self.since))
    }

    /// Orders peers by usefulness, the least useful first.
    fn usefulness(&self) -> (Option<Instant>, Option<Instant>, Instant) {
        (self.gave_unit, self.took, self.since)
    }
}
