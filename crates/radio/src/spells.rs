//! Losses that come in spells: what one observer hears of one sender changes from time to time.
//!
//! A channel of two states (Gilbert, 1960) in continuous time. Its luck lasts as long as the way between
//! the two stays as it is: then a door closes, somebody walks by, a neighbour's network begins or ends, and
//! luck is drawn anew, bad with the probability `loss`. Such moments come at any time as likely, on average
//! each `mean`. So of all time the share `loss` is bad, bad spells last `mean / (1 - loss)` on average and
//! good ones `mean / loss`, and of two moments that are `t` apart luck is the same one with `exp(-t / mean)`.

use crate::chance::{PairChance, Probability};
use std::time::Duration;
use wire::Instant;

/// The luck of one observer with one sender.
#[derive(Clone, Debug)]
pub struct Spells {
    chance: PairChance,
    mean: Duration,
    is_bad: bool,
    /// Until when nothing changes.
    until: Instant,
}

impl Spells {
    /// Luck that is first drawn when it is first asked for.
    pub fn new(chance: PairChance, mean: Duration) -> Self {
        Self { chance, mean, is_bad: false, until: Instant::ZERO }
    }

    /// Whether nothing is heard at `now`, where this is so `loss` of all time.
    ///
    /// However many changes were missed since the last call, the last of them decides, and the time to
    /// the next is as long from any moment on. So one draw is enough.
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

    /// Luck each 2 ms.
    fn seen(loss: f64, mean_ms: u64, seed: u64) -> Vec<bool> {
        let mut spells = Spells::new(PairChance::new(seed, 3, 5), Duration::from_millis(mean_ms));
        let at = |step: u64| Instant::from_nanos(step * STEP.as_nanos() as u64);
        (0..STEPS).map(|step| spells.is_bad(at(step), Probability::new(loss))).collect()
    }

    fn share(bad: &[bool]) -> f64 {
        bad.iter().filter(|it| **it).count() as f64 / bad.len() as f64
    }

    /// How many looks in a row a bad spell takes on average.
    fn run(bad: &[bool]) -> f64 {
        let spells = bad.chunk_by(|a, b| a == b).filter(|it| it[0]);
        bad.iter().filter(|it| **it).count() as f64 / spells.count() as f64
    }

    #[test]
    fn in_the_long_run_the_share_is_lost_and_spells_are_as_long_as_they_should() {
        for (loss, mean_ms) in [(0.1, 20), (0.5, 20), (0.9, 20), (0.3, 1), (0.3, 200)] {
            let bad = seen(loss, mean_ms, 1);
            // From one look to the next luck is drawn anew with this probability; so many looks say as
            // little of the share as one that has nothing to do with the others.
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
    fn nothing_changes_for_who_looks_more_often() {
        // Twice as many looks see the same luck at those moments that both have, until one draws.
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
