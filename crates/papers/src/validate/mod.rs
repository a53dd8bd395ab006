//! The simulator held against ns-3 and against closed forms.
//!
//! *What this is:* [`cases`], all that is compared; each [`Case`] runs for a seed and gives values, and
//! [`Checked`] says how far their mean is from the reference. *Who calls it:* `hearsay-lab validate`, which
//! spreads cases and seeds over the cores, and tests. *What it never does:* carry a figure of ns-3 in
//! its code: those are in `data/ns3`, and every row there becomes a case. *Where to start:* [`cases`];
//! `reference.rs` reads the files, `theory.rs` has the closed forms, `verdict.rs` judges.

use crate::Standing;
use ::report::provenance::Setting;
use sim::scenario::{Scenario, ScenarioError};

mod fresh;
pub mod ns3;
mod page;
mod play;
mod reference;
mod report;
mod rows;
mod theory;
mod verdict;

pub use page::page;
use play::Play;
pub use report::{Cost, Report};
pub use verdict::{Checked, Figure, Verdict};

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Everything.
    Full,
    /// Fewer cells, and those shorter. Against ns-3 everything: shorter runs would differ by chance.
    Quick,
}

/// Something that is compared.
#[derive(Clone, Debug)]
pub struct Case {
    /// Where its reference is from; cases of one group follow each other.
    pub group: Group,
    /// What it is, within the group.
    pub name: String,
    /// How the medium receives: keys of the scenario that matter, and their values.
    pub medium: String,
    /// What it gives, in this order.
    pub figures: Vec<Figure>,
    play: Play,
    /// Keys that differ from the scenario's.
    settings: Settings,
}

/// Keys and values as [`Scenario::load`] takes them.
type Settings = Vec<(String, String)>;

/// Where references are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// In a word or two.
    pub name: &'static str,
    /// What is compared.
    pub about: &'static str,
    /// Whether its figures could have come out otherwise.
    pub standing: Standing,
}

/// What a reader must know of the medium, and all that may be another than the reference's: with any other
/// key it would be another case under the same name.
const MEDIUM: [&str; 3] = ["receiver", "reception", "dcf"];

/// All cases, in the order of the files. `settings` are keys of the scenario `bulk` that apply to all
/// of them: another medium than the reference's.
pub fn cases(effort: Effort, settings: &[(String, String)]) -> Result<Vec<Case>, ScenarioError> {
    if let Some((key, value)) = settings.iter().find(|(key, _)| !MEDIUM.contains(&key.as_str())) {
        let text = format!(
            "cases may differ from their references in {} alone, the rules of the medium",
            MEDIUM.map(|key| format!("`{key}`")).join(", ")
        );
        return Err(ScenarioError::setting(key, value, &text));
    }
    let mut cases = reference::cases(settings)?;
    cases.extend(theory::cases(effort, settings)?);
    // Those have rules of their own.
    if settings.is_empty() {
        cases.extend(fresh::cases(fresh::KEPT)?);
    }
    Ok(cases)
}

/// The cases that nothing was tuned to, beside figures of ns-3 ([`ns3::table`]).
pub fn fresh_cases(figures: &str) -> Result<Vec<Case>, ScenarioError> {
    fresh::cases(figures)
}

impl Case {
    /// What it is played in, whatever the seed.
    pub fn setting(&self) -> Result<Setting, ScenarioError> {
        let [first, second] = [1, 2].map(|seed| self.play.scenario(&self.settings, seed));
        Ok(first?.setting(None).common(&second?.setting(None)))
    }

    /// Plays it once: a value for each figure.
    pub fn run(&self, seed: u64) -> Result<Played, ScenarioError> {
        let scenario = self.play.scenario(&self.settings, seed)?;
        let outcome = self.play.run(&scenario, seed);
        Ok(Played {
            values: self.figures.iter().map(|figure| figure.of(&outcome)).collect(),
            simulated_seconds: outcome.simulated_seconds,
            events: outcome.events,
        })
    }
}

/// What a run of a case gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Of its figures, in their order.
    pub values: Vec<f64>,
    /// How long it lasted in virtual time.
    pub simulated_seconds: f64,
    /// Steps of the simulator.
    pub events: u64,
}

fn medium(scenario: &Scenario) -> String {
    MEDIUM.map(|key| format!("{key} {}", scenario.key(key))).join(", ")
}

fn setting(key: &str, value: impl ToString) -> (String, String) {
    (key.to_owned(), value.to_string())
}
