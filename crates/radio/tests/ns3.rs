//! Held against ns-3.37: saturated UDP over chains with and without RTS, with both receiver models and
//! with losses; contention in one cell; two hidden senders; an exposed and an asymmetric pair.
//!
//! The figures are means over 3 runs of ns-3 with `basic` 1 Mbit/s: 802.11b at 11 Mbit/s, 1460 bytes of
//! UDP payload, stations 200 m apart, ranges 250 and 550 m, queues of 50. Ours are means over the seeds
//! below, with [`Config::like_ns3`]. Run with `--nocapture` to see the table.
//!
//! What we know of the differences:
//!
//! - ns-3's reading of the DCF ([`Dcf::Ns3`]) makes relays more eager, and then more of their frames
//!   fail. With [`Dcf::Standard`] chains of 4 to 8 hops come out 8 to 12 % above ns-3 where the first
//!   signal holds the receiver, and 5 % below where weak ones do not.
//! - With the threshold of 10 dB in the place of bit errors, chains stay within 9 % of ns-3; two hidden
//!   senders with RTS lose three times as many packets, since no preamble is found under another.
//! - Where the first signal holds the receiver, fewer frames fail on chains of 6 and 8 hops than in
//!   ns-3 (16 to 19 %), and their goodput is higher by some 5 %.
//! - In cells ns-3's stations wait for an EIFS after some collisions and not after others; here all are
//!   equally strong, and nobody finds a preamble among equals. That makes 2 % among ten.

mod common;

use common::{Flows, PAYLOAD, clique_at, kbps, link, mean, off, row_losing, seconds};
use radio::{Config, Dcf, Decoding, Links, Locking, LossScope, Ranges, Station};

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
/// Of a strong signal, in attowatts: -60 dBm.
const STRONG: u64 = 1_000_000_000;

/// Means over the seeds.
#[derive(Debug)]
struct Measured {
    goodput_kbps: f64,
    /// Share of data frames that got no ACK.
    fail: f64,
    /// Share of RTS that got no CTS.
    rts_fail: f64,
    given_up: f64,
    relay_drops: f64,
    /// The first flow's share.
    share: f64,
}

/// What ns-3 says: goodput in kbit/s, share of data frames that got no ACK, of RTS that got no CTS.
type Reference = (f64, f64, f64);

fn measure(config: &Config, links: &Links, paths: &[Vec<Station>], duration_s: f64) -> Measured {
    let runs: Vec<Flows> = SEEDS
        .iter()
        .map(|seed| {
            let mut flows = Flows::new(config.clone(), links.clone(), *seed, paths.to_vec());
            flows.run(seconds(duration_s));
            flows
        })
        .collect();
    let over = |value: &dyn Fn(&Flows) -> f64| mean(&runs.iter().map(value).collect::<Vec<_>>());
    let arrived = |run: &Flows| run.arrived.iter().sum::<u64>();
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    Measured {
        goodput_kbps: over(&|run| kbps(arrived(run), PAYLOAD, duration_s)),
        fail: over(&|run| {
            let total = run.medium.total();
            share(total.data_frames_failed, total.data_frames)
        }),
        rts_fail: over(&|run| {
            let total = run.medium.total();
            share(total.rts_frames_failed, total.rts_frames)
        }),
        given_up: over(&|run| run.medium.total().given_up as f64),
        relay_drops: over(&|run| run.relay_drops as f64),
        share: over(&|run| share(run.arrived[0], arrived(run))),
    }
}

/// Compares with ns-3: the goodput within a share of it, the failures within so much in all.
fn compare(name: &str, measured: &Measured, reference: Reference, off_max: f64, fail_max: f64) {
    let (goodput_kbps, fail, rts_fail) = reference;
    let goodput_off = off(measured.goodput_kbps, goodput_kbps);
    println!(
        "{name:24} {:7.1} kbit/s to {goodput_kbps:7.1} ({:+.1} %), failed {:.4} to {fail:.4}, \
         RTS {:.4} to {rts_fail:.4}, given up {:.0}, dropped by relays {:.0}, share {:.3}",
        measured.goodput_kbps,
        100.0 * goodput_off,
        measured.fail,
        measured.rts_fail,
        measured.given_up,
        measured.relay_drops,
        measured.share,
    );
    assert!(goodput_off.abs() <= off_max, "{name}: goodput off {goodput_off}");
    for fail_off in [measured.fail - fail, measured.rts_fail - rts_fail] {
        assert!(fail_off.abs() <= fail_max, "{name}: failures off {fail_off}");
    }
}

