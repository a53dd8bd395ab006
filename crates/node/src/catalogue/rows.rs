//! The cache of the catalogue's rows in memory, so that a popular object needs no look-up on disk.

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
    /// Rows that the catalogue has not written yet, with the ticket of the latest change.
    pinned: Map<ObjectKey, (Ticket, Rc<Row>)>,
    /// Changes that the catalogue has not confirmed yet: the row's key and its length in bytes; 0 if it is removed.
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
    /// An empty cache of at most this many bytes. As many bytes of changes may wait for the catalogue.
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

    /// A row, if it is in memory.
    pub fn get(&self, key: &ObjectKey) -> Option<Rc<Row>> {
        self.pinned.get(key).map(|(_, row)| row).or_else(|| self.cache.get(key)).cloned()
    }

    /// Looks a row up in the catalogue for an exchange. Several exchanges share one look-up.
    pub fn look_up(&mut self, key: ObjectKey, waiter: ExchangeId, out: &mut VecDeque<Output>) {
        let waiters = self.waiting.entry(key).or_default();
        if waiters.is_empty() {
            out.push_back(Output::Store(StoreOutput::Lookup(key)));
        }
        waiters.push(waiter);
    }

    /// The catalogue has answered. Returns the exchanges that waited, and the row, which is empty if
    /// there is none.
    pub fn handle_row(
        &mut self,
        key: ObjectKey,
        bytes: Option<&[u8]>,
    ) -> (Vec<ExchangeId>, Rc<Row>) {
        // A row that was put meanwhile is newer than the one that was read.
        let row = self.get(&key).unwrap_or_else(|| {
            // A row that cannot be decoded counts as absent; the next response replaces it.
            let row = Rc::new(bytes.and_then(Row::decode).unwrap_or_default());
            self.cache.insert(key, Rc::clone(&row));
            row
        });
        (self.waiting.remove(&key).unwrap_or_default(), row)
    }

    /// Whether a look-up of this row is pending.
    pub fn is_awaited(&self, key: &ObjectKey) -> bool {
        self.waiting.contains_key(key)
    }

    /// Replaces a row, in memory and in the catalogue. There the row also owns the segments of the
    /// `lingering` records. False if too many changes are pending: the row is then replaced only in
    /// memory. If it is lost there, its object is requested again.
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
        // Not evicted until the catalogue has it: a lookup there would find the old row.
        self.pinned.insert(key, (ticket, row));
        true
    }

    /// Removes a row, in memory and in the catalogue. Until the catalogue has done so, it is empty here: a look-up there
    /// may still find it.
    pub fn remove(&mut self, key: ObjectKey, ids: &mut Ids, out: &mut VecDeque<Output>) {
        let ticket = ids.draw();
        out.push_back(Output::Store(StoreOutput::Change(ticket, vec![Change::Remove { key }])));
        self.cache.remove(&key);
        self.changes.insert(ticket, (key, 0));
        self.pinned.insert(key, (ticket, Rc::default()));
    }

    /// Caches a row that was written to the catalogue by another change.
    pub fn learn(&mut self, key: ObjectKey, row: Rc<Row>) {
        self.unlearn(&key);
        self.cache.insert(key, row);
    }

    /// Forgets a row that is being removed from the catalogue.
    pub fn unlearn(&mut self, key: &ObjectKey) {
        self.pinned.remove(key);
        self.cache.remove(key);
    }

    /// The catalogue has written a row, or failed to; false if the ticket is not of a row.
    pub fn handle_changed(&mut self, ticket: Ticket) -> bool {
        let Some((key, bytes)) = self.changes.remove(&ticket) else { return false };
        self.changing_bytes -= bytes;
        if self.pinned.get(&key).is_some_and(|(latest, _)| *latest == ticket)
            && let Some((_, row)) = self.pinned.remove(&key)
        {
            // One that was removed is only of use to look-ups that began before.
            if bytes > 0 || self.is_awaited(&key) {
                self.cache.insert(key, row);
            }
        }
        true
    }

    /// Forgets all rows that the catalogue has: their ages may be wrong, because the clock was set.
    pub fn forget(&mut self) {
        self.cache.clear();
    }

    /// The approximate memory of the cache and of pending changes, in bytes.
    pub fn bytes(&self) -> u64 {
        self.cache.weight()
            + self.changing_bytes
            + self.pinned.values().map(|(_, row)| row.weight() as u64).sum::<u64>()
    }
}
