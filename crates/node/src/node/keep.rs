//! What goes to the store, and what comes of it.

use super::Node;
use crate::chunks::Appended;
use crate::client::exchange::State;
use crate::http::{Record, Row};
use crate::input::{FetchId, Ticket};
use crate::object::fetch::{self, Fetch};
use crate::trust::Trust;
use std::rc::Rc;
use store::Location;
use wire::{ChunkId, ObjectKey};

impl Node {
    /// Units were written, or could not be.
    pub(super) fn appended(&mut self, ticket: Ticket, places: Option<Vec<Location>>) {
        let appended = self.cx.chunks.handle_appended(ticket, places, &mut self.cx.out);
        let Some(Appended { fetch, bytes, refused, waited, failed }) = appended else { return };
        // Of what nobody asked for there may be too much for the disk at times, and that is no failure of it.
        match (fetch, refused.is_empty()) {
            (Some(_), false) => self.cx.store_failed(),
            (Some(_), true) if self.cx.trust == Trust::Doubted => self.cx.trust = Trust::Works,
            _ => {}
        }
        for other in failed {
            self.fail_storing(other, &[]);
        }
        waited.into_iter().for_each(|other| self.cx.turns.dirty(other));
        let Some(id) = fetch else { return self.cx.overheard_written(bytes, &refused) };
        if !refused.is_empty() {
            self.fail_storing(id, &refused);
        }
        self.cx.turns.dirty(id);
    }

    /// The store did not take units of a transfer: it goes on without the store.
    pub(super) fn fail_storing(&mut self, id: FetchId, refused: &[ChunkId]) {
        let key = self.object.fetches.get(&id).map(|fetch| fetch.ask.key);
        let storing = self.object.fetches.get_mut(&id).and_then(Fetch::storing);
        let (Some(key), Some(storing)) = (key, storing) else {
            // The transfer is over, and its record names units that will be missed.
            refused.iter().for_each(|id| self.cx.chunks.release(id));
            return;
        };
        storing.failed = true;
        self.publish.handle_refused(id);
        // Kept until every reader is past what had come by then.
        let end = storing.known_bytes();
        storing.unstored.extend(refused.iter().map(|id| (end, *id)));
        let group = storing.flush();
        storing.unstored.extend(group.into_iter().map(|(id, _)| (end, id)));
        let (whole, unread) = (storing.whole.clone(), storing.readers.is_empty());
        if let Some(record) = whole {
            self.forget_record(key, &record);
        }
        if unread {
            return self.cx.turns.end(id);
        }
        self.cx.turns.dirty(id);
    }

    /// Readers have moved on: lets go of what none of them needs any more.
    pub(super) fn passed(&mut self, id: FetchId) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let fetch::State::Storing(storing) = &mut fetch.state else { return };
        if !storing.failed {
            return;
        }
        let readers = storing.readers.iter();
        let positions = readers.filter_map(|reader| self.client.exchanges.get(reader)?.position());
        let slowest = positions.min().unwrap_or(u64::MAX);
        // Nor are segments kept that nobody will be told of or read again.
        let told = storing.readers.iter().filter_map(|reader| {
            match &self.client.exchanges.get(reader)?.state {
                State::Supplying(supplying) => Some(supplying.segment),
                _ => None,
            }
        });
        let told = told.min().unwrap_or(u32::MAX);
        storing
            .closed
            .retain(|number, signed| *number >= told || signed.segment.end_offset() > slowest);
        while storing.unstored.front().is_some_and(|(end, _)| *end <= slowest) {
            let Some((_, unit)) = storing.unstored.pop_front() else { return };
            // Content may repeat itself.
            if !storing.unstored.iter().any(|(_, other)| *other == unit) {
                self.cx.chunks.release(&unit);
            }
        }
    }

    /// The catalogue has taken changes, or could not.
    pub(super) fn changed(&mut self, ticket: Ticket, done: bool) {
        if !done {
            self.cx.store_failed();
        }
        if let Some(segments) = self.cx.segments.handle_changed(ticket) {
            for (id, number) in segments {
                self.segment_written(id, number, done);
            }
            return;
        }
        if !self.publish.handle_changed(&mut self.cx, ticket, done) {
            self.cx.rows.handle_changed(ticket);
        }
    }

    fn segment_written(&mut self, id: FetchId, number: u32, done: bool) {
        if !done {
            self.fail_storing(id, &[]);
        } else if let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) {
            storing.closed.remove(&number);
        }
        self.cx.turns.dirty(id);
    }

    /// Puts a record under its key, in place of those it replaces.
    pub(super) fn put_record(&mut self, key: ObjectKey, uri: String, record: Rc<Record>) {
        let mut row = self.cx.rows.get(&key).map(|row| Row::clone(&row)).unwrap_or_default();
        if self.cx.config.secret == crate::http::OPEN_KEY {
            row.uri = uri;
        }
        if record.clocked {
            self.cx.clock.seen(record.received);
        }
        row.put(record);
        self.write_row(key, row);
    }
}
