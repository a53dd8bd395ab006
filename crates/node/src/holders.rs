//! Which peers have announced which published objects (DOT's hints; Ditto §5.1).
//!
//! *What it is:* a table of the hints that peers have sent, and of those that we have sent to the
//! one peer towards the gateway. A hint lasts as long as its connection: it is forgotten when the
//! peer disconnects, and sent again when the route towards the gateway changes. *Who calls it:*
//! `hints.rs`, `source/choose.rs`. *What it never does:* trust a hint. A peer asked because of one
//! has to deliver the object, which its name certifies.
//!
//! *Order:* peers that have delivered an announced object are asked first, peers that failed last,
//! for any object. So a peer that announces everything costs one attempt, not one for each object.
//!
//! *Names:* objects go by short names, keyed by the mesh's secret (`named.rs`). Two objects that share one are one
//! here.
//!
//! *Bounds:* [`HINTS_MAX`] in all, and [`HINTS_OF_PEER_MAX`] for each peer, whose own oldest hint
//! is then dropped. When the total is exceeded, the peer with the most hints loses its oldest, so a
//! flood costs the others only what they hold beyond their share. What is passed on is shared
//! alike: a flood of one peer does not displace the hints of the others.

use crate::hasher::{Map, Set};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use wire::peer::Message;
use wire::{Hint, NodeId};

/// Hints of all peers together: about half a megabyte.
pub const HINTS_MAX: usize = 8192;
/// Hints of one peer; also the most that we send to one.
pub const HINTS_OF_PEER_MAX: usize = HINTS_MAX / 2;
/// Peers that failed are remembered after they leave: at most this many, the latest.
const FAILED_MAX: usize = 256;

/// Hints received and sent.
#[derive(Debug, Default)]
pub struct Holders {
    by_name: BTreeMap<Hint, Vec<NodeId>>,
    by_peer: Map<NodeId, Said>,
    /// Peers that delivered an announced object since they last failed.
    proven: Set<NodeId>,
    /// Peers that failed, the latest last. A peer that reconnects stays in this list.
    failed: VecDeque<NodeId>,
    count: usize,
    /// Hints dropped for lack of room.
    pub evicted: u64,
    /// The peer that we sent our hints to, and those hints.
    told: Option<(NodeId, BTreeSet<Hint>)>,
    /// The address that was dialled to find a peer for our hints.
    pub sought: Option<IpAddr>,
    /// Our hints may differ from those last sent.
    pub changed: bool,
}

/// The hints of one peer, oldest first.
#[derive(Debug, Default)]
struct Said {
    order: BTreeMap<u64, Hint>,
    places: BTreeMap<Hint, u64>,
    next: u64,
}

impl Holders {
    /// A peer announces an object.
    pub fn hold(&mut self, peer: NodeId, name: Hint) {
        let said = self.by_peer.entry(peer).or_default();
        let holders = self.by_name.entry(name).or_default();
        if said.places.contains_key(&name) {
            return;
        }
        holders.push(peer);
        said.places.insert(name, said.next);
        said.order.insert(said.next, name);
        said.next += 1;
        self.count += 1;
        self.changed = true;
        let is_full = said.places.len() > HINTS_OF_PEER_MAX;
        if is_full {
            self.evict_of(peer);
        } else if self.count > HINTS_MAX {
            let most = self.by_peer.iter().max_by_key(|(peer, said)| (said.places.len(), **peer));
            most.map(|(peer, _)| *peer).into_iter().for_each(|peer| self.evict_of(peer));
        }
    }

    fn evict_of(&mut self, peer: NodeId) {
        let said = self.by_peer.get(&peer);
        if let Some(name) = said.and_then(|said| said.order.values().next().copied()) {
            self.let_go(peer, &name);
            self.evicted += 1;
        }
    }

    /// A peer has delivered an object that it announced.
    pub fn proved(&mut self, peer: NodeId) {
        self.failed.retain(|other| *other != peer);
        if self.by_peer.contains_key(&peer) {
            self.proven.insert(peer);
        }
    }

    /// A peer did not deliver an object that it announced, or is silent.
    pub fn failed(&mut self, peer: NodeId) {
        self.proven.remove(&peer);
        self.failed.retain(|other| *other != peer);
        self.failed.push_back(peer);
        if self.failed.len() > FAILED_MAX {
            self.failed.pop_front();
        }
    }

    /// A peer has withdrawn an announcement, or did not have the object.
    pub fn let_go(&mut self, peer: NodeId, name: &Hint) {
        let Some(said) = self.by_peer.get_mut(&peer) else { return };
        let Some(place) = said.places.remove(name) else { return };
        said.order.remove(&place);
        if said.places.is_empty() {
            self.by_peer.remove(&peer);
        }
        self.forget(peer, name);
    }

