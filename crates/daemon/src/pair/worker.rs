//! The threads that pack, unpack and read old units. They are threads of their own, since one message may take
//! tens of milliseconds, and a disk longer: clients and origins must not wait for either.
//!
//! Pairs share a small number of threads. The jobs of one pair are done in their order, one at a time; pairs take
//! turns, one job each, so a pair with many jobs does not hold up the others.

use super::history::{Histories, Kept};
use node::uplink::{Done, Job, Worker};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What was done.
pub type Results = UnboundedReceiver<(u64, Done)>;

/// What has crossed is durable after about this long.
const SYNC_EVERY: Duration = Duration::from_secs(5);

/// Threads, shared by pairs. They end when no pair and no other handle is left.
#[derive(Clone)]
pub struct Workers(Arc<Handle>);

/// Gives the jobs of one pair to the threads. When it is dropped, what was given is done and made durable.
pub struct Work {
    desk: Arc<Desk>,
    workers: Workers,
}

/// One pair's jobs.
struct Desk {
    tasks: Mutex<Tasks>,
    /// Of the thread whose turn it is; `None` once the pair is closed.
    bench: Mutex<Option<Bench>>,
}

#[derive(Default)]
struct Tasks {
    waiting: VecDeque<Task>,
    /// It waits for a thread, or a thread is at it.
    is_queued: bool,
}

enum Task {
    Job(u64, Job),
    Sync,
    Close,
}

struct Bench {
    worker: Worker<Kept>,
    results: UnboundedSender<(u64, Done)>,
    is_dirty: bool,
}

/// Ends the threads when it is dropped.
struct Handle(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// There is a pair to work for, or the end.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Pairs with tasks, in the order of their turns.
    ready: VecDeque<Arc<Desk>>,
    /// Pairs that have something to make durable, and when: the earliest first.
    dirty: VecDeque<(Instant, Arc<Desk>)>,
    is_over: bool,
}

/// A panic while it was held ends the program anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers {
    /// Starts this many threads.
    ///
    /// # Errors
    /// If the machine has no more threads.
    pub fn start(threads: usize) -> std::io::Result<Self> {
        let workers = Self(Arc::new(Handle(Arc::default())));
        for _ in 0..threads {
            let shared = Arc::clone(&workers.0.0);
            thread::Builder::new().name("hearsay-uplink".into()).spawn(move || shared.run())?;
        }
        Ok(workers)
    }

    /// Work on these histories, and its results.
    pub fn open(&self, histories: Histories) -> (Work, Results) {
        let mut worker = Worker::new(histories.out, histories.within);
        if let Some((ring, entries_max)) = histories.chunks {
            worker = worker.with_cache(ring, entries_max);
        }
        let (results, done) = unbounded_channel();
        let bench = Mutex::new(Some(Bench { worker, results, is_dirty: false }));
        let desk = Arc::new(Desk { tasks: Mutex::default(), bench });
        (Work { desk, workers: self.clone() }, done)
    }
}

