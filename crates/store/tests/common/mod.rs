//! Shared by the tests: units whose names follow from their bytes, and a small random generator.
#![allow(dead_code)]

pub mod faulty;
pub mod history;
pub mod paper;
pub mod recorder;
pub mod segment;

use bytes::Bytes;
use store::{Provenance, Unit};
use wire::ChunkId;

/// A name that follows from the bytes, like a hash.
pub fn name_of(bytes: &[u8]) -> ChunkId {
    let mut id = [0; 32];
    for (lane, out) in id.chunks_exact_mut(8).enumerate() {
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ (lane as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = mix(hash ^ u64::from_le_bytes(word));
        }
        out.copy_from_slice(&mix(hash ^ bytes.len() as u64).to_be_bytes());
    }
    ChunkId(id)
}

/// The name of unit `number` in a workload without bytes.
pub fn name_number(number: u64) -> ChunkId {
    name_of(&number.to_le_bytes())
}

/// A unit of this length, different for each seed.
pub fn unit(seed: u64, length: usize) -> Unit {
    let mut random = Random(seed);
    let mut bytes = vec![0; length];
    for chunk in bytes.chunks_mut(8) {
        let word = random.next().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
    Unit {
        id: name_of(&bytes),
        bytes: Bytes::from(bytes),
        provenance: Provenance::Own,
        on_probation: false,
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Zipf's law over `0..n`, by its cumulative weights.
pub struct Zipf(Vec<f64>);

impl Zipf {
    pub fn new(n: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let weight = |rank: usize| 1.0 / ((rank + 1) as f64).powf(exponent);
        Self(
            (0..n)
                .map(|rank| {
                    sum += weight(rank);
                    sum
                })
                .collect(),
        )
    }

    pub fn draw(&self, random: &mut Random) -> u64 {
        let at = random.unit() * self.0.last().copied().unwrap_or(0.0);
        self.0.partition_point(|sum| *sum <= at) as u64
    }
}
