//! Rows of the catalogue in memory, so that a hot object costs no look-up.

use crate::hasher::{Cache, Map, cache};
use crate::http::Row;
use crate::ids::Ids;
use crate::input::{ExchangeId, Ticket};
use crate::output::{Output, StoreOutput};
use quick_cache::Weighter;
use std::collections::VecDeque;
use std::rc::Rc;
use store::Change;
use wire::{ObjectKey, RecordId};

/// Rows by key.
pub struct Rows {
    cache: Cache<ObjectKey, Rc<Row>, ByWeight>,
    /// Rows that the catalogue does not have yet.
    pinned: Map<ObjectKey, (Ticket, Rc<Row>)>,
    /// What the catalogue has not answered yet, and the bytes of each.
    changes: Map<Ticket, (ObjectKey, u64)>,
    changing_bytes: u64,
    changing_bytes_max: u64,
    waiting: Map<ObjectKey, Vec<ExchangeId>>,
}

#[derive(Clone, Copy, Default)]
struct ByWeight;

impl Weighter<ObjectKey, Rc<Row>> for ByWeight {
    fn weight(&self, _: &ObjectKey, row: &Rc<Row>) -> u64 {
        row.weight() as u64
    }
}

impl Rows {
    /// With this much memory.
    pub fn new(bytes: u64) -> Self {
        let items = (bytes / 1024).max(16) as usize;
        Self {
            cache: cache(items, bytes, ByWeight),
            pinned: Map::default(),
            changes: Map::default(),
            changing_bytes: 0,
            changing_bytes_max: bytes,
            waiting: Map::default(),
        }
    }

    /// A row, if memory has it.
    pub fn get(&self, key: &ObjectKey) -> Option<Rc<Row>> {
        self.pinned.get(key).map(|(_, row)| row).or_else(|| self.cache.get(key)).cloned()
    }

    /// Has it looked up for someone.
    pub fn look_up(&mut self, key: ObjectKey, waiter: ExchangeId, out: &mut VecDeque<Output>) {
        let waiters = self.waiting.entry(key).or_default();
        if waiters.is_empty() {
            out.push_back(Output::Store(StoreOutput::Lookup(key)));
        }
        waiters.push(waiter);
    }

    /// The catalogue answered: who waited, and the row; empty if there is none.
    pub fn handle_row(
        &mut self,
        key: ObjectKey,
        bytes: Option<&[u8]>,
    ) -> (Vec<ExchangeId>, Rc<Row>) {
        // What was put meanwhile is newer than what was read.
        let row = self.get(&key).unwrap_or_else(|| {
            // What cannot be read is as good as absent, and will be written anew.
            let row = Rc::new(bytes.and_then(Row::decode).unwrap_or_default());
            self.cache.insert(key, Rc::clone(&row));
            row
        });
        (self.waiting.remove(&key).unwrap_or_default(), row)
    }

    /// Whether the catalogue has been asked for it and did not answer yet.
    pub fn is_awaited(&self, key: &ObjectKey) -> bool {
        self.waiting.contains_key(key)
    }

    /// Puts a row in place of what was there, in memory and in the catalogue, where it also owns the segments of
    /// the records that linger. While the catalogue is far behind, in memory alone: what is lost by that is asked
    /// for again. False if so.
    pub fn put(
        &mut self,
        key: ObjectKey,
        row: Rc<Row>,
        lingering: &[RecordId],
        ids: &mut Ids,
        out: &mut VecDeque<Output>,
    ) -> bool {
        if self.changing_bytes > self.changing_bytes_max {
            self.pinned.remove(&key);
            self.cache.insert(key, row);
            return false;
        }
        let ticket = ids.draw();
        let named = row.records.iter().map(|record| record.id);
        let records = named.chain(lingering.iter().copied()).collect();
        let encoded = row.encode();
        let bytes = encoded.len() as u64;
        let output = StoreOutput::Change(ticket, vec![Change::Put { key, row: encoded, records }]);
        out.push_back(Output::Store(output));
        self.changing_bytes += bytes;
        self.changes.insert(ticket, (key, bytes));
        self.pinned.insert(key, (ticket, row));
        true
    }

    /// Takes note of a row that the catalogue was given otherwise.
    pub fn learn(&mut self, key: ObjectKey, row: Rc<Row>) {
        self.unlearn(&key);
        self.cache.insert(key, row);
    }

    /// Forgets a row that the catalogue was told to remove.
    pub fn unlearn(&mut self, key: &ObjectKey) {
        self.pinned.remove(key);
        self.cache.remove(key);
    }

    /// The catalogue has taken a row, or could not; false if the ticket is not one of ours.
    pub fn handle_changed(&mut self, ticket: Ticket) -> bool {
        let Some((key, bytes)) = self.changes.remove(&ticket) else { return false };
        self.changing_bytes -= bytes;
        if self.pinned.get(&key).is_some_and(|(latest, _)| *latest == ticket)
            && let Some((_, row)) = self.pinned.remove(&key)
        {
            self.cache.insert(key, row);
        }
        true
    }

    /// Forgets what it can: ages in it may be wrong, as the clock was set.
    pub fn forget(&mut self) {
        self.cache.clear();
    }

    /// Bytes in memory, roughly.
    pub fn bytes(&self) -> u64 {
        self.cache.weight()
            + self.changing_bytes
            + self.pinned.values().map(|(_, row)| row.weight() as u64).sum::<u64>()
    }
}
