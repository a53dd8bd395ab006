//! Units that arrived before a reader requested them: the first units of a small object may overtake its
//! manifest, which arrives on another connection.
//!
//! *Who calls it:* the node, with whole units that match their names. *Bounds:* the memory that it was
//! given. It includes the overhead of each unit, so that many short units cannot exceed it. The oldest
//! is dropped first.

use crate::hasher::Map;
use bytes::Bytes;
use std::collections::BTreeMap;
use wire::ChunkId;

/// The memory that a unit needs beside its bytes: two table entries and an allocation.
const ENTRY_COST: u64 = 256;

/// The unsolicited units; see the module.
#[derive(Debug, Default)]
pub struct Unsolicited {
    units: Map<ChunkId, (u64, Bytes)>,
    /// Their names, in the order of arrival.
    order: BTreeMap<u64, ChunkId>,
    came: u64,
    /// The memory that they use, in bytes.
    pub bytes: u64,
    bytes_max: u64,
    /// How many units were dropped before they were requested.
    pub dropped: u64,
}

impl Unsolicited {
    /// No units yet, and this much memory for them.
    pub fn new(bytes_max: u64) -> Self {
        Self { bytes_max, ..Self::default() }
    }

    /// Keeps a unit.
    pub fn keep(&mut self, name: ChunkId, bytes: Bytes) {
        if self.units.contains_key(&name) {
            return;
        }
        self.came += 1;
        self.bytes += cost(&bytes);
        self.order.insert(self.came, name);
        self.units.insert(name, (self.came, bytes));
        while self.bytes > self.bytes_max
            && let Some((_, oldest)) = self.order.first_key_value()
        {
            let oldest = *oldest;
            self.take(&oldest);
            self.dropped += 1;
        }
    }

    /// Removes and returns a unit that is requested now.
    pub fn take(&mut self, name: &ChunkId) -> Option<Bytes> {
        let (place, bytes) = self.units.remove(name)?;
        self.order.remove(&place);
        self.bytes -= cost(&bytes);
        Some(bytes)
    }
}

fn cost(bytes: &Bytes) -> u64 {
    bytes.len() as u64 + ENTRY_COST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_short_early_units_are_their_memory_is_bounded() {
        let mut unsolicited = Unsolicited::new(64 << 10);
        let name = |number: u32| content::name(&number.to_be_bytes());
        for number in 0..10_000_u32 {
            unsolicited.keep(name(number), number.to_be_bytes().to_vec().into());
        }
        assert!(unsolicited.bytes <= 64 << 10);
        let kept = 10_000 - unsolicited.dropped;
        assert!((100..600).contains(&kept), "{kept}");
        // The latest units are kept, and each is returned once.
        let first = (10_000 - kept) as u32;
        assert_eq!(unsolicited.take(&name(first - 1)), None);
        for number in first..10_000 {
            let came = unsolicited.take(&name(number));
            assert_eq!(came.as_deref(), Some(&number.to_be_bytes()[..]));
            assert_eq!(unsolicited.take(&name(number)), None);
        }
        assert_eq!((unsolicited.bytes, unsolicited.units.len() + unsolicited.order.len()), (0, 0));
    }

    #[test]
    fn units_that_just_fit_are_kept_and_the_oldest_makes_room() {
        let name = |number: u8| content::name(&[number]);
        let mut unsolicited = Unsolicited::new(2 * (4 + ENTRY_COST));
        (1..=2).for_each(|number| unsolicited.keep(name(number), vec![number; 4].into()));
        // It came before the second, and does not become younger.
        unsolicited.keep(name(1), vec![1; 4].into());
        assert_eq!((unsolicited.units.len(), unsolicited.dropped), (2, 0));
        unsolicited.keep(name(3), vec![3].into());
        assert_eq!(unsolicited.take(&name(1)), None);
        assert!(unsolicited.take(&name(2)).is_some() && unsolicited.take(&name(3)).is_some());
        assert_eq!(unsolicited.dropped, 1);
        // One that is larger than all of the memory is not kept at all.
        unsolicited.keep(name(4), vec![4; 1000].into());
        assert_eq!((unsolicited.take(&name(4)), unsolicited.bytes), (None, 0));
    }
}
