//! The history of an uplink pair: the units in the order in which they crossed the slow link.
//!
//! *What this is:* a list of units on disk, each at a *position* that counts from 0 on. Both ends
//! of the link keep the same one, so that either can name a unit by its position. A random *epoch*
//! tells one history from another. [`History`] is the only writer; [`HistoryReader`] reads while
//! the writer appends. Positions are grouped into *blocks* of 1,024. A block is a file, and the
//! oldest one is removed when the budget is exceeded.
//!
//! *Who calls it:* each end of an uplink. A history has a directory of its own. *What it never
//! does:* compare units, check a unit's bytes against its name, draw an epoch, start a thread.
//!
//! *Where to start:* `history/format.rs` for the files, [`History::append`], [`History::truncate`].
//!
//! *Memory:* 4 bytes for each unit that is held (4 KiB a block), and 16 open files.
//!
//! *What survives a crash:* all units before the position that [`History::sync`] returned, even if
//! the power fails during a write; of later ones, the longest run that is whole. A block and its
//! name are durable before the next block is created, so that only the newest can be incomplete.
//! Units that were forgotten never come back: a truncation is durable before anything is written in
//! their place. A reset creates a block of a higher *generation*, which makes all others void.

mod cipher;
mod format;
mod held;
mod names;
mod newest;
mod reader;
mod recover;

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Doing, Error};
use crate::files::Files;
use crate::segment::UNIT_BYTES_MAX;
use cipher::Cipher;
use format::{
    BLOCK_MAX, BLOCK_UNITS, BlockId, HEADER, POSITION_MAX, RECORD_HEADER, RecordHeader,
    emit_footer, emit_record, footer_bytes,
};
use held::{Block, Held, Shared};
use names::Names;
use newest::{Newest, WRITE_BYTES_MAX, WRITE_UNITS_MAX};
pub use reader::HistoryReader;
use reader::headers_of;
use recover::recover;

/// What is known of a unit besides its bytes. The history does not interpret it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The unit's name, shortened.
    pub name: [u8; 16],
    /// Features of the bytes, by which similar units are found.
    pub features: [u32; 4],
    /// A hash of the URL whose body begins with this unit; 0 if no body does.
    pub url: u64,
    /// The unit's length in bytes. [`History::append`] takes it from the bytes instead.
    pub length: u32,
}

/// Options for opening a history.
#[derive(Clone, Copy, Default)]
pub struct HistoryOptions {
    /// Most bytes of all files. The newest block is kept even if it alone exceeds the budget: it
    /// may have 1,024 of the longest units, 32 MiB.
    pub budget_bytes: u64,
    /// Enciphers units and marks on disk, except lengths. With another key than before, a history
    /// cannot be read and is removed.
    pub key: Option<[u8; 32]>,
}

/// Does not show the key.
impl std::fmt::Debug for HistoryOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key = self.key.map(|_| "…");
        let budget = ("budget_bytes", &self.budget_bytes);
        f.debug_struct("HistoryOptions").field(budget.0, budget.1).field("key", &key).finish()
    }
}

/// Which history this is, and the positions that it holds: from `first` to before `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryState {
    /// The history's random name.
    pub epoch: [u8; 16],
    /// The first position that is held.
    pub first: u64,
    /// The position of the next unit.
    pub end: u64,
}

/// The writer of a history. See the module's documentation.
#[derive(Debug)]
pub struct History {
    shared: Arc<Shared>,
    cipher: Arc<Cipher>,
    budget_bytes: u64,
    newest: Newest,
    names: Names,
}

impl History {
    /// Opens or creates the history in a directory of its own. All of it is then durable.
    ///
    /// The history is empty and has the epoch `fresh_epoch` if there is none, or if none of its
    /// blocks can be read with this key. `fresh_epoch` must be random. Damaged blocks, and those
    /// before them, are removed.
    ///
    /// Reads the newest block whole, and of the others 64 bytes for each unit.
    ///
    /// # Errors
    /// [`Error::Io`] if the directory cannot be read or written; trying again may help.
    /// [`Error::Exhausted`] after 2^32 resets.
    pub fn open(
        files: Arc<dyn Files>,
        options: HistoryOptions,
        fresh_epoch: [u8; 16],
    ) -> Result<(Self, HistoryReader, HistoryState), Error> {
        let cipher = Arc::new(Cipher::new(options.key));
        let found = recover(&*files, &cipher)?;
        let mut names = Names::new(files.clone(), found.stale);
        names.settle()?;
        let (held, newest) = match found.newest {
            Some((id, file)) => {
                let held = Held::new(id.generation, id.epoch, found.blocks);
                (held, Newest::found(file, found.newest_bytes)?)
            }
            None => {
                let generation = found.generation.checked_add(1).ok_or(Error::Exhausted)?;
                let id = BlockId { generation, epoch: fresh_epoch, number: 0 };
                let file = names.create(&id, 0, &cipher)?;
                let blocks = VecDeque::from([Block::empty(0, 0)]);
                (Held::new(generation, fresh_epoch, blocks), Newest::created(file))
            }
        };
        let shared = Arc::new(Shared::new(held));
        let reader = HistoryReader { files, shared: shared.clone(), cipher: cipher.clone() };
        let budget_bytes = options.budget_bytes;
        let mut history = Self { shared, cipher, budget_bytes, newest, names };
        history.evict(0)?;
        history.sync()?;
        let state = history.state();
        Ok((history, reader, state))
    }

