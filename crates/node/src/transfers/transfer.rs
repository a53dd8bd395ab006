//! The ways in which an object arrives, and the state of each.

use super::cutting::Cutting;
use crate::events::TransferState;
use crate::http::Record;
use bytes::Bytes;
use content::Segment;
use std::collections::VecDeque;
use std::rc::Rc;

/// Where an object's units come from.
#[derive(Debug)]
pub enum Transfer {
    /// Cut from an origin's bytes.
    Cutting(Box<Cutting>),
    /// Listed by a peer and requested by name.
    Listing(Box<Listing>),
    /// A stored record whose holes a peer is to fill.
    Filling(Rc<Record>),
    /// Cut completely. Its readers wait until all units are on disk. `None` if the store did not
    /// take all.
    Closed(Option<Rc<Record>>),
}

impl Transfer {
    /// Which state it is, for people who watch it.
    pub fn state(&self) -> TransferState {
        match self {
            Self::Cutting(_) => TransferState::Cutting,
            Self::Listing(_) => TransferState::Listing,
            Self::Filling(_) => TransferState::Filling,
            Self::Closed(_) => TransferState::Closed,
        }
    }
}

/// A manifest that arrives from a peer.
#[derive(Debug, Default)]
pub struct Listing {
    /// The number of the next segment.
    pub next: u32,
    /// The latest segment: the next one must follow it.
    pub last: Option<Rc<Segment>>,
    /// The end of the last segment in the object.
    pub end: u64,
    /// The first segments were never received: others cannot join, and the record is not stored.
    pub starts_late: bool,
    /// The offset up to which the peer may send the manifest.
    pub manifest_credit: u64,
    /// Clients of this node have read it, so its rest may be fetched after they leave.
    pub wanted_here: bool,
    /// Loose bytes after all units, sent because the body pauses.
    pub tail: Tail,
    /// Another peer than the one that told the length continues it.
    pub turned: bool,
    /// The manifest is complete.
    pub ended: bool,
    /// The record, once the manifest is closed.
    pub whole: Option<Rc<Record>>,
}

impl Listing {
    /// A manifest from this segment on, accepted up to this offset.
    pub fn from(next: u32, manifest_credit: u64) -> Transfer {
        Transfer::Listing(Box::new(Self {
            next,
            starts_late: next > 0,
            manifest_credit,
            ..Self::default()
        }))
    }

    /// Takes loose bytes, at most `kept_max` at a time; false if they do not fit or are out of
    /// order. From now on the object cannot be read from its beginning here.
    pub fn take_loose(&mut self, offset: u64, bytes: Bytes, kept_max: u64) -> bool {
        self.starts_late = true;
        let in_place = self.tail.end().is_some() || offset == self.end;
        let fits = self.tail.kept() + bytes.len() as u64 <= kept_max;
        in_place && fits && self.tail.push(offset, bytes)
    }
}

/// Loose bytes of an object, kept until every reader has them.
#[derive(Debug, Default)]
pub struct Tail {
    pieces: VecDeque<Bytes>,
    /// The offset of the first piece in the object.
    start: u64,
    /// The number of bytes in the pieces.
    length: u64,
}

impl Tail {
    /// Adds bytes at this offset; false if they do not follow the last ones.
    pub fn push(&mut self, offset: u64, bytes: Bytes) -> bool {
        if self.length == 0 && self.start == 0 {
            self.start = offset;
        }
        let follows = offset == self.start + self.length;
        if follows {
            self.length += bytes.len() as u64;
            self.pieces.push_back(bytes);
        }
        follows
    }

    /// The end in the object; `None` if there never were loose bytes.
    pub fn end(&self) -> Option<u64> {
        (self.start > 0 || self.length > 0).then_some(self.start + self.length)
    }

    /// The number of bytes kept.
    pub fn kept(&self) -> u64 {
        self.length
    }

    /// Bytes from a position on, to the end of their piece at most.
    pub fn from(&self, position: u64, count_max: usize) -> Option<Bytes> {
        let mut at = self.start;
        for piece in &self.pieces {
            let end = at + piece.len() as u64;
            if (at..end).contains(&position) {
                let from = (position - at) as usize;
                return Some(piece.slice(from..piece.len().min(from + count_max)));
            }
            at = end;
        }
        None
    }

    /// Drops pieces that every reader has passed; returns the number of bytes.
    pub fn pass(&mut self, position: u64) -> u64 {
        let before = self.length;
        while let Some(piece) = self.pieces.front()
            && self.start + piece.len() as u64 <= position
        {
            self.start += piece.len() as u64;
            self.length -= piece.len() as u64;
            self.pieces.pop_front();
        }
        before - self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loose_bytes_are_kept_until_every_reader_has_passed_their_piece() {
        let mut tail = Tail::default();
        assert_eq!(tail.end(), None, "there never were any");
        let piece = Bytes::from_static;
        assert!(tail.push(100, piece(b"abc")) && tail.push(103, piece(b"de")));
        assert!(!tail.push(104, piece(b"x")) && !tail.push(106, piece(b"x")));
        assert_eq!((tail.end(), tail.kept()), (Some(105), 5));
        let from = |at, most| tail.from(at, most);
        assert_eq!([99, 105].map(|at| from(at, 9)), [None, None]);
        assert_eq!((from(100, 2), from(102, 9)), (Some(piece(b"ab")), Some(piece(b"c"))));
        assert_eq!((from(103, 9), from(104, 1)), (Some(piece(b"de")), Some(piece(b"e"))));
        assert_eq!((tail.pass(102), tail.pass(103), tail.kept()), (0, 3, 2));
        assert_eq!((tail.pass(105), tail.kept(), tail.end()), (2, 0, Some(105)));
        assert!(!tail.push(104, piece(b"x")) && tail.push(105, piece(b"x")));
        let mut at_once = Tail::default();
        assert!(at_once.push(0, piece(b"a")));
        assert_eq!(at_once.end(), Some(1));
    }

    #[test]
    fn no_more_loose_bytes_are_taken_than_may_be_kept() {
        let take = |kept_max, offset| {
            let mut listing = Listing { end: 7, ..Listing::default() };
            listing.take_loose(offset, Bytes::from_static(b"abc"), kept_max)
                && listing.take_loose(offset + 3, Bytes::from_static(b"de"), kept_max)
        };
        assert!(take(5, 7) && !take(4, 7));
        assert!(!take(5, 6) && !take(5, 8), "they follow the units");
    }
}
