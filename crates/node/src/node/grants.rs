//! How much origins may send: a little ahead of the fastest reader, and never more than memory and disk
//! can take.

use super::{AHEAD, AHEAD_MIN, Node};
use crate::input::FetchId;
use crate::object::fetch::{self, Fetch};
use crate::object::storing::Inflow;
use crate::source::{Pursuit, Source};

impl Node {
    /// Accepts so much more from an origin.
    pub(super) fn grant(&mut self, id: FetchId, bytes: u64) {
        let Some(fetch) = self.object.fetches.get_mut(&id).filter(|_| bytes > 0) else { return };
        let waits = fetch.granted <= fetch.received;
        let told = self.source.grant(&mut self.cx, id, bytes, waits);
        fetch.granted += told;
        if told > 0 && self.source.get(id).and_then(Pursuit::peer).is_none() {
            self.watch(id);
        }
    }

    /// Keeps the origin a little ahead of its fastest reader, as long as the disk keeps up and there
    /// is memory. A little is always granted: what others were promised may never come.
    pub(super) fn grant_ahead(&mut self, id: FetchId) {
        if self.cx.is_crowded() {
            self.object.ungranted = true;
            return;
        }
        let Some(fetch) = self.object.fetches.get(&id) else { return };
        let fetch::State::Storing(storing) = &fetch.state else { return };
        if let Inflow::Listed(_) = storing.inflow {
            return self.want_ahead(id);
        }
        if storing.parked && storing.readers.is_empty() {
            return;
        }
        let readers = storing.readers.iter();
        let positions = readers.filter_map(|reader| self.client.exchanges.get(reader)?.position());
        // Where the store has failed, nothing may be forgotten before the slowest has it.
        let pace = if storing.failed { positions.min() } else { positions.max() };
        let full_memory = self.cx.chunks.pinned_bytes() > self.cx.pinned_max();
        let ahead = if full_memory { AHEAD_MIN } else { AHEAD };
        self.object.ungranted |= full_memory;
        let target = pace.unwrap_or(fetch.received) + ahead;
        let open = target.saturating_sub(fetch.granted.max(fetch.received));
        let little = AHEAD_MIN.saturating_sub(fetch.promised());
        if open < AHEAD / 4 && (little == 0 || open < AHEAD_MIN) {
            return;
        }
        let promised: u64 = self.object.fetches.values().map(Fetch::promised).sum();
        let room = self.cx.pinned_max().saturating_sub(self.cx.chunks.pinned_bytes() + promised);
        // Origins come in pieces. What the last one had beyond what was granted is held against what is
        // granted next, and nothing would come if that were less.
        let beyond = fetch.received.saturating_sub(fetch.granted);
        self.grant(id, open.min(room.max(little)) + beyond);
    }

    /// What origins may send is worked out anew, whatever has happened since: nobody who waits for them says
    /// anything more by itself.
    pub(super) fn grant_anew(&mut self) {
        self.grant_each(|source, id| source.is_at_origin(id));
    }

    /// Goes on with transfers that waited for memory, once there is some.
    pub(super) fn grant_others(&mut self) {
        if !self.object.ungranted || self.cx.is_crowded() {
            return;
        }
        self.object.ungranted = false;
        self.grant_each(|_, _| true);
    }

    fn grant_each(&mut self, which: impl Fn(&Source, FetchId) -> bool) {
        let ids = self.object.fetches.keys().filter(|id| which(&self.source, **id));
        ids.for_each(|id| self.cx.turns.dirty(*id));
    }
}
