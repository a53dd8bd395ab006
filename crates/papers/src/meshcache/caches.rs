//! What tables 2 to 4 and figures 8 and 9 share: clients that read pages for an hour, under schemes that are compared,
//! for three places of the gateway.
//!
//! *Where to start:* [`Series`], which is run by [`Case::run`].

use std::collections::BTreeSet;
use std::time::Duration;

use sim::hosts::content;
use sim::result::source::ServedBy;
use sim::result::{RunResult, Transfer};
use sim::router::browse::{Browsed, browse};
use sim::router::mesh::{Locating, Mesh, Options, RunError, SearchConfig, SearchTimeout, Watchers};
use sim::scenario::Scenario;
use sim::world::Routes;
use wire::Scheme;

use super::lru::{self, Asked, Finding};
use super::targets;
use crate::experiment::{Comparison, Expectation, Extent, Key, Picture, Point, Samples, Standing};
use report::{Bars, Group};

/// The three places of the gateway, and a smaller mesh that is equally busy, for tests.
pub(super) const PLACES: [(&str, &str); 3] =
    [("S1", "meshcache-s1"), ("S2", "meshcache-s2"), ("S3", "meshcache-s3")];
pub(super) const SMALL: (&str, &str) = ("small", "meshcache-s1");
/// How long a mesh without clients is measured.
const IDLE: Duration = Duration::from_secs(300);
/// Bytes in a KB of the paper's gateway load.
pub(super) const KB: f64 = 1024.0;

/// The paper's metrics, our names for them, and their units.
pub(super) const METRICS: [(&str, &str, &str); 3] = [
    ("aat", "average aggregate throughput", "kbit/s"),
    ("gateway_load", "gateway load", "KB"),
    ("network_load", "network load", "packets/file"),
];

/// The columns of each run.
pub(super) const COLUMNS: &[&str] = &[
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
    "way_kb",
    "near_kb",
    "near_end_kb",
    "given_kb",
    "over_air_kb",
    "datagrams",
    "search_ms_median",
    "search_ms_p99",
    "dials",
    "dial_ms_median",
    "told",
    "redirects",
    "located",
    "in_vain",
];

/// Why rows of figures are no predictions.
pub(super) const BY_THINKING: Standing = Standing::Set("think times were fitted to it");
pub(super) const BY_ORIGIN: Standing =
    Standing::Set("the origin was moved into the gateway after throughputs were known");
pub(super) const BY_PINGS: Standing =
    Standing::Set("peers were made to announce themselves less often after it was known");

/// The size of stores that hardly evict, in KB.
const LARGE_KB: &str = "65536";

