//! Simulates a power cut at every write, and checks that everything confirmed is still there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use store::{
    Catalogue, CatalogueOptions, Change, Files, Index, Log, LogOptions, Memory, Policy, Unit,
};
use wire::{ChunkId, ObjectKey, RecordId};

use crate::common::recorder::{Event, Recorder, cut};
use crate::common::{Random, unit};

/// What the store has confirmed so far.
#[derive(Clone, Debug)]
enum Mark {
    /// A sync has returned: these units must survive from now on.
    Durable(Vec<ChunkId>),
    /// These units may be evicted from now on.
    Released(Vec<ChunkId>),
    /// A sync of the catalogue begins; it would make this state durable.
    Syncing(Rows),
    /// The sync has returned.
    Synced,
}

type Rows = BTreeMap<ObjectKey, (Vec<u8>, Vec<(RecordId, u32, Vec<u8>)>)>;

const BUDGET: u64 = 1 << 20;
const OPTIONS: LogOptions = LogOptions { segment_bytes: Some(24 << 10), seed: 7 };
const CATALOGUE: CatalogueOptions =
    CatalogueOptions { cache_bytes: 1 << 20, budget_bytes: 200_000 };

/// A store on recording files.
struct Workload {
    recorder: Arc<Recorder<Mark>>,
    policy: Policy,
    index: Index,
    log: Log,
    catalogue: Catalogue,
    random: Random,
    units: BTreeMap<ChunkId, Bytes>,
    unsynced: BTreeSet<ChunkId>,
    rows: Rows,
}

impl Workload {
    fn new(policy: Policy) -> Self {
        let recorder = Arc::new(Recorder::new());
        let mut index = Index::new(BUDGET, policy);
        let (log, _) = Log::open(recorder.clone(), OPTIONS, &mut index).unwrap();
        let catalogue = Catalogue::open(recorder.clone(), CATALOGUE).unwrap();
        Self {
            recorder,
            policy,
            index,
            log,
            catalogue,
            random: Random(3),
            units: BTreeMap::new(),
            unsynced: BTreeSet::new(),
            rows: Rows::new(),
        }
    }

    fn append(&mut self) {
        let lengths: Vec<u64> =
            (0..1 + self.random.below(6)).map(|_| 1 + self.random.below(12_000)).collect();
        let units: Vec<Unit> =
            lengths.iter().map(|length| unit(self.random.next(), *length as usize)).collect();
        let places = self.log.append(&units).unwrap();
        for (unit, at) in units.iter().zip(places) {
            self.index.insert(&unit.id, at, unit.bytes.len() as u32, unit.provenance);
            self.units.insert(unit.id, unit.bytes.clone());
            self.unsynced.insert(unit.id);
        }
    }

    fn sync(&mut self) {
        self.log.sync().unwrap();
        let durable = std::mem::take(&mut self.unsynced).into_iter().collect();
        self.recorder.mark(Mark::Durable(durable));
    }

    fn reclaim(&mut self) {
        while let Some(victim) = self.index.victim() {
            let entries = self.log.entries(victim).unwrap();
            let keep = self.index.judge(victim, &entries);
            let leaves = |id: &ChunkId| !keep.iter().any(|kept| kept.id == *id);
            let released: Vec<_> = entries.iter().map(|it| it.id).filter(leaves).collect();
            released.iter().for_each(|id| {
                self.unsynced.remove(id);
            });
            self.recorder.mark(Mark::Released(released));
            let moved = self.log.rewrite(victim, &keep).unwrap();
            assert_eq!(moved.len(), keep.len());
            self.index.moved(victim, &moved);
        }
    }

    fn touch(&mut self) {
        for id in self.units.keys() {
            if self.random.below(5) == 0 {
                self.index.touch(id);
            }
        }
    }

    fn change_row(&mut self) {
        let key = ObjectKey([self.random.below(12) as u8; 32]);
        if self.random.below(6) == 0 {
            self.rows.remove(&key);
            return self.catalogue.apply(&[Change::Remove { key }]).unwrap();
        }
        let record = RecordId([self.random.next() as u8; 16]);
        let owned =
            |id: &RecordId| self.rows.values().any(|row| row.1.iter().any(|it| it.0 == *id));
        if owned(&record) {
            return;
        }
        let bytes = |random: &mut Random| unit(random.next(), random.below(7000) as usize);
        let row = bytes(&mut self.random).bytes.to_vec();
        let mut segments = Vec::new();
        for number in 0..self.random.below(3) as u32 {
            let bytes = bytes(&mut self.random).bytes.to_vec();
            self.catalogue
                .apply(&[Change::PutSegment { record, number, bytes: bytes.clone() }])
                .unwrap();
            segments.push((record, number, bytes));
        }
        let put = Change::Put { key, row: row.clone(), records: vec![record] };
        self.catalogue.apply(&[put]).unwrap();
        self.rows.insert(key, (row, segments));
    }

    fn sync_catalogue(&mut self) {
        self.recorder.mark(Mark::Syncing(self.rows.clone()));
        self.catalogue.sync().unwrap();
        self.recorder.mark(Mark::Synced);
    }

    /// An orderly end and a new start.
    fn restart(&mut self) {
        self.sync();
        self.sync_catalogue();
        let other: Arc<dyn Files> = Arc::new(Memory::new());
        // The old handles are dropped before the new ones are opened.
        self.catalogue = Catalogue::open(other.clone(), CATALOGUE).unwrap();
        self.log = Log::open(other, OPTIONS, &mut Index::new(BUDGET, Policy::Lru)).unwrap().0;
        self.index = Index::new(BUDGET, self.policy);
        self.log = Log::open(self.recorder.clone(), OPTIONS, &mut self.index).unwrap().0;
        self.catalogue = Catalogue::open(self.recorder.clone(), CATALOGUE).unwrap();
    }

