//! The history in normal use, and compared with a list in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use proptest::prelude::*;
use store::{
    Disk, Error, File, Files, History, HistoryReader, HistoryState, Mark, Memory, UNIT_BYTES_MAX,
};

use crate::common::history::{EPOCH, Unit, entries, entry, held, open, options};
use crate::common::{Random, unit};

const LARGE: u64 = 1 << 40;
/// Units in a block.
const BLOCK: u64 = 1024;

#[test]
fn what_was_appended_is_read_back_and_held_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    for (is_disk, is_enciphered) in [(false, false), (false, true), (true, true)] {
        let memory = Memory::new();
        let files = || -> Arc<dyn Files> {
            if is_disk {
                Arc::new(Disk::open(directory.path()).unwrap())
            } else {
                Arc::new(memory.clone())
            }
        };
        let units = entries(&mut Random(1), 2500, 60);
        let (mut history, reader) = open(files(), options(LARGE, is_enciphered));
        assert_eq!(history.state(), HistoryState { epoch: EPOCH, first: 0, end: 0 });
        for group in units.chunks(700) {
            history.append(history.state().end, group).unwrap();
        }
        assert_eq!(reader.read(0, 2500).unwrap().unwrap(), units);
        assert_eq!(history.sync().unwrap(), 2500);
        drop((history, reader));
        let (history, reader, state) =
            History::open(files(), options(LARGE, is_enciphered), [9; 16]).unwrap();
        assert_eq!(state, HistoryState { epoch: EPOCH, first: 0, end: 2500 });
        for (position, count) in [(0, 2500), (1023, 2), (1000, 1500), (2499, 1), (7, 0)] {
            let read = reader.read(position, count).unwrap().unwrap();
            assert_eq!(read, units[position as usize..][..count as usize]);
        }
        for (position, count) in [(0, 2501), (2500, 1), (u64::MAX, 1), (u64::MAX, u32::MAX)] {
            assert_eq!(reader.read(position, count).unwrap(), None);
        }
        check_marks(&reader, &units);
        drop(history);
    }
}

fn check_marks(reader: &HistoryReader, units: &[Unit]) {
    let end = units.len() as u64;
    for (from, to) in [(0, u64::MAX), (0, end), (1000, 1030), (1024, 2048), (5, 5), (end, end)] {
        let mut marks = Vec::new();
        reader.marks(from, to, |position, mark| marks.push((position, mark))).unwrap();
        let expected = (0..).zip(units).filter(|(at, _)| (from..to).contains(at));
        let expected: Vec<(u64, Mark)> = expected.map(|(at, unit)| (at, unit.0)).collect();
        assert_eq!(marks, expected, "{from}..{to}");
    }
}

#[test]
fn units_of_any_length_are_held_and_longer_ones_refused() {
    let (mut history, reader) = open(Arc::new(Memory::new()), options(LARGE, false));
    let longest = entry(1, UNIT_BYTES_MAX as usize);
    let units = vec![longest.clone(), entry(2, 0), entry(3, 1)];
    history.append(0, &units).unwrap();
    assert_eq!(reader.read(0, 3).unwrap().unwrap(), units);
    let too_long = [entry(4, 5), entry(5, UNIT_BYTES_MAX as usize + 1)];
    assert!(matches!(history.append(3, &too_long), Err(Error::TooLong { .. })));
    assert_eq!(history.state().end, 3);
    // More than one read may take.
    history.append(3, &vec![longest; 1021]).unwrap();
    assert!(matches!(reader.read(0, 1024), Err(Error::TooLong { .. })));
    assert_eq!(reader.read(0, 1000).unwrap().unwrap().len(), 1000);
}

#[test]
fn the_length_in_a_mark_is_that_of_the_bytes() {
    let (mut history, reader) = open(Arc::new(Memory::new()), options(LARGE, false));
    let bytes = Bytes::from_static(b"five!");
    history.append(0, &[(Mark { length: 77, ..Mark::default() }, bytes)]).unwrap();
    assert_eq!(reader.read(0, 1).unwrap().unwrap()[0].0.length, 5);
}

