//! Tables with the same order on every run.

use quick_cache::Weighter;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash};
use wire::Mix;

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
