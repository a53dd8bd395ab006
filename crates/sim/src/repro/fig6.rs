//! Figure 6: files of several sizes over 4 hops that lose a tenth of all frames.

use super::per_hop::{self, Chain, Loss};
use super::{Expectation, Experiment, Extent, Findings, Parameter, Point, Samples};

const HOPS: usize = 4;
const LOSS: f64 = 0.1;
const PANEL: &str = "4 hops at 10 %";

pub(super) const FIGURE: Experiment = Experiment {
    name: "meshcache-fig6",
    title: "MeshCache, figure 6",
    about: "Per-hop transport against one connection, over 4 hops that lose 10 % of frames, for files of several sizes",
    columns: per_hop::COLUMNS,
    seeds: [40, 3],
    plan,
    tell,
};

fn plan(extent: Extent) -> Vec<Point> {
    let kilobytes: &[u64] = match extent {
        Extent::Full => &[50, 100, 200, 500, 1000, 2000, 5000],
        Extent::Quick => &[100, 1000],
    };
    let chain = |kilobytes: &u64| Chain {
        panel: PANEL,
        x: *kilobytes as f64,
        hops: HOPS,
        bytes: kilobytes * 1000,
        fading: false,
        loss: Loss::Each(LOSS),
    };
    per_hop::points(&kilobytes.iter().map(chain).collect::<Vec<_>>())
}

fn throughput(_: &str, _: f64) -> Expectation {
    Expectation::More
}

fn load(_: &str, _: f64) -> Expectation {
    Expectation::Less
}

fn tell(samples: &Samples) -> Findings {
    let rows = per_hop::rows(samples, "KB", [throughput, load]);
    let sizes = Parameter {
        name: "sizes",
        value: "50 KB to 5 MB".to_owned(),
        why: "the paper's axis is only drawn",
    };
    per_hop::findings(samples, rows, "file, KB", vec![sizes])
}
