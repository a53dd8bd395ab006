//! Who gets a place among the peers, and who leaves for it.
//!
//! A node must always reach those that it asks: the next hop and the gateway
//! ([`Peers::keep_place_for`]). Everybody else gets a place while there is one. A connection proves who
//! is at its other end and not that anybody needs them, so strangers could take every place and keep it.
//! When all places are taken, the least useful peer leaves for one at a needed address:
//!
//! 1. one at the same address, if there is one: a needed address holds no more than one place by right;
//! 2. else one that never gave us a unit, before any that did;
//! 3. among those, one that we never gave an answer or a unit, before any that we did;
//! 4. else the one whose last time is the longest ago; among those that did neither, the oldest.
//!
//! The same holds for handshakes under way: those from needed addresses leave last, and those of an
//! address that has the most of them leave first.

use super::link::Link;
use super::peer::Peer;
use super::{DIALS_MAX, Down, HANDSHAKES_MAX, PEERS_MAX, Peers};
use crate::input::LinkId;
use std::cmp::Reverse;
use std::net::IpAddr;
use wire::peer::Refusal;
use wire::{Instant, NodeId};

/// Addresses with a place by right, at most: the next hop and the gateway.
const NEEDED_MAX: usize = 2;

impl Peers {
    /// From now on peers at these addresses always find a place. At most two addresses count.
    pub fn keep_place_for(&mut self, addresses: impl IntoIterator<Item = IpAddr>) {
        let addresses = addresses.into_iter().map(|address| address.to_canonical());
        self.needed = addresses.take(NEEDED_MAX).collect();
    }

    /// Whether those at an address find a place in any case.
    pub(super) fn is_needed(&self, address: IpAddr) -> bool {
        self.needed.contains(&address.to_canonical())
    }

    /// Whether another dial may begin. One to a needed address always may: there are few of those.
    pub(super) fn may_dial(&self, address: IpAddr) -> bool {
        let dials = self.links.values().filter(|link| link.is_own_dial());
        dials.count() < DIALS_MAX || self.is_needed(address)
    }

    /// Whether there is a place for a node at this address, or another peer would leave for it.
    pub(super) fn may_enter(&self, them: &NodeId, address: IpAddr) -> bool {
        self.has_place(them) || self.who_leaves_for(address).is_some()
    }

    /// Makes a place for a node at this address; false if there is none.
    pub(super) fn make_place(&mut self, them: &NodeId, address: IpAddr) -> bool {
        if self.has_place(them) {
            return true;
        }
        let Some(least) = self.who_leaves_for(address) else { return false };
        self.drop_parked(least);
        self.remove(least, Down::Refused(Refusal::Busy));
        self.displaced += 1;
        true
    }

    fn has_place(&self, them: &NodeId) -> bool {
        self.peers.contains_key(them) || self.peers.len() < PEERS_MAX
    }

    pub(super) fn who_leaves_for(&self, address: IpAddr) -> Option<NodeId> {
        if !self.is_needed(address) {
            return None;
        }
        let is_kept = |peer: &Peer| peer.addresses.iter().any(|it| self.is_needed(*it));
        let others = self.peers.iter().filter(|(_, peer)| !is_kept(peer));
        let least = others.min_by_key(|(_, peer)| peer.usefulness()).map(|(id, _)| *id);
        self.at(address).or(least)
    }

    /// The accepted connection that leaves for another one, if too many are there whose other end is not
    /// known.
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
    /// Orders peers by what they were good for: the least useful first.
    fn usefulness(&self) -> (Option<Instant>, Option<Instant>, Instant) {
        (self.gave_unit, self.took, self.since)
    }
}
