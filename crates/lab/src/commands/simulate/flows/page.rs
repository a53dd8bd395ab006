//! What runs of flows or fetches gave, as a page.

use report::{Figures, Rows};
use sim::scenario::Scenario;
use sim::world::{Outcome, over_seeds};

use super::listed;
use crate::commands::simulate::Runs;
use crate::ground::{ground, static_routes};

/// The page.
pub fn html(scenario: &Scenario, runs: &Runs<Outcome>) -> String {
    let each = |run: &Outcome| {
        let figures = run.figures().into_iter().map(|(_, value)| value).collect();
        (format!("seed\u{a0}{}", run.seed), figures)
    };
    let over_seeds = over_seeds(&runs.results).into_iter();
    let figures = Figures {
        title: scenario.name.clone(),
        over_seeds: over_seeds.map(|(name, it)| (name, [it.mean, it.sd])).collect(),
        runs: runs.results.iter().map(each).collect(),
        rows: flows(&runs.results),
        failed: runs.results.iter().flat_map(|run| run.failed.clone()).collect(),
    };
    report::figures(&figures, &ground(scenario, static_routes(scenario)))
}

/// The listed flows, if there are any.
fn flows(runs: &[Outcome]) -> Option<Rows> {
    let rows: Vec<_> =
        listed::rows(runs).into_iter().map(|it| (it.name, it.values.to_vec())).collect();
    (!rows.is_empty()).then(|| Rows {
        title: "Flows: means over the seeds, times in milliseconds",
        columns: listed::COLUMNS.map(|(name, _)| name).to_vec(),
        rows,
    })
}
