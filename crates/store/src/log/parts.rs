//! Parts of the log: the segment being written, bytes that are not durable yet, a unit about to be
//! written.
//!
//! *Who calls it:* `log.rs` alone. *What it never does:* choose a segment, or count for the report.

use std::io::IoSlice;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Doing, Error};
use crate::files::{File, write_again};
use crate::segment::{
    Entry, FOOTER_ENTRY, Location, SegmentHeader, SegmentId, TRAILER, UNIT_BYTES_MAX, UNIT_HEADER,
    Unit, UnitHeader, unit_disk_bytes, unit_log_bytes,
};

/// Most units in one vectored write: a unit needs three buffers, and the system accepts 1,024.
const WRITE_UNITS_MAX: usize = 340;

/// A segment that is being written.
#[derive(Debug)]
pub(super) struct Head {
    pub header: SegmentHeader,
    pub file: Arc<dyn File>,
    /// The offset of the next unit.
    pub end: u32,
    pub entries: Vec<Entry>,
    /// Whether a failed write may have left bytes after the end.
    pub has_tail: bool,
}

/// A file with bytes that are not durable.
#[derive(Debug)]
pub(super) struct Unsynced {
    pub id: SegmentId,
    pub file: Arc<dyn File>,
    /// The offset of the first byte that is not durable.
    pub from: u32,
    pub has_failed: bool,
}

/// A unit about to be written to a segment.
pub(super) struct Piece {
    pub header: UnitHeader,
    pub body: Bytes,
}

impl Head {
    /// Bytes left for units and their entries in the footer.
    pub fn room(&self, segment_bytes: u32) -> u32 {
        let used = self.end + self.entries.len() as u32 * FOOTER_ENTRY + TRAILER;
        segment_bytes.saturating_sub(used)
    }

    /// Writes the pieces at the end, which the caller then advances; returns their entries.
    pub fn write(&mut self, pieces: &[Piece]) -> Result<Vec<Entry>, Error> {
        let segment = self.header.id;
        let (mut entries, mut offset) = (Vec::with_capacity(pieces.len()), self.end);
        let mut heads = Vec::with_capacity(pieces.len());
        for piece in pieces {
            heads.push(piece.header.emit(Location { segment, offset }));
            let UnitHeader { id, length, provenance, .. } = piece.header;
            entries.push(Entry { id, length, offset, provenance });
            offset += piece.disk_bytes();
        }
        // One vectored write for all pieces: header, body, padding each.
        let padding = [0; 16];
        let mut parts = Vec::with_capacity(pieces.len() * 3);
        for (piece, head) in pieces.iter().zip(&heads) {
            parts.push(IoSlice::new(head));
            parts.push(IoSlice::new(&piece.body));
            parts.push(IoSlice::new(&padding[..piece.padding()]));
        }
        parts.retain(|part| !part.is_empty());
        let written = self.file.write_at(u64::from(self.end), &mut parts);
        if written.is_err() {
            self.has_tail = true;
        }
        written.doing("append to a segment")?;
        Ok(entries)
    }
}

impl Piece {
    pub fn of(unit: &Unit) -> Result<Self, Error> {
        let length = u32::try_from(unit.bytes.len()).unwrap_or(u32::MAX);
        if length > UNIT_BYTES_MAX {
            let bytes = unit.bytes.len() as u64;
            return Err(Error::TooLong { bytes, bytes_max: u64::from(UNIT_BYTES_MAX) });
        }
        let body_crc = crc32fast::hash(&unit.bytes);
        let header = UnitHeader { id: unit.id, length, provenance: unit.provenance, body_crc };
        Ok(Self { header, body: unit.bytes.clone() })
    }

    pub fn disk_bytes(&self) -> u32 {
        unit_disk_bytes(self.header.length)
    }

    fn padding(&self) -> usize {
        (self.disk_bytes() - UNIT_HEADER - self.header.length) as usize
    }

    /// Bytes on disk of the unit, and of its entry in the footer.
    pub fn cost(&self) -> u32 {
        unit_log_bytes(self.header.length)
    }
}

/// The number of pieces that fit into `room` bytes and into one write.
pub(super) fn fitting(pieces: &[Piece], room: u32) -> usize {
    let mut left = room;
    let fits = |piece: &&Piece| {
        let fitting = left.checked_sub(piece.cost());
        left = fitting.unwrap_or(0);
        fitting.is_some()
    };
    pieces.iter().take(WRITE_UNITS_MAX).take_while(fits).count()
}

impl Unsynced {
    pub fn sync(&mut self) -> Result<(), Error> {
        if self.has_failed {
            write_again(&*self.file, u64::from(self.from))
                .doing("write the unsynced bytes of a segment again")?;
        }
        self.file.sync().doing("make a segment durable")
    }
}
