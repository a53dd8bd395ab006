//! The chunks that have crossed: for each its levels, and the schemes that have used it.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use wire::Mix;

/// Bytes that a slot of the table takes: key, entry, and the map's own byte.
const SLOT: usize = size_of::<(u64, Entry)>() + 1;

/// The table would exceed its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// Bytes that the next larger table takes, with the old one while names move, and with other tables.
    pub needed: u64,
}

/// What is known of a chunk.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The levels at which it has crossed, a bit for each.
    levels: u16,
    /// The schemes that have read it, a bit for each.
    used: u64,
}

/// Chunks by name. 8 bytes of BLAKE3 stand for the 20 bytes of a name: among 100 million chunks two share them with a
/// probability of 0.03 %, which would count one chunk too much as saved.
#[derive(Debug)]
pub struct Names {
    /// Parts by the key, which grow one at a time: while one does, it takes half as much again.
    parts: Vec<Part>,
    /// The bytes that all parts take.
    memory: u64,
    limit: u64,
}

type Part = HashMap<u64, Entry, BuildHasherDefault<Mix>>;

/// The number of parts; a power of two.
const PARTS: usize = 64;

impl Names {
    /// An empty table that may grow to `limit` bytes, together with other tables.
    pub fn new(limit: u64) -> Self {
        Self { parts: vec![Part::default(); PARTS], memory: 0, limit }
    }

    /// The key of a chunk.
    pub fn key(chunk: &[u8]) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(chunk).as_bytes();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// The levels at which the chunk has crossed.
    pub fn levels(&self, key: u64) -> u16 {
        self.parts[part(key)].get(&key).map_or(0, |it| it.levels)
    }

    /// Notes that the chunk has crossed at a level, and returns the levels before. Other tables have `others` bytes of
    /// the limit.
    pub fn add(&mut self, key: u64, level: usize, others: u64) -> Result<u16, Full> {
        let part = part(key);
        if self.parts[part].len() == self.parts[part].capacity() {
            self.grow(part, key, others)?;
        }
        let entry = self.parts[part].entry(key).or_default();
        let before = entry.levels;
        entry.levels |= 1 << level;
        Ok(before)
    }

    /// Notes that a scheme reads the chunk; `true` the first time. A chunk that has not crossed is not noted.
    pub fn mark(&mut self, key: u64, scheme: usize) -> bool {
        let Some(entry) = self.parts[part(key)].get_mut(&key) else { return false };
        let is_first = entry.used & 1 << scheme == 0;
        entry.used |= 1 << scheme;
        is_first
    }

    /// Forgets which schemes have read what.
    pub fn forget_uses(&mut self) {
        self.parts.iter_mut().flat_map(Part::values_mut).for_each(|entry| entry.used = 0);
    }

    /// The bytes that it takes.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Makes room for the chunk, if it is new and there may be more.
    fn grow(&mut self, part: usize, key: u64, others: u64) -> Result<(), Full> {
        let part = &mut self.parts[part];
        if part.contains_key(&key) {
            return Ok(());
        }
        let bytes = |entries: usize| slots(entries) * SLOT as u64;
        let (now, next) = (bytes(part.capacity()), bytes(part.capacity() + 1));
        let needed = self.memory + others + next;
        if needed > self.limit {
            return Err(Full { needed });
        }
        part.reserve(1);
        self.memory += next - now;
        Ok(())
    }
}

/// The part of a key.
fn part(key: u64) -> usize {
    (key >> 48) as usize % PARTS
}

/// The slots of a hash map for this number of entries: a power of two. An eighth of them stays free.
fn slots(entries: usize) -> u64 {
    if entries == 0 { 0 } else { (entries as u64 * 8).div_ceil(7).next_power_of_two() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_still_knows_its_chunks() {
        let mut names = Names::new(20_000);
        let key = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let added = (0..).take_while(|&at| names.add(key(at), 3, 0).is_ok()).count() as u64;
        assert!(added > 200 && names.memory() <= 20_000, "{added}");
        assert!((0..added).all(|at| names.add(key(at), 1, 0) == Ok(8)));
        assert!(names.add(key(added), 1, 0).is_err_and(|full| full.needed > 20_000));
        assert_eq!((names.levels(0), names.levels(key(added))), (10, 0));
        assert!(names.mark(0, 5) && !names.mark(0, 5) && names.mark(0, 6));
    }
}
