//! One helper at a time has rules.
//!
//! When a daemon is killed and started again, the old helper may still be removing what the new one has just set. The
//! lock is on a file that only the daemon's user can open, so nobody else can hold it and make the daemon wait. It ends
//! with the process that has it. The file stays: a helper that waits for it has it open, and would get the lock of a
//! file that the next one no longer finds.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};

/// How long the other helper may take. One that outlasts this belongs to a daemon that runs.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The lock, until it is dropped.
#[derive(Debug, Default)]
pub struct Lock {
    /// Not yet tried.
    untried: Option<File>,
    held: Option<File>,
}

impl Lock {
    /// Opens the file, and makes it if need be. Nothing is locked yet.
    ///
    /// # Errors
    /// As of the kernel; and if it is a link or no file, or if other users can open it.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Whatever is there, nothing is followed or waited for.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(path)?;
        let it = file.metadata()?;
        let is_ours = it.uid() == rustix::process::geteuid().as_raw();
        if !it.is_file() || !is_ours || it.mode() & 0o077 != 0 {
            return Err(io::Error::other("other users can open it"));
        }
        Ok(Self { untried: Some(file), held: None })
    }

    /// Takes the lock, if it was not tried yet; after a while, goes on without it, for good.
    pub fn take(&mut self) {
        self.take_within(PATIENCE);
    }

    fn take_within(&mut self, patience: Duration) {
        let Some(file) = self.untried.take() else { return };
        let begun = Instant::now();
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if begun.elapsed() > patience {
                return;
            }
            sleep(LOOK_EVERY);
        }
        self.held = Some(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn one_at_a_time_has_it_and_who_failed_does_not_wait_again() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("control.sock.lock");
        let mut first = Lock::open(&path).expect("a file");
        first.take();
        assert!(first.held.is_some());
        assert_eq!(std::fs::metadata(&path).expect("it stays").mode() & 0o777, 0o600);
        let mut second = Lock::open(&path).expect("the same file");
        second.take_within(Duration::ZERO);
        assert!(second.held.is_none() && second.untried.is_none());
        let mut third = Lock::open(&path).expect("the same file");
        let waiting = std::thread::spawn(move || {
            third.take();
            third.held.is_some()
        });
        drop(first);
        assert!(waiting.join().expect("no panic"), "the first has ended");
        second.take();
        assert!(second.held.is_none(), "it was tried once");
    }

    #[test]
    fn a_file_that_others_can_open_or_a_link_is_no_lock() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name| dir.path().join(name);
        let (ours, open, link, fifo) = (path("ours"), path("open"), path("link"), path("fifo"));
        Lock::open(&ours).expect("a file");
        std::fs::write(&open, "").expect("a file");
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o604)).expect("ours");
        symlink(&ours, &link).expect("a link");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
        for path in [open, link, fifo, dir.path().to_owned(), path("none/file")] {
            assert!(Lock::open(&path).is_err(), "{}", path.display());
        }
    }
}
