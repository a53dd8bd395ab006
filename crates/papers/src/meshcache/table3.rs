//! Table 3: clients read pages for an hour, with a cache at the gateway only, and with access routers that search for
//! the nearest copy, end to end and per hop.

use super::caches::{BY_ORIGIN, BY_THINKING, COLUMNS, Compared, KB, Series, panels, points};
use super::{per_hop, searching, targets, workload};
use crate::experiment::{
    Chosen, Comparison, Estimate, Expectation, Experiment, Extent, Findings, Parameter, Point,
    Runs, Samples, Short, Standing,
};
use sim::router::mesh::Locating;
use wire::Scheme;

const SERIES: [Series; 5] = [
    Series::of("default", Scheme::Default),
    Series::of("bcp", Scheme::Bcp).as_published(),
    Series::of("ph-bcp", Scheme::PhBcp).as_published(),
    Series::of("bcp, ours", Scheme::Bcp),
    Series::of("ph-bcp, ours", Scheme::PhBcp),
];
/// How many of them the paper has.
const PUBLISHED: usize = 3;
const COMPARED: Compared = Compared {
    tables: &["table3", "table2"],
    series: &["default", "bcp", "ph-bcp", "bcp, ours", "ph-bcp, ours"],
    pairs: &[
        ["bcp", "default"],
        ["ph-bcp", "default"],
        ["ph-bcp", "bcp"],
        ["bcp, ours", "bcp"],
        ["ph-bcp, ours", "ph-bcp"],
    ],
    standing,
};

pub(crate) const TABLE: Experiment = Experiment {
    name: "meshcache-table3",
    title: "MeshCache, table 3",
    about: "A cache at the gateway alone, and copies found by broadcast, end to end and per hop: 50 routers, 125 clients, an hour, three places of the gateway, stores of 2 and 64 MB",
    columns: COLUMNS,
    runs: Runs { simulated: 8, real: 0, quick: 1 },
    short: Short::Smaller,
    plan,
    summarise,
};

fn plan(extent: Extent) -> Vec<Point> {
    // In a quick run only the paper's schemes.
    let count = if extent == Extent::Quick { PUBLISHED } else { SERIES.len() };
    points(panels(extent), &SERIES[..count], extent)
}

fn summarise(samples: &Samples) -> Findings {
    let mut rows = COMPARED.rows(samples);
    rows.extend(searching::without_searches(samples, &COMPARED));
    rows.extend(hits(samples));
    rows.extend(searching::rows(samples, &COMPARED));
    let wanted = samples.mean("S1", "default", 0.0, "wanted_kb").mean / KB;
    let mut parameters = workload::parameters(wanted);
    parameters.extend(of_searches());
    Findings {
        pictures: COMPARED.pictures(samples),
        rows,
        parameters,
        medium: per_hop::medium(),
        notes: searching::notes(samples, &COMPARED),
    }
}

/// The model was fitted to default's gateway load, and changed after throughputs of other schemes were known.
fn standing(metric: &str, scheme: &str) -> Standing {
    match (metric, scheme) {
        ("aat", "default") => BY_ORIGIN,
        ("gateway_load", "default") => BY_THINKING,
        _ => Standing::Predicted,
    }
}

/// The hits, which section 6.2.2 prints for S1.
fn hits(samples: &Samples) -> Vec<Comparison> {
    let kinds = [
        ("bcp", &["local"][..], "local", "thcp", "hit_rate_local"),
        ("bcp", &["remote"], "remote", "bcp", "hit_rate_remote"),
        ("bcp", &["local", "ph_local", "remote"], "all", "bcp", "hit_rate_total"),
        ("ph-bcp", &["ph_local"], "ph-local", "ph-thcp", "hit_rate_ph_local"),
        ("ph-bcp", &["remote"], "remote", "ph-bcp", "hit_rate_remote"),
        ("ph-bcp", &["local", "ph_local", "remote"], "all", "ph-bcp", "hit_rate_total"),
    ];
    let mut rows = Vec::new();
    for panel in samples.panels() {
        for (scheme, columns, what, of, metric) in kinds {
            let values = columns.iter().map(|it| samples.values(panel, scheme, 0.0, it));
            let sums = values.reduce(|a, b| a.iter().zip(&b).map(|(a, b)| a + b).collect());
            let paper = targets::figure("section6.2", panel, of, metric);
            rows.push(Comparison {
                heading: "hit rates".to_owned(),
                what: format!("{panel}: {scheme}, {what}"),
                ours: Estimate::of(&sums.unwrap_or_default()),
                unit: "%",
                expected: paper.map_or(Expectation::Nothing, Expectation::Figure),
                standing: Standing::Predicted,
            });
        }
    }
    rows
}

/// Parameters of searches that the paper does not give.
pub(super) fn of_searches() -> Vec<Parameter> {
    let parameter = |name, value: String, chosen, why| Parameter { name, value, chosen, why };
    vec![
        parameter(
            "search timeout",
            "25 ms".to_owned(),
            Chosen::Paper,
            "the paper's best, figure 8",
        ),
        parameter(
            "pause before a locate is passed on",
            "0 to 2 ms, at random".to_owned(),
            Chosen::Once,
            "the paper names none",
        ),
        parameter(
            "mapping table",
            format!("{} s, as bcp and ph-bcp have it", Locating::REFRESH.as_secs()),
            Chosen::Once,
            "the paper has a refresh timeout without a value; ours has no table: the request says where it goes",
        ),
        parameter(
            "path metric",
            "hops".to_owned(),
            Chosen::Once,
            "the scenario's routes are the shortest; a tie between a copy and the gateway spares the gateway",
        ),
    ]
}
