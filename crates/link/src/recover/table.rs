//! The flows of a router, and the memory that they share. The least recently used flow gives way.

use super::flow::{Flow, Key};
use crate::table;

/// Flows by number, and by their ends.
#[derive(Debug)]
pub(super) struct Table<P> {
    /// Which flow has which number, in the order of their use.
    names: table::Table<Key, ()>,
    flows: Vec<Flow<P>>,
    flows_max: usize,
    /// What the caches hold, as far as was counted.
    bytes: u64,
}

impl<P> Table<P> {
    /// A table for this many flows, at least two.
    pub(super) fn new(flows_max: usize, seed: u64) -> Self {
        let flows_max = flows_max.max(2);
        Self { names: table::Table::new(flows_max, seed), flows: Vec::new(), flows_max, bytes: 0 }
    }

    /// How many flows there may be.
    pub(super) fn flows_max(&self) -> usize {
        self.flows_max
    }

    /// How many flows there are.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The number of a flow that is known.
    pub(super) fn find(&self, key: Key) -> Option<usize> {
        self.names.find(&key).map(table::Key::slot)
    }

    /// The same, and the flow counts as used now.
    pub(super) fn touch(&mut self, key: Key) -> Option<usize> {
        let name = self.names.find(&key)?;
        self.names.touch(name);
        Some(name.slot())
    }

    /// The number of a new flow. It takes the place of the one not used for longest if the table is full;
    /// `leave` is called with that one before, and must empty its cache.
    pub(super) fn add(&mut self, key: Key, leave: impl FnOnce(usize, &mut Flow<P>)) -> usize {
        if let Some(oldest) = self.names.oldest().filter(|_| self.names.is_full()) {
            let slot = oldest.slot();
            leave(slot, &mut self.flows[slot]);
            self.count(slot);
            self.names.remove(oldest);
        }
        let slot = self.names.insert(key, ()).slot();
        match self.flows.get_mut(slot) {
            Some(flow) => flow.begin(key),
            None => self.flows.push(Flow::new(key)),
        }
        slot
    }

    /// A flow.
    pub(super) fn flow(&mut self, slot: usize) -> &mut Flow<P> {
        &mut self.flows[slot]
    }

    /// A flow, to look at.
    pub(super) fn get(&self, slot: usize) -> &Flow<P> {
        &self.flows[slot]
    }

    /// Counts what a flow's cache holds, after it has changed.
    pub(super) fn count(&mut self, slot: usize) {
        let flow = &mut self.flows[slot];
        let before = std::mem::replace(&mut flow.counted, flow.cache.bytes());
        self.bytes = self.bytes - u64::from(before) + u64::from(flow.counted);
    }

    /// How many bytes all flows have cached, as they were counted.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The flow that has most bytes cached; `more` are counted for `slot` in addition.
    pub(super) fn largest(&self, slot: usize, more: u32) -> usize {
        let share = |it: &usize| {
            u64::from(self.flows[*it].cache.bytes()) + if *it == slot { u64::from(more) } else { 0 }
        };
        (0..self.flows.len()).max_by_key(share).unwrap_or(slot)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn key(number: u16) -> Key {
        ((Ipv4Addr::LOCALHOST, number).into(), (Ipv4Addr::LOCALHOST, 80).into())
    }

    #[test]
    fn the_flow_not_used_for_longest_gives_way() {
        let mut table = Table::<()>::new(3, 0);
        let slots = [1, 2, 3].map(|number| table.add(key(number), |_, _| panic!("there is room")));
        assert_eq!(
            (table.len(), table.touch(key(1)), table.touch(key(9))),
            (3, Some(slots[0]), None)
        );
        let mut left = None;
        let slot = table.add(key(4), |slot, flow| left = Some((slot, flow.key)));
        assert_eq!((left, slot, table.len()), (Some((slots[1], key(2))), slots[1], 3));
        assert_eq!(
            [1, 2, 3, 4].map(|number| table.find(key(number)).is_some()),
            [true, false, true, true]
        );
        assert_eq!(table.get(slot).key, key(4));
    }

    #[test]
    fn there_is_room_for_both_directions_of_a_connection() {
        assert_eq!([0, 1, 2, 3].map(|most| Table::<()>::new(most, 0).flows_max()), [2, 2, 2, 3]);
    }
}
