//! The search timeout: fixed, or the one that would have been best for the latest searches.

use super::searches::Past;
use crate::input::SearchTimeout;
use std::collections::VecDeque;
use std::time::Duration;

/// The latest searches that count.
const PAST_MAX: usize = 64;
/// The paper's timeout is used until this many searches are known.
const PAST_MIN: usize = 8;
/// The timeouts among which the best is chosen.
const STEP: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(200);

/// The search timeout; see the module.
#[derive(Debug)]
pub struct Clock {
    /// The latest searches, oldest first; `None` if the timeout is fixed.
    past: Option<VecDeque<Past>>,
    now: Duration,
}

impl Clock {
    pub fn new(timeout: SearchTimeout) -> Self {
        match timeout {
            SearchTimeout::Fixed(fixed) => Self { past: None, now: fixed },
            SearchTimeout::Adaptive => {
                Self { past: Some(VecDeque::new()), now: SearchTimeout::PAPER }
            }
        }
    }

    /// How long the next search waits for answers.
    pub fn timeout(&self) -> Duration {
        self.now
    }

    /// A request that was searched for has ended.
    pub fn learn(&mut self, search: Past) {
        let Some(past) = &mut self.past else { return };
        past.push_back(search);
        if past.len() > PAST_MAX {
            past.pop_front();
        }
        if past.len() >= PAST_MIN
            && let Some(best) = best(past)
        {
            self.now = best;
        }
    }
}

/// The timeout with the least mean time for these searches: waiting, and then fetching at the cost of the nearest
/// router that answered by then. What a unit of cost takes is the mean of these fetches.
fn best(past: &VecDeque<Past>) -> Option<Duration> {
    let fetched = past.iter().filter_map(|it| it.fetched);
    let (took, cost) = fetched.fold((0.0, 0.0), |(took, cost), it| {
        (took + it.took.as_secs_f64(), cost + f64::from(it.cost))
    });
    if cost <= 0.0 {
        return None;
    }
    let (a_cost, timeouts) = (took / cost, (1..).map(|n| STEP * n).take_while(|it| *it <= LONGEST));
    let mean = |timeout: Duration| {
        let costs = past.iter().map(|it| f64::from(it.cost_by(timeout))).sum::<f64>();
        timeout.as_secs_f64() + costs * a_cost / past.len() as f64
    };
    timeouts.min_by(|a, b| mean(*a).total_cmp(&mean(*b)))
}

#[cfg(test)]
mod tests {
    use super::super::searches::Fetched;
    use super::*;

    /// A search that found a router of this cost after `after_ms` milliseconds; the gateway costs 1024.
    fn search(after_ms: u64, cost: u32) -> Past {
        Past {
            founds: vec![(Duration::from_millis(after_ms), cost)],
            gateway: 1024,
            fetched: Some(Fetched { took: Duration::from_millis(400), cost: 1024 }),
        }
    }

    #[test]
    fn a_fixed_timeout_stays() {
        let fixed = Duration::from_millis(7);
        let mut clock = Clock::new(SearchTimeout::Fixed(fixed));
        (0..100).for_each(|_| clock.learn(search(60, 256)));
        assert_eq!(clock.timeout(), fixed);
    }

    #[test]
    fn it_waits_as_long_as_waiting_pays() {
        let mut clock = Clock::new(SearchTimeout::Adaptive);
        assert_eq!(clock.timeout(), SearchTimeout::PAPER);
        // A nearer copy saves 300 ms and is known after 60.
        (0..100).for_each(|_| clock.learn(search(60, 256)));
        assert_eq!(clock.timeout(), Duration::from_millis(60));
        // It saves 12 ms only: waiting for it costs more than it saves.
        (0..100).for_each(|_| clock.learn(search(60, 992)));
        assert_eq!(clock.timeout(), STEP);
        // Half of the copies are known early: for the others it does not wait.
        (0..100)
            .for_each(|n| clock.learn(if n % 2 == 0 { search(10, 256) } else { search(190, 900) }));
        assert_eq!(clock.timeout(), Duration::from_millis(10));
    }

    #[test]
    fn eight_searches_are_enough_and_the_latest_64_count() {
        let mut clock = Clock::new(SearchTimeout::Adaptive);
        (0..7).for_each(|_| clock.learn(search(60, 256)));
        assert_eq!(clock.timeout(), SearchTimeout::PAPER);
        clock.learn(search(60, 256));
        assert_eq!(clock.timeout(), Duration::from_millis(60));
        (0..56).for_each(|_| clock.learn(search(60, 256)));
        let known = |clock: &Clock| clock.past.as_ref().map(VecDeque::len);
        assert_eq!(known(&clock), Some(64));
        clock.learn(search(60, 256));
        assert_eq!(known(&clock), Some(64));
    }

    #[test]
    fn the_timeout_is_200_ms_at_most() {
        for (after_ms, waits_ms) in [(200, 200), (201, 5)] {
            let mut clock = Clock::new(SearchTimeout::Adaptive);
            (0..8).for_each(|_| clock.learn(search(after_ms, 256)));
            assert_eq!(clock.timeout(), Duration::from_millis(waits_ms));
        }
    }
}
