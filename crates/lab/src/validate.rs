//! `hearsay-lab validate`: the simulator held against ns-3 and against closed forms, on all cores.
//!
//! *Where to start:* [`run`]. What is compared, and when it is near enough, is in `sim::validate`.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use sim::report;
use sim::validate::{self, Case, Checked, Cost, Effort, Played, Report, Verdict};

use crate::cli::Validate;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{require, say};

mod json;
mod table;

/// Runs of each case, unless the command line says otherwise.
const SEEDS: u64 = 5;
const SEEDS_QUICK: u64 = 2;

/// `hearsay-lab validate`.
pub fn run(args: &Validate) -> Result<(), Failure> {
    require::results(args.json.as_deref(), args.html.as_deref())?;
    let (effort, seeds) =
        if args.quick { (Effort::Quick, SEEDS_QUICK) } else { (Effort::Full, SEEDS) };
    let seeds = args.seeds.unwrap_or(seeds);
    let cases = validate::cases(effort, &args.set).map_err(Failure::refused)?;
    let began = Instant::now();
    let played = play(&cases, seeds, args.quiet)?;
    let report = report(cases, seeds, &played, began.elapsed().as_secs_f64());
    tell(args, &report)?;
    judge(&report)
}

/// Every case with every seed, from 1; those of a case follow each other.
fn play(cases: &[Case], seeds: u64, quiet: bool) -> Result<Vec<Played>, Failure> {
    let runs = cases.len() * seeds as usize;
    let step = Progress::new(quiet).step("runs", runs);
    let next = AtomicUsize::new(0);
    let (done, results) = mpsc::channel();
    let work = || {
        // Each thread takes what is next, until nothing is. The longest stand last: from the end.
        while let Some(place) = runs.checked_sub(1 + next.fetch_add(1, Ordering::Relaxed)) {
            let (case, seed) = (place / seeds as usize, 1 + place as u64 % seeds);
            let _ = done.send((place, cases[case].run(seed)));
            step.tick();
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    drop(done);
    let mut all: Vec<_> = results.iter().collect();
    all.sort_by_key(|(place, _)| *place);
    step.done();
    all.into_iter().map(|(_, played)| played.map_err(Failure::refused)).collect()
}

fn report(cases: Vec<Case>, seeds: u64, played: &[Played], wall_seconds: f64) -> Report {
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

/// Writes what was asked for, files first: whoever reads standard output may go away.
fn tell(args: &Validate, report: &Report) -> Result<(), Failure> {
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
    };
    let json_goes_to_stdout = args.json.as_deref() == Some(Path::new("-"));
    if let Some(path) = args.json.as_deref().filter(|_| !json_goes_to_stdout) {
        write(path, &json::text(report)?)?;
    }
    if let Some(path) = &args.html {
        write(path, &report::checks(report))?;
    }
    if json_goes_to_stdout {
        say::out(json::text(report)?.as_bytes())?;
    } else if !args.quiet {
        say::out(table::text(report).as_bytes())?;
    }
    Ok(())
}

/// What is too far off is named.
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
