//! One helper at a time has rules in a network namespace.
//!
//! When a daemon is killed and started again, the old helper may still be removing what the new one has just set. The
//! lock is on the namespace's own file, where it ends with the process that has it.

use std::fs::File;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

/// The namespace of this thread.
const NAMESPACE: &str = "/proc/thread-self/ns/net";
/// How long the other helper may take. One that outlasts this belongs to a daemon that runs.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The lock, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock; after a while, goes on without it: `None`.
    pub fn take() -> Option<Self> {
        let file = File::open(NAMESPACE).ok()?;
        let begun = Instant::now();
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if begun.elapsed() > PATIENCE {
                return None;
            }
            sleep(LOOK_EVERY);
        }
        Some(Self { _file: file })
    }
}
