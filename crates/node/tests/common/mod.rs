//! What the worlds of the engine's tests have in common: clients, origins, disks, chance, and what
//! must hold of a node at every step.

mod check;
mod client;
mod digests;
mod disk;
mod origin;
mod summary;

pub use check::{check, check_memory};
pub use client::{Call, Client, End, Pace, Turn};
pub use digests::{Trace, judge};
pub use disk::{Answer, Shelf};
pub use origin::{Event as OriginEvent, Origin, Page, noise};
use summary::{figures, summary};

use classes::Reach;
use std::time::Duration;
use wire::Date;

/// What date it is when a test begins.
pub const BEGIN: Date = Date::from_unix(2_000_000_000);

/// How a node and its disk are made.
#[derive(Clone)]
pub struct Options {
    pub seed: u64,
    pub memory_bytes: u64,
    pub store_bytes: u64,
    pub object_bytes_max: u64,
    /// The same for what no class decides on.
    pub undecided_bytes_max: u64,
    /// Each answer of the disk takes up to this long, and reads are answered out of order.
    pub disk_delay: Duration,
    /// Tables of content classes, and where a mirror's requests may go.
    pub reach: Reach,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            memory_bytes: 8 << 20,
            store_bytes: 64 << 20,
            object_bytes_max: 32 << 20,
            undecided_bytes_max: u64::MAX,
            disk_delay: Duration::ZERO,
            reach: Reach::default(),
        }
    }
}

/// Chance for a test: SplitMix64.
#[derive(Clone)]
pub struct Dice(pub u64);

impl Dice {
    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }

    /// True once in `of` times.
    pub fn once_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}