    fn run(&mut self, steps: usize) {
        for step in 0..steps {
            self.append();
            self.reclaim();
            if step % 3 == 0 {
                self.change_row();
                self.touch();
            }
            if step % 5 == 4 {
                self.sync();
            }
            if step % 17 == 16 {
                self.sync_catalogue();
            }
            if step % 30 == 29 {
                self.restart();
            }
        }
    }
}

/// The requirements at a cut: the units that must be there, and the allowed states of the
/// catalogue.
#[derive(Default)]
struct Promise {
    durable: BTreeSet<ChunkId>,
    synced: Rows,
    syncing: Option<Rows>,
    is_catalogue_begun: bool,
}

impl Promise {
    fn hear(&mut self, mark: &Mark) {
        match mark {
            Mark::Durable(ids) => self.durable.extend(ids),
            Mark::Released(ids) => ids.iter().for_each(|id| {
                self.durable.remove(id);
            }),
            Mark::Syncing(rows) => self.syncing = Some(rows.clone()),
            Mark::Synced => {
                self.synced = self.syncing.take().unwrap();
                self.is_catalogue_begun = true;
            }
        }
    }

    fn check(&self, files: Arc<dyn Files>, units: &BTreeMap<ChunkId, Bytes>, context: &str) {
        self.check_log(files.clone(), units, context);
        let catalogue = Catalogue::open(files, CATALOGUE).unwrap();
        let report = catalogue.report();
        assert!(
            !(self.is_catalogue_begun && report.renamed_files > 0),
            "{context}: a new one was created"
        );
        let is_now = |rows: &Rows| holds(&catalogue, rows);
        let is_held = is_now(&self.synced) || self.syncing.as_ref().is_some_and(is_now);
        assert!(is_held, "{context}: the catalogue is in no state that was ever synced");
    }

    fn check_log(&self, files: Arc<dyn Files>, units: &BTreeMap<ChunkId, Bytes>, context: &str) {
        let mut index = Index::new(BUDGET, Policy::Lru);
        let (mut log, _) = Log::open(files, OPTIONS, &mut index).unwrap();
        for (id, bytes) in units {
            let lengths = [bytes.len() as u32];
            let read = |at| log.reader().read(at, &lengths).ok();
            let mut found = index.locate(id).filter_map(read).map(|units| units[0].clone());
            let found = found.find(|(name, _)| name == id);
            let is_right = found.as_ref().is_none_or(|(_, found)| found == bytes);
            assert!(is_right, "{context}: other bytes under {id}");
            assert!(found.is_some() || !self.durable.contains(id), "{context}: lost {id}");
        }
        // The store can be used further.
        while let Some(victim) = index.victim() {
            let keep = index.judge(victim, &log.entries(victim).unwrap());
            let moved = log.rewrite(victim, &keep).unwrap();
            index.moved(victim, &moved);
        }
        let next = unit(1, 500);
        let at = log.append(std::slice::from_ref(&next)).unwrap()[0];
        log.sync().unwrap();
        assert_eq!(log.reader().read(at, &[500]).unwrap(), [(next.id, next.bytes)]);
    }
}

fn holds(catalogue: &Catalogue, rows: &Rows) -> bool {
    let reader = catalogue.reader();
    let mut found = BTreeMap::new();
    reader.for_each(None, |key, row| found.insert(key, row.to_vec()).is_none()).unwrap();
    let has = |(record, number, bytes): &(RecordId, u32, Vec<u8>)| {
        reader.segment(record, *number).unwrap().as_ref() == Some(bytes)
    };
    found.len() == rows.len()
        && rows
            .iter()
            .all(|(key, (row, segments))| found.get(key) == Some(row) && segments.iter().all(has))
}

/// Without optimisation each cut takes thirty times as long, so fewer are tested.
const OUTCOMES: u64 = if cfg!(debug_assertions) { 1 } else { 6 };

fn cut_everywhere(policy: Policy) {
    let mut workload = Workload::new(policy);
    workload.run(70);
    let report = workload.index.report();
    assert!(report.evicted_units > 20 && report.rewritten_bytes > 10_000, "{report:?}");
    assert_eq!(workload.catalogue.report().evicted_rows, 0);
    let trace = workload.recorder.trace();
    let mut promise = Promise::default();
    let mut cuts = 0;
    for at in 0..=trace.len() {
        match trace.get(at) {
            Some(Event::Mark(mark)) => promise.hear(mark),
            // A cut within a write is covered by the cases in which the following cut tears it.
            Some(_) | None => {
                for seed in 0..OUTCOMES {
                    let seed = at as u64 * OUTCOMES + seed;
                    let memory = cut(&trace[..at], seed);
                    let context = format!("cut at {at} of {}, seed {seed}", trace.len());
                    promise.check(Arc::new(memory), &workload.units, &context);
                    cuts += 1;
                }
            }
        }
    }
    println!("{cuts} power cuts over {} calls; {report:?}", trace.len());
}

#[test]
fn with_lru_what_was_promised_survives_a_power_cut_at_any_write() {
    cut_everywhere(Policy::Lru);
}

#[test]
fn with_s3_fifo_what_was_promised_survives_a_power_cut_at_any_write() {
    cut_everywhere(Policy::S3Fifo);
}
