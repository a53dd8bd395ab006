//! The index: where each unit is stored, how recently it was used, and which segment to reclaim
//! next.
//!
//! *What this is:* the store's state in memory: ten bytes for each unit in `table.rs`, a row for
//! each segment in `segments.rs`, a policy in `evict.rs`. *Who calls it:* the engine, which owns
//! it; recovery, which fills it. *What it never does:* use a file, a lock or a clock; store whole
//! names. It returns candidates, which the caller confirms by reading the name stored with the
//! bytes.
//!
//! *Where to start:* the life of a unit is `insert`, then any number of `touch`, then
//! [`Index::victim`] → [`Index::judge`] → [`Index::moved`] for its segment.
//!
//! *What survives a crash:* nothing; recovery fills the index again from the segments' footers.
//! Ages and counts of uses are lost: units then count as used in the order of their segments.

use wire::ChunkId;

use crate::evict::{EPOCHS, Evictor, Policy, S3Fifo};
use crate::segment::{
    ALIGN, Entry, Kind, Location, Provenance, SegmentId, segment_bytes, unit_disk_bytes,
};
use crate::segments::Segments;
use crate::table::{Key, Place, Table, class_bytes, length_class};

/// Most candidates for one name. More occur only if a unit is stored several times, or if names
/// were forged to collide; the others stay unused until they are evicted.
const CANDIDATES_MAX: usize = 4;

/// The locations where a unit may be stored: an iterator, in no particular order.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    places: [Option<Location>; CANDIDATES_MAX],
    next: usize,
}

impl Iterator for Candidates {
    type Item = Location;

    fn next(&mut self) -> Option<Location> {
        let place = *self.places.get(self.next)?;
        self.next += 1;
        place
    }
}

wire::counters! {
    /// The content of the index, and the evictions. Bytes of units exclude headers, except in
    /// `bytes_on_disk`.
    #[derive(Copy)]
    pub struct IndexReport, "store_" {
        Store () {
            /// Units in the index.
            units: Gauge, Chunks;
        }
        Store ("hearsay_store_bytes") {
            /// Bytes of all segment files, with headers, footers and units that are no longer in the index.
            bytes_on_disk: Gauge, Bytes;
        }
        Process ("hearsay_memory_bytes", what, "Memory, by what it is used for.") {
            /// The index of the store.
            index_bytes: Gauge, Bytes, "index";
        }
        Store () {
            /// Units that were evicted.
            evicted_units: Counter, Chunks;
            /// Bytes of units that were evicted.
            evicted_bytes: Counter, Bytes;
            /// Bytes of units that were rewritten because their segment file was reclaimed.
            rewritten_bytes: Counter, Bytes;
            /// Units that were not inserted, because the table was full near their slot, or no row was free for the
            /// segment file.
            refused_units: Counter, Chunks;
            /// Segment files on disk.
            segments: Gauge, Files;
        }
    }
}

/// Which units survive the reclaiming of a segment.
struct Threshold {
    /// Units of this life or more survive.
    life: usize,
    /// Units of one life less survive too, up to this number of bytes.
    spare_bytes: u64,
}

