//! Experiments with real daemons in real time. Each run is a `hearsay-lab run`, and its outcome is kept in a
//! folder, so that a series of hours can be interrupted and continued. `run.rs` is one run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use papers::experiment::{Job, Row};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::run::Run;
use crate::cli::Repro;
use crate::commands::jobs::Jobs;
use crate::failure::Failure;

/// The runs of an experiment that exist.
#[derive(Default)]
pub struct Made {
    /// Rows of runs that exist for all points of their curve.
    pub rows: Vec<Row>,
    /// Number of runs that failed.
    pub failed: usize,
    /// Number of runs that do not exist and were not requested.
    pub left_out: usize,
    /// Files with the outcomes of all runs that exist.
    pub kept: Vec<PathBuf>,
}

/// Makes the missing runs, one seed after the other.
pub fn make(jobs: &[Job<'_>], folder: &Path, args: &Repro) -> Result<Made, Failure> {
    let series = Series::new(folder)?;
    let runs = jobs.iter().map(|job| Run::of(job, &series)).collect::<Result<Vec<_>, _>>()?;
    let is_wanted = |run: &Run<'_>| args.only.as_ref().is_none_or(|it| run.name.contains(it));
    let mut todo = Vec::new();
    for run in &runs {
        if run.kept()?.is_none() && is_wanted(run) {
            todo.push(run);
        }
    }
    todo.sort_by_key(|it| it.job.seed());
    let how = Jobs { what: "runs", at_a_time: Some(args.jobs.unwrap_or(1)), quiet: args.quiet };
    let made = how.run(todo.len(), |place| todo[place].make())?;
    series.check()?;
    let failed = made.into_iter().filter(|is_kept| !is_kept).count();
    let ran = runs.iter().map(Ran::of).collect::<Result<Vec<_>, _>>()?;
    let is_there = |(_, ran): &(&Run<'_>, &Ran<Row>)| ran.rows.is_some();
    let kept: Vec<_> = runs.iter().zip(&ran).filter(is_there).map(|(it, _)| it.file()).collect();
    let left_out = (ran.len() - kept.len()).saturating_sub(failed);
    Ok(Made { rows: complete(ran), failed, left_out, kept })
}

/// A series of runs, and whether it should continue.
pub struct Series {
    /// The folder of outcomes.
    pub folder: PathBuf,
    /// The signal that was received, or 0. A run handles signals while it lasts; this is for signals between
    /// runs.
    signal: Arc<AtomicUsize>,
}

impl Series {
    fn new(folder: &Path) -> Result<Self, Failure> {
        let refuse =
            |error| Failure::refused(format!("cannot write to {}: {error}", folder.display()));
        fs::create_dir_all(folder).map_err(refuse)?;
        // The path as it stands on the command lines of runs.
        let folder = folder.canonicalize().map_err(refuse)?;
        if folder.to_str().is_none() {
            let text = format!("{}: captures need a path of UTF-8", folder.display());
            return Err(Failure::refused(text));
        }
        let signal = Arc::new(AtomicUsize::new(0));
        for each in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_usize(each, Arc::clone(&signal), each as usize)?;
        }
        Ok(Self { folder, signal })
    }

    /// Fails once a signal was received.
    pub fn check(&self) -> Result<(), Failure> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Failure { code: 128 + signal as u8, message: "interrupted".to_owned() }),
        }
    }
}

/// A run and its outcome, if it exists.
struct Ran<T> {
    curve: (&'static str, &'static str),
    seed: u64,
    rows: Option<Vec<T>>,
}

impl Ran<Row> {
    fn of(run: &Run<'_>) -> Result<Self, Failure> {
        let rows = run.kept()?.map(|outcome| run.rows(&outcome)).transpose()?;
        Ok(Self { curve: run.job.curve(), seed: run.job.seed(), rows })
    }
}

/// For each curve, the runs of all seeds before the first incomplete one. Figures are means over seeds, and
/// each seed must have all orders.
fn complete<T>(all: Vec<Ran<T>>) -> Vec<T> {
    let mut broken = BTreeMap::new();
    for run in all.iter().filter(|it| it.rows.is_none()) {
        let first = broken.entry(run.curve).or_insert(run.seed);
        *first = run.seed.min(*first);
    }
    let counts = |run: &Ran<T>| broken.get(&run.curve).is_none_or(|first| run.seed < *first);
    all.into_iter().filter(counts).filter_map(|it| it.rows).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_curve_only_whole_seeds_count_up_to_the_first_that_is_not() {
        let ran = |series, seed, rows: Option<u8>| Ran {
            curve: ("a", series),
            seed,
            rows: rows.map(|it| vec![it]),
        };
        let all = vec![
            ran("x", 1, Some(1)),
            ran("y", 1, Some(2)),
            ran("x", 2, Some(3)),
            ran("x", 2, None),
            ran("y", 2, Some(4)),
            ran("x", 3, Some(5)),
            ran("x", 3, Some(6)),
        ];
        assert_eq!(complete(all), [1, 2, 4]);
    }
}
