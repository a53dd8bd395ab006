//! Units of published objects, which are protected from eviction (*kept*).
//!
//! *Who calls it:* `held.rs`, and the machine `publish`. *What it never does:* count a unit as kept
//! before the disk has written it, or has read it correctly.

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
    /// Adds a unit that will be kept, as [`Chunks::enter`] does; true if it must be written. It counts
    /// as held only once the disk has written it or has read it correctly. If another transfer is
    /// writing it, this transfer waits for that write.
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

    /// Whether a unit of a transfer need not be written: it has been written since it entered. A
    /// transfer that keeps its units also relies on a write that is still under way, and learns its
    /// result.
    pub(super) fn is_spared(&self, fetch: Option<FetchId>, id: &ChunkId) -> bool {
        match fetch.and_then(|fetch| self.keeping.get(&fetch)) {
            Some(waiting) => !waiting.contains(id) || self.is_being_written(id),
            None => !self.pinned.contains_key(id) && self.holds_on_disk(id),
        }
    }

    /// From now on the units of this transfer are kept.
    pub fn keep_for(&mut self, fetch: FetchId) {
        self.keeping.insert(fetch, Set::default());
    }

    /// A transfer whose units are kept has ended.
    pub fn keep_for_nobody(&mut self, fetch: FetchId) {
        self.keeping.remove(&fetch);
    }

    /// Protects a unit from eviction; false if it is not on disk.
    pub fn keep(&mut self, id: &ChunkId) -> bool {
        !self.absent.contains(id) && self.index.keep(id)
    }

    /// Ends the protection of all units: they may be evicted like any other.
    pub fn keep_nothing(&mut self) {
        self.index.keep_nothing();
    }

    /// Sets whether reclaiming is suspended.
    pub fn reclaim_nothing(&mut self, spares: bool) {
        self.spares = spares;
    }

    /// A unit is on disk. Returns the transfers that waited for it and keep their units; the unit is
    /// protected if there are any.
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
