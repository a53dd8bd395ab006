//! `hearsay-lab sim`: runs of a scenario in virtual time, each seed a run, on all cores.
//!
//! *Where to start:* [`run`]. What a run is, is in the crate `sim`; here are threads, files and clocks.

use std::path::Path;
use std::time::Instant;

use sim::scenario::{Scenario, Traffic};

use crate::cli::Sim;
use crate::failure::Failure;
use crate::{require, say};

mod captures;
mod json;
mod page;
mod seeds;
mod table;

/// Several runs, and what they cost.
pub struct Runs<T> {
    /// In the order of their seeds.
    pub results: Vec<T>,
    /// From the beginning to the end of all.
    pub wall_seconds: f64,
    /// Of all threads, for the runs alone.
    pub cpu_seconds: f64,
}

/// `hearsay-lab sim`.
pub fn run(args: &Sim) -> Result<(), Failure> {
    require::results(args.json.as_deref(), args.html.as_deref())?;
    let scenario = load(args, args.seed)?;
    let began = Instant::now();
    match scenario.traffic {
        Traffic::Files => Err(Failure::refused(format!(
            "{}: `traffic` is \"files\", which the simulator does not run yet",
            scenario.name
        ))),
        Traffic::Tcp | Traffic::Udp | Traffic::Fetches => {
            let runs = seeds::each(args, "runs", |seed| {
                let scenario = load(args, seed)?;
                let (tap, kept) = captures::tap(args, &scenario, seed)?;
                let outcome = sim::world::run(&scenario, seed, tap);
                kept.finish()?;
                outcome.ok_or_else(|| Failure::failed("this scenario has no flows"))
            })?;
            let runs = Runs { wall_seconds: began.elapsed().as_secs_f64(), ..runs };
            tell(args, &scenario, &runs)
        }
    }
}

fn load(args: &Sim, seed: u64) -> Result<Scenario, Failure> {
    Scenario::load_seeded(&args.scenario, &args.set, seed).map_err(Failure::refused)
}

fn tell(args: &Sim, scenario: &Scenario, runs: &Runs<sim::world::Outcome>) -> Result<(), Failure> {
    let to_stdout = args.json.as_deref() == Some(Path::new("-"));
    if let Some(path) = &args.json {
        let text = json::text(scenario, runs);
        if to_stdout { say::out(text.as_bytes())? } else { std::fs::write(path, text)? }
    }
    if let Some(path) = &args.html {
        std::fs::write(path, page::html(scenario, runs))?;
    }
    if !args.quiet {
        let text = table::text(scenario, runs);
        if to_stdout { say::err(text.trim_end()) } else { say::out(text.as_bytes())? }
    }
    let failed: Vec<_> = runs
        .results
        .iter()
        .flat_map(|run| run.failed.iter().map(move |what| format!("seed {}: {what}", run.seed)))
        .collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::failed(failed.join("\n"))) }
}
