//! The store's threads: one writes, the other reads what is not in the kernel's page cache.
//!
//! The engine's thread never waits for the disk. It reads units itself if the page cache has them.
//! Everything else is a message to one of the threads, whose answer is an input of the engine.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use crate::config::{Place, STORE_MAX, Store};
use bytes::Bytes;
use host::clock::Clock;
use node::driver::{DiskQueue, Waiting};
use node::{StoreInput, StoreOutput, Ticket};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use store::{
    Catalogue, CatalogueOptions, CatalogueReader, Change, Disk as Directory, Error, Files, Index,
    Log, LogOptions, Memory, Reader, Recovery, Unit, VersionFile,
};
use tokio::sync::mpsc::UnboundedSender;
use wire::{ChunkId, ObjectKey, RecordId};

/// How many bytes of the catalogue's pages are kept in memory.
const CATALOGUE_CACHE: usize = 2 * 1024 * 1024;
/// The catalogue may take one part in this many of the store's budget.
const CATALOGUE_SHARE: u64 = 16;
const _: () = assert!(STORE_MAX.0 - STORE_MAX.0 / CATALOGUE_SHARE <= store::BUDGET_BYTES_MAX);

/// The name of the thread that writes.
pub const WRITER: &str = "hearsay-write";

/// The store as the engine's thread sees it.
pub struct Disk {
    /// `None` if the store cannot be used at all.
    open: Option<Open>,
    trouble: Trouble,
}

/// The operations that fail, each with its error for the operator; shared with the threads.
pub type Trouble = Arc<Mutex<BTreeMap<&'static str, String>>>;

struct Open {
    /// The store can be read, but not written.
    is_read_only: bool,
    writes: mpsc::Sender<Write>,
    looks: mpsc::Sender<Look>,
    units: Reader,
    rows: CatalogueReader,
}

enum Write {
    Append(Ticket, Vec<Unit>),
    Change(Ticket, Vec<Change>),
    Sync,
    List(store::SegmentId),
    Rewrite(store::SegmentId, Vec<store::Entry>),
    /// Makes all writes durable, then answers.
    Finish(mpsc::Sender<()>),
}

enum Look {
    Row(ObjectKey),
    Segment(RecordId, u32),
    Units(Ticket, store::Location, Vec<u32>),
}

impl Disk {
    /// Opens the store and starts its threads, which send the engine's inputs to `answers`. It is an
    /// error if another process uses the store. After any other failure the daemon runs without it.
    pub fn open(
        config: &Store,
        answers: &UnboundedSender<StoreInput>,
    ) -> Result<(Self, Index, Recovery), Error> {
        let trouble = Trouble::default();
        match open_parts(config) {
            Ok((parts, index, recovery)) => {
                if parts.is_read_only {
                    let why = std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem);
                    let why =
                        format!("{why}: stored objects are served, but nothing new is stored");
                    tracing::warn!("{why}; make it writable, and restart");
                    lock(&trouble).insert("write to the store", why);
                    say_that_nothing_is_stored(answers);
                }
                let open = start(parts, answers, &trouble);
                Ok((Self { open: Some(open), trouble }, index, recovery))
            }
            Err(error @ Error::InUse { .. }) => Err(error),
            Err(error) => {
                tracing::warn!(%error, "the store cannot be used: running without it");
                lock(&trouble).insert("open the store", error.to_string());
                say_that_nothing_is_stored(answers);
                let index = Index::new(config.size_bytes, config.policy);
                Ok((Self { open: None, trouble }, index, Recovery::default()))
            }
        }
    }

    /// Performs an output of the engine; returns the answer if it is known at once.
    pub fn perform(&self, output: StoreOutput) -> Option<StoreInput> {
        let writes = !matches!(
            output,
            StoreOutput::Read(..)
                | StoreOutput::Lookup(_)
                | StoreOutput::ReadSegment(..)
                | StoreOutput::List(_)
        );
        // A write to a read-only store fails as it does without a store.
        let open = self.open.as_ref().filter(|open| !(open.is_read_only && writes));
        let Some(open) = open else { return Some(absent(output)) };
        // The threads end only with this value, so the sends cannot fail.
        match output {
            StoreOutput::Read(ticket, first, lengths) => match open.units.try_read(first, &lengths)
            {
                Some(units) => return Some(StoreInput::Units(ticket, units.ok())),
                None => drop(open.looks.send(Look::Units(ticket, first, lengths))),
            },
            StoreOutput::Lookup(key) => drop(open.looks.send(Look::Row(key))),
            StoreOutput::ReadSegment(record, number) => {
                drop(open.looks.send(Look::Segment(record, number)));
            }
            StoreOutput::Append(ticket, units) => {
                drop(open.writes.send(Write::Append(ticket, units)));
            }
            StoreOutput::Change(ticket, changes) => {
                drop(open.writes.send(Write::Change(ticket, changes)));
            }
            StoreOutput::Sync => drop(open.writes.send(Write::Sync)),
            StoreOutput::List(segment) => drop(open.writes.send(Write::List(segment))),
            StoreOutput::Rewrite(segment, keep) => {
                drop(open.writes.send(Write::Rewrite(segment, keep)));
            }
        }
        None
    }

    /// The error of an operation that fails, if one does.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).values().next().cloned()
    }

    /// The catalogue, for lists of stored objects.
    pub fn rows(&self) -> Option<&CatalogueReader> {
        self.open.as_ref().map(|open| &open.rows)
    }

    /// Makes all writes durable; blocks until they are.
    pub fn finish(&self) {
        if let Some(open) = self.open.as_ref().filter(|open| !open.is_read_only) {
            let (done, wait) = mpsc::channel();
            if open.writes.send(Write::Finish(done)).is_ok() {
                let _ = wait.recv();
            }
        }
    }
}

