//! The log and the index together, in normal use.

use std::sync::Arc;

use bytes::Bytes;
use store::{
    Disk, Error, Files, Index, Location, Log, LogOptions, Memory, Policy, Provenance, Unit,
    unit_disk_bytes,
};
use wire::ChunkId;

use crate::common::{Random, unit};

fn open(files: &Arc<dyn Files>, budget: u64) -> (Index, Log) {
    open_with(files, budget, Policy::Lru)
}

fn open_with(files: &Arc<dyn Files>, budget: u64, policy: Policy) -> (Index, Log) {
    let mut index = Index::new(budget, policy);
    let (log, _) = Log::open(files.clone(), LogOptions::default(), &mut index).unwrap();
    (index, log)
}

fn append(index: &mut Index, log: &mut Log, units: &[Unit]) -> Vec<Location> {
    let places = log.append(units).unwrap();
    assert_eq!(places.len(), units.len());
    for (unit, place) in units.iter().zip(&places) {
        let length = unit.bytes.len() as u32;
        if unit.on_probation {
            index.insert_on_probation(&unit.id, *place, length);
        } else {
            index.insert(&unit.id, *place, length, unit.provenance);
        }
    }
    places
}

fn read(index: &Index, log: &Log, id: &ChunkId, length: u32) -> Option<Bytes> {
    let mut found = index.locate(id).filter_map(|at| log.reader().read(at, &[length]).ok());
    found.find(|units| units[0].0 == *id).map(|units| units[0].1.clone())
}

/// Reclaims a segment when the index asks for it, as an engine does.
fn reclaim(index: &mut Index, log: &mut Log) {
    while let Some(victim) = index.victim() {
        let keep = index.judge(victim, &log.entries(victim).unwrap());
        let moved = log.rewrite(victim, &keep).unwrap();
        index.moved(victim, &moved);
    }
}

#[test]
fn what_was_appended_is_read_back_and_found_again_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    for is_disk in [false, true] {
        let files: Arc<dyn Files> = if is_disk {
            Arc::new(Disk::open(directory.path()).unwrap())
        } else {
            Arc::new(Memory::new())
        };
        let units: Vec<Unit> = (0..300).map(|n| unit(n, 1 + (n as usize * 211) % 16_384)).collect();
        let (mut index, mut log) = open(&files, 64 << 20);
        for group in units.chunks(7) {
            append(&mut index, &mut log, group);
        }
        log.sync().unwrap();
        for _ in 0..2 {
            for unit in &units {
                assert_eq!(
                    read(&index, &log, &unit.id, unit.bytes.len() as u32),
                    Some(unit.bytes.clone())
                );
            }
            assert_eq!(log.report().bytes_on_disk, index.report().bytes_on_disk);
            drop(log);
            (index, log) = open(&files, 64 << 20);
            assert_eq!(index.report().units, 300);
        }
    }
}

#[test]
fn a_run_of_neighbours_takes_one_read() {
    let files: Arc<dyn Files> = Arc::new(Memory::new());
    let (mut index, mut log) = open(&files, 64 << 20);
    let units: Vec<Unit> = (0..8).map(|n| unit(n, 8000 + n as usize)).collect();
    let places = append(&mut index, &mut log, &units);
    for at in 1..units.len() {
        assert!(Index::adjacent(places[at - 1], units[at - 1].bytes.len() as u32, places[at]));
    }
    let lengths: Vec<u32> = units.iter().map(|unit| unit.bytes.len() as u32).collect();
    let run = log.reader().read(places[0], &lengths).unwrap();
    let expected: Vec<_> = units.iter().map(|unit| (unit.id, unit.bytes.clone())).collect();
    assert_eq!(run, expected);
    assert_eq!(log.reader().try_read(places[0], &lengths).unwrap().unwrap(), expected);
}

