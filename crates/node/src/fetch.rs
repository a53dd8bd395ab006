//! One request of ours to an origin, and what becomes of its response.

use crate::exchange::Ask;
use crate::http::Record;
use crate::input::ExchangeId;
use bytes::Bytes;
use content::{Cut, Cutter, Entry, ManifestBuilder, Profile, Segment};
use http::{HeaderMap, HeaderName, StatusCode};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use wire::{ChunkId, Date, RecordId};

/// Units are written in groups of a parent, or of this many bytes.
const GROUP_BYTES: u64 = 256 * 1024;

/// A request to an origin.
#[derive(Debug)]
pub struct Fetch {
    /// The request that began it.
    pub ask: Ask,
    /// The stale record that may stand in for the origin.
    pub old: Option<Rc<Record>>,
    /// Whether it asks the origin to confirm that record.
    pub confirms: bool,
    /// Whether the response may be stored, and others may join.
    pub storable: bool,
    /// Why we ask, in the words of RFC 9211 §2.2.
    pub why: &'static str,
    /// Whose request it was made of; a response that may not be shared is for nobody else.
    pub starter: Option<ExchangeId>,
    /// Who waits for the head.
    pub waiters: Vec<ExchangeId>,
    /// When it was asked.
    pub requested: Date,
    /// Content bytes granted to the origin so far, and received.
    pub granted: u64,
    pub received: u64,
    pub state: State,
}

/// How far a response is.
#[derive(Debug)]
pub enum State {
    /// No head yet.
    Asking,
    /// Given on as it comes; not stored for this reason.
    Passing(ExchangeId, &'static str),
    /// Cut, named, stored, and given to whoever reads it.
    Storing(Box<Storing>),
    /// Fills a hole in a stored object.
    Repairing(Box<Repairing>),
}

/// Units that are missing from a stored object, side by side, on their way from the origin.
#[derive(Debug)]
pub struct Repairing {
    /// Who waits for them.
    pub reader: ExchangeId,
    /// Where the first begins in the object.
    pub first: u64,
    /// Names and lengths of those that are still to come.
    pub units: VecDeque<(ChunkId, u32)>,
    tail: Vec<u8>,
}

/// The origin's bytes are not those that the manifest names.
#[derive(Debug)]
pub struct OtherBytes;

impl Repairing {
    pub fn new(reader: ExchangeId, first: u64, units: VecDeque<(ChunkId, u32)>) -> Self {
        Self { reader, first, units, tail: Vec::new() }
    }

    /// Bytes that are still to come.
    pub fn wanted(&self) -> u64 {
        self.units.iter().map(|(_, length)| u64::from(*length)).sum::<u64>()
            - self.tail.len() as u64
    }

    /// Takes in content, and gives out the units that it completes, each held against its name.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<(ChunkId, Bytes)>, OtherBytes> {
        self.tail.extend_from_slice(bytes);
        let (mut whole, mut used) = (Vec::new(), 0);
        while let Some((id, length)) = self.units.front().copied()
            && let Some(unit) = self.tail.get(used..used + length as usize)
        {
            if content::name(unit) != id {
                return Err(OtherBytes);
            }
            whole.push((id, Bytes::copy_from_slice(unit)));
            used += length as usize;
            self.units.pop_front();
        }
        self.tail.drain(..used);
        Ok(whole)
    }
}

/// A response that is being stored.
#[derive(Debug)]
pub struct Storing {
    pub record: RecordId,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub selecting: Vec<(HeaderName, Option<Vec<u8>>)>,
    pub received: Date,
    /// What `Content-Length` says.
    pub announced: Option<u64>,
    pub readers: Vec<ExchangeId>,
    cutter: Cutter,
    builder: ManifestBuilder,
    /// Bytes behind the last cut.
    tail: Vec<u8>,
    /// Bytes before the last cut.
    cut: u64,
    /// Where each closed segment begins.
    offsets: Vec<u64>,
    /// Closed segments that the catalogue does not have yet.
    pub closed: BTreeMap<u32, Rc<Segment>>,
    group: Vec<(ChunkId, Bytes)>,
    group_bytes: u64,
    /// The store failed: what it did not take stays in memory until every reader has passed.
    pub failed: bool,
    /// Ends and names of units that only memory has.
    pub unstored: VecDeque<(u64, ChunkId)>,
    /// The origin has sent everything.
    pub ended: bool,
    /// The record, once it is closed; readers that remain wait until the disk has what it names.
    pub whole: Option<Rc<Record>>,
}

/// A unit that was just cut.
#[derive(Debug)]
pub struct Fresh {
    pub id: ChunkId,
    pub bytes: Bytes,
    /// Where it ends in the object.
    pub end: u64,
    /// Whether what is collected is to be written with it.
    pub parent_end: bool,
}

impl Storing {
    pub fn new(record: RecordId, status: StatusCode, headers: HeaderMap, received: Date) -> Self {
        Self {
            record,
            status,
            headers,
            selecting: Vec::new(),
            received,
            announced: None,
            readers: Vec::new(),
            cutter: Cutter::new(Profile::DEFAULT),
            builder: ManifestBuilder::new(Profile::DEFAULT),
            tail: Vec::new(),
            cut: 0,
            offsets: Vec::new(),
            closed: BTreeMap::new(),
            group: Vec::new(),
            group_bytes: 0,
            failed: false,
            unstored: VecDeque::new(),
            ended: false,
            whole: None,
        }
    }

