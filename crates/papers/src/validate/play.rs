//! The scenarios and setups that cases run.

use super::Settings;
use sim::scenario::{Scenario, ScenarioError};
use sim::world::{self, Outcome, Setup, contention};

/// What a case runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Play {
    /// The scenario `bulk`: a flow over a chain.
    Chain,
    /// This many saturated senders in one cell, with the radio of `bulk`.
    Cell(usize),
    /// Hidden terminals: two senders that do not sense each other.
    HiddenPair,
    /// Exposed terminals: two senders that sense each other although their receivers are not disturbed.
    ExposedPair,
    /// A sender whose receiver is this many metres from another sender, which the first does not sense.
    AsymmetricPair(u16),
    /// The scenario `mesh50`.
    Mesh,
}

impl Play {
    /// Its scenario.
    pub fn scenario(self, settings: &Settings, seed: u64) -> Result<Scenario, ScenarioError> {
        let name = if self == Self::Mesh { "mesh50" } else { "bulk" };
        Scenario::load_seeded(name, settings, seed)
    }

    /// Its stations and flows; `None` if it has fetches.
    pub fn world(self, scenario: &Scenario) -> Option<contention::Case> {
        let (radio, lasts) = (scenario.radio.clone(), scenario.load.lasts);
        Some(match self {
            Self::Mesh => return None,
            Self::Chain => {
                contention::Case { setup: Setup::of(scenario), flows: world::flows_of(scenario) }
            }
            Self::Cell(senders) => contention::cell(radio, senders, lasts),
            Self::HiddenPair => contention::hidden_pair(radio, lasts),
            Self::AsymmetricPair(apart_m) => {
                contention::asymmetric_pair(radio, f64::from(apart_m), lasts)
            }
            Self::ExposedPair => contention::exposed_pair(radio, lasts),
        })
    }

    pub fn run(self, scenario: &Scenario, seed: u64) -> Outcome {
        match self.world(scenario) {
            Some(case) => case.setup.run_flows(&case.flows, seed, None),
            None => world::run(scenario, seed, None).unwrap_or_default(),
        }
    }
}
