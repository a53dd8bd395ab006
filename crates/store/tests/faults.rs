//! Disks that are full, read-only or failing; and killed processes.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use store::{
    Catalogue, CatalogueOptions, Change, Disk, Error, Files, Index, Location, Log, LogOptions,
    Memory, Policy, Reader, Unit, VersionFile,
};
use wire::ObjectKey;

use crate::common::faulty::Faulty;
use crate::common::{Random, unit};

fn is_there(reader: &Reader, at: Location, unit: &Unit) -> bool {
    let read = reader.read(at, &[unit.bytes.len() as u32]);
    read.is_ok_and(|units| units[0] == (unit.id, unit.bytes.clone()))
}

#[test]
fn a_full_disk_costs_only_what_did_not_fit() {
    for room in (0..60_000).step_by(613) {
        let disk = Faulty::default();
        let files: Arc<dyn Files> = Arc::new(disk.clone());
        disk.set_room(100);
        let mut index = Index::new(4 << 20, Policy::Lru);
        let (mut log, _) = Log::open(files.clone(), LogOptions::default(), &mut index).unwrap();
        disk.set_room(room);
        let (mut held, mut failed) = (Vec::new(), 0);
        for number in 0..40 {
            if number == 30 {
                disk.set_room(usize::MAX / 2);
            }
            let units = [unit(number, 2000), unit(number + 100, 700)];
            match log.append(&units) {
                Ok(places) => held.extend(units.into_iter().zip(places)),
                Err(error) => {
                    assert!(error.is_no_space() && error.may_retry(), "{error}");
                    failed += 1;
                }
            }
            assert!(held.iter().all(|(unit, at)| is_there(&log.reader(), *at, unit)));
        }
        assert!(held.len() >= 20 && (failed > 0 || room > 50_000), "{room}: {failed}");
        log.sync().unwrap();
        drop(log);
        let mut index = Index::new(4 << 20, Policy::Lru);
        let (_, recovery) = Log::open(files, LogOptions::default(), &mut index).unwrap();
        assert!(held.iter().all(|(unit, at)| index.locate(&unit.id).any(|found| found == *at)));
        assert_eq!((recovery.units, recovery.dropped_units), (held.len() as u64, 0));
    }
}

/// The version file of a later version.
const OTHER: &[u8] = b"hearsay-store 3\n";

/// A store with one unit whose version file has this content, or is missing.
fn marked(mark: Option<&[u8]>) -> (Memory, Unit) {
    let (memory, unit) = (Memory::new(), unit(7, 3000));
    let mut index = Index::new(4 << 20, Policy::Lru);
    let (mut log, _) =
        Log::open(Arc::new(memory.clone()), LogOptions::default(), &mut index).unwrap();
    log.append(std::slice::from_ref(&unit)).unwrap();
    drop(log);
    match mark {
        Some(mark) => memory.put("hearsay-store", mark.to_vec()),
        None => memory.remove("hearsay-store").unwrap(),
    }
    (memory, unit)
}

#[test]
fn a_damaged_mark_is_written_anew_where_the_segments_are_sound() {
    let right: &[u8] = b"hearsay-store 1\n";
    let mut flipped = right.to_vec();
    flipped[3] ^= 0x10;
    let long = [right, &[b'x'; 100]].concat();
    let marks = [
        &b"hearsay-sto"[..],
        &[0; 16],
        &flipped,
        &[0xff; 16],
        &long,
        b"hearsay-store x\n",
        b"",
        OTHER,
    ];
    for mark in marks.into_iter().map(Some).chain([None]) {
        let (memory, unit) = marked(mark);
        let mut index = Index::new(4 << 20, Policy::Lru);
        let files = Arc::new(memory.clone());
        let (log, recovery) = Log::open(files, LogOptions::default(), &mut index)
            .unwrap_or_else(|error| panic!("{mark:?}: {error}"));
        let at = index.locate(&unit.id).next().unwrap_or_else(|| panic!("{mark:?}: it is lost"));
        assert!(is_there(&log.reader(), at, &unit));
        assert_eq!(
            recovery.version_file,
            VersionFile::Renewed,
            "{mark:?}: the renewal is reported"
        );
        assert_eq!(memory.bytes_of("hearsay-store").as_deref(), Some(right));
        drop(log);
        let mut index = Index::new(4 << 20, Policy::Lru);
        let files = Arc::new(memory);
        let (_, recovery) = Log::open(files, LogOptions::default(), &mut index).unwrap();
        assert_eq!((recovery.units, recovery.version_file), (1, VersionFile::Sound));
    }
}

