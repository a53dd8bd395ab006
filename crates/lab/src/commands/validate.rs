//! `hearsay-lab validate`: compares the simulator with ns-3 and with closed forms, on all cores.
//!
//! *Where to start:* [`run`]. `papers::validate` defines the cases and how near they must be.

use std::time::Instant;

use papers::validate::{self, Case, Checked, Cost, Effort, Played, Report, Verdict};
use report::provenance::Provenance;

use super::jobs::Jobs;
use crate::cli::Validate;
use crate::console::writable;
use crate::console::{Summary, Wanted, deliver};
use crate::failure::Failure;
use crate::origin::origin;

mod json;
mod ns3;
mod table;

/// Number of runs of each case, unless the command line gives another.
const SEEDS: u64 = 5;
const SEEDS_QUICK: u64 = 2;
const SEEDS_NS3: u64 = 10;

/// `hearsay-lab validate`.
pub fn run(args: &Validate) -> Result<(), Failure> {
    writable::results(args.json.as_deref(), args.html.as_deref(), None)?;
    let (effort, seeds) = match args {
        Validate { quick: true, .. } => (Effort::Quick, SEEDS_QUICK),
        Validate { ns3: Some(_), .. } => (Effort::Full, SEEDS_NS3),
        _ => (Effort::Full, SEEDS),
    };
    let seeds = args.seeds.unwrap_or(seeds);
    let cases = match &args.ns3 {
        Some(folder) => {
            let jobs = Jobs { what: "runs of ns-3", at_a_time: args.jobs, quiet: args.quiet };
            ns3::cases(folder, seeds, jobs)?
        }
        None => validate::cases(effort, &args.set).map_err(Failure::refused)?,
    };
    let settings = cases.iter().map(Case::setting).collect::<Result<Vec<_>, _>>();
    let settings = settings.map_err(Failure::refused)?;
    let provenance = Provenance::new(origin(), &settings, 1..=seeds);
    let began = Instant::now();
    let played = play(args, &cases, seeds)?;
    let report = compared(cases, seeds, &played, began.elapsed().as_secs_f64());
    let summary = Summary {
        html: provenance.on_html(&validate::page(&report)),
        json: json::text(&report, provenance)?,
        table: table::text(&report),
    };
    let (json, html) = (args.json.as_deref(), args.html.as_deref());
    deliver(Wanted { json, html, quiet: args.quiet }, &summary)?;
    judge(&report)
}

/// Runs every case with every seed from 1 on; the runs of a case are adjacent.
fn play(args: &Validate, cases: &[Case], seeds: u64) -> Result<Vec<Played>, Failure> {
    let runs = cases.len() * seeds as usize;
    let jobs = Jobs { what: "runs", at_a_time: args.jobs, quiet: args.quiet };
    // The longest cases are last in the list, so the list is run backwards.
    let mut played = jobs.run(runs, |turn| {
        let place = runs - 1 - turn;
        let (case, seed) = (place / seeds as usize, 1 + place as u64 % seeds);
        cases[case].run(seed).map_err(Failure::refused)
    })?;
    played.reverse();
    Ok(played)
}

fn compared(cases: Vec<Case>, seeds: u64, played: &[Played], wall_seconds: f64) -> Report {
    let checked = |(case, runs): (Case, &[Played])| {
        let figures = case.figures.iter().enumerate();
        let figure = |(at, it)| Checked::of(it, runs.iter().map(|run: &Played| run.values[at]));
        (case.clone(), figures.map(figure).collect())
    };
    let runs = played.chunks(seeds as usize);
    Report {
        seeds,
        cases: cases.into_iter().zip(runs).map(checked).collect(),
        cost: Cost {
            simulated_seconds: played.iter().map(|run| run.simulated_seconds).sum(),
            events: played.iter().map(|run| run.events).sum(),
            wall_seconds,
        },
    }
}

/// Fails with the names of figures that are too far off.
fn judge(report: &Report) -> Result<(), Failure> {
    let failed: Vec<_> = report
        .figures()
        .filter(|(_, checked)| checked.verdict() == Verdict::Failed)
        .map(|(case, checked)| {
            let off = checked.ratio().map_or(f64::NAN, |ratio| 100.0 * (ratio - 1.0));
            format!(
                "{}, {}: {} is off by {off:+.1} %",
                case.group.name, case.name, checked.figure.name
            )
        })
        .collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::failed(failed.join("\n"))) }
}
