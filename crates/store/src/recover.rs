//! Reading a store's directory at start: from segment files to an index.
//!
//! *What this is:* for each segment its footer, or, where there is none, a walk through its units.
//! *Who calls it:* `Log::open`; `Log::entries` for one segment. *What it never does:* panic or give
//! up on what it reads; write.
//!
//! *What survives a crash:* a footer is written when all before it is durable, so it is believed.
//! A segment without one is walked: a unit is taken if its header and its bytes pass their CRC.
//! Behind a bad header the walk looks on for the next good one, 16 bytes at a time.

use std::io;

use crate::files::{File, read_exact};
use crate::segment::{
    ALIGN, Entry, Location, SEGMENT_BYTES_MAX, SEGMENT_HEADER, SegmentHeader, SegmentId, TRAILER,
    Trailer, UNIT_BYTES_MAX, UNIT_HEADER, UNIT_MAGIC, UnitHeader, unit_disk_bytes,
};

/// What opening a store found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Segments in the index now.
    pub segments: u64,
    /// Units in the index now.
    pub units: u64,
    /// Segments that had no footer, as the last ones have after a crash, and were walked.
    pub walked_segments: u64,
    /// Segment files that could not be read or held nothing; those that could be were removed.
    pub dropped_segments: u64,
    /// Units whose header was whole and whose bytes were not.
    pub dropped_units: u64,
    /// Bytes that belong to no good unit.
    pub dropped_bytes: u64,
    /// The file that names the store's version.
    pub mark: Mark,
}

/// How a store found the file that names its version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// As it should be, or begun with the store.
    #[default]
    Sound,
    /// Damaged, gone or of another version, though segments are of this one. It was written anew.
    Renewed,
    /// Not as it should be, and it could not be written, for this reason. The store is used all the same.
    Unwritten(io::ErrorKind),
}

/// What one segment file holds.
#[derive(Debug)]
pub(crate) struct Found {
    /// `None` if it cannot be read.
    pub header: Option<SegmentHeader>,
    pub entries: Vec<Entry>,
    pub file_bytes: u64,
    /// Where the last good unit ends.
    pub end: u32,
    pub is_sealed: bool,
    pub dropped_units: u64,
    pub dropped_bytes: u64,
}

/// Reads what a segment file holds.
pub(crate) fn read_segment(file: &dyn File, id: SegmentId) -> io::Result<Found> {
    let file_bytes = file.len()?;
    let header = read_exact(file, 0, SEGMENT_HEADER as usize)?;
    let header = header.and_then(|bytes| SegmentHeader::parse(&bytes, id));
    let sealed = match &header {
        Some(header) => read_footer(file, header, file_bytes)?,
        None => None,
    };
    let mut found = Found {
        header,
        entries: Vec::new(),
        file_bytes,
        end: SEGMENT_HEADER,
        is_sealed: sealed.is_some(),
        dropped_units: 0,
        dropped_bytes: 0,
    };
    match sealed {
        Some((end, entries)) => (found.end, found.entries) = (end, entries),
        None => {
            Walk { window: Window { file, start: 0, bytes: Vec::new() }, id, found: &mut found }
                .run()?
        }
    }
    Ok(found)
}

fn read_footer(
    file: &dyn File,
    header: &SegmentHeader,
    file_bytes: u64,
) -> io::Result<Option<(u32, Vec<Entry>)>> {
    let Some(trailer_at) = file_bytes.checked_sub(u64::from(TRAILER)) else { return Ok(None) };
    let bytes = read_exact(file, trailer_at, TRAILER as usize)?;
    let trailer = bytes.and_then(|bytes| Trailer::parse(&bytes, header, file_bytes));
    let Some(trailer) = trailer else { return Ok(None) };
    let length = trailer.entries_bytes as usize;
    let bytes = read_exact(file, u64::from(trailer.footer_offset), length)?;
    let entries = bytes.and_then(|bytes| trailer.entries(&bytes, header));
    Ok(entries.map(|entries| (trailer.footer_offset, entries)))
}

