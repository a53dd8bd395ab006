//! A router's disk: the daemon's own log and index on files in memory, and a catalogue in memory. All
//! operations finish at once.
//!
//! A flash write takes well below a millisecond, a packet on the air several, so the disk's time is not
//! modelled. Capacity and eviction are the store's own.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use std::collections::VecDeque;
use std::sync::Arc;

use node::driver::{DiskQueue, Waiting};
use node::{Input, StoreInput, StoreOutput};
use store::{Error, Files, Index, Log, LogOptions, Memory, Policy, Reader};
use wire::Instant;

use super::catalogue::Catalogue;

/// The catalogue's budget in bytes, in addition to that of units.
const CATALOGUE_BYTES: u64 = 16 << 20;

/// The size of a router's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSize {
    /// Bytes of units, including the log's overhead.
    pub bytes: u64,
    /// Eviction policy.
    pub policy: Policy,
}

impl StoreSize {
    /// A store for about `content_bytes` of content with LRU eviction.
    ///
    /// The log keeps two segments free for writing, and adds a few bytes to each unit.
    pub fn lru(content_bytes: u64) -> Self {
        let policy = Policy::Lru;
        let segment = Index::new(content_bytes, policy).segment_bytes();
        Self { bytes: content_bytes + content_bytes / 64 + 2 * u64::from(segment), policy }
    }
}

/// The store.
pub(super) struct Disk {
    log: Log,
    catalogue: Catalogue,
    units: Reader,
    roomless: DiskQueue,
}

impl Disk {
    /// An empty store, and its index for the engine.
    ///
    /// # Errors
    ///
    /// Errors of the store; files in memory have none.
    pub fn new(size: StoreSize, seed: u64) -> Result<(Self, Index), Error> {
        let files: Arc<dyn Files> = Arc::new(Memory::new());
        let mut index = Index::new(size.bytes, size.policy);
        let (log, _) = Log::open(files, LogOptions { segment_bytes: None, seed }, &mut index)?;
        let (units, catalogue) = (log.reader(), Catalogue::new(CATALOGUE_BYTES));
        Ok((Self { log, catalogue, units, roomless: DiskQueue::default() }, index))
    }

    /// Performs an output of the engine, and queues the store's answers.
    pub fn perform(&mut self, now: Instant, output: StoreOutput, answers: &mut VecDeque<Input>) {
        let answer = match output {
            StoreOutput::Lookup(key) => StoreInput::Row(key, self.catalogue.get(&key)),
            StoreOutput::ReadSegment(record, number) => {
                StoreInput::Segment(record, number, self.catalogue.segment(&record, number))
            }
            StoreOutput::Read(ticket, first, lengths) => {
                StoreInput::Units(ticket, self.units.read(first, &lengths).ok())
            }
            StoreOutput::Change(ticket, changes) => {
                self.catalogue.apply(changes);
                StoreInput::Changed(ticket, true)
            }
            // Memory loses nothing without a sync, but the log counts unsynced bytes.
            StoreOutput::Sync => StoreInput::Synced(self.log.sync().is_ok()),
            StoreOutput::List(segment) => {
                StoreInput::Entries(segment, self.log.entries(segment).ok())
            }
            StoreOutput::Append(ticket, units) => {
                return self.append(Waiting::new(now, ticket, units), answers);
            }
            StoreOutput::Rewrite(segment, keep) => {
                let moved = self.log.rewrite(segment, &keep).ok();
                let again = self.roomless.take(now, moved.is_some());
                answers.push_back(Input::Store(StoreInput::Rewritten(segment, moved)));
                again.into_iter().for_each(|waiting| self.append(waiting, answers));
                return;
            }
        };
        answers.push_back(Input::Store(answer));
    }

    /// When the next append that waits for room times out.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.roomless.poll_timeout()
    }

    /// Fails appends that have waited too long for room.
    pub fn handle_timeout(&mut self, now: Instant, answers: &mut VecDeque<Input>) {
        let in_vain = self.roomless.expire(now);
        answers.extend(in_vain.map(|ticket| Input::Store(StoreInput::Appended(ticket, None))));
    }

    fn append(&mut self, waiting: Waiting, answers: &mut VecDeque<Input>) {
        match self.log.append(&waiting.units) {
            Err(Error::Full { .. }) => self.roomless.wait(waiting),
            places => {
                let answer = StoreInput::Appended(waiting.ticket, places.ok());
                answers.push_back(Input::Store(answer));
            }
        }
    }
}
