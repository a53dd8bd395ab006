//! The two histories of a pair on disk: of what is sent and of what is received.

use crate::config::Place;
use crate::entropy;
use bytes::Bytes;
use node::uplink::{MemoryUnits, Span, Units};
use std::path::Path;
use std::sync::Arc;
use store::{
    Disk as Directory, Error, Files, History, HistoryOptions, HistoryReader, HistoryState, Mark,
    Memory, Ring,
};

/// The file of a published scheme's log.
const CHUNKS: &str = "ring";

/// Units that are kept in memory in the place of a disk that fails: some 4 MiB.
const MEMORY_UNITS: usize = 512;
/// Positions are not named any more that are gone after this many more bytes, or a quarter of the budget: as much may
/// be under way.
const MARGIN: u64 = 16 << 20;

/// One direction's history. If the disk fails, a little is kept in memory instead, until a connection begins the history
/// anew and the disk works again.
pub struct Kept {
    place: Where,
    files: Arc<dyn Files>,
    options: HistoryOptions,
}

enum Where {
    Disk(History, HistoryReader),
    /// What came since the disk failed, and a reader of what was there before.
    Memory(MemoryUnits, Option<HistoryReader>),
}

/// Both histories of one end.
pub struct Histories {
    /// Of what this end sends.
    pub out: Kept,
    /// Of what this end receives.
    pub within: Kept,
    /// The log of a published scheme, if one may be used, and how many chunks its tables have at most.
    pub chunks: Option<(Ring, usize)>,
}

impl Histories {
    /// Opens or creates both below `place`, with a budget for each. `key` enciphers them.
    pub fn open(
        place: &Place,
        (out_bytes, within_bytes): (u64, u64),
        key: Option<[u8; 32]>,
    ) -> Result<Self, Error> {
        let open = |name: &str, budget_bytes| {
            let files: Arc<dyn Files> = match place {
                Place::Memory => Arc::new(Memory::new()),
                Place::Dir(path) => Arc::new(Directory::open(path.join(name))?),
            };
            let options = HistoryOptions { budget_bytes, key };
            let (history, reader, _) = History::open(files.clone(), options, entropy::bytes())?;
            Ok(Kept { place: Where::Disk(history, reader), files, options })
        };
        let (out, within) = (open("sent", out_bytes)?, open("received", within_bytes)?);
        Ok(Self { out, within, chunks: None })
    }

    /// With an empty log of at most this many bytes, for a published scheme. Its key lasts as long as the process.
    ///
    /// # Errors
    /// If its file cannot be created.
    pub fn with_chunks(
        mut self,
        place: &Place,
        bytes: u64,
        entries_max: usize,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let files: Arc<dyn Files> = match place {
            Place::Memory => Arc::new(Memory::new()),
            Place::Dir(path) => Arc::new(Directory::open(path.join("chunks"))?),
        };
        if files.names()?.iter().any(|name| name == CHUNKS) {
            files.remove(CHUNKS)?;
        }
        let ring = Ring::new(files.create(CHUNKS)?, bytes, entropy::bytes())?;
        self.chunks = Some((ring, entries_max));
        Ok(self)
    }

    /// What both hold.
    pub fn held(&self) -> (HistoryState, HistoryState) {
        (self.out.held(), self.within.held())
    }

    /// The marks of what was sent, from the oldest on.
    pub fn marks(&self) -> Vec<Mark> {
        let HistoryState { first, end, .. } = self.out.held();
        let mut marks = Vec::new();
        if let Where::Disk(_, reader) = &self.out.place
            && let Err(error) = reader.marks(first, end, |_, mark| marks.push(mark))
        {
            tracing::warn!(%error, "cannot read what has crossed before");
        }
        // A gap would shift all that follows.
        if marks.len() as u64 == end - first { marks } else { Vec::new() }
    }

    /// The directory of one gateway's histories at the far end.
    pub fn directory(place: &Place, name: &str) -> Place {
        match place {
            Place::Memory => Place::Memory,
            Place::Dir(path) => Place::Dir(Path::new(path).join(name)),
        }
    }
}

impl Kept {
    /// From this position on units are kept in memory.
    fn fails(&mut self, error: &Error, position: u64) {
        tracing::warn!(%error, "cannot keep what crosses the uplink: from here on little of it is remembered");
        let reader = match &self.place {
            Where::Disk(_, reader) => Some(reader.clone()),
            Where::Memory(_, reader) => reader.clone(),
        };
        self.place = Where::Memory(MemoryUnits::from(position, MEMORY_UNITS), reader);
    }

    /// Makes what was appended durable.
    pub fn sync(&mut self) {
        if let Where::Disk(history, _) = &mut self.place
            && let Err(error) = history.sync()
        {
            let end = self.held().end;
            self.fails(&error, end);
        }
    }

    /// The disk's history begins anew, if the disk works again.
    fn reopen(&self, epoch: [u8; 16]) -> Result<Where, Error> {
        let (mut history, reader, _) = History::open(self.files.clone(), self.options, epoch)?;
        history.reset(epoch, 0)?;
        Ok(Where::Disk(history, reader))
    }
}

impl Units for Kept {
    fn held(&self) -> HistoryState {
        match &self.place {
            Where::Disk(history, _) => history.state(),
            Where::Memory(units, _) => units.held(),
        }
    }

    fn lasting(&self) -> u64 {
        match &self.place {
            Where::Disk(history, _) => history.lasting(MARGIN.min(self.options.budget_bytes / 4)),
            Where::Memory(units, _) => units.lasting(),
        }
    }

