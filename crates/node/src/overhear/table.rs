//! A bounded table whose entries have ranks. Within a rank, entries are in the order of their last use, so the next
//! entry to evict is found at once.
//!
//! *Who calls it:* the tables of flows, chunks and names. *What it never does:* grow. It allocates all of its own
//! memory when it is created, so its cost is known.

use super::index::{Index, NONE};
use super::keyed::Keyed;
use std::hash::Hash;
use std::time::Duration;
use wire::Instant;

/// The handle of an entry. It stays invalid after the entry is removed, even if its slot is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    slot: u32,
    generation: u32,
}

/// An entry that has moved to the end of its rank does not move again within this time. Access to its neighbours in
/// the list costs more than all other work, and the order among recently used entries does not matter.
const GRAIN: Duration = Duration::from_millis(10);

/// The table. Rank 0 is the lowest.
#[derive(Debug)]
pub struct Table<K, V, const RANKS: usize> {
    index: Index,
    keyed: Keyed,
    len: usize,
    slots: Vec<Slot<K, V>>,
    /// For each slot, its links in the list of its rank. They are stored apart from the slots: neighbours in the list
    /// are far apart in memory, and more links than slots fit into a cache.
    links: Vec<Link>,
    free: u32,
    ranks: [Ends; RANKS],
}

/// The least and the most recently used entry of a rank.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct Slot<K, V> {
    key: K,
    value: Option<V>,
    generation: u32,
}

#[derive(Debug)]
struct Link {
    rank: usize,
    previous: u32,
    /// The next more recently used entry of the rank; for a free slot, the next free slot.
    next: u32,
    touched: Instant,
    /// When the entry was last moved to the end of its rank.
    placed: Instant,
}

impl<K: Eq + Hash, V, const RANKS: usize> Table<K, V, RANKS> {
    /// An empty table for this many entries.
    pub fn new(entries_max: usize, seed: &[u8; 32]) -> Self {
        Self {
            index: Index::new(entries_max),
            keyed: Keyed::new(seed),
            len: 0,
            slots: Vec::with_capacity(entries_max),
            links: Vec::with_capacity(entries_max),
            free: NONE,
            ranks: [Ends { first: NONE, last: NONE }; RANKS],
        }
    }

    /// The memory of a table for this many entries, in bytes; it does not depend on the content.
    pub const fn cost(entries_max: usize) -> usize {
        let entry = size_of::<Slot<K, V>>() + size_of::<Link>();
        entries_max * entry + Index::cost(entries_max)
    }

