//! Streams of bytes cut into chunks of several sizes whose boundaries nest.
//!
//! *What this is:* [`Division`], the chunker of the paper's schemes ([`Nested`]) or the product's ([`Ours`]). Bytes go in
//! as they come; whenever a largest chunk, a root, is complete, the caller gets it with the boundaries of all
//! levels. *Source:* Wanax §3.2: one pass of fingerprints, in which larger chunks match more bits of the same value.

use content::nested::{Nested, Root};
use content::{Cutter, Profile, Tree};

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
