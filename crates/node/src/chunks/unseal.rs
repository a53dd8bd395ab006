//! Decrypts sealed units for clients. No other code gives out a unit's plaintext.

use crate::hasher::{Cache, cache};
use bytes::Bytes;
use content::{Entry, Key, Sealer, Segment};
use quick_cache::UnitWeighter;
use wire::ChunkId;

/// Decrypts units, and remembers the key that was verified for each.
pub struct Opener {
    opened: Cache<ChunkId, Key, UnitWeighter>,
}

impl Opener {
    /// An opener that remembers at most this many units.
    pub fn new(units_max: usize) -> Self {
        Self { opened: cache(units_max, units_max as u64, UnitWeighter) }
    }

    /// A unit in plaintext. The caller has checked its bytes against the entry's name. `None` if the
    /// unit does not match the entry: it has another length or key, or is sealed although this node's
    /// mesh does not seal, or the reverse.
    ///
    /// The key is checked against the plaintext: it is stored in the catalogue, where a disk can
    /// corrupt it. Name and key determine the plaintext, so each pair is checked only once.
    #[inline]
    pub fn unseal(&mut self, sealer: Option<&Sealer>, entry: &Entry, unit: Bytes) -> Option<Bytes> {
        if unit.len() as u64 != u64::from(entry.length) {
            return None;
        }
        match (sealer, entry.key) {
            (None, None) => Some(unit),
            (Some(sealer), Some(key)) => {
                // The cache and peers need the sealed unit, so a copy is decrypted.
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

/// Whether all units of a segment are sealed or, if `sealed` is false, none of them is.
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
