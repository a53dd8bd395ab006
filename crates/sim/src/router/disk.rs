//! A router's disk: the daemon's own log and index, on files in memory, with a catalogue beside them that
//! has no file; all answer at once.
//!
//! A flash takes well below a millisecond for what a packet on the air takes several, so its time is
//! not modelled; its size, and what leaves it to make room, is the store's own affair.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use node::{Input, StoreInput, StoreOutput, Ticket};
use store::{Error, Files, Index, Log, LogOptions, Memory, Policy, Reader, Unit};
use wire::Instant;

use super::catalogue::Catalogue;

/// A unit that found no room waits so long for the engine to make some.
const ROOM_PATIENCE: Duration = Duration::from_secs(1);

/// Bytes that the catalogue may take, beside the units.
const CATALOGUE_BYTES: u64 = 16 << 20;

/// How much a router keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSize {
    /// Bytes of units, with what keeps them apart.
    pub bytes: u64,
    /// What leaves first.
    pub policy: Policy,
}

impl StoreSize {
    /// Of a store that holds about so many bytes of content, and lets go what was not asked for longest.
    ///
    /// The log keeps two segments free to write to, and some bytes beside each unit.
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
    /// Units for which there was no room yet, and until when they wait: the first least.
    roomless: VecDeque<(Instant, Ticket, Vec<Unit>)>,
}

impl Disk {
    /// An empty one, and the engine's index of it.
    ///
    /// # Errors
    /// None that files in memory have; those that the store has.
    pub fn new(size: StoreSize, seed: u64) -> Result<(Self, Index), Error> {
        let files: Arc<dyn Files> = Arc::new(Memory::new());
        let mut index = Index::new(size.bytes, size.policy);
        let (log, _) = Log::open(files, LogOptions { segment_bytes: None, seed }, &mut index)?;
        let (units, catalogue) = (log.reader(), Catalogue::new(CATALOGUE_BYTES));
        Ok((Self { log, catalogue, units, roomless: VecDeque::new() }, index))
    }

    /// Does what is to be done, and puts the answers behind those that wait already.
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
            // Not that memory could lose anything: but the log keeps account of what is not synced.
            StoreOutput::Sync => StoreInput::Synced(self.log.sync().is_ok()),
            StoreOutput::List(segment) => {
                StoreInput::Entries(segment, self.log.entries(segment).ok())
            }
            StoreOutput::Append(ticket, units) => {
                return self.append(now + ROOM_PATIENCE, ticket, units, answers);
            }
            StoreOutput::Rewrite(segment, keep) => {
                let moved = self.log.rewrite(segment, &keep).ok();
                // Room is being made: whatever finds none yet may wait for the next piece.
                let renewed = moved.is_some().then(|| now + ROOM_PATIENCE);
                answers.push_back(Input::Store(StoreInput::Rewritten(segment, moved)));
                for (until, ticket, units) in std::mem::take(&mut self.roomless) {
                    self.append(renewed.unwrap_or(until), ticket, units, answers);
                }
                return;
            }
        };
        answers.push_back(Input::Store(answer));
    }

    /// When somebody will have waited for room in vain.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.roomless.front().map(|(until, ..)| *until)
    }

    /// Nobody waits for room longer than that.
    pub fn handle_timeout(&mut self, now: Instant, answers: &mut VecDeque<Input>) {
        while self.poll_timeout().is_some_and(|until| until <= now) {
            let waited = self.roomless.pop_front();
            answers.extend(
                waited.map(|(_, ticket, _)| Input::Store(StoreInput::Appended(ticket, None))),
            );
        }
    }

    fn append(
        &mut self,
        until: Instant,
        ticket: Ticket,
        units: Vec<Unit>,
        answers: &mut VecDeque<Input>,
    ) {
        match self.log.append(&units) {
            // The engine is making room, or will when it has heard of what was written before.
            Err(Error::Full { .. }) => self.roomless.push_back((until, ticket, units)),
            places => answers.push_back(Input::Store(StoreInput::Appended(ticket, places.ok()))),
        }
    }
}
