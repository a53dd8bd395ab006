//! The one door for chunks: what is held, what is being read, what waits to be written.
//!
//! Every unit that enters is named here, and every answer of the disk is hashed again before
//! anybody sees it.
//!
//! Cost of a unit of 8 KiB: 2 µs to hash, one look into the index; memory is bounded by the hot
//! budget plus what is pinned until the disk has it.

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

/// Units known not to be where the index supposes, at most; the set is then begun anew.
const ABSENT_MAX: usize = 4096;

/// Units by name, in memory, on disk, and in between.
pub struct Chunks {
    index: Index,
    hot: Cache<ChunkId, Bytes, ByLength>,
    /// Units that the disk does not have yet, or refused.
    pinned: Map<ChunkId, Pinned>,
    pinned_bytes: u64,
    appends: Map<Ticket, Group>,
    reads: Map<Ticket, Run>,
    /// Units that the index seems to have and that wait, pinned, for the disk to say so.
    doubts: Map<Ticket, Doubt>,
    /// In which read a unit is under way, so that nobody asks for it twice.
    reading: Map<ChunkId, Ticket>,
    absent: Set<ChunkId>,
    /// Transfers whose units are to be kept, and those of them that the disk does not have yet.
    keeping: Map<FetchId, Set<ChunkId>>,
    reclaiming: Option<SegmentId>,
    /// Nothing may be reclaimed now.
    spares: bool,
    counts: Counts,
}

/// What happened to units.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub cut: u64,
    pub known: u64,
    pub known_bytes: u64,
    pub bad: u64,
}

/// A unit that only memory has.
struct Pinned {
    bytes: Bytes,
    provenance: Provenance,
    /// A peer was given it.
    given: bool,
    /// Somebody has read it, or a transfer has brought it too.
    read: bool,
}

/// Units being written side by side.
struct Group {
    /// The transfer that they are of; none if nobody asked for them.
    fetch: Option<FetchId>,
    units: Vec<(ChunkId, u32, Provenance)>,
}

/// What came of units that were to be written.
pub struct Appended {
    /// The transfer that they are of; none if nobody asked for them.
    pub fetch: Option<FetchId>,
    /// How many bytes they are.
    pub bytes: u64,
    /// Those that only memory has.
    pub refused: Vec<ChunkId>,
    /// Other transfers that waited for some of them, which are written.
    pub waited: Vec<FetchId>,
    /// Other transfers that waited for some of those that were refused.
    pub failed: Vec<FetchId>,
}

/// A unit that may be on disk already, for a fetch.
struct Doubt {
    fetch: FetchId,
    id: ChunkId,
    at: Location,
}

/// Adjacent units being read, and who waits for them.
struct Run {
    units: Vec<(ChunkId, Location, u32)>,
    /// A manifest says how long they are, not only a peer.
    listed: bool,
    waiters: Vec<ExchangeId>,
}

/// What came of a read.
pub struct Arrived {
    /// Who waited.
    pub waiters: Vec<ExchangeId>,
    /// What is whole and true, in order.
    pub units: Vec<(ChunkId, Bytes)>,
    /// What could not be read with the length that a peer alone says it has.
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
    /// Begins with what the store holds, and this much memory for hot units.
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

    /// A unit, if memory has it.
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

    /// A unit for a peer, if memory has it. One that waits for the disk does not stay in memory
    /// afterwards: on a relay nobody else is going to ask for it soon, and whoever does gets it from the
    /// disk, and the next from memory.
    pub fn give(&mut self, id: &ChunkId) -> Option<Bytes> {
        if let Some(pinned) = self.pinned.get_mut(id) {
            pinned.given = true;
        }
        self.get(id)
    }

    /// Whether a unit seems to be held.
    pub fn holds(&self, id: &ChunkId) -> bool {
        self.pinned.contains_key(id) || self.holds_on_disk(id)
    }

    fn holds_on_disk(&self, id: &ChunkId) -> bool {
        self.index.holds(id) && !self.absent.contains(id)
    }

    /// How a unit came here, if it is held.
    pub fn provenance(&self, id: &ChunkId) -> Option<Provenance> {
        let pinned = self.pinned.get(id).map(|pinned| pinned.provenance);
        pinned.or_else(|| self.index.provenance(id))
    }

    /// Whether memory alone has it for certain.
    pub fn is_pinned(&self, id: &ChunkId) -> bool {
        self.pinned.contains_key(id)
    }

    /// Whether units are being written, or looked for on disk.
    pub fn is_writing(&self) -> bool {
        !self.appends.is_empty() || !self.doubts.is_empty()
    }

