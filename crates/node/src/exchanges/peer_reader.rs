//! Telling a peer of an object, and sending it the units that it asks for.

use crate::exchanges::exchange::Source;
use crate::hasher::Set;
use crate::input::ExchangeId;
use crate::request::{MANIFEST_CREDIT, Trail};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use wire::peer::Want;
use wire::{ChunkId, Instant, NodeId, RecordId};

/// Units that one request may have wanted and not got, at most: the windows of many readers behind a peer.
pub const WANTS_MAX: usize = 2048;
/// And all requests of a peer together.
pub const PEER_WANTS_MAX: usize = 16 * 1024;
/// Requests that one peer may have under way, at most.
pub const REQUESTS_MAX: usize = 128;

/// A want takes this many bytes beside the ranges that it names: itself, and a unit on its way.
const WANT_COST: u64 = 256;

/// How far a peer is with an object.
#[derive(Debug)]
pub struct PeerReader {
    pub source: Source,
    pub record: RecordId,
    /// Who it is.
    pub peer: NodeId,
    /// The next segment of the manifest it is to get.
    pub segment: u32,
    /// It has the whole manifest.
    pub told: bool,
    /// Segments that begin before this offset are welcome.
    pub manifest_credit: u64,
    /// When it last wanted or welcomed something.
    pub moved: Instant,
    /// What it wants, in the order it asked.
    pub wants: Wants,
    /// Those of them that no segment in memory lists: how long they are only the peer says.
    pub unlisted: Set<ChunkId>,
    /// The segment that listed the unit which was wanted last.
    pub claimed: u32,
    /// Units that the disk gave for it, and that are not sent yet.
    pub ahead: VecDeque<(ChunkId, Bytes)>,
    /// Bytes of units that the disk was asked for.
    pub reserved: u64,
    /// It gets what follows as bytes, by this exchange.
    pub flow: Option<ExchangeId>,
    /// Holes in the object cannot be filled.
    pub unfillable: bool,
    /// The disk was asked for a unit.
    pub reading: bool,
    /// The catalogue was asked for a segment.
    pub turning: bool,
}

impl PeerReader {
    /// A peer that asks so has wanted nothing yet.
    pub fn new(
        peer: NodeId,
        trail: &Trail,
        source: Source,
        record: RecordId,
        now: Instant,
    ) -> Self {
        Self {
            source,
            record,
            peer,
            segment: trail.resume.map_or(0, |resume| resume.segment),
            told: false,
            manifest_credit: trail.manifest_credit,
            moved: now,
            wants: Wants::default(),
            unlisted: Set::default(),
            claimed: 0,
            ahead: VecDeque::new(),
            reserved: 0,
            flow: None,
            unfillable: false,
            reading: false,
            turning: false,
        }
    }

    /// It has got units elsewhere: what was not sent yet will not be; answers how many. What was asked of the next
    /// one for them comes all the same, and is kept.
    pub fn unwant(&mut self, names: &[ChunkId], now: Instant) -> usize {
        let before = self.wants.len();
        let names: Set<&ChunkId> = names.iter().collect();
        self.wants.retain(|want| !names.contains(&want.name));
        self.ahead.retain(|(name, _)| !names.contains(name));
        self.moved = now;
        before - self.wants.len()
    }

    /// Where the peer is, as far as is known: the units before that it holds, or has asked for.
    pub fn position(&self) -> u64 {
        self.manifest_credit.saturating_sub(MANIFEST_CREDIT)
    }

    /// Memory for units that were read for it, or are being read, in bytes.
    pub fn read_bytes(&self) -> u64 {
        self.reserved + self.ahead.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>()
    }
}

/// Units that a peer wants of one request, in the order it asked, and what they take of memory.
#[derive(Debug, Default)]
pub struct Wants {
    queue: VecDeque<Want>,
    bytes: u64,
}

impl Wants {
    /// What a want takes, in bytes: its place here, and one among the units on their way to us.
    pub fn cost(want: &Want) -> u64 {
        WANT_COST + (want.missing.len() * size_of::<Range<u32>>()) as u64
    }

    /// What all take, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends what is wanted.
    pub fn extend(&mut self, wants: impl IntoIterator<Item = Want>) {
        for want in wants {
            self.bytes += Self::cost(&want);
            self.queue.push_back(want);
        }
    }

    /// The one that comes next.
    pub fn front(&self) -> Option<&Want> {
        self.queue.front()
    }

    /// The one that came next is done with.
    pub fn pop_front(&mut self) {
        self.bytes -= self.queue.pop_front().map_or(0, |want| Self::cost(&want));
        self.shrink();
    }

    /// Keeps those that this says of.
    pub fn retain(&mut self, keep: impl Fn(&Want) -> bool) {
        self.queue.retain(keep);
        self.bytes = self.queue.iter().map(Self::cost).sum();
        self.shrink();
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Want> {
        self.queue.iter()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// What was long once must not keep its memory.
    fn shrink(&mut self) {
        if self.queue.len() < self.queue.capacity() / 4 {
            self.queue.shrink_to(self.queue.capacity() / 2);
        }
    }
}