/// A panel: its name, its scenario, and the keys that differ from the scenario's file.
type Panel = (&'static str, &'static str, Vec<(&'static str, String)>);

/// The three places of the gateway; in a quick run a smaller mesh.
pub(super) fn places(extent: Extent) -> Vec<Panel> {
    let places = match extent {
        Extent::Full => &PLACES[..],
        Extent::Quick => &[SMALL],
    };
    places.iter().map(|(panel, scenario)| (*panel, *scenario, Vec::new())).collect()
}

/// The same places under these names, with a key that differs from the scenario's file; none in a quick run.
pub(super) fn varied(
    extent: Extent,
    names: [&'static str; 3],
    key: &'static str,
    value: &str,
) -> Vec<Panel> {
    let places = match extent {
        Extent::Full => &PLACES[..],
        Extent::Quick => &[],
    };
    let varied = names.into_iter().zip(places);
    varied.map(|(panel, (_, scenario))| (panel, *scenario, vec![(key, value.to_owned())])).collect()
}

/// The places with stores of 2 MB and of 64 MB; in a quick run a smaller mesh.
pub(super) fn panels(extent: Extent) -> Vec<Panel> {
    let large = varied(extent, ["S1, 64 MB", "S2, 64 MB", "S3, 64 MB"], "store_kb", LARGE_KB);
    [places(extent), large].concat()
}

/// The runs of these series in each panel.
pub(super) fn points(panels: Vec<Panel>, series: &[Series], extent: Extent) -> Vec<Point> {
    let mut points = Vec::new();
    for (panel, scenario, keys) in panels {
        for series in series.iter().copied() {
            let key = Key { panel, series: series.name, x: 0.0, rank: points.len() };
            points.push(Case { scenario, series, keys: keys.clone(), extent }.point(key));
        }
    }
    points
}

/// One scheme of a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Series {
    /// Its name on the page.
    pub name: &'static str,
    pub scheme: Scheme,
    pub search: SearchConfig,
}

/// One run of a series.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub scenario: &'static str,
    pub series: Series,
    /// Keys of the scenario that differ from its file.
    pub keys: Vec<(&'static str, String)>,
    pub extent: Extent,
}

impl Series {
    /// A scheme under its own name.
    pub const fn of(name: &'static str, scheme: Scheme) -> Self {
        let timeout = SearchTimeout::Fixed(SearchTimeout::PAPER);
        Self { name, scheme, search: SearchConfig { locating: Locating::Ours, timeout } }
    }

    /// The same, as the paper has it: with setup messages and mapping tables.
    pub const fn as_published(self) -> Self {
        let locating = Locating::Paper { refresh: Locating::REFRESH };
        Self { search: SearchConfig { locating, ..self.search }, ..self }
    }

    /// The same, with this search timeout.
    pub const fn waiting(self, timeout: SearchTimeout) -> Self {
        Self { search: SearchConfig { timeout, ..self.search }, ..self }
    }
}

impl Case {
    /// This case as a point of an experiment.
    pub fn point(self, key: Key) -> Point {
        let (setting, scheme) = (self.clone(), self.series.scheme);
        let run = move |seed| self.run(seed);
        Point::single(key, run).within(move |seed| Ok(setting.load(seed)?.setting(Some(scheme))))
    }

    pub fn load(&self, seed: u64) -> Result<Scenario, String> {
        let small = [
            ("nodes", "16"),
            ("area_m", "560"),
            ("clients", "8"),
            ("seconds", "600"),
            ("think_mean_s", "150"),
            ("files", "200"),
        ];
        let small = if self.extent == Extent::Quick { &small[..] } else { &[] };
        let small = small.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let own = self.keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        let settings: Vec<_> = small.chain(own).collect();
        Scenario::load_seeded(self.scenario, &settings, seed).map_err(|error| error.to_string())
    }

    /// The figures of a run, in the order of [`COLUMNS`].
    pub fn run(&self, seed: u64) -> Result<Vec<f64>, String> {
        let scenario = self.load(seed)?;
        let browsed = self.browse(&scenario, seed)?;
        let idle =
            idle_packets(&scenario, self.series.scheme, seed).map_err(|it| it.to_string())?;
        let all = browsed.result.transfers.len().max(1) as f64;
        let mut figures = of_clients(&browsed);
        figures.push(idle / all);
        figures.extend(ideal(&scenario, &browsed.result));
        figures.extend(of_searches(&browsed));
        Ok(figures)
    }

    pub fn browse(&self, scenario: &Scenario, seed: u64) -> Result<Browsed, String> {
        let options = Options { search: Some(self.series.search), ..Options::default() };
        let watchers = Watchers::default();
        let browsed = browse(scenario, self.series.scheme, seed, options, watchers, &mut |_| {});
        browsed.map_err(|error| error.to_string())
    }
}

/// What clients and the gateway see.
fn of_clients(browsed: &Browsed) -> Vec<f64> {
    let result = &browsed.result;
    let all = result.transfers.len().max(1) as f64;
    let share = |source| percent(result, source);
    let bytes = |is_it: &dyn Fn(&Transfer) -> bool| {
        let some = result.transfers.iter().filter(|transfer| is_it(transfer));
        some.map(|transfer| transfer.bytes).sum::<u64>() as f64 / KB
    };
    let mut seen = BTreeSet::new();
    let distinct: u64 =
        result.transfers.iter().filter(|it| seen.insert(&it.url)).map(|it| it.bytes).sum();
    vec![
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
    ]
}

/// What ideal caches would do with the same requests.
fn ideal(scenario: &Scenario, result: &RunResult) -> Vec<f64> {
    let asked = asked(scenario, result);
    let stores = [scenario.browsing.store_bytes, u64::MAX];
    let mut figures: Vec<_> =
        stores.iter().flat_map(|bytes| lru::hop_by_hop(&asked, *bytes)).collect();
    let mut routes = Routes::of(scenario);
    let given = |finding: &mut Finding<'_>| {
        lru::serve(&asked, scenario.browsing.store_bytes, finding).gateway_bytes as f64 / KB
    };
    figures.push(given(&mut Finding::OnTheWay));
    for per_hop in [true, false] {
        figures.push(given(&mut Finding::Nearest { routes: &mut routes, per_hop }));
    }
    figures
}

/// What searching costs.
fn of_searches(browsed: &Browsed) -> Vec<f64> {
    let result = &browsed.result;
    let all = result.transfers.len().max(1) as f64;
    let by_gateway = |it: &&Transfer| it.source.is_none_or(|it| !it.is_hit()) && it.hops > 0;
    let given: u64 = result.transfers.iter().filter(by_gateway).map(|it| it.bytes).sum();
    let waited =
        |of: &[Duration]| report::stats::sorted(of.iter().map(|it| it.as_secs_f64() * 1e3));
    let (searches, dials) = (waited(&browsed.waited.searches), waited(&browsed.waited.dials));
    let at = |sorted: &[f64], share: f64| {
        let place = (sorted.len() as f64 * share) as usize;
        sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    };
    let hinted = browsed.found;
    vec![
        given as f64 / KB,
        result.gateway.bytes_over_air as f64 / KB,
        browsed.datagrams as f64 / all,
        at(&searches, 0.5),
        at(&searches, 0.99),
        dials.len() as f64,
        at(&dials, 0.5),
        hinted.told as f64 / all,
        hinted.redirects as f64 / all,
        hinted.located as f64 / all,
        hinted.in_vain as f64 / all,
    ]
}

/// The requests in order.
pub(super) fn asked(scenario: &Scenario, result: &RunResult) -> Vec<Asked> {
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

/// The figure that the paper prints: in the table, or, for a scheme of an earlier one, there.
pub(super) fn paper(tables: &[&str], panel: &str, scheme: &str, metric: &str) -> Option<f64> {
    tables.iter().find_map(|table| targets::figure(table, panel, scheme, metric))
}

/// A comparison of schemes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compared {
    /// The paper's tables that have figures of it.
    pub tables: &'static [&'static str],
    pub series: &'static [&'static str],
    /// The scheme that the paper has more of, and the other.
    pub pairs: &'static [[&'static str; 2]],
    pub standing: fn(metric: &str, scheme: &str) -> Standing,
}