    /// Takes in content, and gives out the units that it completes.
    pub fn take(&mut self, bytes: &Bytes) -> Vec<Fresh> {
        let (mut rest, mut fresh) = (&bytes[..], Vec::new());
        while let Some(cut) = self.cutter.cut(rest) {
            let (head, next) = rest.split_at(cut.consumed);
            fresh.push(self.complete(head, cut));
            rest = next;
        }
        self.tail.extend_from_slice(rest);
        fresh
    }

    /// The content has ended: gives out the last unit.
    pub fn end(&mut self) -> Option<Fresh> {
        self.ended = true;
        let cut = self.cutter.finish()?;
        Some(self.complete(&[], Cut { parent_end: true, ..cut }))
    }

    fn complete(&mut self, head: &[u8], cut: Cut) -> Fresh {
        // The one copy on the way in: a unit outlives the buffer that it came in.
        let bytes = if self.tail.is_empty() {
            Bytes::copy_from_slice(head)
        } else {
            self.tail.extend_from_slice(head);
            let whole = Bytes::copy_from_slice(&self.tail);
            self.tail.clear();
            whole
        };
        self.cut += u64::from(cut.length);
        Fresh { id: content::name(&bytes), bytes, end: self.cut, parent_end: cut.parent_end }
    }

    /// Lists a unit in the manifest; gives out the segment that it did not fit into any more.
    pub fn list(&mut self, unit: &Fresh) -> Option<Rc<Segment>> {
        let length = unit.bytes.len() as u32;
        let entry = Entry { id: unit.id, length, parent_end: unit.parent_end, key: None };
        let full = self.builder.push(entry).map(Rc::new)?;
        self.close(&full);
        Some(full)
    }

    fn close(&mut self, segment: &Rc<Segment>) {
        self.offsets.push(segment.first_offset);
        self.closed.insert(segment.number as u32, Rc::clone(segment));
    }

    /// Collects a unit to be written; gives out the group when it is time.
    pub fn collect(&mut self, unit: Fresh) -> Vec<(ChunkId, Bytes)> {
        self.group_bytes += unit.bytes.len() as u64;
        let full = unit.parent_end || self.group_bytes >= GROUP_BYTES;
        self.group.push((unit.id, unit.bytes));
        if full { self.flush() } else { Vec::new() }
    }

    /// Gives out what is collected.
    pub fn flush(&mut self) -> Vec<(ChunkId, Bytes)> {
        self.group_bytes = 0;
        std::mem::take(&mut self.group)
    }

    /// Closes the manifest and makes the record.
    pub fn finish(&mut self, requested: Date, clocked: bool) -> (Record, Rc<Segment>) {
        let builder = std::mem::replace(&mut self.builder, ManifestBuilder::new(Profile::DEFAULT));
        let last = Rc::new(builder.close());
        self.close(&last);
        (self.so_far(requested, clocked), last)
    }

    /// The record as far as it is known.
    pub fn so_far(&self, requested: Date, clocked: bool) -> Record {
        Record {
            id: self.record,
            status: self.status,
            headers: self.headers.clone(),
            selecting: self.selecting.clone(),
            requested,
            received: self.received,
            clocked,
            invalid: false,
            length: self.cut,
            offsets: self.offsets.clone(),
        }
    }

    /// Bytes in whole units so far.
    pub fn cut_bytes(&self) -> u64 {
        self.cut
    }

    /// A copy of bytes that are in no whole unit yet.
    pub fn tail_from(&self, position: u64, count_max: usize) -> Bytes {
        let from = (position - self.cut) as usize;
        let to = self.tail.len().min(from.saturating_add(count_max));
        Bytes::copy_from_slice(&self.tail[from..to])
    }

    /// The number of the segment that lists the unit at a position, and the segment if it is here.
    pub fn segment_at(&self, position: u64) -> (u32, Option<Rc<Segment>>) {
        let open = self.builder.open();
        // Once the manifest is closed, no segment is open.
        if !self.ended && position >= open.first_offset {
            return (open.number as u32, Some(self.open_from(position)));
        }
        let number = segment_number(&self.offsets, position);
        (number, self.closed.get(&number).cloned())
    }

    /// The open segment from a position on: whoever follows close behind copies little.
    fn open_from(&self, position: u64) -> Rc<Segment> {
        let open = self.builder.open();
        let (mut first, mut offset) = (open.entries.len(), self.cut);
        while offset > position && first > 0 {
            first -= 1;
            offset -= u64::from(open.entries[first].length);
        }
        Rc::new(Segment {
            profile: open.profile,
            number: open.number,
            first_offset: offset,
            first_unit: open.first_unit + first as u64,
            previous: open.previous,
            entries: open.entries[first..].to_vec(),
            closing: None,
        })
    }
}

/// Which segment covers a position, by where each begins.
pub fn segment_number(offsets: &[u64], position: u64) -> u32 {
    offsets.partition_point(|offset| *offset <= position).saturating_sub(1) as u32
}

impl Fetch {
    /// Content bytes that may come at any time, to be kept until they are written.
    pub fn promised(&self) -> u64 {
        match self.state {
            State::Storing(_) => self.granted.saturating_sub(self.received),
            _ => 0,
        }
    }

    /// The object that is being stored, if it is.
    pub fn storing(&mut self) -> Option<&mut Storing> {
        match &mut self.state {
            State::Storing(storing) => Some(storing),
            _ => None,
        }
    }
}
