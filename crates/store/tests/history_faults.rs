//! A history on disks that are full or failing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use store::{Error, History, HistoryReader, HistoryState};

use crate::common::Random;
use crate::common::faulty::Faulty;
use crate::common::history::{EPOCH, Unit, entries, entry, open, options};

const LARGE: u64 = 1 << 40;
const ROOM: usize = usize::MAX / 2;

fn healthy() -> Faulty {
    let disk = Faulty::default();
    disk.set_room(ROOM);
    disk
}

/// What is read of all that is held.
fn units(reader: &HistoryReader) -> Vec<Unit> {
    let HistoryState { first, end, .. } = reader.state();
    reader.read(first, (end - first) as u32).unwrap().unwrap()
}

#[test]
fn a_full_disk_costs_only_what_did_not_fit() {
    for room in (0..400_000).step_by(9_973) {
        let disk = healthy();
        let (mut history, reader) = open(Arc::new(disk.clone()), options(LARGE, false));
        disk.set_room(room);
        let (mut random, mut held, mut failed) = (Random(1), Vec::new(), 0);
        for round in 0..30 {
            if round == 20 {
                disk.set_room(ROOM);
            }
            let group = entries(&mut random, 150, 100);
            if let Err(error) = history.append(held.len() as u64, &group) {
                assert!(error.is_no_space() && error.may_retry(), "{error}");
                failed += 1;
            }
            held.extend_from_slice(&group[..history.state().end as usize - held.len()]);
            assert!(units(&reader) == held);
        }
        assert!(failed > 0 || room > 300_000, "{room}");
        history.sync().unwrap();
        drop((history, reader));
        let (_, reader) = open(Arc::new(disk), options(LARGE, false));
        assert!(units(&reader) == held);
    }
}

#[test]
fn a_failed_append_leaves_nothing_behind_the_units_that_replace_its_own() {
    let disk = healthy();
    let (mut history, reader) = open(Arc::new(disk.clone()), options(LARGE, false));
    let old: Vec<Unit> = (0..10).map(|seed| entry(seed, 100)).collect();
    // All but the last byte is written.
    disk.set_room(10 * 164 - 1);
    history.append(0, &old).unwrap_err();
    assert_eq!(reader.end(), 0);
    disk.set_room(ROOM);
    let new = [entry(50, 100)];
    history.append(0, &new).unwrap();
    drop((history, reader));
    let (_, reader) = open(Arc::new(disk), options(LARGE, false));
    assert_eq!(units(&reader), new);
}

#[test]
fn a_failed_reset_does_not_take_effect_later() {
    let disk = healthy();
    let (mut history, reader) = open(Arc::new(disk.clone()), options(LARGE, true));
    let mut held = entries(&mut Random(1), 1500, 40);
    history.append(0, &held).unwrap();
    history.sync().unwrap();
    disk.fails_sync.store(true, Ordering::Relaxed);
    assert!(matches!(history.reset([2; 16], 7), Err(Error::Io { .. })));
    assert_eq!(history.state(), HistoryState { epoch: EPOCH, first: 0, end: 1500 });
    held.push(entry(9, 9));
    history.append(1500, &held[1500..]).unwrap();
    history.sync().unwrap_err();
    assert!(units(&reader) == held);
    disk.fails_sync.store(false, Ordering::Relaxed);
    // As long as the new block is there, nothing can be confirmed.
    disk.fails_remove.store(true, Ordering::Relaxed);
    history.sync().unwrap_err();
    disk.fails_remove.store(false, Ordering::Relaxed);
    assert_eq!(history.sync().unwrap(), 1501);
    drop((history, reader));
    let (_, reader) = open(Arc::new(disk), options(LARGE, true));
    assert!(units(&reader) == held);
}

#[test]
fn an_unreadable_disk_is_no_damage() {
    let disk = healthy();
    let (mut history, reader) = open(Arc::new(disk.clone()), options(LARGE, false));
    history.append(0, &entries(&mut Random(1), 10, 40)).unwrap();
    disk.set_unreadable(Some("00000001-0000000000000000.history"));
    assert!(matches!(reader.read(0, 10), Err(Error::Io { .. })));
    assert!(matches!(reader.marks(0, 10, |_, _| {}), Err(Error::Io { .. })));
    disk.set_unreadable(None);
    assert_eq!(units(&reader).len(), 10);
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Append(u16),
    Truncate(u16),
    Reset(u16),
    Sync,
    /// The disk has room for this many bytes; is it possible to make files, names, removals
    /// durable?
    Fault(u32, bool, bool, bool),
    Repair,
}

