//! All units that are held in memory or on disk, being read, or waiting to be written. Units enter and
//! leave the node's store only through here.
//!
//! Units enter under their names, and units read from the disk are hashed again before a reader gets them.
//!
//! Cost of a unit of 8 KiB: 2 µs to hash, and one look-up in the index. Memory is bounded by the
//! cache's budget plus the units that are pinned until the disk has them.

mod kept;

use crate::hasher::{Cache, Map, Set, cache};
use crate::ids::Ids;
use crate::input::{ExchangeId, FetchId, Ticket};
use crate::output::{Output, StoreOutput};
use bytes::Bytes;
use quick_cache::Weighter;
use std::collections::VecDeque;
use store::{Entry, Index, Location, Provenance, SegmentId, Unit};
use wire::ChunkId;

/// The most units in the set of those missing from where the index has them; a full set is cleared.
const ABSENT_MAX: usize = 4096;

/// Units by name, in memory and on disk.
pub struct Chunks {
    index: Index,
    hot: Cache<ChunkId, Bytes, ByLength>,
    /// Units that the disk does not have yet, or failed to write.
    pinned: Map<ChunkId, Pinned>,
    pinned_bytes: u64,
    appends: Map<Ticket, Group>,
    reads: Map<Ticket, Run>,
    /// Units that the index seems to have. They stay pinned until a read confirms it.
    doubts: Map<Ticket, Doubt>,
    /// The read in which each unit is pending, so that none is read twice.
    reading: Map<ChunkId, Ticket>,
    absent: Set<ChunkId>,
    /// Transfers whose units will be protected from eviction, and those of their units that the disk
    /// does not have yet.
    keeping: Map<FetchId, Set<ChunkId>>,
    reclaiming: Option<SegmentId>,
    /// True while no segment may be reclaimed.
    spares: bool,
    counts: Counts,
}

/// Counts of what happened to units.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub cut: u64,
    pub known: u64,
    pub known_bytes: u64,
    pub bad: u64,
}

/// A unit that may be in memory only.
struct Pinned {
    bytes: Bytes,
    provenance: Provenance,
    /// The unit was sent to a peer.
    given: bool,
    /// A reader has read the unit, or a transfer has received it too.
    read: bool,
}

/// Units that are being written together.
struct Group {
    /// The transfer to which they belong; `None` if no transfer requested them.
    fetch: Option<FetchId>,
    /// They are evicted after all others.
    lasting: bool,
    units: Vec<(ChunkId, u32, Provenance)>,
}

/// The result of a write of units.
pub struct Appended {
    /// The transfer to which the units belong; `None` if no transfer requested them.
    pub fetch: Option<FetchId>,
    /// The units' length together, in bytes.
    pub bytes: u64,
    /// Units that were not written: only memory has them.
    pub refused: Vec<ChunkId>,
    /// Other transfers that waited for units that are now written.
    pub waited: Vec<FetchId>,
    /// Other transfers that waited for units that were not written.
    pub failed: Vec<FetchId>,
}

/// A unit of a transfer that may already be on disk; a read checks it.
struct Doubt {
    fetch: FetchId,
    id: ChunkId,
    at: Location,
}

/// Adjacent units that are being read, and the exchanges that wait for them.
struct Run {
    units: Vec<(ChunkId, Location, u32)>,
    /// Whether the units' lengths come from a manifest, not only from a peer.
    listed: bool,
    waiters: Vec<ExchangeId>,
}

/// The result of a read of units.
pub struct Arrived {
    /// The exchanges that waited.
    pub waiters: Vec<ExchangeId>,
    /// The units that match their names, in order.
    pub units: Vec<(ChunkId, Bytes)>,
    /// A unit that could not be read, and its length, which only a peer has given.
    pub unread: Option<(ChunkId, u32)>,
}

#[derive(Clone, Copy, Default)]
struct ByLength;

impl Weighter<ChunkId, Bytes> for ByLength {
    fn weight(&self, _: &ChunkId, bytes: &Bytes) -> u64 {
        bytes.len() as u64 + 128
    }
}