/// A walk through the units of a segment that has no footer.
struct Walk<'a> {
    window: Window<'a>,
    id: SegmentId,
    found: &'a mut Found,
}

impl Walk<'_> {
    fn run(&mut self) -> io::Result<()> {
        // Whatever lies beyond was not written by a log.
        let limit = self.found.file_bytes.min(u64::from(SEGMENT_BYTES_MAX)) as u32;
        let mut offset = SEGMENT_HEADER;
        while offset < limit {
            offset += match self.unit_at(offset)? {
                Some(header) => self.take(offset, &header)?,
                None => ALIGN,
            };
        }
        let end = u64::from(self.found.end);
        self.found.dropped_bytes += self.found.file_bytes.saturating_sub(end);
        Ok(())
    }

    fn unit_at(&mut self, offset: u32) -> io::Result<Option<UnitHeader>> {
        let at = Location { segment: self.id, offset };
        let bytes = self.window.at(offset, UNIT_HEADER)?;
        let Some(bytes) = bytes.filter(|bytes| bytes.starts_with(UNIT_MAGIC)) else {
            return Ok(None);
        };
        Ok(UnitHeader::parse(bytes, at))
    }

    /// Enters the unit if its bytes are whole; returns how far the next is.
    fn take(&mut self, offset: u32, header: &UnitHeader) -> io::Result<u32> {
        let body = self.window.at(offset + UNIT_HEADER, header.length)?;
        if body.is_none_or(|body| crc32fast::hash(body) != header.body_crc) {
            self.found.dropped_units += 1;
            // A torn write may have put another good header inside.
            return Ok(ALIGN);
        }
        // Between good units lies what was skipped to get here.
        self.found.dropped_bytes += u64::from(offset - self.found.end);
        let UnitHeader { id, length, provenance, .. } = *header;
        self.found.entries.push(Entry { id, length, offset, provenance });
        self.found.end = offset + unit_disk_bytes(length);
        Ok(unit_disk_bytes(length))
    }
}

/// Part of a file in memory, so that a walk reads it in large pieces.
struct Window<'a> {
    file: &'a dyn File,
    start: u32,
    bytes: Vec<u8>,
}

/// Enough for the longest unit, and no burden to a small router.
const WINDOW_BYTES: usize = 256 << 10;
const _: () = assert!(WINDOW_BYTES > (UNIT_BYTES_MAX + UNIT_HEADER) as usize);

impl Window<'_> {
    /// The bytes at an offset of the file; `None` if it ends before.
    fn at(&mut self, offset: u32, length: u32) -> io::Result<Option<&[u8]>> {
        let is_inside = |window: &Self| {
            offset >= window.start
                && (offset - window.start + length) as usize <= window.bytes.len()
        };
        if !is_inside(self) {
            self.bytes.resize(WINDOW_BYTES, 0);
            self.start = offset;
            let got = self.file.read_at(u64::from(offset), &mut self.bytes)?;
            self.bytes.truncate(got);
        }
        if !is_inside(self) {
            return Ok(None);
        }
        let from = (offset - self.start) as usize;
        Ok(Some(&self.bytes[from..from + length as usize]))
    }
}

/// Reads the unit that an entry names; `None` if it is not there whole.
pub(crate) fn read_unit(
    file: &dyn File,
    segment: SegmentId,
    entry: &Entry,
) -> io::Result<Option<(UnitHeader, Vec<u8>)>> {
    let at = Location { segment, offset: entry.offset };
    let length = (UNIT_HEADER + entry.length) as usize;
    let Some(mut bytes) = read_exact(file, u64::from(entry.offset), length)? else {
        return Ok(None);
    };
    let header = UnitHeader::parse(&bytes, at);
    let body = bytes.split_off(UNIT_HEADER as usize);
    let header = header.filter(|header| {
        header.id == entry.id
            && header.length == entry.length
            && header.body_crc == crc32fast::hash(&body)
    });
    Ok(header.map(|header| (header, body)))
}
