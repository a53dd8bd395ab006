//! Gives up the rights that a process does not need, for good.
//!
//! *What this is:* [`Limits`] says what a process may still do; [`Limits::impose`] makes the kernel hold it to that:
//! capabilities (capabilities(7)), no new privileges (prctl(2)), a list of denied system calls (seccomp(2)), and the
//! parts of the file system that it may read and write (landlock(7)). [`InForce`] is what the kernel accepted. *Who
//! calls it:* the daemon, its helper ([`crate::helper`]) and the uplink's far end, each once, after all that takes
//! rights is open, and before a second thread starts: the limits are the calling thread's, and those of threads and
//! processes that it starts later. *What it never does:* fail. What the kernel lacks is skipped, and said. *Where to
//! start:* [`Limits::impose`].

mod capabilities;
mod landlock;
mod seccomp;

use std::path::PathBuf;

use rustix::thread::{CapabilitySet, set_no_new_privs};
use serde::{Deserialize, Serialize};

pub use capabilities::{NETWORK, has_any, may_bind_without};

/// What a process may still do.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The capabilities that it keeps, of those that it has.
    pub keeps: CapabilitySet,
    /// Where it may read and write.
    pub places: Places,
}

/// Parts of the file system. A directory stands for all that is in it; what does not exist is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// What may be read.
    pub read: Vec<PathBuf>,
    /// What may be read and executed. If it is empty, no program may be started.
    pub execute: Vec<PathBuf>,
    /// Directories whose files may be read, written, created, renamed and removed.
    pub write: Vec<PathBuf>,
    /// Directories in which sockets may be created, and anything but directories removed.
    pub sockets: Vec<PathBuf>,
}

/// The limits that the kernel holds a process to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    /// The capabilities that are left, by the names of capabilities(7).
    pub capabilities: Vec<String>,
    /// Whether no capability but these can come back by executing a program: the bounding set is as small.
    pub bounding: bool,
    /// Whether executing a program gains no privileges.
    pub no_new_privileges: bool,
    /// Whether system calls are filtered.
    pub seccomp: bool,
    /// Whether access to files is limited.
    pub landlock: bool,
    /// What was skipped, and why; a sentence each.
    pub skipped: Vec<String>,
}

impl InForce {
    /// Whether nothing was skipped.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.skipped.is_empty()
    }
}

impl Limits {
    /// Puts the limits in force, for the calling thread and all that it starts from here on.
    #[must_use]
    pub fn impose(&self) -> InForce {
        let mut in_force = InForce::default();
        capabilities::keep(self.keeps, &mut in_force);
        // First: without capabilities, landlock and seccomp need it.
        match set_no_new_privs(true) {
            Ok(()) => in_force.no_new_privileges = true,
            Err(error) => in_force.skip(format!("new privileges cannot be ruled out: {error}")),
        }
        landlock::limit(&self.places, &mut in_force);
        let may_execute = !self.places.execute.is_empty();
        seccomp::deny(may_execute, &mut in_force);
        in_force
    }
}

impl InForce {
    fn skip(&mut self, sentence: String) {
        self.skipped.push(sentence);
    }
}
