//! Searches of other routers: each is passed on once, a little later, so that neighbours do not send at once.

use super::heard::Heard;
use crate::chance::Chance;
use crate::source::select::oldest::make_room;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use wire::Instant;
use wire::peer::Locate;

/// A locate waits up to this long before it is passed on. The paper names no value; a few slots of 802.11b's
/// contention (20 µs each, 32 at most) and one frame fit into it.
const JITTER: Duration = Duration::from_millis(2);
/// The most routers whose searches are remembered; the one heard longest ago makes room.
const ORIGINS_MAX: usize = 256;
/// The most locates that wait to be passed on.
const PENDING_MAX: usize = 64;
/// A router that has been silent for this long may have started anew with an earlier clock.
const FORGET_AFTER: Duration = Duration::from_secs(600);
/// The air that a passed-on locate takes, at 802.11b's basic rate of 1 Mb/s: 192 µs of preamble, 100 bytes, and the pauses
/// around them.
const AIR: Duration = Duration::from_micros(1_500);
/// Locates of others take at most one part in this of the air (decision 0033) …
const AIR_SHARE: u32 = 20;
/// … and so much of it at once.
const AIR_BURST: Duration = Duration::from_millis(250);

/// Searches of others; see the module.
#[derive(Debug, Default)]
pub struct Flood {
    /// For each router, when something new of it was heard last.
    heard: BTreeMap<IpAddr, (Instant, Heard)>,
    is_sealed: bool,
    pending: BTreeMap<(Instant, u64), Locate>,
    drawn: u64,
    /// Air used lately, and until when it was reckoned.
    used: Duration,
    reckoned: Instant,
}

impl Flood {
    /// Nothing was heard yet. `is_sealed`: only routers with the mesh key are heard.
    pub fn new(is_sealed: bool) -> Self {
        Self { is_sealed, ..Self::default() }
    }

    /// Whether this search was not heard before. It is remembered.
    pub fn is_new(&mut self, now: Instant, locate: &Locate) -> bool {
        let origin = locate.origin;
        let known = self.heard.get_mut(&origin).filter(|(at, _)| now - *at <= FORGET_AFTER);
        if let Some((at, heard)) = known {
            let is_new = heard.is_new(now, locate);
            if is_new {
                *at = now;
            }
            return is_new;
        }
        make_room(&mut self.heard, ORIGINS_MAX, &origin, |(at, _)| *at);
        self.heard.insert(origin, (now, Heard::first(now, locate, self.is_sealed)));
        true
    }

    /// Passes a locate on after a random pause; false if that would take too much air.
    pub fn pass_on(&mut self, now: Instant, locate: Locate, chance: &mut Chance) -> bool {
        self.used = self.used.saturating_sub((now - self.reckoned) / AIR_SHARE);
        self.reckoned = now;
        if self.used + AIR > AIR_BURST || self.pending.len() >= PENDING_MAX {
            return false;
        }
        self.used += AIR;
        self.drawn += 1;
        self.pending.insert((now + chance.up_to(JITTER), self.drawn), locate);
        true
    }

    /// The next locate whose time has come.
    pub fn due(&mut self, now: Instant) -> Option<Locate> {
        let first = self.pending.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(first.remove())
    }

    /// When the next locate is due.
    pub fn next(&self) -> Option<Instant> {
        self.pending.keys().next().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use wire::Hint;
    use wire::peer::Search;

    fn locate(boot: u64, sequence: u32) -> Locate {
        let search = Search { boot, sequence };
        Locate { origin: [10, 0, 0, 1].into(), search, name: Hint([1; 8]), ttl: 3, hops: 1 }
    }

    proptest! {
        /// Among searches that arrive at most 64 out of order, each is new once.
        #[test]
        fn each_search_is_new_once(order in proptest::collection::vec(0_u32..64, 1..200)) {
            let (mut flood, mut heard) = (Flood::new(true), BTreeSet::new());
            for (at, late) in order.into_iter().enumerate() {
                let sequence = 64 + at as u32 - late;
                let is_new = flood.is_new(Instant::ZERO, &locate(1, sequence));
                prop_assert_eq!(is_new, heard.insert(sequence), "{}", sequence);
            }
        }
    }

    #[test]
    fn an_earlier_start_is_a_replay_until_the_router_is_forgotten() {
        let mut flood = Flood::new(true);
        assert!(flood.is_new(Instant::ZERO, &locate(5, 10)));
        assert!(flood.is_new(Instant::ZERO, &locate(6, 10)));
        assert!(flood.is_new(Instant::ZERO, &locate(7, 10)), "the same number after another start");
        assert!(flood.is_new(Instant::ZERO, &locate(8, 0)));
        assert!(!flood.is_new(Instant::ZERO, &locate(5, 11)));
        assert!(!flood.is_new(Instant::ZERO, &locate(8, 0)));
        let later = Instant::ZERO + FORGET_AFTER + Duration::from_secs(1);
        assert!(flood.is_new(later, &locate(1, 0)));
        assert!(!flood.is_new(later, &locate(1, 0)));
    }

    #[test]
    fn a_flood_takes_a_twentieth_of_the_air_and_bounded_memory() {
        let (mut flood, mut chance) = (Flood::new(true), Chance::new([1; 32]));
        let (mut now, mut passed) = (Instant::ZERO, 0_u32);
        for n in 0..5_000_u32 {
            now = now + Duration::from_millis(2);
            let origin = IpAddr::from(n.to_be_bytes());
            let locate = Locate { origin, ..locate(1, n) };
            assert!(flood.is_new(now, &locate));
            flood.pass_on(now, locate, &mut chance);
            while let Some(due) = flood.due(now) {
                assert!(due.ttl > 0);
                passed += 1;
            }
            assert!(flood.pending.len() <= PENDING_MAX && flood.heard.len() <= ORIGINS_MAX);
        }
        let most = (now - Instant::ZERO) / AIR_SHARE + AIR_BURST;
        assert!(AIR * passed <= most, "{passed}");
        assert!(AIR * passed >= most - AIR_BURST * 2, "{passed}");
    }

    #[test]
    fn a_flood_passes_on_64_at_once_and_166_in_one_burst() {
        let (mut flood, mut chance) = (Flood::new(true), Chance::new([1; 32]));
        let now = Instant::ZERO;
        let mut pass_on = |flood: &mut Flood, count: u32| {
            (0..count).filter(|n| flood.pass_on(now, locate(1, *n), &mut chance)).count()
        };
        assert_eq!(pass_on(&mut flood, 70), 64);
        while flood.due(now + JITTER).is_some() {}
        // A quarter of a second has room for 166 of 1.5 ms, and 64 have gone.
        assert_eq!(pass_on(&mut flood, 60), 60);
        while flood.due(now + JITTER).is_some() {}
        assert_eq!(pass_on(&mut flood, 60), 166 - 64 - 60);
    }

    #[test]
    fn a_257th_router_replaces_the_one_heard_longest_ago() {
        let mut flood = Flood::new(true);
        let mut is_new = |millis, router: u32| {
            let origin = IpAddr::from(router.to_be_bytes());
            flood.is_new(Instant::from_nanos(millis), &Locate { origin, ..locate(1, 1) })
        };
        assert!((0..256).all(|router| is_new(router.into(), router)));
        assert!(!is_new(300, 0), "all are remembered");
        assert!(is_new(301, 256));
        assert!(!is_new(302, 1) && is_new(303, 0));
    }
}
