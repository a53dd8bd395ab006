//! `hearsay-lab repro`: repeats experiments of the papers on all cores, or with real daemons.
//!
//! *Where to start:* [`run()`]. The crate `papers` defines the experiments; here are threads, files and
//! clocks.

mod files;
mod json;
mod real;
mod run;

use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use papers::all::{ALL, named};
use papers::experiment::{Clock, Experiment, Extent, Findings, Job, Row, Verdict};
use report::provenance::Provenance;

use super::jobs::Jobs;
use crate::cli::Repro;
use crate::console;
use crate::failure::Failure;
use crate::origin::origin;
use files::Files;
use json::Reproduction;
use real::Made;

/// The name that stands for all experiments.
const EACH: &str = "all";

/// `hearsay-lab repro`.
pub fn run(args: &Repro) -> Result<(), Failure> {
    let Some(name) = &args.name else { return console::out(list().as_bytes()) };
    let chosen: Vec<_> = match name.as_str() {
        EACH => ALL.iter().collect(),
        name => vec![named(name).ok_or_else(|| unknown(name))?],
    };
    if let Some(other) = chosen.iter().find(|it| args.real && !it.is_for_daemons()) {
        let text = format!("{} runs in the simulator only: leave out --real", other.name);
        return Err(Failure::refused(text));
    }
    let refuse =
        |error| Failure::refused(format!("cannot write to {}: {error}", args.out.display()));
    fs::create_dir_all(&args.out).map_err(refuse)?;
    chosen.into_iter().try_for_each(|experiment| repeat(experiment, args))
}

fn list() -> String {
    let width = ALL.iter().map(|it| it.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Experiment { name, about, .. } in &ALL {
        let _ = writeln!(text, "{name:<width$}  {about}");
    }
    let _ = writeln!(text, "{EACH:<width$}  All experiments");
    text
}

fn unknown(name: &str) -> Failure {
    let names: Vec<_> = ALL.iter().map(|it| it.name).chain([EACH]).collect();
    Failure::refused(format!("unknown experiment {name:?}: there are {}", names.join(", ")))
}

/// Runs one experiment, writes its files, and prints a summary.
fn repeat(experiment: &'static Experiment, args: &Repro) -> Result<(), Failure> {
    let began = Instant::now();
    let extent = if args.quick { Extent::Quick } else { Extent::Full };
    let clock = if args.real { Clock::Real } else { Clock::Virtual };
    let plan = experiment.plan(extent, clock, args.seeds);
    let jobs = plan.jobs();
    let name =
        if args.real { format!("{}-real", experiment.name) } else { experiment.name.to_owned() };
    let points = plan.played().map_err(Failure::failed)?;
    // The provenance names every setting, so that each point can be run again.
    let settings: Vec<_> = points.iter().filter_map(|it| it.setting.clone()).collect();
    let provenance = Provenance::new(origin(), &settings, 1..=plan.seeds());
    let made = match args.real {
        true => real::make(&jobs, &args.out.join(&name), args)?,
        false => Made { rows: simulate(experiment, &jobs, args)?, ..Made::default() },
    };
    let summary = experiment.summarise(made.rows, extent, clock);
    let reproduction =
        Reproduction { experiment, extent, clock, summary: &summary, points: &points };
    let json = reproduction.json(&name, provenance.clone())?;
    let page = Files::new(&name, &args.out, provenance).write(&summary, &json, &made.kept)?;
    if !args.quiet {
        let seconds = began.elapsed().as_secs_f64();
        let text = format!("{name}: {}; {seconds:.0} s; {page}\n", verdicts(&summary.findings));
        console::out((text + &remarks(&summary.findings, args.quick)).as_bytes())?;
    }
    complete(made.failed, made.left_out, jobs.len())
}

/// How many rows there are, and how many of them are as a paper has them.
fn verdicts(findings: &Findings) -> String {
    let count = |verdict| findings.count(verdict);
    match (findings.predicted(), findings.set_and_given()) {
        (0, [0, 0]) => format!("{} rows, none beside a paper's figure", findings.rows.len()),
        (0, [set, given]) => format!("no row is predicted; {set} set, {given} given"),
        (predicted, [set, given]) => format!(
            "of {predicted} predicted rows {} hold, {} more in the mean, {} not, {} are open; {set} set, {given} \
             given",
            count(Verdict::Holds),
            count(Verdict::Leans),
            count(Verdict::Fails),
            count(Verdict::Open),
        ),
    }
}

/// What a reader of the rows should know.
fn remarks(findings: &Findings, is_quick: bool) -> String {
    let quick =
        "--quick makes few runs of few points: their figures show whether it works, and vary much";
    let notes = findings.notes.iter().map(String::as_str).chain(is_quick.then_some(quick));
    notes.map(|note| format!("  {note}\n")).collect()
}

/// Fails if runs are missing, because the page is then incomplete.
fn complete(failed: usize, left_out: usize, all: usize) -> Result<(), Failure> {
    let mut missing = Vec::new();
    if failed > 0 {
        missing.push(format!(
            "{failed} of {all} runs failed, or the machine was too busy; the page lacks them: run the same \
             again to make them"
        ));
    }
    if left_out > 0 {
        missing.push(format!(
            "not made, because --only left them out: {left_out} of {all} runs; the page lacks them"
        ));
    }
    if missing.is_empty() { Ok(()) } else { Err(Failure::failed(missing.join("\n"))) }
}

fn simulate(
    experiment: &'static Experiment,
    jobs: &[Job<'_>],
    args: &Repro,
) -> Result<Vec<Row>, Failure> {
    let how = Jobs { what: experiment.name, at_a_time: args.jobs, quiet: args.quiet };
    let rows = how.run(jobs.len(), |place| jobs[place].run().map_err(Failure::failed))?;
    Ok(rows.into_iter().flatten().collect())
}
