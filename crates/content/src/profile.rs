//! Chunking profiles: the sizes of chunks, and how rare their boundaries are.
//!
//! *What this is:* [`Profile`], with four nested levels. Its id is in manifests and in the hello
//! between peers, because two nodes share names only if they cut in the same way. *Who calls it:*
//! code that cuts objects or reads manifests. *What it never does:* compute limits at run time;
//! every figure is written out. *Where to start:* [`Profile::DEFAULT`]. *Source:* Ditto (8 KiB
//! units) and Wanax §3.2 (several nested resolutions); reasons for the figures:
//! `docs/decisions/0001-nested-gear-chunking.md`.

use crate::rolling::{QUIET, WINDOW};

/// One level of chunks. All lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The mean length for content without structure, in bytes.
    pub average: u32,
    /// The least length, except for the last chunk of the data that is cut.
    pub minimum: u32,
    /// The greatest length.
    pub maximum: u32,
    /// The hash matches at one position in this many, on average.
    ///
    /// This is not `average - minimum`. Chunks that end at the maximum shorten the average. At a
    /// level of whole smaller chunks, a chunk also extends to the end of the next smaller one.
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

    /// A hash below this value matches: the 64 bytes that it covers may be followed by a boundary.
    pub(crate) const fn limit(&self) -> u64 {
        u64::MAX / self.one_in as u64
    }
}

/// A set of levels with an id. Each boundary of a level is also a boundary of the next finer level.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its id in manifests and in the hello between peers.
    pub id: u8,
    /// Runs of units, which are stored and read together.
    pub parent: Level,
    /// The unit of naming, requests, transmission, sealing and storage.
    pub unit: Level,
    /// The coarser division of a unit, for the uplink only.
    pub piece: Level,
    /// The finer division of a unit, for the uplink only.
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

    /// For comparisons with papers that use chunks of 32 KiB. No unit may be longer than that, so
    /// units have 24 to 32 KiB.
    pub const COARSE: &'static Self = &Self {
        id: 2,
        parent: Level::new(256 * KIB, 64 * KIB, 1024 * KIB, 37_000),
        unit: Level::new(30 * KIB, 24 * KIB, 32 * KIB, 13_000),
        piece: Level::new(KIB, 512, 4 * KIB, 325),
        grain: Level::new(128, 64, 512, 66),
    };

    /// The profile with this id, if this version knows it.
    pub fn from_id(id: u8) -> Option<&'static Self> {
        [Self::DEFAULT, Self::COARSE].into_iter().find(|it| it.id == id)
    }
}

const KIB: u32 = 1024;
