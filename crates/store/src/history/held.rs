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
