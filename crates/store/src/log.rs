//! The log: units are appended to segment files, and space is reclaimed by whole segments.
//!
//! *What this is:* the only writer of segment files. *Who calls it:* the writer thread, for the
//! engine. *What it never does:* choose a victim, change the index after it was opened, or
//! overwrite a unit whose location it has returned.
//!
//! *Where to start:* [`Log::append`], [`Log::sync`], [`Log::rewrite`].
//!
//! *What survives a crash:* units for which a `sync` after their `append` has returned. A segment
//! is sealed in two steps: its units are made durable, then its footer is written. When a segment
//! is reclaimed, its survivors are made durable at their new location before its file is removed.
//! After a failed sync, the system may consider bytes clean that never reached the disk; so they
//! are written again before the next sync.

mod parts;

use std::io::{self, IoSlice};
use std::sync::Arc;

use wire::ChunkId;

use crate::error::{Doing, Error};
use crate::files::{File, Files, read_exact};
use crate::index::Index;
use crate::reader::{Handles, Reader, file_name, segment_of};
use crate::recover::{Found, Recovery, VersionFile, read_segment, read_unit};
use crate::segment::{
    Entry, FOOTER_ENTRY, Kind, Location, SEGMENT_BYTES_MAX, SEGMENT_HEADER, SegmentHeader,
    SegmentId, TRAILER, Unit, emit_footer, footer_bytes, unit_log_bytes,
};
use parts::{Head, Piece, Unsynced, fitting};

/// The version file: it marks the directory as a store.
pub(crate) const VERSION_FILE: &str = "hearsay-store";
const VERSION: &[u8] = b"hearsay-store 1\n";
/// The bytes before the version's number, in this and in later versions.
const VERSION_PREFIX: &[u8] = b"hearsay-store ";
/// Bytes of survivors in memory at a time while a segment is rewritten.
const REWRITE_BYTES: usize = 256 << 10;

/// Options for opening a log.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogOptions {
    /// The length of a full segment in bytes; `None`, or a greater value: that of the index.
    pub segment_bytes: Option<u32>,
    /// 64 secret random bits: they prevent units whose bytes imitate a footer from being taken for
    /// one.
    pub seed: u64,
}

/// The log's state, and its work since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogReport {
    /// Bytes of all segment files, including footers that are still to be written.
    pub bytes_on_disk: u64,
    /// Appended units.
    pub appended_units: u64,
    /// Bytes on disk of appended units.
    pub appended_bytes: u64,
    /// Bytes on disk of units rewritten by [`Log::rewrite`].
    pub rewritten_bytes: u64,
    /// Reclaimed segments.
    pub reclaimed_segments: u64,
    /// Survivors that could not be read and were dropped.
    pub dropped_units: u64,
    /// Writes and syncs that failed.
    pub failures: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Log {
    files: Arc<dyn Files>,
    handles: Arc<Handles>,
    segment_bytes: u32,
    budget_bytes: u64,
    seed: u64,
    next: u32,
    /// For each kind, the segment being written.
    heads: [Option<Head>; Kind::ALL.len()],
    /// Segments with bytes that are not durable: at most those begun since the last sync.
    unsynced: Vec<Unsynced>,
    /// Whether files were created or removed since the last sync.
    are_names_unsynced: bool,
    report: LogReport,
}

