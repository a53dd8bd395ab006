//! Bounded tables, in which the oldest entry makes room.

use std::collections::BTreeMap;
use wire::Instant;

/// Removes the oldest of `most` entries, unless the key is one of theirs; `at` is the time of an entry.
pub fn make_room<K: Copy + Ord, V>(
    table: &mut BTreeMap<K, V>,
    most: usize,
    key: &K,
    at: impl Fn(&V) -> Instant,
) {
    if table.len() < most || table.contains_key(key) {
        return;
    }
    let oldest = table.iter().min_by_key(|(_, entry)| at(entry)).map(|(key, _)| *key);
    if let Some(oldest) = oldest {
        table.remove(&oldest);
    }
}
