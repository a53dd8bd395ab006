//! What the next hop is still to be told.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use wire::peer::{Copies, Message, Reach};
use wire::{Hint, NodeId};

/// The most changes that wait; further ones are never told, which costs a question or a copy that is not found.
const CHANGES_MAX: usize = 8192;

/// What has changed since the next hop was told.
#[derive(Debug, Default)]
pub struct Upward {
    /// Whether a router has an object now.
    changes: BTreeMap<(IpAddr, Hint), bool>,
    /// Routers whose reach has changed.
    pub reaches: BTreeSet<IpAddr>,
    /// The peer that was told everything else.
    told: Option<NodeId>,
}

impl Upward {
    pub fn stored(&mut self, router: IpAddr, name: Hint) {
        self.change(router, name, true);
    }

    pub fn evicted(&mut self, router: IpAddr, name: Hint) {
        self.change(router, name, false);
    }

    fn change(&mut self, router: IpAddr, name: Hint, has: bool) {
        let change = (router, name);
        if self.changes.len() < CHANGES_MAX || self.changes.contains_key(&change) {
            self.changes.insert(change, has);
        }
    }

    /// Whether a peer was told nothing yet.
    pub fn is_new(&mut self, peer: NodeId) -> bool {
        self.told.replace(peer) != Some(peer)
    }

    /// A peer has disconnected, and forgets what it was told.
    pub fn peer_is_gone(&mut self, peer: NodeId) {
        self.told.take_if(|told| *told == peer);
    }

    /// There is nobody to tell.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The messages. A router without a reach is unknown to the receiver, and so are its copies.
    pub fn take(&mut self, reach: impl Fn(&IpAddr) -> Option<Reach>) -> Vec<Message> {
        let reaches = std::mem::take(&mut self.reaches);
        let mut messages: Vec<_> = reaches
            .iter()
            .filter_map(|router| Some(Message::Reach(Box::new(reach(router)?))))
            .collect();
        let mut by_router = BTreeMap::<IpAddr, [Vec<Hint>; 2]>::new();
        for ((router, name), has) in std::mem::take(&mut self.changes) {
            by_router.entry(router).or_default()[usize::from(!has)].push(name);
        }
        for (router, [stored, evicted]) in by_router {
            let count = stored.len().max(evicted.len()).div_ceil(Message::HELD_MAX);
            let part = |names: &[Hint], number| {
                names.chunks(Message::HELD_MAX).nth(number).unwrap_or_default().to_vec()
            };
            messages.extend((0..count).map(|number| {
                let (stored, evicted) = (part(&stored, number), part(&evicted, number));
                Message::Copies(Copies { router, stored, evicted })
            }));
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_beyond_8192_are_not_told_and_each_is_told_as_it_was_last() {
        let (router, mut upward) = (IpAddr::from([10, 0, 0, 1]), Upward::default());
        let name = |number: u64| Hint(number.to_be_bytes());
        (0..8193).for_each(|number| upward.stored(router, name(number)));
        upward.evicted(router, name(0));
        let (mut stored, mut evicted) = (BTreeSet::new(), BTreeSet::new());
        for message in upward.take(|_| None) {
            let Message::Copies(copies) = message else { panic!("{message:?}") };
            assert!(copies.stored.len().max(copies.evicted.len()) <= Message::HELD_MAX);
            stored.extend(copies.stored);
            evicted.extend(copies.evicted);
        }
        assert_eq!(stored, (1..8192).map(name).collect());
        assert_eq!(evicted, BTreeSet::from([name(0)]));
        assert!(upward.take(|_| None).is_empty(), "each is told once");
    }
}
