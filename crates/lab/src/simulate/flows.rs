//! Runs of flows and fetches.

use sim::scenario::Scenario;
use sim::world::Outcome;

use super::{Runs, Told, captures, load, seeds, tell};
use crate::cli::Sim;
use crate::failure::Failure;

mod json;
mod page;
mod table;

/// Runs them all and tells what came of them.
pub fn run(args: &Sim, scenario: &Scenario) -> Result<(), Failure> {
    let runs = seeds::each(args, |seed| {
        let scenario = load(args, seed)?;
        let (tap, files) = captures::tap(args, &scenario, seed)?;
        let outcome = sim::world::run(&scenario, seed, tap);
        files.finish()?;
        outcome.ok_or_else(|| Failure::failed("this scenario has no flows"))
    })?;
    let told = Told {
        json: json::text(scenario, &runs),
        html: page::html(scenario, &runs),
        table: table::text(scenario, &runs),
    };
    tell(args, &told)?;
    judge(&runs)
}

/// So many failures are named here; the JSON has them all.
const NAMED_MAX: usize = 20;

/// What failed is named.
fn judge(runs: &Runs<Outcome>) -> Result<(), Failure> {
    let of_run = |run: &Outcome| {
        let seed = run.seed;
        run.failed.iter().map(move |what| format!("seed {seed}: {what}")).collect::<Vec<_>>()
    };
    let mut failed: Vec<_> = runs.results.iter().flat_map(of_run).collect();
    let others = failed.len().saturating_sub(NAMED_MAX);
    failed.truncate(NAMED_MAX);
    if others > 0 {
        failed.push(format!("and {others} others: --json names them all"));
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::failed(failed.join("\n"))) }
}
