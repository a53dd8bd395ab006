//! Random numbers, all derived from one seed: one stream for each station and purpose.
//!
//! An additional draw in one place therefore changes no draw elsewhere.

use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};
use std::time::Duration;

/// Probabilities are integers in units of 2^-53, which a double represents exactly.
const PROBABILITY_BITS: u32 = 53;

/// The purpose of a stream. The numbers must not change, or a seed would give other results.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Backoff = 1,
    Loss = 2,
    BitErrors = 3,
    Fading = 4,
    Spells = 5,
}

/// The streams of one station.
#[derive(Clone, Debug)]
pub struct Chance {
    backoff: Xoshiro256PlusPlus,
    loss: Xoshiro256PlusPlus,
    bit_errors: Xoshiro256PlusPlus,
    fading: Xoshiro256PlusPlus,
}

impl Chance {
    /// The streams of the station with this number.
    pub fn new(seed: u64, station: u16) -> Self {
        Self {
            backoff: stream(seed, Purpose::Backoff, station),
            loss: stream(seed, Purpose::Loss, station),
            bit_errors: stream(seed, Purpose::BitErrors, station),
            fading: stream(seed, Purpose::Fading, station),
        }
    }

    /// A number of slots from 0 to `window`, uniformly distributed.
    ///
    /// `window + 1` is a power of two, so multiplication and shifting (Lemire, 2019) give no bias.
    pub fn slots(&mut self, window: u32) -> u32 {
        debug_assert!((window + 1).is_power_of_two());
        let product = u128::from(self.backoff.next_u64()) * u128::from(window + 1);
        (product >> 64) as u32
    }

    /// Whether a frame survives with this probability.
    pub fn survives(&mut self, chance: f64) -> bool {
        chance > 0.0 && (chance >= 1.0 || part(self.bit_errors.next_u64()) < chance)
    }

    /// The factor by which Rayleigh fading multiplies the power of a frame: exponentially
    /// distributed with mean 1.
    pub fn fade(&mut self) -> f64 {
        exponential(self.fading.next_u64())
    }

    /// Draws an event with this probability.
    pub fn happens(&mut self, probability: Probability) -> bool {
        probability.0 > 0 && probability.takes(self.loss.next_u64())
    }
}

/// The stream of one pair of stations. A channel has many more pairs than stations, so its state is
/// small.
#[derive(Clone, Debug)]
pub struct PairChance(SplitMix64);

impl PairChance {
    /// The stream for the reception of `from` at `to`, both numbers of stations.
    pub fn new(seed: u64, from: u16, to: u16) -> Self {
        let pair = u64::from(from) << 16 | u64::from(to);
        Self(SplitMix64::seed_from_u64(start(seed, (Purpose::Spells as u64) << 32 | pair)))
    }

    /// Draws an event with this probability.
    pub fn happens(&mut self, probability: Probability) -> bool {
        probability.takes(self.0.next_u64())
    }

    /// The duration of a state that ends at a constant rate: exponentially distributed.
    pub fn lasts(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(exponential(self.0.next_u64()))
    }
}

/// A probability in units of 2^-53.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability(u64);

impl Probability {
    /// The nearest probability from 0 to 1; NaN counts as 0.
    pub fn new(probability: f64) -> Self {
        Self((probability.clamp(0.0, 1.0) * (1_u64 << PROBABILITY_BITS) as f64) as u64)
    }

    /// Whether the event happens, given 64 uniformly distributed bits.
    fn takes(self, bits: u64) -> bool {
        bits >> (64 - PROBABILITY_BITS) < self.0
    }
}

/// A number from 0 to below 1, uniformly distributed.
pub(crate) fn part(bits: u64) -> f64 {
    (bits >> (64 - PROBABILITY_BITS)) as f64 / (1_u64 << PROBABILITY_BITS) as f64
}

/// A number exponentially distributed with mean 1.
fn exponential(bits: u64) -> f64 {
    -libm::log1p(-part(bits))
}

fn stream(seed: u64, purpose: Purpose, station: u16) -> Xoshiro256PlusPlus {
    let place = (purpose as u64) << 16 | u64::from(station);
    Xoshiro256PlusPlus::seed_from_u64(start(seed, place))
}

/// The initial state of this stream.
fn start(seed: u64, place: u64) -> u64 {
    let root = SplitMix64::seed_from_u64(seed).next_u64();
    SplitMix64::seed_from_u64(root ^ place).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_even_over_the_window() {
        let mut chance = Chance::new(1, 0);
        let mut counts = [0_u32; 32];
        (0..32_000).for_each(|_| counts[chance.slots(31) as usize] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn probabilities_are_kept_at_both_ends() {
        let mut chance = Chance::new(1, 0);
        let mut count = |p| (0..10_000).filter(|_| chance.happens(Probability::new(p))).count();
        assert_eq!((count(0.0), count(-1.0), count(f64::NAN)), (0, 0, 0));
        assert_eq!((count(1.0), count(7.0)), (10_000, 10_000));
        assert!((2_850..3_150).contains(&count(0.3)));
    }

    #[test]
    fn fades_have_mean_one_and_many_are_deep() {
        let mut chance = Chance::new(1, 0);
        let fades: Vec<f64> = (0..100_000).map(|_| chance.fade()).collect();
        let mean = fades.iter().sum::<f64>() / fades.len() as f64;
        let deep = fades.iter().filter(|fade| **fade < 0.1).count();
        assert!((mean - 1.0).abs() < 0.013, "four standard deviations: {mean}");
        // A share of 1 - exp(-0.1).
        assert!((deep as f64 / 9516.0 - 1.0).abs() < 0.04, "{deep}");
    }

    #[test]
    fn streams_are_apart_and_come_back() {
        let draw = |seed, station| {
            let mut chance = Chance::new(seed, station);
            (0..8).map(|_| chance.slots(1023)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 0), draw(1, 0));
        assert_ne!(draw(1, 0), draw(1, 1));
        assert_ne!(draw(1, 0), draw(2, 0));
        // Draws for losses do not affect those for backoffs.
        let mut chance = Chance::new(1, 0);
        let drawn: Vec<_> = (0..8)
            .map(|_| {
                chance.happens(Probability::new(0.5));
                chance.slots(1023)
            })
            .collect();
        assert_eq!(drawn, draw(1, 0));
    }
}
