//! Held against ns-3.37: saturated UDP over chains, contention in one cell, two hidden senders.
mod common;

use common::{Flows, PAYLOAD, clique_at, kbps, link, mean, off, row_losing, seconds};
use radio::{Config, Links, Locking, LossScope, Station};

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

struct Measured {
    goodput_kbps: f64,
    fail: f64,
    rts_fail: f64,
    given_up: f64,
    relay_drops: f64,
    share: f64,
}

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
    Measured {
        goodput_kbps: over(&|run| kbps(arrived(run), PAYLOAD, duration_s)),
        fail: over(&|run| {
            let total = run.medium.total();
            total.data_frames_failed as f64 / total.data_frames as f64
        }),
        rts_fail: over(&|run| {
            let total = run.medium.total();
            total.rts_frames_failed as f64 / total.rts_frames.max(1) as f64
        }),
        given_up: over(&|run| run.medium.total().given_up as f64),
        relay_drops: over(&|run| run.relay_drops as f64),
        share: over(&|run| run.arrived[0] as f64 / arrived(run) as f64),
    }
}

#[test]
fn explore() {
    let chain = |config: &Config, hops: u16, per: f64, s: f64| {
        let path = (0..=hops).map(Station).collect();
        measure(config, &row_losing(usize::from(hops) + 1, 200.0, per), &[path], s)
    };
    let show = |name: &str, m: Measured, g: f64, f: f64, rf: f64, up: f64, rd: f64| {
        println!(
            "{name:26} {:7.1} / {g:7.1} {:+6.1} %  fail {:.4}/{f:.4} rts {:.4}/{rf:.4} given up {:5.1}/{up:5.1} relay {:6.0}/{rd:6.0} share {:.3}",
            m.goodput_kbps,
            100.0 * off(m.goodput_kbps, g),
            m.fail,
            m.rts_fail,
            m.given_up,
            m.relay_drops,
            m.share
        );
    };
    let mut variants = vec![("standard capture", Config::default()), ("ns3", Config::like_ns3())];
    variants.push(("ber standard", Config { dcf: radio::Dcf::Standard, ..Config::like_ns3() }));
    for (name, base) in variants {
        println!("== {name}");
        for (h, g, f) in [
            (1, 5910.73, 0.0),
            (2, 2938.43, 0.0150926),
            (4, 1540.07, 0.205034),
            (6, 1390.44, 0.19255),
            (8, 1319.32, 0.192098),
        ] {
            show(&format!("{h} hops"), chain(&base, h, 0.0, 30.0), g, f, 0.0, 0.0, 0.0);
        }
        let rts = Config { rts_threshold: Some(0), ..base.clone() };
        for (h, g, f, rf, rd) in [
            (1, 4402.19, 0.0, 0.0, 0.0),
            (2, 2190.91, 0.0, 0.0153, 0.0),
            (4, 1224.06, 0.000132, 0.21373, 0.0),
            (6, 977.616, 0.0008, 0.2173, 1574.0),
            (8, 964.508, 0.00198, 0.19907, 1675.0),
        ] {
            show(&format!("{h} hops rts"), chain(&rts, h, 0.0, 30.0), g, f, rf, 0.0, rd);
        }
        let nolock = Config { locking: Locking::Decodable, ..base.clone() };
        for (h, g, f, rd) in [
            (1, 5907.74, 0.0, 0.0),
            (2, 3172.81, 0.02581, 0.0),
            (4, 1645.84, 0.0330, 1791.0),
            (6, 1432.75, 0.02596, 2080.0),
            (8, 1429.63, 0.0218, 2059.0),
        ] {
            show(&format!("{h} hops nolock"), chain(&nolock, h, 0.0, 15.0), g, f, 0.0, 0.0, rd);
        }
        let all = Config { loss_scope: LossScope::All, ..base.clone() };
        for (per, g, f, up, rd) in [
            (0.05, 1373.57, 0.2628, 1.33, 0.0),
            (0.1, 1215.11, 0.3213, 7.33, 13.0),
            (0.2, 951.53, 0.4338, 42.7, 33.0),
            (0.3, 709.17, 0.5505, 99.7, 71.7),
        ] {
            show(&format!("4 hops per {per}"), chain(&all, 4, per, 20.0), g, f, 0.0, up, rd);
        }
        for (r, n, g, f, rf) in [
            (0, 1, 5913.59, 0.0, 0.0),
            (0, 2, 6166.46, 0.06206, 0.0),
            (0, 5, 6107.67, 0.17315, 0.0),
            (0, 10, 5787.05, 0.2779, 0.0),
            (1, 1, 4404.92, 0.0, 0.0),
            (1, 2, 4600.75, 0.0, 0.0623),
            (1, 5, 4680.37, 0.0, 0.1751),
            (1, 10, 4601.34, 0.0, 0.2802),
        ] {
            let paths: Vec<_> = (1..=n).map(|from| vec![Station(from), Station(0)]).collect();
            let config = if r == 1 { &rts } else { &base };
            show(
                &format!("cell of {n} rts {r}"),
                measure(config, &clique_at(n + 1, 1_000_000_000), &paths, 20.0),
                g,
                f,
                rf,
                0.0,
                0.0,
            );
        }
        let mut links = Links::new(3);
        for sender in [Station(1), Station(2)] {
            links.set(sender, Station(0), link(1_000_000_000));
            links.set(Station(0), sender, link(1_000_000_000));
        }
        let paths = [vec![Station(1), Station(0)], vec![Station(2), Station(0)]];
        show("hidden", measure(&base, &links, &paths, 20.0), 3696.72, 0.4674, 0.0, 437.0, 0.0);
        show("hidden rts", measure(&rts, &links, &paths, 20.0), 4150.88, 0.0515, 0.1317, 38.0, 0.0);
    }
}
