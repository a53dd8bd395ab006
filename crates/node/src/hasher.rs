//! The hasher of all tables: the same order on every run, and fast, because keys are mostly digests
//! already.

use quick_cache::Weighter;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A map with the same order on every run.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;
/// A set with the same order on every run.
pub type Set<K> = HashSet<K, BuildHasherDefault<Mix>>;

/// A bounded cache with the same behaviour on every run.
pub type Cache<K, V, W> = quick_cache::unsync::Cache<K, V, W, BuildHasherDefault<Mix>>;

/// An empty cache for about `items` entries that weigh `weight_max` in all.
pub fn cache<K: Eq + Hash, V, W: Weighter<K, V>>(
    items: usize,
    weight_max: u64,
    weigher: W,
) -> Cache<K, V, W> {
    let hasher = BuildHasherDefault::default();
    Cache::with(items, weight_max, weigher, hasher, Default::default())
}

/// Multiplies and folds, eight bytes at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mix(u64);

impl Mix {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0xf39c_c060_5ced_c835) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
