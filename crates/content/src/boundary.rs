//! Boundaries: where a unit ends, and whether a parent ends with it.
//!
//! *What this is:* [`Cutter`], a chunker without a reader. It is given bytes as they come, in
//! whatever portions, and answers how many of them belong to the current unit. It keeps a hash and
//! three lengths, and never a byte. *Who calls it:* whoever takes in an object (`node`); `tree`, for
//! the levels inside a unit. *What it never does:* copy, name, or look at anything but content: the
//! same bytes are cut alike however they were split into calls. *Where to start:*
//! [`Cutter::cut`]. *Source:* Wanax §3.2, multi-resolution chunking in one pass. Departure: the unit
//! is cut first and larger chunks are made of whole units, smaller ones start afresh in each unit, so
//! that each level can have a minimum and a maximum and all boundaries nest all the same.
//!
//! *Cost:* of each unit the first `minimum - 64` bytes are not read at all, the others once.

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use crate::profile::{Level, Profile};
use crate::rolling::{self, WINDOW};

/// The end of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// How many bytes of this call's input belong to the unit; the rest begins the next one.
    pub consumed: usize,
    /// The whole unit's length in bytes, with what earlier calls brought.
    pub length: u32,
    /// Whether the parent ends here too.
    pub parent_end: bool,
}

/// Cuts a stream of bytes into units, and these into parents.
///
/// ```
/// use content::{Cutter, Profile};
///
/// let object = vec![7; 40_000];
/// let mut cutter = Cutter::new(Profile::DEFAULT);
/// let (mut rest, mut lengths) = (&object[..], Vec::new());
/// while let Some(cut) = cutter.cut(rest) {
///     lengths.push(cut.length);
///     rest = &rest[cut.consumed..];
/// }
/// lengths.extend(cutter.finish().map(|cut| cut.length));
/// assert_eq!(lengths, [16_384, 16_384, 7_232]);
/// ```
#[derive(Clone, Debug)]
pub struct Cutter {
    /// The level that is cut.
    unit: Level,
    /// The level whose chunks are made of whole units.
    parent: Level,
    /// Over the last bytes of the unit; meaningful from `unit.minimum` bytes on.
    hash: u64,
    /// Bytes of the current unit so far.
    length: u32,
    /// Bytes of the current parent in earlier units.
    parent_length: u32,
}

impl Cutter {
    /// A cutter at the beginning of an object.
    pub fn new(profile: &Profile) -> Self {
        Self::of_levels(profile.unit, profile.parent)
    }

    /// The same rules for another pair of neighbouring levels.
    pub(crate) fn of_levels(unit: Level, parent: Level) -> Self {
        Self { unit, parent, hash: 0, length: 0, parent_length: 0 }
    }

    /// Goes on with `input`; answers the end of the current unit if it lies there.
    ///
    /// After an answer, call again with what is left of the input. `None`: all of it was taken in, and
    /// the unit goes on.
    pub fn cut(&mut self, input: &[u8]) -> Option<Cut> {
        let rest = self.pass_minimum(input);
        let room = (self.unit.maximum - self.length) as usize;
        let candidates = &rest[..rest.len().min(room)];
        let found = rolling::find(&mut self.hash, candidates, self.unit.limit());
        let taken = found.unwrap_or(candidates.len());
        self.length += taken as u32;
        let ends = found.is_some() || self.length == self.unit.maximum;
        ends.then(|| self.end(input.len() - rest.len() + taken))
    }

    /// Ends the object: answers what is left as its last unit, and begins anew.
    ///
    /// `None`: the object ended with its last cut (or is empty). A parent ends with the object in any
    /// case, even where the last cut could not know it.
    pub fn finish(&mut self) -> Option<Cut> {
        let length = self.length;
        *self = Self::of_levels(self.unit, self.parent);
        (length > 0).then_some(Cut { consumed: 0, length, parent_end: true })
    }

    /// Takes in what is too early for a boundary and returns the rest; reads only what will be in the
    /// window of the first position that counts.
    fn pass_minimum<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let warm_from = self.unit.minimum - WINDOW as u32;
        let unread = input.len().min(warm_from.saturating_sub(self.length) as usize);
        self.length += unread as u32;
        let input = &input[unread..];
        let early = input.len().min((self.unit.minimum - 1).saturating_sub(self.length) as usize);
        self.length += early as u32;
        let (early, rest) = input.split_at(early);
        self.hash = rolling::roll_over(self.hash, early);
        rest
    }

    fn end(&mut self, consumed: usize) -> Cut {
        let length = self.length;
        self.parent_length += length;
        let parent_end = self.parent_ends();
        self.length = 0;
        if parent_end {
            self.parent_length = 0;
        }
        Cut { consumed, length, parent_end }
    }

    /// Whether the parent ends with the unit that just ended: its hash matches here too, or one more
    /// unit might not fit. (A unit's forced end never matches: the parent's limit is the lower one.)
    fn parent_ends(&self) -> bool {
        let matches = self.hash < self.parent.limit() && self.parent_length >= self.parent.minimum;
        matches || self.parent_length + self.unit.maximum > self.parent.maximum
    }
}