fn chain(config: &Config, hops: u16, loss: f64, duration_s: f64) -> Measured {
    let path = (0..=hops).map(Station).collect();
    measure(config, &row_losing(usize::from(hops) + 1, 200.0, loss), &[path], duration_s)
}

fn with_rts(config: Config) -> Config {
    Config { rts_threshold: Some(0), ..config }
}

/// chain.csv, rows `lock`, `udp`.
#[test]
fn chains_of_one_to_eight_hops() {
    for (hops, plain, rts) in [
        (1, (5910.73, 0.0, 0.0), (4402.19, 0.0, 0.0)),
        (2, (2938.43, 0.015_093, 0.0), (2190.91, 0.0, 0.015_251)),
        (4, (1540.07, 0.205_034, 0.0), (1224.06, 0.000_132, 0.213_73)),
        (6, (1390.44, 0.192_55, 0.0), (977.616, 0.000_804, 0.217_319)),
        (8, (1319.32, 0.192_098, 0.0), (964.508, 0.001_982, 0.199_065)),
    ] {
        let (off_max, fail_max) = if hops < 6 { (0.01, 0.003) } else { (0.08, 0.035) };
        let config = Config::like_ns3();
        let measured = chain(&config, hops, 0.0, 30.0);
        compare(&format!("{hops} hops"), &measured, plain, off_max, fail_max);
        let measured = chain(&with_rts(config), hops, 0.0, 30.0);
        compare(&format!("{hops} hops, RTS"), &measured, rts, off_max.min(0.05), fail_max);
    }
}

/// chain_nolock.csv, rows `udp`.
#[test]
fn chains_where_weak_frames_only_add_energy() {
    let config = Config { locking: Locking::Decodable, ..Config::like_ns3() };
    for (hops, goodput_kbps, fail, relay_drops) in [
        (1, 5907.74, 0.0, 0.0),
        (2, 3172.81, 0.025_81, 0.0),
        (4, 1645.84, 0.033_023, 1791.0),
        (6, 1432.75, 0.025_962, 2080.0),
        (8, 1429.63, 0.021_809, 2059.33),
    ] {
        let measured = chain(&config, hops, 0.0, 15.0);
        let name = format!("{hops} hops, no lock");
        compare(&name, &measured, (goodput_kbps, fail, 0.0), 0.02, 0.003);
        assert!((measured.relay_drops - relay_drops).abs() < 0.03 * relay_drops + 1.0, "{name}");
    }
}

/// chain_per.csv, rows `udp`: 4 hops, all frames may be lost.
#[test]
fn chains_that_lose_frames() {
    let config = Config { loss_scope: LossScope::All, ..Config::like_ns3() };
    for (loss, goodput_kbps, fail, given_up) in [
        (0.05, 1373.57, 0.262_795, 1.3),
        (0.1, 1215.11, 0.321_253, 7.3),
        (0.2, 951.531, 0.433_767, 42.7),
        (0.3, 709.171, 0.550_459, 99.7),
    ] {
        let measured = chain(&config, 4, loss, 20.0);
        let name = format!("4 hops, {loss} lost");
        compare(&name, &measured, (goodput_kbps, fail, 0.0), 0.03, 0.015);
        assert!((measured.given_up - given_up).abs() < 0.12 * given_up + 3.0, "{name}");
    }
}

/// contention.csv, rows `lock`, `bianchi`: all send to one station that only receives.
#[test]
fn cells_of_one_to_ten_senders() {
    for (senders, plain, rts) in [
        (1, (5913.59, 0.0, 0.0), (4404.92, 0.0, 0.0)),
        (2, (6166.46, 0.062_058, 0.0), (4600.75, 0.0, 0.062_284)),
        (5, (6107.67, 0.173_146, 0.0), (4680.37, 0.0, 0.175_147)),
        (10, (5787.05, 0.277_925, 0.0), (4601.34, 0.0, 0.280_193)),
    ] {
        let paths: Vec<_> = (1..=senders).map(|from| vec![Station(from), Station(0)]).collect();
        let links = clique_at(senders + 1, STRONG);
        for (config, reference) in
            [(Config::like_ns3(), plain), (with_rts(Config::like_ns3()), rts)]
        {
            let measured = measure(&config, &links, &paths, 20.0);
            compare(&format!("{senders} senders"), &measured, reference, 0.025, 0.006);
            assert!(off(measured.share, 1.0 / f64::from(senders)).abs() < 0.05);
        }
    }
}

