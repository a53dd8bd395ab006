//! The catalogue: rows about objects, which this crate does not interpret.
//!
//! *What this is:* a redb database in one file of the store's directory: a row for each object key,
//! the segments of the manifests of its records, and the order in which rows were written, to evict
//! the oldest. *Who calls it:* the writer thread changes it, other threads look up. *What it never
//! does:* parse a row, or decide whether an object is fresh. *Where to start:* `tables.rs` for the
//! effect of a change, `backend.rs` for the detection of damage.
//!
//! *What survives a crash:* all changes applied before a [`Catalogue::sync`] that returned. Later
//! ones are lost, all of them. The same happens when the file system fails, because redb must then
//! be opened again. Segments of a record that no row names are removed at the next start. A file
//! that cannot be used is renamed, and a new one created.

pub(crate) mod attempts;
mod backend;
mod tables;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use redb::{Builder, Database, Durability, ReadableDatabase};
use wire::{ObjectKey, RecordId};

use crate::error::{Doing, Error};
use crate::files::{File, Files, Overlay};
use backend::{Backend, Health};
use tables::{ROWS, Row, SEGMENTS, Tables, segment_key};

/// The catalogue's file in the store's directory.
pub const CATALOGUE_FILE: &str = "catalogue";

/// Longest row or segment of a manifest, in bytes.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// Options for opening a catalogue.
#[derive(Clone, Copy, Debug)]
pub struct CatalogueOptions {
    /// Bytes of memory for the database's page cache.
    pub cache_bytes: usize,
    /// Bytes that rows and segments may occupy, including the unused part of their pages. The file
    /// may be half as large again: pages that the next sync frees, and space to grow.
    pub budget_bytes: u64,
}

impl Default for CatalogueOptions {
    fn default() -> Self {
        Self { cache_bytes: 2 << 20, budget_bytes: 64 << 20 }
    }
}

/// One change of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets an object's row. Segments of records that belonged to its previous row and are not
    /// listed here are deleted.
    Put {
        /// The object.
        key: ObjectKey,
        /// The object's row.
        row: Vec<u8>,
        /// The records whose segments belong to this row from now on.
        records: Vec<RecordId>,
    },
    /// Removes an object's row and the segments of its records.
    Remove {
        /// The object.
        key: ObjectKey,
    },
    /// Stores one segment of a record's manifest. If no row owns the record at the next start, the
    /// segment is deleted then.
    PutSegment {
        /// The record.
        record: RecordId,
        /// The number of the segment.
        number: u32,
        /// The segment's bytes.
        bytes: Vec<u8>,
    },
    /// Deletes all segments of a record.
    DropSegments {
        /// The record.
        record: RecordId,
    },
    /// Moves all segments of a record to another record, whose own segments are deleted.
    Adopt {
        /// The record that has the segments.
        from: RecordId,
        /// The record that gets the segments.
        to: RecordId,
    },
    /// Protects an object's row, if it exists, from eviction until it is set again or removed.
    Keep {
        /// The object.
        key: ObjectKey,
    },
}

/// The content of the catalogue, and counts since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatalogueReport {
    /// Rows.
    pub rows: u64,
    /// Bytes counted against the budget.
    pub used_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Rows that were evicted.
    pub evicted_rows: u64,
    /// Segments that were refused for lack of space.
    pub refused_segments: u64,
    /// Records without a row whose segments were deleted when the catalogue was opened.
    pub swept_records: u64,
    /// How many times the file was unusable and was renamed.
    pub renamed_files: u64,
    /// How many times redb was opened again after the file system had failed.
    pub reopened: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Catalogue {
    current: Arc<Current>,
    health: Arc<Health>,
    files: Arc<dyn Files>,
    options: CatalogueOptions,
    report: CatalogueReport,
    /// Whether the file's name has been made durable.
    is_name_synced: bool,
    /// Whether the last transaction failed; redb then accepts no other.
    has_failed: bool,
    /// Whether readers see the last durable state of a file that can no longer be written.
    is_read_only: bool,
}

/// The database for readers; it is replaced after a failure.
#[derive(Debug)]
struct Current(Mutex<Arc<Database>>);

