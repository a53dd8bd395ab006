//! Losses in bursts: a link's state towards an observer changes from time to time.
//!
//! This is the two-state channel of Gilbert (1960), in continuous time. The state lasts while the
//! radio path between the two stations stays the same; then a door closes, a person walks by, a
//! neighbour's network begins or ends, and the state is drawn again. It is bad with the probability
//! `loss`. The draws are a Poisson process with the mean interval `mean`. Therefore the link is bad for
//! the share `loss` of all time; a bad spell lasts `mean / (1 - loss)` on average, a good one `mean /
//! loss`; and the probability that no draw falls between two moments `t` apart is `exp(-t / mean)`.

use crate::chance::{PairChance, Probability};
use std::time::Duration;
use wire::Instant;

/// The state of one sender's signal at one observer.
#[derive(Clone, Debug)]
pub struct Spells {
    chance: PairChance,
    mean: Duration,
    is_bad: bool,
    /// The state is constant until then.
    until: Instant,
}

impl Spells {
    /// The first state is drawn when it is first asked for.
    pub fn new(chance: PairChance, mean: Duration) -> Self {
        Self { chance, mean, is_bad: false, until: Instant::ZERO }
    }

    /// Whether the observer receives nothing at `now`. `loss` is the share of time in which this is
    /// so.
    ///
    /// If several changes happened since the last call, only the last one matters, and the time to
    /// the next change does not depend on the past. One draw is therefore enough.
    pub fn is_bad(&mut self, now: Instant, loss: Probability) -> bool {
        if now >= self.until {
            self.is_bad = self.chance.happens(loss);
            self.until = now + self.chance.lasts(self.mean);
        }
        self.is_bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(2);
    const STEPS: u64 = 400_000;

    /// The state every 2 ms.
    fn seen(loss: f64, mean_ms: u64, seed: u64) -> Vec<bool> {
        let mut spells = Spells::new(PairChance::new(seed, 3, 5), Duration::from_millis(mean_ms));
        let at = |step: u64| Instant::from_nanos(step * STEP.as_nanos() as u64);
        (0..STEPS).map(|step| spells.is_bad(at(step), Probability::new(loss))).collect()
    }

    fn share(bad: &[bool]) -> f64 {
        bad.iter().filter(|it| **it).count() as f64 / bad.len() as f64
    }

    /// The average number of consecutive samples in a bad spell.
    fn run(bad: &[bool]) -> f64 {
        let spells = bad.chunk_by(|a, b| a == b).filter(|it| it[0]);
        bad.iter().filter(|it| **it).count() as f64 / spells.count() as f64
    }

    #[test]
    fn in_the_long_run_the_share_is_lost_and_spells_are_as_long_as_they_should() {
        for (loss, mean_ms) in [(0.1, 20), (0.5, 20), (0.9, 20), (0.3, 1), (0.3, 200)] {
            let bad = seen(loss, mean_ms, 1);
            // The probability that the state is drawn again between two samples. Samples are
            // correlated: `alike` of them give as much information about the share as one
            // independent sample.
            let anew = 1.0 - (-2.0 / mean_ms as f64).exp();
            let alike = (2.0 - anew) / anew;
            let deviation = (loss * (1.0 - loss) * alike / STEPS as f64).sqrt();
            let off = share(&bad) - loss;
            assert!(off.abs() < 4.0 * deviation, "{loss}, {mean_ms}: {off}");
            let expected = 1.0 / (anew * (1.0 - loss));
            let spells = STEPS as f64 * loss / expected;
            let off = run(&bad) / expected - 1.0;
            assert!(off.abs() < 4.0 / spells.sqrt(), "{loss}, {mean_ms}: {off}");
        }
    }

    #[test]
    fn what_is_always_or_never_lost_stays_so() {
        assert_eq!((share(&seen(0.0, 20, 1)), share(&seen(1.0, 20, 1))), (0.0, 1.0));
    }

    #[test]
    fn the_seed_decides_and_each_pair_has_luck_of_its_own() {
        assert_eq!(seen(0.5, 20, 1), seen(0.5, 20, 1));
        assert_ne!(seen(0.5, 20, 1), seen(0.5, 20, 2));
        let first = |from, to| PairChance::new(1, from, to).lasts(Duration::from_secs(1));
        assert_eq!(first(1, 2), first(1, 2));
        assert_ne!(first(1, 2), first(2, 1));
    }

    #[test]
    fn sampling_more_often_changes_nothing() {
        // A second observer that samples twice as often sees the same state, until a new one is
        // drawn.
        let mean = Duration::from_secs(1);
        let mut often = Spells::new(PairChance::new(1, 0, 1), mean);
        let loss = Probability::new(0.5);
        let begun = often.is_bad(Instant::ZERO, loss);
        let last = often.until;
        let before = Instant::from_nanos(last.as_nanos() - 1);
        assert!((1..1000).all(|_| often.is_bad(before, loss) == begun));
        assert_eq!(often.until, last);
        often.is_bad(last, loss);
        assert!(often.until > last);
    }
}