    /// What is held, durable or not.
    pub fn state(&self) -> HistoryState {
        self.shared.lock().state()
    }

    /// The oldest position that is still held after this many more bytes were appended: positions below are removed by
    /// then, maybe.
    pub fn lasting(&self, bytes: u64) -> u64 {
        let held = self.shared.lock();
        let (mut left, mut first) = (held.bytes().saturating_add(bytes), held.state().first);
        for block in &held.blocks {
            if left <= self.budget_bytes {
                break;
            }
            left = left.saturating_sub(block.file_bytes());
            first = block.end_position();
        }
        first
    }

    /// Appends units at the end, which `first` must be. Readers see them; they are not durable yet.
    /// If they would exceed the budget, the oldest blocks are removed.
    ///
    /// # Errors
    /// [`Error::NotAtEnd`], [`Error::TooLong`] and [`Error::Exhausted`] before anything changes.
    /// [`Error::Io`] if the disk fails: the first of the units may have been appended nevertheless,
    /// namely those before the end in [`History::state`]. The others are not held, now or after a
    /// power cut, as soon as another call that writes has succeeded.
    pub fn append(&mut self, first: u64, units: &[(Mark, Bytes)]) -> Result<(), Error> {
        let end = self.state().end;
        if first != end {
            return Err(Error::NotAtEnd { first, end });
        }
        let longest = units.iter().map(|(_, bytes)| bytes.len() as u64).max().unwrap_or(0);
        let bytes_max = u64::from(UNIT_BYTES_MAX);
        if longest > bytes_max {
            return Err(Error::TooLong { bytes: longest, bytes_max });
        }
        let end = end.checked_add(units.len() as u64);
        end.filter(|end| *end <= POSITION_MAX).ok_or(Error::Exhausted)?;
        let mut rest = units;
        while !rest.is_empty() {
            let room = self.shared.lock().newest().room();
            if room == 0 {
                self.begin_next()?;
                continue;
            }
            let (some, others) = rest.split_at(fitting(rest, room));
            self.write(some)?;
            rest = others;
        }
        Ok(())
    }

    /// Writes units, for which the newest block must have room, with one call.
    fn write(&mut self, units: &[(Mark, Bytes)]) -> Result<(), Error> {
        self.evict(units.iter().map(|(_, bytes)| record_bytes(bytes)).sum())?;
        let (id, position, end) = self.shared.lock().at_end();
        self.newest.cut(end)?;
        let records: Vec<_> = (position..)
            .zip(units)
            .map(|(position, (mark, bytes))| emit_record(&id, position, mark, bytes, &self.cipher))
            .collect();
        let parts = records.iter().flat_map(|(header, body)| [&header[..], body]);
        self.newest.write(end, parts)?;
        let mut held = self.shared.lock();
        units.iter().for_each(|(_, bytes)| held.newest_mut().push(bytes.len() as u32));
        Ok(())
    }

    /// Completes the newest block, which has all its records, and begins the next one.
    fn begin_next(&mut self) -> Result<(), Error> {
        self.evict(u64::from(footer_bytes(BLOCK_UNITS) + HEADER))?;
        self.write_footer()?;
        let (id, _, end) = self.shared.lock().at_end();
        self.newest.sync(end)?;
        // Creating a file makes all earlier names durable first.
        let next = BlockId { number: id.number + 1, ..id };
        let file = self.names.create(&next, 0, &self.cipher)?;
        self.newest = Newest::created(file.clone());
        let mut held = self.shared.lock();
        held.blocks.push_back(Block::empty(next.number, 0));
        held.add(next.number, file);
        Ok(())
    }

