//! What the engine spends on a warm hit, without a mesh key and with one, on one core: from the request to
//! the last byte handed out, all units in memory.
//!
//! `cargo bench -p benches --bench hit`. Of 64 KiB and of 1 MiB; beside it the cipher alone over as many bytes,
//! and the cipher with the check of what comes out. What is told is the
//! thread's time on a processor.

mod common;

use std::hint::black_box;

use common::{OnProcessor, Router, content_of};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use node::OPEN_KEY;
use wire::Instant;

const SIZES: [usize; 2] = [64 << 10, 1 << 20];

/// A router with an object in its memory.
struct Hit(Router);

impl Hit {
    fn new(secret: [u8; 32], length: usize) -> Self {
        let mut hit = Self(Router::new(secret, &content_of(length), None));
        // The first brings it, the second reads its row.
        (0..2).for_each(|_| assert_eq!(hit.get(), Some(length)));
        hit
    }

    /// Asks for the object, and takes all of it: answers how much that was.
    #[inline(never)]
    fn get(&mut self) -> Option<usize> {
        self.0.ask(Instant::ZERO);
        self.0.got()
    }
}

fn hits(criterion: &mut Criterion<OnProcessor>) {
    for length in SIZES {
        let mut group = criterion.benchmark_group(format!("a hit of {} KiB", length >> 10));
        group.throughput(Throughput::Bytes(length as u64));
        for (name, secret) in [("without a key", OPEN_KEY), ("with a key", [7; 32])] {
            let mut hit = Hit::new(secret, length);
            group.bench_function(name, |b| b.iter(|| assert_eq!(hit.get(), Some(length))));
        }
        let sealer = content::Sealer::new(&[7; 32]);
        let mut units = vec![vec![0; 8192]; length / 8192];
        let keys: Vec<_> = units.iter_mut().map(|unit| sealer.seal(unit)).collect();
        group.bench_function("the cipher alone", |b| {
            b.iter(|| {
                for (unit, key) in units.iter_mut().zip(&keys) {
                    content::cipher(key, black_box(unit));
                }
            });
        });
        let clear = vec![0; 8192];
        group.bench_function("the check alone", |b| {
            b.iter(|| {
                for _ in &keys {
                    black_box(content::name(black_box(&clear)));
                }
            });
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(OnProcessor);
    targets = hits
}
criterion_main!(benches);
