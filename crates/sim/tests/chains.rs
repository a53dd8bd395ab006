//! Chains of TCP and UDP, held against ns-3.37: 802.11b at 11 Mbit/s, basic rate 1 Mbit/s, 200 m between
//! neighbours, the first signal in carrier-sense range holds the receiver, no RTS, queues of 50; TCP
//! NewReno without selective acknowledgements. ns-3's figures are means over 3 seeds of 30 s. Run with
//! `--nocapture` to see the table.

use sim::scenario::Scenario;
use sim::world::{self, Outcome, over_seeds};

/// How far goodput may be from ns-3's.
const OFF_MAX: f64 = 0.15;
const SEEDS: [u64; 3] = [1, 2, 3];
const SECONDS: &str = "20";

fn run(settings: &[(&str, &str)], seed: u64) -> Outcome {
    let settings: Vec<_> =
        settings.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let scenario = Scenario::load("bulk", &settings).unwrap();
    world::run(&scenario, seed, None).unwrap()
}

fn compare(settings: &[(&str, &str)], expected_kbps: f64) {
    let settings = [&[("seconds", SECONDS)], settings].concat();
    let runs: Vec<_> = SEEDS.iter().map(|seed| run(&settings, *seed)).collect();
    assert!(runs.iter().all(|run| run.failed.is_empty()));
    let (name, goodput) = over_seeds(&runs)[0];
    assert_eq!(name, "goodput_kbps");
    let off = goodput.mean / expected_kbps - 1.0;
    println!(
        "{settings:?}: {:.1} kbit/s, ns-3 {expected_kbps:.1}, {:+.1} %",
        goodput.mean,
        off * 100.0
    );
    assert!(off.abs() <= OFF_MAX, "{settings:?}: {:.1} kbit/s, ns-3 {expected_kbps}", goodput.mean);
}

#[test]
fn tcp() {
    for (hops, kbps) in [("1", 4961.0), ("2", 2557.7), ("4", 1274.9), ("6", 1022.0), ("8", 879.0)] {
        compare(&[("traffic", "tcp"), ("hops", hops)], kbps);
    }
}

#[test]
fn udp() {
    for (hops, kbps) in [("1", 5910.7), ("2", 2938.4), ("4", 1540.1), ("6", 1390.4), ("8", 1319.3)]
    {
        compare(&[("traffic", "udp"), ("hops", hops)], kbps);
    }
}