    fn read(&mut self, span: Span, out: &mut Vec<(Mark, Bytes)>) -> bool {
        let reader = match &mut self.place {
            Where::Disk(_, reader) => reader,
            Where::Memory(units, reader) => match (units.read(span, out), reader) {
                (true, _) => return true,
                (false, Some(reader)) => reader,
                (false, None) => return false,
            },
        };
        match reader.read(span.first, span.count) {
            Ok(Some(units)) => {
                out.extend(units);
                true
            }
            Ok(None) => false,
            Err(error) => {
                tracing::debug!(%error, "cannot read what has crossed before");
                false
            }
        }
    }

    fn append(&mut self, units: &[(Mark, Bytes)]) {
        let first = self.held().end;
        match &mut self.place {
            Where::Disk(history, _) => {
                if let Err(error) = history.append(first, units) {
                    // Some of them may have been appended.
                    self.fails(&error, first);
                    self.append(units);
                }
            }
            Where::Memory(memory, _) => memory.append(units),
        }
    }

    fn truncate(&mut self, end: u64) {
        match &mut self.place {
            Where::Disk(history, _) => {
                if let Err(error) = history.truncate(end) {
                    self.fails(&error, end);
                }
            }
            Where::Memory(memory, _) => memory.truncate(end),
        }
    }

    fn reset(&mut self, epoch: [u8; 16]) {
        let result = match &mut self.place {
            Where::Disk(history, _) => history.reset(epoch, 0),
            Where::Memory(..) => self.reopen(epoch).map(|disk| self.place = disk),
        };
        if let Err(error) = result {
            self.fails(&error, 0);
            self.place = Where::Memory(MemoryUnits::new(epoch, MEMORY_UNITS), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, IoSlice};
    use std::sync::atomic::{AtomicBool, Ordering};
    use store::File;

    /// Files on a disk that may be full.
    #[derive(Clone, Debug)]
    struct Full {
        inner: Arc<Memory>,
        is_full: Arc<AtomicBool>,
    }

    #[derive(Debug)]
    struct FullFile(Arc<dyn File>, Arc<AtomicBool>);

    fn check(is_full: &AtomicBool) -> io::Result<()> {
        match is_full.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    impl Full {
        fn file(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
            Arc::new(FullFile(inner, self.is_full.clone()))
        }
    }

    impl Files for Full {
        fn names(&self) -> io::Result<Vec<String>> {
            self.inner.names()
        }
        fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
            check(&self.is_full)?;
            Ok(self.file(self.inner.create(name)?))
        }
        fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
            Ok(self.file(self.inner.open(name)?))
        }
        fn remove(&self, name: &str) -> io::Result<()> {
            self.inner.remove(name)
        }
        fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            self.inner.rename(from, to)
        }
        fn sync_names(&self) -> io::Result<()> {
            self.inner.sync_names()
        }
    }

    impl File for FullFile {
        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }
        fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
            self.0.read_at(offset, out)
        }
        fn write_at(&self, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
            check(&self.1)?;
            self.0.write_at(offset, parts)
        }
        fn set_len(&self, len: u64) -> io::Result<()> {
            self.0.set_len(len)
        }
        fn sync(&self) -> io::Result<()> {
            self.0.sync()
        }
    }

    fn unit(number: u64) -> (Mark, Bytes) {
        (Mark::default(), Bytes::copy_from_slice(&number.to_le_bytes().repeat(100)))
    }

    fn holds(kept: &mut Kept, number: u64) -> bool {
        let mut units = Vec::new();
        let is_held = kept.read(Span { first: number, count: 1 }, &mut units);
        assert!(!is_held || units[0].1 == unit(number).1, "{number} is another");
        is_held
    }

    #[test]
    fn what_comes_while_the_disk_is_full_is_kept_in_memory_and_what_was_there_is_read() {
        let is_full = Arc::new(AtomicBool::new(false));
        let files = Arc::new(Full { inner: Arc::new(Memory::new()), is_full: is_full.clone() });
        let options = HistoryOptions { budget_bytes: 1 << 30, key: None };
        let (history, reader, _) = History::open(files.clone(), options, [1; 16]).unwrap();
        let mut kept = Kept { place: Where::Disk(history, reader), files, options };
        (0..100).for_each(|number| kept.append(&[unit(number)]));
        is_full.store(true, Ordering::Relaxed);
        let last = 100 + MEMORY_UNITS as u64 + 50;
        (100..last).for_each(|number| kept.append(&[unit(number)]));
        assert_eq!(kept.held(), HistoryState { epoch: [0; 16], first: 150, end: last });
        assert!(kept.lasting() >= 150 && kept.lasting() < last);
        let held = [0, 99, 100, 149, 150, last - 1, last].map(|number| holds(&mut kept, number));
        assert_eq!(held, [true, true, false, false, true, true, false]);
        // The next connection begins it anew, in memory while the disk is full.
        kept.reset([2; 16]);
        assert_eq!(kept.held(), HistoryState { epoch: [2; 16], first: 0, end: 0 });
        kept.append(&[unit(0)]);
        assert!(holds(&mut kept, 0) && matches!(kept.place, Where::Memory(..)));
        is_full.store(false, Ordering::Relaxed);
        kept.reset([3; 16]);
        assert_eq!(kept.held(), HistoryState { epoch: [3; 16], first: 0, end: 0 });
        kept.append(&[unit(0)]);
        assert!(holds(&mut kept, 0) && matches!(kept.place, Where::Disk(..)));
    }
}
