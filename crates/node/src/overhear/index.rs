//! The index of a table: from a key's hash to its slot, packed so closely that it stays in a cache near the
//! processor. The keys and their values do not fit there.
//!
//! *Who calls it:* `table.rs`. *What it never does:* grow, or slow down after removals: a removal shifts the entries
//! behind it back and leaves no tombstone. The map of the standard library leaves tombstones in some places. If there
//! are too many, it may double its memory, though it holds no more entries than before.

/// Linear probing, at most half full.
#[derive(Debug)]
pub struct Index {
    /// A power of two.
    buckets: Vec<Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The upper half of the hash. Its lower bits are the index of the home bucket, where probing begins.
    tag: u32,
    /// [`NONE`] if it is free.
    slot: u32,
}

/// No slot.
pub const NONE: u32 = u32::MAX;
const FREE: Bucket = Bucket { tag: 0, slot: NONE };

impl Index {
    /// An index for at most this many slots.
    pub fn new(slots_max: usize) -> Self {
        Self { buckets: vec![FREE; Self::buckets(slots_max)] }
    }

    /// The memory of an index for this many slots, in bytes.
    pub const fn cost(slots_max: usize) -> usize {
        Self::buckets(slots_max) * size_of::<Bucket>()
    }

    const fn buckets(slots_max: usize) -> usize {
        (2 * slots_max).next_power_of_two()
    }

    /// The slot with this hash for which `is_it` returns true.
    pub fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = tag(hash);
        let mut at = self.home(tag);
        loop {
            let bucket = self.bucket(at);
            if bucket.slot == NONE {
                return None;
            }
            if bucket.tag == tag && is_it(bucket.slot) {
                return Some(bucket.slot);
            }
            at = self.next(at);
        }
    }

    /// Adds a slot that is not there.
    pub fn insert(&mut self, hash: u64, slot: u32) {
        let tag = tag(hash);
        let mut at = self.home(tag);
        while self.bucket(at).slot != NONE {
            at = self.next(at);
        }
        self.put(at, Bucket { tag, slot });
    }

    /// Removes a slot, which must be present. Backward-shift deletion: the entries behind it move back, as if it had
    /// never been inserted.
    pub fn remove(&mut self, hash: u64, slot: u32) {
        let mut hole = self.home(tag(hash));
        while self.bucket(hole).slot != slot {
            if self.bucket(hole).slot == NONE {
                return;
            }
            hole = self.next(hole);
        }
        let mut at = self.next(hole);
        while self.bucket(at).slot != NONE {
            let bucket = self.bucket(at);
            // An entry must not move to a bucket before its home, where probing would not find it.
            if self.distance(self.home(bucket.tag), at) >= self.distance(hole, at) {
                self.put(hole, bucket);
                hole = at;
            }
            at = self.next(at);
        }
        self.put(hole, FREE);
    }

    fn home(&self, tag: u32) -> usize {
        tag as usize & (self.buckets.len() - 1)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.buckets.len() - 1)
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.buckets.len() - 1)
    }

    fn bucket(&self, at: usize) -> Bucket {
        self.buckets.get(at).copied().unwrap_or(FREE)
    }

    fn put(&mut self, at: usize, bucket: Bucket) {
        if let Some(place) = self.buckets.get_mut(at) {
            *place = bucket;
        }
    }
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const SLOTS: u32 = 8;

    proptest! {
        #[test]
        fn what_is_there_is_found_and_nothing_else(
            // Few hashes. The home of most is one of the last buckets, so that probing wraps around.
            steps in vec((0..SLOTS, 12..18_u64), 0..200),
        ) {
            let (mut index, mut model) = (Index::new(SLOTS as usize), BTreeMap::new());
            for (slot, tag) in steps {
                match model.remove(&slot) {
                    Some(hash) => index.remove(hash, slot),
                    None => {
                        index.insert(tag << 32, slot);
                        model.insert(slot, tag << 32);
                    }
                }
                for tag in 0..20 {
                    for slot in 0..SLOTS {
                        let there = model.get(&slot) == Some(&(tag << 32));
                        let found = index.find(tag << 32, |it| it == slot);
                        prop_assert_eq!(found, there.then_some(slot));
                    }
                }
            }
        }
    }
}