#[test]
fn units_are_appended_at_the_end_only() {
    let (mut history, reader) = open(Arc::new(Memory::new()), options(LARGE, false));
    history.append(0, &[entry(1, 10)]).unwrap();
    for first in [0, 2, u64::MAX] {
        let refused = history.append(first, &[entry(2, 10)]);
        assert!(matches!(refused, Err(Error::NotAtEnd { end: 1, .. })), "{first}");
    }
    history.append(1, &[]).unwrap();
    assert_eq!(reader.end(), 1);
}

#[test]
fn forgotten_units_are_replaced_by_others() {
    for end in [0, 1, 1023, 1024, 1025, 2047, 2048, 2999, 3000, 5000] {
        let memory = Memory::new();
        let (mut history, reader) = open(Arc::new(memory.clone()), options(LARGE, true));
        let mut units = entries(&mut Random(1), 3000, 40);
        history.append(0, &units).unwrap();
        history.truncate(end).unwrap();
        units.truncate(end as usize);
        assert_eq!(history.state().end, units.len() as u64);
        assert_eq!(reader.read(end, 1).unwrap(), None);
        let others = entries(&mut Random(2), 2000, 40);
        history.append(history.state().end, &others).unwrap();
        units.extend(others);
        assert_eq!(reader.read(0, units.len() as u32).unwrap().unwrap(), units);
        check_marks(&reader, &units);
        drop((history, reader));
        let (_, reader) = open(Arc::new(memory), options(LARGE, true));
        assert_eq!(reader.read(0, units.len() as u32).unwrap().unwrap(), units);
    }
}

#[test]
fn after_a_reset_positions_begin_where_it_says() {
    for first in [0, 5, 1023, 1024, 5000, u64::MAX - 5000] {
        let memory = Memory::new();
        let (mut history, reader) = open(Arc::new(memory.clone()), options(LARGE, false));
        history.append(0, &entries(&mut Random(1), 2000, 40)).unwrap();
        history.reset([2; 16], first).unwrap();
        let expected = HistoryState { epoch: [2; 16], first, end: first };
        assert_eq!((history.state(), reader.state()), (expected, expected));
        assert_eq!(reader.read(first, 1).unwrap(), None);
        drop(history);
        let (mut history, reader) = open(Arc::new(memory.clone()), options(LARGE, false));
        assert_eq!(history.state(), expected);
        let units = entries(&mut Random(2), 1500, 40);
        history.append(first, &units).unwrap();
        drop((history, reader));
        let (mut history, reader) = open(Arc::new(memory), options(LARGE, false));
        assert_eq!(history.state(), HistoryState { end: first + 1500, ..expected });
        assert_eq!(reader.read(first, 1500).unwrap().unwrap(), units);
        if let Some(before) = first.checked_sub(1) {
            assert_eq!(reader.read(before, 2).unwrap(), None);
            // What is truncated before its beginning begins there.
            history.truncate(before).unwrap();
            let end = HistoryState { epoch: [2; 16], first: before, end: before };
            assert_eq!(history.state(), end);
        }
    }
}

#[test]
fn positions_end_before_they_overflow() {
    let (mut history, _) = open(Arc::new(Memory::new()), options(LARGE, false));
    let last = u64::MAX - u64::MAX % BLOCK;
    for first in [last, u64::MAX] {
        assert!(matches!(history.reset([2; 16], first), Err(Error::Exhausted)));
    }
    history.reset([2; 16], last - 2).unwrap();
    let units = entries(&mut Random(1), 3, 10);
    assert!(matches!(history.append(last - 2, &units), Err(Error::Exhausted)));
    history.append(last - 2, &units[..2]).unwrap();
    assert!(matches!(history.append(last, &units[..1]), Err(Error::Exhausted)));
}

