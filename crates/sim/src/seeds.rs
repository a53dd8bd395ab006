//! Seeds of the random streams of a run, one for each use, derived from the run's.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore as _, SeedableRng as _};

/// A seed for one of a world's machines, derived from the world's. `purpose` separates the streams of a
/// machine.
pub fn seed(seed: u64, machine: usize, purpose: u16) -> u64 {
    // The salt separates these streams from those that the medium derives from the same seed.
    let root = SplitMix64::seed_from_u64(seed ^ u64::from_be_bytes(*b"machines")).next_u64();
    let place = (machine as u64) << 16 | u64::from(purpose);
    SplitMix64::seed_from_u64(root ^ place).next_u64()
}