    /// Writes the footer of the newest block, so that the next start need not read all over the
    /// file. A block with a damaged record header gets none.
    fn write_footer(&mut self) -> Result<(), Error> {
        let (id, _, end) = self.shared.lock().at_end();
        self.newest.cut(end)?;
        let (has_footer, run) = {
            let held = self.shared.lock();
            let block = held.newest();
            (block.has_footer, held.run(block.first_position(), block.end_position()))
        };
        let Some(run) = run.filter(|_| !has_footer) else { return Ok(()) };
        let headers = headers_of(self.newest.file(), &run).doing("read a block of a history")?;
        let mut each = (run.first..).zip(headers.chunks(RECORD_HEADER as usize));
        if each.all(|(position, header)| RecordHeader::parse(header, &id, position).is_some()) {
            let footer = emit_footer(&id, headers);
            self.newest.write(end, [&footer[..]])?;
            self.shared.lock().newest_mut().has_footer = true;
        }
        Ok(())
    }

    /// Makes everything that is held durable, and returns its end.
    ///
    /// # Errors
    /// [`Error::Io`]: units appended since the last successful call may or may not be durable. They
    /// can be read, and a later successful call covers them too.
    pub fn sync(&mut self) -> Result<u64, Error> {
        let (_, end, end_offset) = self.shared.lock().at_end();
        self.newest.cut(end_offset)?;
        self.newest.sync(end_offset)?;
        self.names.settle()?;
        Ok(end)
    }

    /// Forgets the units at `end` and after it, durably. If `end` is before the first position that
    /// is held, the history is then empty, and begins at `end`. If it is not before the end,
    /// nothing changes.
    ///
    /// # Errors
    /// [`Error::Io`]: some of the units may have been forgotten; [`History::state`] has the end.
    /// Nothing is written in their place before a later call has made that durable.
    /// [`Error::Exhausted`] as for [`History::reset`].
    pub fn truncate(&mut self, end: u64) -> Result<(), Error> {
        let state = self.state();
        if end < state.first {
            return self.reset(state.epoch, end);
        }
        // From the newest block on, each durably before the next: if a gap remained after a power
        // cut, the blocks before it would be taken for damaged ones.
        self.names.settle()?;
        while end < self.state().end && self.remove_newest(end)? {}
        let (_, _, end_offset) = {
            let mut held = self.shared.lock();
            if held.shorten(end) {
                self.newest.expect_tail();
            }
            held.at_end()
        };
        self.newest.cut(end_offset)
    }

    /// Removes the newest block durably, if it begins at `end` or after it and is not the only one.
    fn remove_newest(&mut self, end: u64) -> Result<bool, Error> {
        let (id, before) = {
            let held = self.shared.lock();
            let newest = held.newest();
            if newest.first_position() < end || held.blocks.len() == 1 {
                return Ok(false);
            }
            (held.id(newest.number), held.id(newest.number - 1))
        };
        let file = self.names.open(&before)?;
        let bytes = {
            let mut held = self.shared.lock();
            held.blocks.pop_back();
            held.close(id.number);
            held.changes += 1;
            held.newest().file_bytes()
        };
        self.newest = Newest::found(file, bytes)?;
        self.names.discard(id.file_name());
        self.names.settle()?;
        Ok(true)
    }

    /// Forgets everything, durably; the next unit is then at position `first` of the history
    /// `epoch`.
    ///
    /// # Errors
    /// [`Error::Exhausted`] after 2^32 resets, or if `first` is among the last 1,024 positions.
    /// [`Error::Io`]: nothing was forgotten, or everything and some files are still to be removed;
    /// [`History::state`] tells. The same holds after a power cut during the call.
    pub fn reset(&mut self, epoch: [u8; 16], first: u64) -> Result<(), Error> {
        let generation = self.shared.lock().generation.checked_add(1).ok_or(Error::Exhausted)?;
        let number = first / u64::from(BLOCK_UNITS);
        if number > BLOCK_MAX {
            return Err(Error::Exhausted);
        }
        let id = BlockId { generation, epoch, number };
        let slot = (first - id.start()) as u32;
        let mut newest = Newest::created(self.names.create(&id, slot, &self.cipher)?);
        let is_made = newest.sync(HEADER.into()).and_then(|()| self.names.settle());
        if let Err(error) = is_made {
            // The new block may be durable or not. It must not replace the others later on.
            self.names.discard(id.file_name());
            return Err(error);
        }
        self.newest = newest;
        let mut held = self.shared.lock();
        let old: Vec<_> = held.blocks.iter().map(|it| held.id(it.number).file_name()).collect();
        let changes = held.changes + 1;
        *held = Held::new(generation, epoch, VecDeque::from([Block::empty(number, slot)]));
        held.changes = changes;
        drop(held);
        old.into_iter().for_each(|name| self.names.discard(name));
        self.names.settle()
    }

