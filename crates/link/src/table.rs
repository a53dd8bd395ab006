//! A bounded table with the order in which its rows were used. Rows stay where they are, so that a [`Key`]
//! finds its row without hashing, and no longer finds it once it was removed.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use wire::Mix;

/// No row.
const NONE: u32 = u32::MAX;

/// Where a row is: its slot, and how often the slot had been given to a row before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    slot: u32,
    life: u32,
}

impl Key {
    /// The slot's number, below the table's size: rows that come later may have it again.
    pub(crate) fn slot(self) -> usize {
        self.slot as usize
    }
}

/// What names a row. Each packet looks some up, so they are hashed in few steps.
pub(crate) trait Name: Copy + Eq {
    /// Adds the name to a hash.
    fn mix(&self, hash: &mut impl Hasher);
}

impl Name for IpAddr {
    fn mix(&self, hash: &mut impl Hasher) {
        match self {
            Self::V4(ip) => hash.write_u32(ip.to_bits()),
            Self::V6(ip) => {
                hash.write_u64((ip.to_bits() >> 64) as u64);
                hash.write_u64(ip.to_bits() as u64);
            }
        }
    }
}

impl Name for (SocketAddr, SocketAddr) {
    fn mix(&self, hash: &mut impl Hasher) {
        self.0.ip().mix(hash);
        self.1.ip().mix(hash);
        hash.write_u32(u32::from(self.0.port()) << 16 | u32::from(self.1.port()));
    }
}

/// A name as the key of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named<K>(K);

impl<K: Name> Hash for Named<K> {
    fn hash<H: Hasher>(&self, hash: &mut H) {
        self.0.mix(hash);
    }
}

/// Rows by name. Those used longest ago go first.
#[derive(Debug)]
pub(crate) struct Table<K, V> {
    slots: HashMap<Named<K>, u32, Seed>,
    rows: Vec<Row<K, V>>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    rows_max: usize,
}

#[derive(Debug)]
struct Row<K, V> {
    /// `None`: the slot is free.
    held: Option<(K, V)>,
    life: u32,
    /// The row that was used before it, and the one that was used after it.
    older: u32,
    newer: u32,
}

