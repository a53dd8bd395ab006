//! One account of memory for all requests of peers.
//!
//! *What it is:* each request is charged what it takes now: its fields, its wants, the units read
//! for it and not sent yet, and a transfer while one may be needed. *Who calls it:* only
//! `charge.rs` and `peer_readers.rs`. *What it never does:* look into a request. *Why:* decision 0025
//! has the calculation.
//!
//! *How memory is shared:* one peer alone may take all of it. When memory is short, the peer that
//! holds the most gives back, as long as it holds more than the asking peer would. So every peer
//! can reach an equal share, in any order of requests (max-min fairness: Bertsekas and
//! Gallager, Data Networks, §6.5.2).

use crate::hasher::Map;
use crate::input::ExchangeId;
use std::collections::{BTreeMap, BTreeSet};
use wire::NodeId;

/// The account is the node's memory divided by this.
const SHARE: u64 = 4;

/// The account; see the module.
#[derive(Debug)]
pub struct Budget {
    bytes_max: u64,
    used: u64,
    charges: Map<ExchangeId, (NodeId, u64)>,
    peers: BTreeMap<NodeId, u64>,
    /// Requests that wait for memory to read units.
    waiting: BTreeSet<ExchangeId>,
    /// Memory was given back since the waiting requests were last checked.
    has_more: bool,
}

impl Budget {
    /// Nothing is charged; `memory_bytes` is the budget of the whole node.
    pub fn new(memory_bytes: u64) -> Self {
        Self {
            bytes_max: memory_bytes / SHARE,
            used: 0,
            charges: Map::default(),
            peers: BTreeMap::new(),
            waiting: BTreeSet::new(),
            has_more: false,
        }
    }

    /// Free memory in bytes.
    pub fn free(&self) -> u64 {
        self.bytes_max.saturating_sub(self.used)
    }

    /// The peer that must give memory back so that `peer` can have this many bytes more: the one
    /// that holds the most, if that is more than `peer` would then hold.
    pub fn who_gives_back(&self, peer: NodeId, bytes: u64) -> Option<NodeId> {
        let would = self.peers.get(&peer).copied().unwrap_or(0) + bytes;
        let (most, held) = self.peers.iter().max_by_key(|(_, held)| **held)?;
        (*held > would).then_some(*most)
    }

    /// Whether no other peer holds memory.
    pub fn holds_alone(&self, peer: NodeId) -> bool {
        self.peers.keys().all(|other| *other == peer)
    }

    /// Sets what a request takes, in bytes.
    pub fn charge(&mut self, request: ExchangeId, peer: NodeId, bytes: u64) {
        let before = self.give_back(request);
        self.has_more |= bytes < before;
        self.used += bytes;
        *self.peers.entry(peer).or_default() += bytes;
        self.charges.insert(request, (peer, bytes));
    }

    /// A request has ended: its charge is released.
    pub fn end(&mut self, request: ExchangeId) {
        self.has_more |= self.give_back(request) > 0;
        self.waiting.remove(&request);
    }

    /// Releases a charge; returns its bytes.
    fn give_back(&mut self, request: ExchangeId) -> u64 {
        let Some((peer, bytes)) = self.charges.remove(&request) else { return 0 };
        self.used -= bytes;
        if let Some(held) = self.peers.get_mut(&peer) {
            *held -= bytes;
            if *held == 0 {
                self.peers.remove(&peer);
            }
        }
        bytes
    }

    /// Whether something was given back since [`was_looked_at`](Self::was_looked_at).
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// No waiting request can continue before more memory is freed.
    pub fn was_looked_at(&mut self) {
        self.has_more = false;
    }

    /// What all requests take now, in bytes.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// A request waits for memory.
    pub fn wait(&mut self, request: ExchangeId) {
        self.waiting.insert(request);
    }

