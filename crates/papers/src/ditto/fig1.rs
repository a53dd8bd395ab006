//! Figure 1: TCP throughput between any two routers by number of hops, and UDP beside it. The losses of
//! `map21` were fitted to one median of transfers from the gateway; this shows what they mean for all other
//! pairs.

use std::time::Duration;

use sim::scenario::{Metric, Scenario};
use sim::world::flows::{Flow, Kind};
use sim::world::{Routes, Setup};
use wire::Instant;

use super::{COLUMNS, row};
use crate::experiment::{
    Chosen, Comparison, Estimate, Expectation, Experiment, Extent, Findings, Key, Parameter,
    Picture, Point, Runs, Samples, Short, Standing,
};
use report::provenance::Setting;
use report::{Distribution, Series, stats};

pub(crate) const FIG1: Experiment = Experiment {
    name: "ditto-fig1",
    title: "Ditto, figure 1",
    about: "TCP and UDP between all pairs of map21's routers, one at a time, by hops",
    columns: COLUMNS,
    runs: Runs { simulated: 3, real: 0, quick: 1 },
    short: Short::SameSize,
    plan,
    summarise,
};

const SCENARIO: &str = "map21";
const ROUTERS: usize = 22;
/// Duration of each flow: netperf's default.
const LASTS: Duration = Duration::from_secs(10);
/// More than one hop carries.
const SATURATED: Kind = Kind::Udp { bits_per_second: 8_000_000 };
const SERIES: [(&str, Kind); 2] = [("tcp", Kind::Tcp), ("udp", SATURATED)];
/// The figure has curves up to this number of hops.
const HOPS_MAX: usize = 4;
/// A quick run takes only every 45th pair.
const QUICK_STEP: usize = 45;
/// Number of the random stream of the pairs' flows.
const PAIRS: u16 = 11;

fn plan(extent: Extent) -> Vec<Point> {
    let pairs = (0..ROUTERS).flat_map(|from| (0..ROUTERS).map(move |to| (from, to)));
    let pairs: Vec<_> = pairs.filter(|(from, to)| from != to).collect();
    let step = if extent == Extent::Quick { QUICK_STEP } else { 1 };
    let mut points = Vec::new();
    for (rank, (series, kind)) in SERIES.into_iter().enumerate() {
        for (place, (from, to)) in pairs.iter().copied().enumerate().step_by(step) {
            let key = Key { panel: SCENARIO, series, x: place as f64, rank };
            let run = move |seed| run(from, to, kind, sim::scenario::seed(seed, place, PAIRS));
            points.push(Point::single(key, run).within(|_| setting()));
        }
    }
    points
}

/// The settings that all flows share. Each row has its number of hops.
fn setting() -> Result<Setting, String> {
    let scenario = Scenario::load(SCENARIO, &[]).map_err(|error| error.to_string())?;
    let mut setting = scenario.setting(None);
    let beside = ["gateway", "receivers", "traffic", "seconds"];
    setting.keys.retain(|key, _| !beside.contains(&key.as_str()));
    Ok(setting)
}

/// Runs one flow, alone.
fn run(from: usize, to: usize, kind: Kind, seed: u64) -> Result<Vec<f64>, String> {
    let scenario = Scenario::load(SCENARIO, &[]).map_err(|error| error.to_string())?;
    let scope = scenario.radio.loss_scope;
    let mut routes = Routes::shortest(&scenario.links, Metric::Etx, scope);
    let hops = std::iter::successors(Some(from), |at| routes.next_hop(*at, to)).count() - 1;
    let setup = Setup { routes, lasts: LASTS, ..Setup::of(&scenario) };
    let flow = Flow { from, to, starts: Instant::ZERO, ends: None, kind };
    let outcome = setup.run_flows(&[flow], seed, None);
    Ok(row(&[("hops", hops as f64), ("kbps", outcome.goodput_kbps)]))
}

/// Throughputs of all pairs that are `hops` hops apart, by seed.
fn by_hops(samples: &Samples, series: &str, hops: usize) -> Vec<Vec<f64>> {
    let of = |column| samples.by_seed(SCENARIO, series, column);
    let seeds = of("hops").into_iter().zip(of("kbps"));
    let here = seeds.map(|(apart, kbps)| {
        let pairs = apart.into_iter().zip(kbps);
        pairs.filter(|(apart, _)| *apart == hops as f64).map(|(_, kbps)| kbps).collect()
    });
    here.collect()
}

/// The median of these, for each seed.
fn medians(samples: &Samples, series: &str, hops: usize) -> Vec<f64> {
    by_hops(samples, series, hops).into_iter().filter_map(stats::median).collect()
}