impl<K: Name, V> Table<K, V> {
    /// An empty table for this many rows. Names come from strangers, so their hashes are seeded.
    pub(crate) fn new(rows_max: usize, seed: u64) -> Self {
        Self {
            slots: HashMap::with_hasher(Seed(seed)),
            rows: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            rows_max: rows_max.clamp(1, NONE as usize),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.rows_max
    }

    pub(crate) fn find(&self, name: &K) -> Option<Key> {
        let slot = *self.slots.get(&Named(*name))?;
        Some(Key { slot, life: self.rows[slot as usize].life })
    }

    /// The key of the row that has a slot now.
    pub(crate) fn at(&self, slot: usize) -> Option<Key> {
        let row = self.rows.get(slot).filter(|row| row.held.is_some())?;
        Some(Key { slot: slot as u32, life: row.life })
    }

    pub(crate) fn name(&self, key: Key) -> Option<K> {
        let row = self.rows.get(key.slot()).filter(|row| row.life == key.life)?;
        row.held.as_ref().map(|(name, _)| *name)
    }

    pub(crate) fn get(&self, key: Key) -> Option<&V> {
        let row = self.rows.get(key.slot()).filter(|row| row.life == key.life)?;
        row.held.as_ref().map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut V> {
        let row = self.rows.get_mut(key.slot()).filter(|row| row.life == key.life)?;
        row.held.as_mut().map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &K, &V)> {
        self.rows.iter().zip(0..).filter_map(|(row, slot)| {
            let (name, value) = row.held.as_ref()?;
            Some((Key { slot, life: row.life }, name, value))
        })
    }

    /// The row used longest ago.
    pub(crate) fn oldest(&self) -> Option<Key> {
        self.at(self.oldest as usize)
    }

    /// All rows, those used longest ago first.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = (Key, &V)> {
        let row = |slot: u32| self.rows.get(slot as usize);
        let slots = std::iter::successors(Some(self.oldest), move |slot| Some(row(*slot)?.newer));
        slots.map_while(|slot| {
            let key = self.at(slot as usize)?;
            Some((key, self.get(key)?))
        })
    }

    /// Says that a row is used now.
    pub(crate) fn touch(&mut self, key: Key) {
        if key.slot != self.newest && self.get(key).is_some() {
            self.unlink(key.slot);
            self.link(key.slot);
        }
    }

    /// Adds a row whose name is not in the table yet. If the table is full, the oldest row goes.
    pub(crate) fn insert(&mut self, name: K, value: V) -> Key {
        if let Some(oldest) = self.oldest().filter(|_| self.is_full()) {
            self.remove(oldest);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.rows.push(Row { held: None, life: 0, older: NONE, newer: NONE });
            (self.rows.len() - 1) as u32
        });
        self.slots.insert(Named(name), slot);
        let row = &mut self.rows[slot as usize];
        row.held = Some((name, value));
        row.life = row.life.wrapping_add(1);
        let life = row.life;
        self.link(slot);
        Key { slot, life }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<V> {
        self.get(key)?;
        self.unlink(key.slot);
        let (name, value) = self.rows[key.slot()].held.take()?;
        self.slots.remove(&Named(name));
        self.free.push(key.slot);
        Some(value)
    }

    /// Makes a row the newest.
    fn link(&mut self, slot: u32) {
        let before = std::mem::replace(&mut self.newest, slot);
        let row = &mut self.rows[slot as usize];
        (row.older, row.newer) = (before, NONE);
        match self.rows.get_mut(before as usize) {
            Some(row) => row.newer = slot,
            None => self.oldest = slot,
        }
    }

    fn unlink(&mut self, slot: u32) {
        let (older, newer) = (self.rows[slot as usize].older, self.rows[slot as usize].newer);
        match self.rows.get_mut(older as usize) {
            Some(row) => row.newer = newer,
            None => self.oldest = newer,
        }
        match self.rows.get_mut(newer as usize) {
            Some(row) => row.older = older,
            None => self.newest = older,
        }
    }
}

/// Begins hashes: who does not know it cannot choose names that collide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(pub(super) u64);

impl BuildHasher for Seed {
    type Hasher = Mix;

    fn build_hasher(&self) -> Mix {
        Mix::seeded(self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Name for u16 {
        fn mix(&self, hash: &mut impl Hasher) {
            hash.write_u16(*self);
        }
    }

    proptest! {
        /// Beside a plain list, in the order of use.
        #[test]
        fn the_table_is_a_list_in_the_order_of_use(
            steps in prop::collection::vec((0_u8..3, 0_u16..12), 0..200),
        ) {
            let mut table = Table::new(5, 7);
            let mut plain: Vec<(u16, Key)> = Vec::new();
            let mut gone = Vec::new();
            for (step, name) in steps {
                let position = plain.iter().position(|(it, _)| *it == name);
                prop_assert_eq!(table.find(&name), position.map(|at| plain[at].1));
                match (step, position) {
                    (0, None) => {
                        if plain.len() == 5 {
                            gone.push(plain.remove(0).1);
                        }
                        plain.push((name, table.insert(name, name)));
                    }
                    (1, Some(at)) => {
                        let row = plain.remove(at);
                        plain.push(row);
                        table.touch(row.1);
                    }
                    (2, Some(at)) => {
                        let (_, key) = plain.remove(at);
                        prop_assert_eq!(table.remove(key), Some(name));
                        gone.push(key);
                    }
                    _ => {}
                }
                prop_assert_eq!(table.len(), plain.len());
                prop_assert_eq!(table.oldest(), plain.first().map(|(_, key)| *key));
                let by_age: Vec<_> = table.by_age().map(|(key, name)| (*name, key)).collect();
                prop_assert_eq!(&by_age, &plain);
                for (name, key) in &plain {
                    prop_assert_eq!(table.get(*key), Some(name));
                }
                for key in &gone {
                    prop_assert_eq!(table.get(*key), None);
                }
            }
        }
    }
}
