//! Units that are to be kept, because something is published with them.
//!
//! *Who calls it:* `held.rs`, and the node, which knows what is published. *What it never does:* count a
//! unit as kept that the disk has not shown or written.

use super::{Chunks, Group};
use crate::hasher::Set;
use crate::ids::Ids;
use crate::input::FetchId;
use crate::output::Output;
use bytes::Bytes;
use std::collections::VecDeque;
use store::Provenance;
use wire::ChunkId;

impl Chunks {
    /// Takes in a unit that is to be kept, as [`Chunks::enter`] does: only what the disk has shown, or has
    /// written, counts as held. What is being written for another transfer is waited for.
    pub(super) fn enter_kept(
        &mut self,
        fetch: FetchId,
        id: ChunkId,
        bytes: &Bytes,
        ids: &mut Ids,
        out: &mut VecDeque<Output>,
    ) -> bool {
        let waiting = self.keeping.get_mut(&fetch).is_some_and(|waiting| !waiting.insert(id));
        if waiting {
            return false;
        }
        match self.pinned.get_mut(&id) {
            Some(pinned) => pinned.provenance = Provenance::Put,
            None => self.pin(id, bytes.clone(), Provenance::Put),
        }
        let comes = self.is_being_written(&id)
            || (self.holds_on_disk(&id) && self.doubt(fetch, id, ids, out));
        !comes
    }

    fn is_being_written(&self, id: &ChunkId) -> bool {
        let writes = |group: &Group| group.units.iter().any(|(unit, ..)| unit == id);
        self.appends.values().any(writes)
    }

    /// Whether a unit that a transfer has collected need not be written any more: it was since, or is being, for
    /// another. Who keeps it goes by what is certain, and is told what becomes of it.
    pub(super) fn is_spared(&self, fetch: Option<FetchId>, id: &ChunkId) -> bool {
        match fetch.and_then(|fetch| self.keeping.get(&fetch)) {
            Some(waiting) => !waiting.contains(id) || self.is_being_written(id),
            None => !self.pinned.contains_key(id) && self.holds_on_disk(id),
        }
    }

    /// The units of a transfer are to be kept from now on.
    pub fn keep_for(&mut self, fetch: FetchId) {
        self.keeping.insert(fetch, Set::default());
    }

    /// That transfer is over.
    pub fn keep_for_nobody(&mut self, fetch: FetchId) {
        self.keeping.remove(&fetch);
    }

    /// A unit is to be kept; false if it is not held.
    pub fn keep(&mut self, id: &ChunkId) -> bool {
        !self.absent.contains(id) && self.index.keep(id)
    }

    /// What was kept may leave like everything else.
    pub fn keep_nothing(&mut self) {
        self.index.keep_nothing();
    }

    /// Whether room is to be made only later.
    pub fn reclaim_nothing(&mut self, spares: bool) {
        self.spares = spares;
    }

    /// A unit is on disk, for whomever it was written or found: answers which transfers that keep it waited.
    pub(super) fn written(&mut self, id: &ChunkId) -> Vec<FetchId> {
        let waits =
            |(fetch, waiting): (&FetchId, &mut Set<ChunkId>)| waiting.remove(id).then_some(*fetch);
        let waited: Vec<FetchId> = self.keeping.iter_mut().filter_map(waits).collect();
        if !waited.is_empty() {
            self.index.keep(id);
        }
        waited
    }
}
