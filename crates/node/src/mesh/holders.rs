//! Who leads to which published object, as peers say (DOT's hints; Ditto §5.1).
//!
//! *What this is:* a table of what peers said, and of what we have said to the one peer that leads
//! towards the gateway. A hint is as old as its connection at most: it goes with the peer that said it,
//! and is said again wherever a new way towards the gateway begins. *Who calls it:* `node/hints.rs`.
//! *What it never does:* believe a hint; who is asked because of one has to show the object, and that is
//! certified by its name.
//!
//! *Bounds:* [`HINTS_MAX`] in all. Who says one too many makes the peer that has said most forget its
//! oldest, so that nobody's flood costs others more than their surplus.

use crate::hasher::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use wire::peer::Message;
use wire::{NodeId, Oid};

/// Hints of all peers together, at most: about a megabyte.
pub const HINTS_MAX: usize = 8192;
/// Peers that are remembered for one object, at most; a further one is not needed.
const HOLDERS_MAX: usize = 4;

/// What peers said they lead to, and what we said.
#[derive(Debug, Default)]
pub struct Holders {
    by_name: BTreeMap<Oid, Vec<NodeId>>,
    by_peer: Map<NodeId, Said>,
    count: usize,
    /// Hints that had to go for others.
    pub evicted: u64,
    /// Whom we have told what we lead to, and what.
    told: Option<(NodeId, BTreeSet<Oid>)>,
    /// Where somebody is looked for who can be told.
    pub sought: Option<IpAddr>,
    /// Something has changed since that was right.
    pub changed: bool,
}

/// What one peer said, the oldest first.
#[derive(Debug, Default)]
struct Said {
    order: BTreeMap<u64, Oid>,
    places: BTreeMap<Oid, u64>,
    next: u64,
}

impl Holders {
    /// A peer says that it leads to an object.
    pub fn hold(&mut self, peer: NodeId, name: Oid) {
        let said = self.by_peer.entry(peer).or_default();
        let holders = self.by_name.entry(name).or_default();
        if said.places.contains_key(&name) || holders.len() >= HOLDERS_MAX {
            return;
        }
        holders.push(peer);
        said.places.insert(name, said.next);
        said.order.insert(said.next, name);
        said.next += 1;
        self.count += 1;
        self.changed = true;
        if self.count > HINTS_MAX {
            self.evict();
        }
    }

    fn evict(&mut self) {
        let most = self.by_peer.iter().max_by_key(|(peer, said)| (said.places.len(), **peer));
        let oldest = most.and_then(|(peer, said)| Some((*peer, *said.order.first_key_value()?.1)));
        if let Some((peer, name)) = oldest {
            self.let_go(peer, &name);
            self.evicted += 1;
        }
    }

    /// A peer does not lead to an object any more, or turned out not to.
    pub fn let_go(&mut self, peer: NodeId, name: &Oid) {
        let Some(said) = self.by_peer.get_mut(&peer) else { return };
        let Some(place) = said.places.remove(name) else { return };
        said.order.remove(&place);
        if said.places.is_empty() {
            self.by_peer.remove(&peer);
        }
        self.forget(peer, name);
    }

    fn forget(&mut self, peer: NodeId, name: &Oid) {
        if let Some(holders) = self.by_name.get_mut(name) {
            holders.retain(|holder| *holder != peer);
            if holders.is_empty() {
                self.by_name.remove(name);
            }
        }
        self.count -= 1;
        self.changed = true;
    }

    /// A peer is gone, and with it what it said and what it was told.
    pub fn gone(&mut self, peer: NodeId) {
        if let Some(said) = self.by_peer.remove(&peer) {
            said.places.keys().for_each(|name| self.forget(peer, name));
        }
        if self.told.as_ref().is_some_and(|(told, _)| *told == peer) {
            (self.told, self.changed) = (None, true);
        }
    }

