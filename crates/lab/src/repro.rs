//! `hearsay-lab repro`: experiments of the papers, run again on all cores.
//!
//! *Where to start:* [`run`]. What the experiments are, is in the crate `sim`; here are threads, files and
//! clocks.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use sim::repro::{ALL, Experiment, Extent, Job, Row, Told, Verdict};

use crate::cli::Repro;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::say;

/// Stands for each of them.
const EACH: &str = "all";

/// `hearsay-lab repro`.
pub fn run(args: &Repro) -> Result<(), Failure> {
    let Some(name) = &args.name else { return Ok(say::out(list().as_bytes())?) };
    let chosen: Vec<_> = match name.as_str() {
        EACH => ALL.iter().collect(),
        name => vec![Experiment::named(name).ok_or_else(|| unknown(name))?],
    };
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
    let rows = on_all_cores(experiment.name, &plan.jobs(), args)?;
    let told = experiment.tell(rows);
    let page = write(experiment, &told, &args.out)?;
    if !args.quiet {
        let count = |verdict| told.findings.count(verdict);
        let text = format!(
            "{}: {} rows as the paper says, {} more in the mean, {} not; {:.0} s; {page}\n",
            experiment.name,
            count(Verdict::Holds),
            count(Verdict::Leans),
            count(Verdict::Fails),
            began.elapsed().as_secs_f64()
        );
        say::out(text.as_bytes())?;
    }
    Ok(())
}

/// Runs all jobs. After a failure none begins; the first is told.
fn on_all_cores(name: &'static str, jobs: &[Job<'_>], args: &Repro) -> Result<Vec<Row>, Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let step = Progress::new(args.quiet).step(name, jobs.len());
    let next = AtomicUsize::new(0);
    let (done, results) = mpsc::channel();
    let work = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = job.run();
            if result.is_err() {
                next.store(jobs.len(), Ordering::Relaxed);
            }
            let _ = done.send(result);
            step.tick();
        }
    };
    thread::scope(|scope| {
        for _ in 0..args.jobs.unwrap_or(cores).clamp(1, jobs.len().max(1)) {
            scope.spawn(work);
        }
    });
    drop(done);
    step.done();
    results.into_iter().collect::<Result<_, _>>().map_err(Failure::failed)
}

/// Where the page is.
fn write(experiment: &Experiment, told: &Told, folder: &Path) -> Result<String, Failure> {
    let write = |ending: &str, text: &str| {
        let path = folder.join(format!("{}{ending}", experiment.name));
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