impl Current {
    fn get(&self) -> Arc<Database> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, database: Arc<Database>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = database;
    }
}

/// Looks up rows and segments, from any thread. Clones share the database.
#[derive(Clone, Debug)]
pub struct CatalogueReader {
    current: Arc<Current>,
}

impl Catalogue {
    /// Opens or creates the catalogue in the store's directory. If it cannot be written, it is
    /// opened for reading.
    ///
    /// # Errors
    /// [`Error::Io`] if the file can be neither used nor renamed.
    pub fn open(files: Arc<dyn Files>, options: CatalogueOptions) -> Result<Self, Error> {
        let mut report = CatalogueReport::default();
        let opened = open_or_begin(&*files, &options, &mut report);
        // An error of the file system, for example on a read-only disk, need not prevent reading.
        let is_read_only = opened.is_err();
        let (database, health) =
            opened.or_else(|error| open_to_read(&*files, &options).map_err(|_| error))?;
        let mut catalogue = Self {
            current: Arc::new(Current(Mutex::new(Arc::new(database)))),
            health,
            files,
            options,
            report,
            is_name_synced: false,
            has_failed: is_read_only,
            is_read_only,
        };
        if is_read_only {
            catalogue.count();
        } else {
            catalogue.sweep()?;
        }
        Ok(catalogue)
    }

    /// A handle for looking rows up.
    pub fn reader(&self) -> CatalogueReader {
        CatalogueReader { current: self.current.clone() }
    }

    /// The catalogue's counters.
    pub fn report(&self) -> CatalogueReport {
        let file = self.files.open(CATALOGUE_FILE).and_then(|file| file.len());
        CatalogueReport { file_bytes: file.unwrap_or(0), ..self.report }
    }

    /// Makes all of these changes or none. Readers see them at once; the next [`Catalogue::sync`]
    /// makes them durable. If the budget is exceeded, the rows written longest ago are evicted.
    ///
    /// # Errors
    /// [`Error::TooLong`]: none of the changes was made. [`Error::Io`] and [`Error::Catalogue`]:
    /// the same, and the changes since the last sync may be lost too. The next call opens redb
    /// again.
    pub fn apply(&mut self, changes: &[Change]) -> Result<(), Error> {
        changes.iter().try_for_each(check_length)?;
        self.transact(Durability::None, |tables, budget_bytes| {
            changes.iter().try_for_each(|change| tables.apply(change, budget_bytes))?;
            tables.fit(budget_bytes)
        })
    }

    /// Makes all applied changes durable.
    ///
    /// # Errors
    /// [`Error::Catalogue`], [`Error::Io`]: the changes since the last successful call may or may
    /// not be durable.
    pub fn sync(&mut self) -> Result<(), Error> {
        self.transact(Durability::Immediate, |_, _| Ok(()))?;
        if !self.is_name_synced {
            self.files.sync_names().doing("make the catalogue's name durable")?;
            self.is_name_synced = true;
        }
        Ok(())
    }

    /// Updates the report of a read-only catalogue; if the file cannot be read, the report stays the
    /// same.
    fn count(&mut self) {
        self.report = tables::held(&self.current.get(), self.report).unwrap_or(self.report);
    }

    fn sweep(&mut self) -> Result<(), Error> {
        let mut swept = 0;
        self.transact(Durability::None, |tables, _| {
            swept = tables.sweep()?;
            Ok(())
        })?;
        self.report.swept_records = swept;
        Ok(())
    }

