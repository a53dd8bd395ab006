//! An object while it comes: its head, its manifest so far, and who reads it.

use super::reader::Reader;
use crate::catalogue::{Signed, segment_number};
use crate::growing::cutting::Cutting;
use crate::hasher::Set;
use crate::http::{Record, Voucher};
use crate::input::ExchangeId;
use bytes::Bytes;
use content::{Root, Segment};
use http::{HeaderMap, HeaderName, StatusCode};
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use wire::peer::Resume;
use wire::{ChunkId, Date, Instant, ObjectKey, Oid, RecordId, Signature};

/// Units are written in groups of a parent, or of this many bytes.
const GROUP_BYTES: u64 = 256 * 1024;

/// Under what an object is kept.
#[derive(Clone, Debug)]
pub struct Label {
    pub key: ObjectKey,
    pub uri: String,
    /// The name by which it was asked for, if it is published.
    pub named: Option<Oid>,
}

/// An object that is being stored while it comes.
#[derive(Debug)]
pub struct Storing {
    /// Under what it is kept; a file that is published here gets its name at its end.
    pub label: Option<Label>,
    /// When it was asked for.
    pub requested: Date,
    /// Content bytes granted to the origin so far, and received; of a peer, of the units that were wanted.
    pub granted: u64,
    pub received_bytes: u64,
    pub record: RecordId,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub selecting: Vec<(HeaderName, Option<Vec<u8>>)>,
    pub received: Date,
    /// Whether the clock could be believed then.
    pub clocked: bool,
    /// How old it was when it came, in seconds, as the peer had it that sent it.
    pub carried: u64,
    /// Who vouches for it, if that is not ourselves.
    pub voucher: Option<Voucher>,
    /// What certifies it, if it was asked for by name.
    pub root: Option<Rc<Root>>,
    /// Its length in bytes, where that was announced.
    pub announced: Option<u64>,
    pub readers: Vec<Reader>,
    /// Where its units come from.
    pub inflow: Inflow,
    /// Where each closed segment begins.
    pub offsets: Vec<u64>,
    /// Closed segments that the catalogue does not have yet.
    pub closed: BTreeMap<u32, Rc<Signed>>,
    group: Vec<(ChunkId, Bytes)>,
    group_bytes: u64,
    /// The store failed: what it did not take stays in memory until every reader has passed.
    pub failed: bool,
    /// Ends and names of units that only memory has.
    pub unstored: VecDeque<(u64, ChunkId)>,
    /// Its manifest is closed: nothing more will be listed.
    pub ended: bool,
    /// The record, once it is closed; readers that remain wait until the disk has what it names.
    pub whole: Option<Rc<Record>>,
    /// When the body counts as pausing, if nothing comes until then.
    pub pause_at: Option<Instant>,
    /// The body pauses.
    pub pauses: bool,
    /// Nobody reads it any more, and it waits for somebody to come back.
    pub parked: bool,
}

/// Where the units of an object come from.
#[derive(Debug)]
pub enum Inflow {
    /// They are cut from an origin's bytes.
    Cut(Box<Cutting>),
    /// A peer lists them, and they are asked for by name.
    Listed(Box<Listed>),
}

/// A manifest that comes from a peer.
#[derive(Debug, Default)]
pub struct Listed {
    /// The number of the next segment.
    pub next: u32,
    /// The latest segment: the next one must follow it.
    pub last: Option<Rc<Segment>>,
    /// Bytes of the object before the next segment.
    pub end: u64,
    /// The first segments never came: others cannot join, and the record is not kept.
    pub hollow: bool,
    /// How far the peer was told that its manifest is welcome.
    pub cover: u64,
    /// It is a record that was closed, and has holes which a peer is to fill.
    pub reopened: bool,
    /// Clients here have read it: what remains of it may be wanted though they left.
    pub wanted_here: bool,
    /// Bytes behind all units, which came as they are because the body pauses.
    pub tail: Tail,
    /// Units that the peer does not have.
    pub lost: Set<ChunkId>,
    /// Another peer than the one that told the length goes on with it.
    pub turned: bool,
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

impl Storing {
    pub fn new(
        record: RecordId,
        status: StatusCode,
        headers: HeaderMap,
        (received, clocked): (Date, bool),
        inflow: Inflow,
    ) -> Self {
        Self {
            label: None,
            requested: received,
            granted: 0,
            received_bytes: 0,
            record,
            status,
            headers,
            selecting: Vec::new(),
            received,
            clocked,
            carried: 0,
            voucher: None,
            root: None,
            announced: None,
            readers: Vec::new(),
            inflow,
            offsets: Vec::new(),
            closed: BTreeMap::new(),
            group: Vec::new(),
            group_bytes: 0,
            failed: false,
            unstored: VecDeque::new(),
            ended: false,
            whole: None,
            pause_at: None,
            pauses: false,
            parked: false,
        }
    }

    /// Where bytes begin that are in no unit and that nobody should wait any longer for, if there are.
    pub fn loose_from(&self) -> Option<u64> {
        let known = self.known_bytes();
        let loose = match &self.inflow {
            Inflow::Cut(_) => self.pauses && self.received_bytes > known,
            Inflow::Listed(listed) => listed.tail.end().is_some(),
        };
        (loose && !self.ended).then_some(known)
    }

    /// How far readers may be given it at present. A length that a peer tells is not signed: what ends there is
    /// not taken for the whole before the signed manifest, or the gateway, has ended there too.
    pub fn limit(&self) -> u64 {
        match (&self.inflow, self.announced) {
            (Inflow::Listed(_), Some(length)) if !self.ended => length.saturating_sub(1),
            _ => u64::MAX,
        }
    }

