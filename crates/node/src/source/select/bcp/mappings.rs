//! The paper's mapping table: which router has an object (MeshCache §7.3, steps 7, 14 and 15).

use crate::source::select::oldest::make_room;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use wire::{Hint, Instant};

/// The most mappings; the oldest makes room.
const MAPPINGS_MAX: usize = 4096;

/// The table.
#[derive(Debug)]
pub struct Mappings {
    refresh: Duration,
    by_name: BTreeMap<Hint, (IpAddr, Instant)>,
}

impl Mappings {
    /// An empty table, whose entries hold for `refresh`.
    pub fn new(refresh: Duration) -> Self {
        Self { refresh, by_name: BTreeMap::new() }
    }

    /// The router that has an object.
    pub fn get(&self, now: Instant, name: &Hint) -> Option<IpAddr> {
        let (holder, at) = self.by_name.get(name)?;
        (now - *at <= self.refresh).then_some(*holder)
    }

    /// A router has an object.
    pub fn put(&mut self, now: Instant, name: Hint, holder: IpAddr) {
        make_room(&mut self.by_name, MAPPINGS_MAX, &name, |(_, at)| *at);
        self.by_name.insert(name, (holder, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_expire_and_are_bounded() {
        let refresh = Duration::from_secs(60);
        let mut mappings = Mappings::new(refresh);
        let holder = IpAddr::from([10, 0, 0, 9]);
        let name = |n: usize| Hint((n as u64).to_be_bytes());
        mappings.put(Instant::ZERO, name(1), holder);
        assert_eq!(mappings.get(Instant::ZERO + refresh, &name(1)), Some(holder));
        assert_eq!(mappings.get(Instant::ZERO + refresh * 2, &name(1)), None);
        let later = Instant::ZERO + refresh;
        (2..2 * MAPPINGS_MAX).for_each(|n| mappings.put(later, name(n), holder));
        assert_eq!(mappings.by_name.len(), MAPPINGS_MAX);
        assert_eq!(mappings.get(later, &name(1)), None);
    }
}
