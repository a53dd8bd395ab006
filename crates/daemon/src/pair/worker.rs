//! The thread that packs, unpacks and reads old units. It is a thread of its own, since one message may take
//! tens of milliseconds, and a disk longer: clients and origins must not wait for either.

use super::history::Histories;
use node::uplink::{Done, Job, Worker};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What has crossed is durable after this long.
const SYNC_EVERY: Duration = Duration::from_secs(5);

/// Gives jobs to the thread.
#[derive(Clone)]
pub struct Work(mpsc::Sender<(u64, Job)>);

impl Work {
    /// Starts the thread; it ends when no giver of jobs is left, with all durable.
    ///
    /// # Errors
    /// If the machine has no more threads.
    pub fn start(histories: Histories) -> std::io::Result<(Self, UnboundedReceiver<(u64, Done)>)> {
        let (jobs, taken) = mpsc::channel();
        let (results, done) = unbounded_channel();
        thread::Builder::new()
            .name("hearsay-uplink".into())
            .spawn(move || run(histories, &taken, &results))?;
        Ok((Self(jobs), done))
    }

    /// Gives a job.
    pub fn give(&self, number: u64, job: Job) {
        // The thread ends only when this is dropped.
        let _ = self.0.send((number, job));
    }
}

fn run(
    histories: Histories,
    jobs: &mpsc::Receiver<(u64, Job)>,
    results: &UnboundedSender<(u64, Done)>,
) {
    let mut worker = Worker::new(histories.out, histories.within);
    if let Some((ring, entries_max)) = histories.chunks {
        worker = worker.with_cache(ring, entries_max);
    }
    let mut is_dirty = false;
    loop {
        match jobs.recv_timeout(SYNC_EVERY) {
            Ok((number, job)) => {
                is_dirty |= matches!(job, Job::Pack { .. } | Job::Unpack { .. });
                // If nobody takes results any more, the program is ending.
                let _ = results.send((number, worker.work(job)));
            }
            Err(RecvTimeoutError::Timeout) if !is_dirty => {}
            Err(end) => {
                let (out, within) = worker.units();
                out.sync();
                within.sync();
                is_dirty = false;
                if end == RecvTimeoutError::Disconnected {
                    return;
                }
            }
        }
    }
}
