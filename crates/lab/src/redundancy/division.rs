//! Streams of bytes cut into chunks of several sizes whose boundaries nest.
//!
//! *What this is:* [`Division`], the chunker of the paper's schemes ([`Nested`]) or the product's ([`Ours`]). Bytes go in
//! as they come; whenever a largest chunk, a root, is complete, the caller gets it with the boundaries of all
//! levels. *Source:* Wanax §3.2: one pass of fingerprints, in which larger chunks match more bits of the same value.

use content::{Cutter, Profile, Tree};

/// A chunk of a level ends at this many times its average, whatever its bytes are.
const LONGEST: u32 = 4;

/// A largest chunk, and the ends of the chunks of each level in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Root {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// For each level, the largest first, the ends of its chunks, ascending. The last is the root's length. Each end of
    /// a level is also one of the next.
    pub ends: Vec<Vec<u32>>,
}

impl Root {
    fn clear(&mut self, levels: usize) {
        self.bytes.clear();
        self.ends.resize(levels, Vec::new());
        self.ends.iter_mut().for_each(Vec::clear);
    }
}

/// The way in which a stream is cut.
#[derive(Clone, Debug)]
pub enum Division {
    /// By the highest bits of one rolling hash: averages are powers of two.
    Nested(Nested),
    /// As the product cuts.
    Ours(Box<Ours>),
}

impl Division {
    /// Takes bytes up to the end of the root, and returns how many. `false`: the root goes on.
    pub fn take(&mut self, input: &[u8], root: &mut Root) -> (usize, bool) {
        match self {
            Self::Nested(it) => it.take(input, root),
            Self::Ours(it) => it.take(input, root),
        }
    }

    /// Ends the stream. `false`: no bytes were left over.
    pub fn finish(&mut self, root: &mut Root) -> bool {
        match self {
            Self::Nested(it) => it.finish(root),
            Self::Ours(it) => it.finish(root),
        }
    }
}

/// Boundaries by the highest bits of the product's rolling hash over 64 bytes: a chunk of 2ⁿ bytes on average ends
/// where n of them are zero. There is no least length; a window may begin before its chunk, as the paper's may.
#[derive(Clone, Debug)]
pub struct Nested {
    /// For each level, the largest first, the number of bits that are zero at a boundary.
    bits: Vec<u32>,
    /// The starts of the current chunks in the root.
    starts: Vec<u32>,
    /// Where the next chunk reaches its greatest length.
    forced: u32,
    hash: u64,
    /// The root in hand is complete, and was given out.
    is_done: bool,
}

impl Nested {
    /// Chunks of these average lengths, powers of two, the largest first.
    pub fn new(averages: &[u32]) -> Self {
        let bits: Vec<_> = averages.iter().map(|it| it.ilog2()).collect();
        let starts = vec![0; bits.len()];
        let forced = averages.iter().min().map_or(1, |it| it * LONGEST);
        Self { bits, starts, forced, hash: 0, is_done: true }
    }

    fn take(&mut self, input: &[u8], root: &mut Root) -> (usize, bool) {
        self.begin(root);
        let before = root.bytes.len();
        let finest = self.bits.last().copied().unwrap_or(0);
        for (at, &byte) in input.iter().enumerate() {
            self.hash = content::roll(self.hash, byte);
            let zeros = self.hash.leading_zeros();
            let end = (before + at + 1) as u32;
            if (zeros >= finest || end == self.forced) && self.cut(end, zeros, root) {
                root.bytes.extend_from_slice(&input[..=at]);
                self.is_done = true;
                return (at + 1, true);
            }
        }
        root.bytes.extend_from_slice(input);
        (input.len(), false)
    }

    /// Ends the chunks that end here, and says whether the root is one of them.
    fn cut(&mut self, end: u32, zeros: u32, root: &mut Root) -> bool {
        let ends = |(&bits, &start): (&u32, &u32)| zeros >= bits || end - start == LONGEST << bits;
        let Some(from) = self.bits.iter().zip(&self.starts).position(ends) else { return false };
        for level in from..self.bits.len() {
            root.ends[level].push(end);
            self.starts[level] = end;
        }
        let limits =
            self.bits.iter().zip(&self.starts).map(|(bits, start)| start + (LONGEST << bits));
        self.forced = limits.min().unwrap_or(u32::MAX);
        from == 0
    }

    fn finish(&mut self, root: &mut Root) -> bool {
        self.begin(root);
        self.hash = 0;
        self.is_done = true;
        let length = root.bytes.len() as u32;
        for ends in root.ends.iter_mut().filter(|ends| ends.last() != Some(&length)) {
            ends.push(length);
        }
        length > 0
    }

    fn begin(&mut self, root: &mut Root) {
        if self.is_done {
            root.clear(self.bits.len());
            self.starts.fill(0);
            self.forced = self.bits.last().map_or(u32::MAX, |bits| LONGEST << bits);
            self.is_done = false;
        }
    }
}

/// The product's parents, units, pieces and grains.
#[derive(Clone, Debug)]
pub struct Ours {
    cutter: Cutter,
    tree: Tree,
    /// Where the current unit begins in the root.
    unit_start: usize,
    is_done: bool,
}

impl Ours {
    const PROFILE: &'static Profile = Profile::DEFAULT;

    /// The average lengths of its levels.
    pub fn averages() -> [u32; 4] {
        let Profile { parent, unit, piece, grain, .. } = Self::PROFILE;
        [parent, unit, piece, grain].map(|level| level.average)
    }

    /// At the start of a stream.
    pub fn new() -> Self {
        let cutter = Cutter::new(Self::PROFILE);
        Self { cutter, tree: Tree::default(), unit_start: 0, is_done: true }
    }

    fn take(&mut self, input: &[u8], root: &mut Root) -> (usize, bool) {
        self.begin(root);
        let mut taken = 0;
        while let Some(cut) = self.cutter.cut(&input[taken..]) {
            root.bytes.extend_from_slice(&input[taken..taken + cut.consumed]);
            taken += cut.consumed;
            self.end_unit(root);
            if cut.parent_end {
                root.ends[0].push(root.bytes.len() as u32);
                self.is_done = true;
                return (taken, true);
            }
        }
        root.bytes.extend_from_slice(&input[taken..]);
        (input.len(), false)
    }

    fn finish(&mut self, root: &mut Root) -> bool {
        self.begin(root);
        self.is_done = true;
        if self.cutter.finish().is_some() {
            self.end_unit(root);
        }
        root.ends[0].push(root.bytes.len() as u32);
        !root.bytes.is_empty()
    }

    fn end_unit(&mut self, root: &mut Root) {
        let start = self.unit_start;
        self.tree.divide(Self::PROFILE, &root.bytes[start..]);
        root.ends[1].push(root.bytes.len() as u32);
        root.ends[2].extend(self.tree.pieces().map(|it| (start + it.end) as u32));
        root.ends[3].extend(self.tree.grains().map(|it| (start + it.end) as u32));
        self.unit_start = root.bytes.len();
    }

    fn begin(&mut self, root: &mut Root) {
        if self.is_done {
            root.clear(Self::averages().len());
            self.unit_start = 0;
            self.is_done = false;
        }
    }
}
