//! What goes to the store, and what comes of it.

use super::{Node, STORE_RETRY, SYNC_AFTER};
use crate::chunks::Appended;
use crate::exchange::State;
use crate::fetch::{self, Fetch};
use crate::http::{Record, Row};
use crate::input::{FetchId, PutError, Ticket};
use crate::storing::Signed;
use bytes::Bytes;
use std::rc::Rc;
use store::{Change, Location, unit_log_bytes};
use wire::{ChunkId, Instant, ObjectKey};

/// Whether the store is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It is.
    Works,
    /// It failed, and is left alone until then.
    Failed(Instant),
    /// It failed, and is asked whether it can be written again.
    Tried,
    /// It is used again. Nothing is said to be stored before it has taken something.
    Doubted,
}

impl Trust {
    /// When it is to be tried again, if it failed.
    pub fn tried_at(self) -> Option<Instant> {
        match self {
            Self::Failed(until) => Some(until),
            Self::Works | Self::Tried | Self::Doubted => None,
        }
    }
}

impl Node {
    /// Whether the store is used at present.
    pub(super) fn store_works(&self) -> bool {
        matches!(self.trust, Trust::Works | Trust::Doubted)
    }

    /// Looks whether a store that failed can be written again.
    pub(super) fn try_store(&mut self) {
        self.trust = Trust::Tried;
        self.sync_for(Vec::new());
    }

    /// Something was written that is not durable yet.
    pub(super) fn dirty(&mut self) {
        self.sync_at.get_or_insert(self.now + SYNC_AFTER);
    }

    /// Writes units side by side: of a transfer, or such as nobody asked for.
    pub(super) fn append(&mut self, of: Option<FetchId>, mut group: Vec<(ChunkId, Bytes)>) {
        // The store keeps a segment's room free: what needs more than that might wait for ever.
        let bytes_max = self.chunks.index().segment_bytes() / 2;
        while !group.is_empty() {
            let mut sum = 0;
            let fits = group.iter().take_while(|(_, bytes)| {
                sum += unit_log_bytes(bytes.len() as u32);
                sum <= bytes_max
            });
            let rest = group.split_off(fits.count().max(1));
            self.dirty();
            let spared = self.chunks.append(of, group, &mut self.tickets, &mut self.out);
            if of.is_none() {
                self.overheard_written(spared, &[]);
            }
            group = rest;
        }
    }

    /// Units were written, or could not be.
    pub(super) fn appended(&mut self, ticket: Ticket, places: Option<Vec<Location>>) {
        let appended = self.chunks.handle_appended(ticket, places, &mut self.out);
        let Some(Appended { fetch, bytes, refused, waited, failed }) = appended else { return };
        // Of what nobody asked for there may be too much for the disk at times, and that is no failure of it.
        match (fetch, refused.is_empty()) {
            (Some(_), false) => self.store_failed(),
            (Some(_), true) if self.trust == Trust::Doubted => self.trust = Trust::Works,
            _ => {}
        }
        for other in failed {
            self.fail_storing(other, &[]);
        }
        waited.into_iter().for_each(|other| self.turns.dirty(other));
        let Some(id) = fetch else { return self.overheard_written(bytes, &refused) };
        if !refused.is_empty() {
            self.fail_storing(id, &refused);
        }
        self.turns.dirty(id);
    }

    /// The store did not take units of a transfer: it goes on without the store.
    pub(super) fn fail_storing(&mut self, id: FetchId, refused: &[ChunkId]) {
        let key = self.fetches.get(&id).map(|fetch| fetch.ask.key);
        let storing = self.fetches.get_mut(&id).and_then(Fetch::storing);
        let (Some(key), Some(storing)) = (key, storing) else {
            // The transfer is over, and its record names units that will be missed.
            refused.iter().for_each(|id| self.chunks.release(id));
            return;
        };
        storing.failed = true;
        if let Some(put) = self.published.puts.get_mut(&id) {
            put.error = PutError::Store;
        }
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
            return self.turns.end(id);
        }
        self.turns.dirty(id);
    }

    /// Readers have moved on: lets go of what none of them needs any more.
    pub(super) fn passed(&mut self, id: FetchId) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let fetch::State::Storing(storing) = &mut fetch.state else { return };
        if !storing.failed {
            return;
        }
        let readers = storing.readers.iter();
        let positions = readers.filter_map(|reader| self.exchanges.get(reader)?.position());
        let slowest = positions.min().unwrap_or(u64::MAX);
        // Nor are segments kept that nobody will be told of or read again.
        let told =
            storing.readers.iter().filter_map(|reader| match &self.exchanges.get(reader)?.state {
                State::Supplying(supplying) => Some(supplying.segment),
                _ => None,
            });
        let told = told.min().unwrap_or(u32::MAX);
        storing
            .closed
            .retain(|number, signed| *number >= told || signed.segment.end_offset() > slowest);
        while storing.unstored.front().is_some_and(|(end, _)| *end <= slowest) {
            let Some((_, unit)) = storing.unstored.pop_front() else { return };
            // Content may repeat itself.
            if !storing.unstored.iter().any(|(_, other)| *other == unit) {
                self.chunks.release(&unit);
            }
        }
    }

    /// What was written is durable, or could not be made so.
    pub(super) fn synced(&mut self, done: bool) {
        self.published_synced(done);
        self.syncing = !self.published.syncs.is_empty();
        if !done {
            self.store_failed();
        } else if self.trust == Trust::Tried {
            self.trust = Trust::Doubted;
        }
    }

    pub(super) fn store_failed(&mut self) {
        self.report.store_failures += 1;
        self.trust = Trust::Failed(self.now + STORE_RETRY);
    }

    /// Writes a segment of a manifest; until the catalogue has it, the transfer keeps it.
    pub(super) fn write_segment(&mut self, id: FetchId, signed: Signed) {
        let Some(storing) = self.fetches.get_mut(&id).and_then(Fetch::storing) else { return };
        let (number, last) = (signed.segment.number as u32, signed.segment.closing.is_some());
        let record = storing.record;
        let bytes = signed.encode();
        self.manifests.put(record, Rc::new(signed));
        if storing.failed {
            return;
        }
        let change = Change::PutSegment { record, number, bytes };
        self.segments.put((id, number), change, last, &mut self.tickets, &mut self.out);
        self.dirty();
    }

    /// The catalogue has taken changes, or could not.
    pub(super) fn changed(&mut self, ticket: Ticket, done: bool) {
        if !done {
            self.store_failed();
        }
        if let Some(segments) = self.segments.handle_changed(ticket) {
            for (id, number) in segments {
                self.segment_written(id, number, done);
            }
            return;
        }
        if !self.published_changed(ticket, done) {
            self.rows.handle_changed(ticket);
        }
    }

    fn segment_written(&mut self, id: FetchId, number: u32, done: bool) {
        if !done {
            self.fail_storing(id, &[]);
        } else if let Some(storing) = self.fetches.get_mut(&id).and_then(Fetch::storing) {
            storing.closed.remove(&number);
        }
        self.turns.dirty(id);
    }

    /// Puts a record under its key, in place of those it replaces.
    pub(super) fn put_record(&mut self, key: ObjectKey, uri: String, record: Rc<Record>) {
        let mut row = self.rows.get(&key).map(|row| Row::clone(&row)).unwrap_or_default();
        if self.config.secret == crate::http::OPEN_KEY {
            row.uri = uri;
        }
        if record.clocked {
            self.clock.seen(record.received);
        }
        row.put(record);
        self.write_row(key, row);
    }
}
