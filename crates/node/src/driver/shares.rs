//! One client's or peer's share of a resource that all of them use.

use std::collections::BTreeMap;

/// One holder may have this fraction (an eighth) of all …
const SHARE: usize = 8;
/// … but always this many connections.
const EACH_MIN: usize = 16;

/// One holder's share of `all`.
pub const fn share(all: usize) -> usize {
    all / SHARE
}

/// How many connections one holder may have, where there may be `all`.
pub fn connections_each(all: usize) -> usize {
    share(all).max(EACH_MIN)
}

/// How many each holder has; a holder without any is not listed.
#[derive(Debug)]
pub struct Shares<K>(BTreeMap<K, usize>);

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Shares<K> {
    /// How many a holder has.
    pub fn of(&self, whom: &K) -> usize {
        self.0.get(whom).copied().unwrap_or(0)
    }

    /// A holder has one more.
    pub fn add(&mut self, whom: K) {
        *self.0.entry(whom).or_default() += 1;
    }

    /// A holder has one less.
    pub fn release(&mut self, whom: &K) {
        match self.0.get_mut(whom) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(self.0.remove(whom)),
        }
    }

    /// Whether no holder has any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
