//! The chunks that have crossed: for each its levels, and the schemes that have used it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Bytes that a slot of the table takes: key, entry, and the map's own byte.
const SLOT: usize = size_of::<(u64, Entry)>() + 1;

/// The table would exceed its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// Bytes that the next larger table takes, with the old one while names move.
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
    entries: HashMap<u64, Entry, BuildHasherDefault<Same>>,
    limit: u64,
}

impl Names {
    /// An empty table that may grow to `limit` bytes.
    pub fn new(limit: u64) -> Self {
        Self { entries: HashMap::default(), limit }
    }

    /// The key of a chunk.
    pub fn key(chunk: &[u8]) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(chunk).as_bytes();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// The levels at which the chunk has crossed.
    pub fn levels(&self, key: u64) -> u16 {
        self.entries.get(&key).map_or(0, |it| it.levels)
    }

    /// Notes that the chunk has crossed at a level, and returns the levels before.
    pub fn add(&mut self, key: u64, level: usize) -> Result<u16, Full> {
        if self.entries.len() == self.entries.capacity() {
            self.grow(key)?;
        }
        let entry = self.entries.entry(key).or_default();
        let before = entry.levels;
        entry.levels |= 1 << level;
        Ok(before)
    }

    /// Notes that a scheme reads the chunk; `true` the first time. A chunk that has not crossed is not noted.
    pub fn mark(&mut self, key: u64, scheme: usize) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        let is_first = entry.used & 1 << scheme == 0;
        entry.used |= 1 << scheme;
        is_first
    }

    /// Forgets which schemes have read what.
    pub fn forget_uses(&mut self) {
        self.entries.values_mut().for_each(|entry| entry.used = 0);
    }

    /// The bytes that it takes.
    pub fn memory(&self) -> u64 {
        slots(self.entries.capacity()) * SLOT as u64
    }

    /// Makes room for the chunk, if it is new and there may be more.
    fn grow(&mut self, key: u64) -> Result<(), Full> {
        if self.entries.contains_key(&key) {
            return Ok(());
        }
        let next = slots(self.entries.capacity() + 1) * SLOT as u64;
        let needed = next + self.memory();
        if needed > self.limit {
            return Err(Full { needed });
        }
        self.entries.reserve(1);
        Ok(())
    }
}

/// The slots of a hash map that holds so many entries: a power of two, of which an eighth stays free.
fn slots(entries: usize) -> u64 {
    if entries == 0 { 0 } else { (entries as u64 * 8).div_ceil(7).next_power_of_two() }
}

/// Keys are hashes already.
#[derive(Clone, Copy, Debug, Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_still_knows_its_chunks() {
        let mut names = Names::new(1000);
        let added = (0..).take_while(|&key| names.add(key, 3).is_ok()).count() as u64;
        assert!(added > 0 && names.memory() <= 1000);
        assert_eq!(
            (0..added).map(|key| names.add(key, 1)).collect::<Vec<_>>(),
            vec![Ok(8); added as usize]
        );
        assert!(names.add(added, 1).is_err_and(|full| full.needed > 1000));
        assert_eq!((names.levels(0), names.levels(added)), (10, 0));
        assert!(names.mark(0, 5) && !names.mark(0, 5) && names.mark(0, 6));
    }
}
