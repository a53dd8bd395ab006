//! A table of digests that forgets the oldest.

use hashbrown::HashTable;

/// The first bytes of the BLAKE3 hash of an index's identity and a path.
pub(super) type Key = [u8; 12];

/// Digests of `N` bytes by keys, up to a number. The one that was added first is forgotten first.
#[derive(Debug)]
pub(super) struct Ring<const N: usize> {
    max: usize,
    /// A ring, once it is full. What was removed stays here until its place is needed.
    entries: Vec<(Key, [u8; N])>,
    /// Where the oldest entry is.
    oldest: usize,
    places: HashTable<u32>,
    forgotten: u64,
}

impl<const N: usize> Ring<N> {
    /// An empty table for this many digests, fewer than 2³².
    pub(super) fn new(max: usize) -> Self {
        Self { max, entries: Vec::new(), oldest: 0, places: HashTable::new(), forgotten: 0 }
    }

    /// How many digests it has.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// How many were forgotten for want of room.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The digest of a key.
    pub(super) fn get(&self, key: Key) -> Option<[u8; N]> {
        self.place(key).map(|place| self.entries[place].1)
    }

    /// Sets the digest of a key.
    pub(super) fn put(&mut self, key: Key, digest: [u8; N]) {
        if let Some(place) = self.place(key) {
            self.entries[place].1 = digest;
            return;
        }
        let place = if self.entries.len() < self.max {
            self.entries.push((key, digest));
            self.entries.len() - 1
        } else {
            let place = self.oldest;
            self.oldest = (place + 1) % self.max;
            let (old, _) = std::mem::replace(&mut self.entries[place], (key, digest));
            if let Ok(found) = self.places.find_entry(hash(old), |it| *it as usize == place) {
                found.remove();
                self.forgotten += 1;
            }
            place
        };
        let entries = &self.entries;
        let rehash = |it: &u32| hash(entries[*it as usize].0);
        self.places.insert_unique(hash(key), place as u32, rehash);
    }

    /// Removes the digest of a key, if there is one.
    pub(super) fn remove(&mut self, key: Key) {
        let is_it = |it: &u32| self.entries[*it as usize].0 == key;
        if let Ok(found) = self.places.find_entry(hash(key), is_it) {
            found.remove();
        }
    }

    fn place(&self, key: Key) -> Option<usize> {
        let is_it = |it: &u32| self.entries[*it as usize].0 == key;
        self.places.find(hash(key), is_it).map(|it| *it as usize)
    }
}

fn hash(key: Key) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = key;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_is_gone_and_counts_as_nothing_forgotten() {
        let mut ring = Ring::<4>::new(3);
        let key = |number: u8| [number; 12];
        (1..=3).for_each(|it| ring.put(key(it), [it; 4]));
        ring.remove(key(1));
        ring.remove(key(9));
        assert_eq!((ring.len(), ring.get(key(1)), ring.get(key(2))), (2, None, Some([2; 4])));
        ring.put(key(1), [7; 4]);
        assert_eq!((ring.len(), ring.forgotten(), ring.get(key(1))), (3, 0, Some([7; 4])));
        ring.put(key(4), [4; 4]);
        assert_eq!((ring.len(), ring.forgotten(), ring.get(key(2))), (3, 1, None));
    }
}
