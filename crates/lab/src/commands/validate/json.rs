//! The comparisons as JSON.

use std::collections::BTreeMap;

use papers::validate::{Report, Verdict};
use report::provenance::Provenance;
use serde::Serialize;
use sim::world::Stat;

use crate::failure::Failure;

/// Name of the schema of this JSON.
const SCHEMA: &str = "hearsay/validation/1";
/// What figures are evidence of.
const STANDINGS: [&str; 3] = ["predicted", "set", "given"];

#[derive(Serialize)]
struct Document<'a> {
    seeds: u64,
    /// For predicted, set and given figures: how many are judged, and how many are near enough.
    near_enough: BTreeMap<&'static str, [usize; 2]>,
    passed: usize,
    open: usize,
    known: usize,
    failed: usize,
    figures: Vec<Line<'a>>,
    simulated_seconds: f64,
    events: u64,
    wall_seconds: f64,
}

/// A figure of a case.
#[derive(Serialize)]
struct Line<'a> {
    group: &'a str,
    case: &'a str,
    /// What the figure is evidence of.
    standing: &'static str,
    /// How the medium receives.
    medium: &'a str,
    figure: &'a str,
    ours: Stat,
    reference: Option<f64>,
    reference_sd: Option<f64>,
    ratio: Option<f64>,
    /// Largest relative error; `None` if the figure is only shown.
    allowed: Option<f64>,
    verdict: &'static str,
}

/// The JSON of all comparisons.
pub fn text(report: &Report, provenance: Provenance) -> Result<String, Failure> {
    let lines = report.figures().map(|(case, checked)| Line {
        group: case.group.name,
        case: &case.name,
        standing: case.group.standing.word(),
        medium: &case.medium,
        figure: checked.figure.name,
        ours: checked.ours,
        reference: checked.figure.reference.map(|it| it.mean),
        reference_sd: checked.figure.reference.and_then(|it| Some(it.spread?.0)),
        ratio: checked.ratio(),
        allowed: checked.figure.allowed,
        verdict: checked.verdict().word(),
    });
    let document = Document {
        seeds: report.seeds,
        near_enough: STANDINGS.map(|it| (it, report.near_enough(it))).into(),
        passed: report.count(Verdict::Passed),
        open: report.count(Verdict::Open),
        known: report.count(Verdict::Known),
        failed: report.count(Verdict::Failed),
        figures: lines.collect(),
        simulated_seconds: report.cost.simulated_seconds,
        events: report.cost.events,
        wall_seconds: report.cost.wall_seconds,
    };
    let stamped = provenance.on(SCHEMA, document);
    Ok(serde_json::to_string_pretty(&stamped).map_err(Failure::failed)? + "\n")
}
