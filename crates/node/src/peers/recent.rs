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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn an_event_is_recent_for_its_time_and_the_oldest_makes_room() {
        let mut recent = Recent::<_, 2>::new(Duration::from_secs(10));
        recent.add(at(5), "a");
        assert!(recent.has(at(14), &"a") && !recent.has(at(15), &"a"));
        recent.add(at(6), "b");
        assert!(!recent.has_place(at(14)) && recent.has_place(at(15)));
        // It happens again, and is the newest now.
        recent.add(at(7), "a");
        recent.add(at(8), "c");
        assert_eq!(["a", "b", "c"].map(|key| recent.has(at(8), &key)), [true, false, true]);
    }
}