impl Log {
    /// Opens or creates a store, and enters its units into `index`.
    ///
    /// Reads the footers of all segments, not their units. A segment that a crash left without a
    /// footer is scanned, and sealed if the disk allows.
    ///
    /// # Errors
    /// [`Error::Version`] if the directory belongs to another version; [`Error::Io`] if it cannot
    /// be listed. One segment of this version is enough to accept the store, even if its version
    /// file is wrong or missing; that file is then rewritten, if the disk allows. A segment that is
    /// damaged or cannot be read is not an error: see [`Recovery`].
    pub fn open(
        files: Arc<dyn Files>,
        options: LogOptions,
        index: &mut Index,
    ) -> Result<(Self, Recovery), Error> {
        let names = files.names().doing("list the store's directory")?;
        let mut ids: Vec<SegmentId> = names.iter().filter_map(|name| segment_of(name)).collect();
        ids.sort_unstable();
        let version_file = check_version(&*files, &ids)?;
        let wanted = options.segment_bytes.unwrap_or(u32::MAX);
        let mut log = Self {
            handles: Arc::new(Handles::new(files.clone())),
            files,
            segment_bytes: wanted.min(index.segment_bytes()).min(SEGMENT_BYTES_MAX),
            budget_bytes: index.budget_bytes(),
            seed: options.seed,
            // A number is never used again, even if its segment is gone.
            next: ids.last().map_or(1, |last| last.0.saturating_add(1)),
            heads: Default::default(),
            unsynced: Vec::new(),
            are_names_unsynced: false,
            report: LogReport::default(),
        };
        let mut recovery = Recovery { version_file, ..Recovery::default() };
        for id in ids {
            log.recover(id, index, &mut recovery);
        }
        Ok((log, recovery))
    }

    fn recover(&mut self, id: SegmentId, index: &mut Index, recovery: &mut Recovery) {
        let name = file_name(id);
        let found = self.files.open(&name).and_then(|file| Ok((read_segment(&*file, id)?, file)));
        let Ok((mut found, file)) = found else {
            recovery.dropped_segments += 1;
            return;
        };
        recovery.dropped_units += found.dropped_units;
        recovery.dropped_bytes += found.dropped_bytes;
        // A segment without units is useless; if it cannot be removed, it is kept and counted.
        if found.entries.is_empty() && self.files.remove(&name).is_ok() {
            recovery.dropped_segments += 1;
            self.are_names_unsynced = true;
            return;
        }
        if !found.is_sealed {
            recovery.walked_segments += 1;
            self.seal_found(file, &mut found);
        }
        recovery.segments += 1;
        recovery.units += found.entries.len() as u64;
        let kind = found.header.map_or(Kind::Fresh, |header| header.kind);
        self.report.bytes_on_disk += found.file_bytes;
        index.recovered(id, kind, found.file_bytes, &found.entries);
    }

    /// Seals a segment that a crash left unsealed, so that the next start need not scan it. If that
    /// fails, the segment stays as it is.
    fn seal_found(&mut self, file: Arc<dyn File>, found: &mut Found) {
        let Some(header) = found.header else { return };
        let entries = std::mem::take(&mut found.entries);
        let mut head = Head { header, file, end: found.end, entries, has_tail: true };
        if head.file.sync().is_ok() && self.write_footer(&mut head).is_ok() {
            found.file_bytes = u64::from(head.end + footer_bytes(head.entries.len()));
        }
        found.entries = head.entries;
    }

    /// The log's counters.
    pub fn report(&self) -> LogReport {
        self.report
    }

    /// A handle for reading, for any thread.
    pub fn reader(&self) -> Reader {
        Reader::new(self.handles.clone())
    }

    /// Appends units, with a single write if they fit into one segment, and returns their locations
    /// in order. They are not durable yet. Either all or none of the units may be on probation; if
    /// all are, they go to a segment of such units.
    ///
    /// # Errors
    /// [`Error::TooLong`] and [`Error::Full`] before anything is written; [`Error::Io`] if the disk
    /// fails: the written bytes then have no location and will be overwritten. A group that needs
    /// several writes may succeed in part instead: fewer locations than units are returned, and the
    /// rest may be tried again.
    pub fn append(&mut self, units: &[Unit]) -> Result<Vec<Location>, Error> {
        let kind =
            if units.iter().all(|unit| unit.on_probation) { Kind::Probation } else { Kind::Fresh };
        debug_assert!(kind == Kind::Probation || !units.iter().any(|unit| unit.on_probation));
        let pieces: Vec<Piece> = units.iter().map(Piece::of).collect::<Result<_, _>>()?;
        let bytes = pieces.iter().map(|piece| u64::from(piece.cost())).sum();
        self.check_room(bytes)?;
        let places = self.write_all(kind, &pieces)?;
        self.report.appended_units += places.len() as u64;
        let appended = pieces.iter().take(places.len());
        self.report.appended_bytes += appended.map(|it| u64::from(it.disk_bytes())).sum::<u64>();
        Ok(places)
    }

