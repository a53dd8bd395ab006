//! Connections to origins that wait for their next request: how many, for how long, and when they are dead; and how long
//! an origin is waited for.

use crate::routes::RouteTable;
use std::collections::VecDeque;
use std::time::Duration;
use wire::Instant;

/// An origin gets so long to begin its answer, once it has the whole request: as long as others give
/// it, since some answer only when there is something to say.
pub const HEAD_MAX: Duration = Duration::from_secs(15 * 60);
/// An origin may pause for so long within its content: some only speak when there is news. One that
/// vanished is noticed earlier, by the connection itself.
pub const PAUSE_MAX: Duration = Duration::from_secs(15 * 60);
/// An idle connection is kept for so long …
const IDLE_MAX: Duration = Duration::from_secs(15);
/// … to one origin at most this many …
const IDLE_EACH_MAX: usize = 4;
/// … and in all.
const IDLE_ALL_MAX: usize = 128;

/// By which way out of the mesh a connection was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way(u64);

/// Idle connections, by whom they lead to. What is given out by its methods is for the driver to close.
#[derive(Debug)]
pub struct OriginPool<K, C> {
    /// Who waits longest is first.
    idle: VecDeque<Idle<K, C>>,
    led: RouteTable,
    way: Way,
}

#[derive(Debug)]
struct Idle<K, C> {
    key: K,
    until: Instant,
    connection: C,
}

impl<K, C> Default for OriginPool<K, C> {
    fn default() -> Self {
        Self { idle: VecDeque::new(), led: RouteTable::Nowhere, way: Way(0) }
    }
}

impl<K: PartialEq, C> OriginPool<K, C> {
    /// The way out that a connection takes which is made now.
    pub fn way(&self) -> Way {
        self.way
    }

    /// The way to the gateway is this. If it leads out elsewhere than before, every connection is dead and does
    /// not say so, because the new way's address translation knows nothing of it.
    pub fn follow(&mut self, routes: &RouteTable) -> Vec<C> {
        if *routes == RouteTable::Nowhere {
            return Vec::new();
        }
        let moved = self.led.leads_elsewhere_than(routes);
        self.led.clone_from(routes);
        if !moved {
            return Vec::new();
        }
        self.way.0 += 1;
        self.idle.drain(..).map(|idle| idle.connection).collect()
    }

    /// Those that have waited for too long.
    pub fn expire(&mut self, now: Instant) -> Vec<C> {
        let count = self.idle.iter().take_while(|idle| idle.until <= now).count();
        self.idle.drain(..count).map(|idle| idle.connection).collect()
    }

    /// When the next one has waited for too long.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.idle.front().map(|idle| idle.until)
    }

    /// Keeps only those of which this holds.
    pub fn retain(&mut self, mut holds: impl FnMut(&C) -> bool) {
        self.idle.retain(|idle| holds(&idle.connection));
    }

    /// Whether there is one of which this holds.
    pub fn any(&self, holds: impl Fn(&C) -> bool) -> bool {
        self.idle.iter().any(|idle| holds(&idle.connection))
    }

    /// The one that was used last.
    pub fn take(&mut self, key: &K) -> Option<C> {
        let place = self.idle.iter().rposition(|idle| idle.key == *key)?;
        self.idle.remove(place).map(|idle| idle.connection)
    }

    /// Keeps a connection that was made by this way out; gives it back if there is no room, or if that way is
    /// another by now.
    pub fn put(&mut self, now: Instant, way: Way, key: K, connection: C) -> Option<C> {
        let each = self.idle.iter().filter(|idle| idle.key == key).count();
        if way != self.way || each >= IDLE_EACH_MAX || self.idle.len() >= IDLE_ALL_MAX {
            return Some(connection);
        }
        self.idle.push_back(Idle { key, until: now + IDLE_MAX, connection });
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{Interface, RouteSource, Uplink};

    fn gateway(interface: &str) -> RouteTable {
        let interface = Some(Interface { name: interface.into(), index: 1 });
        RouteTable::Gateway(Uplink { address: None, interface, source: RouteSource::Kernel })
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn what_was_made_by_another_way_out_is_dead() {
        let mut pool = OriginPool::default();
        assert_eq!(pool.follow(&gateway("wan0")), [0; 0]);
        let before = pool.way();
        assert_eq!(pool.put(at(0), before, "a", 1), None);
        assert_eq!(pool.put(at(0), before, "b", 2), None);
        assert_eq!(pool.follow(&RouteTable::Nowhere), [0; 0], "it may come back as it was");
        assert_eq!(pool.follow(&gateway("wan0")), [0; 0]);
        assert_eq!(pool.follow(&gateway("wan1")), [1, 2]);
        assert_eq!(pool.take(&"a"), None);
        assert_eq!(pool.put(at(1), before, "a", 3), Some(3), "it was under way meanwhile");
        assert_eq!(pool.put(at(1), pool.way(), "a", 4), None);
        assert_eq!(pool.take(&"a"), Some(4));
    }

    #[test]
    fn the_one_that_was_used_last_is_used_next_and_none_waits_for_long() {
        let mut pool = OriginPool::default();
        for (second, connection) in [(0, 1), (1, 2), (2, 3)] {
            assert_eq!(pool.put(at(second), pool.way(), "a", connection), None);
        }
        assert_eq!(pool.take(&"a"), Some(3));
        assert_eq!(pool.poll_timeout(), Some(at(15)));
        assert_eq!(pool.expire(at(15)), [1]);
        pool.retain(|connection| *connection != 2);
        assert!(!pool.any(|_| true) && pool.poll_timeout().is_none());
    }

    #[test]
    fn only_so_many_wait() {
        let mut pool = OriginPool::default();
        let kept = (0..200).filter(|key| {
            let mut put = || pool.put(at(0), pool.way(), *key, 0).is_none();
            (0..5).filter(|_| put()).count() == 4
        });
        assert_eq!(kept.count(), IDLE_ALL_MAX / IDLE_EACH_MAX);
    }
}