#[test]
fn a_damaged_mark_that_cannot_be_mended_costs_no_hit() {
    for mark in [Some(&b"hearsay-sto"[..]), Some(OTHER), None] {
        let (memory, unit) = marked(mark);
        let mut index = Index::new(4 << 20, Policy::Lru);
        let files = Arc::new(Faulty::full(memory));
        let (log, recovery) = Log::open(files, LogOptions::default(), &mut index)
            .unwrap_or_else(|error| panic!("{mark:?}: {error}"));
        assert_eq!(
            recovery.version_file,
            VersionFile::Unwritten(io::ErrorKind::StorageFull),
            "{mark:?}"
        );
        let at = index.locate(&unit.id).next().unwrap();
        assert!(is_there(&log.reader(), at, &unit), "{mark:?}");
    }
}

#[test]
fn a_mark_that_cannot_be_read_costs_no_hit() {
    let (memory, unit) = marked(Some(b"hearsay-store 1\n"));
    let disk = Faulty::full(memory);
    disk.set_unreadable(Some("hearsay-store"));
    let mut index = Index::new(4 << 20, Policy::Lru);
    let files = Arc::new(disk.clone());
    let (log, _) = Log::open(files, LogOptions::default(), &mut index).unwrap();
    let at = index.locate(&unit.id).next().unwrap();
    assert!(is_there(&log.reader(), at, &unit));
    // Without a segment, nothing shows which version the directory belongs to.
    let empty = Faulty::full(Memory::new());
    empty.memory.put("hearsay-store", OTHER.to_vec());
    empty.set_unreadable(Some("hearsay-store"));
    let opened = Log::open(Arc::new(empty), LogOptions::default(), &mut index);
    assert!(matches!(opened, Err(Error::Io { .. })), "{opened:?}");
}

#[test]
fn another_version_and_what_may_be_one_are_left_alone() {
    let garbage: &[u8] = b"\xffearsay-store 1\n";
    let segment: &[u8] = b"HEARSEG2 and so on, with what follows";
    let cases = [
        (Some(OTHER), None),
        (Some(OTHER), Some(segment)),
        (Some(garbage), Some(segment)),
        (None, Some(segment)),
    ];
    for (mark, segment) in cases {
        let memory = Memory::new();
        let files = [("hearsay-store", mark), ("00000001.segment", segment)];
        for (name, bytes) in files {
            bytes.into_iter().for_each(|bytes| memory.put(name, bytes.to_vec()));
        }
        let mut index = Index::new(4 << 20, Policy::Lru);
        let opened = Log::open(Arc::new(memory.clone()), LogOptions::default(), &mut index);
        assert!(matches!(opened, Err(Error::Version { .. })), "{mark:?}");
        for (name, bytes) in files {
            assert_eq!(memory.bytes_of(name).as_deref(), bytes, "{mark:?}: {name}");
        }
    }
}

#[test]
fn a_segment_is_not_reclaimed_while_its_survivors_find_no_room() {
    let disk = Faulty::default();
    disk.set_room(usize::MAX / 2);
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    let mut index = Index::new(4 << 20, Policy::Lru);
    let (mut log, _) = Log::open(files, LogOptions::default(), &mut index).unwrap();
    let mut held = Vec::new();
    let victim = loop {
        let unit = unit(held.len() as u64, 8000);
        let at = log.append(std::slice::from_ref(&unit)).unwrap()[0];
        index.insert(&unit.id, at, 8000, unit.provenance);
        held.push((unit, at));
        if let Some(victim) = index.victim() {
            break victim;
        }
    };
    let entries = log.entries(victim).unwrap();
    for room in [0, 10, 5000, 20_000] {
        disk.set_room(room);
        let before = log.report().bytes_on_disk;
        assert!(log.rewrite(victim, &entries[..8]).unwrap_err().may_retry());
        index.spare(victim);
        assert_eq!(index.victim(), Some(victim));
        assert!(log.report().bytes_on_disk <= before + 96, "one more empty segment at most");
        assert!(held.iter().all(|(unit, at)| is_there(&log.reader(), *at, unit)));
    }
    // Reclaiming without survivors needs no space.
    disk.set_room(0);
    index.moved(victim, &log.rewrite(victim, &[]).unwrap());
    assert!(log.entries(victim).is_err());
}

