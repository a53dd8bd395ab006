//! What finding copies off the way costs where some routers lie (decision 0033). No paper has it.

use super::caches::{COLUMNS, Case, KB, Series, places};
use super::{per_hop, workload};
use crate::experiment::{
    Comparison, Estimate, Expectation, Experiment, Extent, Findings, Key, Picture, Point, Runs,
    Samples, Short, Standing,
};
use report::{Chart, Curve};
use wire::Scheme;

/// It asks along the way alone, where nobody lies.
const ALONG: Series = Series::of("ph-thcp", Scheme::PhThcp);
const SERIES: [Series; 2] =
    [Series::of("ph-hints", Scheme::PhHints), Series::of("ph-bcp", Scheme::PhBcp)];
/// The share of routers that lie.
const SHARES: [f64; 4] = [0.0, 0.1, 0.3, 0.5];

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "meshcache-liars",
    title: "MeshCache, liars",
    about: "Hints and searches where up to half of the routers lie off the way to the gateway, against asking along the way; no paper has it",
    columns: COLUMNS,
    runs: Runs { simulated: 8, real: 0, quick: 1 },
    short: Short::Smaller,
    plan,
    summarise,
};

fn plan(extent: Extent) -> Vec<Point> {
    let shares = if extent == Extent::Quick { &[0.3][..] } else { &SHARES };
    let mut points = Vec::new();
    for (panel, scenario, _) in places(extent) {
        let along = [(ALONG, 0.0)].into_iter();
        let off = SERIES.iter().flat_map(|series| shares.iter().map(|share| (*series, *share)));
        for (series, x) in along.chain(off) {
            let key = Key { panel, series: series.name, x, rank: points.len() };
            let keys = vec![("liars", x.to_string())];
            points.push(Case { scenario, series, keys, extent }.point(key));
        }
    }
    points
}

/// The shares of liars that were run.
fn shares(samples: &Samples, panel: &str) -> Vec<f64> {
    let has = |x: &f64| !samples.values(panel, SERIES[0].name, *x, "aat").is_empty();
    SHARES.into_iter().filter(has).collect()
}

/// A scheme's throughput over that of asking along the way, run by run.
fn throughput(samples: &Samples, panel: &str, scheme: &str, x: f64) -> Estimate {
    let along = samples.values(panel, ALONG.name, 0.0, "aat");
    Estimate::ratio(&samples.values(panel, scheme, x, "aat"), &along)
}

fn summarise(samples: &Samples) -> Findings {
    let mut rows = Vec::new();
    for panel in samples.panels() {
        for scheme in SERIES.map(|it| it.name) {
            for x in shares(samples, panel) {
                let row = |heading: &str, ours, unit| Comparison {
                    heading: heading.to_owned(),
                    what: format!("{panel}: {scheme}, {} % lie", x * 100.0),
                    ours,
                    unit,
                    expected: Expectation::Nothing,
                    standing: Standing::Predicted,
                };
                let mean = |column| samples.mean(panel, scheme, x, column);
                let of = |column| samples.values(panel, scheme, x, column);
                rows.push(row(
                    "average aggregate throughput over ph-thcp's",
                    throughput(samples, panel, scheme, x),
                    "",
                ));
                rows.push(row("transfers that failed, or had a wrong byte", mean("failed"), ""));
                rows.push(row("routers asked off the way, a file", mean("located"), ""));
                let in_vain = Estimate::ratio(&of("in_vain"), &of("located"));
                rows.push(row("the share of these that was asked in vain", in_vain, ""));
            }
        }
    }
    let wanted = samples.mean("S1", ALONG.name, 0.0, "wanted_kb").mean / KB;
    Findings {
        pictures: SERIES.map(|series| picture(samples, series.name)).into(),
        rows,
        parameters: workload::parameters(wanted),
        medium: per_hop::medium(),
        notes: Vec::new(),
    }
}

fn picture(samples: &Samples, scheme: &str) -> Picture {
    let curve = |panel: &&'static str| Curve {
        name: (*panel).to_owned(),
        points: shares(samples, panel)
            .into_iter()
            .map(|x| (x * 100.0, throughput(samples, panel, scheme, x).into()))
            .collect(),
    };
    let chart = Chart {
        label: format!("throughput of {scheme} over ph-thcp's, where routers lie"),
        x: "routers that lie, %".to_owned(),
        y: "average aggregate throughput over ph-thcp's".to_owned(),
        curves: samples.panels().iter().map(curve).collect(),
    };
    let caption = format!("Throughput of {scheme} over ph-thcp's");
    Picture { name: scheme.to_owned(), caption, svg: chart.svg() }
}
