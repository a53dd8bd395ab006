//! The schemes that are compared, each a choice of levels of a division (Wanax §3.2, §4.1).

use serde::{Serialize, Serializer};

/// The average length of the root chunks of Wanax's trees, in bytes (§4.1).
pub const LARGEST: u32 = 64 << 10;

/// The least average length of chunks, in bytes (§4.1).
pub const SMALLEST: u32 = 32;

/// The degrees of Wanax's trees (§4.1).
const DEGREES: [u32; 3] = [2, 4, 8];

/// How a scheme stores and finds chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Single-resolution chunking: chunks of one level.
    Src,
    /// Multi-resolution chunking: chunks of all levels, each stored by itself.
    Mrc,
    /// As MRC, but only the smallest chunks are stored: a larger one is read in parts.
    MrcSmall,
    /// As MRC, but only the largest chunks are stored: a smaller one is a part of them, and its entry names it.
    MrcLarge,
    /// The product's four levels and its rolling hash, by the rules of MRC.
    Ours,
}

impl Kind {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Src => "src",
            Self::Mrc => "mrc",
            Self::MrcSmall => "mrc-small",
            Self::MrcLarge => "mrc-large",
            Self::Ours => "ours",
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(self.name())
    }
}

/// A scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// How it stores chunks.
    pub kind: Kind,
    /// Children of a chunk, on average; `None` for SRC and for ours, whose levels are not evenly apart.
    pub degree: Option<u32>,
    /// The average lengths of its chunks in bytes, the largest first. Not empty.
    pub averages: Vec<u32>,
    /// The places of these levels in the division that it is cut by.
    pub(super) levels: Vec<usize>,
    /// The same places as a set, a bit for each.
    pub(super) mask: u16,
}

impl Scheme {
    /// All schemes over a division with these averages, powers of two from [`LARGEST`] down: SRC of each, and trees of
    /// each degree and each depth. The smallest chunks go first.
    pub(super) fn of_paper(averages: &[u32]) -> Vec<Self> {
        let single = |level: usize| Self::new(Kind::Src, None, averages, vec![level]);
        let trees = |kind, degree: u32| {
            let step = degree.ilog2() as usize;
            let levels: Vec<_> = (0..averages.len()).step_by(step).collect();
            let tree = |depth| Self::new(kind, Some(degree), averages, levels[..depth].to_vec());
            (2..=levels.len()).rev().map(tree).collect::<Vec<_>>()
        };
        let singles = (0..averages.len()).rev().map(single);
        let kept = DEGREES.into_iter().flat_map(|degree| trees(Kind::Mrc, degree));
        let other = [Kind::MrcSmall, Kind::MrcLarge].into_iter().flat_map(|kind| trees(kind, 2));
        singles.chain(kept).chain(other).collect()
    }

    /// The scheme of the product, over all levels of its division.
    pub(super) fn ours(averages: &[u32]) -> Self {
        Self::new(Kind::Ours, None, averages, (0..averages.len()).collect())
    }

    fn new(kind: Kind, degree: Option<u32>, all: &[u32], levels: Vec<usize>) -> Self {
        let averages = levels.iter().map(|&level| all[level]).collect();
        let mask = levels.iter().fold(0, |mask, level| mask | 1 << level);
        Self { kind, degree, averages, levels, mask }
    }

    /// The kind and the degree.
    pub fn family(&self) -> String {
        let kind = self.kind.name();
        self.degree.map_or(kind.to_owned(), |degree| format!("{kind} degree {degree}"))
    }
}

/// A length for people: 64 KiB, 32 B.
pub fn length(bytes: u32) -> String {
    if bytes >= 1024 && bytes.is_multiple_of(1024) {
        format!("{} KiB", bytes >> 10)
    } else {
        format!("{bytes} B")
    }
}
