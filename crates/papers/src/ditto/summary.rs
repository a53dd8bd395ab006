//! Our figures beside those of the paper's text.

use super::fetch::{ON_PATH_COARSE, PUBLISHED, SERVED, WITHOUT_JOINING, WITHOUT_REPAIR};
use super::heard::Heard;
use super::observe::{COARSE, DITTO, END_TO_END, WAYS};
use super::served::Served;
use super::{FETCHINGS, TESTBEDS, Testbed};
use super::{draw, parameters, targets};
use crate::experiment::{Comparison, Estimate, Expectation, Findings, Samples, Standing};

/// Reassembly as in the paper, which needs each chunk's first packet in each stream; and its overhead.
pub(super) const EFFICIENCY: &str = "efficiency_first";
pub(super) const OVERHEAD: &str = "overhead_first";
/// The receiver and the observer for which the paper says what joining streams of several hops gains (section
/// 6.3).
const SEVERAL_HOPS: (f64, f64) = (1.0, 7.0);
/// Why rows are not predictions.
const BY_SHARES: Standing = Standing::Set("overhear_m was set by it (decisions 0015, 0019)");
const BY_PLACES: Standing = Standing::Set("places of map21 were chosen by it (decision 0019)");
const BY_LOSS: Standing = Standing::Set("loss was set by it (decision 0007)");
const NO_FEWER: Standing = Standing::Given(
    "an observer that joins streams has what each of them gives, and seldom hears several",
);
const NO_MORE: Standing = Standing::Given("joined parts complete chunks, and so count as used");
const NO_NEED: Standing = Standing::Given("without the need for the first packet no chunk is lost");
const BY_MEDIANS: Standing = Standing::Given("follows from the medians");
/// Section 8: what the median router and the busiest one hear in a day, in GB.
const DAY_GB: [f64; 2] = [3.0, 13.0];

pub(super) fn summarise(samples: &Samples) -> Findings {
    let has = |panel: &str| samples.panels().contains(&panel);
    let testbeds = || TESTBEDS.iter().filter(|it| has(it.scenario));
    let fetchings = || FETCHINGS.iter().filter(|it| has(it.panel));
    let mut rows: Vec<_> = testbeds().flat_map(|it| observers(samples, it)).collect();
    rows.extend(testbeds().flat_map(|it| details(samples, it)));
    rows.extend(fetchings().flat_map(|it| throughputs(samples, it.panel)));
    rows.extend(fetchings().flat_map(|it| shares(samples, it.panel)));
    let mut notes: Vec<_> = testbeds().flat_map(|it| sizes(samples, it)).collect();
    notes.extend(testbeds().flat_map(|it| unfinished(samples, it)));
    notes.extend(fetchings().flat_map(|it| failures(samples, it.panel)));
    Findings {
        pictures: draw::pictures(samples),
        rows,
        parameters: parameters::parameters(),
        medium: "receiver lock (an idle one follows the first signal that it senses), reception \
                 capture (a frame arrives if it is 10 dB above all else together), 802.11b at \
                 11 Mbit/s, no RTS; losses of links as the scenarios say"
            .to_owned(),
        notes,
    }
}

/// What the paper says of reconstruction. The shares set `overhear_m`; all of these rows set the places of
/// `map21`.
fn observers(samples: &Samples, testbed: &Testbed) -> Vec<Comparison> {
    let heard = Heard::new(samples, testbed.scenario, DITTO);
    let coarse = Heard::new(samples, testbed.scenario, COARSE);
    let paper = |scheme, metric| figure(targets::figure(testbed.paper, scheme, metric));
    let row = |what: &str, ours, expected, standing| Comparison {
        heading: "observers, by the paper's reassembly (figures 11, 13, 14)".to_owned(),
        what: format!("{}: {what}", testbed.scenario),
        ours,
        unit: "%",
        expected,
        standing,
    };
    let shown = |what: &str, ours| row(what, ours, Expectation::Nothing, Standing::Predicted);
    let best = "chunks_reconstructed_by_best_20pct_observers";
    let overhead = "memory_overhead_of_60pct_observers_below";
    let (any, half) = ("observers_reconstructing_any", "observers_reconstructing_over_half");
    vec![
        row("reconstruct anything", heard.above(EFFICIENCY, 0.0), paper("ditto", any), BY_SHARES),
        row(
            "reconstruct more than half",
            heard.above(EFFICIENCY, 50.0),
            paper("ditto", half),
            BY_SHARES,
        ),
        row(
            "of 8 KiB chunks, the best fifth reconstructs at least",
            heard.quantile(EFFICIENCY, 0.8),
            paper("ditto-8KB", best),
            BY_PLACES,
        ),
        row(
            "of 32 KiB chunks, the best fifth reconstructs at least",
            coarse.quantile(EFFICIENCY, 0.8),
            paper("ditto-32KB", best),
            BY_PLACES,
        ),
        row(
            "8 KiB chunks, memory overhead of 60 % of observers below",
            heard.quantile(OVERHEAD, 0.6),
            paper("ditto-8KB", overhead),
            BY_PLACES,
        ),
        row(
            "32 KiB chunks, memory overhead of 60 % of observers below",
            coarse.quantile(OVERHEAD, 0.6),
            paper("ditto-32KB", overhead),
            BY_PLACES,
        ),
        shown(
            "8 KiB, among those that heard anything, 60 % below",
            heard.quantile_of_hearers(OVERHEAD, 0.6),
        ),
        shown(
            "32 KiB, among those that heard anything, 60 % below",
            coarse.quantile_of_hearers(OVERHEAD, 0.6),
        ),
        shown("by our reassembly, reconstruct anything", heard.above("efficiency", 0.0)),
        shown("by our reassembly, reconstruct more than half", heard.above("efficiency", 50.0)),
    ]
}