#[test]
fn the_oldest_blocks_are_removed_when_the_budget_is_exceeded() {
    let memory = Memory::new();
    let budget = 1 << 20;
    let (mut history, reader) = open(Arc::new(memory.clone()), options(budget, false));
    let mut random = Random(1);
    let mut units = Vec::new();
    for _ in 0..60 {
        let group = entries(&mut random, 300, 200);
        history.append(units.len() as u64, &group).unwrap();
        units.extend(group);
        assert!(memory.bytes() <= budget, "{}", memory.bytes());
    }
    let HistoryState { first, end, .. } = history.state();
    assert!(first > 0 && first % BLOCK == 0 && end - first > 3 * BLOCK, "{first}");
    assert_eq!(reader.read(first, (end - first) as u32).unwrap().unwrap(), units[first as usize..]);
    assert_eq!(reader.read(first - 1, 2).unwrap(), None);
    let mut marks = 0;
    reader.marks(0, u64::MAX, |_, _| marks += 1).unwrap();
    assert_eq!(marks, end - first);
    // A smaller budget takes effect at once; the newest block is kept.
    drop((history, reader));
    let (mut history, reader) = open(Arc::new(memory.clone()), options(1, false));
    assert_eq!(history.state(), HistoryState { epoch: EPOCH, first: end / BLOCK * BLOCK, end });
    history.append(end, &entries(&mut random, 10, 200)).unwrap();
    assert_eq!(reader.end(), end + 10);
    assert_eq!(memory.names().unwrap().len(), 1);
}

#[test]
fn another_key_makes_an_empty_history_of_a_fresh_epoch() {
    let keys = [None, Some([1; 32]), Some([2; 32])];
    for (at, key) in keys.iter().enumerate() {
        for other in keys.iter().enumerate().filter(|(it, _)| *it != at).map(|(_, it)| it) {
            let memory = Memory::new();
            let options =
                |key: &Option<[u8; 32]>| store::HistoryOptions { budget_bytes: LARGE, key: *key };
            let (mut history, _) = open(Arc::new(memory.clone()), options(key));
            history.append(0, &entries(&mut Random(1), 1500, 40)).unwrap();
            history.sync().unwrap();
            drop(history);
            let opened = History::open(Arc::new(memory.clone()), options(other), [7; 16]);
            let (mut history, reader, state) = opened.unwrap();
            assert_eq!(state, HistoryState { epoch: [7; 16], first: 0, end: 0 });
            assert_eq!(memory.names().unwrap().len(), 1);
            history.append(0, &[entry(1, 5)]).unwrap();
            assert_eq!(reader.read(0, 1).unwrap().unwrap(), [entry(1, 5)]);
        }
    }
}

#[test]
fn with_a_key_files_show_neither_bytes_nor_marks() {
    let memory = Memory::new();
    let (mut history, _) = open(Arc::new(memory.clone()), options(LARGE, true));
    let units: Vec<Unit> = (0..1500).map(|seed| entry(seed, 64)).collect();
    history.append(0, &units).unwrap();
    let files: Vec<Vec<u8>> =
        memory.names().unwrap().iter().filter_map(|name| memory.bytes_of(name)).collect();
    let shows = |bytes: &[u8]| {
        files.iter().any(|file| file.windows(bytes.len()).any(|window| window == bytes))
    };
    for (mark, bytes) in units.iter().step_by(300) {
        assert!(!shows(&bytes[..16]) && !shows(&mark.name) && !shows(&mark.url.to_le_bytes()));
    }
    assert!(shows(&EPOCH));
    assert!(!format!("{history:?} {:?}", options(LARGE, true)).contains("94, 94, 94, 94"));
}

#[test]
fn other_units_at_a_position_are_enciphered_otherwise() {
    // Equal keystreams would show which bits of two units differ.
    let cipher_text = |seed: u64| {
        let memory = Memory::new();
        let (mut history, _) = open(Arc::new(memory.clone()), options(LARGE, true));
        history.append(0, &[entry(1, 64)]).unwrap();
        history.truncate(0).unwrap();
        history.append(0, &[entry(seed, 64)]).unwrap();
        let name = memory.names().unwrap().remove(0);
        let file = memory.bytes_of(&name).unwrap();
        file[file.len() - 64..].to_vec()
    };
    let xor = |one: &[u8], two: &[u8]| -> Vec<u8> {
        one.iter().zip(two).map(|(one, two)| one ^ two).collect()
    };
    let clear = xor(&entry(1, 64).1, &entry(2, 64).1);
    assert_ne!(xor(&cipher_text(1), &cipher_text(2)), clear);
}

