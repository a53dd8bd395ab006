//! One run for each seed.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use sim::scenario::Scenario;

use super::load;
use crate::cli::Sim;
use crate::commands::jobs::Jobs;
use crate::failure::Failure;

/// The runs of several seeds, and their cost.
pub struct Runs<T> {
    /// The scenario, with only those keys that are the same for all seeds.
    pub scenario: Scenario,
    /// Results in the order of their seeds.
    pub results: Vec<T>,
    /// Seconds from the beginning of the first run to the end of the last.
    pub wall_seconds: f64,
    /// Processor time of all runs together, in seconds.
    pub cpu_seconds: f64,
}

impl<A, B> Runs<(A, B)> {
    /// Separates the first of each pair; the runs keep the second.
    pub fn unzip(self) -> (Vec<A>, Runs<B>) {
        let (firsts, results) = self.results.into_iter().unzip();
        let Self { scenario, wall_seconds, cpu_seconds, .. } = self;
        (firsts, Runs { scenario, results, wall_seconds, cpu_seconds })
    }
}

/// Runs all seeds of the command line; `scenario` is that of the first. After a failure no further run
/// begins, and the first failure is returned.
pub fn each<T: Send>(
    args: &Sim,
    first: &Scenario,
    run: impl Fn(&Scenario, u64) -> Result<T, Failure> + Sync,
) -> Result<Runs<T>, Failure> {
    let began = Instant::now();
    let differ = Mutex::new(BTreeSet::new());
    let seeds = usize::try_from(args.seeds).unwrap_or(usize::MAX);
    let jobs = Jobs { what: "runs", at_a_time: args.jobs, quiet: args.quiet };
    let runs = jobs.run(seeds, |place| {
        let before = cpu();
        let seed = args.seed.wrapping_add(place as u64);
        let scenario = load(args, seed)?;
        let others = scenario.keys.iter().zip(&first.keys).filter(|(one, other)| one != other);
        differ.lock().unwrap_or_else(PoisonError::into_inner).extend(others.map(|(it, _)| it.name));
        let result = run(&scenario, seed)?;
        Ok((result, cpu().saturating_sub(before)))
    })?;
    let cpu_seconds = runs.iter().map(|(_, cost)| cost.as_secs_f64()).sum();
    Ok(Runs {
        scenario: common(first, &differ.into_inner().unwrap_or_else(PoisonError::into_inner), args),
        results: runs.into_iter().map(|(result, _)| result).collect(),
        wall_seconds: began.elapsed().as_secs_f64(),
        cpu_seconds,
    })
}

/// The first scenario, without keys that differ between seeds.
fn common(first: &Scenario, differ: &BTreeSet<&str>, args: &Sim) -> Scenario {
    let mut common = first.clone();
    if !differ.is_empty() {
        common.keys.retain(|key| !differ.contains(key.name));
        let map =
            format!("Each seed has a mesh of its own; the map shows that of seed {}.", args.seed);
        common.description = format!("{} {map}", common.description).trim().to_owned();
    }
    common
}

/// Processor time of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