fn act() -> impl Strategy<Value = Act> {
    let fault = (0u32..60_000, any::<bool>(), any::<bool>(), any::<bool>());
    prop_oneof![
        6 => (0u16..900).prop_map(Act::Append),
        2 => (0u16..2500).prop_map(Act::Truncate),
        1 => (0u16..5000).prop_map(Act::Reset),
        2 => Just(Act::Sync),
        2 => fault.prop_map(|(room, a, b, c)| Act::Fault(room, a, b, c)),
        2 => Just(Act::Repair),
    ]
}

/// A history on a failing disk, and the units that it should hold in spite of all failures.
struct Pair {
    disk: Faulty,
    history: History,
    reader: HistoryReader,
    epoch: [u8; 16],
    first: u64,
    units: Vec<Unit>,
    random: Random,
}

impl Pair {
    fn run(&mut self, act: Act) {
        let end = self.first + self.units.len() as u64;
        match act {
            Act::Append(count) => {
                let units = entries(&mut self.random, u64::from(count), 30);
                let is_done = self.history.append(end, &units).is_ok();
                let done = (self.history.state().end - end) as usize;
                assert!(done <= units.len() && (!is_done || done == units.len()));
                self.units.extend_from_slice(&units[..done]);
            }
            Act::Truncate(count) => {
                let wanted = end.saturating_sub(u64::from(count)).max(self.first);
                let is_done = self.history.truncate(wanted).is_ok();
                let end = self.history.state().end;
                assert!(end >= wanted && (!is_done || end == wanted));
                self.units.truncate((end - self.first) as usize);
            }
            Act::Reset(first) => {
                let drawn = self.random.next() as u8;
                // A new epoch is another one.
                let epoch = [if self.epoch[0] == drawn { !drawn } else { drawn }; 16];
                let is_done = self.history.reset(epoch, u64::from(first)).is_ok();
                let state = self.history.state();
                assert!(!is_done || state.epoch == epoch);
                if state.epoch == epoch {
                    (self.epoch, self.first, self.units) = (epoch, u64::from(first), Vec::new());
                }
            }
            Act::Sync => {
                let synced = self.history.sync();
                assert!(synced.is_err() || synced.is_ok_and(|synced| synced == end));
            }
            Act::Fault(room, sync, names, remove) => self.set(room as usize, sync, names, remove),
            Act::Repair => self.set(ROOM, false, false, false),
        }
        self.check();
    }

    fn set(&self, room: usize, sync: bool, names: bool, remove: bool) {
        self.disk.set_room(room);
        self.disk.fails_sync.store(sync, Ordering::Relaxed);
        self.disk.fails_names.store(names, Ordering::Relaxed);
        self.disk.fails_remove.store(remove, Ordering::Relaxed);
    }

    fn check(&self) {
        let end = self.first + self.units.len() as u64;
        let expected = HistoryState { epoch: self.epoch, first: self.first, end };
        assert_eq!(self.reader.state(), expected);
        assert!(units(&self.reader) == self.units);
    }
}

/// Without optimisation each case takes thirty times as long, so fewer are tested.
const CASES: u32 = if cfg!(debug_assertions) { 24 } else { 500 };

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_held_after_any_failures_is_held_at_the_next_start(
        acts in proptest::collection::vec(act(), 1..30),
    ) {
        let disk = healthy();
        let (history, reader) = open(Arc::new(disk.clone()), options(LARGE, false));
        let (units, random) = (Vec::new(), Random(7));
        let mut pair = Pair { disk, history, reader, epoch: EPOCH, first: 0, units, random };
        for act in acts {
            pair.run(act);
        }
        pair.run(Act::Repair);
        pair.history.sync().unwrap();
        (pair.history, pair.reader) = open(Arc::new(pair.disk.clone()), options(LARGE, false));
        pair.check();
        pair.run(Act::Append(2000));
        assert_eq!(pair.history.sync().unwrap(), pair.reader.end());
    }
}
