//! The file system as the store sees it: a trait, implemented by a directory and by memory.
//!
//! *What this is:* the file operations that the log and the catalogue need. *Who calls it:*
//! `log.rs`, `recover.rs`, `reader.rs`, `catalogue.rs`. Tests substitute a recorder or a failing
//! disk. *What it never does:* cache, retry, or hide an error.
//!
//! *What survives a crash:* written data survives a power cut once [`File::sync`] has returned; the
//! creation, removal or renaming of a file once [`Files::sync_names`] has returned.

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

/// Bytes read at a time when they have to be written again.
const AGAIN_BYTES: u64 = 256 << 10;

/// A flat directory of files.
pub trait Files: Send + Sync + Debug {
    /// The names of all files, in no particular order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Creates an empty file; an error if one of this name exists.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file; read-only if writing is not allowed.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Removes a file. Open handles of it can still be read.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Renames a file, and replaces any file that has the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Makes creations, removals and renamings durable.
    fn sync_names(&self) -> io::Result<()>;
}

/// An open file. Offsets and lengths are in bytes.
pub trait File: Send + Sync + Debug {
    /// The file's length.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `out` from `offset` on; returns the number of bytes before the end of the file.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;

    /// As [`File::read_at`], but `None` if the call would wait for the device.
    fn try_read_at(&self, offset: u64, out: &mut [u8]) -> Option<io::Result<usize>> {
        let _ = (offset, out);
        None
    }

    /// Writes the parts one after another from `offset` on; the file grows as needed. After an
    /// error, any of the bytes may have been written.
    fn write_at(&self, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()>;

    /// Truncates the file, or extends it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes the file's content and length durable.
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

/// Writes a file's bytes again, from an offset on: after a failed sync the system may consider bytes
/// clean that never reached the disk.
pub(crate) fn write_again(file: &dyn File, from: u64) -> io::Result<()> {
    let end = file.len()?;
    let mut at = from;
    while at < end {
        let length = (end - at).min(AGAIN_BYTES);
        let Some(bytes) = read_exact(file, at, length as usize)? else { break };
        file.write_at(at, &mut [IoSlice::new(&bytes)])?;
        at += length;
    }
    Ok(())
}
