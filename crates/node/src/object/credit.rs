//! How much origins may send: a little ahead of the fastest reader, and never more than memory and disk
//! can take.

use super::{AHEAD, Objects, Value};
use crate::context::Context;
use crate::input::FetchId;
use crate::pursuits::Pursuit;
use crate::request::AHEAD_MIN;
use crate::transfers::incoming::Incoming;
use crate::transfers::transfer::Transfer;

impl Objects {
    /// Accepts so much more from an origin.
    pub fn grant(&mut self, cx: &mut Context, id: FetchId, bytes: u64) {
        if bytes > 0 {
            let waits = cx.transfers.get(&id).is_none_or(|it| it.granted <= it.received_bytes);
            self.says(Value::Grant(id, bytes, waits));
        }
    }

    /// The origin was told of so much.
    pub fn handle_granted(&mut self, cx: &mut Context, id: FetchId, bytes: u64) {
        let Some(incoming) = cx.transfers.get_mut(&id).filter(|_| bytes > 0) else { return };
        incoming.granted += bytes;
        if cx.pursuits.get(&id).and_then(Pursuit::peer).is_none() {
            self.watch(cx, id);
        }
    }

    /// A body has broken off: what its origin was granted does not come.
    pub fn handle_broken_off(&mut self, cx: &mut Context, id: FetchId) {
        if let Some(incoming) = cx.transfers.get_mut(&id) {
            incoming.granted = incoming.received_bytes;
        }
    }

    /// Keeps the origin a little ahead of its fastest reader, as long as the disk keeps up and there
    /// is memory. A little is always granted: what others were promised may never come.
    pub fn grant_ahead(&mut self, cx: &mut Context, id: FetchId) {
        if cx.is_crowded() {
            self.ungranted = true;
            return;
        }
        let Some(incoming) = cx.transfers.get(&id) else { return };
        match &incoming.transfer {
            Transfer::Listing(_) | Transfer::Filling(_) => return self.want_ahead(cx, id),
            Transfer::Cutting(cutting) if cutting.awaits_resume && incoming.readers.is_empty() => {
                return;
            }
            Transfer::Cutting(_) | Transfer::Closed(_) => {}
        }
        let readers = incoming.readers.iter();
        let positions = readers.filter_map(|reader| cx.exchanges.get(&reader.id)?.position());
        // Where the store has failed, nothing may be forgotten before the slowest has it.
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
        // Origins come in pieces. What the last one had beyond what was granted is held against what is
        // granted next, and nothing would come if that were less.
        let beyond = incoming.received_bytes.saturating_sub(incoming.granted);
        self.grant(cx, id, open.min(room.max(little)) + beyond);
    }

    /// What origins may send is worked out anew, whatever has happened since: nobody who waits for them says
    /// anything more by itself.
    pub fn grant_anew(&mut self, cx: &mut Context) {
        let pursuits = &cx.pursuits;
        let ids = pursuits.keys().filter(|id| pursuits.is_at_origin(**id));
        ids.for_each(|id| cx.turns.dirty(*id));
    }

    /// Goes on with transfers that waited for memory, once there is some.
    pub fn grant_others(&mut self, cx: &mut Context) {
        if !self.ungranted || cx.is_crowded() {
            return;
        }
        self.ungranted = false;
        cx.transfers.keys().for_each(|id| cx.turns.dirty(*id));
    }
}
