//! The cost of sealing compared with cutting and naming, and the cost of opening a unit for a
//! client.
//!
//! `cargo bench -p benches --bench sealing`; all figures are for the same 64 MiB of random bytes on
//! one core.

use std::hint::black_box;
use std::time::Duration;

use content::{ChunkId, Cutter, Key, Profile, Sealer, cipher, name};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const OBJECT_BYTES: usize = 64 << 20;

fn object() -> Vec<u8> {
    let mut object = vec![0; OBJECT_BYTES];
    cipher(&[1; 32], &mut object);
    object
}

/// Calls `take` with a copy of each unit, as in a node.
fn for_each_unit(object: &[u8], mut take: impl FnMut(Vec<u8>)) {
    let mut cutter = Cutter::new(Profile::DEFAULT);
    let mut rest = object;
    while let Some(cut) = cutter.cut(rest) {
        let (unit, after) = rest.split_at(cut.consumed);
        take(unit.to_vec());
        rest = after;
    }
    if cutter.finish().is_some() {
        take(rest.to_vec());
    }
}

fn sealed_units(object: &[u8], sealer: &Sealer) -> Vec<(ChunkId, Key, Vec<u8>)> {
    let mut units = Vec::new();
    for_each_unit(object, |mut unit| {
        let key = sealer.seal(&mut unit);
        units.push((name(&unit), key, unit));
    });
    units
}

fn sealing(criterion: &mut Criterion) {
    let (object, sealer) = (object(), Sealer::new(&[2; 32]));
    let units = sealed_units(&object, &sealer);
    let mut group = criterion.benchmark_group("sealing");
    group.throughput(Throughput::Bytes(object.len() as u64));
    group.sample_size(10).measurement_time(Duration::from_secs(4));
    group.bench_function("cut, copied and named", |b| {
        b.iter(|| {
            for_each_unit(black_box(&object), |unit| {
                black_box(name(&unit));
            });
        });
    });
    group.bench_function("cut, copied, sealed and named", |b| {
        b.iter(|| {
            for_each_unit(black_box(&object), |mut unit| {
                black_box(sealer.seal(&mut unit));
                black_box(name(&unit));
            });
        });
    });
    group.bench_function("read back and named", |b| {
        b.iter(|| {
            for (_, _, unit) in &units {
                black_box(name(unit));
            }
        });
    });
    group.bench_function("copied and deciphered", |b| {
        b.iter(|| {
            for (_, key, unit) in &units {
                let mut unit = unit.clone();
                cipher(key, &mut unit);
                black_box(unit);
            }
        });
    });
    group.bench_function("copied and opened", |b| {
        b.iter(|| {
            for (_, key, unit) in &units {
                let mut unit = unit.clone();
                sealer.open(key, &mut unit).expect("the key is its own");
                black_box(unit);
            }
        });
    });
    group.finish();
}

criterion_group!(benches, sealing);
criterion_main!(benches);