    fn forget(&mut self, peer: NodeId, name: &Hint) {
        if let Some(holders) = self.by_name.get_mut(name) {
            holders.retain(|holder| *holder != peer);
            if holders.is_empty() {
                self.by_name.remove(name);
            }
        }
        self.count -= 1;
        self.changed = true;
    }

    /// A peer has disconnected: its hints, and ours to it, are forgotten.
    pub fn gone(&mut self, peer: NodeId) {
        self.proven.remove(&peer);
        if let Some(said) = self.by_peer.remove(&peer) {
            said.places.keys().for_each(|name| self.forget(peer, name));
        }
        if self.told.as_ref().is_some_and(|(told, _)| *told == peer) {
            (self.told, self.changed) = (None, true);
        }
    }

    /// The peers that announce an object: first those that delivered before, last those that
    /// failed, the earliest failure first. Among equals the first to announce comes first.
    pub fn of(&self, name: &Hint) -> Vec<NodeId> {
        let mut holders = self.by_name.get(name).cloned().unwrap_or_default();
        holders.sort_by_key(|peer| {
            let failed = self.failed.iter().position(|failed| failed == peer);
            (failed.map_or(0, |place| place + 1), !self.proven.contains(peer))
        });
        holders
    }

    /// Whether any peer announces an object.
    pub fn has(&self, name: &Hint) -> bool {
        self.by_name.contains_key(name)
    }

    /// The number of hints.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The messages that bring the peer towards the gateway up to date: objects published here, and
    /// those that other peers announce. Its own hints are not sent back to it.
    pub fn tell(
        &mut self,
        towards: Option<NodeId>,
        published: impl Iterator<Item = Hint>,
    ) -> Vec<(NodeId, Message)> {
        self.changed = false;
        let mut messages = Vec::new();
        let mut told = BTreeSet::new();
        match self.told.take() {
            Some((peer, names)) if Some(peer) == towards => told = names,
            // That peer is not on the route any more: it need not send requests here.
            Some((peer, names)) => say(&mut messages, peer, Message::Withdraw, names.into_iter()),
            None => {}
        }
        let Some(peer) = towards else { return messages };
        let now = self.to_tell(peer, published.collect());
        say(&mut messages, peer, Message::Withdraw, told.difference(&now).copied());
        say(&mut messages, peer, Message::Have, now.difference(&told).copied());
        self.told = Some((peer, now));
        messages
    }
}

impl Holders {
    /// The hints for a peer: what is published here, and equal parts of the hints of each other
    /// peer, oldest first, up to the limit.
    fn to_tell(&self, whom: NodeId, published: BTreeSet<Hint>) -> BTreeSet<Hint> {
        let mut now = published;
        let others = self.by_peer.iter().filter(|(peer, _)| **peer != whom);
        let mut others: Vec<_> = others.collect();
        others.sort_unstable_by_key(|(peer, said)| (said.places.len(), **peer));
        let mut left = others.len();
        for (_, said) in others {
            // A peer with few hints leaves its share to the others.
            let share = HINTS_OF_PEER_MAX.saturating_sub(now.len()) / left;
            now.extend(said.order.values().take(share));
            left -= 1;
        }
        now
    }
}

