//! What overhearing has come to, in numbers.

/// Counters since the start, and what is held now.
///
/// Every byte of payload is in one of `head_bytes`, `kept_bytes`, `duplicate_bytes`, `unclaimed_bytes`
/// or `waiting_bytes`; every kept byte in one of `used_bytes`, `false_bytes`, `evicted_bytes`,
/// `cancelled_bytes`, `taken_bytes` or `assembling_bytes`. The paper's memory overhead is
/// [`Counters::unused_bytes`], less `duplicate_bytes` where copies that are not kept do not count, as a share of
/// `payload_bytes`; its reconstruction efficiency is
/// `chunks` as a share of what was sent, which only the sender knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments that were handed in.
    pub segments: u64,
    /// Their payload, in bytes.
    pub payload_bytes: u64,
    /// Flows that were begun.
    pub flows: u64,
    /// Flows that made room for others.
    pub flows_evicted: u64,
    /// Heads of chunks: those heard, and those known from a neighbour's.
    pub heads: u64,
    /// Heads that were not heard where they stood, but known from what another flow has there.
    pub heads_guessed: u64,
    /// Bytes of heads.
    pub head_bytes: u64,
    /// Bytes that were put into a chunk.
    pub kept_bytes: u64,
    /// Bytes that were there already, or of chunks that were.
    pub duplicate_bytes: u64,
    /// Bytes that no head ever claimed.
    pub unclaimed_bytes: u64,
    /// Chunks that were complete and true.
    pub chunks: u64,
    /// Their bytes.
    pub used_bytes: u64,
    /// How often a chunk was complete and not true.
    pub falsehoods: u64,
    /// Bytes that were kept and proved to be false, or were told of a chunk in another version than
    /// the true one.
    pub false_bytes: u64,
    /// Chunks that made room for others.
    pub chunks_evicted: u64,
    /// Their bytes.
    pub evicted_bytes: u64,
    /// Chunks that came from elsewhere.
    pub chunks_cancelled: u64,
    /// Bytes that had been heard of them.
    pub cancelled_bytes: u64,
    /// Chunks that were taken half heard.
    pub chunks_taken: u64,
    /// Bytes that were heard of them.
    pub taken_bytes: u64,
    /// Bytes that wait for a head, now.
    pub waiting_bytes: u64,
    /// Bytes of chunks that are not complete, now.
    pub assembling_bytes: u64,
    /// What all of it takes in memory now, in bytes, tables included.
    pub memory_bytes: u64,
    /// No less than the most that it ever took, before room was made too: the most of each part, together.
    pub memory_peak_bytes: u64,
}

impl Counters {
    /// Bytes of payload that did not help to make a chunk.
    #[must_use]
    pub fn unused_bytes(&self) -> u64 {
        self.payload_bytes - self.head_bytes - self.used_bytes - self.taken_bytes
    }
}

/// What came of listening to others' transfers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overhearing {
    /// Units that were overheard whole and entered though nobody here had asked for them.
    pub units: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Units that were overheard whole and did not enter: too many waited for the disk, or it failed.
    pub dropped_units: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Units that were on their way from a peer and were overheard first.
    pub cancelled_units: u64,
    /// Their bytes. A peer that had begun to send one may have gone on.
    pub cancelled_bytes: u64,
    /// Units of which a peer sent only what had not been overheard.
    pub repaired_units: u64,
    /// Bytes of them that had been overheard, and were not sent again.
    pub repaired_bytes: u64,
    /// Units that were half overheard, and whose whole was not what it was called.
    pub false_units: u64,
    /// Memory for parts of units that wait for the rest from a peer, in bytes.
    pub aside_bytes: u64,
    /// Bytes that wait to be written, of units that nobody asked for.
    pub waiting_bytes: u64,
    /// What the listening itself has come to.
    pub heard: Counters,
}
