//! Held against ns-3.37: saturated UDP over chains, contention in one cell, two hidden senders.
//!
//! The figures are means over 3 runs of ns-3 with `basic` 1 Mbit/s, `phy` lock, without RTS: 802.11b at
//! 11 Mbit/s, 1460 bytes of UDP payload, stations 200 m apart, ranges 250 and 550 m, queues of 50.
//! Ours are means over the seeds below. Run with `--nocapture` to see the table.
//!
//! What we know of the differences:
//!
//! - In ns-3 a relay's packet is queued in the SIFS between the data frame that brought it and the
//!   relay's ACK, finds the medium idle, and goes a DIFS after that ACK without a backoff. The
//!   standard asks for a backoff there, since the medium did not stay idle, and so do we. With ns-3's
//!   rule in `contention.rs` the chains of 2 and 4 hops come out at +0.1 and -0.1 %, and as many of
//!   their frames fail as in ns-3 (20.3 % at 4 hops, to its 20.5 %); 6 and 8 hops at -7.4 and -4.5 %.
//! - ns-3 finds a preamble only if it is 4 dB above all else, so that a frame does not lock a receiver
//!   on which something stronger is on the air already, and frames of equal power that collide cause
//!   no EIFS. With that rule cells of 5 and 10 come out at +0.6 and +1.4 %, and the chains of 6 and 8
//!   hops at +7.2 and +6.6 % (+3.0 and +4.7 % with both rules).
//! - ns-3 decides by a bit-error curve what we decide by a 10 dB threshold.

mod common;

use common::{Flows, PAYLOAD, clique, kbps, link, mean, off, row, seconds};
use radio::{Config, Links, Station};

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

/// What ns-3 says, and how far from it we may be.
struct Reference {
    goodput_kbps: f64,
    /// Share of data frames that got no ACK.
    fail: f64,
    goodput_off_max: f64,
    fail_off_max: f64,
}

/// Means over the seeds.
struct Measured {
    goodput_kbps: f64,
    fail: f64,
    given_up: f64,
    relay_drops: f64,
    /// The first flow's share.
    share: f64,
}

fn measure(links: &Links, paths: &[Vec<Station>], duration_s: f64) -> Measured {
    let runs: Vec<Flows> = SEEDS
        .iter()
        .map(|seed| {
            let mut flows = Flows::new(Config::default(), links.clone(), *seed, paths.to_vec());
            flows.run(seconds(duration_s));
            flows
        })
        .collect();
    let over = |value: &dyn Fn(&Flows) -> f64| mean(&runs.iter().map(value).collect::<Vec<_>>());
    let arrived = |run: &Flows| run.arrived.iter().sum::<u64>();
    Measured {
        goodput_kbps: over(&|run| kbps(arrived(run), PAYLOAD, duration_s)),
        fail: over(&|run| {
            let total = run.medium.total();
            total.data_frames_failed as f64 / total.data_frames as f64
        }),
        given_up: over(&|run| run.medium.total().given_up as f64),
        relay_drops: over(&|run| run.relay_drops as f64),
        share: over(&|run| run.arrived[0] as f64 / arrived(run) as f64),
    }
}

fn compare(name: &str, measured: &Measured, reference: &Reference) {
    let goodput_off = off(measured.goodput_kbps, reference.goodput_kbps);
    println!(
        "{name:12} {:7.1} kbit/s to {:7.1} ({:+.1} %), failed {:.4} to {:.4}, given up {:.0}, dropped by relays {:.0}",
        measured.goodput_kbps,
        reference.goodput_kbps,
        100.0 * goodput_off,
        measured.fail,
        reference.fail,
        measured.given_up,
        measured.relay_drops,
    );
    assert!(goodput_off.abs() <= reference.goodput_off_max, "{name}: goodput off {goodput_off}");
    let fail_off = measured.fail - reference.fail;
    assert!(fail_off.abs() <= reference.fail_off_max, "{name}: failures off {fail_off}");
}

/// chain.csv, rows `lock`, `udp`, rts 0.
#[test]
fn chains_of_one_to_eight_hops() {
    for (hops, goodput_kbps, fail, goodput_off_max, fail_off_max) in [
        (1, 5910.73, 0.0, 0.003, 0.0),
        (2, 2938.43, 0.015_092_6, 0.015, 0.003),
        (4, 1540.07, 0.205_034, 0.11, 0.09),
        (6, 1390.44, 0.192_55, 0.05, 0.04),
        (8, 1319.32, 0.192_098, 0.06, 0.03),
    ] {
        let path = (0..=hops).map(Station).collect();
        let measured = measure(&row(usize::from(hops) + 1, 200.0), &[path], 30.0);
        let reference = Reference { goodput_kbps, fail, goodput_off_max, fail_off_max };
        compare(&format!("{hops} hops"), &measured, &reference);
    }
}

/// contention.csv, rows `lock`, `bianchi`, rts 0: all send to one station that only receives.
#[test]
fn cells_of_one_to_ten_senders() {
    for (senders, goodput_kbps, fail) in [
        (1, 5913.59, 0.0),
        (2, 6166.46, 0.062_057_9),
        (5, 6107.67, 0.173_146),
        (10, 5787.05, 0.277_925),
    ] {
        let paths: Vec<_> = (1..=senders).map(|from| vec![Station(from), Station(0)]).collect();
        let measured = measure(&clique(senders + 1), &paths, 20.0);
        let reference =
            Reference { goodput_kbps, fail, goodput_off_max: 0.02, fail_off_max: 0.015 };
        compare(&format!("{senders} senders"), &measured, &reference);
        assert!(off(measured.share, 1.0 / f64::from(senders)).abs() < 0.05, "{}", measured.share);
    }
}

/// contention.csv, row `lock`, `hidsym`, rts 0: two senders that do not sense each other.
#[test]
fn hidden_senders() {
    let mut links = Links::new(3);
    for sender in [Station(1), Station(2)] {
        links.set(sender, Station(0), link(1_000_000));
        links.set(Station(0), sender, link(1_000_000));
    }
    let paths = [vec![Station(1), Station(0)], vec![Station(2), Station(0)]];
    let measured = measure(&links, &paths, 20.0);
    let reference = Reference {
        goodput_kbps: 3696.72,
        fail: 0.467_393,
        goodput_off_max: 0.02,
        fail_off_max: 0.015,
    };
    compare("hidden", &measured, &reference);
    assert!(off(measured.given_up, 437.0).abs() < 0.05, "given up {}", measured.given_up);
    assert!((measured.share - 0.5).abs() < 0.02, "share {}", measured.share);
}
