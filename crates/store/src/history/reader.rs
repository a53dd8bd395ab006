//! Reading a history: one read for adjacent units of a block, which are then slices of one buffer.
//!
//! *What this is:* a handle that any thread may clone and use while the writer appends, truncates
//! and removes blocks. *What it never does:* write, or wait for the writer's disk.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::cipher::Cipher;
use super::format::{RECORD_HEADER, RecordHeader};
use super::held::{Run, Shared};
use super::{HistoryState, Mark};
use crate::error::{Doing, Error};
use crate::files::{File, Files, read_exact};
use crate::reader::READ_BYTES_MAX;

/// Reads a history. Clones share the open files.
#[derive(Clone, Debug)]
pub struct HistoryReader {
    pub(super) files: Arc<dyn Files>,
    pub(super) shared: Arc<Shared>,
    pub(super) cipher: Arc<Cipher>,
}

impl HistoryReader {
    /// The first position that is held.
    pub fn first(&self) -> u64 {
        self.state().first
    }

    /// The position after the last one that is held, durable or not.
    pub fn end(&self) -> u64 {
        self.state().end
    }

    /// What is held, durable or not.
    pub fn state(&self) -> HistoryState {
        self.shared.lock().state()
    }

    /// Reads `count` adjacent units, durable or not, with one read for those of one block (1,024 positions). The
    /// units of a block share a buffer. `None` if any of them is not held: never appended,
    /// forgotten, or damaged. After damage the whole block counts as lost until the next start.
    ///
    /// # Errors
    /// [`Error::TooLong`] if the records have more than [`READ_BYTES_MAX`] bytes together: read
    /// fewer. [`Error::Io`] if the device fails. Nothing changes in either case.
    pub fn read(&self, position: u64, count: u32) -> Result<Option<Vec<(Mark, Bytes)>>, Error> {
        let Some(runs) = self.runs(position, count) else { return Ok(None) };
        let bytes = runs.iter().map(|run| u64::from(run.bytes())).sum();
        if bytes > READ_BYTES_MAX {
            return Err(Error::TooLong { bytes, bytes_max: READ_BYTES_MAX });
        }
        let mut units = Vec::with_capacity(count as usize);
        for run in &runs {
            let Some(mut some) = self.read_run(run)? else { return Ok(None) };
            units.append(&mut some);
        }
        Ok(Some(units))
    }

    /// Calls `each` with the marks of all units from position `from` to before `to`, in order,
    /// without reading the units' bytes. Positions that are not held, and marks that are damaged,
    /// are left out.
    ///
    /// # Errors
    /// [`Error::Io`] if the device fails; some marks were then passed on, and nothing changed.
    pub fn marks(&self, from: u64, to: u64, mut each: impl FnMut(u64, Mark)) -> Result<(), Error> {
        let mut at = from.max(self.first());
        loop {
            let run = self.shared.lock().run(at, to);
            let Some(run) = run else {
                // The block may have been removed since: go on with the oldest that is held.
                let first = self.first();
                if first <= at {
                    return Ok(());
                }
                at = first;
                continue;
            };
            self.marks_of(&run, &mut each)?;
            at = run.end();
        }
    }

    /// The runs that the units are in; `None` if any of them is not held.
    fn runs(&self, position: u64, count: u32) -> Option<Vec<Run>> {
        let end = position.checked_add(u64::from(count))?;
        let held = self.shared.lock();
        if end > held.state().end {
            return None;
        }
        let (mut runs, mut at) = (Vec::new(), position);
        while at < end {
            let run = held.run(at, end).filter(|run| !run.is_lost)?;
            at = run.end();
            runs.push(run);
        }
        Some(runs)
    }

    fn read_run(&self, run: &Run) -> Result<Option<Vec<(Mark, Bytes)>>, Error> {
        let Some(file) = self.open(run)? else { return Ok(None) };
        let start = run.offsets.first().copied().unwrap_or_default();
        let mut buffer = vec![0; run.bytes() as usize];
        let got = file.read_at(u64::from(start), &mut buffer).doing("read a history")?;
        buffer.truncate(got);
        let units = self.open_records(run, buffer);
        if units.is_none() {
            self.shared.lock().lose(run);
        }
        Ok(units)
    }

    /// Checks and deciphers the records of a run; `None` if one is damaged.
    fn open_records(&self, run: &Run, mut buffer: Vec<u8>) -> Option<Vec<(Mark, Bytes)>> {
        let start = *run.offsets.first()?;
        let mut marks = Vec::with_capacity(run.offsets.len() - 1);
        for (position, ends) in (run.first..).zip(run.offsets.windows(2)) {
            let span = (ends[0] - start) as usize..(ends[1] - start) as usize;
            let record = buffer.get_mut(span.clone())?;
            let header = RecordHeader::parse(record, &run.block, position)?;
            if !header.matches(record.get(RECORD_HEADER as usize..)?) {
                return None;
            }
            marks.push((header.open(record, &self.cipher)?, span));
        }
        let buffer = Bytes::from(buffer);
        let body = |(mark, span): (Mark, std::ops::Range<usize>)| {
            (mark, buffer.slice(span.start + RECORD_HEADER as usize..span.end))
        };
        Some(marks.into_iter().map(body).collect())
    }

    fn marks_of(&self, run: &Run, each: &mut impl FnMut(u64, Mark)) -> Result<(), Error> {
        let Some(file) = self.open(run)? else { return Ok(()) };
        let headers = headers_of(&*file, run).doing("read the marks of a history")?;
        for (position, bytes) in (run.first..).zip(headers.chunks_exact(RECORD_HEADER as usize)) {
            let mut bytes = bytes.to_vec();
            let header = RecordHeader::parse(&bytes, &run.block, position);
            let mark = header.and_then(|header| header.open(&mut bytes, &self.cipher));
            if let Some(mark) = mark {
                each(position, mark);
            }
        }
        Ok(())
    }

    /// The file of a run; `None` if it has been removed.
    fn open(&self, run: &Run) -> Result<Option<Arc<dyn File>>, Error> {
        let is_current = |changes: u64| changes == run.changes;
        {
            let mut held = self.shared.lock();
            if let Some(file) = held.opened(run.block.number).filter(|_| is_current(held.changes)) {
                return Ok(Some(file));
            }
        }
        // The lock is not held here, so other threads can read open files.
        let file = match self.files.open(&run.block.file_name()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.doing("open a block of a history")?,
        };
        let mut held = self.shared.lock();
        // The file of a block that is gone must not stay open.
        let is_held = held.blocks.iter().any(|block| block.number == run.block.number);
        if is_current(held.changes) && is_held {
            held.add(run.block.number, file.clone());
        }
        Ok(Some(file))
    }
}

/// The record headers of a run, one after another: with one read from the footer, or with one read
/// each. A header that the file does not hold whole is zeros.
pub(super) fn headers_of(file: &dyn File, run: &Run) -> io::Result<Vec<u8>> {
    let length = (run.offsets.len() - 1) * RECORD_HEADER as usize;
    if let Some(offset) = run.footer_offset
        && let Some(headers) = read_exact(file, u64::from(offset), length)?
    {
        return Ok(headers);
    }
    let mut headers = vec![0; length];
    for (offset, header) in run.offsets.iter().zip(headers.chunks_exact_mut(RECORD_HEADER as usize))
    {
        file.read_at(u64::from(*offset), header)?;
    }
    Ok(headers)
}