#[test]
fn after_a_failed_sync_a_later_one_covers_the_same() {
    let disk = Faulty::default();
    disk.set_room(usize::MAX / 2);
    let mut index = Index::new(4 << 20, Policy::Lru);
    let (mut log, _) =
        Log::open(Arc::new(disk.clone()), LogOptions::default(), &mut index).unwrap();
    log.append(&[unit(1, 3000)]).unwrap();
    disk.fails_sync.store(true, Ordering::Relaxed);
    assert!(matches!(log.sync(), Err(Error::Io { .. })));
    assert!(log.sync().is_err());
    disk.fails_sync.store(false, Ordering::Relaxed);
    let room = disk.room.load(Ordering::Relaxed);
    log.sync().unwrap();
    // The system may consider it written, so the log wrote it again.
    assert!(room - disk.room.load(Ordering::Relaxed) > 3000);
    log.sync().unwrap();
}

#[test]
fn the_catalogue_goes_on_when_there_is_room_again() {
    let disk = Faulty::default();
    disk.set_room(usize::MAX / 2);
    let options = CatalogueOptions::default();
    let mut catalogue = Catalogue::open(Arc::new(disk.clone()), options).unwrap();
    let reader = catalogue.reader();
    let put =
        |n: u8| Change::Put { key: ObjectKey([n; 32]), row: vec![n; 9000], records: Vec::new() };
    let has = |n: u8| reader.get(&ObjectKey([n; 32])).is_ok_and(|row| row.is_some());
    catalogue.apply(&[put(1)]).unwrap();
    catalogue.sync().unwrap();
    disk.set_room(5000);
    let changes: Vec<Change> = (10..200).map(put).collect();
    let done = changes.iter().try_for_each(|it| catalogue.apply(std::slice::from_ref(it)));
    assert!(done.and_then(|()| catalogue.sync()).is_err());
    disk.set_room(usize::MAX / 2);
    catalogue.apply(&[put(2)]).unwrap();
    catalogue.sync().unwrap();
    assert!(has(1) && has(2));
    assert!(catalogue.report().reopened >= 1 && catalogue.report().renamed_files == 0);
}

#[test]
fn a_catalogue_that_cannot_be_written_is_still_read() {
    let disk = Faulty::default();
    let open = || Catalogue::open(Arc::new(disk.clone()), CatalogueOptions::default()).unwrap();
    let put = |n: u8| Change::Put { key: ObjectKey([n; 32]), row: vec![n; 9000], records: vec![] };
    let has = |catalogue: &Catalogue, n: u8| {
        catalogue.reader().get(&ObjectKey([n; 32])).is_ok_and(|row| row == Some(vec![n; 9000]))
    };
    disk.set_room(usize::MAX / 2);
    let mut catalogue = open();
    catalogue.apply(&[put(1)]).unwrap();
    catalogue.sync().unwrap();
    disk.set_room(0);
    // The disk becomes full during use, and is full from the start.
    for is_new in [false, true] {
        if is_new {
            drop(std::mem::replace(&mut catalogue, open()));
        }
        for _ in 0..3 {
            let done = catalogue.apply(&[put(2)]).and_then(|()| catalogue.sync());
            assert!(done.is_err(), "{is_new}: nothing can be written");
            assert!(has(&catalogue, 1) && !has(&catalogue, 2), "{is_new}");
        }
    }
    disk.set_room(usize::MAX / 2);
    catalogue.apply(&[put(2)]).unwrap();
    catalogue.sync().unwrap();
    assert!(has(&catalogue, 1) && has(&catalogue, 2));
    drop(catalogue);
    let catalogue = open();
    assert!(has(&catalogue, 1) && has(&catalogue, 2));
}

fn put(n: u8) -> Change {
    Change::Put { key: ObjectKey([n; 32]), row: vec![n; 9000], records: Vec::new() }
}

fn row_of(catalogue: &Catalogue, n: u8) -> Option<Vec<u8>> {
    catalogue.reader().get(&ObjectKey([n; 32])).unwrap()
}

