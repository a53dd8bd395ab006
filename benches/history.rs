//! The costs of a history: `cargo bench -p benches --bench history`. Files are in a directory under
//! `TMPDIR`.

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use store::{Disk, History, HistoryOptions, Mark};

const UNIT: usize = 8 << 10;
/// Units in a run of 64 KiB.
const RUN: u32 = 8;
const BUDGET: u64 = 256 << 20;

fn history(c: &mut Criterion) {
    for (name, key) in [("clear", None), ("enciphered", Some([7; 32]))] {
        let directory = tempfile::tempdir().unwrap();
        let options = HistoryOptions { budget_bytes: BUDGET, key };
        let open = || {
            let files = Arc::new(Disk::open(directory.path()).unwrap());
            History::open(files, options, [1; 16]).unwrap()
        };
        let (mut history, reader, _) = open();
        let units: Vec<(Mark, Bytes)> =
            (0..RUN).map(|n| (Mark::default(), Bytes::from(vec![n as u8; UNIT]))).collect();
        let mut group = c.benchmark_group(format!("history, {name}"));
        group.throughput(Throughput::Bytes(u64::from(RUN) * UNIT as u64));
        group.bench_function("append 64 KiB", |b| {
            b.iter(|| history.append(history.state().end, &units).unwrap());
        });
        group.bench_function("append 64 KiB and sync", |b| {
            b.iter(|| {
                history.append(history.state().end, &units).unwrap();
                history.sync().unwrap()
            });
        });
        while history.state().end - history.state().first < 20_000 {
            history.append(history.state().end, &units).unwrap();
        }
        history.sync().unwrap();
        let state = history.state();
        let mut at = state.first;
        group.bench_function("read 64 KiB from the page cache", |b| {
            b.iter(|| {
                at = if at + 2 * u64::from(RUN) > state.end { state.first } else { at };
                at += u64::from(RUN);
                assert!(black_box(reader.read(at, RUN).unwrap()).is_some());
            });
        });
        group.throughput(Throughput::Elements(state.end - state.first));
        group.bench_function("marks of all units", |b| {
            b.iter(|| {
                let mut found = 0;
                reader.marks(0, u64::MAX, |_, mark| found += u64::from(mark.length)).unwrap();
                found
            });
        });
        drop((history, reader));
        group.bench_function("open", |b| b.iter(|| black_box(open().2)));
        group.finish();
    }
}

criterion_group!(benches, history);
criterion_main!(benches);
