//! A run for each seed, on all cores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::cli::Sim;
use crate::failure::Failure;
use crate::progress::Progress;

/// Several runs, and what they cost.
pub struct Runs<T> {
    /// In the order of their seeds.
    pub results: Vec<T>,
    /// From the beginning of the first to the end of the last.
    pub wall_seconds: f64,
    /// Of all runs together.
    pub cpu_seconds: f64,
}

/// Runs all seeds that the command line names. After a failure none begins; the first is told.
pub fn each<T: Send>(
    args: &Sim,
    run: impl Fn(u64) -> Result<T, Failure> + Sync,
) -> Result<Runs<T>, Failure> {
    let began = Instant::now();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let seeds = usize::try_from(args.seeds).unwrap_or(usize::MAX);
    let step = Progress::new(args.quiet).step("runs", seeds);
    let next = AtomicU64::new(0);
    let (done, results) = mpsc::channel();
    let work = || {
        // Each thread takes what is next, until nothing is.
        while let Some(place) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|it| *it < args.seeds)
        {
            let before = cpu();
            let result = run(args.seed.wrapping_add(place));
            let cost = cpu().saturating_sub(before);
            if result.is_err() {
                next.store(args.seeds, Ordering::Relaxed);
            }
            let _ = done.send((place, result, cost));
            step.tick();
        }
    };
    thread::scope(|scope| {
        for _ in 0..args.jobs.unwrap_or(cores).clamp(1, seeds) {
            scope.spawn(work);
        }
    });
    drop(done);
    let mut all: Vec<_> = results.iter().collect();
    all.sort_by_key(|(place, ..)| *place);
    step.done();
    let cpu_seconds = all.iter().map(|(_, _, cost)| cost.as_secs_f64()).sum();
    let results = all.into_iter().map(|(_, result, _)| result).collect::<Result<_, _>>()?;
    Ok(Runs { results, wall_seconds: began.elapsed().as_secs_f64(), cpu_seconds })
}

/// Processor time of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
