//! A fast hash for tables, the same on every run. Tables whose keys strangers choose seed it.

use std::hash::Hasher;

/// Multiplies and folds, eight bytes at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mix(u64);

impl Mix {
    /// A hash of its own for each seed, for tables whose keys strangers choose.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0xf39c_c060_5ced_c835) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u16(&mut self, word: u16) {
        self.mix(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.mix(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
