//! Runs of flows and fetches.

use report::provenance::Provenance;
use sim::scenario::{Scenario, Traffic};
use sim::world::Outcome;

use super::{Runs, captures, judge, seeds, wanted};
use crate::cli::Sim;
use crate::console::{Summary, deliver};
use crate::failure::Failure;
use crate::origin::origin;

mod json;
mod listed;
mod page;
mod table;

/// Largest number of flows: the results of all runs are kept until the last run ends.
const FLOWS_MAX: u64 = 1_000_000;

/// Runs all seeds, and writes the results.
pub fn run(args: &Sim, scenario: &Scenario) -> Result<(), Failure> {
    check(args, scenario)?;
    let origin = origin();
    let runs = seeds::each(args, scenario, |scenario, seed| {
        let (tap, files) = captures::tap(args, scenario, seed)?;
        let outcome = sim::world::run(scenario, seed, tap);
        files.finish()?;
        outcome.ok_or_else(|| Failure::failed("this scenario has no flows"))
    })?;
    let seeds = runs.results.iter().map(|it| it.seed);
    let provenance = Provenance::new(origin, &[runs.scenario.setting(None)], seeds);
    let summary = Summary {
        html: provenance.on_html(&page::html(&runs.scenario, &runs)),
        json: json::text(&runs.scenario, &runs, provenance),
        table: table::text(&runs.scenario, &runs),
    };
    deliver(wanted(args), &summary)?;
    judge(failed(&runs), args.strict)
}

fn check(args: &Sim, scenario: &Scenario) -> Result<(), Failure> {
    let receivers = scenario.receivers.len() as u64;
    let each = match scenario.traffic {
        Traffic::Fetches => receivers,
        Traffic::Flows => scenario.flows.len() as u64,
        _ => receivers * scenario.load.flows as u64,
    };
    let all = each.saturating_mul(args.seeds);
    if all > FLOWS_MAX {
        let text = format!(
            "--seeds: {} runs of {each} flows or clients make {all}, more than {FLOWS_MAX}: take fewer",
            args.seeds
        );
        return Err(Failure::refused(text));
    }
    Ok(())
}

fn failed(runs: &Runs<Outcome>) -> Vec<Failure> {
    let of_run = |run: &Outcome| {
        let seed = run.seed;
        let name = |what| Failure::failed(format!("seed {seed}: {what}"));
        run.failed.iter().map(name).collect::<Vec<_>>()
    };
    runs.results.iter().flat_map(of_run).collect()
}