    /// Keeps the room of one segment free, for the survivors of the next reclaimed one.
    fn check_room(&self, bytes: u64) -> Result<(), Error> {
        let bytes = bytes + u64::from(SEGMENT_HEADER + TRAILER);
        let reserve = u64::from(self.segment_bytes);
        if self.report.bytes_on_disk + bytes + reserve > self.budget_bytes {
            return Err(Error::Full { bytes });
        }
        Ok(())
    }

    fn write_all(&mut self, kind: Kind, mut pieces: &[Piece]) -> Result<Vec<Location>, Error> {
        let mut places = Vec::with_capacity(pieces.len());
        while !pieces.is_empty() {
            let batch =
                self.room_for(kind, pieces).and_then(|fit| self.write(kind, &pieces[..fit]));
            match batch {
                Ok(batch) => {
                    pieces = &pieces[batch.len()..];
                    places.extend(batch);
                }
                Err(error) => {
                    self.report.failures += 1;
                    return if places.is_empty() { Err(error) } else { Ok(places) };
                }
            }
        }
        Ok(places)
    }

    /// Ensures that the head has room, for all pieces if one segment can hold them. Returns the
    /// number of pieces that fit.
    fn room_for(&mut self, kind: Kind, pieces: &[Piece]) -> Result<usize, Error> {
        let all = pieces.iter().map(|piece| u64::from(piece.cost())).sum::<u64>();
        let capacity = self.segment_bytes - SEGMENT_HEADER - TRAILER;
        let room =
            self.heads[kind as usize].as_ref().map_or(0, |head| head.room(self.segment_bytes));
        let first = pieces.first().map_or(0, Piece::cost);
        if first > room || (all > u64::from(room) && all <= u64::from(capacity)) {
            self.seal(kind);
            self.begin(kind)?;
            return Ok(fitting(pieces, capacity));
        }
        Ok(fitting(pieces, room))
    }

    fn begin(&mut self, kind: Kind) -> Result<(), Error> {
        let id = SegmentId(self.next);
        let next = self.next.checked_add(1).ok_or(Error::Exhausted)?;
        let file = self.files.create(&file_name(id)).doing("create a segment")?;
        // From here on the number is used, even if a later step fails.
        self.next = next;
        self.are_names_unsynced = true;
        let salt = salt(self.seed, id);
        let header = SegmentHeader { id, kind, salt };
        let bytes = header.emit();
        if let Err(source) = file.write_at(0, &mut [IoSlice::new(&bytes)]) {
            // A file without a header holds nothing; if it remains, the next start removes it.
            let _ = self.files.remove(&file_name(id));
            return Err(Error::Io { what: "write the header of a segment", source });
        }
        self.report.bytes_on_disk += u64::from(SEGMENT_HEADER + TRAILER);
        self.handles.add(id, file.clone());
        let unsynced = Unsynced { id, file: file.clone(), from: 0, has_failed: false };
        self.unsynced.push(unsynced);
        let end = SEGMENT_HEADER;
        let head = Head { header, file, end, entries: Vec::new(), has_tail: false };
        self.heads[kind as usize] = Some(head);
        Ok(())
    }

