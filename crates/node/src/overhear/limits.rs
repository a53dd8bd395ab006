//! How a memory budget is divided, and how much of it is in use.

use super::assemble::VERSIONS_MAX;
use wire::peer::ChunkHead;

/// Bytes in use now, and the most that ever were in use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    /// Bytes in use now.
    pub now: usize,
    /// The highest value of `now` so far.
    pub peak: usize,
}

impl Meter {
    /// Sets the number of bytes in use.
    pub fn set(&mut self, bytes: usize) {
        self.now = bytes;
        self.peak = self.peak.max(bytes);
    }

    /// An item that used `before` bytes now uses `after`.
    pub fn change(&mut self, before: usize, after: usize) {
        self.set((self.now + after).saturating_sub(before));
    }
}

/// The most that the engine may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of flows.
    pub flows: usize,
    /// The number of chunks being assembled; also the number of names in the table of names.
    pub chunks: usize,
    /// The memory of the tables in bytes, full or empty.
    pub tables_bytes: usize,
    /// Memory of flows outside their table, in bytes: payload that waits for a head, and the flows' frames.
    pub flows_bytes: usize,
    /// Memory of chunks outside their table, in bytes.
    pub chunks_bytes: usize,
}

/// Bytes of budget for each flow.
const PER_FLOW: usize = 16 << 10;
/// Bytes of budget for each chunk: half a unit of the default profile, which is more than is usually heard of a
/// chunk that stays incomplete.
const PER_CHUNK: usize = 8 << 10;
/// Flows get one part in this many of the budget; chunks get the rest.
const FLOWS_PART: usize = 6;
/// Memory that one segment may add before the engine evicts anything for it: a buffer for the longest unit in each
/// version of a chunk, and what the flow stores beside payload.
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
