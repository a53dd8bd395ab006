//! Who leads to which published object, as peers say (DOT's hints; Ditto §5.1).
//!
//! *What this is:* a table of what peers said, and of what we have said to the one peer that leads
//! towards the gateway. A hint is as old as its connection at most: it goes with the peer that said it,
//! and is said again wherever a new way towards the gateway begins. *Who calls it:* `publish/hints.rs`,
//! `source/choose.rs`. *What it never does:* believe a hint; who is asked because of one has to show the
//! object, and that is certified by its name.
//!
//! *Order:* whoever has shown what it led to is asked first, whoever was asked in vain last, for any object:
//! a peer that claims all there is costs others one try, not one for each object.
//!
//! *Bounds:* [`HINTS_MAX`] in all, [`HINTS_OF_PEER_MAX`] of one peer, which then forgets its own oldest. Who
//! says one too many in all makes the peer that has said most forget its oldest, so that nobody's flood
//! costs others more than their surplus. What is told onwards is shared out alike: a flood behind us does
//! not crowd out, further on, what others behind us hold.

use crate::hasher::{Map, Set};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use wire::peer::Message;
use wire::{NodeId, Oid};

/// Hints of all peers together, at most: about a megabyte.
pub const HINTS_MAX: usize = 8192;
/// Hints of one peer, at most; also what we tell one.
pub const HINTS_OF_PEER_MAX: usize = HINTS_MAX / 2;
/// Peers that were asked in vain and are remembered though they may have left, at most: the latest.
const FAILED_MAX: usize = 256;

/// What peers said they lead to, and what we said.
#[derive(Debug, Default)]
pub struct Holders {
    by_name: BTreeMap<Oid, Vec<NodeId>>,
    by_peer: Map<NodeId, Said>,
    /// Who has shown what it led to, since it was last asked in vain.
    proven: Set<NodeId>,
    /// Who was last asked in vain, the latest last. It is no news for whoever comes back.
    failed: VecDeque<NodeId>,
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

    /// A peer has shown an object that it led to.
    pub fn proved(&mut self, peer: NodeId) {
        self.failed.retain(|other| *other != peer);
        if self.by_peer.contains_key(&peer) {
            self.proven.insert(peer);
        }
    }

    /// A peer was asked in vain for an object that it led to, or is silent.
    pub fn failed(&mut self, peer: NodeId) {
        self.proven.remove(&peer);
        self.failed.retain(|other| *other != peer);
        self.failed.push_back(peer);
        if self.failed.len() > FAILED_MAX {
            self.failed.pop_front();
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
        self.proven.remove(&peer);
        if let Some(said) = self.by_peer.remove(&peer) {
            said.places.keys().for_each(|name| self.forget(peer, name));
        }
        if self.told.as_ref().is_some_and(|(told, _)| *told == peer) {
            (self.told, self.changed) = (None, true);
        }
    }

    /// Who says that it leads to an object: the proven first, those that failed last, the one that failed
    /// longest ago before the others; among equals the first who said it.
    pub fn of(&self, name: &Oid) -> Vec<NodeId> {
        let mut holders = self.by_name.get(name).cloned().unwrap_or_default();
        holders.sort_by_key(|peer| {
            let failed = self.failed.iter().position(|failed| failed == peer);
            (failed.map_or(0, |place| place + 1), !self.proven.contains(peer))
        });
        holders
    }

    /// Whether anybody says that it leads to an object.
    pub fn has(&self, name: &Oid) -> bool {
        self.by_name.contains_key(name)
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
    /// What a peer is to be told: what is published here, and of what each of the others said as much as of
    /// any other, the oldest first, until it is enough.
    fn to_tell(&self, whom: NodeId, published: BTreeSet<Oid>) -> BTreeSet<Oid> {
        let mut now = published;
        let others = self.by_peer.iter().filter(|(peer, _)| **peer != whom);
        let mut others: Vec<_> = others.collect();
        others.sort_unstable_by_key(|(peer, said)| (said.places.len(), **peer));
        let mut left = others.len();
        for (_, said) in others {
            // Whoever has said little leaves its share to the rest.
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
        assert_eq!(holders.len(), HINTS_OF_PEER_MAX + 100);
        assert_eq!(holders.evicted, (3 * HINTS_MAX - HINTS_OF_PEER_MAX) as u64);
        assert!((0..100).all(|it| holders.of(&name(it)) == [A]));
        assert!(!holders.has(&name(1000)));
        assert_eq!(holders.of(&name(1000 + 3 * HINTS_MAX - 1)), [B]);
        // All that two can say leaves nothing for others; each costs one who has said most.
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
        let names: BTreeSet<Oid> = names.collect();
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
    fn whoever_has_proved_itself_is_asked_first_and_whoever_failed_last() {
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
        // To begin again does not help.
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
