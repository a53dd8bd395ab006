//! The requests of one node to another: for an object, and for units.
//!
//! # Bytes of a get
//!
//! | bytes | field |
//! |---|---|
//! | varint | request |
//! | 1 | hops |
//! | varint, 16 each | visited: their number, then the node ids |
//! | 1 | flags: bit 0 merge, 1 per hop, 2 resume, 3 have, 4 sparing; the others zero |
//! | 16, varint | if resume: the record, the first segment that is missing |
//! | 16 | if have: the record |
//! | varint | manifest credit |
//! | varint | credit |
//! | varint, … | the URI's length, the URI |
//! | varint, … | fields: their number, then each |
//! | … | the [`Options`] |
//!
//! # Bytes of a want
//!
//! | bytes | field |
//! |---|---|
//! | 32 | name |
//! | varint | the unit's length |
//! | varint | the number of missing ranges |
//! | varint, varint | each range: its first byte, and the byte after its last |

use std::ops::Range;

use super::chunk::ChunkHead;
use super::codec::{
    FrameError, Item, Part, Reader, check_line, check_list, sound, write_bytes, write_list,
};
use super::field::Field;
use super::message::Request;
use super::options::Options;
use crate::varint;
use crate::{ChunkId, NodeId, RecordId};

const MERGE: u8 = 1;
const PER_HOP: u8 = 1 << 1;
const RESUME: u8 = 1 << 2;
const HAVE: u8 = 1 << 3;
const SPARING: u8 = 1 << 4;

/// A request for an object (docs/protocol.md, "Messages").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Get {
    /// The request's number.
    pub request: Request,
    /// The number of nodes that may still forward it.
    pub hops: u8,
    /// Nodes that have handled it; the sender is the first. At most [`Get::VISITED_MAX`].
    pub visited: Vec<NodeId>,
    /// Whether the response may come from a transfer that is already under way.
    pub merge: bool,
    /// Whether each hop looks in its cache, forwards and keeps; otherwise only the node that was
    /// asked does.
    pub per_hop: bool,
    /// Where to continue a transfer that was interrupted.
    pub resume: Option<Resume>,
    /// The stale record that the asker holds, if it would accept a confirmation of it.
    pub have: Option<RecordId>,
    /// The receiver must not send unrequested units: the asker may already hold many of them.
    pub sparing: bool,
    /// The receiver may send segments of the manifest that begin before this offset of the object.
    pub manifest_credit: u64,
    /// The bytes that the receiver may send in [`Message::Bytes`](super::Message::Bytes) until it
    /// is given more credit.
    pub credit: u32,
    /// The canonical URI: 1 to [`Get::URI_MAX`] bytes, without control characters.
    pub uri: String,
    /// The end-to-end fields of the client's request; at most
    /// [`Message::FIELDS_MAX`](super::Message::FIELDS_MAX).
    pub fields: Vec<Field>,
    /// What else it demands.
    pub options: Options,
}

impl Get {
    /// The greatest number of nodes that a request can visit.
    pub const VISITED_MAX: usize = 16;
    /// The longest URI, in bytes.
    pub const URI_MAX: usize = 16 * 1024;
}

/// Where an interrupted transfer continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The record that was being transferred.
    pub record: RecordId,
    /// The first segment of the manifest that is missing.
    pub segment: u32,
}

/// A unit that the sender requests, or parts of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// Its name.
    pub name: ChunkId,
    /// Its length in bytes: 1 to [`ChunkHead::TOTAL_MAX`].
    pub length: u32,
    /// The ranges that are missing, ascending and with a gap between neighbours; at most
    /// [`Want::RANGES_MAX`]. Empty if the whole unit is missing.
    pub missing: Vec<Range<u32>>,
}

impl Want {
    /// The most ranges of one unit.
    pub const RANGES_MAX: usize = 32;
}

impl Part for Get {
    fn write(&self, out: &mut Vec<u8>) {
        self.request.write(out);
        out.push(self.hops);
        write_list(&self.visited, out);
        out.push(self.flags());
        if let Some(resume) = self.resume {
            out.extend_from_slice(&resume.record.0);
            varint::write(resume.segment.into(), out);
        }
        if let Some(record) = self.have {
            out.extend_from_slice(&record.0);
        }
        varint::write(self.manifest_credit, out);
        varint::write(self.credit.into(), out);
        write_bytes(self.uri.as_bytes(), out);
        write_list(&self.fields, out);
        self.options.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let request = Request::read(reader)?;
        let hops = reader.byte()?;
        let visited = reader.list()?;
        let flags = reader.flags(MERGE | PER_HOP | RESUME | HAVE | SPARING)?;
        let resume = reader.option(flags & RESUME != 0, |reader| {
            Ok(Resume { record: RecordId(reader.array()?), segment: reader.number()? })
        })?;
        let have = reader.option(flags & HAVE != 0, |reader| reader.array().map(RecordId))?;
        Ok(Self {
            request,
            hops,
            visited,
            merge: flags & MERGE != 0,
            per_hop: flags & PER_HOP != 0,
            resume,
            have,
            sparing: flags & SPARING != 0,
            manifest_credit: reader.number()?,
            credit: reader.number()?,
            uri: reader.text()?,
            fields: reader.list()?,
            options: Options::read(reader)?,
        })
    }

    fn check(&self) -> Result<(), FrameError> {
        check_list(&self.visited)?;
        sound(!self.uri.is_empty())?;
        // The node that dials the origin writes it into the request line.
        check_line(&self.uri, Self::URI_MAX)?;
        check_list(&self.fields)?;
        self.options.check()
    }
}

impl Get {
    fn flags(&self) -> u8 {
        [
            (self.merge, MERGE),
            (self.per_hop, PER_HOP),
            (self.resume.is_some(), RESUME),
            (self.have.is_some(), HAVE),
            (self.sparing, SPARING),
        ]
        .into_iter()
        .fold(0, |flags, (set, bit)| if set { flags | bit } else { flags })
    }
}

impl Part for Want {
    fn write(&self, out: &mut Vec<u8>) {
        self.name.write(out);
        varint::write(self.length.into(), out);
        write_list(&self.missing, out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        Ok(Self { name: ChunkId::read(reader)?, length: reader.number()?, missing: reader.list()? })
    }

    fn check(&self) -> Result<(), FrameError> {
        sound((1..=ChunkHead::TOTAL_MAX).contains(&self.length))?;
        check_list(&self.missing)?;
        // Adjacent ranges would be a second encoding of one range.
        let mut pairs = self.missing.iter().zip(self.missing.iter().skip(1));
        sound(pairs.all(|(one, next)| one.end < next.start))?;
        sound(self.missing.last().is_none_or(|range| range.end <= self.length))
    }
}

impl Item for Want {
    const SHORTEST: usize = ChunkId::LEN + 2;
    const MOST: usize = super::Message::WANTS_MAX;
}

impl Part for Range<u32> {
    fn write(&self, out: &mut Vec<u8>) {
        varint::write(self.start.into(), out);
        varint::write(self.end.into(), out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        Ok(reader.number()?..reader.number()?)
    }

    fn check(&self) -> Result<(), FrameError> {
        sound(!self.is_empty())
    }
}

impl Item for Range<u32> {
    const SHORTEST: usize = 2;
    const MOST: usize = Want::RANGES_MAX;
}
