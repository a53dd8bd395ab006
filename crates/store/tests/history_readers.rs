//! Readers in other threads while the history changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use store::{Disk, Files, HistoryReader, Memory};

use crate::common::history::{Unit, entry, open, options};
use crate::common::{Random, name_of};

/// A unit that tells its position and which of several units there it is.
fn at(position: u64, version: u64) -> Unit {
    let (mut mark, bytes) = entry(position << 8 | version, (position % 300) as usize);
    (mark.features, mark.url) = ([version as u32; 4], position);
    mark.name.copy_from_slice(&name_of(&bytes).as_bytes()[..16]);
    (mark, bytes)
}

/// Reads at random until it is told to stop; returns the number of units that it read.
fn read(reader: &HistoryReader, seed: u64, is_over: &AtomicBool) -> u64 {
    let (mut random, mut units) = (Random(seed), 0);
    while !is_over.load(Ordering::Relaxed) {
        let (first, end) = (reader.first(), reader.end());
        let position = first + random.below(end.saturating_sub(first).max(1) + 10);
        let count = random.below(40) as u32;
        let found = reader.read(position, count).unwrap();
        for (position, unit) in (position..).zip(found.into_iter().flatten()) {
            assert_eq!(unit, at(position, u64::from(unit.0.features[0])));
            units += 1;
        }
        if random.below(50) == 0 {
            let mut last = 0;
            let each = |position, mark: store::Mark| {
                assert!(position >= last && mark.url == position);
                last = position;
            };
            reader.marks(first, end, each).unwrap();
        }
    }
    units
}

fn change(files: Arc<dyn Files>, rounds: u64) {
    let (mut history, reader) = open(files, options(600_000, true));
    let (is_over, units) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..2 {
            let (reader, is_over, units) = (reader.clone(), &is_over, &units);
            scope.spawn(move || {
                units.fetch_add(read(&reader, seed, is_over), Ordering::Relaxed);
            });
        }
        let mut random = Random(9);
        let mut versions = vec![0; rounds as usize * 80];
        for round in 0..rounds {
            let end = history.state().end;
            let group: Vec<Unit> = (end..end + random.below(80))
                .map(|position| at(position, versions[position as usize]))
                .collect();
            history.append(end, &group).unwrap();
            if round % 20 == 19 {
                let state = history.state();
                let most = if round % 80 == 79 { 1500 } else { 200 };
                let end = (state.end - random.below(most).min(state.end)).max(state.first);
                history.truncate(end).unwrap();
                versions[end as usize..].iter_mut().for_each(|it| *it = round % 251);
            }
            if round % 7 == 0 {
                history.sync().unwrap();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let state = history.state();
    assert!(units.load(Ordering::Relaxed) > 0 && state.first > 0, "{state:?}");
    // No reader took a change for damage.
    let held = reader.read(state.first, (state.end - state.first) as u32).unwrap();
    assert!(held.is_some());
}

const ROUNDS: u64 = if cfg!(debug_assertions) { 400 } else { 4000 };

#[test]
fn readers_find_right_units_or_none_while_blocks_come_and_go_in_memory() {
    change(Arc::new(Memory::new()), ROUNDS);
}

#[test]
fn readers_find_right_units_or_none_while_blocks_come_and_go_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    change(Arc::new(Disk::open(directory.path()).unwrap()), ROUNDS / 2);
}
