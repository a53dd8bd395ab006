//! Ditto's section 6: what observers reconstruct, and what clients get in a mesh whose routers overhear.
//!
//! *Where to start:* `observe.rs` for figures 11 to 16, `fetch.rs` for figures 17 to 20. `summary.rs`
//! compares our figures with the paper's, `draw.rs` draws both. `calibrate.rs` fits the one parameter of each
//! testbed that says what observers lose; `topology_fit/` finds places for the campus's routers.
//! `sensitivity.rs` shows what gains depend on, `fig1.rs` what the losses mean between all pairs.

mod calibrate;
mod draw;
mod fetch;
mod fig1;
mod heard;
mod observe;
mod parameters;
mod sensitivity;
mod served;
mod summary;
mod targets;
mod topology_fit;

use crate::experiment::{Experiment, Extent, Point, Runs, Short};
pub(crate) use calibrate::CALIBRATION;
use fetch::{EMULAB, Fetching, MAP, When};
pub(crate) use fig1::FIG1;
use observe::WAYS;
pub(crate) use sensitivity::SENSITIVITY;
pub(crate) use topology_fit::{ELSEWHERE, PLACES};

pub(crate) const ALL: Experiment = Experiment {
    name: "ditto",
    title: "Ditto, section 6",
    about: "What observers reconstruct of transfers in the two testbeds, and what clients get from a mesh that overhears",
    columns: COLUMNS,
    runs: Runs { simulated: 5, real: 3, quick: 1 },
    short: Short::SameSize,
    plan,
    summarise: summary::summarise,
};

/// One of the paper's testbeds.
#[derive(Debug)]
struct Testbed {
    /// Our scenario.
    scenario: &'static str,
    /// Its name in `data/targets`.
    paper: &'static str,
    /// All routers but the gateway.
    receivers: &'static [&'static str],
}

const TESTBEDS: [Testbed; 2] = [
    Testbed {
        scenario: "map21",
        paper: "campus",
        receivers: &[
            "1", "2", "3", "4", "5", "7", "13", "14", "15", "16", "18", "19", "22", "25", "27",
            "28", "29", "30", "34", "37", "38",
        ],
    },
    Testbed {
        scenario: "emulab8",
        paper: "emulab",
        receivers: &["1", "2", "3", "4", "5", "6", "7"],
    },
];

/// What is fetched, in which orders.
const FETCHINGS: [Fetching; 6] = [
    Fetching { panel: "emulab8 one by one", leaves: EMULAB, when: When::Sequential, orders: &[0] },
    Fetching { panel: "emulab8 every 5 s", leaves: EMULAB, when: When::Staggered(5), orders: &[0] },
    Fetching {
        panel: "emulab8 in ten orders",
        leaves: EMULAB,
        when: When::Sequential,
        orders: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    },
    Fetching { panel: "map21 one by one", leaves: MAP, when: When::Sequential, orders: &[1] },
    Fetching { panel: "map21 every 5 s", leaves: MAP, when: When::Staggered(5), orders: &[1] },
    Fetching {
        panel: "map21 in ten orders",
        leaves: MAP,
        when: When::Sequential,
        orders: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    },
];

/// The columns of a row; a row leaves those empty that it has no value for. Shares are in per cent.
const COLUMNS: &[&str] = &[
    "node",
    "relay",
    "chunks",
    "heard_kb",
    "efficiency",
    "overhead",
    "efficiency_alone",
    "overhead_alone",
    "efficiency_first",
    "overhead_first",
    "place",
    "hops",
    "kbps",
    "whole",
    "overheard",
    "repaired",
    "held",
    "peers",
    "gateway",
    "origin",
];

/// A row with these figures, in the order of the columns.
fn row(figures: &[(&str, f64)]) -> Vec<f64> {
    debug_assert!(figures.iter().all(|(name, _)| COLUMNS.contains(name)), "{figures:?}");
    let figure = |column: &&str| figures.iter().find(|(name, _)| name == column);
    COLUMNS.iter().map(|it| figure(it).map_or(f64::NAN, |(_, figure)| *figure)).collect()
}

/// A figure of a row; NaN if the row does not have it.
fn figure(row: &[f64], name: &str) -> f64 {
    let place = COLUMNS.iter().position(|it| *it == name);
    place.and_then(|it| row.get(it)).copied().unwrap_or(f64::NAN)
}

fn plan(extent: Extent) -> Vec<Point> {
    let mut points = Vec::new();
    let is_quick = extent == Extent::Quick;
    for testbed in TESTBEDS.iter().filter(|it| !is_quick || it.scenario == "emulab8") {
        for way in &WAYS {
            points.extend(way.points(testbed, testbed.scenario, &[], points.len()));
        }
    }
    let fetchings =
        FETCHINGS.into_iter().filter(|it| !is_quick || it.panel == "emulab8 one by one");
    for fetching in fetchings {
        points.extend(fetching.points(points.len()));
    }
    points
}
