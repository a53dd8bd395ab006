//! Errors of the store: whether anything changed, and whether to try again.

use std::io;

use crate::segment::SegmentId;
use wire::counters::Reason as _;

wire::reasons! {
    /// What a segment holds instead of a unit.
    pub enum NotThere {
        /// No unit begins there.
        NoUnit = "no_unit",
        /// The unit there has another length.
        OtherLength = "other_length",
        /// The segment ends inside it.
        SegmentEnds = "segment_ends",
        /// The segment is gone.
        SegmentGone = "segment_gone",
    }
}

/// Why an operation of the store failed.
///
/// Unless a variant says otherwise, the data stored before is unchanged and can be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process has this store open. Nothing changed; try again when it has ended.
    #[error("the store at {path} is in use by another process: stop that one first")]
    InUse {
        /// The store's directory.
        path: String,
    },

    /// The directory holds a store of another version, or no store at all. Nothing changed; trying
    /// again does not help.
    #[error("not a store this version can read (its `hearsay-store` says {found:?}): remove it")]
    Version {
        /// The first bytes of the version file.
        found: String,
    },

    /// The budget is used up. Nothing changed; try again after a segment has been reclaimed.
    #[error("the store's budget is used up: {bytes} more bytes do not fit")]
    Full {
        /// Bytes that were to be added.
        bytes: u64,
    },

    /// The file system is full, read-only or failing. No readable data was lost; the operation may
    /// be tried again.
    #[error("cannot {what}: {source}")]
    Io {
        /// The failed action, to follow "cannot …".
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },

    /// No such unit is stored there: the segment was reclaimed, or the index is wrong. Nothing
    /// changed; trying again does not help, so remove the unit from the index.
    #[error("segment {segment} does not hold this unit at {offset}: {}", .why.clause())]
    Missing {
        /// The segment's number.
        segment: u32,
        /// Bytes from the segment's start.
        offset: u32,
        /// The contradiction that was found there.
        why: NotThere,
    },

    /// A unit, a run of units or a row exceeds a limit. Nothing changed; it cannot be stored or
    /// read in this form.
    #[error("{bytes} bytes are more than the limit of {bytes_max}")]
    TooLong {
        /// The requested length in bytes.
        bytes: u64,
        /// The limit in bytes.
        bytes_max: u64,
    },

    /// No number is left for another segment, or for another unit of a history. Nothing changed; a
    /// new store is needed.
    #[error("no number is left for another segment or unit: start a new store")]
    Exhausted,

    /// Units were to be appended to a history at a position that is not its end. Nothing changed;
    /// trying again does not help.
    #[error("the history ends at position {end}, so units cannot be appended at {first}")]
    NotAtEnd {
        /// The position of the first unit.
        first: u64,
        /// The history's end.
        end: u64,
    },

    /// The catalogue failed and made none of the call's changes. After an I/O error the catalogue
    /// must be opened again.
    #[error("the catalogue failed: {0}")]
    Catalogue(#[source] Box<redb::Error>),
}

impl Error {
    /// Whether the same call may succeed later without a repair.
    pub fn may_retry(&self) -> bool {
        matches!(self, Self::InUse { .. } | Self::Full { .. } | Self::Io { .. })
    }

    /// Whether the file system is full, or a quota is used up.
    pub fn is_no_space(&self) -> bool {
        let Self::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    pub(crate) fn missing(segment: SegmentId, offset: u32, why: NotThere) -> Self {
        Self::Missing { segment: segment.0, offset, why }
    }
}

/// Adds the action to an error: `file.sync().doing("make a segment durable")?`.
pub(crate) trait Doing<T> {
    fn doing(self, what: &'static str) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::Io { what, source })
    }
}
