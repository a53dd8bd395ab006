//! What is counted while listening.

wire::counters! {
    /// Counters since the start, and gauges of the memory in use.
    ///
    /// Every byte of payload is in exactly one of `head_bytes`, `kept_bytes`, `duplicate_bytes`, `unclaimed_bytes`
    /// or `headless_bytes`. Every kept byte is in exactly one of `used_bytes`, `false_bytes`, `evicted_bytes`,
    /// `chunks_cancelled_bytes`, `taken_bytes` or `assembling_bytes`.
    ///
    /// The paper's memory overhead is [`Counters::unused_bytes`] as a share of `payload_bytes`; where copies that are
    /// not kept do not count, `duplicate_bytes` is subtracted first. Its reconstruction efficiency is `chunks` as a
    /// share of the chunks sent, which only the sender knows.
    #[derive(Copy)]
    pub struct Counters, "listener_" {
        Overhearing () {
            /// TCP segments that the engine was given.
            segments: Counter, Segments;
            /// Payload of the segments that the engine was given.
            payload_bytes: Counter, Bytes;
            /// Flows that were begun.
            flows: Counter, Flows;
            /// Flows that were evicted for others.
            flows_evicted: Counter, Flows;
            /// Heads of chunks: those heard, and those known from a neighbour's.
            heads: Counter, Chunks;
            /// Heads that were not heard where they stood, but known from what another flow has there.
            heads_guessed: Counter, Chunks;
            /// Bytes of heads of chunks.
            head_bytes: Counter, Bytes;
            /// Bytes that were put into a chunk.
            kept_bytes: Counter, Bytes;
            /// Bytes that were there already, or of chunks that were.
            duplicate_bytes: Counter, Bytes;
            /// Bytes that no head ever claimed.
            unclaimed_bytes: Counter, Bytes;
            /// Chunks that were complete and true.
            chunks: Counter, Chunks;
            /// Bytes of chunks that were complete and true.
            used_bytes: Counter, Bytes;
            /// How often a chunk was complete and not true.
            falsehoods: Counter, Chunks;
            /// Bytes that were kept and proved to be false, or that were heard of a chunk in another version
            /// than the true one.
            false_bytes: Counter, Bytes;
            /// Incomplete chunks that were evicted for others.
            chunks_evicted: Counter, Chunks;
            /// Bytes of chunks that were evicted.
            evicted_bytes: Counter, Bytes;
            /// Incomplete chunks that arrived from elsewhere.
            chunks_cancelled: Counter, Chunks;
            /// Bytes that had been heard of chunks that arrived from elsewhere.
            chunks_cancelled_bytes: Counter, Bytes;
            /// Chunks that were taken half heard, so that a peer sends the rest.
            chunks_taken: Counter, Chunks;
            /// Bytes that were heard of chunks that were taken half heard.
            taken_bytes: Counter, Bytes;
            /// Bytes that wait for a head.
            headless_bytes: Gauge, Bytes;
            /// Bytes of chunks that are not complete.
            assembling_bytes: Gauge, Bytes;
        }
        Process ("hearsay_memory_bytes", what, "Memory, by what it is used for.") {
            /// What is half heard, with its tables.
            memory_bytes: Gauge, Bytes, "overhearing";
        }
        Overhearing () {
            /// An upper bound of the memory that listening ever took: the most of each part, added up.
            memory_peak_bytes: Gauge, Bytes;
        }
    }

    /// What came of listening to others' transfers.
    #[derive(Copy)]
    pub struct Overhearing, "overheard_" {
        Overhearing () {
            /// Units that were overheard whole and entered unasked.
            units: Counter, Chunks;
            /// Bytes of units that were overheard whole and entered unasked.
            bytes: Counter, Bytes;
            /// Units that were overheard whole and not kept: too many waited for the disk, or it failed.
            dropped_units: Counter, Chunks;
            /// Bytes of units that were overheard whole and not kept.
            dropped_bytes: Counter, Bytes;
            /// Units that were on their way from a peer and were overheard first.
            cancelled_units: Counter, Chunks;
            /// Bytes of units that were overheard first. A peer that had begun to send one may have gone on.
            cancelled_bytes: Counter, Bytes;
            /// Units of which a peer sent only what had not been overheard.
            repaired_units: Counter, Chunks;
            /// Bytes of repaired units that had been overheard, and were not sent again.
            repaired_bytes: Counter, Bytes;
            /// Units that were half overheard, and whose whole was not what it was called.
            false_units: Counter, Chunks;
            /// Memory for parts of units that wait for the rest from a peer.
            aside_bytes: Gauge, Bytes;
            /// Bytes that wait to be written, of units that no client requested.
            waiting_bytes: Gauge, Bytes;
            /// Bytes of payload that did not help to make a chunk.
            unused_bytes: Gauge, Bytes;
        }
        + {
            /// The listener's own counters.
            #[serde(flatten)]
            pub heard: Counters,
        }
    }
}

impl Counters {
    /// Bytes of payload that did not help to make a chunk.
    #[must_use]
    pub fn unused_bytes(&self) -> u64 {
        self.payload_bytes - self.head_bytes - self.used_bytes - self.taken_bytes
    }
}
