//! A directory of the file system, locked against a second daemon.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FlockOperation;
use rustix::io::{Errno, ReadWriteFlags};

use super::{File, Files};
use crate::error::{Doing, Error};

/// The file that is locked while a store is open. It holds nothing.
const LOCK: &str = "lock";

/// A store's directory, locked for as long as this lives.
#[derive(Debug)]
pub struct Disk {
    root: PathBuf,
    /// Open for its lock only; the system lets go of it however the process ends.
    lock: Option<fs::File>,
}

impl Disk {
    /// Makes the directory if need be, and locks it.
    ///
    /// A directory that cannot be written to is opened for reading, without a lock.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process, or another `Disk` of this one, has it;
    /// [`Error::Io`] if it can be neither made nor opened.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, Error> {
        let root = root.into();
        if !root.is_dir() {
            fs::create_dir_all(&root).doing("make the store's directory")?;
        }
        let lock = lock(&root)?;
        Ok(Self { root, lock })
    }

    /// Whether nothing can be written there.
    pub fn is_read_only(&self) -> bool {
        self.lock.is_none()
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }
}

fn lock(root: &Path) -> Result<Option<fs::File>, Error> {
    let opened =
        fs::OpenOptions::new().write(true).create(true).truncate(false).open(root.join(LOCK));
    let file = match opened {
        Err(error) if is_read_only(&error) => return Ok(None),
        opened => opened.doing("open the store's lock file")?,
    };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Err(Error::InUse { path: root.display().to_string() }),
        Err(errno) => Err(errno.into()).doing("lock the store"),
    }
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

impl Files for Disk {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            // A name that is not text is not ours.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(self.root.join(name))?;
        Ok(Arc::new(DiskFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let path = self.root.join(name);
        let file = match fs::OpenOptions::new().read(true).write(true).open(&path) {
            Err(error) if is_read_only(&error) => fs::File::open(&path)?,
            opened => opened?,
        };
        Ok(Arc::new(DiskFile(file)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.root.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.root.join(from), self.root.join(to))
    }

    fn sync_names(&self) -> io::Result<()> {
        fs::File::open(&self.root)?.sync_all()
    }
}

#[derive(Debug)]
struct DiskFile(fs::File);

impl File for DiskFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < out.len() {
            match self.0.read_at(&mut out[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(got) => done += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn try_read_at(&self, offset: u64, out: &mut [u8]) -> Option<io::Result<usize>> {
        let length = out.len();
        let mut parts = [IoSliceMut::new(out)];
        match rustix::io::preadv2(&self.0, &mut parts, offset, ReadWriteFlags::NOWAIT) {
            // Less than asked: the rest is not in memory, or the file ends. Reading tells which.
            Ok(got) if got < length => None,
            Ok(got) => Some(Ok(got)),
            // A failing device, too, shows itself to whoever reads the slow way.
            Err(_) => None,
        }
    }

    fn write_at(&self, mut offset: u64, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            match rustix::io::pwritev(&self.0, parts, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    offset += written as u64;
                    IoSlice::advance_slices(&mut parts, written);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