/// Why ratios are no predictions.
pub(super) const BY_FIGURES: Standing = Standing::Given("follows from the figures of both");

impl Compared {
    /// For each of the paper's metrics, how schemes compare, and their figures.
    pub fn rows(&self, samples: &Samples) -> Vec<Comparison> {
        let mut rows = Vec::new();
        for metric in METRICS {
            rows.extend(self.ratios(samples, metric.0, metric.1));
            rows.extend(self.figures(samples, metric));
        }
        rows
    }

    /// Ratios between schemes, which are the paper's claims.
    fn ratios(&self, samples: &Samples, metric: &'static str, name: &str) -> Vec<Comparison> {
        let mut rows = Vec::new();
        for panel in samples.panels() {
            for [over, under] in self.pairs.iter().copied() {
                rows.push(Comparison {
                    heading: format!("{name}, schemes compared"),
                    what: format!("{panel}: {over} over {under}"),
                    ours: samples.ratio(panel, [over, under], 0.0, metric),
                    unit: "",
                    expected: self.expected(panel, [over, under], metric),
                    standing: BY_FIGURES,
                });
            }
        }
        rows
    }

    /// What the paper says of the ratio of two schemes.
    pub fn expected(&self, panel: &str, [over, under]: [&str; 2], metric: &str) -> Expectation {
        let paper = |scheme| paper(self.tables, panel, scheme, metric);
        match (paper(over), paper(under)) {
            (Some(over), Some(under)) => Expectation::Ratio(over / under),
            _ if !panel.starts_with("small") => Expectation::Nothing,
            _ if metric == "aat" => Expectation::More,
            _ => Expectation::Less,
        }
    }

    /// Each scheme's figures.
    fn figures(
        &self,
        samples: &Samples,
        (metric, name, unit): (&'static str, &str, &'static str),
    ) -> Vec<Comparison> {
        let mut rows = Vec::new();
        for panel in samples.panels() {
            for scheme in self.series {
                let paper = paper(self.tables, panel, scheme, metric);
                rows.push(Comparison {
                    heading: name.to_owned(),
                    what: format!("{panel}: {scheme}"),
                    ours: samples.mean(panel, scheme, 0.0, metric),
                    unit,
                    expected: paper.map_or(Expectation::Nothing, Expectation::Figure),
                    standing: (self.standing)(metric, scheme),
                });
            }
        }
        rows
    }

    /// A picture of each metric; those of other stores and other requests are apart.
    pub fn pictures(&self, samples: &Samples) -> Vec<Picture> {
        let mut kinds: Vec<_> = samples.panels().into_iter().map(kind).collect();
        kinds.dedup();
        let pictures = kinds
            .into_iter()
            .flat_map(|kind| METRICS.map(|metric| self.picture(samples, metric, kind)));
        pictures.collect()
    }

    fn picture(
        &self,
        samples: &Samples,
        (metric, name, unit): (&'static str, &str, &'static str),
        of: &str,
    ) -> Picture {
        let bar = |panel: &str, scheme: &str| {
            let paper = paper(self.tables, panel, scheme, metric);
            (samples.mean(panel, scheme, 0.0, metric).into(), paper)
        };
        let group = |panel: &&'static str| Group {
            name: panel.split(", ").next().unwrap_or(panel).to_owned(),
            bars: self.series.iter().map(|scheme| bar(panel, scheme)).collect(),
        };
        let bars = Bars {
            label: format!("{name} of each scheme"),
            y: format!("{name}, {unit}"),
            x: String::new(),
            series: self.series.iter().map(|scheme| (*scheme).to_owned()).collect(),
            groups: samples.panels().iter().filter(|panel| kind(panel) == of).map(group).collect(),
        };
        let with = if of.is_empty() { String::new() } else { format!(", {of}") };
        let caption = format!("{}{with}", report::text::capital(name));
        let name = format!("{metric}{with}").replace(", ", "-").replace(['_', ' '], "-");
        Picture { name, caption, svg: bars.svg() }
    }
}

/// What a panel has besides the gateway's place: `64 MB` of `S1, 64 MB`.
fn kind(panel: &str) -> &str {
    panel.split_once(", ").map_or("", |(_, kind)| kind)
}