    /// All entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.slots.iter().filter_map(|slot| Some((&slot.key, slot.value.as_ref()?)))
    }

    /// The entries for which `is_it` returns true.
    pub fn ids(&self, is_it: impl Fn(&V) -> bool) -> Vec<Id> {
        let all = (0..).zip(&self.slots);
        let found = all.filter(|(_, slot)| slot.value.as_ref().is_some_and(&is_it));
        found.map(|(at, slot)| Id { slot: at, generation: slot.generation }).collect()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether an entry must be removed before another can be inserted.
    pub fn is_full(&self) -> bool {
        self.len >= self.slots.capacity()
    }

    /// The entry with this key.
    pub fn find(&self, key: &K) -> Option<Id> {
        let is_it = |slot| self.slots.get(slot as usize).is_some_and(|it| it.key == *key);
        self.id(self.index.find(self.keyed.hash(key), is_it)?)
    }

    /// The value of an entry, if it is still present.
    pub fn get(&self, id: Id) -> Option<&V> {
        let slot = self.slots.get(id.slot as usize)?;
        slot.value.as_ref().filter(|_| slot.generation == id.generation)
    }

    /// The value of an entry, to be changed.
    pub fn get_mut(&mut self, id: Id) -> Option<&mut V> {
        let slot = self.slots.get_mut(id.slot as usize)?;
        slot.value.as_mut().filter(|_| slot.generation == id.generation)
    }

    /// When an entry was last used.
    pub fn touched(&self, id: Id) -> Option<Instant> {
        self.get(id)?;
        Some(self.links.get(id.slot as usize)?.touched)
    }

    /// Adds an entry whose key is not in the table; `None` if the table is full.
    pub fn insert(&mut self, now: Instant, key: K, value: V, rank: usize) -> Option<Id> {
        if self.is_full() {
            return None;
        }
        let hash = self.keyed.hash(&key);
        let link = Link { rank, previous: NONE, next: NONE, touched: now, placed: now };
        let slot = if self.free == NONE {
            self.slots.push(Slot { key, value: Some(value), generation: 0 });
            self.links.push(link);
            self.slots.len() as u32 - 1
        } else {
            let at = self.free;
            let place = self.links.get_mut(at as usize)?;
            self.free = std::mem::replace(place, link).next;
            let slot = self.slots.get_mut(at as usize)?;
            (slot.key, slot.value) = (key, Some(value));
            at
        };
        self.link(slot);
        self.index.insert(hash, slot);
        self.len += 1;
        self.id(slot)
    }

    /// Removes an entry and returns its value.
    pub fn remove(&mut self, id: Id) -> Option<V> {
        self.get(id)?;
        self.unlink(id.slot);
        let free = std::mem::replace(&mut self.free, id.slot);
        self.links.get_mut(id.slot as usize)?.next = free;
        let slot = self.slots.get_mut(id.slot as usize)?;
        slot.generation = slot.generation.wrapping_add(1);
        self.index.remove(self.keyed.hash(&slot.key), id.slot);
        self.len -= 1;
        slot.value.take()
    }

    /// Notes that an entry was used: it becomes the most recently used of the given rank.
    pub fn touch(&mut self, now: Instant, id: Id, rank: usize) {
        if self.get(id).is_none() {
            return;
        }
        let Some(link) = self.links.get_mut(id.slot as usize) else { return };
        link.touched = now;
        if link.rank == rank && (link.next == NONE || now - link.placed < GRAIN) {
            return;
        }
        self.unlink(id.slot);
        if let Some(link) = self.links.get_mut(id.slot as usize) {
            (link.rank, link.placed) = (rank, now);
        }
        self.link(id.slot);
    }

    /// The entry to evict next: among the least recently used entries of all ranks, the one with the greatest product
    /// of its age and the weight of its rank.
    pub fn worst(&self, now: Instant, weights: &[u64; RANKS]) -> Option<Id> {
        let mut worst = None;
        for (ends, weight) in self.ranks.iter().zip(weights) {
            let Some(link) = self.links.get(ends.first as usize) else { continue };
            let age = (now - link.touched).as_nanos() + 1;
            let weighed = age * u128::from(*weight);
            if worst.is_none_or(|(heaviest, _)| weighed > heaviest) {
                worst = Some((weighed, ends.first));
            }
        }
        worst.and_then(|(_, slot)| self.id(slot))
    }

    /// When the next entry will have been idle for as long as its rank may.
    pub fn next_idle(&self, idle_max: &[Duration; RANKS]) -> Option<Instant> {
        let firsts = self.ranks.iter().zip(idle_max);
        firsts
            .filter_map(|(ends, idle)| Some(self.links.get(ends.first as usize)?.touched + *idle))
            .min()
    }

    /// An entry that has been idle for as long as its rank may.
    pub fn idle(&self, now: Instant, idle_max: &[Duration; RANKS]) -> Option<Id> {
        self.ranks.iter().zip(idle_max).find_map(|(ends, idle)| {
            let link = self.links.get(ends.first as usize)?;
            let is_idle = link.touched + *idle <= now;
            is_idle.then(|| self.id(ends.first))?
        })
    }

    /// The handle of the entry that is in a slot now.
    fn id(&self, slot: u32) -> Option<Id> {
        Some(Id { slot, generation: self.slots.get(slot as usize)?.generation })
    }

    fn link(&mut self, at: u32) {
        let Some(rank) = self.links.get(at as usize).map(|link| link.rank) else { return };
        let Some(ends) = self.ranks.get_mut(rank) else { return };
        let last = std::mem::replace(&mut ends.last, at);
        if last == NONE {
            ends.first = at;
        }
        if let Some(link) = self.links.get_mut(last as usize) {
            link.next = at;
        }
        if let Some(link) = self.links.get_mut(at as usize) {
            (link.previous, link.next) = (last, NONE);
        }
    }

    fn unlink(&mut self, at: u32) {
        let Some(link) = self.links.get(at as usize) else { return };
        let (previous, next, rank) = (link.previous, link.next, link.rank);
        if let Some(link) = self.links.get_mut(previous as usize) {
            link.next = next;
        }
        if let Some(link) = self.links.get_mut(next as usize) {
            link.previous = previous;
        }
        let Some(ends) = self.ranks.get_mut(rank) else { return };
        if previous == NONE {
            ends.first = next;
        }
        if next == NONE {
            ends.last = previous;
        }
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used)]
mod tests {
    use super::*;

    const SEED: [u8; 32] = [7; 32];

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn what_has_left_is_not_found_in_its_successor() {
        let mut table: Table<u32, &str, 1> = Table::new(1, &SEED);
        let first = table.insert(at(0), 1, "first", 0).expect("room");
        assert_eq!(table.insert(at(0), 2, "second", 0), None);
        assert_eq!(table.remove(first), Some("first"));
        let second = table.insert(at(0), 2, "second", 0).expect("room");
        assert_eq!(table.get(first), None);
        assert_eq!(table.remove(first), None);
        assert_eq!(table.get(second), Some(&"second"));
        assert_eq!((table.find(&1), table.find(&2)), (None, Some(second)));
    }

    #[test]
    fn the_oldest_leaves_first_and_ranks_weigh() {
        let mut table: Table<u32, (), 2> = Table::new(9, &SEED);
        let ids: Vec<_> =
            (0..4).map(|i| table.insert(at(10 * i), i as u32, (), i as usize / 2)).collect();
        let [a, b, c, _] = ids[..] else { panic!() };
        assert_eq!(table.worst(at(100), &[1, 1]), a);
        assert_eq!(table.worst(at(100), &[1, 2]), c);
        assert_eq!(table.worst(at(100), &[1, 0]), a);
        table.touch(at(101), a.unwrap(), 0);
        assert_eq!(table.worst(at(102), &[1, 0]), b);
        table.touch(at(103), b.unwrap(), 1);
        table.touch(at(104), a.unwrap(), 1);
        assert_eq!(table.worst(at(105), &[1, 0]), c, "all have the weight of none");
    }

    #[test]
    fn idle_entries_are_found_in_time() {
        let mut table: Table<u32, (), 2> = Table::new(9, &SEED);
        let limits = [Duration::from_secs(10), Duration::from_secs(50)];
        assert_eq!(table.next_idle(&limits), None);
        let long = table.insert(at(0), 0, (), 1);
        let short = table.insert(at(30), 1, (), 0);
        assert_eq!(table.next_idle(&limits), Some(at(40)));
        assert_eq!(table.idle(at(39), &limits), None);
        assert_eq!(table.idle(at(40), &limits), short);
        table.remove(short.unwrap());
        assert_eq!(table.idle(at(49), &limits), None);
        assert_eq!(table.idle(at(50), &limits), long);
    }
}