impl Threshold {
    fn passes(&mut self, life: u8, bytes: u32) -> bool {
        let is_next = usize::from(life) + 1 == self.life && u64::from(bytes) <= self.spare_bytes;
        if is_next {
            self.spare_bytes -= u64::from(bytes);
        }
        is_next || usize::from(life) >= self.life
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Index {
    table: Table,
    segments: Segments,
    evictor: Evictor,
    budget_bytes: u64,
    segment_bytes: u32,
    /// The segment being reclaimed. There is only one at a time: the budget has room for the
    /// survivors of one.
    victim: Option<SegmentId>,
    counts: IndexReport,
}

impl Index {
    /// An empty index for a store with this budget on disk.
    pub fn new(budget_bytes: u64, policy: Policy) -> Self {
        Self {
            table: Table::new(),
            segments: Segments::new(policy == Policy::Lru),
            evictor: Evictor::new(policy, budget_bytes),
            budget_bytes,
            segment_bytes: segment_bytes(budget_bytes),
            victim: None,
            counts: IndexReport::default(),
        }
    }

    /// The most bytes that all segment files may have together.
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }

    /// The length of a full segment, in bytes.
    pub fn segment_bytes(&self) -> u32 {
        self.segment_bytes
    }

    /// The locations where this unit may be stored. The caller must compare the name that it reads
    /// there.
    pub fn locate(&self, id: &ChunkId) -> Candidates {
        let mut candidates = Candidates::default();
        let places = self.table.find(Key::of(id)).filter_map(|place| self.location(place));
        for (slot, location) in candidates.places.iter_mut().zip(places) {
            *slot = Some(location);
        }
        candidates
    }

    fn location(&self, place: Place) -> Option<Location> {
        let segment = self.segments.at(place.segment)?;
        Some(Location { segment: segment.id, offset: place.offset })
    }

    /// Whether there is a candidate for this unit.
    pub fn holds(&self, id: &ChunkId) -> bool {
        self.table.find(Key::of(id)).next().is_some()
    }

    /// Why a unit was stored, if there is a candidate for it.
    pub fn provenance(&self, id: &ChunkId) -> Option<Provenance> {
        self.table.find(Key::of(id)).next().map(|place| place.provenance)
    }

    /// Whether the unit at `next` directly follows a unit of `first_length` bytes at `first`, so
    /// that one read gets both.
    pub fn adjacent(first: Location, first_length: u32, next: Location) -> bool {
        first.segment == next.segment
            && first.offset.checked_add(unit_disk_bytes(first_length)) == Some(next.offset)
    }

    /// Notes a use of a unit, so that it is evicted later.
    pub fn touch(&mut self, id: &ChunkId) {
        let key = Key::of(id);
        // The last match, because `retain` goes backwards and visits it first.
        let Some(found) = self.table.find(key).last() else { return };
        let bytes = class_bytes(found.class);
        let entered = self.renewed(bytes);
        self.settle(key);
        let Self { table, segments, evictor, .. } = self;
        let mut is_first = true;
        table.retain(key, |place| {
            let before = place.life;
            match (&mut *evictor, entered) {
                // If a unit is stored several times, the use was counted for one copy.
                (Evictor::Lru(lru), Some(now)) if is_first => {
                    lru.leave(before, bytes);
                    place.life = now;
                }
                (Evictor::S3Fifo(_), _) => place.life = S3Fifo::used(before),
                _ => {}
            }
            is_first = false;
            if let Some(segment) = segments.at_mut(place.segment) {
                segment.subtract(before, class_bytes(place.class));
                segment.add(place.life, class_bytes(place.class));
            }
            true
        });
    }

    /// A unit is to be evicted after all others, as long as the store has room for such units at all: it is as one that
    /// was used very often. By LRU it is as one just used.
    pub fn make_lasting(&mut self, id: &ChunkId) {
        let key = Key::of(id);
        self.settle(key);
        let Self { table, segments, evictor: Evictor::S3Fifo(_), .. } = self else { return };
        table.retain(key, |place| {
            let before = std::mem::replace(&mut place.life, S3Fifo::lasting());
            if let Some(segment) = segments.at_mut(place.segment) {
                segment.subtract(before, class_bytes(place.class));
                segment.add(place.life, class_bytes(place.class));
            }
            true
        });
    }

    /// Inserts a unit that has been written. The newest segment named in calls of this method
    /// counts as being written to; so do those last named in [`Index::insert_on_probation`] and in
    /// [`Index::moved`].
    pub fn insert(&mut self, id: &ChunkId, at: Location, length: u32, provenance: Provenance) {
        self.insert_into(Kind::Fresh, id, at, length, provenance);
    }

    /// Inserts an overheard unit that no client or peer has requested. A neighbour could send more
    /// such units than the store can hold, so until its first use the unit is among the first to be
    /// evicted, and leaves no ghost.
    pub fn insert_on_probation(&mut self, id: &ChunkId, at: Location, length: u32) {
        self.insert_into(Kind::Probation, id, at, length, Provenance::Overheard);
    }

    fn insert_into(
        &mut self,
        kind: Kind,
        id: &ChunkId,
        at: Location,
        length: u32,
        provenance: Provenance,
    ) {
        let Some(row) = self.segments.head(at.segment, kind) else {
            self.counts.refused_units += 1;
            return;
        };
        self.segments.written(row, length);
        self.enter(id, row, at.offset, length, provenance);
    }

    /// Inserts the units that recovery found in one segment file.
    pub(crate) fn recovered(
        &mut self,
        segment: SegmentId,
        kind: Kind,
        file_bytes: u64,
        entries: &[Entry],
    ) {
        let Some(row) = self.segments.recovered(segment, kind, file_bytes) else {
            self.counts.refused_units += entries.len() as u64;
            return;
        };
        for entry in entries {
            // Whether the unit is still published is known to the engine only, which calls `keep`.
            // The file holds the state at the time of writing.
            let provenance = match entry.provenance {
                Provenance::Put => Provenance::Own,
                other => other,
            };
            self.enter(&entry.id, row, entry.offset, entry.length, provenance);
        }
    }

    /// Protects a unit of a published object: it survives every reclaiming until
    /// [`Index::keep_nothing`]. `false` if there is no candidate for it.
    ///
    /// The caller must ensure that protected units take much less than the budget.
    pub fn keep(&mut self, id: &ChunkId) -> bool {
        let mut is_here = false;
        self.table.retain(Key::of(id), |place| {
            place.provenance = Provenance::Put;
            is_here = true;
            true
        });
        is_here
    }

    /// Ends the protection of all units. Scans the whole table.
    pub fn keep_nothing(&mut self) {
        self.table.retain_all(|place| {
            if place.provenance == Provenance::Put {
                place.provenance = Provenance::Own;
            }
            true
        });
    }

    fn enter(&mut self, id: &ChunkId, row: u16, offset: u32, length: u32, provenance: Provenance) {
        let key = Key::of(id);
        if self.table.find(key).any(|place| place.segment == row && place.offset == offset) {
            return;
        }
        let class = length_class(length);
        let life = self.born(key, class_bytes(class), row);
        self.settle(key);
        let place = Place { segment: row, offset: offset / ALIGN * ALIGN, class, provenance, life };
        if !self.table.insert(key, place) {
            self.counts.refused_units += 1;
            self.weigh_out(life, class);
        } else if let Some(segment) = self.segments.at_mut(row) {
            segment.add(life, class_bytes(class));
        }
    }

    /// The life of a unit that is inserted into a segment.
    fn born(&mut self, key: Key, bytes: u32, row: u16) -> u8 {
        let on_probation = self.segments.is_of(row, Kind::Probation);
        match &mut self.evictor {
            Evictor::S3Fifo(_) if on_probation => 0,
            Evictor::S3Fifo(s3) => s3.enter(key),
            Evictor::Lru(lru) if on_probation => lru.enter_cold(bytes),
            Evictor::Lru(_) => self.renewed(bytes).unwrap_or(0),
        }
    }

    /// Counts a use, and returns the current epoch if the policy has epochs.
    fn renewed(&mut self, bytes: u32) -> Option<u8> {
        let Evictor::Lru(lru) = &mut self.evictor else { return None };
        let (now, halved) = lru.enter(bytes);
        if halved {
            self.segments.halve();
        }
        Some(now)
    }

    /// Applies pending halvings to the ages near a key, before any is read or written.
    fn settle(&mut self, key: Key) {
        if let Evictor::Lru(lru) = &self.evictor {
            self.table.settle(key, lru.halvings);
        }
    }

    fn weigh_out(&mut self, life: u8, class: u8) {
        if let Evictor::Lru(lru) = &mut self.evictor {
            lru.leave(life, class_bytes(class));
        }
    }

    /// Removes a unit whose location turned out to hold something else. `false` if the index did
    /// not have it at this location.
    pub fn remove(&mut self, id: &ChunkId, at: Location) -> bool {
        let Some(row) = self.segments.row(at.segment) else { return false };
        self.take_out(Key::of(id), row, at.offset).is_some()
    }

    fn take_out(&mut self, key: Key, row: u16, offset: u32) -> Option<Place> {
        self.settle(key);
        let mut taken = None;
        self.table.retain(key, |place| {
            let is_it = taken.is_none() && place.segment == row && place.offset == offset;
            if is_it {
                taken = Some(*place);
            }
            !is_it
        });
        let place = taken?;
        self.weigh_out(place.life, place.class);
        if let Some(segment) = self.segments.at_mut(row) {
            segment.subtract(place.life, class_bytes(place.class));
        }
        Some(place)
    }

    /// The segment to reclaim next, if the budget is nearly used up.
    ///
    /// A segment that is being written to is never returned. Only one is reclaimed at a time:
    /// `None` until [`Index::moved`] or [`Index::spare`] has been called for the last one.
    pub fn victim(&mut self) -> Option<SegmentId> {
        // Reserve one segment for what is appended meanwhile, and one for the survivors.
        let reserve = 2 * u64::from(self.segment_bytes);
        let is_over = self.segments.disk_bytes() + reserve > self.budget_bytes;
        if self.victim.is_some() || !is_over {
            return None;
        }
        self.victim = match &self.evictor {
            Evictor::Lru(lru) => self.segments.coldest(lru.cold()),
            Evictor::S3Fifo(_) => self.segments.first_in(),
        };
        self.victim
    }

    /// Decides which units survive the reclaiming of a segment, given all its entries.
    ///
    /// The other units leave the index now. At least a quarter of the segment's bytes is freed even
    /// if all units are in use, so that each reclaiming makes progress. Protected units
    /// ([`Index::keep`]) survive regardless, and count as just used. Survivors are found at their
    /// old location until [`Index::moved`].
    pub fn judge(&mut self, segment: SegmentId, entries: &[Entry]) -> Vec<Entry> {
        let Some(row) = self.segments.row(segment) else { return Vec::new() };
        let mut known: Vec<(Place, Entry)> = Vec::with_capacity(entries.len());
        for entry in entries {
            known.extend(self.place_of(row, entry).map(|place| (place, *entry)));
        }
        let mut threshold = self.threshold(row, &known);
        let mut kept = Vec::new();
        for (place, entry) in known {
            let is_put = place.provenance == Provenance::Put;
            if is_put || threshold.passes(place.life, unit_disk_bytes(entry.length)) {
                if is_put {
                    self.touch(&entry.id);
                }
                self.renew(row, &entry);
                kept.push(entry);
            } else {
                self.evict(row, &entry);
            }
        }
        kept
    }

    fn place_of(&mut self, row: u16, entry: &Entry) -> Option<Place> {
        let key = Key::of(&entry.id);
        self.settle(key);
        let mut places = self.table.find(key);
        places.find(|place| place.segment == row && place.offset == entry.offset)
    }

    /// The threshold by the policy's rule, or a higher one if that rule would free too little.
    fn threshold(&self, row: u16, known: &[(Place, Entry)]) -> Threshold {
        let Some(segment) = self.segments.at(row) else {
            return Threshold { life: 256, spare_bytes: 0 };
        };
        let wanted = match &self.evictor {
            Evictor::Lru(lru) => usize::from(lru.cold()) + 1,
            Evictor::S3Fifo(_) => S3Fifo::bar(segment.kind == Kind::Fresh),
        };
        // Survivors may take three quarters of the segment; protected units take their share first.
        let mut by_life = [0; EPOCHS];
        let mut most_bytes = segment.disk_bytes / 4 * 3;
        for (place, entry) in known {
            let bytes = u64::from(unit_disk_bytes(entry.length));
            match place.provenance {
                Provenance::Put => most_bytes = most_bytes.saturating_sub(bytes),
                _ => by_life[usize::from(place.life)] += bytes,
            }
        }
        let mut kept_bytes: u64 = by_life[wanted..].iter().sum();
        let mut life = wanted;
        // Raise the threshold until the survivors fit …
        while kept_bytes > most_bytes {
            kept_bytes -= by_life[life];
            life += 1;
        }
        // … and fill the rest with units just below it.
        let spare_bytes = if life > wanted { most_bytes - kept_bytes } else { 0 };
        Threshold { life, spare_bytes }
    }

    fn renew(&mut self, row: u16, entry: &Entry) {
        let Self { table, segments, evictor: Evictor::S3Fifo(_), .. } = self else { return };
        let is_small = segments.is_of(row, Kind::Fresh);
        table.retain(Key::of(&entry.id), |place| {
            if place.segment == row && place.offset == entry.offset {
                place.life = S3Fifo::stayed(place.life, is_small);
            }
            true
        });
    }

    fn evict(&mut self, row: u16, entry: &Entry) {
        let key = Key::of(&entry.id);
        self.take_out(key, row, entry.offset);
        self.counts.evicted_units += 1;
        self.counts.evicted_bytes += u64::from(entry.length);
        let is_small = self.segments.is_of(row, Kind::Fresh);
        if let (Evictor::S3Fifo(s3), true) = (&mut self.evictor, is_small) {
            s3.gone(key);
        }
    }

    /// Completes the reclaiming of a segment: its file is gone, and these units, each with its
    /// length in bytes, are at a new location. All other units of the segment leave the index.
    pub fn moved(&mut self, segment: SegmentId, moved: &[(ChunkId, u32, Location)]) {
        let Some(old) = self.segments.row(segment) else { return };
        for (id, length, to) in moved {
            let Some(new) = self.segments.head(to.segment, Kind::Kept) else {
                self.counts.refused_units += 1;
                continue;
            };
            self.segments.written(new, *length);
            self.counts.rewritten_bytes += u64::from(*length);
            self.relocate(Key::of(id), old, new, to.offset);
        }
        if self.segments.at(old).is_some_and(|segment| segment.units > 0) {
            self.forget_all_of(old);
        }
        self.segments.remove(segment);
        self.victim.take_if(|victim| *victim == segment);
    }

    fn relocate(&mut self, key: Key, old: u16, new: u16, offset: u32) {
        self.settle(key);
        let Self { table, segments, .. } = self;
        let mut is_done = false;
        table.retain(key, |place| {
            if !is_done && place.segment == old {
                is_done = true;
                let bytes = class_bytes(place.class);
                segments.at_mut(old).into_iter().for_each(|it| it.subtract(place.life, bytes));
                segments.at_mut(new).into_iter().for_each(|it| it.add(place.life, bytes));
                (place.segment, place.offset) = (new, offset);
            }
            true
        });
    }

    /// Removes survivors that were lost in rewriting. This is rare, so the whole table is scanned.
    fn forget_all_of(&mut self, row: u16) {
        let before = self.table.units();
        let Self { table, evictor, .. } = self;
        if let Evictor::Lru(lru) = evictor {
            table.settle_all(lru.halvings);
        }
        table.retain_all(|place| {
            let is_gone = place.segment == row;
            if let (Evictor::Lru(lru), true) = (&mut *evictor, is_gone) {
                lru.leave(place.life, class_bytes(place.class));
            }
            !is_gone
        });
        self.counts.evicted_units += (before - self.table.units()) as u64;
    }

    /// Cancels the reclaiming of a segment. It keeps its units, except those that [`Index::judge`]
    /// removed, and may become the victim again.
    pub fn spare(&mut self, segment: SegmentId) {
        self.victim.take_if(|victim| *victim == segment);
    }

    /// Counts of the index's content and of evictions.
    pub fn report(&self) -> IndexReport {
        let bytes = self.table.bytes() + self.segments.bytes() + self.evictor.bytes();
        IndexReport {
            units: self.table.units() as u64,
            bytes_on_disk: self.segments.disk_bytes(),
            index_bytes: (bytes + size_of::<Self>()) as u64,
            segments: self.segments.len() as u64,
            ..self.counts
        }
    }
}