fn summarise(samples: &Samples) -> Findings {
    let mut rows = Vec::new();
    for (series, _) in SERIES {
        rows.extend((1..=HOPS_MAX).map(|hops| median(samples, series, hops)));
        rows.extend((2..=HOPS_MAX).map(|hops| farther(samples, series, hops)));
    }
    rows.extend((1..=HOPS_MAX).map(|hops| without_tcp(samples, hops)));
    rows.extend(SERIES.map(|(series, _)| working(samples, series)));
    Findings {
        pictures: SERIES.map(|(series, _)| picture(samples, series)).into(),
        rows,
        parameters: parameters(),
        medium: "as map21 has it".to_owned(),
        notes: SERIES.into_iter().map(|(series, _)| counts(samples, series)).collect(),
    }
}

fn median(samples: &Samples, series: &str, hops: usize) -> Comparison {
    Comparison {
        heading: "medians of all pairs (the paper's curves have no numbers)".to_owned(),
        what: format!("{series}, {}", far(hops)),
        ours: Estimate::of(&medians(samples, series, hops)),
        unit: "kbit/s",
        expected: Expectation::Nothing,
        standing: Standing::Predicted,
    }
}

fn farther(samples: &Samples, series: &str, hops: usize) -> Comparison {
    let of = |hops| medians(samples, series, hops);
    Comparison {
        heading: "throughput falls with each hop".to_owned(),
        what: format!("{series}, {hops} hops over {}", hops - 1),
        ours: Estimate::ratio(&of(hops), &of(hops - 1)),
        unit: "",
        expected: Expectation::Less,
        standing: Standing::Given("each hop sends every packet once more, on one channel"),
    }
}

fn without_tcp(samples: &Samples, hops: usize) -> Comparison {
    let [tcp, udp] = SERIES.map(|(series, _)| medians(samples, series, hops));
    Comparison {
        heading: "UDP carries more than TCP".to_owned(),
        what: format!("udp over tcp, {}", far(hops)),
        ours: Estimate::ratio(&udp, &tcp),
        unit: "",
        expected: Expectation::More,
        standing: Standing::Given("TCP's acknowledgements take air of their own"),
    }
}

fn working(samples: &Samples, series: &str) -> Comparison {
    let share = |kbps: Vec<f64>| {
        100.0 * kbps.iter().filter(|it| **it > 0.0).count() as f64 / kbps.len().max(1) as f64
    };
    let seeds = samples.by_seed(SCENARIO, series, "kbps").into_iter();
    Comparison {
        heading: "paths that work (of the paper's 756 between 28 routers, 654)".to_owned(),
        what: format!("{series}: pairs between which anything arrives"),
        ours: Estimate::of(&seeds.map(share).collect::<Vec<_>>()),
        unit: "%",
        expected: Expectation::Nothing,
        standing: Standing::Predicted,
    }
}

/// The figure.
fn picture(samples: &Samples, series: &str) -> Picture {
    let curve = |hops: usize| {
        let seeds = by_hops(samples, series, hops);
        let pairs = seeds.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |at: usize| seeds.iter().map(|it| it[at]).sum::<f64>() / seeds.len() as f64;
        Series { name: far(hops), values: (0..pairs).map(mean).collect(), paper: Vec::new() }
    };
    let caption =
        format!("Figure 1, {}: all pairs of map21's routers, by hops", series.to_uppercase());
    let picture = Distribution {
        label: caption.clone(),
        x: "throughput, kbit/s".to_owned(),
        until: None,
        of: "pairs".to_owned(),
        series: (1..=HOPS_MAX).map(curve).filter(|it| !it.values.is_empty()).collect(),
    };
    Picture { name: series.to_owned(), caption, svg: picture.svg() }
}

fn far(hops: usize) -> String {
    format!("{hops} hop{}", if hops == 1 { "" } else { "s" })
}

/// The number of pairs at each distance.
fn counts(samples: &Samples, series: &str) -> String {
    let of = |hops| by_hops(samples, series, hops).first().map_or(0, Vec::len);
    let near: Vec<_> = (1..=HOPS_MAX).map(|hops| of(hops).to_string()).collect();
    let far: usize = (HOPS_MAX + 1..ROUTERS).map(of).sum();
    format!("{series}: {} pairs 1 to {HOPS_MAX} hops apart, {far} farther", near.join(", "))
}

fn parameters() -> Vec<Parameter> {
    let parameter =
        |name, value: &str, chosen, why| Parameter { name, value: value.to_owned(), chosen, why };
    vec![
        parameter(
            "routers",
            "the 22 of figure 10",
            Chosen::Paper,
            "of the paper's 28 its text names these",
        ),
        parameter(
            "routes",
            "those of the least expected transmissions (ETX)",
            Chosen::Ours,
            "the paper: OLSR with link quality; between others than the gateway none is given",
        ),
        parameter(
            "flows",
            "10 s each, alone",
            Chosen::Once,
            "netperf's default; the paper says one at a time",
        ),
        parameter(
            "UDP",
            "8 Mbit/s in packets of 1460 bytes",
            Chosen::Once,
            "more than a hop carries; none is said",
        ),
        parameter(
            "losses",
            "as map21 has them, set by one median from end to end (decision 0007)",
            Chosen::Fitted,
            "nothing was set by this figure, which has no numbers in the text",
        ),
    ]
}
