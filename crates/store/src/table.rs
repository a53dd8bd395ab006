//! The hash table of the index: from the fingerprint of a name to a location, in ten bytes.
//!
//! *What this is:* 256 shards with ordered linear probing: entries are in the order of their
//! fingerprints, each at or after its home slot. A search therefore ends at the first larger
//! fingerprint, and a shard grows by one copy from front to back. *Who calls it:* `index.rs` alone.
//! *What it never does:* store whole names (a match is only a candidate), or know segments beyond
//! their row number.
//!
//! Each shard grows by itself, by a fifth when it is nine tenths full, so no copy covers more than
//! a 256th of the table.

use wire::ChunkId;

use crate::segment::{ALIGN, Provenance};

const SHARDS: usize = 256;
/// Fingerprint bits in a slot; eight more choose the shard.
const FINGERPRINT_BITS: u32 = 28;
/// Longest search, in slots. Names are hashes, so only names forged to collide reach it; entries
/// beyond it are refused.
const PROBE_MAX: usize = 512;
const HOMES_MIN: usize = 8;

/// The part of a name that the table uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    shard: u8,
    print: u32,
}

impl Key {
    pub fn of(id: &ChunkId) -> Self {
        let [shard, a, b, c, d, ..] = id.0;
        Self { shard, print: u32::from_be_bytes([a, b, c, d]) >> (32 - FINGERPRINT_BITS) }
    }

    /// All bits of the key, in the upper 36 of 64.
    pub fn bits(self) -> u64 {
        u64::from(self.shard) << 56 | u64::from(self.print) << 28
    }
}

/// The content of a slot besides the fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The row in the table of segments.
    pub segment: u16,
    /// Offset in the segment, in bytes; never zero.
    pub offset: u32,
    /// The class of the unit's length (see [`length_class`]).
    pub class: u8,
    pub provenance: Provenance,
    /// State of the eviction policy.
    pub life: u8,
}

/// Bits, from the first word on: segment 16 | offset/16, low 16 | offset/16, high 5, class 5,
/// provenance 2, fingerprint, high 4 | fingerprint, middle 16 | fingerprint, low 8, life 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slot([u16; 5]);

impl Slot {
    fn new(print: u32, place: Place) -> Self {
        let offset = place.offset / ALIGN;
        let mixed = offset >> 16 << 11
            | u32::from(place.class) << 6
            | (place.provenance as u32) << 4
            | print >> 24;
        let tail = (print & 0xff) << 8 | u32::from(place.life);
        Self([place.segment, offset as u16, mixed as u16, (print >> 8) as u16, tail as u16])
    }

    fn print(self) -> u32 {
        let [_, _, mixed, middle, tail] = self.0.map(u32::from);
        (mixed & 0xf) << 24 | middle << 8 | tail >> 8
    }

    fn place(self) -> Place {
        let [segment, low, mixed, _, tail] = self.0;
        Place {
            segment,
            offset: (u32::from(mixed >> 11) << 16 | u32::from(low)) * ALIGN,
            class: (mixed >> 6 & 31) as u8,
            provenance: Provenance::from_bits((mixed >> 4) as u8),
            life: tail as u8,
        }
    }

    /// Units follow the segment's header, so no used slot has offset zero.
    fn is_empty(self) -> bool {
        self.0[1] == 0 && self.0[2] >> 11 == 0
    }
}

/// The class nearest to a length in bytes; there are three per octave, from 32 B to 40 KiB.
pub(crate) fn length_class(length: u32) -> u8 {
    (0..31).find(|&class| length <= (class_bytes(class) + class_bytes(class + 1)) / 2).unwrap_or(31)
}

/// The length in bytes that a class stands for.
pub(crate) fn class_bytes(class: u8) -> u32 {
    [32, 40, 51][usize::from(class % 3)] << (class / 3)
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Table {
    shards: Vec<Shard>,
    units: usize,
}

impl Table {
    pub fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Shard::default()).collect(), units: 0 }
    }

    pub fn units(&self) -> usize {
        self.units
    }

    /// Bytes of memory, unused slots included.
    pub fn bytes(&self) -> usize {
        let slots: usize = self.shards.iter().map(|shard| shard.slots.len()).sum();
        slots * size_of::<Slot>() + SHARDS * size_of::<Shard>()
    }

    /// All entries with this key.
    pub fn find(&self, key: Key) -> impl Iterator<Item = Place> {
        let shard = &self.shards[usize::from(key.shard)];
        shard.run(key.print).map(|at| shard.slots[at].place())
    }

    /// Adds an entry; `false` if too many slots after its home are taken.
    pub fn insert(&mut self, key: Key, place: Place) -> bool {
        let inserted = self.shards[usize::from(key.shard)].insert(key.print, place);
        self.units += usize::from(inserted);
        inserted
    }

    /// Lets `change` modify each entry with this key; an entry for which it returns `false` is
    /// removed.
    pub fn retain(&mut self, key: Key, change: impl FnMut(&mut Place) -> bool) {
        let shard = &mut self.shards[usize::from(key.shard)];
        let range = shard.run(key.print);
        self.units -= shard.retain(range, change);
    }

    /// As [`Table::retain`], for all entries; the time is linear in the table.
    pub fn retain_all(&mut self, mut change: impl FnMut(&mut Place) -> bool) {
        for shard in &mut self.shards {
            let range = 0..shard.slots.len();
            self.units -= shard.retain(range, &mut change);
        }
    }

    /// Applies the policy's halvings so far to the ages in the key's shard.
    pub fn settle(&mut self, key: Key, halvings: u32) {
        self.shards[usize::from(key.shard)].settle(halvings);
    }

    /// As [`Table::settle`], for all shards.
    pub fn settle_all(&mut self, halvings: u32) {
        self.shards.iter_mut().for_each(|shard| shard.settle(halvings));
    }
}

