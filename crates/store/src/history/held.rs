//! What a history holds: the state that its writer changes and its readers look at.
//!
//! *What this is:* for each block, where its records begin, in 4 bytes a unit (4 KiB a block); and
//! the files that are open for reading. *Who calls it:* the writer and the readers, which share it.
//! *What it never does:* I/O while it is locked, so that readers do not wait for the writer's disk.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::HistoryState;
use super::format::{BLOCK_UNITS, BlockId, HEADER, RECORD_HEADER, footer_bytes};
use crate::files::File;

/// Most files open for reading; beyond it, the least recently used one is closed.
const HANDLES_MAX: usize = 16;

/// A block, and where its records begin.
#[derive(Debug)]
pub(super) struct Block {
    pub number: u64,
    /// The slot of the first record.
    pub first: u32,
    /// The offset of each record in the file, in bytes; at last the offset after the last record.
    pub offsets: Vec<u32>,
    pub has_footer: bool,
    /// Whether a reader has found damage in it.
    pub is_lost: bool,
}

impl Block {
    /// A block whose first record is to be in slot `first`.
    pub fn empty(number: u64, first: u32) -> Self {
        let mut offsets = Vec::with_capacity((BLOCK_UNITS - first) as usize + 1);
        offsets.push(HEADER);
        Self { number, first, offsets, has_footer: false, is_lost: false }
    }

    pub fn records(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// The records that the block can still take.
    pub fn room(&self) -> u32 {
        BLOCK_UNITS - self.first - self.records()
    }

    pub fn first_position(&self) -> u64 {
        self.number * u64::from(BLOCK_UNITS) + u64::from(self.first)
    }

    pub fn end_position(&self) -> u64 {
        self.first_position() + u64::from(self.records())
    }

    /// The offset after the last record, in bytes.
    pub fn end_offset(&self) -> u32 {
        self.offsets.last().copied().unwrap_or(HEADER)
    }

    pub fn push(&mut self, length: u32) {
        self.offsets.push(self.end_offset() + RECORD_HEADER + length);
    }

    /// The length of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        let footer = if self.has_footer { footer_bytes(self.records()) } else { 0 };
        u64::from(self.end_offset()) + u64::from(footer)
    }
}

/// Adjacent records of one block.
#[derive(Debug)]
pub(super) struct Run {
    pub block: BlockId,
    /// The position of the first record.
    pub first: u64,
    /// As in [`Block`], of these records.
    pub offsets: Vec<u32>,
    /// The offset in the file of the first record's header in the footer, if there is one.
    pub footer_offset: Option<u32>,
    /// Whether damage was found in the block.
    pub is_lost: bool,
    /// The number of changes before the run was looked up: see [`Held::changes`].
    pub changes: u64,
}

impl Run {
    pub fn end(&self) -> u64 {
        self.first + self.offsets.len() as u64 - 1
    }

    /// Bytes of the records in the file.
    pub fn bytes(&self) -> u32 {
        let ends = self.offsets.first().zip(self.offsets.last());
        ends.map_or(0, |(first, end)| end - first)
    }
}

/// What is held. There is always a block: the newest, which is appended to.
#[derive(Debug)]
pub(super) struct Held {
    pub generation: u32,
    pub epoch: [u8; 16],
    /// Adjacent blocks, oldest first. Each but the newest has all its records.
    pub blocks: VecDeque<Block>,
    /// Truncations and resets so far. What was looked up before one of them may since have been
    /// overwritten.
    pub changes: u64,
    /// Open files by their blocks' numbers, most recently used last.
    open: Vec<(u64, Arc<dyn File>)>,
}

impl Held {
    pub fn new(generation: u32, epoch: [u8; 16], blocks: VecDeque<Block>) -> Self {
        Self { generation, epoch, blocks, changes: 0, open: Vec::new() }
    }