#[test]
fn a_catalogue_that_grew_before_a_kill_is_read_where_it_cannot_be_written() {
    let disk = Faulty::default();
    disk.set_room(usize::MAX / 2);
    let options = CatalogueOptions::default();
    let mut catalogue = Catalogue::open(Arc::new(disk.clone()), options).unwrap();
    catalogue.apply(&[put(0)]).unwrap();
    catalogue.sync().unwrap();
    // The file grows at once; its content becomes durable with the next sync.
    catalogue.apply(&(1..200).map(put).collect::<Vec<_>>()).unwrap();
    let killed = Faulty::full(Memory::new());
    let bytes = disk.memory.bytes_of("catalogue").unwrap();
    killed.memory.put("catalogue", bytes.clone());
    let only_read = Catalogue::open(Arc::new(killed.clone()), options).unwrap();
    assert_eq!((row_of(&only_read, 0), row_of(&only_read, 1)), (Some(vec![0; 9000]), None));
    assert!(killed.memory.bytes_of("catalogue").unwrap() == bytes, "it was changed");
}

#[test]
fn a_catalogue_that_cannot_be_written_reports_what_it_holds() {
    let disk = Faulty::default();
    disk.set_room(usize::MAX / 2);
    let open = || Catalogue::open(Arc::new(disk.clone()), CatalogueOptions::default()).unwrap();
    let held = |catalogue: &Catalogue| (catalogue.report().rows, catalogue.report().used_bytes);
    let mut catalogue = open();
    catalogue.apply(&[put(1), put(2)]).unwrap();
    catalogue.sync().unwrap();
    let synced = held(&catalogue);
    assert_eq!(synced.0, 2);
    // Changes that were not durable are lost when the disk fails, and do not count.
    catalogue.apply(&[put(3)]).unwrap();
    disk.set_room(0);
    assert!(catalogue.sync().is_err());
    assert_eq!(held(&catalogue), synced);
    drop(catalogue);
    assert_eq!(held(&open()), synced);
}

#[test]
fn a_catalogue_that_could_not_be_read_for_a_while_is_not_set_aside_for_it() {
    let disk = Faulty::default();
    disk.set_room(usize::MAX / 2);
    let options = CatalogueOptions { cache_bytes: 0, ..CatalogueOptions::default() };
    let mut catalogue = Catalogue::open(Arc::new(disk.clone()), options).unwrap();
    catalogue.apply(&[put(1)]).unwrap();
    catalogue.sync().unwrap();
    disk.set_room(0);
    assert!(catalogue.apply(&[put(2)]).and_then(|()| catalogue.sync()).is_err());
    assert_eq!(row_of(&catalogue, 1), Some(vec![1; 9000]));
    disk.set_unreadable(Some("catalogue"));
    assert!(catalogue.reader().get(&ObjectKey([1; 32])).is_err());
    disk.set_unreadable(None);
    disk.set_room(usize::MAX / 2);
    catalogue.apply(&[put(3)]).unwrap();
    assert_eq!(catalogue.report().renamed_files, 0);
    assert_eq!(row_of(&catalogue, 1), Some(vec![1; 9000]));
}

#[test]
fn a_file_system_of_one_mebibyte_fills_up() {
    let directory = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::new(directory.path(), "size=1m") else {
        return eprintln!("skipped: mounting is not allowed");
    };
    let files: Arc<dyn Files> = Arc::new(Disk::open(directory.path()).unwrap());
    let mut index = Index::new(64 << 20, Policy::Lru);
    let (mut log, _) = Log::open(files, LogOptions::default(), &mut index).unwrap();
    let mut held = Vec::new();
    let error = loop {
        let unit = unit(held.len() as u64, 8000);
        match log.append(std::slice::from_ref(&unit)) {
            Ok(at) => held.push((unit, at[0])),
            Err(error) => break error,
        }
    };
    assert!(error.is_no_space(), "{error}");
    assert!(held.len() > 100 && held.iter().all(|(unit, at)| is_there(&log.reader(), *at, unit)));
}

