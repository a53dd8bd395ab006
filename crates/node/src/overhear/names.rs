//! What is remembered of chunks' names after, and before, they are assembled.
//!
//! Which chunks were here a moment ago, so that the next hop's transmission of the same is passed over;
//! which are wanted, though nothing was heard of them yet; and which follow which, because all hops send
//! them in the same order: a head that was missed on one hop can be known from another's.

use super::table::Table;
use std::time::Duration;
use wire::{ChunkId, Instant};

/// A chunk that was here is not assembled again for so long. After that it may have left the store.
const HERE: Duration = Duration::from_secs(10);

/// Least important first: what follows what, what is here, what is wanted.
const RANKS: usize = 3;
const WEIGHTS: [u64; RANKS] = [4, 2, 1];

/// A chunk, with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Named {
    /// Its name.
    pub name: ChunkId,
    /// Its length in bytes.
    pub total: u32,
}

/// What is known of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was here a moment ago.
    Here,
    /// Somebody waits for it.
    Wanted,
    /// Neither.
    Other,
}

/// All names.
#[derive(Debug)]
pub struct Names {
    table: Table<ChunkId, Known, RANKS>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    here_until: Option<Instant>,
    wanted: bool,
    before: Option<Named>,
    after: Option<Named>,
}

impl Names {
    /// For so many.
    pub fn new(names_max: usize, seed: &[u8; 32]) -> Self {
        Self { table: Table::new(names_max, seed) }
    }

    /// What a table for so many takes, in bytes.
    pub fn cost(names_max: usize) -> usize {
        Table::<ChunkId, Known, RANKS>::cost(names_max)
    }

    /// A chunk is here.
    pub fn arrived(&mut self, now: Instant, name: ChunkId) {
        self.note(now, name, |known| {
            known.here_until = Some(now + HERE);
            known.wanted = false;
        });
    }

    /// Whether a chunk has just been here; if not, whether somebody waits for it.
    pub fn state(&self, now: Instant, name: &ChunkId) -> State {
        match self.known(name) {
            Some(known) if known.here_until.is_some_and(|until| now < until) => State::Here,
            Some(known) if known.wanted => State::Wanted,
            _ => State::Other,
        }
    }

    /// Somebody waits for a chunk, wherever it comes from; or does not any more.
    pub fn want(&mut self, now: Instant, name: ChunkId, wanted: bool) {
        if wanted || self.known(&name).is_some() {
            self.note(now, name, |known| {
                known.wanted = wanted;
                known.here_until = known.here_until.filter(|_| !wanted);
            });
        }
    }

    /// One chunk follows another in some flow.
    pub fn follows(&mut self, now: Instant, first: Named, second: Named) {
        self.note(now, first.name, |known| known.after = Some(second));
        self.note(now, second.name, |known| known.before = Some(first));
    }

    /// What follows a chunk.
    pub fn after(&self, name: &ChunkId) -> Option<Named> {
        self.known(name)?.after
    }

    /// What a chunk follows.
    pub fn before(&self, name: &ChunkId) -> Option<Named> {
        self.known(name)?.before
    }

    fn known(&self, name: &ChunkId) -> Option<&Known> {
        self.table.get(self.table.find(name)?)
    }

    fn note(&mut self, now: Instant, name: ChunkId, change: impl FnOnce(&mut Known)) {
        let id = self.table.find(&name).or_else(|| {
            if self.table.is_full() {
                let worst = self.table.worst(now, &WEIGHTS)?;
                self.table.remove(worst);
            }
            self.table.insert(now, name, Known::default(), 0)
        });
        let Some(id) = id else { return };
        let Some(known) = self.table.get_mut(id) else { return };
        change(known);
        let rank = if known.wanted { 2 } else { usize::from(known.here_until.is_some()) };
        self.table.touch(now, id, rank);
    }
}
