//! Table 2: clients read pages for an hour, with a cache at the gateway only, at access routers, and at each
//! hop; for three places of the gateway.

use std::collections::BTreeSet;
use std::time::Duration;

use wire::Scheme;

use super::lru::{self, Asked};
use super::{bound, per_hop, targets, workload};
use crate::experiment::{
    Comparison, Estimate, Expectation, Experiment, Extent, Findings, Key, Picture, Point, Runs,
    Samples, Short, Standing,
};
use report::{Bars, Group};
use sim::hosts::content;
use sim::result::source::ServedBy;
use sim::result::{RunResult, Transfer};
use sim::router::browse::browse;
use sim::router::mesh::Mesh;
use sim::router::run::{Options, RunError, Watchers};
use sim::scenario::Scenario;

pub(super) const PLACES: [(&str, &str); 3] =
    [("S1", "meshcache-s1"), ("S2", "meshcache-s2"), ("S3", "meshcache-s3")];
/// A smaller mesh that is equally busy, for tests.
const SMALL: (&str, &str) = ("small", "meshcache-s1");
const SCHEMES: [Scheme; 3] = [Scheme::Default, Scheme::Thcp, Scheme::PhThcp];
const PAIRS: [[&str; 2]; 3] = [["thcp", "default"], ["ph-thcp", "default"], ["ph-thcp", "thcp"]];
/// How long a mesh without clients is measured.
const IDLE: Duration = Duration::from_secs(300);
/// Bytes in a KB of the paper's gateway load.
const KB: f64 = 1024.0;

/// Why rows are not predictions.
const BY_THINKING: Standing = Standing::Set("think times were fitted to it");
const BY_ORIGIN: Standing =
    Standing::Set("the origin was moved into the gateway after throughputs were known");
const BY_PINGS: Standing =
    Standing::Set("peers were made to announce themselves less often after it was known");
const BY_FIGURES: Standing = Standing::Given("follows from the figures of both");

/// The paper's metrics, our names for them, and their units.
const METRICS: [(&str, &str, &str); 3] = [
    ("aat", "average aggregate throughput", "kbit/s"),
    ("gateway_load", "gateway load", "KB"),
    ("network_load", "network load", "packets/file"),
];

pub(crate) const TABLE: Experiment = Experiment {
    name: "meshcache-table2",
    title: "MeshCache, table 2",
    about: "Caches at the gateway alone, at access routers, and at each hop: 50 routers, 125 clients, an hour, three places of the gateway",
    columns: &[
        "aat",
        "gateway_load",
        "network_load",
        "local",
        "ph_local",
        "remote",
        "requests",
        "wanted_kb",
        "distinct_kb",
        "engine_kb",
        "hops",
        "failed",
        "idle",
        "lru_local",
        "lru_ph_local",
        "lru_remote",
        "all_local",
        "all_ph_local",
        "all_remote",
    ],
    runs: Runs { simulated: 8, real: 0, quick: 1 },
    short: Short::Smaller,
    plan,
    summarise,
};

fn plan(extent: Extent) -> Vec<Point> {
    let places: &[(&'static str, &'static str)] = match extent {
        Extent::Full => &PLACES,
        Extent::Quick => &[SMALL],
    };
    let mut points = Vec::new();
    for (panel, scenario) in places {
        for scheme in SCHEMES {
            let rank = points.len();
            let key = Key { panel, series: scheme.name(), x: 0.0, rank };
            let run = move |seed| run(scenario, scheme, seed, extent);
            let setting = move |seed| Ok(load(scenario, seed, extent)?.setting(Some(scheme)));
            points.push(Point::single(key, run).within(setting));
        }
    }
    points
}

fn load(name: &str, seed: u64, extent: Extent) -> Result<Scenario, String> {
    let small = [
        ("nodes", "16"),
        ("area_m", "560"),
        ("clients", "8"),
        ("seconds", "600"),
        ("think_mean_s", "150"),
        ("files", "200"),
    ];
    let small = if extent == Extent::Quick { &small[..] } else { &[] };
    let settings: Vec<_> =
        small.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Scenario::load_seeded(name, &settings, seed).map_err(|error| error.to_string())
}

fn run(name: &str, scheme: Scheme, seed: u64, extent: Extent) -> Result<Vec<f64>, String> {
    let scenario = load(name, seed, extent)?;
    let browsed =
        browse(&scenario, scheme, seed, Options::default(), Watchers::default(), &mut |_| {})
            .map_err(|error| error.to_string())?;
    let result = &browsed.result;
    let all = result.transfers.len().max(1) as f64;
    let share = |source| percent(result, source);
    let bytes = |is_it: &dyn Fn(&Transfer) -> bool| {
        let some = result.transfers.iter().filter(|transfer| is_it(transfer));
        some.map(|transfer| transfer.bytes).sum::<u64>() as f64 / KB
    };
    let asked = asked(&scenario, result);
    let lru = |store_bytes| lru::hop_by_hop(&asked, store_bytes);
    let [kept, all_kept] = [scenario.browsing.store_bytes, u64::MAX].map(lru);
    let idle = idle_packets(&scenario, scheme, seed).map_err(|error| error.to_string())?;
    let mut seen = BTreeSet::new();
    let distinct: u64 =
        result.transfers.iter().filter(|it| seen.insert(&it.url)).map(|it| it.bytes).sum();
    let figures = vec![
        browsed.aat_kbps(),
        bytes(&|it| it.source.is_none_or(|source| !source.is_hit())),
        result.radio.packets_per_file,
        share(ServedBy::Local),
        share(ServedBy::PhLocal),
        share(ServedBy::Remote),
        result.transfers.len() as f64,
        bytes(&|_| true),
        distinct as f64 / KB,
        browsed.gateway_bytes as f64 / KB,
        result.transfers.iter().map(|it| it.hops as f64).sum::<f64>() / all,
        result.transfers.iter().filter(|it| !it.sha256_ok).count() as f64,
        idle / all,
    ];
    Ok(figures.into_iter().chain(kept).chain(all_kept).collect())
}

