//! Profiles: which sizes of chunks there are, and how rare their boundaries must be.
//!
//! *What this is:* [`Profile`], an explicit list of four nested levels. Its id stands in manifests
//! and in the hello between peers, because two nodes share names only if they cut alike. *Who calls
//! it:* whoever cuts or reads manifests. *What it never does:* compute limits from wishes at run
//! time; every figure is written out. *Where to start:* [`Profile::DEFAULT`]. *Source:* Ditto (8 KiB
//! units) and Wanax §3.2 (several nested resolutions); why these figures:
//! `docs/decisions/0001-nested-gear-chunking.md`.

use crate::rolling::{QUIET, WINDOW};

/// One size of chunk. All figures in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The mean length on content without structure, in bytes.
    pub average: u32,
    /// No chunk is shorter, except the last one of what is being cut.
    pub minimum: u32,
    /// No chunk is longer.
    pub maximum: u32,
    /// A hash matches at one position in this many.
    ///
    /// Not `average - minimum`: the ends forced by the maximum and, for a level made of whole chunks of
    /// the level below, the way to the next end of such a chunk have to be made up for.
    one_in: u32,
}

impl Level {
    const fn new(average: u32, minimum: u32, maximum: u32, one_in: u32) -> Self {
        let level = Self { average, minimum, maximum, one_in };
        assert!(minimum >= WINDOW as u32, "the window must lie inside the chunk");
        assert!(minimum < average && average < maximum);
        assert!(level.limit() <= QUIET, "constant runs must not match");
        level
    }

    /// A hash below this matches: a boundary may lie behind the 64 bytes that it stands for.
    pub(crate) const fn limit(&self) -> u64 {
        u64::MAX / self.one_in as u64
    }
}

/// A named choice of levels; each one's boundaries are also boundaries of the next finer one.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// What manifests and the hello between peers call it.
    pub id: u8,
    /// Runs of units that are stored and read together.
    pub parent: Level,
    /// What is named, requested, sent over the air, sealed and stored.
    pub unit: Level,
    /// The coarser subdivision of a unit, for the uplink only.
    pub piece: Level,
    /// The finer subdivision of a unit, for the uplink only.
    pub grain: Level,
}

impl Profile {
    /// The profile of every mesh unless configured otherwise: 64 KiB, 8 KiB, 1 KiB and 128 B.
    pub const DEFAULT: &'static Self = &Self {
        id: 1,
        parent: Level::new(64 * KIB, 16 * KIB, 256 * KIB, 26_850),
        unit: Level::new(8 * KIB, 4 * KIB, 16 * KIB, 4_400),
        piece: Level::new(KIB, 512, 4 * KIB, 325),
        grain: Level::new(128, 64, 512, 66),
    };

    /// For comparisons with the paper's chunks of 32 KiB: no unit may be longer, so they have 24 to 32.
    pub const COARSE: &'static Self = &Self {
        id: 2,
        parent: Level::new(256 * KIB, 64 * KIB, 1024 * KIB, 37_000),
        unit: Level::new(30 * KIB, 24 * KIB, 32 * KIB, 13_000),
        piece: Level::new(KIB, 512, 4 * KIB, 325),
        grain: Level::new(128, 64, 512, 66),
    };

    /// The profile of that id, if this version knows it.
    pub fn from_id(id: u8) -> Option<&'static Self> {
        [Self::DEFAULT, Self::COARSE].into_iter().find(|it| it.id == id)
    }
}

const KIB: u32 = 1024;
