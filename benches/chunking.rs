//! The speed of cutting and naming, compared with a single-resolution chunker of the same average.
//!
//! `cargo bench -p benches --bench chunking`; all figures are for the same 128 MiB of random bytes on one core.

use std::hint::black_box;
use std::time::Duration;

use content::{ChunkId, Cutter, Profile, Tree, name, names, parent_name};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fastcdc::v2020::FastCDC;

const OBJECT_BYTES: usize = 128 << 20;

/// xorshift64* (Vigna, 2016): incompressible, and the same on every machine.
fn object() -> Vec<u8> {
    let mut state = 0x2026_1120_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()
    });
    words.take(OBJECT_BYTES / 8).flatten().collect()
}

/// Calls `take` with each unit, and whether its parent ends with it.
fn for_each_unit<'a>(object: &'a [u8], mut take: impl FnMut(&'a [u8], bool)) {
    let mut cutter = Cutter::new(Profile::DEFAULT);
    let mut rest = object;
    while let Some(cut) = cutter.cut(rest) {
        let (unit, after) = rest.split_at(cut.consumed);
        take(unit, cut.parent_end);
        rest = after;
    }
    if let Some(cut) = cutter.finish() {
        take(rest, cut.parent_end);
    }
}

fn scan(object: &[u8]) -> usize {
    let mut units = 0;
    for_each_unit(object, |_, _| units += 1);
    units
}

fn units_and_parents(object: &[u8]) -> Vec<ChunkId> {
    let mut parents = Vec::new();
    let mut units = Vec::new();
    for_each_unit(object, |unit, parent_end| {
        units.push(name(unit));
        if parent_end {
            parents.push(parent_name(&units));
            units.clear();
        }
    });
    parents
}

/// The levels inside a unit are named one parent at a time, as a sender to the uplink does.
fn all_levels(object: &[u8]) -> usize {
    let (mut units, mut out) = (Vec::new(), Vec::new());
    let (mut tree, mut small) = (Tree::default(), Vec::new());
    let mut named = 0;
    for_each_unit(object, |unit, parent_end| {
        units.push(name(unit));
        tree.divide(Profile::DEFAULT, unit);
        small.extend(tree.pieces().chain(tree.grains()).map(|range| &unit[range]));
        if parent_end {
            black_box(parent_name(&units));
            names(&small, &mut out);
            named += black_box(&out).len();
            units.clear();
            small.clear();
            out.clear();
        }
    });
    named
}

fn fastcdc_chunks(object: &[u8]) -> impl Iterator<Item = &[u8]> {
    FastCDC::new(object, 4 << 10, 8 << 10, 16 << 10)
        .map(|chunk| &object[chunk.offset..chunk.offset + chunk.length])
}

fn chunking(criterion: &mut Criterion) {
    let object = object();
    let mut group = criterion.benchmark_group("chunking");
    group.throughput(Throughput::Bytes(object.len() as u64));
    group.sample_size(10).measurement_time(Duration::from_secs(4));
    group.bench_function("scan", |b| b.iter(|| scan(black_box(&object))));
    group.bench_function("units and parents, named", |b| {
        b.iter(|| units_and_parents(black_box(&object)));
    });
    group.bench_function("all four levels, named", |b| b.iter(|| all_levels(black_box(&object))));
    group.bench_function("fastcdc scan", |b| {
        b.iter(|| fastcdc_chunks(black_box(&object)).count());
    });
    group.bench_function("fastcdc and BLAKE3", |b| {
        b.iter(|| fastcdc_chunks(black_box(&object)).map(name).collect::<Vec<_>>());
    });
    group.finish();
}

criterion_group!(benches, chunking);
criterion_main!(benches);
