//! Writes objects to the store, and handles the results.

use super::{Objects, Value};
use crate::chunks::Appended;
use crate::context::Context;
use crate::events::Stale;
use crate::http::Record;
use crate::input::{FetchId, Ticket};
use crate::trust::Trust;
use store::Location;
use wire::{ChunkId, ObjectKey};

impl Objects {
    /// Units have been written, or the store has refused them.
    pub fn appended(&mut self, cx: &mut Context, ticket: Ticket, places: Option<Vec<Location>>) {
        let appended = cx.chunks.handle_appended(ticket, places, &mut cx.out);
        let Some(Appended { fetch, bytes, refused, waited, failed }) = appended else {
            return cx.events.stale(Stale::Written);
        };
        // Overheard units may exceed what the disk can take; that is no failure of the disk.
        match (fetch, refused.is_empty()) {
            (Some(_), false) => cx.store_failed(),
            (Some(_), true) if cx.trust == Trust::Doubted => {
                cx.trust.turn(Trust::Works, &mut cx.events);
            }
            _ => {}
        }
        for other in failed {
            self.fail_storing(cx, other, &[]);
        }
        waited.into_iter().for_each(|other| cx.turns.dirty(other));
        let Some(id) = fetch else { return cx.overheard_written(bytes, &refused) };
        if !refused.is_empty() {
            self.fail_storing(cx, id, &refused);
        }
        cx.turns.dirty(id);
    }

    /// The store did not take units of a transfer: it continues in memory only.
    pub fn fail_storing(&mut self, cx: &mut Context, id: FetchId, refused: &[ChunkId]) {
        let Some(incoming) = cx.transfers.get_mut(&id) else {
            // The transfer has ended, and its record names units that are missing.
            refused.iter().for_each(|id| cx.chunks.release(id));
            return;
        };
        incoming.memory_only = true;
        self.says(Value::Refused(id));
        // Units stay in memory until every reader is past the bytes that had arrived by then.
        let end = incoming.known_bytes();
        incoming.unstored.extend(refused.iter().map(|id| (end, *id)));
        let group = incoming.flush();
        incoming.unstored.extend(group.into_iter().map(|(id, _)| (end, id)));
        let (whole, unread) = (incoming.whole().cloned(), incoming.readers.is_empty());
        if let Some((record, label)) = whole.zip(incoming.label.clone()) {
            self.forget_record(cx, label.key, &record);
        }
        if unread {
            return cx.turns.end(id);
        }
        cx.turns.dirty(id);
    }

    /// The catalogue has made changes, or failed to; false if they belong to no object under way.
    pub fn handle_changed(&mut self, cx: &mut Context, ticket: Ticket, done: bool) -> bool {
        let Some(segments) = cx.segments.handle_changed(ticket) else { return false };
        for (id, number) in segments {
            self.segment_written(cx, id, number, done);
        }
        true
    }

    fn segment_written(&mut self, cx: &mut Context, id: FetchId, number: u32, done: bool) {
        if !done {
            self.fail_storing(cx, id, &[]);
        } else if let Some(incoming) = cx.transfers.get_mut(&id) {
            incoming.closed.remove(&number);
        }
        cx.turns.dirty(id);
    }

    /// Takes a record out of its row.
    fn forget_record(&mut self, cx: &mut Context, key: ObjectKey, record: &Record) {
        if cx.forget_record(key, record.id) {
            self.says(Value::Forgotten(record.id));
        }
    }
}
