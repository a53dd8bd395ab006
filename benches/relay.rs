//! What three engines spend on an object of 1 MiB that the gateway holds and a relay passes on: a client of
//! the third asks for it, and units go from peer to peer, with all that is said over the links.
//!
//! `cargo bench -p benches --bench relay`. What is told is the thread's time on a processor, of all three together.

mod common;

use bytes::Bytes;
use common::{Chain, OnProcessor, content_of};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const LENGTH: usize = 1 << 20;

/// All have met, and the gateway has the object in its memory.
fn warm(body: &Bytes) -> Chain {
    let mut chain = Chain::new(3, [7; 32], body);
    // The first brings it, the second reads its row.
    (0..2).for_each(|_| assert_eq!(chain.get(0), LENGTH));
    chain
}

fn relays(criterion: &mut Criterion<OnProcessor>) {
    let body = content_of(LENGTH);
    let mut once = warm(&body);
    assert_eq!(once.get(2), LENGTH);
    assert!(
        once.routers[1].node.report().peer_units_out_bytes >= LENGTH as u64,
        "it passes the relay"
    );
    let mut group = criterion.benchmark_group("1024 KiB from peer to peer");
    group.throughput(Throughput::Bytes(LENGTH as u64));
    group.bench_function("over a relay", |b| {
        b.iter_batched_ref(
            || warm(&body),
            |chain| assert_eq!(chain.get(2), LENGTH),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(OnProcessor);
    targets = relays
}
criterion_main!(benches);
