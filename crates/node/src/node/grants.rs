//! How much origins may send: a little ahead of the fastest reader, and never more than memory and disk
//! can take.

use super::reach::CREDIT;
use super::{AHEAD, AHEAD_MIN, Node};
use crate::fetch::{self, Fetch, Via};
use crate::input::FetchId;
use crate::output::{OriginOutput, Output};
use crate::storing::Inflow;
use wire::peer::Message;

impl Node {
    /// Accepts so much more from an origin.
    pub(super) fn grant(&mut self, id: FetchId, bytes: u64) {
        if let Some(fetch) = self.fetches.get_mut(&id)
            && bytes > 0
        {
            let Via::Peer(peer, request) = fetch.via else {
                if fetch.awaits_rest() {
                    return;
                }
                if fetch.granted <= fetch.received {
                    // Whoever waits for it to come on waits from now on.
                    fetch.moved = self.cx.now;
                }
                fetch.granted += bytes;
                self.cx.out.push_back(Output::Origin(OriginOutput::Grant(fetch.line(id), bytes)));
                return self.watch(id);
            };
            // A message for each few bytes would cost more air than they do.
            fetch.owed += bytes;
            if fetch.owed >= u64::from(CREDIT / 4) {
                let owed = std::mem::take(&mut fetch.owed);
                fetch.granted += owed;
                let credit = u32::try_from(owed).unwrap_or(u32::MAX);
                self.cx.say(peer, Message::Credit(request, credit, 0));
            }
        }
    }

    /// Keeps the origin a little ahead of its fastest reader, as long as the disk keeps up and there
    /// is memory. A little is always granted: what others were promised may never come.
    pub(super) fn grant_ahead(&mut self, id: FetchId) {
        if self.cx.is_crowded() {
            self.ungranted = true;
            return;
        }
        let Some(fetch) = self.fetches.get(&id) else { return };
        let fetch::State::Storing(storing) = &fetch.state else { return };
        if let Inflow::Listed(_) = storing.inflow {
            return self.want_ahead(id);
        }
        if storing.parked && storing.readers.is_empty() {
            return;
        }
        let readers = storing.readers.iter();
        let positions = readers.filter_map(|reader| self.exchanges.get(reader)?.position());
        // Where the store has failed, nothing may be forgotten before the slowest has it.
        let pace = if storing.failed { positions.min() } else { positions.max() };
        let full_memory = self.cx.chunks.pinned_bytes() > self.cx.pinned_max();
        let ahead = if full_memory { AHEAD_MIN } else { AHEAD };
        self.ungranted |= full_memory;
        let target = pace.unwrap_or(fetch.received) + ahead;
        let open = target.saturating_sub(fetch.granted.max(fetch.received));
        let little = AHEAD_MIN.saturating_sub(fetch.promised());
        if open < AHEAD / 4 && (little == 0 || open < AHEAD_MIN) {
            return;
        }
        let promised: u64 = self.fetches.values().map(Fetch::promised).sum();
        let room = self.cx.pinned_max().saturating_sub(self.cx.chunks.pinned_bytes() + promised);
        // Origins come in pieces. What the last one had beyond what was granted is held against what is
        // granted next, and nothing would come if that were less.
        let beyond = fetch.received.saturating_sub(fetch.granted);
        self.grant(id, open.min(room.max(little)) + beyond);
    }

    /// What origins may send is worked out anew, whatever has happened since: nobody who waits for them says
    /// anything more by itself.
    pub(super) fn grant_anew(&mut self) {
        self.grant_each(|fetch| fetch.via == Via::Origin);
    }

    /// Goes on with transfers that waited for memory, once there is some.
    pub(super) fn grant_others(&mut self) {
        if !self.ungranted || self.cx.is_crowded() {
            return;
        }
        self.ungranted = false;
        self.grant_each(|_| true);
    }

    fn grant_each(&mut self, which: impl Fn(&Fetch) -> bool) {
        let of_these = |(id, fetch): (&FetchId, &Fetch)| which(fetch).then_some(*id);
        let mut ids: Vec<FetchId> = self.fetches.iter().filter_map(of_these).collect();
        ids.sort_unstable();
        ids.into_iter().for_each(|id| self.cx.turns.dirty(id));
    }
}
