//! `hearsay-lab compare`: several results of one scenario on one page.

use std::fs;
use std::path::Path;

use sim::result::RunResult;
use sim::scenario::Scenario;

use crate::cli::Compare;
use crate::failure::Failure;
use crate::ground::{ground, static_routes};

/// Reads the results and writes the page.
pub fn run(args: &Compare) -> Result<(), Failure> {
    let results: Vec<_> = args.results.iter().map(|it| read(it)).collect::<Result<_, _>>()?;
    let results = results.concat();
    let Some(name) = results.first().map(|it| &it.scenario) else {
        return Err(Failure::refused("there are no results in these files"));
    };
    if let Some(other) = results.iter().find(|it| it.scenario != *name) {
        let text = format!("these are results of two scenarios, {name} and {}", other.scenario);
        return Err(Failure::refused(text));
    }
    let scenario = args.scenario.as_ref().unwrap_or(name);
    let scenario = Scenario::load(scenario, &[]).map_err(Failure::refused)?;
    let mut ground = ground(&scenario, static_routes(&scenario));
    // Results do not say which keys were set.
    ground.keys.clear();
    fs::write(&args.html, sim::result::page::compare(&results, &ground))
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", args.html.display())))
}

/// One result, or several of `sim --seeds`.
fn read(path: &Path) -> Result<Vec<RunResult>, Failure> {
    let refuse =
        |why: &dyn std::fmt::Display| Failure::refused(format!("{}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| refuse(&error))?;
    let wrong = |error| refuse(&format!("is no result of a run: {error}"));
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(&text).map_err(wrong);
    }
    serde_json::from_str(&text).map(|result| vec![result]).map_err(wrong)
}