/// The requests in order.
fn asked(scenario: &Scenario, result: &RunResult) -> Vec<Asked> {
    let router = |name: &str| scenario.routers.iter().position(|it| it.name == name);
    let number =
        |url: &str| url.rsplit_once('/').and_then(|(_, path)| content::file(&format!("/{path}")));
    let asked = |it: &Transfer| {
        let path = scenario.path(router(&it.client)?);
        Some(Asked { path, file: number(&it.url)?, bytes: it.bytes })
    };
    result.transfers.iter().filter_map(asked).collect()
}

/// Packets that the mesh sends during a run without clients: peers announce themselves to each other.
fn idle_packets(scenario: &Scenario, scheme: Scheme, seed: u64) -> Result<f64, RunError> {
    let mut mesh = Mesh::build(scenario, scheme, seed, Options::default())?;
    mesh.meet(scheme);
    let (began, before) = (mesh.world.now(), mesh.world.counters().packets_sent);
    mesh.world.run(began + IDLE);
    let sent = mesh.world.counters().packets_sent - before;
    Ok(sent as f64 * scenario.browsing.lasts.as_secs_f64() / IDLE.as_secs_f64())
}

/// The share of requests that a source answered, in per cent.
fn percent(result: &RunResult, source: ServedBy) -> f64 {
    100.0 * result.share_by_source.get(&source).copied().unwrap_or(0.0)
}

fn summarise(samples: &Samples) -> Findings {
    let mut rows = Vec::new();
    for (metric, name, unit) in METRICS {
        rows.extend(ratios(samples, metric, name));
        rows.extend(figures(samples, metric, name, unit));
    }
    rows.extend(quiet(samples));
    rows.extend(hits(samples));
    Findings {
        pictures: METRICS.map(|(metric, name, unit)| picture(samples, metric, name, unit)).into(),
        rows,
        parameters: workload::parameters(wanted_mb(samples)),
        medium: per_hop::medium(),
        notes: notes(samples),
    }
}

/// Ratios between schemes, which are the paper's claims.
fn ratios(samples: &Samples, metric: &'static str, name: &str) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for panel in samples.panels() {
        for [over, under] in PAIRS {
            let paper = |scheme| targets::figure("table2", panel, scheme, metric);
            let expected = match (paper(over), paper(under)) {
                (Some(over), Some(under)) => Expectation::Ratio(over / under),
                _ if metric == "aat" => Expectation::More,
                _ => Expectation::Less,
            };
            rows.push(Comparison {
                heading: format!("{name}, schemes compared"),
                what: format!("{panel}: {over} over {under}"),
                ours: samples.ratio(panel, [over, under], 0.0, metric),
                unit: "",
                expected,
                standing: BY_FIGURES,
            });
        }
    }
    rows
}

fn figures(
    samples: &Samples,
    metric: &'static str,
    name: &str,
    unit: &'static str,
) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for panel in samples.panels() {
        for scheme in SCHEMES.map(Scheme::name) {
            let paper = targets::figure("table2", panel, scheme, metric);
            rows.push(Comparison {
                heading: name.to_owned(),
                what: format!("{panel}: {scheme}"),
                ours: samples.mean(panel, scheme, 0.0, metric),
                unit,
                expected: paper.map_or(Expectation::Nothing, Expectation::Figure),
                standing: standing(metric, scheme),
            });
        }
    }
    rows
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
        for [over, under] in PAIRS {
            let paper = |scheme| targets::figure("table2", panel, scheme, "network_load");
            let expected = match (paper(over), paper(under)) {
                (Some(over), Some(under)) => Expectation::Ratio(over / under),
                _ => Expectation::Less,
            };
            rows.push(Comparison {
                heading: "network load without idle peers, schemes compared".to_owned(),
                what: format!("{panel}: {over} over {under}"),
                ours: Estimate::ratio(&load(panel, over), &load(panel, under)),
                unit: "",
                expected,
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

fn picture(samples: &Samples, metric: &'static str, name: &str, unit: &str) -> Picture {
    let group = |panel: &&'static str| Group {
        name: (*panel).to_owned(),
        bars: SCHEMES
            .map(Scheme::name)
            .map(|scheme| {
                let paper = targets::figure("table2", panel, scheme, metric);
                (samples.mean(panel, scheme, 0.0, metric).into(), paper)
            })
            .into(),
    };
    let bars = Bars {
        label: format!("{name} of each scheme"),
        y: format!("{name}, {unit}"),
        x: String::new(),
        series: SCHEMES.map(|scheme| scheme.name().to_owned()).into(),
        groups: samples.panels().iter().map(group).collect(),
    };
    let caption = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
    Picture { name: metric.replace('_', "-"), caption, svg: bars.svg() }
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
        .flat_map(|panel| SCHEMES.map(|scheme| samples.values(panel, scheme.name(), 0.0, "failed")))
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
