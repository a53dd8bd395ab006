//! The result of a reproduction as JSON.

use std::collections::BTreeMap;

use papers::experiment::{Clock, Comparison, Experiment, Extent, Findings, Played, Summary};
use report::provenance::Provenance;
use serde::Serialize;

use crate::failure::Failure;

/// Name of the schema of this JSON with its provenance.
const SCHEMA: &str = "hearsay/reproduction/1";

/// An experiment that was repeated.
pub struct Reproduction<'a> {
    pub experiment: &'a Experiment,
    pub extent: Extent,
    pub clock: Clock,
    pub summary: &'a Summary,
    /// Its points and their settings.
    pub points: &'a [Played],
}

#[derive(Serialize)]
struct Document<'a> {
    experiment: &'a str,
    title: &'a str,
    about: &'a str,
    extent: &'static str,
    clock: &'static str,
    medium: &'a str,
    rows: Vec<Row<'a>>,
    parameters: Vec<[&'a str; 3]>,
    notes: &'a [String],
    /// File name and caption.
    pictures: Vec<[String; 2]>,
    points: Vec<Point<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    heading: &'a str,
    what: &'a str,
    unit: &'a str,
    ours: f64,
    /// `None` for a single run.
    ci95: Option<[f64; 2]>,
    runs: usize,
    paper: String,
    ratio: Option<f64>,
    /// What the row is evidence of.
    standing: &'static str,
    why: &'static str,
    verdict: &'static str,
}

#[derive(Serialize)]
struct Point<'a> {
    panel: &'a str,
    series: &'a str,
    x: f64,
    scenario: Option<&'a str>,
    scheme: Option<&'a str>,
    /// Keys that differ between points.
    keys: BTreeMap<&'a str, &'a str>,
}

impl Reproduction<'_> {
    /// The JSON of all of it; the reproduction's files begin with `name`.
    pub fn json(&self, name: &str, provenance: Provenance) -> Result<String, Failure> {
        let Findings { pictures, rows, parameters, medium, notes } = &self.summary.findings;
        let Experiment { name: experiment, title, about, .. } = self.experiment;
        let file = |it: &str| format!("{name}-{it}.svg");
        let document = Document {
            experiment,
            title,
            about,
            extent: if self.extent == Extent::Full { "full" } else { "quick" },
            clock: if self.clock == Clock::Virtual { "virtual" } else { "real" },
            medium,
            rows: rows.iter().map(row).collect(),
            parameters: parameters.iter().map(|it| [it.name, &it.value, it.why]).collect(),
            notes,
            pictures: pictures.iter().map(|it| [file(&it.name), it.caption.clone()]).collect(),
            points: self.points.iter().map(|it| point(it, &provenance)).collect(),
        };
        let text = serde_json::to_string_pretty(&provenance.clone().on(SCHEMA, document));
        Ok(text.map_err(Failure::failed)? + "\n")
    }
}

fn row(row: &Comparison) -> Row<'_> {
    Row {
        heading: &row.heading,
        what: &row.what,
        unit: row.unit,
        ours: row.ours.mean,
        ci95: row.ours.interval(),
        runs: row.ours.runs,
        paper: row.expected.text(),
        ratio: row.ratio(),
        standing: row.standing.word(),
        why: row.standing.why(),
        verdict: row.word(),
    }
}

fn point<'a>(played: &'a Played, all: &Provenance) -> Point<'a> {
    let Played { key, setting } = played;
    let keys = setting.iter().flat_map(|it| &it.keys);
    let own = keys.filter(|(name, _)| !all.keys.contains_key(*name));
    Point {
        panel: key.panel,
        series: key.series,
        x: key.x,
        scenario: setting.as_ref().map(|it| it.scenario.as_str()),
        scheme: setting.as_ref().and_then(|it| it.scheme.as_deref()),
        keys: own.map(|(name, value)| (name.as_str(), value.as_str())).collect(),
    }
}