    /// Who says that it leads to an object, the first who said it first.
    pub fn of(&self, name: &Oid) -> &[NodeId] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// How many hints there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// What is to be said so that the peer towards the gateway knows what we lead to: what is published
    /// here, and what others lead to. What that peer itself has said is no news to it.
    pub fn tell(
        &mut self,
        towards: Option<NodeId>,
        published: impl Iterator<Item = Oid>,
    ) -> Vec<(NodeId, Message)> {
        self.changed = false;
        let mut messages = Vec::new();
        let mut told = BTreeSet::new();
        match self.told.take() {
            Some((peer, names)) if Some(peer) == towards => told = names,
            // It is on the way no more, and need not lead anybody here.
            Some((peer, names)) => say(&mut messages, peer, Message::LetGo, names.into_iter()),
            None => {}
        }
        let Some(peer) = towards else { return messages };
        let others = self.by_name.iter().filter(|(_, by)| by.iter().any(|it| *it != peer));
        let now: BTreeSet<Oid> = published.chain(others.map(|(name, _)| *name)).collect();
        say(&mut messages, peer, Message::LetGo, told.difference(&now).copied());
        say(&mut messages, peer, Message::Hold, now.difference(&told).copied());
        self.told = Some((peer, now));
        messages
    }
}

fn say(
    messages: &mut Vec<(NodeId, Message)>,
    peer: NodeId,
    message: impl Fn(Vec<Oid>) -> Message,
    names: impl Iterator<Item = Oid>,
) {
    let names: Vec<Oid> = names.collect();
    messages.extend(names.chunks(Message::HELD_MAX).map(|some| (peer, message(some.to_vec()))));
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId([1; 16]);
    const B: NodeId = NodeId([2; 16]);
    const UP: NodeId = NodeId([9; 16]);

    fn name(number: usize) -> Oid {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
        Oid(bytes)
    }

    fn tell(holders: &mut Holders, towards: Option<NodeId>) -> Vec<(NodeId, Message)> {
        holders.tell(towards, std::iter::empty())
    }

    #[test]
    fn a_flood_costs_its_author_first() {
        let mut holders = Holders::default();
        (0..100).for_each(|it| holders.hold(A, name(it)));
        (0..3 * HINTS_MAX).for_each(|it| holders.hold(B, name(1000 + it)));
        assert_eq!(holders.len(), HINTS_MAX);
        assert_eq!(holders.evicted, (2 * HINTS_MAX + 100) as u64);
        assert!((0..100).all(|it| holders.of(&name(it)) == [A]));
        assert!(holders.of(&name(1000)).is_empty());
        assert_eq!(holders.of(&name(1000 + 3 * HINTS_MAX - 1)), [B]);
        holders.gone(B);
        holders.gone(A);
        assert_eq!((holders.len(), holders.by_name.len(), holders.by_peer.len()), (0, 0, 0));
    }

    #[test]
    fn what_is_said_again_or_by_too_many_counts_once() {
        let mut holders = Holders::default();
        for peer in 0..10 {
            (0..2).for_each(|_| holders.hold(NodeId([peer; 16]), name(1)));
        }
        assert_eq!((holders.len(), holders.of(&name(1)).len()), (HOLDERS_MAX, HOLDERS_MAX));
        holders.let_go(NodeId([9; 16]), &name(1));
        assert_eq!(holders.len(), HOLDERS_MAX);
        holders.let_go(NodeId([0; 16]), &name(1));
        assert_eq!(holders.of(&name(1)).first(), Some(&NodeId([1; 16])));
    }

    #[test]
    fn only_what_has_changed_is_said_and_never_to_whom_it_came_from() {
        let mut holders = Holders::default();
        holders.hold(A, name(1));
        holders.hold(UP, name(2));
        assert_eq!(tell(&mut holders, None), []);
        assert_eq!(tell(&mut holders, Some(UP)), [(UP, Message::Hold(vec![name(1)]))]);
        assert_eq!(tell(&mut holders, Some(UP)), []);
        holders.hold(B, name(1));
        holders.gone(A);
        assert_eq!(tell(&mut holders, Some(UP)), []);
        holders.let_go(B, &name(1));
        assert_eq!(tell(&mut holders, Some(UP)), [(UP, Message::LetGo(vec![name(1)]))]);
    }

    #[test]
    fn another_way_is_told_all_and_the_former_takes_it_back() {
        let mut holders = Holders::default();
        holders.hold(A, name(1));
        tell(&mut holders, Some(UP));
        let (taken, told) = (Message::LetGo(vec![name(1)]), Message::Hold(vec![name(1)]));
        assert_eq!(tell(&mut holders, Some(B)), [(UP, taken), (B, told.clone())]);
        holders.gone(B);
        assert!(holders.changed);
        assert_eq!(tell(&mut holders, Some(UP)), [(UP, told)]);
    }
}
