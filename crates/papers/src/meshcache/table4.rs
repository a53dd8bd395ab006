//! Table 4: the per-hop schemes compared, and ours beside them: hints, which find copies without searching.

use super::caches::{
    BY_ORIGIN, BY_PINGS, BY_THINKING, COLUMNS, Compared, KB, Series, panels, points, varied,
};
use super::{per_hop, searching, table3, workload};
use crate::experiment::{
    Chosen, Comparison, Estimate, Expectation, Experiment, Extent, Findings, Parameter, Point,
    Runs, Samples, Short, Standing,
};
use sim::router::mesh::SQUARE_M;
use wire::Scheme;

const SERIES: [Series; 5] = [
    Series::of("default", Scheme::Default),
    Series::of("ph-thcp", Scheme::PhThcp),
    Series::of("ph-bcp", Scheme::PhBcp).as_published(),
    Series::of("ph-ghcp", Scheme::PhGhcp),
    Series::of(HINTS, Scheme::PhHints),
];
const HINTS: &str = "ph-hints";
const COMPARED: Compared = Compared {
    tables: &["table4", "table2"],
    series: &["default", "ph-thcp", "ph-bcp", "ph-ghcp", HINTS],
    pairs: &[
        ["ph-bcp", "ph-thcp"],
        ["ph-ghcp", "ph-thcp"],
        ["ph-bcp", "ph-ghcp"],
        [HINTS, "ph-thcp"],
        [HINTS, "ph-bcp"],
    ],
    standing,
};

pub(crate) const TABLE: Experiment = Experiment {
    name: "meshcache-table4",
    title: "MeshCache, table 4",
    about: "The per-hop schemes: along the way, by broadcast, by hash, and by hints: 50 routers, 125 clients, an hour, three places of the gateway, stores of 2 and 64 MB, and requests that are hardly alike",
    columns: COLUMNS,
    runs: Runs { simulated: 8, real: 0, quick: 1 },
    short: Short::Smaller,
    plan,
    summarise,
};

fn plan(extent: Extent) -> Vec<Point> {
    let unlike = ["S1, theta 0.2", "S2, theta 0.2", "S3, theta 0.2"];
    let panels = [panels(extent), varied(extent, unlike, "zipf", "0.2")].concat();
    points(panels, &SERIES, extent)
}

fn summarise(samples: &Samples) -> Findings {
    let mut rows = COMPARED.rows(samples);
    rows.extend(searching::without_searches(samples, &COMPARED));
    rows.extend(searching::rows(samples, &COMPARED));
    rows.extend(hints(samples));
    let wanted = samples.mean("S1", "default", 0.0, "wanted_kb").mean / KB;
    let mut parameters = workload::parameters(wanted);
    parameters.extend(table3::of_searches());
    parameters.push(Parameter {
        name: "squares of the map",
        value: format!("{SQUARE_M} m"),
        chosen: Chosen::Once,
        why: "the paper names no size of its grid: a square kilometre has four",
    });
    Findings {
        pictures: COMPARED.pictures(samples),
        rows,
        parameters,
        medium: per_hop::medium(),
        notes: searching::notes(samples, &COMPARED),
    }
}

fn standing(metric: &str, scheme: &str) -> Standing {
    match (metric, scheme) {
        ("aat", "default" | "ph-thcp") => BY_ORIGIN,
        ("gateway_load", "default") => BY_THINKING,
        ("network_load", "ph-thcp") => BY_PINGS,
        _ => Standing::Predicted,
    }
}

/// What hints cost, and how near they come to an omniscient search.
fn hints(samples: &Samples) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for panel in samples.panels() {
        let of = |series, column| samples.values(panel, series, 0.0, column);
        let row = |what: &str, ours, unit| Comparison {
            heading: "hints".to_owned(),
            what: format!("{panel}: {what}"),
            ours,
            unit,
            expected: Expectation::Nothing,
            standing: Standing::Predicted,
        };
        let (given, near) = (of("default", "given_kb"), of("default", "near_kb"));
        let best: Vec<_> = given.iter().zip(&near).map(|(given, near)| given - near).collect();
        for scheme in [HINTS, "ph-bcp", "ph-thcp"] {
            let ours = of(scheme, "given_kb");
            let spared: Vec<_> =
                given.iter().zip(&ours).map(|(given, ours)| given - ours).collect();
            let what =
                format!("{scheme}, gateway's bytes spared over those that an ideal search spares");
            rows.push(row(&what, Estimate::ratio(&spared, &best), ""));
        }
        let mean = |column| samples.mean(panel, HINTS, 0.0, column);
        rows.push(row("messages about copies a file, counted at each hop", mean("told"), ""));
        rows.push(row("ends that name other routers, a file", mean("redirects"), ""));
        rows.push(row("routers that were asked because of a hint, a file", mean("located"), ""));
        let in_vain = Estimate::ratio(&of(HINTS, "in_vain"), &of(HINTS, "located"));
        rows.push(row("the share of these that was asked in vain", in_vain, ""));
    }
    rows
}
