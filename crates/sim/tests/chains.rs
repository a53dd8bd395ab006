//! Chains of TCP and UDP, held against ns-3.37: 802.11b at 11 Mbit/s, basic rate 1 Mbit/s, 200 m between
//! neighbours, two-ray ground, reception to 250 m and sensing to 550 m, queues of 50; TCP NewReno
//! without selective acknowledgements, UDP at 8 Mbit/s. ns-3's figures are means over 3 seeds; of runs of
//! 30 s, or of 15 where no weak signal holds a receiver, or of 20 where frames are lost beside. Run with
//! `--nocapture` to see the table.
//!
//! Not in it: losses of 20 % of data frames alone, where one of ns-3's three runs stood still for most
//! of the time (749 kbit/s with a deviation of 338; ours 1002 with 12).

use sim::scenario::Scenario;
use sim::world::{self, Outcome, over_seeds};

/// How far goodput may be from ns-3's.
const OFF_MAX: f64 = 0.15;
const SEEDS: [u64; 3] = [1, 2, 3];
/// Long enough for means to be steady.
const SECONDS: &str = "15";

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
    let values: Vec<_> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let (name, mean) = (values.join(" "), goodput.mean);
    println!("{name:60} {mean:7.1} kbit/s, ns-3 {expected_kbps:7.1}, {:+.1} %", off * 100.0);
    assert!(off.abs() <= OFF_MAX, "{name}: {mean:.1} kbit/s, ns-3 {expected_kbps}");
}

/// Hops, and what ns-3 brings over them, with UDP and with TCP.
fn chains(settings: &[(&str, &str)], rows: [(&str, f64, f64); 5]) {
    for (hops, udp_kbps, tcp_kbps) in rows {
        for (traffic, kbps) in [("udp", udp_kbps), ("tcp", tcp_kbps)] {
            compare(&[settings, &[("hops", hops), ("traffic", traffic)]].concat(), kbps);
        }
    }
}

#[test]
fn a_signal_that_is_sensed_holds_the_receiver() {
    let rows = [
        ("1", 5910.7, 4961.0),
        ("2", 2938.4, 2557.7),
        ("4", 1540.1, 1274.9),
        ("6", 1390.4, 1022.0),
        ("8", 1319.3, 879.0),
    ];
    chains(&[], rows);
}

#[test]
fn rts_announces_each_packet() {
    let rows = [
        ("1", 4402.2, 3069.0),
        ("2", 2190.9, 1746.4),
        ("4", 1224.1, 899.9),
        ("6", 977.6, 727.8),
        ("8", 964.5, 700.8),
    ];
    chains(&[("rts", "true")], rows);
}

#[test]
fn weak_signals_do_not_hold_the_receiver() {
    let rows = [
        ("1", 5907.7, 4925.8),
        ("2", 3172.8, 2487.8),
        ("4", 1645.8, 1364.0),
        ("6", 1432.8, 1270.0),
        ("8", 1429.6, 1204.1),
    ];
    chains(&[("receiver", "nolock")], rows);
}

#[test]
fn frames_are_lost_beside() {
    for (per, scope, traffic, kbps) in [
        ("0.05", "all", "tcp", 1097.5),
        ("0.05", "all", "udp", 1373.6),
        ("0.05", "data", "tcp", 1160.2),
        ("0.1", "all", "tcp", 980.3),
        ("0.1", "all", "udp", 1215.1),
        ("0.1", "data", "tcp", 1087.8),
        ("0.2", "all", "tcp", 740.3),
        ("0.2", "all", "udp", 951.5),
        ("0.3", "all", "tcp", 512.2),
        ("0.3", "all", "udp", 709.2),
        ("0.3", "data", "tcp", 825.6),
    ] {
        compare(&[("per", per), ("per_scope", scope), ("traffic", traffic)], kbps);
    }
}
