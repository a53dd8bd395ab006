//! S's table of hints: names of chunks that crossed lately, which R is believed to have (Wanax §3.2).

use super::ChunkName;
use crate::hasher::Map;
use std::time::Duration;
use wire::Instant;

/// A hint that is older than this does not count. The paper gives no figure.
pub const STALE: Duration = Duration::from_secs(24 * 3600);

/// The table: names in two generations, of which the older is forgotten when the newer is full.
pub struct Hints {
    newer: Map<ChunkName, Instant>,
    older: Map<ChunkName, Instant>,
    generation_max: usize,
}

impl Hints {
    /// An empty table of at most this many names.
    pub fn new(names_max: usize) -> Self {
        let generation_max = (names_max / 2).max(1);
        Self { newer: Map::default(), older: Map::default(), generation_max }
    }

    /// Whether R is believed to have this chunk.
    pub fn has(&self, now: Instant, name: &ChunkName) -> bool {
        let seen = self.newer.get(name).or_else(|| self.older.get(name));
        seen.is_some_and(|seen| now.since(*seen) < STALE)
    }

    /// A chunk crosses now, or its name does.
    pub fn note(&mut self, now: Instant, name: ChunkName) {
        if self.newer.len() >= self.generation_max && !self.newer.contains_key(&name) {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(name, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: u32) -> ChunkName {
        let mut name = [0; 20];
        name[..4].copy_from_slice(&number.to_le_bytes());
        name
    }

    #[test]
    fn hints_become_stale_unless_they_are_refreshed() {
        let (mut hints, begun) = (Hints::new(10), Instant::from_nanos(5));
        hints.note(begun, name(1));
        hints.note(begun, name(2));
        let half = begun + STALE / 2;
        hints.note(half, name(2));
        assert!(hints.has(half, &name(1)));
        let late = begun + STALE;
        assert!(!hints.has(late, &name(1)) && hints.has(late, &name(2)));
        assert!(!hints.has(begun, &name(3)));
    }

    #[test]
    fn names_without_end_take_bounded_room_and_the_newest_stay() {
        let (mut hints, now) = (Hints::new(1000), Instant::from_nanos(5));
        for number in 0..100_000 {
            hints.note(now, name(number));
            assert!(hints.newer.len() + hints.older.len() <= 1000);
        }
        assert!((99_500..100_000).all(|number| hints.has(now, &name(number))));
        assert!(!hints.has(now, &name(0)));
    }
}
