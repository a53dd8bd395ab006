//! The costs of the store, as a table: `cargo bench -p benches --bench store`.
//!
//! A plain program, because most results are sizes and counts rather than times. Files are in a
//! directory under `TMPDIR`; the bodies of the million units are holes and take no disk space.

#[path = "../crates/store/tests/common/mod.rs"]
mod common;

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use common::paper::{ExactLru, PaperStore};
use common::{Random, Zipf, name_number, unit};
use store::{
    Catalogue, CatalogueOptions, Change, Disk, File, Files, Index, Location, Log, LogOptions,
    Policy, Provenance, SegmentId, Unit,
};
use wire::ObjectKey;

const UNIT: u32 = 8 << 10;
const MILLION: u64 = 1_000_000;

fn main() {
    // `cargo test --benches` only checks that the program builds and starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    // First, because memory freed by other measurements would hide its own use.
    catalogue();
    index();
    start();
    churn();
    throughput();
    reads_per_object();
}

fn row(name: &str, value: impl std::fmt::Display, what: &str) {
    println!("{name:<58} {value:>12} {what}");
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let done = work();
    (start.elapsed().as_secs_f64(), done)
}

fn per_second(name: &str, count: f64, seconds: f64, what: &str) {
    row(name, format!("{:.0}", count / seconds), what);
}

fn nanos(name: &str, count: u64, seconds: f64) {
    row(name, format!("{:.0}", seconds * 1e9 / count as f64), "ns each");
}

fn index() {
    for policy in [Policy::Lru, Policy::S3Fifo] {
        let mut index = Index::new(9 << 30, policy);
        let names: Vec<_> = (0..2 * MILLION).map(name_number).collect();
        let (known, unknown) = names.split_at(MILLION as usize);
        let (seconds, worst) = timed(|| fill(&mut index, known));
        nanos(&format!("index, {policy:?}: insert"), MILLION, seconds);
        let report = index.report();
        let bytes = report.index_bytes as f64 / report.units as f64;
        row(&format!("index, {policy:?}: a million units"), format!("{bytes:.2}"), "bytes each");
        row(
            "  at worst on the way there, from half a million",
            format!("{worst:.2}"),
            "bytes each",
        );
        let (seconds, found) = timed(|| known.iter().filter(|id| index.holds(id)).count());
        nanos("  look-up of what is held", found as u64, seconds);
        let (seconds, found) = timed(|| unknown.iter().filter(|id| index.holds(id)).count());
        nanos("  look-up of what is not", MILLION, seconds);
        row("  found though not held", found, "in a million");
        let (seconds, ()) = timed(|| known.iter().for_each(|id| index.touch(id)));
        nanos("  touch", MILLION, seconds);
    }
}

fn fill(index: &mut Index, names: &[wire::ChunkId]) -> f64 {
    let mut worst: f64 = 0.0;
    for (number, id) in (0u32..).zip(names) {
        let at = Location { segment: SegmentId(number / 4000), offset: 32 + number % 4000 * 8240 };
        index.insert(id, at, UNIT, Provenance::Relayed);
        if number > 500_000 && number % 10_000 == 0 {
            let report = index.report();
            worst = worst.max(report.index_bytes as f64 / report.units as f64);
        }
    }
    worst
}

/// A directory whose files do not store the bodies of units, and count calls.
#[derive(Debug)]
struct Sparse {
    inner: Disk,
    leaves_out: usize,
    reads: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct SparseFile {
    inner: Arc<dyn File>,
    leaves_out: usize,
    reads: Arc<AtomicUsize>,
}

impl Sparse {
    fn file(&self, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(SparseFile { inner, leaves_out: self.leaves_out, reads: self.reads.clone() })
    }
}

impl Files for Sparse {
    fn names(&self) -> io::Result<Vec<String>> {
        self.inner.names()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.inner.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(self.inner.open(name)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }
}

impl File for SparseFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.read_at(offset, out)
    }

