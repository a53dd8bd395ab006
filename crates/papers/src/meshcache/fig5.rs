//! Figure 5: links with random losses, each with its own share.

use super::per_hop::{self, Chain, Loss};
use crate::experiment::{
    Chosen, Expectation, Experiment, Extent, Findings, Parameter, Point, Runs, Samples, Short,
};

/// Size of the file, in bytes.
const BYTES: u64 = 1_000_000;

pub(crate) const FIGURE: Experiment = Experiment {
    name: "meshcache-fig5",
    title: "MeshCache, figure 5",
    about: "Per-hop transport against one connection, over 4 and 6 hops that lose 0 to X of frames, X from 5 to 30 %",
    columns: per_hop::COLUMNS,
    runs: Runs { simulated: 40, real: 0, quick: 3 },
    short: Short::SameSize,
    plan,
    summarise,
};

fn plan(extent: Extent) -> Vec<Point> {
    let losses: &[u32] = match extent {
        Extent::Full => &[5, 10, 15, 20, 25, 30],
        Extent::Quick => &[30],
    };
    let chain = |panel, hops, percent: u32| Chain {
        panel,
        x: f64::from(percent),
        hops,
        bytes: BYTES,
        fading: false,
        loss: Loss::UpTo(f64::from(percent) / 100.0),
    };
    let panels = [("4 hops", 4), ("6 hops", 6)].into_iter();
    let chains: Vec<_> = panels
        .flat_map(|(panel, hops)| losses.iter().map(move |percent| chain(panel, hops, *percent)))
        .collect();
    per_hop::points(&chains)
}

fn throughput(_: &str, _: f64) -> Expectation {
    Expectation::More
}

/// The paper: "slightly lower".
fn load(_: &str, _: f64) -> Expectation {
    Expectation::Less
}

fn summarise(samples: &Samples) -> Findings {
    let rows = per_hop::rows(samples, "%", [throughput, load], |_, _| per_hop::AFTER_LOOKING);
    let size = Parameter {
        name: "file",
        value: format!("{} MB", BYTES / 1_000_000),
        chosen: Chosen::Once,
        why: "the paper names no size: long enough that slow start does not count",
    };
    per_hop::findings(samples, rows, "largest loss of a link, %", vec![size])
}
