//! Figure 6: files of several sizes over 4 hops that lose a tenth of all frames.

use super::per_hop::{self, Chain, Loss};
use crate::experiment::{
    Chosen, Comparison, Estimate, Expectation, Experiment, Extent, Findings, Parameter, Point,
    Runs, Samples, Short,
};

const HOPS: usize = 4;
const LOSS: f64 = 0.1;
const PANEL: &str = "4 hops at 10 %";

pub(crate) const FIGURE: Experiment = Experiment {
    name: "meshcache-fig6",
    title: "MeshCache, figure 6",
    about: "Per-hop transport against one connection, over 4 hops that lose 10 % of frames, for files of several sizes",
    columns: per_hop::COLUMNS,
    runs: Runs { simulated: 40, real: 0, quick: 3 },
    short: Short::SameSize,
    plan,
    summarise,
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

/// The paper: "by an increasing margin". This is the advantage with the largest file over that with the
/// smallest.
fn growth(samples: &Samples, [over, under]: [&'static str; 2]) -> Option<Comparison> {
    let xs = samples.xs(PANEL);
    let (least, most) = (*xs.first()?, *xs.last()?);
    let values = |series, x| samples.values(PANEL, series, x, "kbps");
    let advantage = |x| {
        let pairs = values(over, x).into_iter().zip(values(under, x));
        pairs.map(|(over, under)| over / under).collect::<Vec<_>>()
    };
    Some(Comparison {
        heading: "growth of the advantage in throughput".to_owned(),
        what: format!("{over} over {under}: {most} KB over {least} KB"),
        ours: Estimate::ratio(&advantage(most), &advantage(least)),
        unit: "",
        expected: Expectation::More,
        standing: per_hop::AFTER_LOOKING,
    })
}

fn summarise(samples: &Samples) -> Findings {
    let mut rows = per_hop::rows(samples, "KB", [throughput, load], |_, _| per_hop::AFTER_LOOKING);
    rows.extend(growth(samples, ["per-hop", "direct"]));
    rows.extend(growth(samples, ["ph-thcp", "thcp"]));
    let sizes = Parameter {
        name: "sizes",
        value: "50 KB to 5 MB".to_owned(),
        chosen: Chosen::Once,
        why: "the paper's axis is only drawn",
    };
    per_hop::findings(samples, rows, "file, KB", vec![sizes])
}
