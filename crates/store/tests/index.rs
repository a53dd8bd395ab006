//! The index compared with a plain map, and its policies with an exact LRU.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use store::{Index, Location, Policy, Provenance, SegmentId};

use crate::common::paper::{ExactLru, PaperStore};
use crate::common::{Random, Zipf, name_number};

/// The model's state of a unit: all its locations.
type Model = BTreeMap<u64, BTreeSet<Location>>;

#[derive(Clone, Debug)]
enum Act {
    Insert { name: u64, segment: u32 },
    Touch { name: u64 },
    Remove { name: u64 },
    Reclaim { is_moving: bool },
}

fn act() -> impl Strategy<Value = Act> {
    let name = 0..200u64;
    prop_oneof![
        6 => (name.clone(), 0..3u32).prop_map(|(name, segment)| Act::Insert { name, segment }),
        3 => name.clone().prop_map(|name| Act::Touch { name }),
        2 => name.prop_map(|name| Act::Remove { name }),
        1 => any::<bool>().prop_map(|is_moving| Act::Reclaim { is_moving }),
    ]
}

/// An index with a small budget, which is soon used up; the model; and a counter for offsets.
struct Pair {
    index: Index,
    model: Model,
    entries: BTreeMap<SegmentId, Vec<store::Entry>>,
    newest: u32,
    next_offset: u32,
}

const LENGTH: u32 = 8000;

impl Pair {
    fn new(policy: Policy) -> Self {
        let index = Index::new(1 << 20, policy);
        let (model, entries) = (Model::new(), BTreeMap::new());
        Self { index, model, entries, newest: 1, next_offset: 32 }
    }

    fn place(&mut self, segment: u32) -> Location {
        self.newest += u32::from(segment == 0);
        let offset = self.next_offset;
        self.next_offset = (self.next_offset + store::unit_disk_bytes(LENGTH)) % (1 << 24);
        Location { segment: SegmentId(self.newest), offset }
    }

    fn enter(&mut self, name: u64, at: Location) {
        let entry = store::Entry {
            id: name_number(name),
            length: LENGTH,
            offset: at.offset,
            provenance: Provenance::Own,
        };
        self.entries.entry(at.segment).or_default().push(entry);
        self.model.entry(name).or_default().insert(at);
    }

    fn run(&mut self, act: &Act) {
        match *act {
            Act::Insert { name, segment } => {
                // The index returns no more candidates than its limit, so more copies cannot be
                // checked.
                if self.model.get(&name).is_some_and(|places| places.len() == 4) {
                    return;
                }
                let at = self.place(segment);
                self.index.insert(&name_number(name), at, LENGTH, Provenance::Own);
                self.enter(name, at);
            }
            Act::Touch { name } => self.index.touch(&name_number(name)),
            Act::Remove { name } => {
                let first = self.model.get_mut(&name).and_then(BTreeSet::pop_first);
                let at = first.unwrap_or(Location { segment: SegmentId(1), offset: 16 });
                assert_eq!(self.index.remove(&name_number(name), at), first.is_some());
            }
            Act::Reclaim { is_moving } => self.reclaim(is_moving),
        }
    }

    fn reclaim(&mut self, is_moving: bool) {
        let Some(victim) = self.index.victim() else { return };
        assert!(self.index.victim().is_none());
        let entries = self.entries[&victim].clone();
        let keep = self.index.judge(victim, &entries);
        let of = |entry: &store::Entry| Location { segment: victim, offset: entry.offset };
        let survives = |at: &Location| keep.iter().any(|entry| of(entry) == *at);
        for places in self.model.values_mut() {
            places.retain(|at| at.segment != victim || survives(at));
        }
        if !is_moving {
            return self.index.spare(victim);
        }
        // One survivor cannot be read.
        let moved: Vec<_> = keep
            .iter()
            .skip(1)
            .map(|entry| {
                self.newest += 1;
                (entry.id, LENGTH, Location { segment: SegmentId(self.newest), offset: 32 })
            })
            .collect();
        self.entries.remove(&victim);
        for (name, places) in &mut self.model {
            let id = name_number(*name);
            let before = places.len();
            places.retain(|at| at.segment != victim);
            let new = moved.iter().filter(|it| it.0 == id).map(|it| it.2);
            places.extend(new.take(before));
        }
        for (id, length, at) in &moved {
            let provenance = Provenance::Own;
            let entry = store::Entry { id: *id, length: *length, offset: at.offset, provenance };
            self.entries.entry(at.segment).or_default().push(entry);
        }
        self.index.moved(victim, &moved);
    }

