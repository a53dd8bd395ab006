//! What the engine spends on a miss of 1 MiB, without a mesh key and with one, on one core: from the request to
//! the last byte handed out, the body in pieces within what the engine grants.
//!
//! `cargo bench -p benches --bench miss`. What is told is the thread's time on a processor.

mod common;

use common::{OnProcessor, Router, content_of};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use node::OPEN_KEY;
use wire::Instant;

const LENGTH: usize = 1 << 20;

fn misses(criterion: &mut Criterion<OnProcessor>) {
    let body = content_of(LENGTH);
    let mut group = criterion.benchmark_group("a miss of 1024 KiB");
    group.throughput(Throughput::Bytes(LENGTH as u64));
    for (name, secret) in [("without a key", OPEN_KEY), ("with a key", [7; 32])] {
        group.bench_function(name, |b| {
            b.iter_batched_ref(
                || Router::new(secret, &body, None),
                |router| {
                    router.ask(Instant::ZERO);
                    assert_eq!(router.got(), Some(LENGTH));
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(OnProcessor);
    targets = misses
}
criterion_main!(benches);