    pub fn id(&self, number: u64) -> BlockId {
        BlockId { generation: self.generation, epoch: self.epoch, number }
    }

    pub fn state(&self) -> HistoryState {
        let first = self.blocks[0].first_position();
        HistoryState { epoch: self.epoch, first, end: self.newest().end_position() }
    }

    pub fn newest(&self) -> &Block {
        // There is always a block.
        &self.blocks[self.blocks.len() - 1]
    }

    pub fn newest_mut(&mut self) -> &mut Block {
        let newest = self.blocks.len() - 1;
        &mut self.blocks[newest]
    }

    /// The newest block, the position of the next unit, and the length of the block's file.
    pub fn at_end(&self) -> (BlockId, u64, u64) {
        let newest = self.newest();
        (self.id(newest.number), newest.end_position(), newest.file_bytes())
    }

    /// Forgets the newest block's units at `end` and after it; whether there are any.
    pub fn shorten(&mut self, end: u64) -> bool {
        let newest = self.newest_mut();
        let is_shorter = end < newest.end_position();
        if is_shorter {
            let kept = end.saturating_sub(newest.first_position()) as usize;
            newest.offsets.truncate(kept + 1);
            newest.has_footer = false;
            self.changes += 1;
        }
        is_shorter
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(Block::file_bytes).sum()
    }

    /// The records from a position on that are in the same block, up to `end`; `None` if the first
    /// is not held.
    pub fn run(&self, first: u64, end: u64) -> Option<Run> {
        let oldest = self.blocks.front()?.number;
        let at = (first / u64::from(BLOCK_UNITS)).checked_sub(oldest)?;
        let block = self.blocks.get(usize::try_from(at).ok()?)?;
        let end = end.min(block.end_position());
        if first < block.first_position() || first >= end {
            return None;
        }
        let from = (first - block.first_position()) as usize;
        let to = (end - block.first_position()) as usize;
        let footer = block.end_offset() + from as u32 * RECORD_HEADER;
        Some(Run {
            block: self.id(block.number),
            first,
            offsets: block.offsets[from..=to].to_vec(),
            footer_offset: block.has_footer.then_some(footer),
            is_lost: block.is_lost,
            changes: self.changes,
        })
    }

    /// Remembers that a record of the run is damaged, unless the run has been overwritten.
    pub fn lose(&mut self, run: &Run) {
        let is_current = self.changes == run.changes;
        let mut blocks = self.blocks.iter_mut();
        let block = blocks.find(|block| is_current && block.number == run.block.number);
        if let Some(block) = block {
            block.is_lost = true;
        }
    }

    pub fn opened(&mut self, number: u64) -> Option<Arc<dyn File>> {
        let at = self.open.iter().position(|(it, _)| *it == number)?;
        self.open[at..].rotate_left(1);
        self.open.last().map(|(_, file)| file.clone())
    }

    pub fn add(&mut self, number: u64, file: Arc<dyn File>) {
        self.close(number);
        if self.open.len() == HANDLES_MAX {
            self.open.remove(0);
        }
        self.open.push((number, file));
    }

    /// Closes a block's file before it is removed: an open file would still occupy disk space.
    pub fn close(&mut self, number: u64) {
        self.open.retain(|(it, _)| *it != number);
    }
}

/// The state that a writer shares with its readers.
#[derive(Debug)]
pub(super) struct Shared(Mutex<Held>);

impl Shared {
    pub fn new(held: Held) -> Self {
        Self(Mutex::new(held))
    }

    pub fn lock(&self) -> MutexGuard<'_, Held> {
        // After a panic elsewhere the state is still consistent: what is changed under one lock is
        // changed by calls that do not panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Files, Memory};

    /// Block 5 with all its records from slot 1020 on, block 6 with as many as are given; each record has 10 bytes.
    fn held(records: u32) -> Held {
        let mut old = Block::empty(5, BLOCK_UNITS - 4);
        (0..4).for_each(|_| old.push(10));
        old.has_footer = true;
        let mut new = Block::empty(6, 0);
        (0..records).for_each(|_| new.push(10));
        Held::new(1, [7; 16], VecDeque::from([old, new]))
    }