    /// Requests that wait for memory, oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = ExchangeId> {
        self.waiting.iter().copied()
    }

    /// A request no longer waits.
    pub fn goes_on(&mut self, request: ExchangeId) {
        self.waiting.remove(&request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 4 << 20;

    fn peer(number: u8) -> NodeId {
        NodeId([number; 16])
    }

    #[test]
    fn who_holds_the_most_gives_back_until_all_have_the_same() {
        let mut budget = Budget::new(MAX * SHARE);
        const REQUEST: u64 = 32 << 10;
        let mut held: BTreeMap<NodeId, Vec<ExchangeId>> = BTreeMap::new();
        let mut asked = 0;
        // Each peer asks for all it can have, one after another.
        for number in 0..64 {
            let peer = peer(number);
            loop {
                if budget.free() < REQUEST {
                    let Some(most) = budget.who_gives_back(peer, REQUEST) else { break };
                    let last = held.get_mut(&most).and_then(Vec::pop);
                    budget.end(last.expect("it holds the most"));
                }
                asked += 1;
                budget.charge(ExchangeId(asked), peer, REQUEST);
                held.entry(peer).or_default().push(ExchangeId(asked));
                assert!(budget.used() <= MAX);
            }
        }
        assert!(held.values().all(|requests| requests.len() == 2), "{held:?}");
        held.into_values().flatten().for_each(|request| budget.end(request));
        assert_eq!((budget.used(), budget.peers.len(), budget.charges.len()), (0, 0, 0));
    }

    #[test]
    fn a_peer_gives_nothing_back_if_the_asking_one_would_then_hold_as_much() {
        let mut budget = Budget::new(MAX * SHARE);
        budget.charge(ExchangeId(1), peer(1), 300);
        budget.charge(ExchangeId(2), peer(2), 100);
        assert_eq!(budget.who_gives_back(peer(2), 199), Some(peer(1)));
        assert_eq!(budget.who_gives_back(peer(2), 200), None, "both would hold the same");
        assert_eq!(budget.who_gives_back(peer(3), 299), Some(peer(1)));
        assert_eq!(budget.who_gives_back(peer(3), 300), None);
        assert_eq!(budget.who_gives_back(peer(1), 1), None, "it holds the most itself");
    }

    #[test]
    fn the_account_is_a_quarter_of_the_nodes_memory() {
        let mut budget = Budget::new(4000);
        assert_eq!(budget.free(), 1000);
        budget.charge(ExchangeId(1), peer(1), 999);
        assert_eq!((budget.free(), budget.used()), (1, 999));
        // A request that has begun may take more than there is.
        budget.charge(ExchangeId(1), peer(1), 1001);
        assert_eq!(budget.free(), 0);
    }

    #[test]
    fn a_peer_holds_alone_until_another_is_charged() {
        let mut budget = Budget::new(MAX * SHARE);
        assert!(budget.holds_alone(peer(1)), "no peer holds memory");
        budget.charge(ExchangeId(1), peer(1), 100);
        assert!(budget.holds_alone(peer(1)) && !budget.holds_alone(peer(2)));
        budget.charge(ExchangeId(2), peer(2), 100);
        assert!(!budget.holds_alone(peer(1)));
        budget.end(ExchangeId(2));
        assert!(budget.holds_alone(peer(1)));
    }

    #[test]
    fn requests_wait_for_memory_in_the_order_in_which_they_came() {
        let mut budget = Budget::new(MAX * SHARE);
        [5, 2, 9].into_iter().for_each(|number| budget.wait(ExchangeId(number)));
        assert_eq!(budget.waiting().collect::<Vec<_>>(), [2, 5, 9].map(ExchangeId));
        budget.goes_on(ExchangeId(5));
        budget.end(ExchangeId(2));
        assert_eq!(budget.waiting().collect::<Vec<_>>(), [ExchangeId(9)]);
        assert!(!budget.has_more(), "none of them had been charged");
    }

    #[test]
    fn a_charge_replaces_the_one_before() {
        let mut budget = Budget::new(MAX * SHARE);
        for bytes in [100, 5000, 0, 70] {
            budget.charge(ExchangeId(1), peer(1), bytes);
            assert_eq!((budget.used(), budget.peers.get(&peer(1))), (bytes, Some(&bytes)));
        }
        budget.wait(ExchangeId(1));
        budget.was_looked_at();
        budget.charge(ExchangeId(1), peer(1), 71);
        assert!(!budget.has_more(), "it has taken more");
        budget.charge(ExchangeId(1), peer(1), 70);
        assert!(budget.has_more());
        budget.was_looked_at();
        budget.charge(ExchangeId(1), peer(1), 70);
        assert!(!budget.has_more(), "it takes the same");
        budget.end(ExchangeId(1));
        assert!(budget.has_more());
        budget.was_looked_at();
        budget.end(ExchangeId(1));
        assert!(!budget.has_more(), "there was nothing to give back");
        assert_eq!((budget.used(), budget.waiting().count()), (0, 0));
    }
}
