//! Telling a peer of an object, and sending it the units that it asks for.

use crate::exchange::Source;
use crate::input::ExchangeId;
use bytes::Bytes;
use std::collections::VecDeque;
use wire::RecordId;
use wire::peer::Want;
use wire::{ChunkId, Instant, NodeId};

/// A peer is told of the manifest so far ahead of the units that it asks for, in bytes of the object.
pub const COVER: u64 = 512 * 1024;
/// Units that one request may have wanted and not got, at most: the windows of many readers behind a peer.
pub const WANTS_MAX: usize = 2048;
/// And all requests of a peer together.
pub const PEER_WANTS_MAX: usize = 16 * 1024;
/// So many bytes of units follow the first segment unasked, so that small objects take one round trip
/// (protocol: Pull).
pub const UNASKED_BYTES: u64 = 16 * 1024;

/// How far a peer is with an object.
#[derive(Debug)]
pub struct Supplying {
    pub source: Source,
    pub record: RecordId,
    /// Who it is.
    pub peer: NodeId,
    /// The next segment of the manifest it is to get.
    pub segment: u32,
    /// It has the whole manifest.
    pub told: bool,
    /// Segments that begin before this offset are welcome.
    pub cover: u64,
    /// When it last wanted or welcomed something.
    pub moved: Instant,
    /// What it wants, in the order it asked.
    pub wants: VecDeque<Want>,
    /// Units that the disk gave for it, and that are not sent yet.
    pub ahead: VecDeque<(ChunkId, Bytes)>,
    /// It gets what follows as bytes, by this exchange.
    pub flow: Option<ExchangeId>,
    /// Holes in the object cannot be filled.
    pub unfillable: bool,
    /// The disk was asked for a unit.
    pub reading: bool,
    /// The catalogue was asked for a segment.
    pub turning: bool,
}

impl Supplying {
    /// Where the peer is, as far as is known: the units before that it holds, or has asked for.
    pub fn position(&self) -> u64 {
        self.cover.saturating_sub(COVER)
    }
}
