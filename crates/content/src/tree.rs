//! The levels inside a unit: pieces (1 KiB) and grains (128 B), computed on demand.
//!
//! *What this is:* [`Tree`], the nested divisions of one whole unit. Cutting starts at the unit's
//! first byte, so equal units have equal trees wherever they occur. *Who calls it:* the sender and
//! the receiver of the uplink, and only for units that are not known as a whole. *What it never
//! does:* name or copy; it returns ranges. *Where to start:* [`Tree::divide`]. *Source:* the MRC
//! tree of Wanax §3.2, below the unit.
//!
//! *Cost:* every byte is hashed once; 4 bytes of memory per cut.

use std::ops::Range;

use crate::boundary::Cutter;
use crate::profile::Profile;

/// Where the pieces and the grains of one unit end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    grain_ends: Vec<u32>,
    /// A subset of `grain_ends`.
    piece_ends: Vec<u32>,
}

impl Tree {
    /// The tree of one whole unit.
    pub fn new(profile: &Profile, unit: &[u8]) -> Self {
        let mut tree = Self::default();
        tree.divide(profile, unit);
        tree
    }

    /// Computes the tree of another unit, and reuses the memory.
    pub fn divide(&mut self, profile: &Profile, unit: &[u8]) {
        self.grain_ends.clear();
        self.piece_ends.clear();
        let mut cutter = Cutter::of_levels(profile.grain, profile.piece);
        let mut end = 0;
        while let Some(cut) = cutter.cut(&unit[end..]) {
            end += cut.consumed;
            self.grain_ends.push(end as u32);
            if cut.parent_end {
                self.piece_ends.push(end as u32);
            }
        }
        end_with(&mut self.grain_ends, unit.len() as u32);
        end_with(&mut self.piece_ends, unit.len() as u32);
    }

    /// The byte ranges of the pieces, in order; together they cover the unit.
    pub fn pieces(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        ranges(0, &self.piece_ends)
    }

    /// The byte ranges of the grains, in order; together they cover the unit.
    pub fn grains(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        ranges(0, &self.grain_ends)
    }

    /// The byte ranges of the grains in one of [`Tree::pieces`].
    pub fn grains_of(&self, piece: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let from = self.grain_ends.partition_point(|&end| end as usize <= piece.start);
        let to = self.grain_ends.partition_point(|&end| end as usize <= piece.end);
        ranges(piece.start, &self.grain_ends[from..to.max(from)])
    }
}

/// Adds the unit's end, unless the last cut is there.
fn end_with(ends: &mut Vec<u32>, end: u32) {
    if end > 0 && ends.last() != Some(&end) {
        ends.push(end);
    }
}

fn ranges(mut start: usize, ends: &[u32]) -> impl Iterator<Item = Range<usize>> + '_ {
    ends.iter().map(move |&end| {
        let range = start..end as usize;
        start = range.end;
        range
    })
}