    fn transact(
        &mut self,
        durability: Durability,
        work: impl FnOnce(&mut Tables<'_>, u64) -> Result<(), redb::Error>,
    ) -> Result<(), Error> {
        if self.has_failed || self.health.is_damaged() {
            self.reopen()?;
        }
        let done = self.try_transact(durability, work);
        self.has_failed = done.is_err();
        if self.has_failed {
            self.reopen_read_only();
        }
        self.report = done.map_err(failed)?;
        Ok(())
    }

    /// After a failure of the file system redb accepts no further work; after damage it should not
    /// do any.
    fn reopen(&mut self) -> Result<(), Error> {
        // Open readers may continue, but the file gets a new writer now.
        self.health.retire();
        self.has_failed = true;
        // If the file cannot be written, the damage may be an error of its disk. If the file itself
        // is damaged, opening or reading it shows this again.
        if self.health.is_damaged() && !self.is_read_only {
            rename_damaged(&*self.files, &mut self.report)?;
        }
        let (database, health) = open_or_begin(&*self.files, &self.options, &mut self.report)?;
        self.current.set(Arc::new(database));
        self.is_read_only = false;
        (self.health, self.has_failed, self.is_name_synced) = (health, false, false);
        self.report.reopened += 1;
        Ok(())
    }

    /// Opens a catalogue that can no longer be written for reading, as the last sync left it.
    fn reopen_read_only(&mut self) {
        if self.is_read_only || self.health.is_damaged() {
            return;
        }
        // Open readers of the old database may continue.
        self.health.retire();
        if let Ok((database, health)) = open_to_read(&*self.files, &self.options) {
            self.current.set(Arc::new(database));
            (self.health, self.is_read_only) = (health, true);
            self.count();
        }
    }

    fn try_transact(
        &self,
        durability: Durability,
        work: impl FnOnce(&mut Tables<'_>, u64) -> Result<(), redb::Error>,
    ) -> Result<CatalogueReport, redb::Error> {
        let mut transaction = self.current.get().begin_write()?;
        transaction.set_durability(durability)?;
        // A durable commit also stores the free pages, so a start after a kill need not scan the
        // file for them.
        transaction.set_quick_repair(matches!(durability, Durability::Immediate));
        let mut tables = Tables::open(&transaction, self.report)?;
        work(&mut tables, self.options.budget_bytes)?;
        let report = tables.close()?;
        transaction.commit()?;
        Ok(report)
    }
}

impl CatalogueReader {
    /// An object's row.
    ///
    /// # Errors
    /// [`Error::Catalogue`] if the file cannot be read, or the stored value is not a row.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Vec<u8>>, Error> {
        self.try_get(key).map_err(failed)
    }

    fn try_get(&self, key: &ObjectKey) -> Result<Option<Vec<u8>>, redb::Error> {
        let rows = self.current.get().begin_read()?.open_table(ROWS)?;
        let Some(row) = rows.get(key.as_bytes())? else { return Ok(None) };
        let broken = || redb::Error::Corrupted("a row is shorter than it says".into());
        Ok(Some(Row::parse(row.value()).ok_or_else(broken)?.bytes.to_vec()))
    }

    /// One segment of a record's manifest.
    ///
    /// # Errors
    /// [`Error::Catalogue`] if the file cannot be read.
    pub fn segment(&self, record: &RecordId, number: u32) -> Result<Option<Vec<u8>>, Error> {
        self.try_segment(record, number).map_err(failed)
    }

    fn try_segment(&self, record: &RecordId, number: u32) -> Result<Option<Vec<u8>>, redb::Error> {
        let segments = self.current.get().begin_read()?.open_table(SEGMENTS)?;
        let bytes = segments.get(&segment_key(record, number))?;
        Ok(bytes.map(|bytes| bytes.value().to_vec()))
    }

    /// Calls `show` with the rows after `after`, in the order of their keys, until it returns
    /// `false`.
    ///
    /// # Errors
    /// [`Error::Catalogue`] if the file cannot be read.
    pub fn for_each(
        &self,
        after: Option<&ObjectKey>,
        show: impl FnMut(ObjectKey, &[u8]) -> bool,
    ) -> Result<(), Error> {
        self.try_for_each(after, show).map_err(failed)
    }

    fn try_for_each(
        &self,
        after: Option<&ObjectKey>,
        mut show: impl FnMut(ObjectKey, &[u8]) -> bool,
    ) -> Result<(), redb::Error> {
        use std::ops::Bound;

        let rows = self.current.get().begin_read()?.open_table(ROWS)?;
        let start = after.map_or(Bound::Unbounded, |key| Bound::Excluded(key.as_bytes()));
        for item in rows.range::<&[u8; 32]>((start, Bound::Unbounded))? {
            let (key, row) = item?;
            let Some(row) = Row::parse(row.value()) else { continue };
            if !show(ObjectKey(*key.value()), row.bytes) {
                break;
            }
        }
        Ok(())
    }
}

/// Opens the existing file; if it cannot be used, renames it and creates a new one.
fn open_or_begin(
    files: &dyn Files,
    options: &CatalogueOptions,
    report: &mut CatalogueReport,
) -> Result<(Database, Arc<Health>), Error> {
    let health = Arc::new(Health::default());
    if cfg!(panic = "abort") && attempts::begin(files) && files.open(CATALOGUE_FILE).is_ok() {
        rename_damaged(files, report)?;
    }
    let opened = open_database(files, options, health.clone());
    if cfg!(panic = "abort") {
        attempts::end(files);
    }
    match opened {
        Err(error) if health.is_damaged() || is_corrupt(&error) => {
            rename_damaged(files, report)?;
            let health = Arc::new(Health::default());
            Ok((open_database(files, options, health.clone())?, health))
        }
        opened => Ok((opened?, health)),
    }
}

fn open_database(
    files: &dyn Files,
    options: &CatalogueOptions,
    health: Arc<Health>,
) -> Result<Database, Error> {
    let file = match files.open(CATALOGUE_FILE) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => files.create(CATALOGUE_FILE),
        opened => opened,
    };
    open_file(file, options, health)
}

