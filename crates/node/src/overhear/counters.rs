//! Counters of the engine, and of the node's use of it.

wire::counters! {
    /// Counters since the start, and gauges of the memory in use.
    ///
    /// Every byte of payload is in exactly one of `head_bytes`, `kept_bytes`, `duplicate_bytes`, `unclaimed_bytes`
    /// or `headless_bytes`. Every kept byte is in exactly one of `used_bytes`, `false_bytes`, `evicted_bytes`,
    /// `chunks_cancelled_bytes`, `taken_bytes` or `assembling_bytes`.
    ///
    /// The memory overhead of the Ditto paper is [`Counters::unused_bytes`] as a share of `payload_bytes`; to leave out
    /// duplicates, which are not kept, subtract `duplicate_bytes` first. The paper's reconstruction efficiency is
    /// `chunks` as a share of the chunks sent, which only the sender knows.
    #[derive(Copy)]
    pub struct Counters, "listener_" {
        Overhearing () {
            /// TCP segments that the engine was given.
            segments: Counter, Segments;
            /// Payload of the segments that the engine was given.
            payload_bytes: Counter, Bytes;
            /// Flows that the engine began to follow.
            flows: Counter, Flows;
            /// Flows that were evicted to make room for others.
            flows_evicted: Counter, Flows;
            /// Heads of chunks that were heard, or inferred from the order of chunks.
            heads: Counter, Chunks;
            /// Heads of chunks that were missed, and inferred from the order of chunks in another flow or in a
            /// manifest.
            heads_guessed: Counter, Chunks;
            /// Bytes of heads of chunks.
            head_bytes: Counter, Bytes;
            /// Bytes that were added to a chunk.
            kept_bytes: Counter, Bytes;
            /// Bytes that had been heard before, or belong to a chunk that needs no more bytes.
            duplicate_bytes: Counter, Bytes;
            /// Bytes that were dropped because no head of a chunk was found for them.
            unclaimed_bytes: Counter, Bytes;
            /// Chunks that were complete and matched their names.
            chunks: Counter, Chunks;
            /// Bytes of chunks that were complete and matched their names.
            used_bytes: Counter, Bytes;
            /// Complete versions of chunks that did not match the chunk's name.
            falsehoods: Counter, Chunks;
            /// Bytes that were kept in a version of a chunk that proved to be false, or that was not the one used.
            false_bytes: Counter, Bytes;
            /// Incomplete chunks that were evicted to make room for others.
            chunks_evicted: Counter, Chunks;
            /// Bytes that had been heard of chunks that were evicted.
            evicted_bytes: Counter, Bytes;
            /// Incomplete chunks that were dropped because the node has the whole chunk.
            chunks_cancelled: Counter, Chunks;
            /// Bytes that had been heard of chunks that were dropped because the node has the whole chunk.
            chunks_cancelled_bytes: Counter, Bytes;
            /// Incomplete chunks that the node took, so that a peer sends only the missing bytes.
            chunks_taken: Counter, Chunks;
            /// Bytes that had been heard of chunks that the node took incomplete.
            taken_bytes: Counter, Bytes;
            /// Bytes that wait until the head of their chunk is found.
            headless_bytes: Gauge, Bytes;
            /// Bytes of chunks that are not complete.
            assembling_bytes: Gauge, Bytes;
        }
        Process ("hearsay_memory_bytes", what, "Memory, by what it is used for.") {
            /// Incomplete chunks that were overheard, and the tables of overhearing.
            memory_bytes: Gauge, Bytes, "overhearing";
        }
        Overhearing () {
            /// An upper bound of the peak memory of overhearing: the sum of the peaks of its parts.
            memory_peak_bytes: Gauge, Bytes;
        }
    }

    /// What the node did with overheard units.
    #[derive(Copy)]
    pub struct Overhearing, "overheard_" {
        Overhearing () {
            /// Unrequested units that were overheard whole and kept.
            units: Counter, Chunks;
            /// Bytes of unrequested units that were overheard whole and kept.
            bytes: Counter, Bytes;
            /// Unrequested units that were overheard whole and not kept: too many waited for the disk, the disk
            /// failed, or the unit was very short.
            dropped_units: Counter, Chunks;
            /// Bytes of unrequested units that were overheard whole and not kept.
            dropped_bytes: Counter, Bytes;
            /// Requested units that were overheard before they arrived from the peer.
            cancelled_units: Counter, Chunks;
            /// Bytes of requested units that were overheard before they arrived from the peer. The peer may have
            /// sent some of these bytes too.
            cancelled_bytes: Counter, Bytes;
            /// Units that were overheard in part; a peer sent the missing bytes.
            repaired_units: Counter, Chunks;
            /// Overheard bytes of repaired units, which no peer had to send.
            repaired_bytes: Counter, Bytes;
            /// Units whose overheard part and a peer's part together did not match the unit's name.
            false_units: Counter, Chunks;
            /// Memory for overheard parts of units that wait for the missing bytes from a peer.
            aside_bytes: Gauge, Bytes;
            /// Bytes of unrequested units that were overheard and wait to be written.
            waiting_bytes: Gauge, Bytes;
            /// Bytes of payload that became part of no chunk.
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
    /// Bytes of payload that became part of no chunk.
    #[must_use]
    pub fn unused_bytes(&self) -> u64 {
        self.payload_bytes - self.head_bytes - self.used_bytes - self.taken_bytes
    }
}
