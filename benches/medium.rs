//! The CPU time per second of virtual time.
//!
//! `cargo bench -p benches --bench medium`; each iteration is one simulated second, so the throughput in elements
//! per second is simulated seconds per CPU second.

#[path = "../crates/radio/tests/common/mod.rs"]
mod common;

use common::{Flows, clique_at, row};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use radio::{Config, Links, Station};
use std::time::Duration;
use wire::Instant;

/// The warm-up: after this time every table and queue is full.
const WARM_UP: Duration = Duration::from_secs(2);
const SECOND: Duration = Duration::from_secs(1);

fn warm(config: Config, links: Links, paths: Vec<Vec<Station>>) -> Flows {
    let mut flows = Flows::new(config, links, 1, paths);
    flows.run(Instant::ZERO + WARM_UP);
    flows
}

/// One flow over eight hops of 200 m.
fn chain(config: Config) -> Flows {
    warm(config, row(9, 200.0), vec![(0..9).map(Station).collect()])
}

/// 22 stations in range of each other; each sends to the next.
fn cell(config: Config) -> Flows {
    warm(
        config,
        clique_at(22, 1_000_000_000),
        (0..22).map(|i| vec![Station(i), Station((i + 1) % 22)]).collect(),
    )
}

/// 50 stations on a grid of 1000 m by 1000 m; each sends to the next in its row.
fn grid(config: Config) -> Flows {
    let place = |i: u16| (f64::from(i % 10) * 110.0, f64::from(i / 10) * 220.0);
    let positions: Vec<_> = (0..50).map(place).collect();
    let links = Links::by_distance(&positions, radio::Ranges::default(), |_| 0.05);
    let next = |i: u16| if i % 10 == 9 { i - 1 } else { i + 1 };
    warm(config, links, (0..50).map(|i| vec![Station(i), Station(next(i))]).collect())
}

fn seconds_on_the_air(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("saturated second");
    group.throughput(Throughput::Elements(1));
    let (ns2, ns3) = (Config::default, Config::like_ns3);
    let announced = Config { rts_threshold: Some(0), ..ns3() };
    for (name, warmed) in [
        ("chain of 8 hops", chain(ns2())),
        ("chain of 8 hops, bit errors", chain(ns3())),
        ("chain of 8 hops, bit errors, RTS", chain(announced)),
        ("cell of 22", cell(ns2())),
        ("cell of 22, bit errors", cell(ns3())),
        ("grid of 50", grid(ns2())),
        ("grid of 50, bit errors", grid(ns3())),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                || warmed.clone(),
                |flows| flows.run(Instant::ZERO + WARM_UP + SECOND),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, seconds_on_the_air);
criterion_main!(benches);
