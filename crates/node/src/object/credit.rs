//! Credit for origins: each may be a little ahead of its fastest reader, and never further than
//! memory and disk allow.

use super::{AHEAD, Objects, Value};
use crate::context::Context;
use crate::input::FetchId;
use crate::pursuits::Pursuit;
use crate::request::AHEAD_MIN;
use crate::transfers::incoming::Incoming;
use crate::transfers::transfer::Transfer;

impl Objects {
    /// Lets the upstream send this many more bytes.
    pub fn grant(&mut self, cx: &mut Context, id: FetchId, bytes: u64) {
        if bytes > 0 {
            let waits = cx.transfers.get(&id).is_none_or(|it| it.granted <= it.received_bytes);
            self.says(Value::Grant(id, bytes, waits));
        }
    }

    /// The upstream was granted this many more bytes.
    pub fn handle_granted(&mut self, cx: &mut Context, id: FetchId, bytes: u64) {
        let Some(incoming) = cx.transfers.get_mut(&id).filter(|_| bytes > 0) else { return };
        incoming.granted += bytes;
        if cx.pursuits.get(&id).and_then(Pursuit::peer).is_none() {
            self.watch(cx, id);
        }
    }

    /// A body has broken off: the bytes still granted to its origin will not come.
    pub fn handle_broken_off(&mut self, cx: &mut Context, id: FetchId) {
        if let Some(incoming) = cx.transfers.get_mut(&id) {
            incoming.granted = incoming.received_bytes;
        }
    }

    /// Keeps an origin a little ahead of its fastest reader, as long as the disk keeps up and
    /// memory is free. A minimum is always granted, because credit given to other origins may never
    /// be used.
    pub fn grant_ahead(&mut self, cx: &mut Context, id: FetchId) {
        if cx.is_crowded() {
            self.ungranted = true;
            return;
        }
        let Some(incoming) = cx.transfers.get(&id) else { return };
        match &incoming.transfer {
            Transfer::Listing(_) | Transfer::Filling(_) => return self.want_ahead(cx, id),
            // No reader is left: no credit until one returns.
            Transfer::Cutting(cutting) if cutting.awaits_resume && incoming.readers.is_empty() => {
                return;
            }
            Transfer::Cutting(_) | Transfer::Closed(_) => {}
        }
        let readers = incoming.readers.iter();
        let positions = readers.filter_map(|reader| cx.exchanges.get(&reader.id)?.position());
        // If the store has failed, bytes must stay in memory until the slowest reader has them.
        let pace = if incoming.memory_only { positions.min() } else { positions.max() };
        let full_memory = cx.chunks.pinned_bytes() > cx.pinned_max();
        let ahead = if full_memory { AHEAD_MIN } else { AHEAD };
        self.ungranted |= full_memory;
        let target = pace.unwrap_or(incoming.received_bytes) + ahead;
        let open = target.saturating_sub(incoming.granted.max(incoming.received_bytes));
        let little = AHEAD_MIN.saturating_sub(incoming.promised());
        if open < AHEAD / 4 && (little == 0 || open < AHEAD_MIN) {
            return;
        }
        let promised: u64 = cx.transfers.values().map(Incoming::promised).sum();
        let room = cx.pinned_max().saturating_sub(cx.chunks.pinned_bytes() + promised);
        // Origins send in whole pieces, so the last one may exceed the credit. The excess is added
        // here: it is deducted from this grant, which otherwise might let nothing through.
        let beyond = incoming.received_bytes.saturating_sub(incoming.granted);
        self.grant(cx, id, open.min(room.max(little)) + beyond);
    }

    /// Computes the credit of all origins again, because transfers that wait for credit do not ask for it
    /// themselves.
    pub fn grant_anew(&mut self, cx: &mut Context) {
        let pursuits = &cx.pursuits;
        let ids = pursuits.keys().filter(|id| pursuits.is_at_origin(**id));
        ids.for_each(|id| cx.turns.dirty(*id));
    }

    /// Continues transfers that waited for memory, once some is free.
    pub fn grant_others(&mut self, cx: &mut Context) {
        if !self.ungranted || cx.is_crowded() {
            return;
        }
        self.ungranted = false;
        cx.transfers.keys().for_each(|id| cx.turns.dirty(*id));
    }
}
