//! One client's or peer's share of a common resource.

use std::collections::BTreeMap;

/// One holder may have this fraction (an eighth) of the resource …
const SHARE: usize = 8;
/// … and of connections at least this many.
const EACH_MIN: usize = 16;

/// One holder's share of `all`.
pub const fn share(all: usize) -> usize {
    all / SHARE
}

/// How many of `all` connections one holder may have.
pub fn connections_each(all: usize) -> usize {
    share(all).max(EACH_MIN)
}

/// How much each holder has; a holder that has none is not listed.
#[derive(Debug)]
pub struct Shares<K>(BTreeMap<K, usize>);

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord> Shares<K> {
    /// How much a holder has.
    pub fn of(&self, whom: &K) -> usize {
        self.0.get(whom).copied().unwrap_or(0)
    }

    /// Adds one to what a holder has.
    pub fn add(&mut self, whom: K) {
        *self.0.entry(whom).or_default() += 1;
    }

    /// Takes one from what a holder has.
    pub fn release(&mut self, whom: &K) {
        match self.0.get_mut(whom) {
            Some(taken) if *taken > 1 => *taken -= 1,
            _ => drop(self.0.remove(whom)),
        }
    }

    /// Whether no holder has anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_an_eighth_but_of_connections_16_at_least() {
        assert_eq!([0, 7, 8, 160].map(share), [0, 0, 1, 20]);
        assert_eq!([0, 128, 135, 136, 2048].map(connections_each), [16, 16, 16, 17, 256]);
    }

    #[test]
    fn a_holder_that_has_given_all_back_is_not_listed() {
        let mut shares = Shares::default();
        ["a", "b", "a"].into_iter().for_each(|holder| shares.add(holder));
        assert_eq!((shares.of(&"a"), shares.of(&"b"), shares.of(&"c")), (2, 1, 0));
        shares.release(&"a");
        assert_eq!(shares.of(&"a"), 1);
        ["a", "b", "c"].iter().for_each(|holder| shares.release(holder));
        assert!(shares.is_empty());
    }
}
