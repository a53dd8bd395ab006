//! How an object comes, and what of that is known for each way.

use super::cutting::Cutting;
use crate::events::TransferState;
use crate::http::Record;
use bytes::Bytes;
use content::Segment;
use std::collections::VecDeque;
use std::rc::Rc;

/// Where the units of an object come from.
#[derive(Debug)]
pub enum Transfer {
    /// They are cut from an origin's bytes.
    Cutting(Box<Cutting>),
    /// A peer lists them, and they are asked for by name.
    Listing(Box<Listing>),
    /// The record was closed, and has holes which a peer is to fill.
    Filling(Rc<Record>),
    /// All of it was cut: the record, whose readers wait until the disk has what it names; none if the store did not
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

/// A manifest that comes from a peer.
#[derive(Debug, Default)]
pub struct Listing {
    /// The number of the next segment.
    pub next: u32,
    /// The latest segment: the next one must follow it.
    pub last: Option<Rc<Segment>>,
    /// Bytes of the object before the next segment.
    pub end: u64,
    /// The first segments never came: others cannot join, and the record is not kept.
    pub starts_late: bool,
    /// How far the peer was told that its manifest is welcome.
    pub manifest_credit: u64,
    /// Clients here have read it: what remains of it may be wanted though they left.
    pub wanted_here: bool,
    /// Bytes behind all units, which came as they are because the body pauses.
    pub tail: Tail,
    /// Another peer than the one that told the length goes on with it.
    pub turned: bool,
    /// Nothing more will be listed.
    pub ended: bool,
    /// The record, once its manifest is closed.
    pub whole: Option<Rc<Record>>,
}

impl Listing {
    /// What a peer lists from that segment on, up to where its manifest is welcome.
    pub fn from(next: u32, manifest_credit: u64) -> Transfer {
        Transfer::Listing(Box::new(Self {
            next,
            starts_late: next > 0,
            manifest_credit,
            ..Self::default()
        }))
    }

    /// Takes in bytes that are in no unit, of which so many are kept at most; false if they are out of place. From then
    /// on the object has no beginning here.
    pub fn take_loose(&mut self, offset: u64, bytes: Bytes, kept_max: u64) -> bool {
        self.starts_late = true;
        let in_place = self.tail.end().is_some() || offset == self.end;
        let fits = self.tail.kept() + bytes.len() as u64 <= kept_max;
        in_place && fits && self.tail.push(offset, bytes)
    }
}

/// Bytes of an object that are in no unit, until every reader has them.
#[derive(Debug, Default)]
pub struct Tail {
    pieces: VecDeque<Bytes>,
    /// Where the first piece begins in the object.
    start: u64,
    /// Bytes in the pieces.
    length: u64,
}

impl Tail {
    /// Takes in bytes that begin here, if they follow those before.
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

    /// Where it ends in the object; `None` if there never was one.
    pub fn end(&self) -> Option<u64> {
        (self.start > 0 || self.length > 0).then_some(self.start + self.length)
    }

    /// How many bytes are kept.
    pub fn kept(&self) -> u64 {
        self.length
    }

    /// Bytes from a position on, as many as are in one piece.
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

    /// Lets go of what every reader has passed; answers how many bytes that were.
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
