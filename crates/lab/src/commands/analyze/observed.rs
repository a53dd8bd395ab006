//! The JSON of what observers overheard; `docs/lab.md` documents each field.

use std::ops::Range;

use serde::Serialize;
use wire::ChunkId;

use super::refused::Refused;

/// Name of the schema of [`Page`] with its provenance.
pub const SCHEMA: &str = "hearsay/overheard/1";

/// The results of all files.
#[derive(Debug, Serialize)]
pub struct Page {
    /// Memory of each engine, in bytes.
    pub memory_bytes: u64,
    /// Whether each stream was reassembled alone.
    pub streams_alone: bool,
    /// Whether bytes were used only after a head that was heard.
    pub need_heads: bool,
    /// One for each file, in the order of the command line.
    pub observers: Vec<Observed>,
}

/// The result of one file.
#[derive(Debug, Default, Serialize)]
pub struct Observed {
    /// The file's name as on the command line.
    pub file: String,
    /// Why it could not be read to its end; the other fields count what was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bytes of the capture that were read.
    pub capture_bytes: u64,
    /// Number of captured frames.
    pub frames: u64,
    /// Time of the earliest frame, in seconds since 1970.
    pub began_unix_s: f64,
    /// Seconds from there to the latest frame.
    pub seconds: f64,
    /// Packets without a TCP segment, by reason.
    pub refused: Refused,
    /// Number of TCP segments.
    pub segments: u64,
    /// Flows with payload; each direction of a connection is a flow.
    pub flows: u64,
    /// Bytes of TCP payload.
    pub payload_bytes: u64,
    /// Number of chunk heads, including repeated ones.
    pub heads: u64,
    /// Of these, heads that were not heard but known from another flow.
    pub heads_guessed: u64,
    /// Chunks whose head was heard.
    pub chunks_named: u64,
    /// Their bytes, as the heads say.
    pub chunks_named_bytes: u64,
    /// Chunks that are complete and match their names.
    pub chunks_reconstructed: u64,
    /// Their bytes.
    pub chunks_reconstructed_bytes: u64,
    /// Their share of the chunks whose head was heard.
    pub reconstructed_share: Option<f64>,
    /// Their share of the bytes of those chunks.
    pub reconstructed_bytes_share: Option<f64>,
    /// Payload that completed no chunk: the paper's memory overhead.
    pub unused_bytes: u64,
    /// Its share of all payload.
    pub unused_share: Option<f64>,
    /// Unused bytes that were received before.
    pub duplicate_bytes: u64,
    /// Unused bytes that belong to no head: other traffic, and chunks without heads.
    pub unclaimed_bytes: u64,
    /// Unused bytes of incomplete chunks.
    pub half_heard_bytes: u64,
    /// Unused bytes that were evicted.
    pub evicted_bytes: u64,
    /// Unused bytes of chunks that did not match their names.
    pub false_bytes: u64,
    /// Chunks that were incomplete at the end.
    pub half_heard: Vec<HalfHeard>,
    /// How often a complete chunk did not match its name.
    pub chunks_false: u64,
    /// Chunks evicted to make room.
    pub chunks_evicted: u64,
    /// Flows evicted to make room.
    pub flows_evicted: u64,
    /// Largest memory use of the engine, in bytes.
    pub memory_peak_bytes: u64,
    /// Seconds of parsing and reassembly, without reading.
    pub processing_seconds: f64,
}

/// A chunk whose head was heard and that is incomplete.
#[derive(Debug, Serialize)]
pub struct HalfHeard {
    /// Its name.
    pub name: String,
    /// Its length, in bytes.
    pub bytes: u32,
    /// Number of missing bytes.
    pub missing_bytes: u32,
    /// The gaps: first missing byte, and the byte after the last.
    pub missing: Vec<[u32; 2]>,
}

impl From<(ChunkId, u32, Vec<Range<u32>>)> for HalfHeard {
    fn from((name, bytes, missing): (ChunkId, u32, Vec<Range<u32>>)) -> Self {
        Self {
            name: name.to_string(),
            bytes,
            missing_bytes: missing.iter().map(|range| range.end - range.start).sum(),
            missing: missing.into_iter().map(|range| [range.start, range.end]).collect(),
        }
    }
}