    fn write_at(&self, mut offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        for part in parts {
            if part.len() != self.leaves_out {
                self.inner.write_at(offset, &mut [IoSlice::new(part)])?;
            }
            offset += part.len() as u64;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn start() {
    let directory = tempfile::tempdir().unwrap();
    let budget = 9 << 30;
    let sparse = Sparse {
        inner: Disk::open(directory.path()).unwrap(),
        leaves_out: UNIT as usize,
        reads: Arc::default(),
    };
    let mut index = Index::new(budget, Policy::Lru);
    let (mut log, _) = Log::open(Arc::new(sparse), LogOptions::default(), &mut index).unwrap();
    let body = Bytes::from(vec![0; UNIT as usize]);
    for first in (0..MILLION).step_by(100) {
        let of = |number| Unit {
            id: name_number(number),
            bytes: body.clone(),
            provenance: Provenance::Own,
            on_probation: false,
        };
        let group: Vec<Unit> = (first..first + 100).map(of).collect();
        log.append(&group).unwrap();
    }
    drop((log, index));
    for round in ["first", "second"] {
        let files = Arc::new(Disk::open(directory.path()).unwrap());
        let mut index = Index::new(budget, Policy::Lru);
        let (seconds, opened) = timed(|| Log::open(files, LogOptions::default(), &mut index));
        let (_, recovery) = opened.unwrap();
        assert_eq!((recovery.units, recovery.walked_segments), (MILLION, 0));
        let name = format!("start with a million units of 8 KiB, {round} time");
        row(&name, format!("{:.0}", seconds * 1e3), "ms");
    }
}

fn churn() {
    let budget = 128 << 20;
    let traces: [(&str, f64, bool); 3] =
        [("Zipf 0.9", 0.9, false), ("Zipf 0.8", 0.8, false), ("Zipf 0.8 + scan", 0.8, true)];
    for (name, exponent, has_scan) in traces {
        let zipf = Zipf::new(if has_scan { 20_000 } else { 150_000 }, exponent);
        let mut exact = ExactLru::new(budget);
        let mut stores = [Policy::Lru, Policy::S3Fifo].map(|it| PaperStore::new(budget, it));
        let mut random = Random(4);
        for at in 0..1_500_000u64 {
            let is_scan = has_scan && at % 2 == 1;
            let number = if is_scan { MILLION + at } else { zipf.draw(&mut random) };
            let id = name_number(number);
            exact.use_unit(id, UNIT);
            stores.iter_mut().for_each(|store| store.use_unit(id, UNIT));
        }
        row(&format!("{name}: exact LRU"), format!("{:.4}", exact.hit_ratio()), "hits");
        for (store, policy) in stores.iter().zip(["LRU", "S3-FIFO"]) {
            row(&format!("{name}: {policy}"), format!("{:.4}", store.hit_ratio()), "hits");
            let amplification = format!("{:.2}", store.write_amplification());
            row(&format!("{name}: {policy}"), amplification, "bytes written per byte stored");
        }
    }
}

fn throughput() {
    let directory = tempfile::tempdir().unwrap();
    let mut index = Index::new(8 << 30, Policy::Lru);
    let files = Arc::new(Disk::open(directory.path()).unwrap());
    let (mut log, _) = Log::open(files, LogOptions::default(), &mut index).unwrap();
    for group_units in [1, 8, 64] {
        let units: Vec<Unit> = (0..group_units).map(|n| unit(n, UNIT as usize)).collect();
        let total = 256 << 20;
        let groups = total / (group_units * u64::from(UNIT));
        let (seconds, ()) = timed(|| {
            for _ in 0..groups {
                log.append(&units).unwrap();
            }
            log.sync().unwrap();
        });
        let name = format!("append 256 MiB, groups of {group_units}, one sync");
        per_second(&name, total as f64 / 1e6, seconds, "MB/s");
    }
    let units: Vec<Unit> = (0..8).map(|n| unit(n, UNIT as usize)).collect();
    let (seconds, ()) = timed(|| {
        for _ in 0..500 {
            log.append(&units).unwrap();
            log.sync().unwrap();
        }
    });
    per_second("append a group of 8 and sync, again and again", 500.0, seconds, "groups/s");
    let first = log.append(&units).unwrap()[0];
    let (reader, lengths) = (log.reader(), [UNIT; 8]);
    let (seconds, ()) = timed(|| {
        for _ in 0..20_000 {
            reader.read(first, &lengths).unwrap();
        }
    });
    per_second("read runs of 8 from the page cache", 20_000.0 * 65536.0 / 1e6, seconds, "MB/s");
    let (seconds, ()) = timed(|| {
        for _ in 0..20_000 {
            reader.try_read(first, &lengths).unwrap().unwrap();
        }
    });
    per_second("the same without waiting", 20_000.0 * 65536.0 / 1e6, seconds, "MB/s");
}

/// Objects of 24 units, each stored in three groups, as the units of a parent are, and read in
/// runs.
fn reads_per_object() {
    let directory = tempfile::tempdir().unwrap();
    let reads = Arc::new(AtomicUsize::new(0));
    let inner = Disk::open(directory.path()).unwrap();
    let files = Arc::new(Sparse { inner, leaves_out: usize::MAX, reads: reads.clone() });
    let mut index = Index::new(1 << 30, Policy::Lru);
    let (mut log, _) = Log::open(files, LogOptions::default(), &mut index).unwrap();
    let objects = 200u64;
    for object in 0..objects {
        for group in 0..3 {
            let first = object * 24 + group * 8;
            let units: Vec<Unit> = (first..first + 8).map(|n| unit(n, UNIT as usize)).collect();
            for (unit, at) in units.iter().zip(log.append(&units).unwrap()) {
                index.insert(&unit.id, at, UNIT, unit.provenance);
            }
        }
    }
    reads.store(0, Ordering::Relaxed);
    for object in 0..objects {
        let ids = (object * 24..object * 24 + 24).map(|n| unit(n, UNIT as usize).id);
        let places: Vec<Location> = ids.map(|id| index.locate(&id).next().unwrap()).collect();
        let runs = places.chunk_by(|before, next| Index::adjacent(*before, UNIT, *next));
        for run in runs {
            log.reader().read(run[0], &vec![UNIT; run.len()]).unwrap();
        }
    }
    let each = reads.load(Ordering::Relaxed) as f64 / objects as f64;
    row("reads for an object of 24 units in 3 groups", format!("{each:.2}"), "reads");
}

fn catalogue() {
    let directory = tempfile::tempdir().unwrap();
    let files = Arc::new(Disk::open(directory.path()).unwrap());
    let options = CatalogueOptions::default();
    let mut catalogue = Catalogue::open(files.clone(), options).unwrap();
    let put = |n: u64| Change::Put {
        key: ObjectKey(name_number(n).0),
        row: vec![n as u8; 300],
        records: Vec::new(),
    };
    let before = resident_kib();
    let (seconds, ()) = timed(|| {
        for batch in 0..1000u64 {
            let changes: Vec<Change> = (batch * 100..batch * 100 + 100).map(put).collect();
            catalogue.apply(&changes).unwrap();
            catalogue.sync().unwrap();
        }
    });
    per_second("catalogue: durable rows, batches of 100", 1e5, seconds, "rows/s");
    let reader = catalogue.reader();
    let (seconds, found) = timed(|| {
        let key = |n: u64| ObjectKey(name_number(n * 7 % 100_000).0);
        (0..100_000).filter(|n| reader.get(&key(*n)).unwrap().is_some()).count()
    });
    nanos("catalogue: look-up among 100,000 rows", found as u64, seconds);
    let report = catalogue.report();
    row("catalogue: file for 100,000 rows of 300 B", report.file_bytes >> 20, "MiB");
    row("catalogue: counted against the budget", report.used_bytes >> 20, "MiB");
    row("catalogue: memory gained", resident_kib().saturating_sub(before), "KiB");
    let killed = tempfile::tempdir().unwrap();
    let name = store::CATALOGUE_FILE;
    std::fs::copy(directory.path().join(name), killed.path().join(name)).unwrap();
    drop((catalogue, reader));
    for (name, path) in [("an orderly end", directory.path()), ("a kill", killed.path())] {
        let files: Arc<dyn Files> = if path == directory.path() {
            files.clone()
        } else {
            Arc::new(Disk::open(path).unwrap())
        };
        let (seconds, catalogue) = timed(|| Catalogue::open(files, options).unwrap());
        assert!(catalogue.report().renamed_files == 0 && catalogue.report().rows > 0);
        let name = format!("catalogue: open after {name}");
        row(&name, format!("{:.1}", seconds * 1e3), "ms");
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