/// Opens the existing file for reading, through an overlay.
fn open_to_read(
    files: &dyn Files,
    options: &CatalogueOptions,
) -> Result<(Database, Arc<Health>), Error> {
    let health = Arc::new(Health::default());
    let file = files.open(CATALOGUE_FILE).and_then(Overlay::new);
    let file = file.map(|overlay| Arc::new(overlay) as Arc<dyn File>);
    Ok((open_file(file, options, health.clone())?, health))
}

fn open_file(
    file: std::io::Result<Arc<dyn File>>,
    options: &CatalogueOptions,
    health: Arc<Health>,
) -> Result<Database, Error> {
    let backend = file.and_then(|file| Backend::open(file, health)).doing("open the catalogue")?;
    let mut builder = Builder::new();
    builder.set_cache_size(options.cache_bytes);
    let database = create(&builder, backend)?;
    tables::begin(&database).map_err(failed)?;
    Ok(database)
}

/// redb trusts the lengths in a file's header and panics if the file is shorter; this is reported
/// as corruption.
fn create(builder: &Builder, backend: Backend) -> Result<Database, Error> {
    let created = catch_unwind(AssertUnwindSafe(|| builder.create_with_backend(backend)));
    match created {
        Ok(created) => created.map_err(failed),
        Err(_) => Err(failed(redb::Error::Corrupted("it is not what its header says".into()))),
    }
}

/// Whether the content of the file is at fault, not the file system.
fn is_corrupt(error: &Error) -> bool {
    let Error::Catalogue(error) = error else { return false };
    match &**error {
        redb::Error::Io(error) => error.kind() == std::io::ErrorKind::InvalidData,
        redb::Error::PreviousIo | redb::Error::DatabaseAlreadyOpen => false,
        _ => true,
    }
}

fn rename_damaged(files: &dyn Files, report: &mut CatalogueReport) -> Result<(), Error> {
    let aside = format!("{CATALOGUE_FILE}.corrupt");
    files.rename(CATALOGUE_FILE, &aside).doing("rename the damaged catalogue")?;
    report.renamed_files += 1;
    Ok(())
}

fn check_length(change: &Change) -> Result<(), Error> {
    let length = match change {
        Change::Put { row, records, .. } => row.len() + records.len() * RecordId::LEN,
        Change::PutSegment { bytes, .. } => bytes.len(),
        Change::Remove { .. }
        | Change::DropSegments { .. }
        | Change::Adopt { .. }
        | Change::Keep { .. } => 0,
    };
    if length > VALUE_BYTES_MAX {
        return Err(Error::TooLong { bytes: length as u64, bytes_max: VALUE_BYTES_MAX as u64 });
    }
    Ok(())
}

fn failed(error: impl Into<redb::Error>) -> Error {
    Error::Catalogue(Box::new(error.into()))
}