/// The answer if there is no store: lookups find nothing, and writes fail.
fn absent(output: StoreOutput) -> StoreInput {
    match output {
        // There may be a row that cannot be read. It is not overwritten, because writes fail too.
        StoreOutput::Lookup(key) => StoreInput::Row(key, None),
        StoreOutput::ReadSegment(record, number) => StoreInput::Segment(record, number, None),
        StoreOutput::Read(ticket, ..) => StoreInput::Units(ticket, None),
        StoreOutput::Append(ticket, _) => StoreInput::Appended(ticket, None),
        StoreOutput::Change(ticket, _) => StoreInput::Changed(ticket, false),
        StoreOutput::Sync => StoreInput::Synced(false),
        StoreOutput::List(segment) => StoreInput::Entries(segment, None),
        StoreOutput::Rewrite(segment, _) => StoreInput::Rewritten(segment, None),
    }
}

fn lock(trouble: &Trouble) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
    trouble.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Tells the engine, before the first client connects, that nothing is stored.
fn say_that_nothing_is_stored(answers: &UnboundedSender<StoreInput>) {
    // The receiver is dropped only when the program ends.
    let _ = answers.send(StoreInput::Synced(false));
}

struct Parts {
    log: Log,
    catalogue: Catalogue,
    is_read_only: bool,
}

fn open_parts(config: &Store) -> Result<(Parts, Index, Recovery), Error> {
    let mut is_read_only = false;
    let files: Arc<dyn Files> = match &config.place {
        Place::Memory => Arc::new(Memory::new()),
        Place::Dir(path) => {
            let directory = Directory::open(path)?;
            is_read_only = directory.is_read_only();
            if directory.was_open_to_others() {
                tracing::info!(
                    "other users could read the store: it is its owner's alone from here on"
                );
            }
            Arc::new(directory)
        }
    };
    // The log and the catalogue share the budget, so that together they never exceed it.
    let catalogue_bytes = config.size_bytes / CATALOGUE_SHARE;
    let mut index = Index::new(config.size_bytes - catalogue_bytes, config.policy);
    let seed = u64::from_le_bytes(crate::entropy::bytes());
    let options = LogOptions { segment_bytes: None, seed };
    let (log, recovery) = Log::open(Arc::clone(&files), options, &mut index)?;
    let options = CatalogueOptions { cache_bytes: CATALOGUE_CACHE, budget_bytes: catalogue_bytes };
    let catalogue = Catalogue::open(files, options)?;
    if catalogue.report().renamed_files > 0 {
        tracing::warn!(
            "the catalogue was damaged: it is renamed to catalogue.corrupt, and a new one is created; \
             publish again what was published here"
        );
    }
    match recovery.version_file {
        VersionFile::Sound => {}
        VersionFile::Renewed => tracing::warn!(
            "the file `hearsay-store` was damaged: it is written again, because the segments are sound"
        ),
        VersionFile::Unwritten(why) => tracing::warn!(
            "the file `hearsay-store` cannot be written ({why}): the store is used without it, and the \
             next start tries again"
        ),
    }
    // If the log has units, an empty catalogue was probably lost, though no damage was found.
    if recovery.units > 0 && catalogue.report().rows == 0 {
        tracing::warn!(
            "the catalogue is empty though the store is not: what is there will be named anew"
        );
    }
    Ok((Parts { log, catalogue, is_read_only }, index, recovery))
}

