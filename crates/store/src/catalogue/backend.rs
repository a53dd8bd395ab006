//! The storage backend for redb: a file with a checksum for each page.
//!
//! *What this is:* a layer of checksums. redb trusts pages that were made durable, and panics on
//! some that a failing flash has changed; so a damaged page must be reported as an error. *Who
//! calls it:* redb. *What it never does:* cache pages.
//!
//! ```text
//! file  = page 0, 8 KiB | page 0 again, 8 KiB | group | group …
//! group = 1,024 sums, 4 KiB | 1,024 pages, 4 KiB each
//! ```
//!
//! *What survives a crash:* redb never overwrites a page that its last durable commit needs, so a
//! torn page or sum belongs to a transaction that was not confirmed. Page 0 is the exception,
//! because it names that commit. It is written to two places alternately, each with a number and a
//! sum, and never to the place that the last sync made durable.

use std::io::{self, IoSlice};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

use crate::files::{File, read_exact};

const PAGE: u64 = 4096;
const GROUP_PAGES: u64 = 1024;
const SUMS: u64 = GROUP_PAGES * 4;
/// Where the groups begin.
const GROUPS_AT: u64 = 2 * COPY;
/// Space for one copy of page 0.
const COPY: u64 = 2 * PAGE;
/// A copy of page 0 as it is written: page | number 8 B | sum 4 B.
const COPY_BYTES: usize = PAGE as usize + 12;

/// State shared by the catalogue and the backend, which redb owns.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// A page was damaged, or could not be read.
    is_damaged: AtomicBool,
    /// Another backend has taken over the file: this one must not write any more.
    is_retired: AtomicBool,
}

impl Health {
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    pub fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    fn damage<T>(&self, why: &'static str) -> io::Result<T> {
        self.is_damaged.store(true, Ordering::Relaxed);
        Err(io::Error::new(io::ErrorKind::InvalidData, why))
    }