/// Ways of reassembly, and the cost of needing the first packet.
fn details(samples: &Samples, testbed: &Testbed) -> Vec<Comparison> {
    let heard = Heard::new(samples, testbed.scenario, DITTO);
    let direct = Heard::new(samples, testbed.scenario, END_TO_END);
    let paper = |metric| targets::figure(testbed.paper, "ditto", metric);
    let row = |what: &str, ours, expected, standing| Comparison {
        heading: "reassembly (figures 15, 16, section 6.3)".to_owned(),
        what: format!("{}: {what}", testbed.scenario),
        ours,
        unit: "",
        expected,
        standing,
    };
    let lost = paper("extra_chunks_lost_to_needing_first_packet");
    let mut rows = vec![
        row(
            "chunks reconstructed, ditto over each stream alone",
            heard.ratio(EFFICIENCY, (&heard, "efficiency_alone")),
            Expectation::Similar,
            NO_FEWER,
        ),
        row(
            "chunks reconstructed, ditto over end-to-end",
            heard.ratio(EFFICIENCY, (&direct, EFFICIENCY)),
            Expectation::Similar,
            Standing::Predicted,
        ),
        row(
            "memory overhead, ditto over each stream alone",
            heard.ratio(OVERHEAD, (&heard, "overhead_alone")),
            Expectation::Less,
            NO_MORE,
        ),
        row(
            "chunks reconstructed, without the need of the first packet over with it (the paper: up to)",
            heard.ratio("efficiency", (&heard, EFFICIENCY)),
            lost.map_or(Expectation::Nothing, |it| Expectation::Ratio(1.0 + it / 100.0)),
            NO_NEED,
        ),
    ];
    if let Some(points) = paper("node7_reconstruction_gain_from_inter_stream") {
        let (receiver, node) = SEVERAL_HOPS;
        let what = "points that router 7 gains by joining streams of the transfer to 1";
        let ours = several_hops(samples, testbed.scenario, receiver, node);
        let comparison = row(what, ours, Expectation::Figure(points), BY_PLACES);
        rows.push(Comparison { unit: "%", ..comparison });
    }
    rows
}

/// How much more of a transfer a router reconstructs by joining streams than from each stream alone, in per
/// cent of all chunks.
fn several_hops(samples: &Samples, panel: &str, receiver: f64, node: f64) -> Estimate {
    let values = |column| samples.values(panel, DITTO, receiver, column);
    let each = values("node").into_iter().zip(values(EFFICIENCY)).zip(values("efficiency_alone"));
    let gains = each.filter(|((it, _), _)| *it == node).map(|((_, with), alone)| with - alone);
    Estimate::of(&gains.collect::<Vec<_>>())
}

/// The pairs of schemes that are compared. The paper's are those of its own system.
const GAINS: [[&str; 2]; 8] = [
    [PUBLISHED, "end-to-end"],
    [PUBLISHED, "on-path"],
    ["ditto", "end-to-end"],
    ["ditto", "on-path"],
    [WITHOUT_REPAIR, "end-to-end"],
    [WITHOUT_JOINING, "end-to-end"],
    [COARSE, "end-to-end"],
    [COARSE, ON_PATH_COARSE],
];

/// Medians, and gains of schemes over each other.
fn throughputs(samples: &Samples, panel: &'static str) -> Vec<Comparison> {
    let of = |series| Served::new(samples, panel, series);
    let median = |series| paper_median(panel, series);
    let row = |what: String, ours, unit, expected, standing| Comparison {
        heading: "throughput of the leaves (figures 17 to 20)".to_owned(),
        what: format!("{panel}: {what}"),
        ours,
        unit,
        expected,
        standing,
    };
    let medians = SERVED.iter().map(|it| it.series).map(|series| {
        let is_fitted = series == END_TO_END && panel.ends_with("one by one");
        let standing = if is_fitted { BY_LOSS } else { Standing::Predicted };
        row(
            format!("{series}, median"),
            of(series).median(),
            "kbit/s",
            figure(median(series)),
            standing,
        )
    });
    let gains = GAINS.into_iter().map(|[over, under]| {
        let ours = of(over).gain(&of(under));
        let expected =
            paper_gain(panel, over, under).map_or(Expectation::Nothing, Expectation::Ratio);
        let standing = median(over).map_or(Standing::Predicted, |_| BY_MEDIANS);
        row(format!("{over} over {under}"), ours, "", expected, standing)
    });
    medians.chain(gains).collect()
}

