//! What a pair counts.

wire::counters! {
    /// Counters of one end of an uplink's pair.
    #[derive(Copy)]
    pub struct PairReport, "uplink_" {
        Uplink () {
            /// Whether the other end of the pair is connected and answers.
            is_up: Flag, Flag;
            /// The latest round trip to the other end, in microseconds.
            round_trip_micros: Gauge, Number;
            /// How fast what is sent crosses, as measured while something always waited; in bytes a second.
            rate_bytes: Gauge, Bytes;
            /// Content that the pair delivered here.
            content_in_bytes: Counter, Bytes;
            /// Content that the pair was given to send.
            content_out_bytes: Counter, Bytes;
            /// Requests that went by the pair.
            requests: Counter, Requests;
            /// Requests that went past the pair, straight to their origins.
            requests_past: Counter, Requests;
            /// Requests that were under way when the other end fell silent.
            requests_broken: Counter, Requests;
            /// TCP connections, other than of HTTP, that went by the pair.
            tcp_flows: Counter, Connections;
            /// TCP connections, other than of HTTP, that were intercepted and went past the pair.
            tcp_flows_past: Counter, Connections;
            /// TCP connections that were under way when the other end fell silent.
            tcp_flows_broken: Counter, Connections;
            /// Requests and TCP connections that this end broke off, since what they need was lost here, or waited too long for
            /// a slow reader.
            flows_broken_off: Counter, Connections;
            /// Connections with the other end that were made.
            connections: Counter, Connections;
            /// Units that this end had lost, and asked for again.
            units_wanted: Counter, Chunks;
            /// Messages of the other end that were skipped because this version does not know their kind.
            messages_unknown: Counter, Events;
            /// Messages of the other end of which a part was skipped that this version does not know.
            parts_unknown: Counter, Events;
            /// Published schemes: bytes of the names of chunks that this end sent.
            sent_names_bytes: Counter, Bytes;
            /// Published schemes: chunks that the other end believed to be here, and that had to be requested.
            hints_wrong: Counter, Chunks;
            /// Published schemes: chunks that were read from the log.
            chunk_reads: Counter, Chunks;
            /// Published schemes: writes to the log, each of all new chunks of a root.
            chunk_writes: Counter, Events;
            /// Published schemes: bytes that were written to the log.
            chunk_written_bytes: Counter, Bytes;
            /// Published schemes: chunks in the index.
            chunk_entries: Gauge, Chunks;
        }
        Uplink ("hearsay_uplink_received_bytes_total", class, "Bytes that arrived on the pair's connections, by what they were.") {
            /// Payloads of new content and of differences.
            received_payload_bytes: Counter, Bytes, "payload";
            /// Control messages: requests, heads, references, credit.
            received_control_bytes: Counter, Bytes, "control";
            /// Handshakes, and what encryption and framing add.
            received_framing_bytes: Counter, Bytes, "framing";
        }
        Uplink ("hearsay_uplink_sent_bytes_total", class, "Bytes that were sent on the pair's connections, by what they were.") {
            /// Payloads of new content and of differences.
            sent_payload_bytes: Counter, Bytes, "payload";
            /// Control messages: requests, heads, references, credit.
            sent_control_bytes: Counter, Bytes, "control";
            /// Handshakes, and what encryption and framing add.
            sent_framing_bytes: Counter, Bytes, "framing";
        }
        Uplink ("hearsay_uplink_content_sent_bytes_total", class, "Content that this end sent, by how it crossed.") {
            /// As references to what had crossed before.
            sent_as_references: Counter, Bytes, "reference";
            /// As differences from what had crossed before.
            sent_as_differences: Counter, Bytes, "difference";
            /// As it is, or compressed by itself.
            sent_as_new: Counter, Bytes, "new";
            /// Of TCP flows, without being kept: encrypted or compressed content, and the few bytes of dialogues.
            sent_uncut: Counter, Bytes, "uncut";
        }
    }
}

impl PairReport {
    /// All bytes that arrived on the pair's connections.
    pub fn crossed_in_bytes(&self) -> u64 {
        self.received_payload_bytes + self.received_control_bytes + self.received_framing_bytes
    }

    /// All bytes that were sent on the pair's connections.
    pub fn crossed_out_bytes(&self) -> u64 {
        self.sent_payload_bytes + self.sent_control_bytes + self.sent_framing_bytes
    }
}
