//! Figure 4: chains of one to nine hops, without and with fading.

use super::per_hop::{self, Chain, Loss};
use crate::experiment::{
    Chosen, Expectation, Experiment, Extent, Findings, Parameter, Point, Runs, Samples, Short,
    Standing,
};

/// Size of the file, in bytes.
const BYTES: u64 = 1_000_000;
const CALM: &str = "no fading";
const FADING: &str = "Rayleigh fading";

pub(crate) const FIGURE: Experiment = Experiment {
    name: "meshcache-fig4",
    title: "MeshCache, figure 4",
    about: "Per-hop transport against one connection, over chains of 1 to 9 hops, without and with fading",
    columns: per_hop::COLUMNS,
    runs: Runs { simulated: 20, real: 0, quick: 3 },
    short: Short::SameSize,
    plan,
    summarise,
};

fn plan(extent: Extent) -> Vec<Point> {
    let lengths: &[usize] = match extent {
        Extent::Full => &[1, 2, 3, 4, 5, 6, 7, 8, 9],
        Extent::Quick => &[1, 3, 6],
    };
    let chain = |panel, hops: usize| Chain {
        panel,
        x: hops as f64,
        hops,
        bytes: BYTES,
        fading: panel == FADING,
        loss: Loss::Each(0.0),
    };
    let panels = [CALM, FADING].into_iter();
    let chains: Vec<_> =
        panels.flat_map(|panel| lengths.iter().map(move |hops| chain(panel, *hops))).collect();
    per_hop::points(&chains)
}

/// The paper: throughput is "similar" without fading and "slightly better" with it; the load is "identical".
/// Over one hop both transports are one connection.
fn throughput(panel: &str, hops: f64) -> Expectation {
    if panel == FADING && hops > 1.0 { Expectation::More } else { Expectation::Similar }
}

fn load(_: &str, _: f64) -> Expectation {
    Expectation::Similar
}

/// The radio was chosen after a run with one whose fading stops long chains. Nothing was chosen by the rows
/// without fading.
fn standing(panel: &str, hops: f64) -> Standing {
    match panel {
        _ if hops <= 1.0 => Standing::Given("over one hop both are one connection"),
        FADING => per_hop::AFTER_LOOKING,
        _ => Standing::Predicted,
    }
}

fn summarise(samples: &Samples) -> Findings {
    let rows = per_hop::rows(samples, "hops", [throughput, load], standing);
    let size = Parameter {
        name: "file",
        value: format!("{} MB", BYTES / 1_000_000),
        chosen: Chosen::Once,
        why: "the paper names no size: long enough that slow start does not count",
    };
    per_hop::findings(samples, rows, "hops", vec![size])
}
