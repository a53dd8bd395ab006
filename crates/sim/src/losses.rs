//! Packets lost by chance: on a wire, and in a station above its MAC.
//!
//! *Who calls it:* pipes, and the two media: the simulator's world and the lab's air. *What it never does:*
//! share a random stream: each wire and each station has one of its own, so that a loss at one place changes
//! nothing elsewhere. *Where to start:* [`AboveMac`].

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore as _, SeedableRng as _};

use crate::seeds;

/// A draw has this many bits, as many as a double represents exactly.
const DRAW_BITS: u32 = 53;
/// Number of the stations' streams among those of a seed. Changing it changes runs.
const ABOVE_MAC: u16 = 6;

/// Decides which packets are lost.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    chance: Xoshiro256PlusPlus,
    /// A packet is lost if its draw, of [`DRAW_BITS`] bits, is below this.
    below: u64,
}

impl Losses {
    /// Losses with this probability; `None` if nothing is ever lost.
    ///
    /// # Panics
    ///
    /// If the probability is not between 0 and 1.
    pub fn new(probability: f64, seed: u64) -> Option<Self> {
        assert!((0.0..=1.0).contains(&probability), "a probability is between 0 and 1");
        let below = (probability * (1_u64 << DRAW_BITS) as f64) as u64;
        let losses = || Self { chance: Xoshiro256PlusPlus::seed_from_u64(seed), below };
        (probability > 0.0).then(losses)
    }

    /// Whether the next packet is lost.
    pub fn draw(&mut self) -> bool {
        self.chance.next_u64() >> (u64::BITS - DRAW_BITS) < self.below
    }
}

/// Loses packets that a station's MAC has received for the station, and acknowledged, before IP sees them: the
/// sender's MAC takes them for delivered. Broadcasts, and what stations overhear, are not affected.
#[derive(Clone, Debug, Default)]
pub struct AboveMac {
    /// One for each station; empty if nothing is ever lost.
    stations: Vec<Losses>,
}

impl AboveMac {
    /// Losses with this probability at each of some stations; `seed` is the run's.
    ///
    /// # Panics
    ///
    /// If the probability is not between 0 and 1.
    pub fn new(probability: f64, stations: usize, seed: u64) -> Self {
        let losses = |at| Losses::new(probability, seeds::seed(seed, at, ABOVE_MAC));
        Self { stations: (0..stations).filter_map(losses).collect() }
    }

    /// Whether the packet that a station has just received is lost.
    pub fn loses(&mut self, station: usize) -> bool {
        self.stations.get_mut(station).is_some_and(Losses::draw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_station_loses_its_share_by_draws_of_its_own() {
        let lost = |order: &[usize]| {
            let mut losses = AboveMac::new(0.1, 3, 1);
            order.iter().filter(|it| losses.loses(**it)).copied().collect::<Vec<_>>()
        };
        // Three standard deviations of a binomial distribution with 10,000 draws are 90.
        let alone = lost(&[0; 10_000]).len();
        assert!((910..=1_090).contains(&alone), "{alone}");
        // Other stations' draws change nothing.
        let mixed: Vec<_> = (0..30_000).map(|it| it % 3).collect();
        let mixed = lost(&mixed);
        assert_eq!(mixed.iter().filter(|it| **it == 0).count(), alone);
        assert_ne!(mixed.iter().filter(|it| **it == 1).count(), 0);
    }

    #[test]
    fn without_a_probability_nothing_is_lost() {
        let mut losses = AboveMac::new(0.0, 2, 1);
        assert!(!(0..1_000).any(|it| losses.loses(it % 2)));
    }
}