    fn compare(&self) {
        for (name, places) in &self.model {
            let found: BTreeSet<Location> = self.index.locate(&name_number(*name)).collect();
            assert_eq!(&found, places, "{name}");
            assert_eq!(self.index.holds(&name_number(*name)), !places.is_empty());
        }
        let units: usize = self.model.values().map(BTreeSet::len).sum();
        assert_eq!(self.index.report().units, units as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn it_finds_what_a_plain_map_would(
        acts in proptest::collection::vec(act(), 1..600),
        is_lru: bool,
    ) {
        let mut pair = Pair::new(if is_lru { Policy::Lru } else { Policy::S3Fifo });
        for act in &acts {
            pair.run(act);
        }
        pair.compare();
    }
}

const UNIT: u32 = 8 << 10;
const BUDGET: u64 = 64 << 20;

/// The hit ratios of exact LRU, LRU and S3-FIFO for the same sequence of names.
fn race(mut trace: impl Iterator<Item = u64>) -> [f64; 3] {
    let mut exact = ExactLru::new(BUDGET);
    let mut lru = PaperStore::new(BUDGET, Policy::Lru);
    let mut s3 = PaperStore::new(BUDGET, Policy::S3Fifo);
    for name in trace.by_ref().map(name_number) {
        exact.use_unit(name, UNIT);
        lru.use_unit(name, UNIT);
        s3.use_unit(name, UNIT);
    }
    for store in [&lru, &s3] {
        let report = store.index.report();
        assert!(report.bytes_on_disk <= BUDGET && report.refused_units == 0, "{report:?}");
        println!("amplification {:.2}", store.write_amplification());
    }
    let ratios = [exact.hit_ratio(), lru.hit_ratio(), s3.hit_ratio()];
    println!("exact, lru, s3: {ratios:.4?}");
    ratios
}

#[test]
fn on_popularity_alone_lru_is_near_exact_and_s3_fifo_is_better() {
    let zipf = Zipf::new(75_000, 0.9);
    let mut random = Random(1);
    let [exact, lru, s3] = race((0..300_000).map(|_| zipf.draw(&mut random)));
    assert!(lru > exact - 0.02 && lru < exact + 0.03);
    assert!(s3 > lru);
}

#[test]
fn a_scan_hurts_lru_and_not_s3_fifo() {
    let zipf = Zipf::new(10_000, 0.8);
    let mut random = Random(2);
    let mut scanned = 1_000_000;
    let [exact, lru, s3] = race((0..300_000).map(|at| {
        // Every other use is of a name that occurs only once.
        if at % 2 == 0 {
            return zipf.draw(&mut random);
        }
        scanned += 1;
        scanned
    }));
    assert!((lru - exact).abs() < 0.02);
    assert!(s3 > lru + 0.02);
}

#[test]
fn what_is_used_all_the_time_stays_whatever_comes() {
    for policy in [Policy::Lru, Policy::S3Fifo] {
        let mut store = PaperStore::new(BUDGET, policy);
        for name in 0..50_000u64 {
            for favourite in 0..4 {
                store.use_unit(name_number(favourite), UNIT);
            }
            store.use_unit(name_number(1000 + name), UNIT);
        }
        assert_eq!(store.hits, 200_000 - 4);
    }
}

#[test]
fn reclaiming_gets_somewhere_though_everything_was_just_used() {
    for policy in [Policy::Lru, Policy::S3Fifo] {
        let mut store = PaperStore::new(8 << 20, policy);
        for name in 0..5000u64 {
            store.use_unit(name_number(name), UNIT);
            for held in (name.saturating_sub(900)..name).step_by(11) {
                store.index.touch(&name_number(held));
            }
            assert!(store.index.report().bytes_on_disk <= 8 << 20);
        }
        assert!(store.write_amplification() <= 4.5, "{}", store.write_amplification());
    }
}

#[test]
fn a_unit_takes_less_than_sixteen_bytes_of_memory() {
    let worst = |policy| {
        let mut index = Index::new(9 << 30, policy);
        let mut worst: f64 = 0.0;
        for number in 0..1_100_000u32 {
            let (segment, at) = (SegmentId(number / 4000), number % 4000);
            let place = Location { segment, offset: 32 + at * 8256 };
            index.insert(&name_number(number.into()), place, UNIT, Provenance::Overheard);
            if number >= 900_000 && number % 1000 == 0 {
                let report = index.report();
                worst = worst.max(report.index_bytes as f64 / report.units as f64);
            }
        }
        worst
    };
    for policy in [Policy::Lru, Policy::S3Fifo] {
        let worst = worst(policy);
        println!("{policy:?}: {worst:.2} bytes a unit at worst, around a million units");
        assert!(worst < 16.0);
    }
}

/// Writes units as a log does, and reclaims when the index asks for it.
struct Writer {
    index: Index,
    entries: BTreeMap<SegmentId, Vec<store::Entry>>,
    /// The segments of fresh and of kept units, and the bytes in each.
    heads: [(SegmentId, u32); 2],
    newest: u32,
}

impl Writer {
    fn new(policy: Policy, budget: u64) -> Self {
        let index = Index::new(budget, policy);
        let heads = [(SegmentId(1), 32), (SegmentId(2), 32)];
        Self { index, entries: BTreeMap::new(), heads, newest: 2 }
    }

    fn place(&mut self, kind: usize, entry: store::Entry) -> Location {
        let bytes = store::unit_disk_bytes(LENGTH);
        if self.heads[kind].1 + bytes > self.index.segment_bytes() {
            self.newest += 1;
            self.heads[kind] = (SegmentId(self.newest), 32);
        }
        let (segment, end) = &mut self.heads[kind];
        let at = Location { segment: *segment, offset: *end };
        *end += bytes;
        self.entries
            .entry(at.segment)
            .or_default()
            .push(store::Entry { offset: at.offset, ..entry });
        at
    }

    fn write(&mut self, name: u64, provenance: Provenance) {
        let id = name_number(name);
        let at = self.place(0, store::Entry { id, length: LENGTH, offset: 0, provenance });
        self.index.insert(&id, at, LENGTH, provenance);
        while let Some(victim) = self.index.victim() {
            let entries = self.entries.remove(&victim).unwrap_or_default();
            let kept = self.index.judge(victim, &entries);
            let moved: Vec<_> =
                kept.into_iter().map(|it| (it.id, it.length, self.place(1, it))).collect();
            self.index.moved(victim, &moved);
        }
    }
}

/// Half the budget is protected; four times the budget is written to the other half.
#[test]
fn what_is_kept_survives_every_reclaiming_and_room_is_made_all_the_same() {
    const UNITS: u64 = 2048;
    for policy in [Policy::S3Fifo, Policy::Lru] {
        let budget = UNITS * u64::from(store::unit_disk_bytes(LENGTH));
        let mut writer = Writer::new(policy, budget);
        let kept = UNITS / 2;
        for name in 0..kept {
            writer.write(name, Provenance::Own);
            assert!(writer.index.keep(&name_number(name)));
        }
        for name in kept..kept + 4 * UNITS {
            writer.write(name, Provenance::Own);
            assert!(writer.index.report().bytes_on_disk <= budget, "{policy:?}");
        }
        assert!((0..kept).all(|name| writer.index.holds(&name_number(name))), "{policy:?}");
        writer.index.keep_nothing();
        for name in kept + 4 * UNITS..kept + 8 * UNITS {
            writer.write(name, Provenance::Own);
            // Units that are used twice also have a place in the main queue.
            (0..2).for_each(|_| writer.index.touch(&name_number(name)));
        }
        let left = (0..kept).filter(|name| writer.index.holds(&name_number(*name))).count() as u64;
        assert!(left < kept / 10, "{policy:?}: {left}");
    }
}

/// Inserts units, named by numbers, into a segment.
fn fill(index: &mut Index, segment: u32, names: std::ops::Range<u64>) -> Vec<store::Entry> {
    let offsets = (0..).map(|at| 32 + at * store::unit_disk_bytes(LENGTH));
    let provenance = Provenance::Own;
    let entry =
        |(name, offset)| store::Entry { id: name_number(name), length: LENGTH, offset, provenance };
    let entries: Vec<_> = names.zip(offsets).map(entry).collect();
    for it in &entries {
        let at = Location { segment: SegmentId(segment), offset: it.offset };
        index.insert(&it.id, at, LENGTH, provenance);
    }
    entries
}

/// S3-FIFO (Yang et al., algorithm 1): `evictS` adds to the ghost queue, `evictM` does not.
#[test]
fn a_unit_evicted_from_the_small_queue_leaves_a_ghost_and_one_from_the_main_queue_none() {
    let mut index = Index::new(64 << 20, Policy::S3Fifo);
    let first = fill(&mut index, 1, 0..3);
    assert_eq!(index.judge(SegmentId(1), &first), []);
    let again = fill(&mut index, 2, 0..4);
    let kept = index.judge(SegmentId(2), &again);
    assert_eq!(kept, again[..3], "the fourth has no ghost");
    let to = |it: &store::Entry| Location { segment: SegmentId(3), offset: it.offset };
    let moved: Vec<_> = kept.iter().map(|it| (it.id, LENGTH, to(it))).collect();
    index.moved(SegmentId(2), &moved);
    assert_eq!(index.judge(SegmentId(3), &kept), []);
    let after = fill(&mut index, 4, 0..3);
    assert_eq!(index.judge(SegmentId(4), &after), []);
}