    /// The first position of block 6.
    const START: u64 = 6 * BLOCK_UNITS as u64;

    fn lost(held: &Held) -> Vec<u64> {
        held.blocks.iter().filter(|it| it.is_lost).map(|it| it.number).collect()
    }

    #[test]
    fn damage_marks_the_block_of_its_run_alone() {
        for (position, number) in [(START - 1, 5), (START, 6)] {
            let mut held = held(3);
            let run = held.run(position, u64::MAX).unwrap();
            assert!(!run.is_lost);
            held.lose(&run);
            assert_eq!(lost(&held), [number]);
            assert!(held.run(position, u64::MAX).unwrap().is_lost);
        }
    }

    /// A reader may find that bytes do not match because the writer has since put others in their place.
    #[test]
    fn what_was_overwritten_since_it_was_looked_up_is_no_damage() {
        let mut held = held(3);
        let run = held.run(START + 1, START + 3).unwrap();
        assert!(held.shorten(START + 1));
        held.newest_mut().push(20);
        held.lose(&run);
        assert_eq!(lost(&held), []);
        let run = held.run(START + 1, START + 2).unwrap();
        held.lose(&run);
        assert_eq!(lost(&held), [6], "what was looked up since may be damaged");
    }

    #[test]
    fn only_what_takes_units_away_is_a_change() {
        let mut held = held(3);
        assert!(!held.shorten(START + 3) && !held.shorten(START + 4));
        assert_eq!((held.changes, held.state().end), (0, START + 3));
        assert!(held.shorten(START + 2));
        assert_eq!((held.changes, held.state().end), (1, START + 2));
    }

    /// In the file: a header of 60 bytes, records of 64 + 10, and if the block is full the records' headers again.
    #[test]
    fn a_run_ends_with_its_block_and_begins_with_a_record_that_is_held() {
        let held = held(3);
        assert_eq!(held.state(), HistoryState { epoch: [7; 16], first: START - 4, end: START + 3 });
        assert!(held.run(START - 5, START).is_none() && held.run(0, START).is_none());
        assert!(held.run(START + 3, START + 9).is_none() && held.run(START, START).is_none());
        assert!(held.run(START + u64::from(BLOCK_UNITS), u64::MAX).is_none());
        let run = held.run(START - 3, START + 2).unwrap();
        assert_eq!((run.block.number, run.first, run.end()), (5, START - 3, START));
        assert_eq!((&run.offsets[..], run.bytes()), (&[134, 208, 282, 356][..], 3 * 74));
        assert_eq!(run.footer_offset, Some(356 + 64));
        let run = held.run(START + 2, u64::MAX).unwrap();
        assert_eq!((run.first, run.end(), run.footer_offset), (START + 2, START + 3, None));
        assert_eq!((held.blocks[0].room(), held.newest().room()), (0, 1021));
    }

    #[test]
    fn the_file_that_was_read_longest_ago_is_closed_for_the_seventeenth() {
        let file = Memory::new().create("file").unwrap();
        let mut held = held(0);
        let add = |held: &mut Held, number: u64| held.add(number, file.clone());
        (0..16).for_each(|number| add(&mut held, number));
        assert!(held.opened(0).is_some() && held.opened(16).is_none());
        add(&mut held, 16);
        let open: Vec<_> = (0..17).filter(|number| held.opened(*number).is_some()).collect();
        assert_eq!(open, (0..17).filter(|number| *number != 1).collect::<Vec<_>>());
        held.close(16);
        assert!(held.opened(16).is_none() && held.opened(15).is_some());
        add(&mut held, 17);
        add(&mut held, 17);
        assert!(held.opened(0).is_some(), "there was room for one more");
    }
}
