//! The results of flows or fetches as JSON.

use std::collections::BTreeMap;

use report::provenance::Provenance;
use serde::Serialize;
use sim::scenario::Scenario;
use sim::world::{Outcome, Stat, over_seeds};

use crate::commands::simulate::Runs;

/// Name of the schema of this JSON.
const SCHEMA: &str = "hearsay/flows/1";

#[derive(Serialize)]
struct Document<'a> {
    scenario: &'a str,
    mode: &'static str,
    seeds: Vec<u64>,
    /// What holds an idle receiver, and what decides on reception: figures cannot be compared without.
    receiver: &'a str,
    reception: &'a str,
    keys: BTreeMap<&'static str, &'a str>,
    #[serde(flatten)]
    figures: BTreeMap<&'static str, Stat>,
    /// Sums over all runs.
    simulated_seconds: f64,
    events: u64,
    runs: &'a [Outcome],
    wall_seconds: f64,
    cpu_seconds: f64,
}

/// The JSON of all runs.
pub fn text(scenario: &Scenario, runs: &Runs<Outcome>, provenance: Provenance) -> String {
    let document = Document {
        scenario: &scenario.name,
        mode: "sim",
        seeds: runs.results.iter().map(|run| run.seed).collect(),
        receiver: scenario.key("receiver"),
        reception: scenario.key("reception"),
        keys: scenario.keys.iter().map(|key| (key.name, key.value.as_str())).collect(),
        figures: over_seeds(&runs.results).into_iter().collect(),
        simulated_seconds: runs.results.iter().map(|run| run.simulated_seconds).sum(),
        events: runs.results.iter().map(|run| run.events).sum(),
        runs: &runs.results,
        wall_seconds: runs.wall_seconds,
        cpu_seconds: runs.cpu_seconds,
    };
    let text = serde_json::to_string_pretty(&provenance.on(SCHEMA, document));
    text.expect("numbers and texts have a JSON form") + "\n"
}
