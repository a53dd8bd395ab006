//! Records that are in no row any more, and are still read: a new version has come, or eight others have, or the
//! origin's resource was changed. Their segments stay until the last reader has left.
//!
//! The row that took their place owns them in the catalogue until then. So they need no sweep after a loss of
//! power: they go when the row is written again, or leaves.

use super::Node;
use crate::client::exchange::{Exchange, Source};
use crate::http::Row;
use crate::object::fetch;
use crate::object::storing::Inflow;
use crate::output::{Output, StoreOutput};
use std::collections::BTreeSet;
use std::rc::Rc;
use store::Change;
use wire::{ObjectKey, RecordId};

/// As many records may linger, at most; others go at once, and their readers break off. Each has a reader, and a
/// slow one pins its manifest, which is some 0.5 % of an object.
const LINGERING_MAX: usize = 256;

impl Node {
    /// Puts a row in place of what was under a key.
    pub(super) fn write_row(&mut self, key: ObjectKey, row: Row) {
        let named: BTreeSet<RecordId> = row.records.iter().map(|record| record.id).collect();
        self.cx.lingering.retain(|record| !named.contains(record));
        let room = LINGERING_MAX.saturating_sub(self.cx.lingering.len());
        let (known, new): (Vec<_>, Vec<_>) = self
            .read_under(&key)
            .into_iter()
            .filter(|record| !named.contains(record))
            .partition(|record| self.cx.lingering.contains(record));
        self.cx.report.lingering_refused += new.len().saturating_sub(room) as u64;
        let lingers: Vec<_> = known.into_iter().chain(new.into_iter().take(room)).collect();
        let (tickets, out) = (&mut self.cx.tickets, &mut self.cx.out);
        if self.cx.rows.put(key, Rc::new(row), &lingers, tickets, out) {
            self.cx.lingering.extend(lingers);
        }
        self.cx.dirty();
    }

    /// Removes what only the catalogue has under a key.
    pub(super) fn remove_row(&mut self, key: ObjectKey) {
        if self.read_under(&key).is_empty() {
            self.cx.dirty();
            let output = StoreOutput::Change(self.cx.tickets.draw(), vec![Change::Remove { key }]);
            self.cx.out.push_back(Output::Store(output));
        } else {
            self.write_row(key, Row::default());
        }
    }

    /// A reader has left: the record that it read goes, if that lingered for it alone.
    pub(super) fn linger_no_more(&mut self, exchange: &Exchange) {
        let Some(record) = self.reads(exchange).filter(|record| self.cx.lingering.contains(record))
        else {
            return;
        };
        if self.client.exchanges.values().any(|other| self.reads(other) == Some(record)) {
            return;
        }
        self.cx.lingering.remove(&record);
        // Those of its segments that wait to be written would come behind this.
        self.cx.segments.write(&mut self.cx.tickets, &mut self.cx.out);
        let drop = Change::DropSegments { record };
        self.cx
            .out
            .push_back(Output::Store(StoreOutput::Change(self.cx.tickets.draw(), vec![drop])));
        self.cx.dirty();
    }

    /// The closed records of an object that somebody reads.
    fn read_under(&self, key: &ObjectKey) -> BTreeSet<RecordId> {
        let of_it = self.client.exchanges.values().filter(|exchange| exchange.ask.key == *key);
        of_it.filter_map(|exchange| self.reads(exchange)).collect()
    }

    /// The closed record that somebody reads. One that still comes is in no row yet.
    fn reads(&self, exchange: &Exchange) -> Option<RecordId> {
        match exchange.source()? {
            Source::Closed(record) => Some(record.id),
            Source::Growing(fetch) => match &self.object.fetches.get(fetch)?.state {
                fetch::State::Storing(storing) => {
                    let own = matches!(storing.inflow, Inflow::Cut(_));
                    let closed = storing.whole.is_some() && (own || storing.is_reopened());
                    closed.then_some(storing.record)
                }
                _ => None,
            },
        }
    }
}