impl Chunks {
    /// Begins with the store's index, and with a cache of `hot_bytes` for units in memory.
    pub fn new(index: Index, hot_bytes: u64) -> Self {
        let items = (hot_bytes / 8192).max(16) as usize;
        Self {
            index,
            hot: cache(items, hot_bytes, ByLength),
            pinned: Map::default(),
            pinned_bytes: 0,
            appends: Map::default(),
            reads: Map::default(),
            doubts: Map::default(),
            reading: Map::default(),
            absent: Set::default(),
            keeping: Map::default(),
            reclaiming: None,
            spares: false,
            counts: Counts::default(),
        }
    }

    /// A unit, if it is in memory.
    pub fn get(&mut self, id: &ChunkId) -> Option<Bytes> {
        if let Some(pinned) = self.pinned.get_mut(id) {
            // The index does not have it yet.
            pinned.read = true;
            return Some(pinned.bytes.clone());
        }
        let bytes = self.hot.get(id).cloned();
        if bytes.is_some() {
            self.index.touch(id);
        }
        bytes
    }

    /// A unit for a peer, if it is in memory. A unit that waits to be written does not stay in memory
    /// afterwards: on a relay, another request for it is unlikely soon. The next request reads the unit
    /// from the disk, which puts it in memory again.
    pub fn give(&mut self, id: &ChunkId) -> Option<Bytes> {
        if let Some(pinned) = self.pinned.get_mut(id) {
            pinned.given = true;
        }
        self.get(id)
    }

    /// Whether a unit seems to be held, in memory or on disk.
    pub fn holds(&self, id: &ChunkId) -> bool {
        self.pinned.contains_key(id) || self.holds_on_disk(id)
    }

    fn holds_on_disk(&self, id: &ChunkId) -> bool {
        self.index.holds(id) && !self.absent.contains(id)
    }

    /// A unit's provenance, if it is held.
    pub fn provenance(&self, id: &ChunkId) -> Option<Provenance> {
        let pinned = self.pinned.get(id).map(|pinned| pinned.provenance);
        pinned.or_else(|| self.index.provenance(id))
    }

    /// Whether a unit is pinned in memory, because the disk may not have it.
    pub fn is_pinned(&self, id: &ChunkId) -> bool {
        self.pinned.contains_key(id)
    }

    /// Whether units are being written, or checked on disk.
    pub fn is_writing(&self) -> bool {
        !self.appends.is_empty() || !self.doubts.is_empty()
    }

    /// Whether units of a transfer are being written, or checked on disk.
    pub fn is_writing_for(&self, fetch: FetchId) -> bool {
        self.keeping.get(&fetch).is_some_and(|waiting| !waiting.is_empty())
            || self.appends.values().any(|group| group.fetch == Some(fetch))
            || self.doubts.values().any(|doubt| doubt.fetch == fetch)
    }

    /// Adds a unit of a transfer; true if it must be written.
    ///
    /// The index may be wrong: the place may hold another unit, or none. So if the index has the unit,
    /// it stays in memory until a read confirms it.
    pub fn enter(
        &mut self,
        fetch: FetchId,
        (id, bytes): (ChunkId, &Bytes),
        provenance: Provenance,
        ids: &mut Ids,
        out: &mut VecDeque<Output>,
    ) -> bool {
        self.counts.cut += 1;
        if self.keeping.contains_key(&fetch) {
            return self.enter_kept(fetch, id, bytes, ids, out);
        }
        if let Some(pinned) = self.pinned.get_mut(&id) {
            // The unit may wait to be written as one that no transfer requested.
            pinned.read = true;
            return false;
        }
        let held = self.holds(&id);
        if held && self.hot.get(&id).is_some() {
            self.know(&id, bytes.len());
            return false;
        }
        self.pin(id, bytes.clone(), provenance);
        !(held && self.doubt(fetch, id, ids, out))
    }

    /// Pins a unit that is not held in memory, until it is written.
    pub fn pin(&mut self, id: ChunkId, bytes: Bytes, provenance: Provenance) {
        self.pinned_bytes += bytes.len() as u64;
        self.pinned.insert(id, Pinned { bytes, provenance, given: false, read: false });
    }

