//! A directory of the file system, locked against other processes.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FlockOperation;
use rustix::io::{Errno, ReadWriteFlags};

use super::{File, Files};
use crate::catalogue::{CATALOGUE_FILE, attempts};
use crate::error::{Doing, Error};
use crate::log::VERSION_FILE;
use crate::reader::segment_of;

/// The file that is locked while a store is open. It is empty.
const LOCK: &str = "lock";
/// Only the owner may read: the catalogue has the URLs that clients requested and, with a mesh key,
/// the keys of their units.
const FILE_MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;
/// The permission bits of group and others.
const OTHERS: u32 = 0o077;
/// The sticky bit marks a directory that several users share, such as /tmp.
const STICKY: u32 = 0o1000;
/// Other names that are expected in a store's own directory: files of the daemon, and of a file
/// system.
const BESIDE: [&str; 6] =
    ["identity", "identity.new", "ledger", "ledger.new", "control.sock", "lost+found"];

/// A store's directory, locked while this value exists.
#[derive(Debug)]
pub struct Disk {
    root: PathBuf,
    /// Open only for its lock, which the system releases when the process ends.
    lock: Option<fs::File>,
    was_open_to_others: bool,
}

impl Disk {
    /// Creates the directory if necessary, accessible to its owner only, and locks it. Files of an
    /// earlier version that others may read are restricted to the owner; so is the directory,
    /// unless it has files of others.
    ///
    /// A directory without write permission is opened for reading, without a lock.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process, or another `Disk` of this process, has locked it;
    /// [`Error::Io`] if the directory can be neither created nor opened.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, Error> {
        let root = root.into();
        if !root.is_dir() {
            make(&root).doing("create the store's directory")?;
        }
        let lock = lock(&root)?;
        let was_open_to_others = lock.is_some() && close_to_others(&root);
        Ok(Self { root, lock, was_open_to_others })
    }

    /// Whether the store is read-only.
    pub fn is_read_only(&self) -> bool {
        self.lock.is_none()
    }

    /// Whether others could read one of its files until now.
    pub fn was_open_to_others(&self) -> bool {
        self.was_open_to_others
    }

    /// Without the lock nothing is written, even if the directory has become writable.
    fn may_write(&self) -> io::Result<()> {
        if self.is_read_only() { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.root
    }
}

/// Creates the store's directory. Its parents, such as /var/cache, are created with the usual mode.
fn make(root: &Path) -> io::Result<()> {
    if let Some(parent) = root.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::DirBuilder::new().mode(DIRECTORY_MODE).create(root)
}

/// Restricts the store's files to the owner; returns whether others could read one. A file whose
/// mode cannot be changed is ignored: some file systems have no modes.
fn close_to_others(root: &Path) -> bool {
    let (mut were_files_open, mut is_ours_alone) = (false, true);
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(is_ours);
        is_ours_alone &= is_ours;
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            were_files_open |= take_from_others(&entry.path());
        }
    }
    let is_shared = |root: &Path| fs::metadata(root).is_ok_and(|it| it.mode() & STICKY != 0);
    if is_ours_alone && !is_shared(root) {
        take_from_others(root);
    }
    were_files_open
}

/// Whether a file of this name belongs to the store, or to the daemon beside it.
pub(super) fn is_ours(name: &str) -> bool {
    let is_catalogue =
        name.strip_prefix(CATALOGUE_FILE).is_some_and(|it| ["", ".corrupt"].contains(&it));
    let others = [LOCK, VERSION_FILE, attempts::FILE].into_iter().chain(BESIDE);
    is_catalogue || segment_of(name).is_some() || others.into_iter().any(|it| it == name)
}

/// Whether the store writes to existing files of this name.
pub(super) fn is_written(name: &str) -> bool {
    [LOCK, VERSION_FILE, CATALOGUE_FILE, attempts::FILE].contains(&name)
        || segment_of(name).is_some()
}

fn take_from_others(path: &Path) -> bool {
    let mode = |path| fs::metadata(path).map_or(0, |it| it.mode());
    let before = mode(path);
    let is_open = before & OTHERS != 0;
    is_open
        && fs::set_permissions(path, fs::Permissions::from_mode(before & !OTHERS)).is_ok()
        && mode(path) & OTHERS == 0
}

fn lock(root: &Path) -> Result<Option<fs::File>, Error> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(FILE_MODE);
    let opened = options.open(root.join(LOCK));
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
            // A name that is not UTF-8 is not one of the store's.
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.may_write()?;
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(FILE_MODE);
        let file = options.open(self.root.join(name))?;
        Ok(Arc::new(DiskFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let path = self.root.join(name);
        if self.is_read_only() {
            return Ok(Arc::new(ReadOnly(DiskFile(fs::File::open(&path)?))));
        }
        match fs::OpenOptions::new().read(true).write(true).open(&path) {
            Err(error) if is_read_only(&error) => {
                Ok(Arc::new(ReadOnly(DiskFile(fs::File::open(&path)?))))
            }
            opened => Ok(Arc::new(DiskFile(opened?))),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.may_write()?;
        fs::remove_file(self.root.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.may_write()?;
        fs::rename(self.root.join(from), self.root.join(to))
    }

    fn sync_names(&self) -> io::Result<()> {
        fs::File::open(&self.root)?.sync_all()
    }
}

/// A file opened for reading only: writing to it fails with an error that users understand.
#[derive(Debug)]
struct ReadOnly(DiskFile);

impl File for ReadOnly {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, out)
    }

    fn try_read_at(&self, offset: u64, out: &mut [u8]) -> Option<io::Result<usize>> {
        self.0.try_read_at(offset, out)
    }

    fn write_at(&self, _: u64, _: &mut [IoSlice<'_>]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        // Nothing was written.
        Ok(())
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
            // A short read: the rest is not in memory, or the file ends. A normal read
            // distinguishes these cases.
            Ok(got) if got < length => None,
            Ok(got) => Some(Ok(got)),
            // Device errors are reported by the normal read that follows.
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