/// The sources of receivers' bytes.
fn shares(samples: &Samples, panel: &'static str) -> Vec<Comparison> {
    let served = Served::new(samples, panel, "ditto");
    let kinds = [
        ("overheard", "overheard whole"),
        ("repaired", "of half-heard chunks, what was heard"),
        ("held", "held for other reasons"),
        ("peers", "from routers on the way"),
        ("gateway", "from the gateway's store"),
        ("origin", "from the origin"),
    ];
    let row = |(column, what): (&str, &str)| Comparison {
        heading: format!("where bytes came from, ditto, {panel}"),
        what: what.to_owned(),
        ours: served.mean(column),
        unit: "%",
        expected: Expectation::Nothing,
        standing: Standing::Predicted,
    };
    kinds.into_iter().map(row).collect()
}

/// Section 8, computed from what our observers hear.
fn sizes(samples: &Samples, testbed: &Testbed) -> Vec<String> {
    let heard = Heard::new(samples, testbed.scenario, DITTO);
    if heard.nodes().is_empty() {
        return Vec::new();
    }
    let mean = heard.mean("efficiency").mean;
    let of_node = |node: &f64| {
        let all = heard.of_node(*node, "efficiency");
        all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    let most = heard.nodes().iter().map(of_node).fold(0.0, f64::max);
    let [median, largest] = DAY_GB;
    vec![format!(
        "{}: a router keeps {mean:.0} % of what others fetch, on average, and {most:.0} % where it \
         hears most. Of the {median} GB that the paper's meshes carried in a median day (section 8, all \
         of which it counts for every router) these are {:.1} and {:.1} GB; of the {largest} GB of the \
         largest day {:.1} and {:.1} GB",
        testbed.scenario,
        median * mean / 100.0,
        median * most / 100.0,
        largest * mean / 100.0,
        largest * most / 100.0,
    )]
}

/// Transfers that observers heard and that failed. What was on the air counts all the same.
fn unfinished(samples: &Samples, testbed: &Testbed) -> Vec<String> {
    let count = |series: &str| {
        let xs = samples.xs(testbed.scenario).into_iter();
        let of = |x| samples.values(testbed.scenario, series, x, "whole");
        let observers = Heard::new(samples, testbed.scenario, series).nodes().len();
        let broken = xs.flat_map(of).filter(|it| *it < 1.0).count();
        // Each observer of a transfer has a row; the receiver has none.
        broken / observers.saturating_sub(1).max(1)
    };
    WAYS.iter()
        .map(|way| (way.series, count(way.series)))
        .filter(|(_, count)| *count > 0)
        .map(|(series, count)| {
            format!(
                "{}, {series}: {count} of the transfers that observers heard failed",
                testbed.scenario
            )
        })
        .collect()
}

fn failures(samples: &Samples, panel: &'static str) -> Vec<String> {
    let failed = |series: &str| Served::new(samples, panel, series).failed();
    let broken = SERVED.iter().map(|it| (it.series, failed(it.series)));
    broken
        .filter(|(_, count)| *count > 0)
        .map(|(series, count)| format!("{panel}, {series}: {count} transfers failed"))
        .collect()
}

/// A median of the paper, in kbit/s.
pub(super) fn paper_median(panel: &str, series: &str) -> Option<f64> {
    let (testbed, metric) = match panel {
        "emulab8 one by one" => ("emulab", "median_throughput_sequential"),
        "emulab8 every 5 s" => ("emulab", "median_throughput_staggered_5s"),
        "map21 one by one" => ("campus", "median_throughput_sequential"),
        _ => return None,
    };
    targets::figure(testbed, theirs(series)?, metric)
}

/// A gain that the paper prints, or that follows from its medians.
pub(super) fn paper_gain(panel: &str, over: &str, under: &str) -> Option<f64> {
    if panel == "emulab8 in ten orders" {
        let metric = format!("median_gain_vs_{under}_random_orders");
        return targets::figure("emulab", theirs(over)?, &metric);
    }
    Some(paper_median(panel, over)? / paper_median(panel, under)?)
}

/// The paper's name of a series of ours; `None` for our own variants, which it does not have.
fn theirs(series: &str) -> Option<&str> {
    match series {
        "ditto" => None,
        PUBLISHED => Some("ditto"),
        _ => Some(series),
    }
}

fn figure(paper: Option<f64>) -> Expectation {
    paper.map_or(Expectation::Nothing, Expectation::Figure)
}
