//! R's index: where each chunk rests that is stored, and its fingerprint (Wanax §3.2, §5).

use super::ChunkName;
use crate::hasher::Map;
use std::collections::VecDeque;

/// Where a chunk rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The position in the log of the write that it belongs to …
    pub position: u64,
    /// … and how many bytes of that are before it: none, unless it is a part of a root.
    pub skipped: u32,
    /// Its length.
    pub length: u32,
    /// The rolling hash at its end.
    pub fingerprint: u64,
}

/// The index. What the log overwrites leaves it; so do the oldest entries beyond its bound.
pub struct Index {
    places: Map<ChunkName, Place>,
    /// Names in the order of their positions.
    order: VecDeque<(u64, ChunkName)>,
    entries_max: usize,
}

impl Index {
    /// An empty index of at most this many entries.
    pub fn new(entries_max: usize) -> Self {
        Self { places: Map::default(), order: VecDeque::new(), entries_max }
    }

    /// Where a chunk rests.
    pub fn place(&self, name: &ChunkName) -> Option<Place> {
        self.places.get(name).copied()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// A chunk was stored, which is not in the index. Positions ascend from call to call.
    pub fn add(&mut self, name: ChunkName, place: Place) {
        self.places.insert(name, place);
        self.order.push_back((place.position, name));
        while self.order.len() > self.entries_max {
            self.drop_oldest();
        }
    }

    /// Forgets a chunk, which cannot be read.
    pub fn forget(&mut self, name: &ChunkName) {
        self.places.remove(name);
    }

    /// Forgets what was written before this position: all parts of a root with it.
    pub fn evict(&mut self, first: u64) {
        while self.order.front().is_some_and(|(position, _)| *position < first) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some((position, name)) = self.order.pop_front() else { return };
        // It may have been forgotten and stored again since.
        if self.places.get(&name).is_some_and(|place| place.position == position) {
            self.places.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(position: u64) -> Place {
        Place { position, skipped: 0, length: 10, fingerprint: 0 }
    }

    #[test]
    fn what_is_overwritten_is_not_in_the_index() {
        let mut index = Index::new(100);
        (0..10).for_each(|number| index.add([number; 20], place(10 * u64::from(number))));
        index.evict(35);
        let held: Vec<_> = (0..10).filter(|it| index.place(&[*it; 20]).is_some()).collect();
        assert_eq!(held, [4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn what_was_stored_again_stays_when_its_old_place_goes() {
        let mut index = Index::new(100);
        index.add([1; 20], place(0));
        index.forget(&[1; 20]);
        index.add([1; 20], place(50));
        index.evict(20);
        assert_eq!(index.place(&[1; 20]), Some(place(50)));
    }

    #[test]
    fn the_oldest_go_beyond_the_bound() {
        let mut index = Index::new(3);
        (0..10).for_each(|number| index.add([number; 20], place(u64::from(number))));
        assert_eq!((index.len(), index.order.len()), (3, 3));
        assert!(index.place(&[9; 20]).is_some() && index.place(&[6; 20]).is_none());
    }
}