    fn know(&mut self, id: &ChunkId, length: usize) {
        self.index.touch(id);
        self.counts.known += 1;
        self.counts.known_bytes += length as u64;
    }

    /// Reads a pinned unit where the index has it, to check it; false if the index has no other place.
    fn doubt(
        &mut self,
        fetch: FetchId,
        id: ChunkId,
        ids: &mut Ids,
        out: &mut VecDeque<Output>,
    ) -> bool {
        let place = self.index.locate(&id).next();
        let (Some(at), Some(pinned)) = (place, self.pinned.get(&id)) else { return false };
        let ticket = ids.draw();
        let output = StoreOutput::Read(ticket, at, vec![pinned.bytes.len() as u32]);
        out.push_back(Output::Store(output));
        self.doubts.insert(ticket, Doubt { fetch, id, at });
        true
    }

    /// The disk has read a place that was being checked. Returns the transfers that waited for that
    /// unit; `None` if the read was no such check.
    pub fn handle_doubt(
        &mut self,
        ticket: Ticket,
        units: Option<&[(ChunkId, Bytes)]>,
        ids: &mut Ids,
        out: &mut VecDeque<Output>,
    ) -> Option<Vec<FetchId>> {
        let Doubt { fetch, id, at } = self.doubts.remove(&ticket)?;
        let mut concerned = vec![fetch];
        let Some(ours) = self.pinned.get(&id).map(|pinned| pinned.bytes.clone()) else {
            return Some(concerned);
        };
        // The index said that the unit is stored, but not that it can be read: ours is compared.
        let same = units.and_then(|units| units.first()).is_some_and(|(_, there)| *there == ours);
        if same {
            self.know(&id, ours.len());
            concerned.extend(self.written(&id));
            self.leave_to_disk(&id);
        } else {
            // The stored copy is bad: another place is checked, or the unit is written again.
            self.index.remove(&id, at);
            if !self.doubt(fetch, id, ids, out) {
                self.append(Some(fetch), false, vec![(id, ours)], ids, out);
            }
        }
        concerned.sort_unstable();
        concerned.dedup();
        Some(concerned)
    }

    /// Writes units together. Units that another transfer has written since they entered, or is
    /// writing, are left out where possible: a protected unit would occupy room twice. Returns how many
    /// bytes are left out. `lasting` units are evicted after all others.
    pub fn append(
        &mut self,
        fetch: Option<FetchId>,
        lasting: bool,
        units: Vec<(ChunkId, Bytes)>,
        ids: &mut Ids,
        out: &mut VecDeque<Output>,
    ) -> u64 {
        let (spared, units): (Vec<_>, Vec<_>) =
            units.into_iter().partition(|(id, _)| self.is_spared(fetch, id));
        let spared = spared.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        if units.is_empty() {
            return spared;
        }
        let ticket = ids.draw();
        let unit = |(id, bytes)| {
            let provenance = self.pinned.get(&id).map_or(Provenance::Own, |it| it.provenance);
            Unit { id, bytes, provenance, on_probation: fetch.is_none() }
        };
        let units: Vec<Unit> = units.into_iter().map(unit).collect();
        let rows = units.iter().map(|it| (it.id, it.bytes.len() as u32, it.provenance)).collect();
        self.appends.insert(ticket, Group { fetch, lasting, units: rows });
        out.push_back(Output::Store(StoreOutput::Append(ticket, units)));
        spared
    }

