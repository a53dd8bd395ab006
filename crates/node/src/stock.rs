//! Which objects are stored here whole, by short names: what searches and hints ask for.
//!
//! The table is in memory and begins empty: after a restart an object is found again once a request has needed it.

use crate::hasher::Map;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{ChunkId, Date, Hint, Instant, ObjectKey};

/// The most objects; the one that was stored longest ago makes room. Each takes about 100 bytes.
const OBJECTS_MAX: usize = 8192;
/// What is evicted is looked for at most so often.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// The short name of an object, by which searches and hints name it.
pub fn name_of(key: &ObjectKey) -> Hint {
    let mut name = Hint([0; Hint::LEN]);
    name.0.copy_from_slice(&key.0[..Hint::LEN]);
    name
}

/// The table; see the module.
#[derive(Debug, Default)]
pub struct Stock {
    by_name: Map<Hint, Object>,
    /// Names in the order in which the objects were stored.
    order: BTreeMap<u64, Hint>,
    next: u64,
    /// When it was last looked for what is not held any more.
    swept: Option<Instant>,
}

/// An object.
#[derive(Clone, Copy, Debug)]
struct Object {
    /// Its first unit. Units of an object are evicted about together; `None` if it has none.
    first: Option<ChunkId>,
    fresh_until: Date,
    place: u64,
}

impl Stock {
    /// An object is stored, or fresh again.
    pub fn put(&mut self, name: Hint, first: Option<ChunkId>, fresh_until: Date) {
        self.remove(&name);
        let place = self.next;
        self.next += 1;
        self.by_name.insert(name, Object { first, fresh_until, place });
        self.order.insert(place, name);
        if self.by_name.len() > OBJECTS_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.by_name.remove(&oldest);
        }
    }

    /// The first unit of an object, if it is stored.
    pub fn first(&self, name: &Hint) -> Option<ChunkId> {
        self.by_name.get(name)?.first
    }

    /// An object is not stored any more.
    pub fn remove(&mut self, name: &Hint) {
        if let Some(object) = self.by_name.remove(name) {
            self.order.remove(&object.place);
        }
    }

    /// Whether it is time to look for what is not held any more: not with every message.
    pub fn may_sweep(&mut self, now: Instant) -> bool {
        let may = self.swept.is_none_or(|at| now - at >= SWEEP_EVERY);
        if may {
            self.swept = Some(now);
        }
        may
    }

    /// Forgets what is not held any more, or is stale, and returns the names.
    pub fn sweep(&mut self, now: Date, holds: impl Fn(&ChunkId) -> bool) -> Vec<Hint> {
        let is_lost = |object: &Object| {
            now >= object.fresh_until || object.first.is_some_and(|first| !holds(&first))
        };
        let lost = self.by_name.iter().filter(|(_, object)| is_lost(object));
        let mut lost: Vec<_> = lost.map(|(name, _)| *name).collect();
        lost.sort_unstable();
        lost.iter().for_each(|name| self.remove(name));
        lost
    }

    /// The names of all objects, in the order in which they were stored.
    pub fn names(&self) -> impl Iterator<Item = Hint> {
        self.order.values().copied()
    }

    /// Whether a fresh object of this name is stored, as far as its first unit tells.
    pub fn has(&self, name: &Hint, now: Date, holds: impl Fn(&ChunkId) -> bool) -> bool {
        let object = self.by_name.get(name);
        object.is_some_and(|it| now < it.fresh_until && it.first.is_none_or(|first| holds(&first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Date = Date::from_unix(1_000);

    fn name(number: usize) -> Hint {
        Hint((number as u64).to_be_bytes())
    }

    #[test]
    fn what_is_evicted_or_stale_is_not_had() {
        let (mut stock, first) = (Stock::default(), ChunkId([1; 32]));
        stock.put(name(1), Some(first), Date::from_unix(1_010));
        assert!(stock.has(&name(1), NOW, |it| *it == first));
        assert!(!stock.has(&name(1), NOW, |_| false));
        assert!(!stock.has(&name(1), Date::from_unix(1_010), |_| true));
        stock.put(name(1), None, Date::from_unix(2_000));
        assert!(stock.has(&name(1), Date::from_unix(1_010), |_| false));
        stock.remove(&name(1));
        assert!(!stock.has(&name(1), NOW, |_| true));
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut stock = Stock::default();
        for number in 0..OBJECTS_MAX + 2 {
            stock.put(name(number), None, Date::from_unix(2_000));
            // What is stored again is not the oldest.
            stock.put(name(0), None, Date::from_unix(2_000));
        }
        assert_eq!((stock.by_name.len(), stock.order.len()), (OBJECTS_MAX, OBJECTS_MAX));
        let has = |number| stock.has(&name(number), NOW, |_| true);
        assert!(has(0) && !has(1) && !has(2) && has(3) && has(OBJECTS_MAX + 1));
    }

    #[test]
    fn evicted_and_stale_objects_are_swept_out_at_most_every_five_seconds() {
        let mut stock = Stock::default();
        let [held, gone] = [1, 2].map(|byte| ChunkId([byte; 32]));
        stock.put(name(3), Some(gone), Date::from_unix(2_000));
        stock.put(name(2), Some(held), Date::from_unix(1_010));
        stock.put(name(1), None, Date::from_unix(1_011));
        let holds = |unit: &ChunkId| *unit == held;
        assert_eq!(stock.sweep(Date::from_unix(1_009), holds), [name(3)]);
        assert_eq!(stock.sweep(Date::from_unix(1_010), holds), [name(2)]);
        assert_eq!(stock.names().collect::<Vec<_>>(), [name(1)]);
        let may = [0, 4_999_999_999, 5_000_000_000, 9_999_999_999]
            .map(|nanos| stock.may_sweep(Instant::from_nanos(nanos)));
        assert_eq!(may, [true, false, true, false]);
    }
}