fn say(
    messages: &mut Vec<(NodeId, Message)>,
    peer: NodeId,
    message: impl Fn(Vec<Hint>) -> Message,
    names: impl Iterator<Item = Hint>,
) {
    let names: Vec<Hint> = names.collect();
    messages.extend(names.chunks(Message::HELD_MAX).map(|some| (peer, message(some.to_vec()))));
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId([1; 16]);
    const B: NodeId = NodeId([2; 16]);
    const UP: NodeId = NodeId([9; 16]);

    fn name(number: usize) -> Hint {
        Hint((number as u64).to_be_bytes())
    }

    fn tell(holders: &mut Holders, towards: Option<NodeId>) -> Vec<(NodeId, Message)> {
        holders.tell(towards, std::iter::empty())
    }

    #[test]
    fn a_flood_costs_its_author_first() {
        let mut holders = Holders::default();
        (0..100).for_each(|it| holders.hold(A, name(it)));
        (0..3 * HINTS_MAX).for_each(|it| holders.hold(B, name(1000 + it)));
        assert_eq!(holders.len(), HINTS_OF_PEER_MAX + 100);
        assert_eq!(holders.evicted, (3 * HINTS_MAX - HINTS_OF_PEER_MAX) as u64);
        assert!((0..100).all(|it| holders.of(&name(it)) == [A]));
        assert!(!holders.has(&name(1000)));
        assert_eq!(holders.of(&name(1000 + 3 * HINTS_MAX - 1)), [B]);
        // Two peers fill the table: each further hint costs one of the peers with the most.
        (0..HINTS_OF_PEER_MAX).for_each(|it| holders.hold(UP, name(100_000 + it)));
        assert_eq!(holders.len(), HINTS_MAX);
        assert!((0..100).all(|it| holders.of(&name(it)) == [A]));
        for peer in [UP, B, A] {
            holders.gone(peer);
        }
        assert_eq!((holders.len(), holders.by_name.len(), holders.by_peer.len()), (0, 0, 0));
    }

    #[test]
    fn a_flood_behind_us_leaves_the_others_theirs_further_on() {
        let mut holders = Holders::default();
        (0..HINTS_MAX).for_each(|it| holders.hold(B, name(1000 + it)));
        (0..100).for_each(|it| holders.hold(A, name(it)));
        let told = holders.tell(Some(UP), std::iter::once(name(999)));
        let names = told.into_iter().flat_map(|(_, message)| match message {
            Message::Have(names) => names,
            other => panic!("{other:?}"),
        });
        let names: BTreeSet<Hint> = names.collect();
        assert_eq!(names.len(), HINTS_OF_PEER_MAX);
        assert!((0..100).chain([999]).all(|it| names.contains(&name(it))));
    }

    #[test]
    fn what_is_said_again_counts_once_and_nobody_is_shut_out() {
        let mut holders = Holders::default();
        for peer in 0..10 {
            (0..2).for_each(|_| holders.hold(NodeId([peer; 16]), name(1)));
        }
        assert_eq!((holders.len(), holders.of(&name(1)).len()), (10, 10));
        holders.let_go(NodeId([0; 16]), &name(1));
        assert_eq!(holders.of(&name(1)).first(), Some(&NodeId([1; 16])));
    }

    #[test]
    fn proven_holders_are_asked_first_and_failed_ones_last() {
        let mut holders = Holders::default();
        for peer in [A, B, UP] {
            (0..2).for_each(|it| holders.hold(peer, name(it)));
        }
        assert_eq!(holders.of(&name(0)), [A, B, UP]);
        holders.let_go(A, &name(0));
        holders.failed(A);
        assert_eq!(holders.of(&name(1)), [B, UP, A]);
        holders.proved(UP);
        assert_eq!(holders.of(&name(1)), [UP, B, A]);
        // Reconnecting does not help.
        holders.gone(A);
        holders.hold(A, name(1));
        assert_eq!(holders.of(&name(1)), [UP, B, A]);
        holders.failed(B);
        assert_eq!(holders.of(&name(1)), [UP, A, B]);
        holders.proved(A);
        holders.failed(UP);
        assert_eq!(holders.of(&name(1)), [A, B, UP]);
        (0..2 * FAILED_MAX).for_each(|it| {
            let mut id = [7; 16];
            id[..8].copy_from_slice(&(it as u64).to_be_bytes());
            holders.failed(NodeId(id));
        });
        assert_eq!(holders.failed.len(), FAILED_MAX);
    }

    #[test]
    fn only_what_has_changed_is_said_and_never_to_whom_it_came_from() {
        let mut holders = Holders::default();
        holders.hold(A, name(1));
        holders.hold(UP, name(2));
        assert_eq!(tell(&mut holders, None), []);
        assert_eq!(tell(&mut holders, Some(UP)), [(UP, Message::Have(vec![name(1)]))]);
        assert_eq!(tell(&mut holders, Some(UP)), []);
        holders.hold(B, name(1));
        holders.gone(A);
        assert_eq!(tell(&mut holders, Some(UP)), []);
        holders.let_go(B, &name(1));
        assert_eq!(tell(&mut holders, Some(UP)), [(UP, Message::Withdraw(vec![name(1)]))]);
    }

    #[test]
    fn another_way_is_told_all_and_the_former_takes_it_back() {
        let mut holders = Holders::default();
        holders.hold(A, name(1));
        tell(&mut holders, Some(UP));
        let (taken, told) = (Message::Withdraw(vec![name(1)]), Message::Have(vec![name(1)]));
        assert_eq!(tell(&mut holders, Some(B)), [(UP, taken), (B, told.clone())]);
        holders.gone(B);
        assert!(holders.changed);
        assert_eq!(tell(&mut holders, Some(UP)), [(UP, told)]);
    }
}