    /// A write has ended, with the units' places or with an error.
    pub fn handle_appended(
        &mut self,
        ticket: Ticket,
        places: Option<Vec<Location>>,
        out: &mut VecDeque<Output>,
    ) -> Option<Appended> {
        let Group { fetch, lasting, units } = self.appends.remove(&ticket)?;
        let bytes = units.iter().map(|(_, length, _)| u64::from(*length)).sum();
        let mut places = places.unwrap_or_default().into_iter();
        let (mut refused, mut waited, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (id, length, provenance) in units {
            // A write that fails half-way may have written the first units.
            let Some(place) = places.next() else {
                let waits = self.keeping.iter().filter(|(_, waiting)| waiting.contains(&id));
                failed.extend(waits.map(|(other, _)| *other).filter(|other| Some(*other) != fetch));
                refused.push(id);
                continue;
            };
            // A unit that was missing is there again.
            self.absent.remove(&id);
            match fetch {
                Some(_) => self.enter_asked_for(&id, place, length, provenance),
                None => self.enter_on_probation(&id, place, length),
            }
            if lasting {
                self.index.make_lasting(&id);
            }
            waited.extend(self.written(&id).into_iter().filter(|other| Some(*other) != fetch));
        }
        self.reclaim(out);
        for others in [&mut waited, &mut failed] {
            others.sort_unstable();
            others.dedup();
        }
        Some(Appended { fetch, bytes, refused, waited, failed })
    }

    /// A unit of a transfer is on disk.
    fn enter_asked_for(&mut self, id: &ChunkId, at: Location, length: u32, provenance: Provenance) {
        let provenance = match provenance {
            // Not protected yet: `written` protects it, unless the transfer that put it has failed meanwhile.
            Provenance::Put => Provenance::Own,
            other => other,
        };
        self.index.insert(id, at, length, provenance);
        self.leave_to_disk(id);
    }

    /// A unit that no transfer requested is on disk. Meanwhile a reader may have read it, or a transfer
    /// received it.
    fn enter_on_probation(&mut self, id: &ChunkId, at: Location, length: u32) {
        self.index.insert_on_probation(id, at, length);
        if self.pinned.get(id).is_some_and(|pinned| pinned.read) {
            self.index.touch(id);
        }
        self.forget(id);
    }

    /// Unpins a unit, and moves it to the cache: it may soon be read again.
    pub fn release(&mut self, id: &ChunkId) {
        if let Some(bytes) = self.forget(id) {
            self.hot.insert(*id, bytes);
        }
    }

    /// Unpins a unit that the disk has now. It moves to the cache unless it was sent to a peer.
    fn leave_to_disk(&mut self, id: &ChunkId) {
        if self.pinned.get(id).is_some_and(|pinned| pinned.given) {
            self.forget(id);
        } else {
            self.release(id);
        }
    }

    /// Unpins a unit, and returns its bytes.
    pub fn forget(&mut self, id: &ChunkId) -> Option<Bytes> {
        let Pinned { bytes, .. } = self.pinned.remove(id)?;
        self.pinned_bytes -= bytes.len() as u64;
        Some(bytes)
    }

    /// Reads units that are not in memory: the first, and those stored directly after it, up to
    /// `bytes_max`. False if the store does not have the first. `listed`: their lengths come from a
    /// manifest. If not, the length may be wrong, and a failed read does not mean that the unit is
    /// corrupt.
    pub fn want(
        &mut self,
        units: impl Iterator<Item = (ChunkId, u32)>,
        listed: bool,
        bytes_max: u64,
        waiter: ExchangeId,
        ids: &mut Ids,
        out: &mut VecDeque<Output>,
    ) -> bool {
        let mut units = units.peekable();
        let Some((first, _)) = units.peek() else { return false };
        if let Some(run) = self.reading.get(first).and_then(|ticket| self.reads.get_mut(ticket)) {
            run.waiters.push(waiter);
            return true;
        }
        let units = self.adjacent(units, bytes_max);
        if units.is_empty() {
            return false;
        }
        self.read(Run { units, listed, waiters: vec![waiter] }, ids, out);
        true
    }

    fn read(&mut self, run: Run, ids: &mut Ids, out: &mut VecDeque<Output>) {
        let Some((_, first, _)) = run.units.first().copied() else { return };
        let ticket = ids.draw();
        for (id, ..) in &run.units {
            self.reading.insert(*id, ticket);
        }
        let lengths = run.units.iter().map(|(_, _, length)| *length).collect();
        self.reads.insert(ticket, run);
        out.push_back(Output::Store(StoreOutput::Read(ticket, first, lengths)));
    }

    fn adjacent(
        &mut self,
        units: impl Iterator<Item = (ChunkId, u32)>,
        bytes_max: u64,
    ) -> Vec<(ChunkId, Location, u32)> {
        let (mut run, mut sum) = (Vec::new(), 0);
        let mut last: Option<(Location, u32)> = None;
        for (id, length) in units {
            sum += u64::from(length);
            if last.is_some() && (sum > bytes_max || self.reading.contains_key(&id)) {
                break;
            }
            let behind = |at: &Location| {
                last.is_none_or(|(first, length)| Index::adjacent(first, length, *at))
            };
            let Some(at) = self.index.locate(&id).into_iter().find(behind) else { break };
            self.index.touch(&id);
            last = Some((at, length));
            run.push((id, at, length));
        }
        run
    }

    /// A read has ended. Units that match their names enter the cache; the others leave the index.
    /// `None` if the read is unknown, or is repeated for its first unit alone.
    pub fn handle_units(
        &mut self,
        ticket: Ticket,
        units: Option<Vec<(ChunkId, Bytes)>>,
        ids: &mut Ids,
        out: &mut VecDeque<Output>,
    ) -> Option<Arrived> {
        let mut run = self.reads.remove(&ticket)?;
        for (id, ..) in &run.units {
            self.reading.remove(id);
        }
        if units.is_none() && run.units.len() > 1 {
            // One unreadable unit fails the whole read; the first may be readable.
            run.units.truncate(1);
            self.read(run, ids, out);
            return None;
        }
        let mut answers = units.unwrap_or_default().into_iter();
        let mut arrived = Vec::with_capacity(run.units.len());
        let mut unread = None;
        for (id, at, length) in run.units {
            match answers.next() {
                // The disk is not trusted: the bytes must hash to the name.
                Some((named, bytes)) if named == id && content::name(&bytes) == id => {
                    self.hot.insert(id, bytes.clone());
                    arrived.push((id, bytes));
                }
                // The length came from a peer and may be wrong, so the index is not blamed.
                None if !run.listed => unread = Some((id, length)),
                _ => self.spoil(&id, at),
            }
        }
        Some(Arrived { waiters: run.waiters, units: arrived, unread })
    }

    fn spoil(&mut self, id: &ChunkId, at: Location) {
        self.index.remove(id, at);
        if self.absent.len() >= ABSENT_MAX {
            self.absent.clear();
        }
        self.absent.insert(*id);
        self.counts.bad += 1;
    }

    /// Begins to reclaim a segment if the store needs room; only one at a time.
    pub fn reclaim(&mut self, out: &mut VecDeque<Output>) {
        if self.reclaiming.is_none() && !self.spares {
            self.reclaiming = self.index.victim();
            out.extend(self.reclaiming.map(StoreOutput::List).map(Output::Store));
        }
    }

    /// The units of a victim are known: decides which of them are kept.
    pub fn handle_entries(
        &mut self,
        segment: SegmentId,
        entries: Option<Vec<Entry>>,
        out: &mut VecDeque<Output>,
    ) {
        // If the segment could not be listed, none is kept. Reads of its units will fail, and then
        // remove them from the index.
        let keep = self.index.judge(segment, &entries.unwrap_or_default());
        out.push_back(Output::Store(StoreOutput::Rewrite(segment, keep)));
    }

    /// A victim was rewritten: the units that are kept have moved. `None` if rewriting failed.
    pub fn handle_rewritten(
        &mut self,
        segment: SegmentId,
        moved: Option<Vec<(ChunkId, u32, Location)>>,
        out: &mut VecDeque<Output>,
    ) {
        self.reclaiming = None;
        match moved {
            Some(moved) => {
                self.index.moved(segment, &moved);
                self.reclaim(out);
            }
            // The next write tries again.
            None => self.index.spare(segment),
        }
    }

    /// The length of all pinned units, in bytes.
    pub fn pinned_bytes(&self) -> u64 {
        self.pinned_bytes
    }

    /// The memory of the cache of units, in bytes.
    pub fn hot_bytes(&self) -> u64 {
        self.hot.weight()
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    pub fn index(&self) -> &Index {
        &self.index
    }
}

#[cfg(test)]
mod tests;
