//! The catalogue in normal use, and with a damaged file.

use std::sync::Arc;

use store::{Catalogue, CatalogueOptions, Change, Disk, Files, Memory};
use wire::{ObjectKey, RecordId};

use crate::common::Random;

fn key(n: u8) -> ObjectKey {
    ObjectKey([n; 32])
}

fn record(n: u8) -> RecordId {
    RecordId([n; 16])
}

fn put(n: u8, row: &[u8], records: &[u8]) -> Change {
    let records = records.iter().map(|n| record(*n)).collect();
    Change::Put { key: key(n), row: row.to_vec(), records }
}

fn segment(n: u8, number: u32, bytes: &[u8]) -> Change {
    Change::PutSegment { record: record(n), number, bytes: bytes.to_vec() }
}

fn open(files: &Arc<dyn Files>) -> Catalogue {
    Catalogue::open(files.clone(), CatalogueOptions::default()).unwrap()
}

#[test]
fn rows_and_segments_are_seen_at_once_and_after_a_start() {
    let directory = tempfile::tempdir().unwrap();
    let files: Arc<dyn Files> = Arc::new(Disk::open(directory.path()).unwrap());
    let mut catalogue = open(&files);
    let reader = catalogue.reader();
    assert_eq!(reader.get(&key(1)).unwrap(), None);
    let changes = [segment(7, 0, b"first"), segment(7, 1, b"second"), put(1, b"row", &[7])];
    catalogue.apply(&changes).unwrap();
    assert_eq!(reader.get(&key(1)).unwrap().as_deref(), Some(&b"row"[..]));
    catalogue.sync().unwrap();
    drop((catalogue, reader));
    let catalogue = open(&files);
    let reader = catalogue.reader();
    assert_eq!(reader.segment(&record(7), 1).unwrap().as_deref(), Some(&b"second"[..]));
    assert_eq!(reader.segment(&record(7), 2).unwrap(), None);
    let mut seen = Vec::new();
    reader
        .for_each(None, |key, row| {
            seen.push((key, row.to_vec()));
            true
        })
        .unwrap();
    assert_eq!(seen, [(key(1), b"row".to_vec())]);
}

#[test]
fn segments_live_as_long_as_a_row_names_their_record() {
    let files: Arc<dyn Files> = Arc::new(Memory::new());
    let mut catalogue = open(&files);
    let reader = catalogue.reader();
    let has = |n| reader.segment(&record(n), 0).unwrap().is_some();
    let changes =
        [segment(1, 0, b"a"), segment(2, 0, b"b"), segment(3, 0, b"c"), put(9, b"", &[1, 2])];
    catalogue.apply(&changes).unwrap();
    catalogue.apply(&[put(9, b"new", &[2])]).unwrap();
    assert!(!has(1) && has(2) && has(3));
    // Another object has taken over the record: removing the first one keeps its segments.
    catalogue.apply(&[put(8, b"", &[2]), Change::Remove { key: key(9) }]).unwrap();
    assert!(has(2));
    catalogue.apply(&[Change::DropSegments { record: record(2) }]).unwrap();
    assert!(!has(2) && has(3));
    drop((catalogue, reader));
    let catalogue = open(&files);
    assert_eq!(catalogue.report().swept_records, 1);
    assert_eq!(catalogue.reader().segment(&record(3), 0).unwrap(), None);
}

#[test]
fn the_oldest_rows_make_room() {
    let files: Arc<dyn Files> = Arc::new(Memory::new());
    let options = CatalogueOptions { budget_bytes: 100_000, ..CatalogueOptions::default() };
    let mut catalogue = Catalogue::open(files, options).unwrap();
    for n in 0..100 {
        catalogue.apply(&[segment(n, 0, &[n; 2000]), put(n, &[n; 500], &[n])]).unwrap();
        if n % 10 == 0 {
            catalogue.apply(&[put(0, b"kept young", &[0])]).unwrap();
            catalogue.sync().unwrap();
        }
    }
    let report = catalogue.report();
    assert!(report.used_bytes <= 100_000 && report.used_bytes > 90_000, "{report:?}");
    assert_eq!(report.evicted_rows + report.rows, 100);
    let reader = catalogue.reader();
    assert!(reader.get(&key(0)).unwrap().is_some() && reader.get(&key(99)).unwrap().is_some());
    assert!(reader.get(&key(1)).unwrap().is_none());
    assert!(reader.segment(&record(1), 0).unwrap().is_none());
    catalogue.apply(&[segment(200, 0, &vec![0; 99_000])]).unwrap();
    assert_eq!((catalogue.report().rows, catalogue.report().refused_segments), (0, 1));
}

