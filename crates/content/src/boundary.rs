//! Chunk boundaries: where a unit ends, and whether its parent ends with it.
//!
//! *What this is:* [`Cutter`], a chunker that does no reading. It is given the bytes as they
//! arrive, in portions of any size, and returns how many of them belong to the current unit. Its
//! state is a hash and three lengths; it stores no bytes. *Who calls it:* the code that takes in an
//! object (`node`); `tree`, for the levels inside a unit. *What it never does:* copy, name, or
//! depend on anything but content: the same bytes are cut in the same way, however they are split
//! into calls. *Where to start:* [`Cutter::cut`]. *Source:* Wanax §3.2, multi-resolution chunking
//! in one pass. Departure: the unit is cut first; larger chunks consist of whole units, and smaller
//! ones are cut anew in each unit. Each level can thus have a minimum and a maximum, and all
//! boundaries still nest.
//!
//! *Cost:* the first `minimum - 64` bytes of each unit are not read, all others once.

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use crate::profile::{Level, Profile};
use crate::rolling::{self, WINDOW};

/// The end of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The number of bytes of this call's input that belong to the unit; the others begin the next
    /// unit.
    pub consumed: usize,
    /// The length of the whole unit in bytes, including earlier calls.
    pub length: u32,
    /// Whether the parent ends here too.
    pub parent_end: bool,
}

/// Cuts a stream of bytes into units, and groups these into parents.
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
    /// The level whose chunks consist of whole units.
    parent: Level,
    /// The rolling hash over the unit's last bytes; meaningful from `unit.minimum` bytes on.
    hash: u64,
    /// The length of the current unit so far, in bytes.
    length: u32,
    /// The length of the earlier units in the current parent, in bytes.
    parent_length: u32,
}

impl Cutter {
    /// A cutter at the start of an object.
    pub fn new(profile: &Profile) -> Self {
        Self::of_levels(profile.unit, profile.parent)
    }

    /// A cutter for another pair of adjacent levels.
    pub(crate) fn of_levels(unit: Level, parent: Level) -> Self {
        Self { unit, parent, hash: 0, length: 0, parent_length: 0 }
    }

    /// Continues with `input`; returns the end of the current unit if it is in this input.
    ///
    /// After a result, call again with the rest of the input. `None`: the whole input belongs to
    /// the unit, which continues.
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

    /// Ends the object: returns the remaining bytes as its last unit, and resets the cutter.
    ///
    /// `None`: the object is empty, or ended exactly with the last cut. The end of the object
    /// always ends a parent, although the last cut may not say so.
    pub fn finish(&mut self) -> Option<Cut> {
        let length = self.length;
        *self = Self::of_levels(self.unit, self.parent);
        (length > 0).then_some(Cut { consumed: 0, length, parent_end: true })
    }

    /// Consumes the bytes that are too early for a boundary, and returns the rest. It reads only
    /// bytes in the window of the first possible boundary.
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

    /// Whether the parent ends with the current unit: the hash also matches the parent's limit, or
    /// another unit might not fit. (A unit that ends at its maximum cannot match: the parent's
    /// limit is lower than the unit's.)
    fn parent_ends(&self) -> bool {
        let matches = self.hash < self.parent.limit() && self.parent_length >= self.parent.minimum;
        matches || self.parent_length + self.unit.maximum > self.parent.maximum
    }
}
