//! A model of a log: it assigns locations as the real one does, but keeps no bytes. With it the
//! index can be run on a trace of names and compared with an exact LRU.

use std::collections::{BTreeMap, HashMap};

use store::{Entry, Index, Location, Policy, Provenance, SegmentId, unit_disk_bytes};
use wire::ChunkId;

/// The overhead of a unit and of a segment on disk: see `segment.rs`.
const FOOTER_ENTRY: u32 = 40;
const SEGMENT_OVERHEAD: u32 = 64;

#[derive(Default)]
pub struct PaperLog {
    segments: BTreeMap<SegmentId, Vec<Entry>>,
    heads: [Option<(SegmentId, u32)>; 3],
    next: u32,
    segment_bytes: u32,
    /// Bytes written to segments of fresh units, of survivors, and of units on probation.
    pub written_bytes: [u64; 3],
}

impl PaperLog {
    pub fn new(segment_bytes: u32) -> Self {
        Self { segment_bytes, next: 1, ..Self::default() }
    }

    pub fn append(&mut self, head: usize, entry: Entry) -> Location {
        let bytes = unit_disk_bytes(entry.length);
        let fits = |(_, used): &(SegmentId, u32)| used + bytes + FOOTER_ENTRY <= self.segment_bytes;
        let (segment, used) = self.heads[head].filter(fits).unwrap_or_else(|| {
            self.next += 1;
            (SegmentId(self.next), SEGMENT_OVERHEAD)
        });
        let entries = self.segments.entry(segment).or_default();
        let offset = 32
            + entries
                .iter()
                .last()
                .map_or(0, |last: &Entry| last.offset - 32 + unit_disk_bytes(last.length));
        entries.push(Entry { offset, ..entry });
        self.heads[head] = Some((segment, used + bytes + FOOTER_ENTRY));
        self.written_bytes[head] += u64::from(bytes);
        Location { segment, offset }
    }
}

/// An index and a model of its log.
pub struct PaperStore {
    pub index: Index,
    pub log: PaperLog,
    pub hits: u64,
    pub uses: u64,
}

impl PaperStore {
    pub fn new(budget_bytes: u64, policy: Policy) -> Self {
        let index = Index::new(budget_bytes, policy);
        let log = PaperLog::new(index.segment_bytes());
        Self { index, log, hits: 0, uses: 0 }
    }

    /// Uses a unit; stores it first if it is not held.
    pub fn use_unit(&mut self, id: ChunkId, length: u32) {
        self.uses += 1;
        if self.index.holds(&id) {
            self.hits += 1;
            self.index.touch(&id);
            return;
        }
        let entry = Entry { id, length, offset: 0, provenance: Provenance::Relayed };
        let at = self.log.append(0, entry);
        self.index.insert(&id, at, length, entry.provenance);
        self.reclaim();
    }

    /// Overhears a unit without a request; stores it if it is not held.
    pub fn hear(&mut self, id: ChunkId, length: u32) {
        if self.index.holds(&id) {
            return;
        }
        let entry = Entry { id, length, offset: 0, provenance: Provenance::Overheard };
        let at = self.log.append(2, entry);
        self.index.insert_on_probation(&id, at, length);
        self.reclaim();
    }

    pub fn reclaim(&mut self) {
        while let Some(victim) = self.index.victim() {
            let entries = self.log.segments[&victim].clone();
            let keep = self.index.judge(victim, &entries);
            let moved: Vec<_> =
                keep.iter().map(|it| (it.id, it.length, self.log.append(1, *it))).collect();
            self.log.segments.remove(&victim);
            self.index.moved(victim, &moved);
        }
    }

    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.uses as f64
    }

    /// Bytes written for each byte stored (write amplification).
    pub fn write_amplification(&self) -> f64 {
        let [fresh, kept, _] = self.log.written_bytes;
        (fresh + kept) as f64 / fresh as f64
    }
}

/// Exact LRU, limited in bytes.
pub struct ExactLru {
    budget_bytes: u64,
    used_bytes: u64,
    clock: u64,
    units: HashMap<ChunkId, (u64, u32)>,
    order: BTreeMap<u64, ChunkId>,
    pub hits: u64,
    pub uses: u64,
}

impl ExactLru {
    pub fn new(budget_bytes: u64) -> Self {
        let (units, order) = (HashMap::new(), BTreeMap::new());
        Self { budget_bytes, used_bytes: 0, clock: 0, units, order, hits: 0, uses: 0 }
    }

    pub fn use_unit(&mut self, id: ChunkId, length: u32) {
        self.uses += 1;
        self.clock += 1;
        if let Some((before, _)) = self.units.insert(id, (self.clock, length)) {
            self.hits += 1;
            self.order.remove(&before);
        } else {
            self.used_bytes += u64::from(unit_disk_bytes(length) + FOOTER_ENTRY);
        }
        self.order.insert(self.clock, id);
        while self.used_bytes > self.budget_bytes {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            let (_, length) = self.units.remove(&oldest).unwrap();
            self.used_bytes -= u64::from(unit_disk_bytes(length) + FOOTER_ENTRY);
        }
    }

    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.uses as f64
    }
}
