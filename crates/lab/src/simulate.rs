//! `hearsay-lab sim`: runs of a scenario in virtual time, each seed a run, on all cores.
//!
//! *Where to start:* [`run`]. What a run is, is in the crate `sim`; here are threads, files and clocks.

use std::path::Path;

use sim::scenario::{Scenario, Traffic};

use crate::cli::Sim;
use crate::failure::Failure;
use crate::{require, say};

mod captures;
mod files;
mod flows;
mod seeds;

use seeds::Runs;

/// `hearsay-lab sim`.
pub fn run(args: &Sim) -> Result<(), Failure> {
    require::results(args.json.as_deref(), args.html.as_deref())?;
    let scenario = load(args, args.seed)?;
    captures::folder(args)?;
    match (scenario.traffic, args.scheme) {
        (Traffic::Files, _) => files::run(args, &scenario),
        (_, Some(_)) => {
            let traffic = scenario.key("traffic");
            let text = format!("--scheme: `traffic` is \"{traffic}\", which nobody caches");
            Err(Failure::refused(text))
        }
        (Traffic::Tcp | Traffic::Udp | Traffic::Fetches, None) => flows::run(args, &scenario),
    }
}

/// The scenario as a seed has it.
fn load(args: &Sim, seed: u64) -> Result<Scenario, Failure> {
    Scenario::load_seeded(&args.scenario, &args.set, seed).map_err(Failure::refused)
}

/// What there is to tell of runs.
struct Told {
    json: String,
    html: String,
    /// For a terminal.
    table: String,
}

/// Writes what was asked for, files first: whoever reads standard output may go away.
fn tell(args: &Sim, told: &Told) -> Result<(), Failure> {
    let json_goes_to_stdout = args.json.as_deref() == Some(Path::new("-"));
    if let Some(path) = args.json.as_deref().filter(|_| !json_goes_to_stdout) {
        write(path, &told.json)?;
    }
    if let Some(path) = &args.html {
        write(path, &told.html)?;
    }
    if json_goes_to_stdout {
        say::out(told.json.as_bytes())?;
    } else if !args.quiet {
        say::out(told.table.as_bytes())?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}