#[derive(Debug, Default)]
struct Shard {
    /// `homes` slots, and a few more for entries pushed beyond the last home.
    slots: Box<[Slot]>,
    homes: usize,
    used: usize,
    halvings: u32,
}

impl Shard {
    fn home(&self, print: u32) -> usize {
        ((u64::from(print) * self.homes as u64) >> FINGERPRINT_BITS) as usize
    }

    /// The slots of the entries with this fingerprint; if there are none, where one would be
    /// inserted.
    fn run(&self, print: u32) -> std::ops::Range<usize> {
        let mut start = self.home(print);
        while self.print_at(start).is_some_and(|other| other < print) {
            start += 1;
        }
        let mut end = start;
        while self.print_at(end) == Some(print) {
            end += 1;
        }
        start..end
    }

    fn print_at(&self, at: usize) -> Option<u32> {
        let slot = self.slots.get(at)?;
        (!slot.is_empty()).then(|| slot.print())
    }

    fn insert(&mut self, print: u32, place: Place) -> bool {
        if self.used * 10 >= self.homes * 9 {
            self.grow();
        }
        loop {
            let at = self.run(print).end;
            if at - self.home(print) > PROBE_MAX {
                return false;
            }
            let hole = (at..self.slots.len()).find(|&at| self.slots[at].is_empty());
            if let Some(hole) = hole {
                self.slots.copy_within(at..hole, at + 1);
                self.slots[at] = Slot::new(print, place);
                self.used += 1;
                return true;
            }
            // No slot is free up to the end. Growing helps, unless very many entries have the same
            // home.
            if self.used * 2 < self.homes {
                return false;
            }
            self.grow();
        }
    }

    fn grow(&mut self) {
        let mut homes = (self.homes + self.homes / 5 + 1).max(HOMES_MIN);
        while !self.rebuild(homes) {
            homes += homes / 5;
        }
    }

    /// Copies into a table with this number of homes; `false`, without a change, if the slots after
    /// the last home do not suffice.
    fn rebuild(&mut self, homes: usize) -> bool {
        let mut grown = Self {
            slots: vec![Slot::default(); homes + (4 + homes / 8).min(64)].into_boxed_slice(),
            homes,
            used: self.used,
            halvings: self.halvings,
        };
        let mut next = 0;
        for slot in self.slots.iter().filter(|slot| !slot.is_empty()) {
            next = grown.home(slot.print()).max(next);
            let Some(free) = grown.slots.get_mut(next) else { return false };
            *free = *slot;
            next += 1;
        }
        *self = grown;
        true
    }

    fn settle(&mut self, halvings: u32) {
        let shift = halvings.wrapping_sub(self.halvings).min(8);
        if shift > 0 {
            self.halvings = halvings;
            self.retain(0..self.slots.len(), |place| {
                place.life = (u16::from(place.life) >> shift) as u8;
                true
            });
        }
    }

    /// Returns the number of removed entries.
    fn retain(
        &mut self,
        range: std::ops::Range<usize>,
        mut change: impl FnMut(&mut Place) -> bool,
    ) -> usize {
        let before = self.used;
        // From the back, because a removal moves the entries after it.
        for at in range.rev() {
            let Some(print) = self.print_at(at) else { continue };
            let mut place = self.slots[at].place();
            if change(&mut place) {
                self.slots[at] = Slot::new(print, place);
            } else {
                self.remove(at);
            }
        }
        before - self.used
    }

    fn remove(&mut self, at: usize) {
        let mut end = at + 1;
        while self.print_at(end).is_some_and(|print| self.home(print) < end) {
            end += 1;
        }
        self.slots.copy_within(at + 1..end, at);
        self.slots[end - 1] = Slot::default();
        self.used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset: u32) -> Place {
        Place { segment: 7, offset, class: 3, provenance: Provenance::Put, life: 9 }
    }

    #[test]
    fn a_slot_gives_back_what_it_was_made_of() {
        let full = Place {
            segment: u16::MAX,
            offset: (1 << 25) - 16,
            class: 31,
            provenance: Provenance::Put,
            life: 255,
        };
        for (print, place) in [(0, place(32)), ((1 << 28) - 1, full), (0x0a5_a5a5, full)] {
            let slot = Slot::new(print, place);
            assert_eq!((slot.print(), slot.place()), (print, place));
            assert!(!slot.is_empty());
        }
        assert_eq!(size_of::<Slot>(), 10);
    }

    #[test]
    fn a_class_is_within_a_seventh_of_the_length() {
        for length in 28..=40_000 {
            let bytes = class_bytes(length_class(length));
            assert!(bytes.abs_diff(length) * 7 <= length, "{length} became {bytes}");
        }
        assert!(length_class(0) == 0 && length_class(u32::MAX) == 31);
    }

    #[test]
    fn names_ground_to_collide_are_refused_and_harm_no_other() {
        let mut table = Table::new();
        let same = Key { shard: 1, print: 5 };
        let taken = (1..2000).filter(|at| table.insert(same, place(at * 16))).count();
        assert!(taken <= PROBE_MAX + 1, "{taken}");
        let other = Key { shard: 1, print: 1 << 27 };
        assert!(table.insert(other, place(48)));
        assert_eq!(table.find(other).collect::<Vec<_>>(), [place(48)]);
        assert_eq!(table.units(), taken + 1);
        assert!(table.bytes() < 100_000, "{}", table.bytes());
    }
}
