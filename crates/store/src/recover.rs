//! Recovery: reads the segment files at start and fills the index.
//!
//! *What this is:* it reads the footer of each segment; a segment without one is scanned unit by
//! unit. *Who calls it:* `Log::open`; `Log::entries` for one segment. *What it never does:* panic
//! or stop because of a file's content; write.
//!
//! *What survives a crash:* a footer is written after everything before it is durable, so it is
//! trusted. In a segment without a footer, a unit is accepted if its header and its bytes match
//! their CRCs. After an invalid header the scan looks for the next valid one, 16 bytes at a time.

use std::io;

use crate::files::{File, read_exact};
use crate::segment::{
    ALIGN, Entry, Location, SEGMENT_BYTES_MAX, SEGMENT_HEADER, SegmentHeader, SegmentId, TRAILER,
    Trailer, UNIT_BYTES_MAX, UNIT_HEADER, UNIT_MAGIC, UnitHeader, unit_disk_bytes,
};

/// The result of opening a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Segments in the index.
    pub segments: u64,
    /// Units in the index.
    pub units: u64,
    /// Segments without a footer, as the last ones are after a crash; they were scanned.
    pub walked_segments: u64,
    /// Segment files that could not be read or held no unit; the latter were removed.
    pub dropped_segments: u64,
    /// Units with a valid header but damaged bytes.
    pub dropped_units: u64,
    /// Bytes outside valid units.
    pub dropped_bytes: u64,
    /// The state of the version file.
    pub version_file: VersionFile,
}

/// The state in which the store's version file was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VersionFile {
    /// Valid, or newly created with the store.
    #[default]
    Sound,
    /// Damaged, missing or of another version, although the segments are of this one. The file was
    /// rewritten.
    Renewed,
    /// As [`VersionFile::Renewed`], but the file could not be written, for this reason. The store is
    /// used nevertheless.
    Unwritten(io::ErrorKind),
}

/// The content of one segment file.
#[derive(Debug)]
pub(crate) struct Found {
    /// `None` if it is damaged.
    pub header: Option<SegmentHeader>,
    pub entries: Vec<Entry>,
    pub file_bytes: u64,
    /// The offset after the last valid unit.
    pub end: u32,
    pub is_sealed: bool,
    pub dropped_units: u64,
    pub dropped_bytes: u64,
}

/// Reads the content of a segment file.
pub(crate) fn read_segment(file: &dyn File, id: SegmentId) -> io::Result<Found> {
    let file_bytes = file.len()?;
    let header = read_exact(file, 0, SEGMENT_HEADER as usize)?;
    let header = header.and_then(|bytes| SegmentHeader::parse(&bytes, id));
    // A footer is bound to the salt in the header, so it cannot be checked without the header.
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
        None => Walk { window: Window::new(file), id, found: &mut found }.run()?,
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

/// A scan through the units of a segment without a footer.
struct Walk<'a> {
    window: Window<'a>,
    id: SegmentId,
    found: &'a mut Found,
}

impl Walk<'_> {
    fn run(&mut self) -> io::Result<()> {
        // A log writes nothing beyond this size.
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

    /// Records the unit if its bytes are valid; returns the distance to the next possible unit.
    fn take(&mut self, offset: u32, header: &UnitHeader) -> io::Result<u32> {
        let body = self.window.at(offset + UNIT_HEADER, header.length)?;
        if body.is_none_or(|body| crc32fast::hash(body) != header.body_crc) {
            self.found.dropped_units += 1;
            // A torn write may have left another valid header inside.
            return Ok(ALIGN);
        }
        // The bytes between two valid units were skipped.
        self.found.dropped_bytes += u64::from(offset - self.found.end);
        let UnitHeader { id, length, provenance, .. } = *header;
        self.found.entries.push(Entry { id, length, offset, provenance });
        self.found.end = offset + unit_disk_bytes(length);
        Ok(unit_disk_bytes(length))
    }
}

/// Part of a file in memory, so that a scan reads large pieces.
pub(crate) struct Window<'a> {
    file: &'a dyn File,
    start: u32,
    bytes: Vec<u8>,
}

/// More than the longest unit, and little memory even on a small router.
const WINDOW_BYTES: usize = 256 << 10;
const _: () = assert!(WINDOW_BYTES > (UNIT_BYTES_MAX + UNIT_HEADER) as usize);

impl<'a> Window<'a> {
    pub fn new(file: &'a dyn File) -> Self {
        Self { file, start: 0, bytes: Vec::new() }
    }

    /// The bytes at an offset of the file; `None` if the file ends before.
    pub fn at(&mut self, offset: u32, length: u32) -> io::Result<Option<&[u8]>> {
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

/// Reads the unit of an entry; `None` if it is incomplete or damaged.
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
