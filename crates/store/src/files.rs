//! The files that the store stands on, as a trait with a directory and a memory behind it.
//!
//! *What this is:* the dozen calls that the log and the catalogue make of a file system.
//! *Who calls it:* `log.rs`, `recover.rs`, `reader.rs`, `catalogue.rs`. A test puts a recorder or a
//! failing disk in its place. *What it never does:* cache, retry, or hide an error.
//!
//! *What survives a crash:* what is written survives a power cut once [`File::sync`] has returned;
//! that a file exists, is gone or has another name, once [`Files::sync_names`] has.

mod disk;
mod memory;
mod overlay;
mod place;

use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::sync::Arc;

pub use disk::Disk;
pub use memory::Memory;
pub(crate) use overlay::Overlay;
pub use place::{Unfit, check_place};

/// A flat directory of files.
pub trait Files: Send + Sync + Debug {
    /// The names of all files, in no particular order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Makes an empty file; an error if one of this name exists.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file, for reading only where writing is not allowed.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Takes a name away. Who has the file open can go on reading it.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Gives a file another name, in place of whatever had it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Makes creations, removals and renamings durable.
    fn sync_names(&self) -> io::Result<()>;
}

/// An open file. Offsets and lengths are in bytes.
pub trait File: Send + Sync + Debug {
    /// Its length.
    fn len(&self) -> io::Result<u64>;

    /// Whether it is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `out` from `offset` on; returns how much there was before the file's end.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;

    /// As [`File::read_at`], but `None` at once where it would have to wait for the device.
    fn try_read_at(&self, offset: u64, out: &mut [u8]) -> Option<io::Result<usize>> {
        let _ = (offset, out);
        None
    }

    /// Writes all the parts one behind the other from `offset` on, growing the file as needed.
    /// After an error any part of them may have been written.
    fn write_at(&self, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()>;

    /// Cuts the file, or lets it grow by zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes its bytes and its length durable.
    fn sync(&self) -> io::Result<()>;
}

/// Reads exactly `length` bytes at `offset`; `None` if the file ends before.
pub(crate) fn read_exact(
    file: &dyn File,
    offset: u64,
    length: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut out = vec![0; length];
    let got = file.read_at(offset, &mut out)?;
    Ok((got == length).then_some(out))
}
