//! What a run gave, as a page for people: figures, a map of the mesh, the distribution of
//! throughputs, every transfer. Text in, text out: the page refers to nothing outside itself and
//! runs no scripts, so it can be mailed, printed and kept.
//!
//! Start at [`html`] and [`compare`]; `page` puts the parts together, `map` and `cdf` draw,
//! `stats` counts. Texts from scenarios are escaped by the templates (maud); the same results give
//! the same bytes.

mod axis;
mod bars;
mod cdf;
mod checks;
mod curves;
mod distribution;
mod figures;
mod groups;
mod labels;
mod map;
mod page;
mod picture;
mod reproduction;
pub(crate) mod stats;
mod tables;
mod text;

use std::slice;

pub use curves::{Chart, Curve};
pub use distribution::{Distribution, Series};
pub use figures::Figures;
pub use groups::{Bars, Group};

use crate::repro::{Clock, Experiment, Findings, Samples};
use crate::result::RunResult;
use crate::validate::Report;

/// What the runs have in common: the scenario's mesh and its keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ground {
    /// What the scenario is about, in a sentence or two; may be empty.
    pub description: String,
    /// All routers; the other fields name them by their index here.
    pub routers: Vec<Place>,
    /// Which router has the uplink.
    pub gateway: usize,
    /// Who hears whom. Told in both directions, the worse one counts.
    pub links: Vec<Line>,
    /// The hops that traffic takes to and from the gateway.
    pub routes: Vec<Line>,
    /// How far frames are received, in metres; 0 if there is no such limit.
    pub range_m: f64,
    /// The scenario's keys: name, value, meaning.
    pub keys: Vec<(String, String, String)>,
}

/// Where a router stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// As [`Transfer::client`](crate::result::Transfer::client) has it.
    pub name: String,
    /// Towards the east, in metres.
    pub x_m: f64,
    /// Towards the north, in metres.
    pub y_m: f64,
}

/// A link or a hop between two routers.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Index of a router.
    pub from: usize,
    /// Index of another.
    pub to: usize,
    /// The share of frames that are lost, from 0 to 1.
    pub loss: f64,
}

/// One run as a page.
pub fn html(result: &RunResult, ground: &Ground) -> String {
    compare(slice::from_ref(result), ground)
}

/// Several runs of one scenario as a page: seeds of one scheme are pooled, schemes stand side by
/// side, from the one without caches to the one with most of them.
pub fn compare(results: &[RunResult], ground: &Ground) -> String {
    page::page(results, ground)
}

/// Figures over seeds as a page.
pub fn figures(figures: &Figures, ground: &Ground) -> String {
    figures::page(figures, ground)
}

/// What was held against ns-3 and theory, as a page.
pub fn checks(report: &Report) -> String {
    checks::page(report)
}

/// What came of an experiment of a paper as a page.
pub(crate) fn reproduction(
    experiment: &Experiment,
    samples: &Samples,
    findings: &Findings,
    clock: Clock,
) -> String {
    reproduction::page(experiment, samples, findings, clock)
}

/// The map of the mesh as an SVG file; receivers are coloured by their median throughput in the
/// runs of the last scheme, and have a ring that shows their share of hits there.
pub fn map_svg(results: &[RunResult], ground: &Ground) -> String {
    let schemes = stats::by_scheme(results);
    let receivers = schemes.last().map(stats::Scheme::receivers).unwrap_or_default();
    map::svg(ground, &receivers)
}

/// The distribution of throughputs over the transfers as an SVG file, with a curve for each
/// scheme.
pub fn cdf_svg(results: &[RunResult]) -> String {
    cdf::svg(&stats::by_scheme(results))
}

#[cfg(test)]
#[path = "report/tests.rs"]
pub(crate) mod tests;