#[test]
fn a_place_without_the_unit_is_an_error() {
    let files: Arc<dyn Files> = Arc::new(Memory::new());
    let (mut index, mut log) = open(&files, 64 << 20);
    let places = append(&mut index, &mut log, &[unit(1, 100), unit(2, 100)]);
    let reader = log.reader();
    let wrong = Location { offset: places[0].offset + 16, ..places[0] };
    for (at, lengths) in [(places[0], &[99][..]), (wrong, &[100]), (places[0], &[100, 100, 100])] {
        assert!(matches!(reader.read(at, lengths), Err(Error::Missing { .. })), "{at:?}");
    }
    let gone = Location { segment: store::SegmentId(77), offset: 32 };
    assert!(matches!(reader.read(gone, &[1]), Err(Error::Missing { .. })));
    assert!(matches!(reader.read(places[0], &[u32::MAX; 9]), Err(Error::TooLong { .. })));
}

#[test]
fn a_store_is_open_once_and_of_one_version() {
    let directory = tempfile::tempdir().unwrap();
    let files: Arc<dyn Files> = Arc::new(Disk::open(directory.path()).unwrap());
    let second = Disk::open(directory.path());
    assert!(matches!(second, Err(Error::InUse { .. })));
    let (_, log) = open(&files, 64 << 20);
    drop((log, files));
    std::fs::write(directory.path().join("hearsay-store"), "hearsay-store 9\n").unwrap();
    let files = Arc::new(Disk::open(directory.path()).unwrap());
    let opened = Log::open(files, LogOptions::default(), &mut Index::new(0, Policy::Lru));
    assert!(matches!(opened, Err(Error::Version { found }) if found.contains('9')));
}

#[test]
fn the_budget_holds_whatever_comes() {
    for policy in [Policy::Lru, Policy::S3Fifo] {
        let budget = 4 << 20;
        let memory = Memory::new();
        let files: Arc<dyn Files> = Arc::new(memory.clone());
        let mut index = Index::new(budget, policy);
        let (mut log, _) = Log::open(files, LogOptions::default(), &mut index).unwrap();
        let mut random = Random(5);
        let mut held = Vec::new();
        for number in 0..3000 {
            let unit = unit(number, 1 + random.below(16 << 10) as usize);
            append(&mut index, &mut log, std::slice::from_ref(&unit));
            held.push(unit);
            for _ in 0..4 {
                // Most units are used all the time, so it is hard to choose what to reclaim.
                let at = random.below(held.len() as u64) as usize;
                index.touch(&held[at].id);
            }
            reclaim(&mut index, &mut log);
            assert!(memory.bytes() <= budget, "{} of {budget}", memory.bytes());
            let counted = index.report().bytes_on_disk;
            assert_eq!(counted, log.report().bytes_on_disk);
        }
        let report = index.report();
        assert!(report.evicted_units > 1000 && report.bytes_on_disk > budget / 2, "{report:?}");
        let found = held.iter().filter(|unit| {
            let length = unit.bytes.len() as u32;
            let bytes = read(&index, &log, &unit.id, length);
            assert!(bytes.as_ref().is_none_or(|bytes| *bytes == unit.bytes));
            bytes.is_some()
        });
        assert_eq!(found.count() as u64, report.units);
        let bytes: u64 =
            held.iter().map(|it| u64::from(unit_disk_bytes(it.bytes.len() as u32))).sum();
        assert!(log.report().appended_bytes == bytes);
    }
}

#[test]
fn what_is_on_probation_leaves_first_after_a_start_too() {
    let heard = |number| Unit {
        on_probation: true,
        provenance: Provenance::Overheard,
        ..unit(number, 8000)
    };
    for policy in [Policy::Lru, Policy::S3Fifo] {
        let files: Arc<dyn Files> = Arc::new(Memory::new());
        let asked: Vec<Unit> = (0..100).map(|number| unit(number, 8000)).collect();
        let (mut index, mut log) = open_with(&files, 4 << 20, policy);
        for (first, group) in asked.chunks(4).enumerate() {
            append(&mut index, &mut log, group);
            let first = 1000 + 10 * first as u64;
            append(&mut index, &mut log, &(first..first + 10).map(heard).collect::<Vec<_>>());
        }
        drop(log);
        let (mut index, mut log) = open_with(&files, 4 << 20, policy);
        for number in 2000..2600 {
            append(&mut index, &mut log, &[heard(number)]);
            reclaim(&mut index, &mut log);
        }
        assert!(asked.iter().all(|unit| index.holds(&unit.id)), "{policy:?}");
        assert!(!index.holds(&heard(1000).id) && index.holds(&heard(2599).id));
    }
}
