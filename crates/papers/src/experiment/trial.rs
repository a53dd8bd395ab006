//! A run of an experiment that can be made in virtual time or by real daemons.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wire::Scheme;

use sim::observers::{Listening, Made, Observers};
use sim::result::RunResult;
use sim::router::mesh::{Mesh, Options};
use sim::scenario::Scenario;

/// What to run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// A built-in scenario.
    pub scenario: &'static str,
    /// Values of its keys.
    pub settings: Vec<(String, String)>,
    /// The scheme.
    pub scheme: Scheme,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Whether every router's monitor interface is observed too.
    pub is_observed: bool,
}

/// What a trial gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Every key of its scenario, with its value.
    pub keys: BTreeMap<String, String>,
    /// What clients got.
    pub result: RunResult,
    /// What each router reconstructed from the first request on, in each way of listening; empty without
    /// observers.
    pub observers: Vec<[Made; Listening::ALL.len()]>,
}

impl Trial {
    /// The scenario to run.
    ///
    /// # Errors
    ///
    /// A sentence on what is wrong with it.
    pub fn scenario(&self) -> Result<Scenario, String> {
        let scenario = Scenario::load_seeded(self.scenario, &self.settings, self.seed);
        scenario.map_err(|error| error.to_string())
    }
}

/// Runs a scenario in virtual time.
pub(crate) fn simulate(
    scenario: &Scenario,
    scheme: Scheme,
    seed: u64,
    is_observed: bool,
) -> Result<Outcome, String> {
    let mut mesh = Mesh::build(scenario, scheme, seed, Options::default())
        .map_err(|error| error.to_string())?;
    mesh.meet(scheme);
    let observers = is_observed.then(|| Observers::new(scenario.routers.len()));
    observers.iter().for_each(|it| mesh.world.watch(it.tap()));
    let result = mesh.play(scheme, seed, &mut |_| {});
    let observers = observers.map_or_else(Vec::new, |it| it.finish());
    Ok(Outcome { keys: scenario.values(), result, observers })
}
