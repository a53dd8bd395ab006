//! How much one of many may have of what all use.

use std::collections::BTreeMap;

/// One may have this share of all …
const SHARE: usize = 8;
/// … but of connections always this many.
const EACH_MIN: usize = 16;

/// One's share of so many.
pub const fn share(all: usize) -> usize {
    all / SHARE
}

/// How many connections one may have where there may be so many.
pub fn connections_each(all: usize) -> usize {
    share(all).max(EACH_MIN)
}

/// How many each has; who has none is not listed.
#[derive(Debug)]
pub struct Shares<K>(BTreeMap<K, usize>);

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Shares<K> {
    /// How many one has.
    pub fn of(&self, whom: &K) -> usize {
        self.0.get(whom).copied().unwrap_or(0)
    }

    /// One has one more.
    pub fn add(&mut self, whom: K) {
        *self.0.entry(whom).or_default() += 1;
    }

    /// One has one less.
    pub fn release(&mut self, whom: &K) {
        match self.0.get_mut(whom) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(self.0.remove(whom)),
        }
    }

    /// Whether nobody has any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
