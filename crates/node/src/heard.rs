//! What the listener has found in frames for others, for `object` to take.

use crate::chunks::Flight;
use crate::input::{ExchangeId, FetchId};
use bytes::Bytes;
use wire::ChunkId;
use wire::peer::Want;

/// So many segments at a time. What they bring and where it goes has to stay in a first cache: with 64 it
/// was slower.
pub const SEGMENTS_AT_ONCE: usize = 16;

/// See the module.
pub enum Heard {
    /// A unit that was on its way was heard before it came, and is true.
    Unit(ChunkId, Flight, Bytes),
    /// Units that nobody asked for are to be written side by side.
    Append(Vec<(ChunkId, Bytes)>),
    /// So many bytes of a unit do not come from a peer, as these readers count it: they were heard.
    NotFromPeer {
        /// Who counts it.
        readers: Vec<ExchangeId>,
        /// How many bytes.
        bytes: u64,
        /// How many of them mended what a peer sent.
        mended: u64,
    },
    /// The peer that gives this transfer is to be asked for this once more.
    Want(FetchId, Want),
    /// Readers of this transfer need not wait any more for the next segment of its manifest.
    Ready(FetchId),
}
