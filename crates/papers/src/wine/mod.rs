//! WINE, chapter 5: TCP and real-time traffic over a chain of eight hops and a cross, without pacing, with the
//! thesis's, and with ours.
//!
//! *Where to start:* [`plan`]; `run.rs` for one run, `summary.rs` for the comparison.

mod run;
mod summary;
mod targets;

use crate::experiment::{Experiment, Extent, Point, Runs, Short};
use run::{BASIC, CHAIN, Case, Ground, OURS, Series, THINNED, WINE};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "wine",
    title: "WINE, sections 5.1 and 5.2",
    about: "Pacing between interlay nodes: one to eight TCP flows, a constant rate, ssh and video over eight hops, and a cross",
    columns: COLUMNS,
    runs: Runs { simulated: 10, real: 0, quick: 1 },
    short: Short::Smaller,
    plan,
    summarise: summary::summarise,
};

/// The figures of a run: MB received; packets dropped in the mesh (by MACs after the last try, and by relays' queues)
/// and where they enter it; variation of delay; key strokes without an echo, in per cent, and how ssh fared.
const COLUMNS: &[&str] = &[
    "received_mb",
    "dropped",
    "dropped_at_source",
    "variation_mean_ms",
    "variation_p95_ms",
    "ssh_lost",
    "ssh_kbps",
    "ssh_echo_p95_ms",
];

/// Table 5.1 with ns-2's TCP and RTS, and with ours.
const FTP: &str = "ftp";
const FTP_OURS: &str = "ftp, our TCP";
/// By TCP's recovery of losses.
const RENO: &str = "ftp, Reno";
const SACK: &str = "ftp, SACK";
/// By who paces.
const NODES_WINE: &str = "wine at other nodes";
const NODES_OURS: &str = "ours at other nodes";
const CBR: &str = "cbr";
const CROSS: &str = "cross";
const SSH: &str = "ssh";
const VIDEO: &str = "video";

/// The pacing that each panel compares.
const ALL: [Series; 4] = [BASIC, WINE, OURS, THINNED];

/// The cross, with the chain's nodes on both ways.
const CROSSING: Ground = Ground { scenario: "wine-cross", interlay: "w0 w3 w6 w8 n0 n3 n6 n8" };
/// Other nodes than the thesis's. One alone paces nothing: it has no neighbour.
const PLACES: [(&str, &str); 3] = [("0, 3, 6, 8", "0 3 6 8"), ("all", ""), ("0 and 8", "0 8")];

/// What ns-2 does if it is told nothing: segments of 1000 bytes that are acknowledged one by one, a window of 20, and
/// RTS before each packet.
const NS2: &[(&str, &str)] =
    &[("mss", "1000"), ("delayed_ack", "1"), ("receive_buffer", "20000"), ("rts", "true")];

/// As many flows of TCP, each 20 s after the one before, for 100 s, and no longer than 200 s.
fn staggered(flows: u32, seconds: u32) -> String {
    let flow = |number: u32| {
        let starts = 20 * number;
        format!("0:8:tcp:{starts}:{}", (starts + 100).min(seconds))
    };
    (0..flows).map(flow).collect::<Vec<_>>().join(" ")
}

fn plan(extent: Extent) -> Vec<Point> {
    let is_quick = extent == Extent::Quick;
    let seconds = if is_quick { 20 } else { 200 };
    let mut points = Vec::new();
    let mut add = |panel, x: f64, case: Case| points.push((panel, x, case));
    let case = |series, between: &str, keys| {
        let between = between.to_owned();
        Case { ground: CHAIN, series, between, seconds, keys }
    };
    let most = if is_quick { 1 } else { 8 };
    for flows in 1..=most {
        let between = staggered(flows, seconds);
        for series in ALL {
            add(FTP, flows.into(), case(series, &between, NS2));
        }
    }
    for (panel, keys) in [
        (FTP_OURS, &[][..]),
        (RENO, &[("tcp_recovery", "reno")]),
        (SACK, &[("tcp_recovery", "sack")]),
    ] {
        for flows in [1, most] {
            let between = staggered(flows, seconds);
            for series in ALL {
                add(panel, flows.into(), case(series, &between, keys));
            }
            if is_quick {
                break;
            }
        }
    }
    for (panel, of) in [(NODES_WINE, WINE), (NODES_OURS, THINNED)] {
        for (name, interlay) in PLACES {
            let ground = Ground { interlay, ..CHAIN };
            let series = Series { name, ..of };
            let case = case(series, &staggered(1, seconds), &[]);
            add(panel, 1.0, Case { ground, ..case });
        }
    }
    for series in ALL {
        add(CBR, 0.0, case(series, "0:8:cbr@2.66", &[]));
        let cross = case(series, "w0:w8:tcp n0:n8:tcp", &[]);
        add(CROSS, 0.0, Case { ground: CROSSING, ..cross });
        add(SSH, 0.0, case(series, "0:8:tcp 0:8:ssh", &[]));
        add(VIDEO, 0.0, case(series, "0:8:vbr@0.6 0:8:vbr@0.6", &[]));
    }
    // Panels are listed one after the other.
    points.sort_by_key(|(panel, ..)| PANELS.iter().position(|it| it == panel));
    let mut ranks = Vec::new();
    points
        .into_iter()
        .map(|(panel, x, case)| {
            let curve = (panel, case.series.name);
            let rank = ranks.iter().position(|it| *it == curve).unwrap_or_else(|| {
                ranks.push(curve);
                ranks.len() - 1
            });
            case.point(panel, x, rank)
        })
        .collect()
}

/// The panels in their order.
const PANELS: [&str; 10] =
    [FTP, FTP_OURS, RENO, SACK, NODES_WINE, NODES_OURS, CBR, CROSS, SSH, VIDEO];