#[test]
fn what_cannot_be_used_is_set_aside() {
    let memory = Memory::new();
    memory.put(store::CATALOGUE_FILE, b"certainly no database".repeat(1000));
    let files: Arc<dyn Files> = Arc::new(memory.clone());
    let mut catalogue = open(&files);
    assert_eq!(catalogue.report().renamed_files, 1);
    assert!(memory.bytes_of("catalogue.corrupt").is_some());
    catalogue.apply(&[put(1, b"row", &[])]).unwrap();
    drop(catalogue);
    assert_eq!(open(&files).report().renamed_files, 0);
}

#[test]
fn no_damage_to_the_file_leads_to_a_panic_or_a_wrong_row() {
    let memory = Memory::new();
    let files: Arc<dyn Files> = Arc::new(memory.clone());
    let mut catalogue = open(&files);
    for n in 0..60 {
        catalogue.apply(&[segment(n, 0, &vec![n; 9000]), put(n, &[n; 300], &[n])]).unwrap();
    }
    catalogue.sync().unwrap();
    // Once with the file that a kill leaves, once with that of an orderly end.
    let killed = memory.bytes_of(store::CATALOGUE_FILE).unwrap();
    drop(catalogue);
    let closed = memory.bytes_of(store::CATALOGUE_FILE).unwrap();
    let mut random = Random(9);
    let mut lost = 0;
    let rounds = if cfg!(debug_assertions) { 60 } else { 600 };
    for round in 0..rounds {
        let mut bytes = if round % 2 == 0 { killed.clone() } else { closed.clone() };
        // Half of the damage is where it matters most: in the first pages and in the sums.
        let limit = if round % 4 < 2 { 40_000 } else { bytes.len() as u64 };
        for _ in 0..1 + random.below(3) {
            let at = random.below(limit) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        if round % 7 == 0 {
            bytes.truncate(random.below(bytes.len() as u64) as usize);
        }
        memory.put(store::CATALOGUE_FILE, bytes);
        lost += u64::from(!is_right_or_absent(&files));
    }
    assert!(lost * 5 > rounds && lost < rounds, "{lost}");
}

/// Whether all rows were found. Panics if one was wrong, or if the catalogue cannot be used
/// further.
fn is_right_or_absent(files: &Arc<dyn Files>) -> bool {
    let mut catalogue = open(files);
    let reader = catalogue.reader();
    let mut is_whole = true;
    for n in 0..60 {
        let row = reader.get(&key(n)).ok().flatten();
        let bytes = reader.segment(&record(n), 0).ok().flatten();
        assert!(row.as_ref().is_none_or(|row| *row == [n; 300]));
        assert!(bytes.as_ref().is_none_or(|bytes| *bytes == vec![n; 9000]));
        is_whole &= row.is_some() && bytes.is_some();
    }
    // Damage that is detected only now may make one call fail; the next opens the catalogue again.
    for n in 0..60 {
        let changes = [put(n, b"new", &[]), Change::Remove { key: key(n + 100) }];
        let _ = catalogue.apply(&changes);
    }
    if catalogue.apply(&[put(7, b"last", &[])]).is_err() {
        catalogue.apply(&[put(7, b"last", &[])]).unwrap();
    }
    catalogue.sync().unwrap();
    assert_eq!(catalogue.reader().get(&key(7)).unwrap().as_deref(), Some(&b"last"[..]));
    is_whole
}

#[test]
fn segments_are_adopted_whole_and_what_is_kept_does_not_leave_to_make_room() {
    let files: Arc<dyn Files> = Arc::new(Memory::new());
    let options = CatalogueOptions { budget_bytes: 256 << 10, ..CatalogueOptions::default() };
    let mut catalogue = Catalogue::open(files.clone(), options).unwrap();
    let reader = catalogue.reader();
    let at = |n, number| reader.segment(&record(n), number).unwrap();
    let before =
        [segment(1, 0, b"a"), segment(1, 1, b"b"), segment(2, 0, b"old"), segment(2, 7, b"old")];
    catalogue.apply(&before).unwrap();
    let keep = Change::Keep { key: key(9) };
    let adopt = Change::Adopt { from: record(1), to: record(2) };
    catalogue.apply(&[adopt, put(9, b"row", &[2]), keep]).unwrap();
    assert_eq!((at(1, 0), at(2, 7)), (None, None));
    assert_eq!((at(2, 0), at(2, 1)), (Some(b"a".to_vec()), Some(b"b".to_vec())));
    for n in 10..250 {
        catalogue.apply(&[put(n, &[n; 3000], &[])]).unwrap();
    }
    assert!(catalogue.report().evicted_rows > 100);
    assert_eq!(reader.get(&key(9)).unwrap().as_deref(), Some(&b"row"[..]));
    assert_eq!(at(2, 1), Some(b"b".to_vec()));
    // A row that is set again is evicted like any other.
    catalogue.apply(&[put(9, b"new", &[2])]).unwrap();
    for n in 10..250 {
        catalogue.apply(&[put(n, &[n; 3000], &[])]).unwrap();
    }
    assert_eq!((reader.get(&key(9)).unwrap(), at(2, 1)), (None, None));
}
