//! Random bytes from a seed.

use std::time::Duration;

/// Draws BLAKE3 of a counter, keyed with the seed.
#[derive(Debug)]
pub struct Chance {
    seed: [u8; 32],
    drawn: u64,
}

impl Chance {
    pub fn new(seed: &[u8; 32]) -> Self {
        Self { seed: blake3::derive_key("hearsay 2026-11 chance of searches", seed), drawn: 0 }
    }

    /// The next bytes; none are drawn twice.
    pub fn draw(&mut self) -> [u8; 24] {
        self.drawn += 1;
        let hash = blake3::keyed_hash(&self.seed, &self.drawn.to_le_bytes());
        let mut bytes = [0; 24];
        bytes.copy_from_slice(&hash.as_bytes()[..24]);
        bytes
    }

    /// A duration up to this one, all equally likely.
    pub fn up_to(&mut self, most: Duration) -> Duration {
        let [a, b, c, d, ..] = self.draw();
        most.mul_f64(f64::from(u32::from_le_bytes([a, b, c, d])) / f64::from(u32::MAX))
    }
}
