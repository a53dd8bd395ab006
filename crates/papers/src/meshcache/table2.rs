//! Table 2: clients read pages for an hour, with a cache at the gateway only, at access routers, and at each
//! hop; for three places of the gateway.

use super::caches::{
    BY_ORIGIN, BY_PINGS, BY_THINKING, COLUMNS, Compared, KB, Series, places, points,
};
use super::{bound, per_hop, targets, workload};
use crate::experiment::{
    Comparison, Estimate, Expectation, Experiment, Extent, Findings, Point, Runs, Samples, Short,
    Standing,
};
use wire::Scheme;

const SERIES: [Series; 3] = [
    Series::of("default", Scheme::Default),
    Series::of("thcp", Scheme::Thcp),
    Series::of("ph-thcp", Scheme::PhThcp),
];
const COMPARED: Compared = Compared {
    tables: &["table2"],
    series: &["default", "thcp", "ph-thcp"],
    pairs: &[["thcp", "default"], ["ph-thcp", "default"], ["ph-thcp", "thcp"]],
    standing,
};

pub(crate) const TABLE: Experiment = Experiment {
    name: "meshcache-table2",
    title: "MeshCache, table 2",
    about: "Caches at the gateway alone, at access routers, and at each hop: 50 routers, 125 clients, an hour, three places of the gateway",
    columns: COLUMNS,
    runs: Runs { simulated: 8, real: 0, quick: 1 },
    short: Short::Smaller,
    plan,
    summarise,
};

fn plan(extent: Extent) -> Vec<Point> {
    points(places(extent), &SERIES, extent)
}

fn summarise(samples: &Samples) -> Findings {
    let mut rows = COMPARED.rows(samples);
    rows.extend(quiet(samples));
    rows.extend(hits(samples));
    Findings {
        pictures: COMPARED.pictures(samples),
        rows,
        parameters: workload::parameters(wanted_mb(samples)),
        medium: per_hop::medium(),
        notes: notes(samples),
    }
}

fn standing(metric: &str, scheme: &str) -> Standing {
    match (metric, scheme) {
        ("aat", _) => BY_ORIGIN,
        ("gateway_load", "default") => BY_THINKING,
        ("network_load", "thcp" | "ph-thcp") => BY_PINGS,
        _ => Standing::Predicted,
    }
}

/// The network load without announcements between idle peers, which the paper's schemes do not send.
fn quiet(samples: &Samples) -> Vec<Comparison> {
    let load = |panel, scheme| {
        let [all, idle] = ["network_load", "idle"].map(|it| samples.values(panel, scheme, 0.0, it));
        all.iter().zip(&idle).map(|(all, idle)| all - idle).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    for panel in samples.panels() {
        for [over, under] in COMPARED.pairs.iter().copied() {
            rows.push(Comparison {
                heading: "network load without idle peers, schemes compared".to_owned(),
                what: format!("{panel}: {over} over {under}"),
                ours: Estimate::ratio(&load(panel, over), &load(panel, under)),
                unit: "",
                expected: COMPARED.expected(panel, [over, under], "network_load"),
                standing: BY_PINGS,
            });
        }
    }
    rows
}

/// The hits. Section 6.2 prints those of S1, and does not mention those that are 0.
fn hits(samples: &Samples) -> Vec<Comparison> {
    let kinds = [
        ("thcp", "local", "hit_rate_local", "thcp"),
        ("ph-thcp", "local", "hit_rate_local", "thcp"),
        ("ph-thcp", "ph_local", "hit_rate_ph_local", "ph-thcp"),
        ("ph-thcp", "remote", "hit_rate_remote", "ph-thcp"),
    ];
    let mut rows = Vec::new();
    for panel in samples.panels() {
        for (scheme, column, metric, of) in kinds {
            let paper = targets::figure("section6.2", panel, of, metric);
            rows.push(Comparison {
                heading: "hit rates".to_owned(),
                what: format!("{panel}: {scheme}, {}", column.replace('_', "-")),
                ours: samples.mean(panel, scheme, 0.0, column),
                unit: "%",
                expected: paper.map_or(Expectation::Nothing, Expectation::Figure),
                standing: Standing::Predicted,
            });
        }
    }
    rows
}

fn notes(samples: &Samples) -> Vec<String> {
    let mut notes = Vec::new();
    for panel in samples.panels() {
        let mean = |column| samples.mean(panel, "default", 0.0, column).mean;
        notes.push(format!(
            "{panel}: {:.0} requests a run for {:.0} KB over {:.1} hops on average; each file counted \
             once they are {:.0} KB, so no cache of any size lets the gateway give less than {:.0} % \
             of what default's gives",
            mean("requests"),
            mean("wanted_kb"),
            mean("hops"),
            mean("distinct_kb"),
            100.0 * mean("distinct_kb") / mean("wanted_kb"),
        ));
    }
    for panel in samples.panels() {
        let mean = |series, column: &str| samples.mean(panel, series, 0.0, column).mean;
        let [kept, all] = ["lru", "all"].map(|what| {
            ["local", "ph_local", "remote"]
                .map(|kind| format!("{:.1}", mean("ph-thcp", &format!("{what}_{kind}"))))
                .join(", ")
        });
        notes.push(format!(
            "{panel}: the same requests against caches of whole files on each hop would hit {kept} % \
             (local, ph-local, remote) with 2 MB each, {all} % without a limit"
        ));
        notes.push(format!(
            "{panel}: of the packets a file, {:.0} with thcp and {:.0} with ph-thcp are announcements \
             between idle peers",
            mean("thcp", "idle"),
            mean("ph-thcp", "idle"),
        ));
    }
    if samples.panels().contains(&"S2") {
        notes.extend(bound::note());
    }
    let failed: f64 = samples
        .panels()
        .into_iter()
        .flat_map(|panel| SERIES.map(|it| samples.values(panel, it.name, 0.0, "failed")))
        .flatten()
        .sum();
    if failed > 0.0 {
        notes.push(format!("{failed} transfers failed"));
    }
    notes
}

/// What clients get in the hour, in MB, averaged over the gateway's places.
fn wanted_mb(samples: &Samples) -> f64 {
    let wanted: Vec<_> = samples
        .panels()
        .into_iter()
        .map(|panel| samples.mean(panel, "default", 0.0, "wanted_kb").mean)
        .collect();
    Estimate::of(&wanted).mean / KB
}
