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
    /// Chunks being assembled; also the number of names about which something is remembered.
    pub chunks: usize,
    /// Bytes that the tables take, full or empty.
    pub tables_bytes: usize,
    /// Bytes that flows may take beyond: what waits for a head, and where heads were.
    pub flows_bytes: usize,
    /// Bytes that chunks may take beyond.
    pub chunks_bytes: usize,
}

/// Bytes of budget for each flow.
const PER_FLOW: usize = 16 << 10;
/// Bytes of budget for each chunk: half a unit of the default profile, and more than is usually heard of a chunk
/// that is missed.
const PER_CHUNK: usize = 8 << 10;
/// Flows get one part in this many of the budget; chunks get the rest.
const FLOWS_PART: usize = 6;
/// What one segment may bring before room is made for it: room for the longest unit in each version of a
/// chunk, and what a flow notes beside its bytes.
const SEGMENT: usize = VERSIONS_MAX * ChunkHead::TOTAL_MAX as usize + (32 << 10);

impl Limits {
    /// The limits for a budget in bytes. `flow`, `chunk` and `name` compute the size of a table from its number of
    /// entries.
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
