//! A bounded list of what happened recently.

use std::collections::VecDeque;
use std::time::Duration;
use wire::Instant;

/// Keys to which something happened within the given time. One more than `N` replaces the oldest.
pub struct Recent<K, const N: usize> {
    within: Duration,
    entries: VecDeque<(K, Instant)>,
}

impl<K: PartialEq, const N: usize> Recent<K, N> {
    /// An empty list.
    pub fn new(within: Duration) -> Self {
        Self { within, entries: VecDeque::with_capacity(N) }
    }

    /// Whether it happened to this key recently.
    pub fn has(&self, now: Instant, key: &K) -> bool {
        self.entries.iter().any(|(it, at)| it == key && now - *at < self.within)
    }

    /// It happens to this key now.
    pub fn add(&mut self, now: Instant, key: K) {
        self.entries.retain(|(it, at)| *it != key && now - *at < self.within);
        if self.entries.len() == N {
            self.entries.pop_front();
        }
        self.entries.push_back((key, now));
    }

    /// Whether another key fits without replacing a recent one.
    pub fn has_place(&self, now: Instant) -> bool {
        self.entries.iter().filter(|(_, at)| now - *at < self.within).count() < N
    }
}
