//! Keyed hashes: a sender that does not know the key cannot choose which inputs collide in a table.
//!
//! *Source:* pair-multiply-shift (Thorup, High Speed Hashing for Integers and Strings, arXiv:1504.06804). If two
//! inputs of equal length were chosen without the key, the upper halves of their hashes are as good as random. It
//! takes one multiplication for eight bytes. The first step for every segment is a hash: with SipHash this took a
//! seventh of the engine's time. *Who calls it:* `table.rs`.

use std::hash::{Hash, Hasher};

/// The key has two numbers for each eight-byte word of an input. An input with more words than this would use the
/// same numbers twice; no table's keys are that long.
const WORDS_MAX: usize = 8;

/// The key.
#[derive(Clone, Debug)]
pub struct Keyed {
    pairs: [[u64; 2]; WORDS_MAX],
    first: u64,
}

impl Keyed {
    /// Derives the key from a seed.
    pub fn new(seed: &[u8; 32]) -> Self {
        let mut numbers = blake3::Hasher::new_keyed(seed).finalize_xof();
        let mut number = || {
            let mut bytes = [0; 8];
            numbers.fill(&mut bytes);
            u64::from_le_bytes(bytes)
        };
        Self { pairs: std::array::from_fn(|_| [number(), number()]), first: number() }
    }

    /// Hashes an input. Only the upper 32 bits of the result are the hash; any of these bits may be used alone.
    pub fn hash(&self, input: &impl Hash) -> u64 {
        let mut sum = Sum { keyed: self, words: 0, sum: self.first };
        input.hash(&mut sum);
        sum.sum
    }
}

/// A hash that is being computed.
struct Sum<'a> {
    keyed: &'a Keyed,
    words: usize,
    sum: u64,
}

impl Hasher for Sum<'_> {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        if let Some(to) = last.get_mut(..rest.len()).filter(|to| !to.is_empty()) {
            to.copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(last));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_u64(&mut self, word: u64) {
        let Some([a, b]) = self.keyed.pairs.get(self.words % WORDS_MAX) else { return };
        let (upper, lower) = (word >> 32, word & u64::from(u32::MAX));
        self.sum = self.sum.wrapping_add(a.wrapping_add(upper).wrapping_mul(b.wrapping_add(lower)));
        self.words += 1;
    }

    fn finish(&self) -> u64 {
        self.sum
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    /// The formula of the paper, for inputs of an even number of 32-bit words.
    fn plain(keyed: &Keyed, words: &[u32]) -> u32 {
        let terms = words.chunks(2).zip(&keyed.pairs).map(|(x, [a, b])| {
            (u128::from(*a) + u128::from(x[1])) * (u128::from(*b) + u128::from(x[0])) % (1 << 64)
        });
        let sum = terms.sum::<u128>() + u128::from(keyed.first);
        (sum >> 32) as u32
    }

    #[test]
    fn it_is_pair_multiply_shift() {
        let keyed = Keyed::new(&[5; 32]);
        for fill in 0..200_u32 {
            let words = [fill, fill.wrapping_mul(0x9e37_79b9), u32::MAX - fill, 1 << (fill % 32)];
            let mut sum = Sum { keyed: &keyed, words: 0, sum: keyed.first };
            sum.write(&words.map(u32::to_le_bytes).concat());
            assert_eq!((sum.finish() >> 32) as u32, plain(&keyed, &words));
        }
    }

    #[test]
    fn no_seed_hashes_like_another_and_no_byte_is_passed_over() {
        let input: [u8; 36] = std::array::from_fn(|i| i as u8);
        let hash = |seed, input: &[u8; 36]| Keyed::new(&[seed; 32]).hash(input) >> 32;
        let mut seen: Vec<_> = (0..20).map(|seed| hash(seed, &input)).collect();
        for i in 0..36 {
            let mut other = input;
            other[i] ^= 0x80;
            seen.push(hash(0, &other));
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
