//! Results of overhearing, for `object`.

use crate::chunks::Flight;
use crate::input::{ExchangeId, FetchId};
use bytes::Bytes;
use wire::ChunkId;
use wire::peer::Want;

/// Segments are handled this many at a time. What they contain and where it goes should stay in the
/// first-level cache: 64 were slower.
pub const SEGMENTS_AT_ONCE: usize = 16;

/// A result; see the module.
pub enum Heard {
    /// A unit in flight was overheard before it arrived, and is verified.
    Unit(ChunkId, Flight, Bytes),
    /// Write these units, which were not requested, next to each other.
    Append(Vec<(ChunkId, Bytes)>),
    /// Bytes that readers counted as a peer's were overheard.
    NotFromPeer {
        /// The readers that counted them.
        readers: Vec<ExchangeId>,
        /// How many bytes.
        bytes: u64,
        /// How many of them are in units that a peer completed.
        mended: u64,
    },
    /// Ask this transfer's supplier for this again.
    Want(FetchId, Want),
    /// Readers of this transfer need not wait any more for its next segment.
    Ready(FetchId),
}