    /// Writes pieces, which must fit, with one call.
    fn write(&mut self, kind: Kind, pieces: &[Piece]) -> Result<Vec<Location>, Error> {
        let Some(head) = &mut self.heads[kind as usize] else { return Ok(Vec::new()) };
        let entries = head.write(pieces)?;
        if !self.unsynced.iter().any(|unsynced| unsynced.id == head.header.id) {
            let (id, file, from) = (head.header.id, head.file.clone(), head.end);
            self.unsynced.push(Unsynced { id, file, from, has_failed: false });
        }
        let segment = head.header.id;
        let places = entries.iter().map(|it| Location { segment, offset: it.offset }).collect();
        let bytes = pieces.iter().map(|piece| u64::from(piece.cost())).sum::<u64>();
        head.end += pieces.iter().map(Piece::disk_bytes).sum::<u32>();
        head.entries.extend(entries);
        self.report.bytes_on_disk += bytes;
        Ok(places)
    }

    /// Seals a segment with its footer. If that fails, the segment has none, and recovery scans it.
    fn seal(&mut self, kind: Kind) {
        let Some(mut head) = self.heads[kind as usize].take() else { return };
        if head.entries.is_empty() {
            let _ = self.remove(head.header.id, u64::from(SEGMENT_HEADER + TRAILER));
            return;
        }
        let is_sealed = self.sync_one(head.header.id).and_then(|()| self.write_footer(&mut head));
        if is_sealed.is_err() {
            self.report.failures += 1;
        }
    }

    /// The caller has made the units durable.
    fn write_footer(&mut self, head: &mut Head) -> Result<(), Error> {
        let footer = emit_footer(&head.header, head.end, &head.entries);
        if head.has_tail {
            head.file.set_len(u64::from(head.end)).doing("truncate a segment")?;
        }
        let written = head.file.write_at(u64::from(head.end), &mut [IoSlice::new(&footer)]);
        written.doing("seal a segment")?;
        let (id, file, from) = (head.header.id, head.file.clone(), head.end);
        self.unsynced.push(Unsynced { id, file, from, has_failed: false });
        Ok(())
    }

    /// Makes all appended units durable, and the creation and removal of files.
    ///
    /// # Errors
    /// [`Error::Io`]: the units appended since the last successful call may or may not be durable.
    /// They can be read, and a later successful call covers them too.
    pub fn sync(&mut self) -> Result<(), Error> {
        while let Some(unsynced) = self.unsynced.last() {
            self.sync_one(unsynced.id)?;
        }
        if self.are_names_unsynced {
            self.files.sync_names().doing("make segment names durable")?;
            self.are_names_unsynced = false;
        }
        Ok(())
    }

    /// Makes one segment's bytes durable.
    fn sync_one(&mut self, id: SegmentId) -> Result<(), Error> {
        for unsynced in self.unsynced.iter_mut().filter(|unsynced| unsynced.id == id) {
            let synced = unsynced.sync();
            unsynced.has_failed = synced.is_err();
            if let Err(error) = synced {
                self.report.failures += 1;
                return Err(error);
            }
        }
        self.unsynced.retain(|unsynced| unsynced.id != id);
        Ok(())
    }

    /// The units of a segment, in the order of their offsets.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such segment; [`Error::Io`] if it cannot be read.
    pub fn entries(&self, segment: SegmentId) -> Result<Vec<Entry>, Error> {
        let mut heads = self.heads.iter().flatten();
        if let Some(head) = heads.find(|head| head.header.id == segment) {
            return Ok(head.entries.clone());
        }
        let file = self.handles.open(segment)?;
        Ok(read_segment(&*file, segment).doing("read a segment's footer")?.entries)
    }

