//! A run of an experiment that can be made in virtual time, and by real daemons too.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wire::Scheme;

use sim::observers::{Listening, Made, Observers};
use sim::result::RunResult;
use sim::router::mesh::{Mesh, Options};
use sim::scenario::Scenario;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Trial {
    /// One of ours.
    pub scenario: &'static str,
    /// Other values of its keys.
    pub settings: Vec<(String, String)>,
    /// Who intercepts and caches.
    pub scheme: Scheme,
    /// All chance comes from here.
    pub seed: u64,
    /// What each router's monitor interface shows is looked at, too.
    pub is_observed: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Every key of the scenario that it was made with, and its value.
    pub keys: BTreeMap<String, String>,
    /// What clients got.
    pub result: RunResult,
    /// What each router made of what it heard from the first request on, in each way of listening; empty if
    /// nobody looked.
    pub observers: Vec<[Made; Listening::ALL.len()]>,
}

impl Trial {
    /// The scenario as it is to be run.
    ///
    /// # Errors
    /// A sentence on what is wrong with it.
    pub fn scenario(&self) -> Result<Scenario, String> {
        let scenario = Scenario::load_seeded(self.scenario, &self.settings, self.seed);
        scenario.map_err(|error| error.to_string())
    }
}

/// Runs it in virtual time, in whichever places.
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
