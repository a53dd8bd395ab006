//! The simulator compared with ns-3 and with closed forms.
//!
//! *What this is:* [`cases`], all comparisons; each [`Case`] runs for a seed and gives values, and
//! [`Checked`] compares their mean with the reference. *Who calls it:* `hearsay-lab validate`, which spreads
//! cases and seeds over the cores, and tests. *What it never does:* carry a figure of ns-3 in its code: those
//! are in `data/ns3`, and every row there becomes a case. *Where to start:* [`cases`]; `reference.rs` reads
//! the files, `theory.rs` has the closed forms, `verdict.rs` judges.

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

/// How much to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Everything.
    Full,
    /// Fewer cells, and shorter ones. All cases against ns-3, because shorter runs would differ by chance.
    Quick,
}

/// One comparison.
#[derive(Clone, Debug)]
pub struct Case {
    /// The source of its reference; cases of a group are adjacent.
    pub group: Group,
    /// Its name within the group.
    pub name: String,
    /// The keys that say how the medium receives, with their values.
    pub medium: String,
    /// Its figures, in order.
    pub figures: Vec<Figure>,
    play: Play,
    /// Keys that differ from the scenario's.
    settings: Settings,
}

/// Keys and values as [`Scenario::load`] takes them.
type Settings = Vec<(String, String)>;

/// A source of references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name, in a word or two.
    pub name: &'static str,
    /// What is compared.
    pub about: &'static str,
    /// What its figures are evidence of.
    pub standing: Standing,
}

/// The keys of the medium that are shown, and the only ones that `settings` may change: with any other key it
/// would be another case under the same name.
const MEDIUM: [&str; 3] = ["receiver", "reception", "dcf"];

/// All cases, in the order of the files. `settings` are keys of the scenario `bulk` that apply to all of
/// them, to use a medium other than the reference's.
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
    // Fresh cases set these keys themselves.
    if settings.is_empty() {
        cases.extend(fresh::cases(fresh::KEPT)?);
    }
    Ok(cases)
}

/// The fresh cases beside figures of ns-3 ([`ns3::table`]).
pub fn fresh_cases(figures: &str) -> Result<Vec<Case>, ScenarioError> {
    fresh::cases(figures)
}

impl Case {
    /// The setting, without keys that depend on the seed.
    pub fn setting(&self) -> Result<Setting, ScenarioError> {
        let [first, second] = [1, 2].map(|seed| self.play.scenario(&self.settings, seed));
        Ok(first?.setting(None).common(&second?.setting(None)))
    }

    /// Runs it once, and gives a value for each figure.
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

/// The result of one run of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// Values of its figures, in their order.
    pub values: Vec<f64>,
    /// Duration in virtual time, in seconds.
    pub simulated_seconds: f64,
    /// Number of the simulator's steps.
    pub events: u64,
}

fn medium(scenario: &Scenario) -> String {
    MEDIUM.map(|key| format!("{key} {}", scenario.key(key))).join(", ")
}

fn setting(key: &str, value: impl ToString) -> (String, String) {
    (key.to_owned(), value.to_string())
}