    /// Reclaims a segment: rewrites these units elsewhere, makes them durable, and removes the
    /// segment's file. Returns the new locations; a unit that cannot be read is left out.
    ///
    /// If there are no survivors the file is only removed, which needs no disk space.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Missing`]: the segment still exists, and its units are at their old
    /// locations.
    pub fn rewrite(
        &mut self,
        segment: SegmentId,
        keep: &[Entry],
    ) -> Result<Vec<(ChunkId, u32, Location)>, Error> {
        // A segment that is still being written gets its footer first.
        for kind in Kind::ALL {
            if self.heads[kind as usize].as_ref().is_some_and(|head| head.header.id == segment) {
                self.seal(kind);
            }
        }
        let file = self.handles.open(segment)?;
        let file_bytes = file.len().doing("get the length of a segment")?;
        let before = self.reserve(keep)?;
        let moved = self.copy(&*file, segment, keep).and_then(|moved| {
            self.remove(segment, file_bytes)?;
            self.report.reclaimed_segments += 1;
            Ok(moved)
        });
        // The old segment still has its units, so the copies are given up.
        if moved.is_err() {
            self.take_back(before);
        }
        moved
    }

    /// Ensures that all survivors fit into one segment; returns it, and its number of units so far.
    fn reserve(&mut self, keep: &[Entry]) -> Result<Option<(SegmentId, usize)>, Error> {
        let bytes: u32 = keep.iter().map(|it| unit_log_bytes(it.length)).sum();
        let head = self.heads[Kind::Kept as usize].as_ref();
        if bytes > head.map_or(0, |head| head.room(self.segment_bytes)) {
            self.seal(Kind::Kept);
            self.begin(Kind::Kept)?;
        }
        let head = self.heads[Kind::Kept as usize].as_ref();
        Ok(head.map(|head| (head.header.id, head.entries.len())))
    }

    /// Removes survivors from the head again after their rewriting failed.
    fn take_back(&mut self, before: Option<(SegmentId, usize)>) {
        let Some(head) = &mut self.heads[Kind::Kept as usize] else { return };
        let Some((_, units)) = before.filter(|(id, _)| *id == head.header.id) else { return };
        let Some(first) = head.entries.get(units) else { return };
        let bytes = u64::from(head.end - first.offset);
        let footer_bytes = (head.entries.len() - units) as u64 * u64::from(FOOTER_ENTRY);
        head.end = first.offset;
        head.entries.truncate(units);
        head.has_tail = true;
        for unsynced in self.unsynced.iter_mut().filter(|it| it.id == head.header.id) {
            unsynced.from = unsynced.from.min(head.end);
        }
        self.report.bytes_on_disk -= bytes + footer_bytes;
    }

    /// Copies survivors and makes them durable.
    fn copy(
        &mut self,
        file: &dyn File,
        segment: SegmentId,
        keep: &[Entry],
    ) -> Result<Vec<(ChunkId, u32, Location)>, Error> {
        let mut moved = Vec::with_capacity(keep.len());
        let mut rest = keep;
        while !rest.is_empty() {
            let (pieces, taken) = self.survivors(file, segment, rest)?;
            rest = &rest[taken..];
            moved.extend(self.rewrite_batch(&pieces)?);
        }
        if !moved.is_empty() {
            self.sync()?;
        }
        Ok(moved)
    }

    /// Reads the next survivors, up to a limit of bytes; returns them and the number of entries
    /// read.
    fn survivors(
        &mut self,
        file: &dyn File,
        segment: SegmentId,
        keep: &[Entry],
    ) -> Result<(Vec<Piece>, usize), Error> {
        let (mut pieces, mut bytes, mut taken) = (Vec::new(), 0, 0);
        for entry in keep {
            if bytes >= REWRITE_BYTES {
                break;
            }
            taken += 1;
            let unit = read_unit(file, segment, entry).doing("read a unit to keep")?;
            let Some((header, body)) = unit else {
                self.report.dropped_units += 1;
                continue;
            };
            bytes += body.len();
            pieces.push(Piece { header, body: body.into() });
        }
        Ok((pieces, taken))
    }