    /// Removes the oldest blocks until this many more bytes fit into the budget, but never the
    /// newest.
    fn evict(&mut self, bytes: u64) -> Result<(), Error> {
        loop {
            let mut held = self.shared.lock();
            if held.blocks.len() < 2 || held.bytes().saturating_add(bytes) <= self.budget_bytes {
                return Ok(());
            }
            let Some(block) = held.blocks.pop_front() else { return Ok(()) };
            held.close(block.number);
            let name = held.id(block.number).file_name();
            drop(held);
            self.names.discard(name);
            self.names.remove()?;
        }
    }
}

/// The number of units that one write takes, at least 1 of them.
fn fitting(units: &[(Mark, Bytes)], room: u32) -> usize {
    let mut bytes = 0;
    let fits = |(_, unit): &&(Mark, Bytes)| {
        let is_first = bytes == 0;
        bytes += record_bytes(unit);
        is_first || bytes <= WRITE_BYTES_MAX
    };
    let most = WRITE_UNITS_MAX.min(room as usize);
    units.iter().take(most).take_while(fits).count()
}

fn record_bytes(bytes: &Bytes) -> u64 {
    u64::from(RECORD_HEADER) + bytes.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Memory;

    #[test]
    fn what_lasts_is_held_after_as_much_is_appended_and_no_less_lasts_than_need_be() {
        let options = HistoryOptions { budget_bytes: 4 * 1100 * 1024, key: None };
        let files = Arc::new(Memory::new());
        let (mut history, _, _) = History::open(files, options, [1; 16]).unwrap();
        let units = vec![(Mark::default(), Bytes::from(vec![7; 1000])); 256];
        let block = u64::from(BLOCK_UNITS);
        for round in 0..40 {
            let lasting = history.lasting(1 << 20);
            let HistoryState { first, end, .. } = history.state();
            assert!((first..=end).contains(&lasting), "{lasting} of {first} to {end}");
            // A block, and what it has besides, is somewhat more than 1 MiB.
            assert!(lasting <= first + block, "round {round}: {lasting}, though {first} is held");
            (0..4).for_each(|part| history.append(end + part * 256, &units).unwrap());
            assert!(history.state().first >= first);
            let after = history.state().first;
            assert!(after <= lasting + block, "round {round}");
            assert!(after <= history.lasting(0), "round {round}");
            assert_eq!(history.lasting(u64::MAX), history.state().end);
        }
        assert!(history.state().first > 30 * block, "the oldest were removed");
    }

    #[test]
    fn nothing_below_what_lasts_is_promised() {
        let options = HistoryOptions { budget_bytes: 4 << 20, key: None };
        let files = Arc::new(Memory::new());
        let (mut history, _, _) = History::open(files, options, [1; 16]).unwrap();
        let units = vec![(Mark::default(), Bytes::from(vec![7; 1000])); 100];
        let more = units.len() as u64 * (1000 + u64::from(RECORD_HEADER));
        for _ in 0..200 {
            let (lasting, end) = (history.lasting(more), history.state().end);
            history.append(end, &units).unwrap();
            // Headers and footers of blocks come to that.
            assert!(history.state().first <= lasting.max(history.lasting(0)));
        }
        assert!(history.state().first > 0);
    }

    /// A reader that looked a unit up before may find other bytes in its place.
    #[test]
    fn what_is_replaced_after_a_reset_or_a_truncation_is_not_taken_for_damage() {
        let units = vec![(Mark::default(), Bytes::from_static(b"unit")); 1100];
        let changes: [fn(&mut History); 2] = [
            |history| history.reset([2; 16], 0).unwrap(),
            // The newest block is removed, and the one before it stays as it is.
            |history| history.truncate(u64::from(BLOCK_UNITS)).unwrap(),
        ];
        for change in changes {
            let options = HistoryOptions { budget_bytes: 1 << 30, key: None };
            let (mut history, reader, _) =
                History::open(Arc::new(Memory::new()), options, [1; 16]).unwrap();
            history.append(0, &units).unwrap();
            let run = reader.shared.lock().run(1050, 1060).unwrap();
            change(&mut history);
            history.append(history.state().end, &units).unwrap();
            reader.shared.lock().lose(&run);
            assert_eq!(reader.read(1050, 10).unwrap().map(|it| it.len()), Some(10));
        }
    }
}
