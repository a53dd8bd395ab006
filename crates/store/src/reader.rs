//! Reading units: one read for a run of adjacent units, which are then slices of one buffer.
//!
//! *What this is:* a handle that any thread may clone and use. *Who calls it:* the reader threads
//! of the drivers, with locations from the index. *What it never does:* look for a unit elsewhere,
//! or check its bytes against its name, which the engine does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use wire::ChunkId;

use crate::error::{Doing, Error, NotThere};
use crate::files::{File, Files};
use crate::segment::{
    Location, SEGMENT_BYTES_MAX, SegmentId, UNIT_HEADER, UnitHeader, unit_disk_bytes,
};

/// Most bytes of one read: the largest segment.
pub const READ_BYTES_MAX: u64 = SEGMENT_BYTES_MAX as u64;

/// Most segment files open for reading; beyond it, the least recently used one is closed.
const HANDLES_MAX: usize = 32;

/// Reads units. Clones share the open files.
#[derive(Clone, Debug)]
pub struct Reader {
    handles: Arc<Handles>,
}

impl Reader {
    pub(crate) fn new(handles: Arc<Handles>) -> Self {
        Self { handles }
    }

    /// Reads adjacent units of these lengths in bytes with one read. The first is at `first`, each
    /// other directly after the one before ([`crate::Index::adjacent`]). The results share a
    /// buffer.
    ///
    /// # Errors
    /// [`Error::Missing`] if other bytes are stored there: remove the units from the index, or read
    /// them one by one. [`Error::TooLong`] beyond [`READ_BYTES_MAX`]. [`Error::Io`] if the device
    /// fails. Nothing changes in any of these cases.
    pub fn read(&self, first: Location, lengths: &[u32]) -> Result<Vec<(ChunkId, Bytes)>, Error> {
        let mut buffer = buffer_for(lengths)?;
        let file = self.handles.open(first.segment)?;
        let got = file.read_at(u64::from(first.offset), &mut buffer).doing("read a segment")?;
        buffer.truncate(got);
        slice(first, lengths, buffer.into())
    }

    /// As [`Reader::read`], but `None` at once if the call would wait for the device, or if the system
    /// cannot tell whether it would.
    pub fn try_read(
        &self,
        first: Location,
        lengths: &[u32],
    ) -> Option<Result<Vec<(ChunkId, Bytes)>, Error>> {
        let mut buffer = buffer_for(lengths).ok()?;
        // Only a file that is already open: opening one reads directories, which may block.
        let file = self.handles.opened(first.segment)?;
        let got = file.try_read_at(u64::from(first.offset), &mut buffer)?.ok()?;
        buffer.truncate(got);
        Some(slice(first, lengths, buffer.into()))
    }
}

/// A buffer for the whole run, without the padding after the last unit.
fn buffer_for(lengths: &[u32]) -> Result<Vec<u8>, Error> {
    let all = |total: u64, length: &u32| total + u64::from(*length) + u64::from(UNIT_HEADER) + 15;
    let bytes = lengths.iter().fold(0, all);
    if bytes > READ_BYTES_MAX {
        return Err(Error::TooLong { bytes, bytes_max: READ_BYTES_MAX });
    }
    let padded: u32 = lengths.iter().map(|length| unit_disk_bytes(*length)).sum();
    let padding = lengths.last().map_or(0, |last| unit_disk_bytes(*last) - UNIT_HEADER - last);
    Ok(vec![0; (padded - padding) as usize])
}

fn slice(first: Location, lengths: &[u32], buffer: Bytes) -> Result<Vec<(ChunkId, Bytes)>, Error> {
    let mut units = Vec::with_capacity(lengths.len());
    let mut start = 0;
    for length in lengths {
        let at = Location { segment: first.segment, offset: first.offset + start };
        let missing = |why| Error::missing(at.segment, at.offset, why);
        let body = (start + UNIT_HEADER) as usize..(start + UNIT_HEADER + length) as usize;
        let header = buffer.get(start as usize..).and_then(|bytes| UnitHeader::parse(bytes, at));
        let header = header.ok_or_else(|| missing(NotThere::NoUnit))?;
        if header.length != *length {
            return Err(missing(NotThere::OtherLength));
        }
        if body.end > buffer.len() {
            return Err(missing(NotThere::SegmentEnds));
        }
        units.push((header.id, buffer.slice(body)));
        start += unit_disk_bytes(*length);
    }
    Ok(units)
}

/// Open segment files, most recently used last.
#[derive(Debug)]
pub(crate) struct Handles {
    files: Arc<dyn Files>,
    open: Mutex<Vec<(SegmentId, Arc<dyn File>)>>,
}

impl Handles {
    pub fn new(files: Arc<dyn Files>) -> Self {
        Self { files, open: Mutex::new(Vec::new()) }
    }

    pub fn open(&self, segment: SegmentId) -> Result<Arc<dyn File>, Error> {
        if let Some(file) = self.opened(segment) {
            return Ok(file);
        }
        // The lock is not held here, so other threads can read open files.
        let file = match self.files.open(&file_name(segment)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::missing(segment, 0, NotThere::SegmentGone));
            }
            opened => opened.doing("open a segment")?,
        };
        self.add(segment, file.clone());
        Ok(file)
    }

    fn opened(&self, segment: SegmentId) -> Option<Arc<dyn File>> {
        let mut open = self.lock();
        let at = open.iter().position(|(id, _)| *id == segment)?;
        open[at..].rotate_left(1);
        open.last().map(|(_, file)| file.clone())
    }

    pub fn add(&self, segment: SegmentId, file: Arc<dyn File>) {
        let mut open = self.lock();
        open.retain(|(id, _)| *id != segment);
        if open.len() == HANDLES_MAX {
            open.remove(0);
        }
        open.push((segment, file));
    }

    /// Closes a segment before it is removed: an open file would still occupy disk space.
    pub fn close(&self, segment: SegmentId) {
        self.lock().retain(|(id, _)| *id != segment);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(SegmentId, Arc<dyn File>)>> {
        // After a panic elsewhere the list is still consistent: at worst a file is open twice.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const SUFFIX: &str = ".segment";

pub(crate) fn file_name(segment: SegmentId) -> String {
    format!("{:08x}{SUFFIX}", segment.0)
}

/// The number in the name of a segment file; `None` for any other file.
pub(crate) fn segment_of(name: &str) -> Option<SegmentId> {
    let digits = name.strip_suffix(SUFFIX).filter(|digits| digits.len() == 8)?;
    u32::from_str_radix(digits, 16).ok().map(SegmentId)
}