    /// What cuts it, if it comes from an origin.
    pub fn cutting(&mut self) -> Option<&mut Cutting> {
        match &mut self.inflow {
            Inflow::Cut(cutting) => Some(cutting),
            Inflow::Listed(_) => None,
        }
    }

    /// The manifest that a peer sends, if it comes from one.
    pub fn listed(&mut self) -> Option<&mut Listed> {
        match &mut self.inflow {
            Inflow::Cut(_) => None,
            Inflow::Listed(listed) => Some(listed),
        }
    }

    /// From where on more of it may be asked of another peer, and up to where its manifest is welcome.
    pub fn goes_on_from(&self) -> Option<(Resume, u64)> {
        match &self.inflow {
            Inflow::Cut(_) => None,
            Inflow::Listed(it) => {
                Some((Resume { record: self.record, segment: it.next }, it.cover))
            }
        }
    }

    /// Whether a peer lists it.
    pub fn is_listed(&self) -> bool {
        matches!(self.inflow, Inflow::Listed(_))
    }

    /// Whether it was closed before, and stays so.
    pub fn is_reopened(&self) -> bool {
        matches!(&self.inflow, Inflow::Listed(listed) if listed.reopened)
    }

    /// Whether bytes of it come that are in no unit.
    pub fn is_loose(&self) -> bool {
        matches!(&self.inflow, Inflow::Listed(listed) if listed.tail.end().is_some())
    }

    /// Whether its beginning never came.
    pub fn is_hollow(&self) -> bool {
        matches!(&self.inflow, Inflow::Listed(listed) if listed.hollow)
    }

    /// Takes in a segment that is complete.
    pub fn close_segment(&mut self, segment: &Rc<Segment>, signature: Option<Signature>) {
        self.offsets.push(segment.first_offset);
        let signed = Signed { segment: Rc::clone(segment), signature };
        self.closed.insert(segment.number as u32, Rc::new(signed));
    }

    /// Where a segment begins that has come.
    pub fn offset_of(&self, number: u32) -> Option<u64> {
        let first = self.first_segment();
        self.offsets.get(number.checked_sub(first)? as usize).copied()
    }

    /// Whether a segment has come, or will be the next.
    pub fn segment_is_here(&self, number: u32) -> bool {
        number >= self.first_segment()
    }

    fn first_segment(&self) -> u32 {
        match &self.inflow {
            Inflow::Cut(_) => 0,
            Inflow::Listed(listed) => listed.next - self.offsets.len() as u32,
        }
    }

    /// Collects a unit to be written; gives out the group when it is time.
    pub fn collect(&mut self, unit: (ChunkId, Bytes), last: bool) -> Vec<(ChunkId, Bytes)> {
        self.group_bytes += unit.1.len() as u64;
        let full = last || self.group_bytes >= GROUP_BYTES;
        self.group.push(unit);
        if full { self.flush() } else { Vec::new() }
    }

    /// Gives out what is collected.
    pub fn flush(&mut self) -> Vec<(ChunkId, Bytes)> {
        self.group_bytes = 0;
        std::mem::take(&mut self.group)
    }

    /// The record as far as it is known.
    pub fn so_far(&self) -> Record {
        Record {
            id: self.record,
            status: self.status,
            headers: self.headers.clone(),
            selecting: self.selecting.clone(),
            requested: self.requested,
            received: self.received,
            clocked: self.clocked,
            invalid: false,
            carried: self.carried,
            voucher: self.voucher.clone(),
            length: self.known_bytes(),
            offsets: self.offsets.clone(),
        }
    }

    /// Who reads it.
    pub fn reader_ids(&self) -> SmallVec<[ExchangeId; 8]> {
        self.readers.iter().map(|reader| reader.id).collect()
    }

    /// How far bytes of the object can be given out: what came from the origin, or what a peer's
    /// manifest lists.
    pub fn frontier(&self) -> u64 {
        match &self.inflow {
            Inflow::Cut(_) => self.received_bytes,
            Inflow::Listed(listed) => listed.tail.end().unwrap_or(listed.end),
        }
    }

    /// Content bytes that may come at any time, to be kept until they are written.
    pub fn promised(&self) -> u64 {
        self.granted.saturating_sub(self.received_bytes)
    }

    /// Bytes in units that are listed so far.
    pub fn known_bytes(&self) -> u64 {
        match &self.inflow {
            Inflow::Cut(cutting) => cutting.cut_bytes(),
            Inflow::Listed(listed) => listed.end,
        }
    }

    /// A closed record with holes, for a peer to fill.
    pub fn reopened(record: &Rc<Record>) -> Self {
        let listed = Listed {
            next: record.offsets.len() as u32,
            end: record.length,
            reopened: true,
            ..Listed::default()
        };
        let inflow = Inflow::Listed(Box::new(listed));
        let headers = record.headers.clone();
        Self {
            announced: Some(record.length),
            offsets: record.offsets.clone(),
            voucher: record.voucher.clone(),
            ended: true,
            whole: Some(Rc::clone(record)),
            ..Self::new(
                record.id,
                record.status,
                headers,
                (record.received, record.clocked),
                inflow,
            )
        }
    }

    /// The number of the segment that lists the unit at a position, and the segment if it is here.
    pub fn segment_at(&self, position: u64) -> (u32, Option<Rc<Segment>>) {
        if !self.ended
            && let Inflow::Cut(cutting) = &self.inflow
            && let Some(open) = cutting.open_from(position)
        {
            return (open.number as u32, Some(open));
        }
        let number = self.first_segment() + segment_number(&self.offsets, position);
        let closed = self.closed.get(&number).map(|signed| Rc::clone(&signed.segment));
        (number, closed)
    }
}