impl Work {
    /// Gives a job.
    pub fn give(&self, number: u64, job: Job) {
        self.workers.0.0.give(&self.desk, Task::Job(number, job));
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.workers.0.0.give(&self.desk, Task::Close);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        lock(&self.0.queue).is_over = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn give(&self, desk: &Arc<Desk>, task: Task) {
        let mut tasks = lock(&desk.tasks);
        tasks.waiting.push_back(task);
        if !std::mem::replace(&mut tasks.is_queued, true) {
            self.queue(Arc::clone(desk));
        }
    }

    fn queue(&self, desk: Arc<Desk>) {
        lock(&self.queue).ready.push_back(desk);
        self.changed.notify_one();
    }

    /// One thread: one task of a pair, then the next pair.
    fn run(&self) {
        while let Some(desk) = self.next() {
            let task = lock(&desk.tasks).waiting.pop_front();
            if let Some(task) = task {
                self.perform(&desk, task);
            }
            let mut tasks = lock(&desk.tasks);
            tasks.is_queued = !tasks.waiting.is_empty();
            if tasks.is_queued {
                self.queue(Arc::clone(&desk));
            }
        }
    }

    /// The pair whose turn it is; `None` at the end, when all is done.
    fn next(&self) -> Option<Arc<Desk>> {
        loop {
            let mut queue = lock(&self.queue);
            let now = Instant::now();
            let due = queue.dirty.iter().take_while(|(at, _)| *at <= now).count();
            let due: Vec<_> = queue.dirty.drain(..due).collect();
            if !due.is_empty() {
                drop(queue);
                due.iter().for_each(|(_, desk)| self.give(desk, Task::Sync));
                continue;
            }
            if let Some(desk) = queue.ready.pop_front() {
                return Some(desk);
            }
            if queue.is_over {
                return None;
            }
            let wait = queue.dirty.front().map(|(at, _)| *at - now);
            match wait {
                Some(wait) => drop(self.changed.wait_timeout(queue, wait)),
                None => drop(self.changed.wait(queue)),
            }
        }
    }

    fn perform(&self, desk: &Arc<Desk>, task: Task) {
        let mut place = lock(&desk.bench);
        let Some(bench) = &mut *place else { return };
        match task {
            Task::Job(number, job) => {
                let changes = matches!(job, Job::Pack { .. } | Job::Unpack { .. });
                // If nobody takes results any more, the program is ending.
                let _ = bench.results.send((number, bench.worker.work(job)));
                if changes && !std::mem::replace(&mut bench.is_dirty, true) {
                    let at = Instant::now() + SYNC_EVERY;
                    lock(&self.queue).dirty.push_back((at, Arc::clone(desk)));
                    // Who waits, waits for no longer than that.
                    self.changed.notify_one();
                }
            }
            Task::Sync => bench.sync(),
            Task::Close => {
                bench.is_dirty = true;
                bench.sync();
                // With this, its results end.
                *place = None;
            }
        }
    }
}

impl Bench {
    fn sync(&mut self) {
        if std::mem::take(&mut self.is_dirty) {
            let (out, within) = self.worker.units();
            out.sync();
            within.sync();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Place;

    /// A pair whose results go where those of others go, too.
    fn desk(results: &UnboundedSender<(u64, Done)>) -> Arc<Desk> {
        let histories = Histories::open(&Place::Memory, (1 << 20, 1 << 20), None).unwrap();
        let worker = Worker::new(histories.out, histories.within);
        let bench = Bench { worker, results: results.clone(), is_dirty: false };
        Arc::new(Desk { tasks: Mutex::default(), bench: Mutex::new(Some(bench)) })
    }

    #[test]
    fn pairs_take_turns() {
        let workers = Workers::start(1).unwrap();
        let shared = &workers.0.0;
        let (results, mut done) = unbounded_channel();
        let (busy, other) = (desk(&results), desk(&results));
        // The thread cannot begin before all jobs are given.
        let held = lock(&busy.bench);
        (0..4).for_each(|number| shared.give(&busy, Task::Job(number, Job::Look)));
        (10..12).for_each(|number| shared.give(&other, Task::Job(number, Job::Look)));
        drop(held);
        let order: Vec<_> = (0..6).map(|_| done.blocking_recv().unwrap().0).collect();
        assert_eq!(order, [0, 10, 1, 11, 2, 3]);
    }

    #[test]
    fn jobs_of_a_pair_stay_in_their_order_on_several_threads() {
        let workers = Workers::start(4).unwrap();
        let (results, mut done) = unbounded_channel();
        let desks = [desk(&results), desk(&results), desk(&results)];
        for number in 0..300 {
            workers.0.0.give(&desks[number % 3], Task::Job(number as u64, Job::Look));
        }
        let mut last = [None; 3];
        for _ in 0..300 {
            let (number, _) = done.blocking_recv().unwrap();
            let last = &mut last[number as usize % 3];
            assert!(*last < Some(number), "{number} after {last:?}");
            *last = Some(number);
        }
    }

    #[test]
    fn a_pair_that_is_closed_has_done_all_its_jobs_and_then_its_results_end() {
        let workers = Workers::start(2).unwrap();
        let histories = Histories::open(&Place::Memory, (1 << 20, 1 << 20), None).unwrap();
        let (work, mut results) = workers.open(histories);
        (0..50).for_each(|number| work.give(number, Job::Look));
        drop((work, workers));
        let done: Vec<_> = std::iter::from_fn(|| results.blocking_recv()).map(|it| it.0).collect();
        assert_eq!(done, (0..50).collect::<Vec<_>>());
    }
}
