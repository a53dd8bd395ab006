//! How a memory budget is divided, and what is taken of it.

use super::assemble::VERSIONS_MAX;
use wire::peer::ChunkHead;

/// Bytes that are taken now, and the most that ever were.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    /// Now.
    pub now: usize,
    /// At most.
    pub peak: usize,
}

impl Meter {
    /// So many are taken from now on.
    pub fn set(&mut self, bytes: usize) {
        self.now = bytes;
        self.peak = self.peak.max(bytes);
    }

    /// What took `before` bytes takes `after` now.
    pub fn change(&mut self, before: usize, after: usize) {
        self.set((self.now + after).saturating_sub(before));
    }
}

/// What may be held at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Flows.
    pub flows: usize,
    /// Chunks that are being assembled, and as many names of which something is remembered.
    pub chunks: usize,
    /// Bytes that the tables take, full or empty.
    pub tables_bytes: usize,
    /// Bytes that flows may take beyond: what waits for a head, and where heads were.
    pub flows_bytes: usize,
    /// Bytes that chunks may take beyond.
    pub chunks_bytes: usize,
}

/// A flow for so many bytes of budget.
const PER_FLOW: usize = 16 << 10;
/// A chunk for so many: half a unit of the default profile, and more than what is heard of one before
/// it is known to be missed.
const PER_CHUNK: usize = 8 << 10;
/// Flows have one part in so many; chunks have the rest.
const FLOWS_PART: usize = 6;
/// What one segment may bring before room is made for it: room for the longest unit in each version of a
/// chunk, and what a flow notes beside its bytes.
const SEGMENT: usize = VERSIONS_MAX * ChunkHead::TOTAL_MAX as usize + (32 << 10);

impl Limits {
    /// Of a budget in bytes. `flow`, `chunk` and `name` say what a table for so many entries takes.
    pub fn new(
        budget: usize,
        flow: fn(usize) -> usize,
        chunk: fn(usize) -> usize,
        name: fn(usize) -> usize,
    ) -> Self {
        let flows = budget / PER_FLOW;
        let chunks = budget / PER_CHUNK;
        let tables_bytes = flow(flows) + chunk(chunks) + name(chunks);
        let rest = budget.saturating_sub(tables_bytes + SEGMENT);
        let flows_bytes = rest / FLOWS_PART;
        Self { flows, chunks, tables_bytes, flows_bytes, chunks_bytes: rest - flows_bytes }
    }
}
