//! A run for each seed.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use sim::scenario::Scenario;

use super::load;
use crate::cli::Sim;
use crate::commands::jobs::Jobs;
use crate::failure::Failure;

/// Several runs, and what they cost.
pub struct Runs<T> {
    /// The first seed's, with the keys alone that are the same for all.
    pub scenario: Scenario,
    /// In the order of their seeds.
    pub results: Vec<T>,
    /// From the beginning of the first to the end of the last.
    pub wall_seconds: f64,
    /// Of all runs together.
    pub cpu_seconds: f64,
}

impl<A, B> Runs<(A, B)> {
    /// The first of each pair, and the runs with the second alone.
    pub fn unzip(self) -> (Vec<A>, Runs<B>) {
        let (firsts, results) = self.results.into_iter().unzip();
        let Self { scenario, wall_seconds, cpu_seconds, .. } = self;
        (firsts, Runs { scenario, results, wall_seconds, cpu_seconds })
    }
}

/// Runs all seeds that the command line names, from the first, whose scenario it is. After a failure none
/// begins; the first is told.
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

/// The first of several scenarios without what holds for it alone.
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