/// Files that count reads.
#[derive(Debug, Default)]
struct Counting {
    memory: Memory,
    reads: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct CountingFile {
    inner: Arc<dyn File>,
    reads: Arc<AtomicUsize>,
}

impl Counting {
    fn file(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(CountingFile { inner, reads: self.reads.clone() })
    }
}

impl Files for Counting {
    fn names(&self) -> std::io::Result<Vec<String>> {
        self.memory.names()
    }

    fn create(&self, name: &str) -> std::io::Result<Arc<dyn File>> {
        Ok(self.file(self.memory.create(name)?))
    }

    fn open(&self, name: &str) -> std::io::Result<Arc<dyn File>> {
        Ok(self.file(self.memory.open(name)?))
    }

    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.memory.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.memory.rename(from, to)
    }

    fn sync_names(&self) -> std::io::Result<()> {
        Ok(())
    }
}

impl File for CountingFile {
    fn len(&self) -> std::io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> std::io::Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, parts: &mut [std::io::IoSlice<'_>]) -> std::io::Result<()> {
        assert!(parts.len() <= 1024, "more than the system accepts");
        self.inner.write_at(offset, parts)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn adjacent_units_are_read_with_one_call_for_each_block() {
    let files = Arc::new(Counting::default());
    let (mut history, reader) = open(files.clone(), options(LARGE, false));
    history.append(0, &entries(&mut Random(1), 5 * BLOCK + 10, 20)).unwrap();
    let reads = |work: &dyn Fn()| {
        files.reads.store(0, Ordering::Relaxed);
        work();
        files.reads.load(Ordering::Relaxed)
    };
    for (position, count, expected) in [(0, 1024, 1), (1000, 24, 1), (1000, 25, 2), (0, 5130, 6)] {
        let found = reads(&|| assert!(reader.read(position, count).unwrap().is_some()));
        assert_eq!(found, expected, "{count} units at {position}");
    }
    // One for each complete block, and one for each of the ten other units.
    let found = reads(&|| reader.marks(0, u64::MAX, |_, _| {}).unwrap());
    assert_eq!(found, 5 + 10);
    drop((history, reader));
    // A header for each block, and a footer for each but the newest, which is read to its end.
    let found = reads(&|| drop(open(files.clone(), options(LARGE, false))));
    assert_eq!(found, 6 + 5 + 2);
}

#[derive(Clone, Debug)]
enum Act {
    Append(Vec<u16>),
    Truncate(u16),
    Reset(u16),
    Reopen,
    Sync,
}

fn act() -> impl Strategy<Value = Act> {
    let lengths = prop_oneof![
        proptest::collection::vec(0u16..300, 0..40),
        proptest::collection::vec(0u16..20, 300..1500),
    ];
    prop_oneof![
        6 => lengths.prop_map(Act::Append),
        2 => (0u16..2500).prop_map(Act::Truncate),
        1 => (0u16..5000).prop_map(Act::Reset),
        2 => Just(Act::Reopen),
        1 => Just(Act::Sync),
    ]
}

/// A history, and a list of the units that it should hold.
struct Pair {
    memory: Memory,
    options: store::HistoryOptions,
    history: History,
    reader: HistoryReader,
    epoch: [u8; 16],
    first: u64,
    units: Vec<Unit>,
    random: Random,
}

impl Pair {
    fn new(budget: u64, is_enciphered: bool) -> Self {
        let (memory, options) = (Memory::new(), options(budget, is_enciphered));
        let (history, reader) = open(Arc::new(memory.clone()), options);
        let (units, random) = (Vec::new(), Random(5));
        Self { memory, options, history, reader, epoch: EPOCH, first: 0, units, random }
    }

    fn end(&self) -> u64 {
        self.first + self.units.len() as u64
    }

    fn run(&mut self, act: &Act) {
        match act {
            Act::Append(lengths) => {
                let units: Vec<Unit> = lengths
                    .iter()
                    .map(|length| entry(self.random.next(), usize::from(*length)))
                    .collect();
                self.history.append(self.end(), &units).unwrap();
                self.units.extend(units);
            }
            Act::Truncate(units) => {
                let end = self.end().saturating_sub(u64::from(*units));
                self.history.truncate(end).unwrap();
                self.units.truncate(end.saturating_sub(self.first) as usize);
                self.first = self.first.min(end);
            }
            Act::Reset(first) => {
                self.epoch = [self.random.next() as u8; 16];
                self.first = u64::from(*first);
                self.units.clear();
                self.history.reset(self.epoch, self.first).unwrap();
            }
            Act::Reopen => {
                let files = Arc::new(self.memory.clone());
                (self.history, self.reader) = open(files, self.options);
            }
            Act::Sync => assert_eq!(self.history.sync().unwrap(), self.end()),
        }
        self.evict();
        self.compare();
    }

    /// Leaves out what the history removed, which must have been necessary.
    fn evict(&mut self) {
        let state = self.history.state();
        if state.first != self.first {
            assert!(state.first > self.first && state.first.is_multiple_of(BLOCK));
            self.units.drain(..(state.first - self.first) as usize);
            self.first = state.first;
        }
        assert_eq!(state, HistoryState { epoch: self.epoch, first: self.first, end: self.end() });
        let blocks = self.memory.names().unwrap().len();
        assert!(blocks == 1 || self.memory.bytes() <= self.options.budget_bytes);
    }

    fn compare(&mut self) {
        let all = self.reader.read(self.first, self.units.len() as u32).unwrap();
        assert_eq!(all.as_ref(), Some(&self.units));
        let mut marks = Vec::new();
        self.reader.marks(0, u64::MAX, |position, mark| marks.push((position, mark))).unwrap();
        let expected = (self.first..).zip(&self.units).map(|(at, unit)| (at, unit.0));
        assert_eq!(marks, expected.collect::<Vec<_>>());
    }
}

/// Without optimisation each case takes thirty times as long, so fewer are tested.
const CASES: u32 = if cfg!(debug_assertions) { 12 } else { 200 };

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..Default::default() })]

    #[test]
    fn it_holds_what_a_plain_list_would(
        acts in proptest::collection::vec(act(), 1..25),
        budget in 200_000u64..1_000_000,
        is_enciphered: bool,
    ) {
        let mut pair = Pair::new(budget, is_enciphered);
        for act in &acts {
            pair.run(act);
        }
        pair.run(&Act::Reopen);
    }

    #[test]
    fn damaged_files_give_no_wrong_unit(
        seed: u64,
        damages in proptest::collection::vec((any::<u64>(), any::<u64>(), 0u8..5), 1..4),
        is_enciphered: bool,
        is_open: bool,
    ) {
        let memory = Memory::new();
        let units = entries(&mut Random(seed), 3 * BLOCK + 300, 30);
        let options = options(LARGE, is_enciphered);
        let (mut history, mut reader) = open(Arc::new(memory.clone()), options);
        history.append(0, &units).unwrap();
        for (file, at, kind) in damages {
            damage(&memory, file, at, kind);
        }
        if !is_open {
            drop(history);
            let opened = History::open(Arc::new(memory.clone()), options, [7; 16]).unwrap();
            (history, reader) = (opened.0, opened.1);
        }
        let state = reader.state();
        prop_assert!(state.epoch == EPOCH || (state.first, state.end) == (0, 0));
        let (first, found) = held(&reader);
        for (position, unit) in (first..).zip(found) {
            prop_assert!(unit.is_none_or(|unit| unit == units[position as usize]), "{}", position);
        }
        let mut wrong = Vec::new();
        reader.marks(0, u64::MAX, |position, mark| {
            if mark != units[position as usize].0 {
                wrong.push(position);
            }
        }).unwrap();
        prop_assert!(wrong.is_empty(), "{:?}", wrong);
        // It can be used further.
        if !is_open {
            let more = entries(&mut Random(seed + 1), 1500, 30);
            history.append(state.end, &more).unwrap();
            prop_assert_eq!(reader.read(state.end, 1500).unwrap().unwrap(), more);
        }
    }
}