/// contention.csv, rows `lock`, `hidsym`: two senders that do not sense each other.
#[test]
fn hidden_senders() {
    let mut links = Links::new(3);
    for sender in [Station(1), Station(2)] {
        links.set(sender, Station(0), link(STRONG));
        links.set(Station(0), sender, link(STRONG));
    }
    let paths = [vec![Station(1), Station(0)], vec![Station(2), Station(0)]];
    for (name, config, reference, given_up) in [
        ("hidden", Config::like_ns3(), (3696.72, 0.467_393, 0.0), 437.0),
        ("hidden, RTS", with_rts(Config::like_ns3()), (4150.88, 0.051_546, 0.131_718), 38.0),
    ] {
        let measured = measure(&config, &links, &paths, 20.0);
        compare(name, &measured, reference, 0.01, 0.006);
        assert!(off(measured.given_up, given_up).abs() < 0.1, "{name}: {}", measured.given_up);
        assert!((measured.share - 0.5).abs() < 0.06, "{name}: share {}", measured.share);
    }
}

/// Two senders that sense each other, and whose receivers only hear their own: they take turns though
/// they need not, and fairly.
#[test]
fn exposed_senders() {
    let places = [0.0, 200.0, 400.0, 600.0].map(|x| (x, 0.0));
    let links = Links::by_distance(&places, Ranges::default(), |_| 0.0);
    let paths = [vec![Station(1), Station(0)], vec![Station(2), Station(3)]];
    let measured = measure(&Config::like_ns3(), &links, &paths, 20.0);
    println!("exposed {measured:?}");
    assert!((0.9..1.15).contains(&(measured.goodput_kbps / 6166.46)), "{measured:?}");
    assert!((measured.share - 0.5).abs() < 0.03, "{measured:?}");
}

/// One receiver is 200 m from its sender and 300 m from another that its sender does not sense: 7 dB
/// apart, at which most frames survive by their bit errors, and none by the threshold of 10 dB. At
/// 250 m, 3.9 dB, none survive by either.
#[test]
fn asymmetric_senders() {
    let share = |apart_m: f64, decoding: Decoding| {
        let places = [0.0, 200.0, 200.0 + apart_m, 400.0 + apart_m].map(|x| (x, 0.0));
        let ranges = Ranges { receive_m: 250.0, sense_m: 440.0 };
        let links = Links::by_distance(&places, ranges, |_| 0.0);
        let paths = [vec![Station(0), Station(1)], vec![Station(2), Station(3)]];
        let config = Config { decoding, ..Config::like_ns3() };
        let measured = measure(&config, &links, &paths, 10.0);
        println!("asymmetric {apart_m} m {decoding:?} {measured:?}");
        measured.share
    };
    let [near, far] = [250.0, 300.0].map(|apart_m| {
        [Decoding::BitErrors, Decoding::Capture].map(|decoding| share(apart_m, decoding))
    });
    assert!(near[0] < 0.1 && near[1] < 0.1, "{near:?}");
    assert!(far[0] > 0.25 && far[1] < 0.1, "{far:?}");
}

/// The standard's DCF on the same chains: near, and on which side is known.
#[test]
fn the_standard_differs_from_ns3_by_little() {
    let config = Config { dcf: Dcf::Standard, ..Config::like_ns3() };
    let weak = Config { locking: Locking::Decodable, ..config.clone() };
    for (hops, locked_kbps, weak_kbps) in [(4, 1540.07, 1645.84), (8, 1319.32, 1429.63)] {
        let (locked, weak) = (chain(&config, hops, 0.0, 20.0), chain(&weak, hops, 0.0, 20.0));
        let offs = (off(locked.goodput_kbps, locked_kbps), off(weak.goodput_kbps, weak_kbps));
        println!("{hops} hops by the standard: {offs:.3?}");
        assert!((0.0..0.13).contains(&offs.0) && (-0.08..0.0).contains(&offs.1), "{offs:?}");
    }
}
