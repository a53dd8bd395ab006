//! A peer that gets an object's manifest and the units that it wants.

use crate::exchanges::exchange::Source;
use crate::hasher::Set;
use crate::input::ExchangeId;
use crate::request::{MANIFEST_CREDIT, PeerHops};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use wire::peer::Want;
use wire::{ChunkId, Instant, NodeId, RecordId};

/// One request may have at most this many unanswered wants: the windows of many readers behind a
/// peer.
pub const WANTS_MAX: usize = 2048;
/// The same limit for all requests of a peer together.
pub const PEER_WANTS_MAX: usize = 16 * 1024;
/// One peer may have at most this many requests under way.
pub const REQUESTS_MAX: usize = 128;

/// The memory that a want takes in bytes, without its ranges: itself, and a unit in flight.
const WANT_COST: u64 = 256;

/// A peer's progress through an object.
#[derive(Debug)]
pub struct PeerReader {
    pub source: Source,
    pub record: RecordId,
    /// The peer that reads.
    pub peer: NodeId,
    /// The next segment of the manifest to send.
    pub segment: u32,
    /// The whole manifest has been sent.
    pub told: bool,
    /// Segments that begin before this offset may be sent.
    pub manifest_credit: u64,
    /// When the peer last sent a want or credit.
    pub moved: Instant,
    /// Its wants, oldest first.
    pub wants: Wants,
    /// Wanted units that no segment in memory lists: only the peer states their length.
    pub unlisted: Set<ChunkId>,
    /// The segment that listed the unit wanted last.
    pub claimed: u32,
    /// Units read from the disk and not sent yet.
    pub ahead: VecDeque<(ChunkId, Bytes)>,
    /// Bytes of units that are being read from the disk.
    pub reserved: u64,
    /// The exchange that sends it loose bytes, if there is one.
    pub flow: Option<ExchangeId>,
    /// Holes in the object cannot be filled.
    pub unfillable: bool,
    /// A unit is being read from the disk.
    pub reading: bool,
    /// A segment is being read from the catalogue.
    pub reading_segment: bool,
}

impl PeerReader {
    /// A peer that has wanted nothing yet.
    pub fn new(
        peer: NodeId,
        peer_hops: &PeerHops,
        source: Source,
        record: RecordId,
        now: Instant,
    ) -> Self {
        Self {
            source,
            record,
            peer,
            segment: peer_hops.resume.map_or(0, |resume| resume.segment),
            told: false,
            manifest_credit: peer_hops.manifest_credit,
            moved: now,
            wants: Wants::default(),
            unlisted: Set::default(),
            claimed: 0,
            ahead: VecDeque::new(),
            reserved: 0,
            flow: None,
            unfillable: false,
            reading: false,
            reading_segment: false,
        }
    }

    /// Drops wants of units that the peer has got elsewhere; returns their number. Units already
    /// requested upstream still arrive, and are kept.
    pub fn unwant(&mut self, names: &[ChunkId], now: Instant) -> usize {
        let before = self.wants.len();
        let names: Set<&ChunkId> = names.iter().collect();
        self.wants.retain(|want| !names.contains(&want.name));
        self.ahead.retain(|(name, _)| !names.contains(name));
        self.moved = now;
        before - self.wants.len()
    }

    /// The peer's approximate position: it holds or wants the units before it.
    pub fn position(&self) -> u64 {
        self.manifest_credit.saturating_sub(MANIFEST_CREDIT)
    }

    /// Memory of units read or being read for it, in bytes.
    pub fn read_bytes(&self) -> u64 {
        self.reserved + self.ahead.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>()
    }
}

/// The units that a peer wants for one request, oldest first, and their memory.
#[derive(Debug, Default)]
pub struct Wants {
    queue: VecDeque<Want>,
    bytes: u64,
}

impl Wants {
    /// The memory that a want takes in bytes: its entry here, and one among the units in flight.
    pub fn cost(want: &Want) -> u64 {
        WANT_COST + (want.missing.len() * size_of::<Range<u32>>()) as u64
    }

    /// The memory of all wants in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends wants.
    pub fn extend(&mut self, wants: impl IntoIterator<Item = Want>) {
        for want in wants {
            self.bytes += Self::cost(&want);
            self.queue.push_back(want);
        }
    }

    /// The oldest want.
    pub fn front(&self) -> Option<&Want> {
        self.queue.front()
    }

    /// Removes the oldest want.
    pub fn pop_front(&mut self) {
        self.bytes -= self.queue.pop_front().map_or(0, |want| Self::cost(&want));
        self.shrink();
    }

    /// Keeps only the wants for which `keep` is true.
    pub fn retain(&mut self, keep: impl Fn(&Want) -> bool) {
        self.queue.retain(keep);
        self.bytes = self.queue.iter().map(Self::cost).sum();
        self.shrink();
    }

    /// All wants, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Want> {
        self.queue.iter()
    }

    /// The number of wants.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether there are no wants.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// A queue that was long once must not keep its memory.
    fn shrink(&mut self) {
        if self.queue.len() < self.queue.capacity() / 4 {
            self.queue.shrink_to(self.queue.capacity() / 2);
        }
    }
}
