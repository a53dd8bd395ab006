//! Runs many simulations on all cores.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::console::progress::Progress;
use crate::failure::Failure;

/// How to run them.
#[derive(Clone, Copy, Debug)]
pub struct Jobs {
    /// What to call them in the progress bar.
    pub what: &'static str,
    /// Number of runs at a time; `None` means one for each core.
    pub at_a_time: Option<usize>,
    /// Whether to show no progress.
    pub quiet: bool,
}

impl Jobs {
    /// Runs `count` jobs, the first one first, and gives their results in order. After a failure no further
    /// job begins, and the first failure is returned.
    pub fn run<T: Send>(
        self,
        count: usize,
        run: impl Fn(usize) -> Result<T, Failure> + Sync,
    ) -> Result<Vec<T>, Failure> {
        let step = Progress::new(self.quiet).step(self.what, count);
        let next = AtomicUsize::new(0);
        let (done, results) = mpsc::channel();
        let work = || {
            // Each thread takes the next job until none is left.
            while let Some(place) =
                Some(next.fetch_add(1, Ordering::Relaxed)).filter(|it| *it < count)
            {
                let result = run(place);
                if result.is_err() {
                    next.store(count, Ordering::Relaxed);
                }
                let _ = done.send((place, result));
                step.tick();
            }
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        thread::scope(|scope| {
            for _ in 0..self.at_a_time.unwrap_or(cores).clamp(1, count.max(1)) {
                scope.spawn(work);
            }
        });
        drop(done);
        let mut all: Vec<_> = results.iter().collect();
        all.sort_by_key(|(place, _)| *place);
        let all = all.into_iter().map(|(_, result)| result).collect::<Result<_, _>>()?;
        step.done();
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(at_a_time: usize) -> Jobs {
        Jobs { what: "", at_a_time: Some(at_a_time), quiet: true }
    }

    #[test]
    fn results_are_in_order_however_many_run_at_a_time() {
        for at_a_time in [1, 3, 100] {
            let squares = jobs(at_a_time).run(20, |it| Ok(it * it));
            assert_eq!(squares, Ok((0..20).map(|it| it * it).collect()));
        }
        assert_eq!(jobs(1).run(0, Ok), Ok(Vec::new()));
    }

    #[test]
    fn after_a_failure_none_begins() {
        let begun = AtomicUsize::new(0);
        let result = jobs(1).run(20, |place| {
            begun.fetch_add(1, Ordering::Relaxed);
            if place < 3 { Ok(()) } else { Err(Failure::failed(place)) }
        });
        assert_eq!(result, Err(Failure::failed(3)));
        assert_eq!(begun.into_inner(), 4);
    }
}
