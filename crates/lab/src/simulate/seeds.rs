//! A run for each seed, on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::Runs;
use crate::cli::Sim;
use crate::failure::Failure;
use crate::progress::Progress;

/// Runs all seeds that the command line names; the first failure, by seed, ends it.
pub fn each<T: Send>(
    args: &Sim,
    what: &'static str,
    run: impl Fn(u64) -> Result<T, Failure> + Sync,
) -> Result<Runs<T>, Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = args.jobs.unwrap_or(cores).clamp(1, args.seeds as usize);
    let step = Progress::new(args.quiet).step(what, args.seeds as usize);
    let next = AtomicU64::new(0);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= args.seeds {
                        break;
                    }
                    let before = cpu();
                    let result = run(args.seed.wrapping_add(place));
                    let cost = cpu().saturating_sub(before);
                    if result.is_err() {
                        next.store(args.seeds, Ordering::Relaxed);
                    }
                    if let Ok(mut done) = done.lock() {
                        done.push((place, result, cost));
                    }
                    step.tick();
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(place, ..)| *place);
    step.done();
    let cpu_seconds = done.iter().map(|(_, _, cost)| cost.as_secs_f64()).sum();
    let results = done.into_iter().map(|(_, result, _)| result).collect::<Result<_, _>>()?;
    Ok(Runs { results, wall_seconds: 0.0, cpu_seconds })
}

/// Processor time of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
