//! Figure 8: how long a search should wait for answers.

use std::time::Duration;

use super::caches::{COLUMNS, Case, PLACES, SMALL, Series};
use super::{per_hop, table3, targets, workload};
use crate::experiment::{
    Comparison, Estimate, Expectation, Experiment, Extent, Findings, Key, Picture, Point, Runs,
    Samples, Short, Standing,
};
use report::{Chart, Curve};
use sim::router::mesh::SearchTimeout;
use wire::Scheme;

const TIMEOUTS_MS: [u64; 12] = [5, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200];
const FIXED: &str = "bcp";
const ADAPTIVE: &str = "bcp, adaptive";

pub(crate) const FIGURE: Experiment = Experiment {
    name: "meshcache-fig8",
    title: "MeshCache, figure 8",
    about: "Throughput, load and hits of bcp in scenario S1, with search timeouts of 5 to 200 ms, and with one that adapts",
    columns: COLUMNS,
    runs: Runs { simulated: 8, real: 0, quick: 1 },
    short: Short::Smaller,
    plan,
    summarise,
};

fn plan(extent: Extent) -> Vec<Point> {
    let ((panel, scenario), timeouts) = match extent {
        Extent::Full => (PLACES[0], &TIMEOUTS_MS[..]),
        Extent::Quick => (SMALL, &[5, 25][..]),
    };
    let bcp = |name| Series::of(name, Scheme::Bcp).as_published();
    let fixed = timeouts.iter().map(|ms| {
        let timeout = SearchTimeout::Fixed(Duration::from_millis(*ms));
        (*ms as f64, bcp(FIXED).waiting(timeout))
    });
    let all = fixed.chain([(0.0, bcp(ADAPTIVE).waiting(SearchTimeout::Adaptive))]);
    all.enumerate()
        .map(|(rank, (x, series))| {
            let key = Key { panel, series: series.name, x, rank };
            Case { scenario, series, keys: Vec::new(), extent }.point(key)
        })
        .collect()
}

/// The fixed timeouts that were run.
fn timeouts(samples: &Samples, panel: &str) -> Vec<f64> {
    samples.xs(panel).into_iter().filter(|ms| *ms > 0.0).collect()
}

/// The timeout with the greatest mean throughput.
fn best(samples: &Samples, panel: &str) -> Option<f64> {
    let aat = |ms: &f64| samples.mean(panel, FIXED, *ms, "aat").mean;
    timeouts(samples, panel).into_iter().max_by(|a, b| aat(a).total_cmp(&aat(b)))
}

fn summarise(samples: &Samples) -> Findings {
    let mut rows = Vec::new();
    for panel in samples.panels() {
        let Some(best) = best(samples, panel) else { continue };
        let paper = targets::figure("figure8", panel, "bcp", "best_search_timeout");
        let row = |what: String, ours, unit, expected| Comparison {
            heading: "the search timeout".to_owned(),
            what: format!("{panel}: {what}"),
            ours,
            unit,
            expected,
            standing: Standing::Predicted,
        };
        rows.push(row(
            "timeout with the greatest throughput".to_owned(),
            Estimate { mean: best, sure: None, runs: samples.seeds() },
            "ms",
            paper.map_or(Expectation::Nothing, Expectation::Figure),
        ));
        let aat = |series, ms| samples.values(panel, series, ms, "aat");
        rows.push(row(
            format!("adaptive over the best, {best} ms: throughput"),
            Estimate::ratio(&aat(ADAPTIVE, 0.0), &aat(FIXED, best)),
            "",
            Expectation::Nothing,
        ));
        for ms in timeouts(samples, panel) {
            let ours = samples.mean(panel, FIXED, ms, "aat");
            rows.push(row(format!("{ms} ms: throughput"), ours, "kbit/s", Expectation::Nothing));
        }
        let ours = samples.mean(panel, ADAPTIVE, 0.0, "aat");
        rows.push(row("adaptive: throughput".to_owned(), ours, "kbit/s", Expectation::Nothing));
    }
    let wanted = samples.mean("S1", ADAPTIVE, 0.0, "wanted_kb").mean / super::caches::KB;
    let mut parameters = workload::parameters(wanted);
    parameters.extend(table3::of_searches().into_iter().filter(|it| it.name != "search timeout"));
    let pictures = [
        ("aat", "throughput", "average aggregate throughput, kbit/s"),
        ("network_load", "load", "packets a file"),
        ("remote", "hits", "remote hits, %"),
    ];
    Findings {
        pictures: pictures.map(|it| picture(samples, it)).into(),
        rows,
        parameters,
        medium: per_hop::medium(),
        notes: Vec::new(),
    }
}

fn picture(samples: &Samples, (column, name, title): (&str, &str, &str)) -> Picture {
    let panel = samples.panels().first().copied().unwrap_or_default();
    let xs = timeouts(samples, panel);
    let adaptive = samples.mean(panel, ADAPTIVE, 0.0, column);
    let fixed = xs.iter().map(|x| (*x, samples.mean(panel, FIXED, *x, column).into()));
    // The one that adapts has no place on the axis: a level.
    let ends = xs.first().into_iter().chain(xs.last());
    let level = ends.map(|x| (*x, adaptive.into())).collect();
    let chart = Chart {
        label: format!("{name} of bcp over the search timeout"),
        x: "search timeout, ms".to_owned(),
        y: title.to_owned(),
        curves: vec![
            Curve { name: FIXED.to_owned(), points: fixed.collect() },
            Curve { name: ADAPTIVE.to_owned(), points: level },
        ],
    };
    Picture { name: name.to_owned(), caption: report::text::capital(name), svg: chart.svg() }
}