    fn rewrite_batch(&mut self, pieces: &[Piece]) -> Result<Vec<(ChunkId, u32, Location)>, Error> {
        let mut moved = Vec::with_capacity(pieces.len());
        while let Some(rest) = pieces.get(moved.len()..).filter(|rest| !rest.is_empty()) {
            let places = self.write_all(Kind::Kept, rest)?;
            for (piece, place) in rest.iter().zip(places) {
                self.report.rewritten_bytes += u64::from(piece.disk_bytes());
                moved.push((piece.header.id, piece.header.length, place));
            }
        }
        Ok(moved)
    }

    fn remove(&mut self, segment: SegmentId, file_bytes: u64) -> Result<(), Error> {
        self.handles.close(segment);
        self.files.remove(&file_name(segment)).doing("remove a segment")?;
        self.are_names_unsynced = true;
        self.unsynced.retain(|unsynced| unsynced.id != segment);
        self.report.bytes_on_disk = self.report.bytes_on_disk.saturating_sub(file_bytes);
        Ok(())
    }
}

/// Seals all segments, so that the next start need not scan them. Errors are ignored: recovery
/// handles unsealed segments.
impl Drop for Log {
    fn drop(&mut self) {
        Kind::ALL.into_iter().for_each(|kind| self.seal(kind));
        let _ = self.sync();
    }
}

/// Checks that the directory is a store of this version or can become one. Rewrites an invalid
/// version file; if that fails, the store is used nevertheless, and the next start tries again.
fn check_version(files: &dyn Files, segments: &[SegmentId]) -> Result<VersionFile, Error> {
    let found = read_version(files);
    if matches!(&found, Ok(Some(found)) if found == VERSION) {
        return Ok(VersionFile::Sound);
    }
    // Segments are better evidence of the version: their headers have a CRC, the version file has
    // none.
    if !are_of_this_version(files, segments) {
        let found = found.doing("read the store's version")?.unwrap_or_default();
        if !segments.is_empty() || is_version(&found) {
            let found = String::from_utf8_lossy(&found).into_owned();
            return Err(Error::Version { found });
        }
    }
    Ok(match write_version(files) {
        Err(error) => VersionFile::Unwritten(error.kind()),
        Ok(()) if segments.is_empty() => VersionFile::Sound,
        Ok(()) => VersionFile::Renewed,
    })
}

/// The first bytes of the version file; `None` if there is none.
fn read_version(files: &dyn Files) -> io::Result<Option<Vec<u8>>> {
    let file = match files.open(VERSION_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut found = vec![0; 64];
    let got = file.read_at(0, &mut found)?;
    found.truncate(got);
    Ok(Some(found))
}

/// Whether these bytes name a version, as opposed to damage.
fn is_version(found: &[u8]) -> bool {
    let number = found.strip_prefix(VERSION_PREFIX).and_then(|rest| rest.strip_suffix(b"\n"));
    number.is_some_and(|it| !it.is_empty() && it.iter().all(u8::is_ascii_digit))
}

/// Whether any segment has a valid header of this version.
fn are_of_this_version(files: &dyn Files, segments: &[SegmentId]) -> bool {
    segments.iter().any(|id| {
        let header = files
            .open(&file_name(*id))
            .and_then(|file| read_exact(&*file, 0, SEGMENT_HEADER as usize));
        header.ok().flatten().and_then(|bytes| SegmentHeader::parse(&bytes, *id)).is_some()
    })
}

/// Writes the version file and makes its name durable before the first segment exists: a segment
/// torn by a power cut would not show its version.
fn write_version(files: &dyn Files) -> io::Result<()> {
    let file = match files.open(VERSION_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => files.create(VERSION_FILE)?,
        opened => opened?,
    };
    file.write_at(0, &mut [IoSlice::new(VERSION)])?;
    file.set_len(VERSION.len() as u64)?;
    file.sync()?;
    files.sync_names()
}

/// The salt of a segment, derived from the seed and its number (the finalizer of SplitMix64).
fn salt(seed: u64, id: SegmentId) -> u64 {
    let mut bits = seed ^ u64::from(id.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}