#[test]
fn a_read_only_store_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let Some(mut mount) = Mount::new(directory.path(), "size=8m") else {
        return eprintln!("skipped: mounting is not allowed");
    };
    let open = || {
        let files: Arc<dyn Files> = Arc::new(Disk::open(directory.path()).unwrap());
        let mut index = Index::new(64 << 20, Policy::Lru);
        let (log, recovery) = Log::open(files, LogOptions::default(), &mut index).unwrap();
        (log, recovery)
    };
    let row = || {
        let files: Arc<dyn Files> = Arc::new(Disk::open(directory.path()).unwrap());
        let catalogue = Catalogue::open(files, CatalogueOptions::default()).unwrap();
        catalogue.reader().get(&ObjectKey([1; 32])).unwrap()
    };
    let (mut log, _) = open();
    let at = log.append(&[unit(1, 5000)]).unwrap()[0];
    drop(log);
    let files: Arc<dyn Files> = Arc::new(Disk::open(directory.path()).unwrap());
    let mut catalogue = Catalogue::open(files, CatalogueOptions::default()).unwrap();
    let put = Change::Put { key: ObjectKey([1; 32]), row: vec![7; 100], records: Vec::new() };
    catalogue.apply(&[put]).unwrap();
    catalogue.sync().unwrap();
    drop(catalogue);
    mount.make_read_only();
    assert_eq!(row(), Some(vec![7; 100]));
    let (mut log, recovery) = open();
    assert_eq!(recovery.units, 1);
    assert!(is_there(&log.reader(), at, &unit(1, 5000)));
    assert!(matches!(log.append(&[unit(2, 10)]), Err(Error::Io { .. })));
}

/// A small file system, unmounted when this value is dropped.
struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    fn new(at: &'a Path, options: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(Self(at))
    }

    fn make_read_only(&mut self) {
        let mut mount = Command::new("mount");
        assert!(mount.args(["-o", "remount,ro"]).arg(self.0).status().unwrap().success());
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

const CHILD: &str = "STORE_TEST_CHILD";

/// The child process of the next test: appends without end, and reports each group that is durable.
#[test]
#[ignore = "run by the test below, as a process to be killed"]
fn child_that_appends() {
    let Ok(directory) = std::env::var(CHILD) else { return };
    let files: Arc<dyn Files> = Arc::new(Disk::open(directory).unwrap());
    let mut index = Index::new(64 << 20, Policy::Lru);
    let options = LogOptions { segment_bytes: Some(200_000), seed: 1 };
    let (mut log, _) = Log::open(files.clone(), options, &mut index).unwrap();
    let mut catalogue = Catalogue::open(files, CatalogueOptions::default()).unwrap();
    for group in 0..100_000u64 {
        log.append(&group_of(group)).unwrap();
        let [key, ..] = group.to_le_bytes();
        let row = group.to_le_bytes().to_vec();
        let put = Change::Put { key: ObjectKey([key; 32]), row, records: Vec::new() };
        catalogue.apply(&[put]).unwrap();
        if group % 3 == 0 {
            log.sync().unwrap();
            catalogue.sync().unwrap();
            println!("durable {group}");
        }
    }
}

fn group_of(group: u64) -> Vec<Unit> {
    let mut random = Random(group);
    (0..4).map(|n| unit(group * 4 + n, 1 + random.below(9000) as usize)).collect()
}

#[test]
fn what_was_synced_outlives_kill_9() {
    for round in 1..=6 {
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["faults::child_that_appends", "--exact", "--ignored", "--nocapture"])
            .env(CHILD, directory.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let durable = lines.filter_map(|line| {
            line.ok()?.split_once("durable ").and_then(|(_, group)| group.parse::<u64>().ok())
        });
        let last = durable.take(round * 13).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let files: Arc<dyn Files> = Arc::new(Disk::open(directory.path()).unwrap());
        let mut index = Index::new(64 << 20, Policy::Lru);
        let (log, recovery) = Log::open(files.clone(), LogOptions::default(), &mut index).unwrap();
        assert!(recovery.segments > 0 && recovery.walked_segments <= 2, "{recovery:?}");
        for unit in (0..=last).flat_map(group_of) {
            let mut places = index.locate(&unit.id);
            assert!(places.any(|at| is_there(&log.reader(), at, &unit)), "{last}: {recovery:?}");
        }
        let catalogue = Catalogue::open(files, CatalogueOptions::default()).unwrap();
        for group in last.saturating_sub(200)..=last {
            let [key, ..] = group.to_le_bytes();
            let row = catalogue.reader().get(&ObjectKey([key; 32])).unwrap().unwrap();
            let row = u64::from_le_bytes(row.try_into().unwrap());
            // Later groups with the same key may have been written after the last line that was
            // read.
            assert!(row >= group && (row - group).is_multiple_of(256), "{row} for {group}");
        }
    }
}