    /// Whether units are being written for a transfer.
    pub fn is_writing_for(&self, fetch: FetchId) -> bool {
        self.keeping.get(&fetch).is_some_and(|waiting| !waiting.is_empty())
            || self.appends.values().any(|group| group.fetch == Some(fetch))
            || self.doubts.values().any(|doubt| doubt.fetch == fetch)
    }

    /// Takes in a unit that somebody waits for; true if it has to be written.
    ///
    /// What the index has may be another unit, or gone from the disk: until the disk has shown it,
    /// the unit stays in memory.
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
            // It may wait for the disk as one that nobody has asked for.
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

    /// Takes in a unit that is not held, to be written: until then memory alone has it.
    pub fn pin(&mut self, id: ChunkId, bytes: Bytes, provenance: Provenance) {
        self.pinned_bytes += bytes.len() as u64;
        self.pinned.insert(id, Pinned { bytes, provenance, given: false, read: false });
    }

    fn know(&mut self, id: &ChunkId, length: usize) {
        self.index.touch(id);
        self.counts.known += 1;
        self.counts.known_bytes += length as u64;
    }

    /// Asks the disk for a pinned unit that the index seems to have; false if it has no more places.
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

    /// The disk has shown what it has in a doubtful place: answers whose doubt it was, and who else waited.
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
        let same = units.and_then(|units| units.first()).is_some_and(|(_, there)| *there == ours);
        if same {
            self.know(&id, ours.len());
            concerned.extend(self.written(&id));
            self.leave_to_disk(&id);
        } else {
            self.index.remove(&id, at);
            if !self.doubt(fetch, id, ids, out) {
                self.append(Some(fetch), vec![(id, ours)], ids, out);
            }
        }
        concerned.sort_unstable();
        concerned.dedup();
        Some(concerned)
    }

    /// Writes units side by side, which have entered and are to be written. None is written twice if that
    /// can be helped: what is kept would take its room twice, too. Answers how many bytes need not be.
    pub fn append(
        &mut self,
        fetch: Option<FetchId>,
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
        self.appends.insert(ticket, Group { fetch, units: rows });
        out.push_back(Output::Store(StoreOutput::Append(ticket, units)));
        spared
    }

    /// Units were written, or not: answers whose they were, and those that only memory has.
    pub fn handle_appended(
        &mut self,
        ticket: Ticket,
        places: Option<Vec<Location>>,
        out: &mut VecDeque<Output>,
    ) -> Option<Appended> {
        let Group { fetch, units } = self.appends.remove(&ticket)?;
        let bytes = units.iter().map(|(_, length, _)| u64::from(*length)).sum();
        let mut places = places.unwrap_or_default().into_iter();
        let (mut refused, mut waited, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (id, length, provenance) in units {
            // A disk that fails half-way may have taken the first of a group.
            let Some(place) = places.next() else {
                let waits = self.keeping.iter().filter(|(_, waiting)| waiting.contains(&id));
                failed.extend(waits.map(|(other, _)| *other).filter(|other| Some(*other) != fetch));
                refused.push(id);
                continue;
            };
            self.absent.remove(&id);
            match fetch {
                Some(_) => self.enter_asked_for(&id, place, length, provenance),
                None => self.enter_on_probation(&id, place, length),
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
            // Whoever put it has failed meanwhile. Else it is marked when that is known (`written`).
            Provenance::Put => Provenance::Own,
            other => other,
        };
        self.index.insert(id, at, length, provenance);
        self.leave_to_disk(id);
    }

    /// A unit that nobody had asked for is on disk. It may have been read meanwhile, or come by a transfer.
    fn enter_on_probation(&mut self, id: &ChunkId, at: Location, length: u32) {
        self.index.insert_on_probation(id, at, length);
        if self.pinned.get(id).is_some_and(|pinned| pinned.read) {
            self.index.touch(id);
        }
        self.forget(id);
    }

    /// A unit need not be kept in memory any longer, but may soon be read again.
    pub fn release(&mut self, id: &ChunkId) {
        if let Some(bytes) = self.forget(id) {
            self.hot.insert(*id, bytes);
        }
    }

    /// The disk has a unit now.
    fn leave_to_disk(&mut self, id: &ChunkId) {
        if self.pinned.get(id).is_some_and(|pinned| pinned.given) {
            self.forget(id);
        } else {
            self.release(id);
        }
    }

    /// A unit need not be kept in memory any longer.
    pub fn forget(&mut self, id: &ChunkId) -> Option<Bytes> {
        let Pinned { bytes, .. } = self.pinned.remove(id)?;
        self.pinned_bytes -= bytes.len() as u64;
        Some(bytes)
    }

    /// Asks the disk for units that memory does not have: the first, and those stored right behind
    /// it, up to `bytes_max`. False if the store does not have the first. Where no manifest says how long they
    /// are (`listed`), a failed read is no reason to take them for spoilt.
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

    /// The disk answered: what is true enters memory, what is not leaves the index. `None` if
    /// nobody waits for it yet.
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
            // Some unit of the run spoils the read of all: the first may be good.
            run.units.truncate(1);
            self.read(run, ids, out);
            return None;
        }
        let mut answers = units.unwrap_or_default().into_iter();
        let mut arrived = Vec::with_capacity(run.units.len());
        let mut unread = None;
        for (id, at, length) in run.units {
            match answers.next() {
                Some((named, bytes)) if named == id && content::name(&bytes) == id => {
                    self.hot.insert(id, bytes.clone());
                    arrived.push((id, bytes));
                }
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

    /// Makes room, one segment at a time.
    pub fn reclaim(&mut self, out: &mut VecDeque<Output>) {
        if self.reclaiming.is_none() && !self.spares {
            self.reclaiming = self.index.victim();
            out.extend(self.reclaiming.map(StoreOutput::List).map(Output::Store));
        }
    }

    /// A victim's content is known: says what of it stays.
    pub fn handle_entries(
        &mut self,
        segment: SegmentId,
        entries: Option<Vec<Entry>>,
        out: &mut VecDeque<Output>,
    ) {
        // What cannot be listed cannot be saved; reads of its units fail, and leave the index then.
        let keep = self.index.judge(segment, &entries.unwrap_or_default());
        out.push_back(Output::Store(StoreOutput::Rewrite(segment, keep)));
    }

    /// A victim is gone, and what stays lies elsewhere.
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
            // It is tried again when something has been written.
            None => self.index.spare(segment),
        }
    }

    /// Bytes that wait to be written.
    pub fn pinned_bytes(&self) -> u64 {
        self.pinned_bytes
    }

    /// Bytes of units in memory besides.
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
mod tests {
    use super::*;
    use store::Policy;

    /// Chunks, and what they say.
    struct Bench {
        chunks: Chunks,
        ids: Ids,
        out: VecDeque<Output>,
    }

    impl Bench {
        fn enter(&mut self, fetch: FetchId, (id, bytes): &(ChunkId, Bytes)) -> bool {
            let (ids, out) = (&mut self.ids, &mut self.out);
            self.chunks.enter(fetch, (*id, bytes), Provenance::Own, ids, out)
        }

        fn append(&mut self, fetch: FetchId, unit: &(ChunkId, Bytes)) -> Option<Ticket> {
            let (ids, out) = (&mut self.ids, &mut self.out);
            self.chunks.append(Some(fetch), vec![unit.clone()], ids, out);
            match self.out.pop_back()? {
                Output::Store(StoreOutput::Append(ticket, _)) => Some(ticket),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_the_disk_shows_one_is_told_to_all_who_wait_for_it() {
        let chunks = Chunks::new(Index::new(64 << 20, Policy::Lru), 1 << 20);
        let mut bench = Bench { chunks, ids: Ids::default(), out: VecDeque::new() };
        let bytes = Bytes::from_static(b"a unit");
        let unit = (content::name(&bytes), bytes);
        let [cached, first, second, third] = [1, 2, 3, 4].map(FetchId);
        [first, second, third].into_iter().for_each(|fetch| bench.chunks.keep_for(fetch));
        // One has collected it and not written it; another has it written meanwhile.
        assert!(bench.enter(cached, &unit) && bench.enter(first, &unit));
        let ticket = bench.append(first, &unit).expect("it is written");
        let place = Location { segment: SegmentId(1), offset: 64 };
        bench.chunks.handle_appended(ticket, Some(vec![place]), &mut bench.out);
        bench.out.clear();
        // The second has the disk asked, the third waits until the first mentioned has written it.
        assert!(!bench.enter(second, &unit));
        let Some(Output::Store(StoreOutput::Read(doubt, ..))) = bench.out.pop_back() else {
            panic!("it is looked for")
        };
        assert!(bench.append(cached, &unit).is_some());
        assert!(!bench.enter(third, &unit));
        let shown = [unit.clone()];
        let (ids, out) = (&mut bench.ids, &mut bench.out);
        let told = bench.chunks.handle_doubt(doubt, Some(&shown), ids, out);
        assert_eq!(told, Some(vec![second, third]));
        assert!(!bench.chunks.is_writing_for(third) && !bench.chunks.is_pinned(&unit.0));
    }
}
