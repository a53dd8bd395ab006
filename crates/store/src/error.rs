//! What can go wrong, whether anything changed by then, and whether to try again.

use std::io;

use crate::segment::SegmentId;

/// Why the store could not do what it was asked.
///
/// Unless a variant says otherwise, what was stored before is as it was, and can be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has this store open. Nothing changed; try again when it has ended.
    #[error("the store at {path} is in use by another process: stop that one first")]
    InUse {
        /// The store's directory.
        path: String,
    },

    /// The directory holds a store of another layout, or no store at all. Nothing changed;
    /// trying again does not help.
    #[error("not a store this version can read (its `hearsay-store` says {found:?}): remove it")]
    Version {
        /// The first bytes of the version file.
        found: String,
    },

    /// The budget leaves no room. Nothing changed; try again once a segment has been reclaimed.
    #[error("the store's budget is used up: {bytes} more bytes do not fit")]
    Full {
        /// Bytes that were to be added.
        bytes: u64,
    },

    /// The file system is full, read-only or failing. Nothing that was readable was lost; the
    /// operation may be tried again.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was being done, as the rest of "cannot …".
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },

    /// Nothing of this kind rests there: the segment was reclaimed, or the index is mistaken.
    /// Nothing changed; trying again does not help, so take the unit out of the index.
    #[error("segment {segment} does not hold this unit at {offset}: {why}")]
    Missing {
        /// The segment's number.
        segment: u32,
        /// Bytes from the segment's start.
        offset: u32,
        /// What was found instead.
        why: &'static str,
    },

    /// A unit, a run of units or a row is longer than the limit. Nothing changed; it cannot be
    /// stored or read in this form.
    #[error("{bytes} bytes are more than the limit of {bytes_max}")]
    TooLong {
        /// Bytes asked for.
        bytes: u64,
        /// The limit in bytes.
        bytes_max: u64,
    },

    /// All segment numbers are used. Nothing changed; the store must be begun anew.
    #[error("no segment number is left: begin the store anew")]
    Exhausted,

    /// The catalogue failed; the changes of the call are not in it. After an I/O error it refuses
    /// further work until it is opened again.
    #[error("the catalogue failed: {0}")]
    Catalogue(#[source] Box<redb::Error>),
}

impl Error {
    /// Whether the same call may succeed later without any repair.
    pub fn may_retry(&self) -> bool {
        matches!(self, Self::InUse { .. } | Self::Full { .. } | Self::Io { .. })
    }

    /// Whether the file system ran out of room, quota or permission to grow.
    pub fn is_no_space(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    pub(crate) fn missing(segment: SegmentId, offset: u32, why: &'static str) -> Self {
        Self::Missing { segment: segment.0, offset, why }
    }
}

/// Names the act in an error: `file.sync().or("make a segment durable")?`.
pub(crate) trait Doing<T> {
    fn doing(self, what: &'static str) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::Io { what, source })
    }
}
