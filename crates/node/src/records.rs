//! Records that are in no row any more, and are still read: a new version has come, or eight others have, or the
//! origin's resource was changed. Their segments stay until the last reader has left.
//!
//! The row that took their place owns them in the catalogue until then. So they need no sweep after a loss of
//! power: they go when the row is written again, or leaves.

use crate::context::Context;
use crate::exchanges::exchange::{Exchange, Source};
use crate::http::{OPEN_KEY, Record, Row};
use crate::output::{Output, StoreOutput};
use std::collections::BTreeSet;
use std::rc::Rc;
use store::Change;
use wire::{ObjectKey, RecordId};

/// As many records may linger, at most; others go at once, and their readers break off. Each has a reader, and a
/// slow one pins its manifest, which is some 0.5 % of an object.
const LINGERING_MAX: usize = 256;

impl Context {
    /// Puts a row in place of what was under a key.
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

    /// Removes what only the catalogue has under a key.
    pub fn remove_row(&mut self, key: ObjectKey) {
        if self.read_under(&key).is_empty() {
            self.dirty();
            let output = StoreOutput::Change(self.ids.draw(), vec![Change::Remove { key }]);
            self.out.push_back(Output::Store(output));
        } else {
            self.write_row(key, Row::default());
        }
    }

    /// A reader has left: the record that it read goes, if that lingered for it alone.
    pub fn linger_no_more(&mut self, exchange: &Exchange) {
        let Some(record) = self.reads(exchange).filter(|record| self.lingering.contains(record))
        else {
            return;
        };
        if self.exchanges.values().any(|other| self.reads(other) == Some(record)) {
            return;
        }
        self.lingering.remove(&record);
        // Those of its segments that wait to be written would come behind this.
        self.segments.write(&mut self.ids, &mut self.out);
        let drop = Change::DropSegments { record };
        self.out.push_back(Output::Store(StoreOutput::Change(self.ids.draw(), vec![drop])));
        self.dirty();
    }

    /// The closed records of an object that somebody reads.
    fn read_under(&self, key: &ObjectKey) -> BTreeSet<RecordId> {
        let of_it = self.exchanges.values().filter(|exchange| exchange.ask.key == *key);
        of_it.filter_map(|exchange| self.reads(exchange)).collect()
    }

    /// The closed record that somebody reads. One that still comes is in no row yet.
    fn reads(&self, exchange: &Exchange) -> Option<RecordId> {
        match exchange.source()? {
            Source::Closed(record) => Some(record.id),
            Source::Incoming(fetch) => {
                let incoming = self.transfers.get(fetch)?;
                incoming.in_row().map(|record| record.id)
            }
        }
    }

    /// Puts a record under its key, in place of those it replaces.
    pub fn put_record(&mut self, key: ObjectKey, uri: String, record: Rc<Record>) {
        let mut row = self.rows.get(&key).map(|row| Row::clone(&row)).unwrap_or_default();
        if self.config.secret == OPEN_KEY {
            row.uri = uri;
        }
        if record.clocked {
            self.clock.seen(record.received);
        }
        row.put(record);
        self.write_row(key, row);
    }

    /// Takes a record out of its row; false if there is no row here.
    pub fn forget_record(&mut self, key: ObjectKey, record: RecordId) -> bool {
        let Some(row) = self.rows.get(&key) else { return false };
        let mut rest = Row::clone(&row);
        rest.records.retain(|kept| kept.id != record);
        self.write_row(key, rest);
        true
    }

    /// The records under a key are not fresh any more.
    pub fn mark_invalid(&mut self, key: ObjectKey, row: &Row) {
        if row.records.iter().all(|record| record.invalid) {
            return;
        }
        let mut marked = row.clone();
        for record in &mut marked.records {
            Rc::make_mut(record).invalid = true;
        }
        self.write_row(key, marked);
    }
}
