//! Routers that said *found* and did not help (decision 0033).

use super::oldest::make_room;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use wire::Instant;

/// A router that failed this often is not asked any more …
const FAILURES_MAX: u8 = 3;
/// … until it has not failed for this long.
const DOUBTED_FOR: Duration = Duration::from_secs(600);
/// The most routers in the table; the one that failed longest ago makes room.
const ROUTERS_MAX: usize = 256;

/// The table.
#[derive(Debug, Default)]
pub struct Doubts(BTreeMap<IpAddr, (u8, Instant)>);

impl Doubts {
    /// A router did not help.
    pub fn failed(&mut self, now: Instant, router: IpAddr) {
        make_room(&mut self.0, ROUTERS_MAX, &router, |(_, at)| *at);
        let (count, at) = self.0.entry(router).or_insert((0, now));
        *count = if now - *at > DOUBTED_FOR { 1 } else { count.saturating_add(1) };
        *at = now;
    }

    /// A router helped.
    pub fn helped(&mut self, router: IpAddr) {
        self.0.remove(&router);
    }

    /// How often a router failed lately; `None` if it should not be asked.
    pub fn of(&self, now: Instant, router: IpAddr) -> Option<u8> {
        match self.0.get(&router) {
            Some((count, at)) if now - *at <= DOUBTED_FOR => {
                (*count < FAILURES_MAX).then_some(*count)
            }
            _ => Some(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_three_failures_a_router_is_left_alone_for_ten_minutes() {
        let (mut doubts, liar) = (Doubts::default(), IpAddr::from([10, 0, 0, 9]));
        let now = Instant::ZERO;
        let counts = [Some(0), Some(1), Some(2), None, None].map(|expected| {
            assert_eq!(doubts.of(now, liar), expected);
            doubts.failed(now, liar);
        });
        assert_eq!(counts.len(), 5);
        let later = now + DOUBTED_FOR + Duration::from_secs(1);
        assert_eq!(doubts.of(later, liar), Some(0));
        doubts.failed(later, liar);
        assert_eq!(doubts.of(later, liar), Some(1), "it counts anew");
        doubts.helped(liar);
        assert_eq!(doubts.of(later, liar), Some(0));
    }

    #[test]
    fn the_table_is_bounded() {
        let mut doubts = Doubts::default();
        for n in 0..10_000_u32 {
            doubts.failed(
                Instant::ZERO + Duration::from_millis(n.into()),
                IpAddr::from(n.to_be_bytes()),
            );
        }
        assert_eq!(doubts.0.len(), ROUTERS_MAX);
        let newest = IpAddr::from(9_999_u32.to_be_bytes());
        assert_eq!(doubts.of(Instant::ZERO + Duration::from_secs(10), newest), Some(1));
    }
}
