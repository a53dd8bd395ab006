//! A short memory of what happened lately.

use std::collections::VecDeque;
use std::time::Duration;
use wire::Instant;

/// Whom something happened to within a time: at most `N`, then the oldest is forgotten.
pub struct Recent<K, const N: usize> {
    within: Duration,
    entries: VecDeque<(K, Instant)>,
}

impl<K: PartialEq, const N: usize> Recent<K, N> {
    /// Nothing has happened yet.
    pub fn new(within: Duration) -> Self {
        Self { within, entries: VecDeque::with_capacity(N) }
    }

    /// Whether it happened to this one lately.
    pub fn has(&self, now: Instant, key: &K) -> bool {
        self.entries.iter().any(|(it, at)| it == key && now - *at < self.within)
    }

    /// It happens to this one now.
    pub fn add(&mut self, now: Instant, key: K) {
        self.entries.retain(|(it, at)| *it != key && now - *at < self.within);
        if self.entries.len() == N {
            self.entries.pop_front();
        }
        self.entries.push_back((key, now));
    }

    /// Whether there is still place for one without forgetting another.
    pub fn has_place(&self, now: Instant) -> bool {
        self.entries.iter().filter(|(_, at)| now - *at < self.within).count() < N
    }
}
