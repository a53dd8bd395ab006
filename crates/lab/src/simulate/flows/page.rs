//! What runs of flows or fetches gave, as a page.

use sim::report::{self, Figures};
use sim::scenario::Scenario;
use sim::world::{Outcome, over_seeds};

use crate::report::{ground, static_routes};
use crate::simulate::Runs;

/// The page.
pub fn html(scenario: &Scenario, runs: &Runs<Outcome>) -> String {
    let each = |run: &Outcome| {
        let figures = run.figures().into_iter().map(|(_, value)| value).collect();
        (format!("seed {}", run.seed), figures)
    };
    let figures = Figures {
        title: scenario.name.clone(),
        over_seeds: over_seeds(&runs.results),
        runs: runs.results.iter().map(each).collect(),
        failed: runs.results.iter().flat_map(|run| run.failed.clone()).collect(),
    };
    report::figures(&figures, &ground(scenario, static_routes(scenario)))
}