/// Changes a bit, cuts a file, overwrites part of it, or removes or replaces it. A file that is
/// open is changed in place.
fn damage(memory: &Memory, file: u64, at: u64, kind: u8) {
    let names = memory.names().unwrap();
    let Some(name) = names.get((file % names.len().max(1) as u64) as usize) else { return };
    let bytes = memory.bytes_of(name).unwrap();
    let at = at % bytes.len().max(1) as u64;
    let file = memory.open(name).unwrap();
    let write = |bytes: &[u8]| file.write_at(at, &mut [std::io::IoSlice::new(bytes)]).unwrap();
    match kind {
        0 => write(&[bytes.get(at as usize).map_or(1, |byte| byte ^ 4)]),
        1 => file.set_len(at).unwrap(),
        2 => write(&unit(at, 700).bytes),
        3 => memory.remove(name).unwrap(),
        _ => memory.put(&names[0], bytes),
    }
}

#[test]
fn a_damaged_unit_costs_its_block_until_the_next_start() {
    let memory = Memory::new();
    let (mut history, reader) = open(Arc::new(memory.clone()), options(LARGE, true));
    let units: Vec<Unit> = (0..3 * BLOCK + 1).map(|seed| entry(seed, 7)).collect();
    history.append(0, &units).unwrap();
    let damaged = BLOCK + 3;
    // A block's header has 60 bytes, a record's header 64.
    let at = 60 + 3 * (64 + 7) + 64;
    let name = memory.names().unwrap().swap_remove(1);
    let byte = memory.bytes_of(&name).unwrap()[at];
    let file = memory.open(&name).unwrap();
    file.write_at(at as u64, &mut [std::io::IoSlice::new(&[byte ^ 1])]).unwrap();
    let is_held =
        |reader: &HistoryReader, position, count| reader.read(position, count).unwrap().is_some();
    assert!(is_held(&reader, damaged + 5, 10));
    assert!(!is_held(&reader, damaged, 1) && !is_held(&reader, damaged + 5, 10));
    assert!(is_held(&reader, 0, 1024) && !is_held(&reader, 0, 1025));
    assert!(is_held(&reader, 2 * BLOCK, 1025));
    drop((history, reader));
    let (_, reader) = open(Arc::new(memory), options(LARGE, true));
    assert!(is_held(&reader, damaged + 5, 10) && !is_held(&reader, damaged, 1));
}

#[test]
fn units_after_a_damaged_one_do_not_come_back_when_it_is_replaced() {
    let memory = Memory::new();
    let (mut history, reader) = open(Arc::new(memory.clone()), options(LARGE, false));
    let units: Vec<Unit> = (0..10).map(|seed| entry(seed, 7)).collect();
    history.append(0, &units).unwrap();
    drop((history, reader));
    let name = memory.names().unwrap().swap_remove(0);
    let at = 60 + 3 * (64 + 7) + 64;
    memory.open(&name).unwrap().write_at(at, &mut [std::io::IoSlice::new(&[0; 7])]).unwrap();
    let (mut history, _) = open(Arc::new(memory.clone()), options(LARGE, false));
    assert_eq!(history.state().end, 3);
    history.append(3, &[entry(20, 7)]).unwrap();
    drop(history);
    let (_, reader) = open(Arc::new(memory), options(LARGE, false));
    assert_eq!(reader.read(0, 4).unwrap().unwrap(), [&units[..3], &[entry(20, 7)]].concat());
    assert_eq!(reader.end(), 4);
}
