//! Sealed units, opened for clients: nothing of a unit leaves the node in clear but through here.

use crate::hasher::{Cache, cache};
use bytes::Bytes;
use content::{Entry, Key, Sealer, Segment};
use quick_cache::UnitWeighter;
use wire::ChunkId;

/// Opens units, and remembers which key was the right one for which.
pub struct Opener {
    opened: Cache<ChunkId, Key, UnitWeighter>,
}

impl Opener {
    /// That remembers so many units.
    pub fn new(units_max: usize) -> Self {
        Self { opened: cache(units_max, units_max as u64, UnitWeighter) }
    }

    /// A unit as clients get it, of which the bytes are held to be those that the entry names; `None` if it
    /// is not what the entry says: of another length, sealed with another key, or sealed where this node's
    /// mesh does not seal.
    ///
    /// The key is held against the content: it rests in the catalogue, where it can go bad like anything that
    /// a disk keeps. Name and key together say what comes out, so that once is enough for each pair.
    #[inline]
    pub fn unseal(&mut self, sealer: Option<&Sealer>, entry: &Entry, unit: Bytes) -> Option<Bytes> {
        if unit.len() as u64 != u64::from(entry.length) {
            return None;
        }
        match (sealer, entry.key) {
            (None, None) => Some(unit),
            (Some(sealer), Some(key)) => {
                // Memory and peers want it sealed: what is opened is a copy, for as long as a client takes it.
                let mut clear = unit.to_vec();
                if self.opened.get(&entry.id) == Some(&key) {
                    content::cipher(&key, &mut clear);
                } else {
                    sealer.open(&key, &mut clear).ok()?;
                    self.opened.insert(entry.id, key);
                }
                Some(clear.into())
            }
            _ => None,
        }
    }
}

/// Whether all units of a segment are sealed, or none is.
pub fn is_sealed_as(segment: &Segment, sealed: bool) -> bool {
    segment.entries.iter().all(|entry| entry.key.is_some() == sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_was_right_once_is_right_for_that_unit_alone() {
        let (sealer, mut opener) = (Sealer::new(&[1; 32]), Opener::new(16));
        let sealed = |clear: &[u8]| {
            let mut unit = clear.to_vec();
            let key = Some(sealer.seal(&mut unit));
            let id = content::name(&unit);
            (Entry { id, length: unit.len() as u32, parent_end: false, key }, Bytes::from(unit))
        };
        let (one, unit) = sealed(b"one");
        let (two, other) = sealed(b"two");
        let mut open =
            |entry: &Entry, unit: &Bytes| opener.unseal(Some(&sealer), entry, unit.clone());
        for _ in 0..3 {
            assert_eq!(open(&one, &unit).as_deref(), Some(&b"one"[..]));
            assert_eq!(open(&two, &other).as_deref(), Some(&b"two"[..]));
            let swapped = [Entry { key: two.key, ..one }, Entry { key: one.key, ..two }];
            assert_eq!(open(&swapped[0], &unit), None);
            assert_eq!(open(&swapped[1], &other), None);
            assert_eq!(open(&Entry { key: None, ..one }, &unit), None);
            assert_eq!(open(&Entry { length: 2, ..one }, &unit), None);
        }
    }
}
