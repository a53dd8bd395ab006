//! `hearsay-lab compare`: several results of one scenario on one page.

use std::fs;
use std::path::Path;

use report::provenance::{Origin, Provenance, Setting};
use serde::Deserialize;
use sim::result::RunResult;
use sim::scenario::Scenario;

use crate::cli::Compare;
use crate::console::{self, writable};
use crate::failure::Failure;
use crate::ground::{ground, static_routes};
use crate::origin::origin;

/// A file's contents. Files of earlier versions have no provenance.
#[derive(Clone, Deserialize)]
struct Read {
    provenance: Option<Provenance>,
    #[serde(flatten)]
    result: RunResult,
}

/// Reads the results and writes the page.
pub fn run(args: &Compare) -> Result<(), Failure> {
    writable::results(None, Some(&args.html), args.picture.as_deref())?;
    let read: Vec<_> = args.results.iter().map(|it| read(it)).collect::<Result<_, _>>()?;
    let (sources, results): (Vec<_>, Vec<_>) =
        read.into_iter().flatten().map(|it| (it.provenance, it.result)).unzip();
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
    // Results may differ in keys that were set; the page's foot lists those of each.
    ground.keys.clear();
    let all: Vec<_> = sources.into_iter().flatten().collect();
    let by_origin = by_origin(&all);
    if let Some(path) = &args.picture {
        let picture = sim::result::pair::svg(&results, &ground).ok_or_else(|| {
            Failure::refused("--picture: needs results of end-to-end and of another scheme")
        })?;
        // Where the results come from, but not when they were drawn: the same results give the same bytes.
        console::write(path, &by_origin.iter().fold(picture, |picture, one| one.on_svg(&picture)))?;
    }
    let page = sim::result::page::compare(&results, &ground);
    let last = merged(origin(), &all);
    let sources = by_origin.iter().chain([&last]);
    console::write(&args.html, &sources.fold(page, |page, one| one.on_html(&page)))
}

/// One provenance for all runs of a command.
fn by_origin(all: &[Provenance]) -> Vec<Provenance> {
    let mut origins: Vec<&Origin> = Vec::new();
    for it in all {
        if !origins.contains(&&it.origin) {
            origins.push(&it.origin);
        }
    }
    let of = |origin: &Origin| -> Vec<_> {
        all.iter().filter(|it| it.origin == *origin).cloned().collect()
    };
    origins.into_iter().map(|it| merged(it.clone(), &of(it))).collect()
}

/// The provenance of several runs together.
fn merged(origin: Origin, all: &[Provenance]) -> Provenance {
    let setting = |it: &Provenance| Setting {
        scenario: it.scenarios.concat(),
        scheme: it.schemes.first().cloned(),
        keys: it.keys.clone(),
    };
    let settings: Vec<_> = all.iter().map(setting).collect();
    Provenance::new(origin, &settings, all.iter().flat_map(|it| it.seeds.iter().copied()))
}

/// One result, or several of `sim --seeds`.
fn read(path: &Path) -> Result<Vec<Read>, Failure> {
    let refuse =
        |why: &dyn std::fmt::Display| Failure::refused(format!("{}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| refuse(&error))?;
    let wrong = |error| refuse(&format!("is not a result of a run: {error}"));
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(&text).map_err(wrong);
    }
    serde_json::from_str(&text).map(|result| vec![result]).map_err(wrong)
}
