//! The flows of a router, and the memory that they share. The least recently used flow gives way.

use std::collections::BTreeMap;

use super::flow::{Flow, Key};

/// Flows by number, and by their ends.
#[derive(Debug)]
pub(super) struct Table<P> {
    by_key: BTreeMap<Key, usize>,
    flows: Vec<Flow<P>>,
    flows_max: usize,
    uses: u64,
}

impl<P> Table<P> {
    /// A table for this many flows, at least two.
    pub(super) fn new(flows_max: usize) -> Self {
        Self { by_key: BTreeMap::new(), flows: Vec::new(), flows_max: flows_max.max(2), uses: 0 }
    }

    /// How many flows there may be.
    pub(super) fn flows_max(&self) -> usize {
        self.flows_max
    }

    /// How many flows there are.
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// The number of a flow that is known.
    pub(super) fn find(&self, key: Key) -> Option<usize> {
        self.by_key.get(&key).copied()
    }

    /// The number of a new flow. It takes the place of the one not used for longest if the table is full;
    /// `leave` is called with that one before.
    pub(super) fn add(&mut self, key: Key, leave: impl FnOnce(usize, &mut Flow<P>)) -> usize {
        let slot = if self.flows.len() < self.flows_max {
            self.flows.push(Flow::new(key));
            self.flows.len() - 1
        } else {
            let oldest = (0..self.flows.len()).min_by_key(|slot| self.flows[*slot].used);
            let slot = oldest.unwrap_or(0);
            let flow = &mut self.flows[slot];
            self.by_key.remove(&flow.key);
            leave(slot, flow);
            flow.begin(key);
            slot
        };
        self.by_key.insert(key, slot);
        self.touch(slot);
        slot
    }

    /// Marks a flow as used now.
    pub(super) fn touch(&mut self, slot: usize) {
        self.uses += 1;
        self.flows[slot].used = self.uses;
    }

    /// A flow.
    pub(super) fn flow(&mut self, slot: usize) -> &mut Flow<P> {
        &mut self.flows[slot]
    }

    /// A flow, to look at.
    pub(super) fn get(&self, slot: usize) -> &Flow<P> {
        &self.flows[slot]
    }

    /// How many bytes all flows have cached.
    pub(super) fn bytes(&self) -> u64 {
        self.flows.iter().map(|it| u64::from(it.cache.bytes())).sum()
    }

    /// The flow that has most bytes cached; `more` are counted for `slot` in addition.
    pub(super) fn largest(&self, slot: usize, more: u32) -> usize {
        let share = |it: &usize| {
            u64::from(self.flows[*it].cache.bytes()) + if *it == slot { u64::from(more) } else { 0 }
        };
        (0..self.flows.len()).max_by_key(share).unwrap_or(slot)
    }
}
