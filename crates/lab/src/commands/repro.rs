//! `hearsay-lab repro`: experiments of the papers, run again on all cores, or by real daemons.
//!
//! *Where to start:* [`run()`]. What the experiments are, is in the crate `papers`; here are threads, files and
//! clocks.

mod real;
mod run;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use papers::all::{ALL, named};
use papers::experiment::{Clock, Experiment, Extent, Job, Row, Told, Verdict};

use super::jobs::Jobs;
use crate::cli::Repro;
use crate::console;
use crate::failure::Failure;
use real::Made;

/// Stands for each of them.
const EACH: &str = "all";

/// `hearsay-lab repro`.
pub fn run(args: &Repro) -> Result<(), Failure> {
    let Some(name) = &args.name else { return Ok(console::out(list().as_bytes())?) };
    let chosen: Vec<_> = match name.as_str() {
        EACH => ALL.iter().collect(),
        name => vec![named(name).ok_or_else(|| unknown(name))?],
    };
    if let Some(other) = chosen.iter().find(|it| args.real && !it.is_for_daemons()) {
        let text = format!("{} is of the simulator alone: leave out --real", other.name);
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
    let _ = writeln!(text, "{EACH:<width$}  Each of them");
    text
}

fn unknown(name: &str) -> Failure {
    let names: Vec<_> = ALL.iter().map(|it| it.name).chain([EACH]).collect();
    Failure::refused(format!("unknown experiment {name:?}: there are {}", names.join(", ")))
}

/// Runs one, writes its files, and says in short what came of it.
fn repeat(experiment: &'static Experiment, args: &Repro) -> Result<(), Failure> {
    let began = Instant::now();
    let extent = if args.quick { Extent::Quick } else { Extent::Full };
    let plan = experiment.plan(extent, args.seeds);
    let jobs = plan.jobs();
    let name =
        if args.real { format!("{}-real", experiment.name) } else { experiment.name.to_owned() };
    let made = match args.real {
        true => real::make(&jobs, &args.out.join(&name), args)?,
        false => Made { rows: simulate(experiment, &jobs, args)?, failed: 0, left_out: 0 },
    };
    let clock = if args.real { Clock::Real } else { Clock::Virtual };
    let told = experiment.tell(made.rows, clock);
    let page = write(&name, &told, &args.out)?;
    if !args.quiet {
        let count = |verdict| told.findings.count(verdict);
        let text = format!(
            "{name}: {} rows as the paper says, {} more in the mean, {} not; {:.0} s; {page}\n",
            count(Verdict::Holds),
            count(Verdict::Leans),
            count(Verdict::Fails),
            began.elapsed().as_secs_f64()
        );
        console::out(text.as_bytes())?;
    }
    if made.left_out > 0 && !args.quiet {
        let text = format!(
            "not asked for: {} of {} runs; the page does without",
            made.left_out,
            jobs.len()
        );
        console::note(&text);
    }
    match made.failed {
        0 => Ok(()),
        failed => Err(Failure::failed(format!(
            "{failed} of {} runs failed, or the machine was too busy; the page does without: run the same \
             again to make them",
            jobs.len()
        ))),
    }
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

/// Where the page is.
fn write(name: &str, told: &Told, folder: &Path) -> Result<String, Failure> {
    let write = |ending: &str, text: &str| {
        let path = folder.join(format!("{name}{ending}"));
        let told = path.display().to_string();
        match fs::write(&path, text) {
            Ok(()) => Ok(told),
            Err(error) => Err(Failure::failed(format!("cannot write {told}: {error}"))),
        }
    };
    write("-runs.csv", &told.runs_csv)?;
    write(".csv", &told.rows_csv)?;
    for picture in &told.findings.pictures {
        write(&format!("-{}.svg", picture.name), &picture.svg)?;
    }
    write(".html", &told.html)
}
