//! Figure 9: what caches at each hop gain as requests get more alike.

use super::caches::{COLUMNS, Case, KB, Series, places};
use super::{per_hop, table3, targets, workload};
use crate::experiment::{
    Comparison, Estimate, Expectation, Experiment, Extent, Findings, Key, Picture, Point, Runs,
    Samples, Short, Standing,
};
use report::{Chart, Curve};
use wire::Scheme;

const SERIES: [Series; 2] =
    [Series::of("default", Scheme::Default), Series::of("ph-bcp", Scheme::PhBcp).as_published()];
/// Zipf's exponents.
const THETAS: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.0];

pub(crate) const FIGURE: Experiment = Experiment {
    name: "meshcache-fig9",
    title: "MeshCache, figure 9",
    about: "ph-bcp against a cache at the gateway alone, with Zipf's exponent from 0.2 to 1, for three places of the gateway",
    columns: COLUMNS,
    runs: Runs { simulated: 8, real: 0, quick: 1 },
    short: Short::Smaller,
    plan,
    summarise,
};

fn plan(extent: Extent) -> Vec<Point> {
    let thetas = if extent == Extent::Quick { &[1.0][..] } else { &THETAS };
    let mut points = Vec::new();
    for (panel, scenario, _) in places(extent) {
        for series in SERIES {
            for x in thetas.iter().copied() {
                let key = Key { panel, series: series.name, x, rank: points.len() };
                let keys = vec![("zipf", x.to_string())];
                points.push(Case { scenario, series, keys, extent }.point(key));
            }
        }
    }
    points
}

/// A figure of ph-bcp over that of default, run by run.
fn over_default(samples: &Samples, panel: &str, x: f64, column: &str) -> Vec<f64> {
    let [a3, a1] = ["ph-bcp", "default"].map(|series| samples.values(panel, series, x, column));
    a3.iter().zip(a1).map(|(a3, a1)| a3 / a1).collect()
}

/// By how many per cent ph-bcp changes a figure of default's; `sign` is -1 for what it lowers.
fn gain(samples: &Samples, panel: &str, x: f64, column: &str, sign: f64) -> Estimate {
    let over = over_default(samples, panel, x, column);
    let gains: Vec<_> = over.iter().map(|over| sign * 100.0 * (over - 1.0)).collect();
    Estimate::of(&gains)
}

const GAINS: [(&str, f64, &str, &str); 2] = [
    ("aat", 1.0, "gain in throughput", "throughput"),
    ("gateway_load", -1.0, "gateway load saved", "gateway-load"),
];

fn summarise(samples: &Samples) -> Findings {
    let mut rows = Vec::new();
    for (column, sign, heading, _) in GAINS {
        for panel in samples.panels() {
            let xs = samples.xs(panel);
            rows.extend(xs.iter().map(|x| Comparison {
                heading: heading.to_owned(),
                what: format!("{panel}: theta {x}"),
                ours: gain(samples, panel, *x, column, sign),
                unit: "%",
                expected: expected(panel, *x, column, sign),
                standing: Standing::Predicted,
            }));
            // The paper's claim: gains grow with the exponent.
            if let [first, .., last] = xs.as_slice() {
                let of = |x: &f64| over_default(samples, panel, *x, column);
                rows.push(Comparison {
                    heading: "ph-bcp over default, at the greatest exponent over the least"
                        .to_owned(),
                    what: format!("{panel}: {heading}"),
                    ours: Estimate::ratio(&of(last), &of(first)),
                    unit: "",
                    expected: if sign > 0.0 { Expectation::More } else { Expectation::Less },
                    standing: Standing::Predicted,
                });
            }
        }
    }
    let wanted = samples.mean("S1", "default", 0.8, "wanted_kb").mean / KB;
    let mut parameters = workload::parameters(wanted);
    parameters.extend(table3::of_searches());
    Findings {
        pictures: GAINS.map(|it| picture(samples, it)).into(),
        rows,
        parameters,
        medium: per_hop::medium(),
        notes: Vec::new(),
    }
}

/// Curves are only drawn, but those at 0.8 are the figures of table 3.
fn expected(panel: &str, x: f64, column: &str, sign: f64) -> Expectation {
    let figure = |table, scheme| targets::figure(table, panel, scheme, column);
    match (figure("table3", "ph-bcp"), figure("table2", "default")) {
        (Some(a3), Some(a1)) if x == 0.8 => Expectation::Figure(sign * 100.0 * (a3 / a1 - 1.0)),
        _ => Expectation::Nothing,
    }
}

fn picture(samples: &Samples, (column, sign, heading, name): (&str, f64, &str, &str)) -> Picture {
    let curve = |panel: &&'static str| Curve {
        name: (*panel).to_owned(),
        points: samples
            .xs(panel)
            .into_iter()
            .map(|x| (x, gain(samples, panel, x, column, sign).into()))
            .collect(),
    };
    let chart = Chart {
        label: format!("{heading} by ph-bcp over default"),
        x: "Zipf's exponent".to_owned(),
        y: format!("{heading}, %"),
        curves: samples.panels().iter().map(curve).collect(),
    };
    Picture { name: name.to_owned(), caption: report::text::capital(heading), svg: chart.svg() }
}
