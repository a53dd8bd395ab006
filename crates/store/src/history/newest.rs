//! The newest block's file, the only one that is written to.
//!
//! *What this is:* it knows which of the file's bytes are durable, and whether the file may have
//! bytes after its end that must not be there. *What it never does:* know of records or positions.

use std::io::IoSlice;
use std::sync::Arc;

use crate::error::{Doing, Error};
use crate::files::{File, write_again};

/// Most units in one write: a unit needs two buffers, and the system accepts 1,024.
pub(super) const WRITE_UNITS_MAX: usize = 512;
/// Most bytes in one write, because enciphered units are copies in memory.
pub(super) const WRITE_BYTES_MAX: u64 = 1 << 20;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Newest {
    file: Arc<dyn File>,
    /// The offset of the first byte that may not be durable.
    synced: u64,
    is_dirty: bool,
    /// Whether the last sync failed.
    has_failed: bool,
    /// Whether there may be bytes after the end: of units that were forgotten, or of a failed
    /// write.
    has_tail: bool,
}

impl Newest {
    /// A file without durable bytes.
    pub fn created(file: Arc<dyn File>) -> Self {
        Self { file, synced: 0, is_dirty: true, has_failed: false, has_tail: false }
    }

    /// A file that should have this length in bytes, as a start or a truncation finds it.
    pub fn found(file: Arc<dyn File>, bytes: u64) -> Result<Self, Error> {
        let has_tail = file.len().doing("get the length of a block of a history")? != bytes;
        Ok(Self { has_tail, ..Self::created(file) })
    }

    pub fn file(&self) -> &dyn File {
        &*self.file
    }

    /// Notes that there are bytes after the end, for the next call to [`Newest::cut`].
    pub fn expect_tail(&mut self) {
        self.has_tail = true;
    }

    /// Removes all bytes after the end, durably. Only then may other bytes be written there:
    /// otherwise a power cut could leave forgotten units after them.
    pub fn cut(&mut self, end: u64) -> Result<(), Error> {
        if self.has_tail {
            self.file.set_len(end).doing("truncate a block of a history")?;
            (self.is_dirty, self.synced) = (true, self.synced.min(end));
            self.sync(end)?;
            self.has_tail = false;
        }
        Ok(())
    }

    /// Writes at the end. After an error, some of the bytes may be there.
    pub fn write<'a>(
        &mut self,
        end: u64,
        parts: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(), Error> {
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let mut parts: Vec<_> = parts.map(IoSlice::new).collect();
        self.is_dirty = true;
        let written = self.file.write_at(end, &mut parts);
        self.has_tail |= written.is_err();
        written.doing("append to a history")
    }

    /// Makes the file durable up to `end`, its length.
    pub fn sync(&mut self, end: u64) -> Result<(), Error> {
        if !self.is_dirty {
            return Ok(());
        }
        if self.has_failed {
            write_again(&*self.file, self.synced)
                .doing("write the unsynced bytes of a history again")?;
        }
        let synced = self.file.sync();
        self.has_failed = synced.is_err();
        synced.doing("make a history durable")?;
        (self.is_dirty, self.synced) = (false, end);
        Ok(())
    }
}