    fn may_write(&self) -> io::Result<()> {
        if self.is_retired.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Backend {
    file: Arc<dyn File>,
    health: Arc<Health>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The number of pages, including page 0.
    pages: u64,
    first: FirstPage,
    /// The sums of the other pages: four bytes each, zero for a page never written.
    sums: Vec<u32>,
}

/// Page 0.
#[derive(Debug)]
struct FirstPage {
    bytes: Vec<u8>,
    number: u64,
    /// Which of the two places has the copy that the last sync made durable.
    durable: u64,
    /// Whether the other place has been written since.
    is_written: bool,
}

impl Backend {
    /// # Errors
    /// Errors of the file; damage to page 0. Damage to other pages is found when they are read.
    pub fn open(file: Arc<dyn File>, health: Arc<Health>) -> io::Result<Self> {
        let file_bytes = file.len()?;
        let state = if file_bytes == 0 {
            State::default()
        } else {
            let Some(first) = read_first(&*file)? else {
                return health.damage("both copies of the first page are damaged");
            };
            // After a kill the copy just read may not be durable yet, and the next write overwrites
            // the other one. Make it durable first.
            file.sync()?;
            let pages = 1 + pages_behind(file_bytes);
            State { pages, first, sums: read_sums(&*file, pages - 1)? }
        };
        Ok(Self { file, health, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // If a panic elsewhere left the state half changed, the sums will not match.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads pages of one group with one read; the lock is not held meanwhile.
    fn read_run(&self, page: u64, out: &mut [u8]) -> io::Result<()> {
        match self.file.read_at(page_at(page), out) {
            Ok(got) => out[got..].fill(0),
            Err(_) => return self.health.damage("a page of the catalogue cannot be read"),
        }
        let state = self.state();
        let sums = state.sums.get(page as usize..).unwrap_or_default();
        for ((bytes, sum), page) in out.chunks(PAGE as usize).zip(sums).zip(page..) {
            // A page never written consists of zeros.
            if *sum != sum_of(page, bytes) && (*sum != 0 || bytes.iter().any(|byte| *byte != 0)) {
                return self.health.damage("a page of the catalogue is damaged");
            }
        }
        Ok(())
    }

    /// Writes pages of one group with one write, and their sums with another.
    fn write_run(&self, page: u64, bytes: &[u8]) -> io::Result<()> {
        let new = bytes.chunks(PAGE as usize).zip(page..).map(|(bytes, page)| sum_of(page, bytes));
        let new: Vec<u32> = new.collect();
        let mut state = self.state();
        let old = state.sums.get_mut(page as usize..page as usize + new.len());
        old.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(&new);
        drop(state);
        self.file.write_at(page_at(page), &mut [IoSlice::new(bytes)])?;
        let sums: Vec<u8> = new.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        self.file.write_at(sum_at(page), &mut [IoSlice::new(&sums)])
    }

    fn write_first(&self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let first = &mut state.first;
        first.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        first.number += 1;
        first.is_written = true;
        let copy = emit_first(first);
        self.file.write_at((1 - first.durable) * COPY, &mut [IoSlice::new(&copy)])
    }
}

/// Where a range of redb's address space is stored.
enum Place {
    /// In page 0, from this byte on.
    First(usize),
    /// In whole pages after it, from this one on.
    Behind(u64),
}

impl Place {
    /// redb uses no other ranges. If it did, an error would be safer than a guess.
    fn of(offset: u64, length: usize) -> io::Result<Self> {
        let length = length as u64;
        match offset.checked_add(length) {
            Some(end) if end <= PAGE => Ok(Self::First(offset as usize)),
            Some(end)
                if offset >= PAGE && offset.is_multiple_of(PAGE) && end.is_multiple_of(PAGE) =>
            {
                Ok(Self::Behind(offset / PAGE - 1))
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

/// Splits a run of pages at the borders of groups, into pairs of first page and number of pages.
fn runs(page: u64, bytes: usize) -> impl Iterator<Item = (u64, usize)> {
    let end = page + bytes as u64 / PAGE;
    let groups = page / GROUP_PAGES..end.div_ceil(GROUP_PAGES);
    groups.map(move |group| {
        let start = page.max(group * GROUP_PAGES);
        (start, (end.min((group + 1) * GROUP_PAGES) - start) as usize)
    })
}

impl Default for State {
    fn default() -> Self {
        let bytes = vec![0; PAGE as usize];
        let first = FirstPage { bytes, number: 0, durable: 1, is_written: false };
        Self { pages: 0, first, sums: Vec::new() }
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state().pages * PAGE)
    }

    fn read(&self, offset: u64, mut out: &mut [u8]) -> io::Result<()> {
        if offset.saturating_add(out.len() as u64) > self.len()? {
            return self.health.damage("the catalogue's file is truncated");
        }
        match Place::of(offset, out.len())? {
            Place::First(at) => out.copy_from_slice(&self.state().first.bytes[at..at + out.len()]),
            Place::Behind(page) => {
                for (page, pages) in runs(page, out.len()) {
                    let (run, rest) = out.split_at_mut(pages * PAGE as usize);
                    self.read_run(page, run)?;
                    out = rest;
                }
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.health.may_write()?;
        let mut state = self.state();
        let pages = len.div_ceil(PAGE).max(1);
        // A page that is removed and added again counts as never written.
        for gone in pages..state.pages {
            self.file.write_at(sum_at(gone - 1), &mut [IoSlice::new(&[0; 4])])?;
        }
        self.file.set_len(file_bytes(pages - 1))?;
        state.sums.resize((pages - 1) as usize, 0);
        state.pages = pages;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.health.may_write()?;
        let mut state = self.state();
        self.file.sync()?;
        if state.first.is_written {
            state.first.durable = 1 - state.first.durable;
            state.first.is_written = false;
        }
        Ok(())
    }

    fn write(&self, offset: u64, mut data: &[u8]) -> io::Result<()> {
        self.health.may_write()?;
        match Place::of(offset, data.len())? {
            Place::First(at) => self.write_first(at, data)?,
            Place::Behind(page) => {
                for (page, pages) in runs(page, data.len()) {
                    let (run, rest) = data.split_at(pages * PAGE as usize);
                    self.write_run(page, run)?;
                    data = rest;
                }
            }
        }
        Ok(())
    }
}

// In the following functions, as in `Place` and `State::sums`, page numbers start after page 0.

fn page_at(page: u64) -> u64 {
    GROUPS_AT + (page / GROUP_PAGES + 1) * SUMS + page * PAGE
}

fn sum_at(page: u64) -> u64 {
    GROUPS_AT + page / GROUP_PAGES * (SUMS + GROUP_PAGES * PAGE) + page % GROUP_PAGES * 4
}

fn file_bytes(pages: u64) -> u64 {
    GROUPS_AT + pages.div_ceil(GROUP_PAGES) * SUMS + pages * PAGE
}

/// The number of whole pages in a file of this length; a page that a crash truncated does not
/// count.
fn pages_behind(file_bytes: u64) -> u64 {
    let groups = file_bytes.saturating_sub(GROUPS_AT);
    let (whole, rest) =
        (groups / (SUMS + GROUP_PAGES * PAGE), groups % (SUMS + GROUP_PAGES * PAGE));
    whole * GROUP_PAGES + rest.saturating_sub(SUMS) / PAGE
}

/// A checksum that includes the page's number; never zero.
fn sum_of(page: u64, bytes: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&page.to_le_bytes());
    crc.update(bytes);
    crc.finalize().max(1)
}

fn read_sums(file: &dyn File, pages: u64) -> io::Result<Vec<u32>> {
    let mut sums = Vec::new();
    for group in 0..pages.div_ceil(GROUP_PAGES) {
        let mut bytes = vec![0; SUMS as usize];
        file.read_at(sum_at(group * GROUP_PAGES), &mut bytes)?;
        let (words, _) = bytes.as_chunks();
        sums.extend(words.iter().map(|word| u32::from_le_bytes(*word)));
    }
    sums.truncate(pages as usize);
    Ok(sums)
}

fn emit_first(first: &FirstPage) -> Vec<u8> {
    let mut copy = Vec::with_capacity(COPY_BYTES);
    copy.extend_from_slice(&first.bytes);
    copy.extend_from_slice(&first.number.to_le_bytes());
    copy.extend_from_slice(&sum_of(0, &copy).to_le_bytes());
    copy
}

/// The newer of the valid copies of page 0.
fn read_first(file: &dyn File) -> io::Result<Option<FirstPage>> {
    let mut newest: Option<FirstPage> = None;
    for place in [0, 1] {
        let Some(mut copy) = read_exact(file, place * COPY, COPY_BYTES)? else { continue };
        let is_whole = copy[COPY_BYTES - 4..] == sum_of(0, &copy[..COPY_BYTES - 4]).to_le_bytes();
        let number = copy[PAGE as usize..].first_chunk().map_or(0, |it| u64::from_le_bytes(*it));
        if is_whole && newest.as_ref().is_none_or(|newest| newest.number < number) {
            copy.truncate(PAGE as usize);
            newest = Some(FirstPage { bytes: copy, number, durable: place, is_written: false });
        }
    }
    Ok(newest)
}