fn start(parts: Parts, answers: &UnboundedSender<StoreInput>, trouble: &Trouble) -> Open {
    let Parts { log, catalogue, is_read_only } = parts;
    let (units, rows) = (log.reader(), catalogue.reader());
    let (writes, to_write) = mpsc::channel();
    let (looks, to_look) = mpsc::channel();
    let mut writer = Writer {
        log,
        catalogue,
        answers: answers.clone(),
        trouble: Arc::clone(trouble),
        clock: Clock::start(),
        roomless: DiskQueue::default(),
    };
    thread::Builder::new()
        .name(WRITER.into())
        .spawn(move || {
            // The store catches panics that mean a damaged file. Any other panic ends the process.
            if catch_unwind(AssertUnwindSafe(|| writer.run(&to_write))).is_err() {
                std::process::abort();
            }
        })
        .expect("a thread can be started at start-up");
    let (looker_units, looker_rows, answers) = (units.clone(), rows.clone(), answers.clone());
    thread::Builder::new()
        .name("hearsay-read".into())
        .spawn(move || {
            for look in to_look {
                let _ = answers.send(answer(look, &looker_units, &looker_rows));
            }
        })
        .expect("a thread can be started at start-up");
    Open { is_read_only, writes, looks, units, rows }
}

fn answer(look: Look, units: &Reader, rows: &CatalogueReader) -> StoreInput {
    match look {
        Look::Row(key) => match rows.get(&key) {
            Ok(row) => StoreInput::Row(key, row),
            Err(error) => {
                tracing::debug!(%error, "a row cannot be read");
                StoreInput::RowUnread(key)
            }
        },
        Look::Segment(record, number) => {
            StoreInput::Segment(record, number, rows.segment(&record, number).ok().flatten())
        }
        Look::Units(ticket, first, lengths) => {
            StoreInput::Units(ticket, read(units, first, &lengths))
        }
    }
}

fn read(units: &Reader, first: store::Location, lengths: &[u32]) -> Option<Vec<(ChunkId, Bytes)>> {
    units.read(first, lengths).inspect_err(|error| tracing::debug!(%error, "a read failed")).ok()
}

/// The thread that writes; no other changes the store.
struct Writer {
    log: Log,
    catalogue: Catalogue,
    answers: UnboundedSender<StoreInput>,
    trouble: Trouble,
    clock: Clock,
    /// Units that wait for room in the store.
    roomless: DiskQueue,
}

impl Writer {
    fn run(&mut self, writes: &Receiver<Write>) {
        loop {
            let next = match self.roomless.poll_timeout() {
                None => writes.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(until) => writes.recv_timeout(until.since(self.clock.now())),
            };
            match next {
                Ok(write) => self.perform(write),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // The wait was too long: the write fails.
            for ticket in self.roomless.expire(self.clock.now()).collect::<Vec<_>>() {
                self.answer(StoreInput::Appended(ticket, None));
            }
        }
    }

    fn perform(&mut self, write: Write) {
        match write {
            Write::Append(ticket, units) => {
                self.append(Waiting::new(self.clock.now(), ticket, units));
            }
            Write::Change(ticket, changes) => {
                let result = self.catalogue.apply(&changes);
                let done = self.note("write to the catalogue", result).is_some();
                self.answer(StoreInput::Changed(ticket, done));
            }
            Write::Sync => {
                let done = self.sync();
                self.answer(StoreInput::Synced(done));
            }
            Write::List(segment) => {
                let entries = self.log.entries(segment).ok();
                self.answer(StoreInput::Entries(segment, entries));
            }
            Write::Rewrite(segment, keep) => {
                let result = self.log.rewrite(segment, &keep);
                let moved = self.note("make room", result);
                let again = self.roomless.take(self.clock.now(), moved.is_some());
                self.answer(StoreInput::Rewritten(segment, moved));
                again.into_iter().for_each(|waiting| self.append(waiting));
            }
            Write::Finish(done) => {
                // A failure was logged; the daemon stops either way.
                let _ = self.sync();
                let _ = done.send(());
            }
        }
    }

    fn append(&mut self, waiting: Waiting) {
        match self.log.append(&waiting.units) {
            Err(Error::Full { .. }) => self.roomless.wait(waiting),
            result => {
                let places = self.note("write units", result);
                self.answer(StoreInput::Appended(waiting.ticket, places));
            }
        }
    }

    /// Makes the units durable first, so that no durable row names a unit that is not durable.
    fn sync(&mut self) -> bool {
        let result = self.log.sync();
        let units = self.note("make units durable", result);
        let result = self.catalogue.sync();
        let rows = self.note("make the catalogue durable", result);
        units.is_some() && rows.is_some()
    }

    /// Logs once that an operation fails, and once that it works again.
    fn note<T>(&self, what: &'static str, result: Result<T, Error>) -> Option<T> {
        let mut trouble = lock(&self.trouble);
        match result {
            Ok(value) => {
                if trouble.remove(what).is_some() {
                    tracing::info!("can {what} again");
                    // Other operations may have failed for the same reason. If one still does, that is
                    // logged again.
                    trouble.clear();
                }
                Some(value)
            }
            Err(error) => {
                if trouble.insert(what, error.to_string()).is_none() {
                    tracing::warn!(%error, "cannot {what}: nothing new is stored");
                }
                None
            }
        }
    }

    fn answer(&self, input: StoreInput) {
        // The receiver is dropped only when the program ends.
        let _ = self.answers.send(input);
    }
}
