//! Random bytes from a seed.

use std::time::Duration;

/// Draws BLAKE3 of a counter, keyed with the seed, which must not be used for anything else.
#[derive(Debug)]
pub struct Chance {
    seed: [u8; 32],
    drawn: u64,
}

impl Chance {
    pub fn new(seed: [u8; 32]) -> Self {
        Self { seed, drawn: 0 }
    }

    /// The next bytes, 32 at most; none are drawn twice.
    pub fn draw<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= blake3::OUT_LEN) };
        self.drawn += 1;
        let hash = blake3::keyed_hash(&self.seed, &self.drawn.to_le_bytes());
        std::array::from_fn(|at| hash.as_bytes()[at])
    }

    /// A duration up to this one, all equally likely.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        most.mul_f64(f64::from(u32::from_le_bytes(self.draw())) / f64::from(u32::MAX))
    }
}
