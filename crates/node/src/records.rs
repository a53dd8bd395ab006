//! Lingering records: in no row any more, but still read. A row has room for eight records, a new
//! version may have arrived, or the origin's resource was changed. Their segments stay until the
//! last reader has left.
//!
//! Until then the row that replaced them owns them in the catalogue. So no sweep is needed after a
//! loss of power: they are removed when that row is next written or evicted.

use crate::context::Context;
use crate::exchanges::exchange::{Exchange, Source};
use crate::http::{OPEN_KEY, Record, Row};
use crate::output::{Output, StoreOutput};
use crate::stock::name_of;
use std::collections::BTreeSet;
use std::rc::Rc;
use store::Change;
use wire::{ObjectKey, RecordId};

/// At most this many records may linger; further ones are removed at once, and their readers break
/// off. Each has a reader, and a slow reader pins a manifest, some 0.5 % of its object.
const LINGERING_MAX: usize = 256;

impl Context {
    /// Replaces the row under a key.
    pub fn write_row(&mut self, key: ObjectKey, row: Row) {
        let named: BTreeSet<RecordId> = row.records.iter().map(|record| record.id).collect();
        self.lingering.retain(|record| !named.contains(record));
        let room = LINGERING_MAX.saturating_sub(self.lingering.len());
        let (known, new): (Vec<_>, Vec<_>) = self
            .read_under(&key)
            .into_iter()
            .filter(|record| !named.contains(record))
            .partition(|record| self.lingering.contains(record));
        self.report.lingering_refused += new.len().saturating_sub(room) as u64;
        let lingers: Vec<_> = known.into_iter().chain(new.into_iter().take(room)).collect();
        let (ids, out) = (&mut self.ids, &mut self.out);
        if self.rows.put(key, Rc::new(row), &lingers, ids, out) {
            self.lingering.extend(lingers);
        }
        self.dirty();
    }

    /// Removes a row, in memory and in the catalogue.
    pub fn remove_row(&mut self, key: ObjectKey) {
        if self.read_under(&key).is_empty() {
            self.dirty();
            self.rows.remove(key, &mut self.ids, &mut self.out);
        } else {
            self.write_row(key, Row::default());
        }
    }

    /// A reader has left: if its record lingered only for it, the record is removed.
    pub fn linger_no_more(&mut self, exchange: &Exchange) {
        let Some(record) = self.reads(exchange).filter(|record| self.lingering.contains(record))
        else {
            return;
        };
        if self.exchanges.values().any(|other| self.reads(other) == Some(record)) {
            return;
        }
        self.lingering.remove(&record);
        // Its segments waiting to be written go first, or they would be written after the removal.
        self.segments.write(&mut self.ids, &mut self.out);
        let drop = Change::DropSegments { record };
        self.out.push_back(Output::Store(StoreOutput::Change(self.ids.draw(), vec![drop])));
        self.dirty();
    }

    /// The stored records of an object that exchanges read.
    fn read_under(&self, key: &ObjectKey) -> BTreeSet<RecordId> {
        let of_it = self.exchanges.values().filter(|exchange| exchange.ask.key == *key);
        of_it.filter_map(|exchange| self.reads(exchange)).collect()
    }

    /// The stored record that an exchange reads. An object under way is in no row yet.
    fn reads(&self, exchange: &Exchange) -> Option<RecordId> {
        match exchange.source()? {
            Source::Closed(record) => Some(record.id),
            Source::Incoming(fetch) => {
                let incoming = self.transfers.get(fetch)?;
                incoming.in_row().map(|record| record.id)
            }
        }
    }

    /// Stores a record under its key. It replaces the ones that it supersedes.
    pub fn put_record(&mut self, key: ObjectKey, uri: String, record: Rc<Record>) {
        let mut row = self.rows.get(&key).map(|row| Row::clone(&row)).unwrap_or_default();
        if self.config.secret == OPEN_KEY {
            row.uri = uri;
        }
        if record.clocked {
            self.clock.seen(record.received);
        }
        let (date, first) = (self.date(), self.manifests.get(record.id, 0));
        if let Some(mesh) = &mut self.mesh {
            let first = first.and_then(|it| it.entries.first().map(|entry| entry.id));
            mesh.stock_up(&key, &record, first, (date, self.now));
        }
        row.put(record);
        self.write_row(key, row);
    }

    /// Removes a record from its row; false if the row is not in memory.
    pub fn forget_record(&mut self, key: ObjectKey, record: RecordId) -> bool {
        let Some(row) = self.rows.get(&key) else { return false };
        if let Some(mesh) = &mut self.mesh {
            mesh.stock.remove(&name_of(&key));
        }
        let mut rest = Row::clone(&row);
        rest.records.retain(|kept| kept.id != record);
        self.write_row(key, rest);
        true
    }

    /// What is stored under a key is not fresh any more. Returns what was there, if that is in memory; a row that is only
    /// in the catalogue is removed without reading it.
    pub fn invalidate(&mut self, key: ObjectKey) -> Option<Rc<Row>> {
        let Some(row) = self.rows.get(&key) else {
            self.remove_row(key);
            return None;
        };
        if row.records.iter().any(|record| !record.invalid) {
            let mut marked = Row::clone(&row);
            for record in &mut marked.records {
                Rc::make_mut(record).invalid = true;
            }
            self.write_row(key, marked);
        }
        Some(row)
    }
}
