//! What observers have heard, as JSON has it; `docs/lab.md` says what each field means.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;
use wire::ChunkId;

/// The schema of [`Page`], with where it comes from beside it.
pub const SCHEMA: &str = "hearsay/overheard/1";

/// All files.
#[derive(Debug, Serialize)]
pub struct Page {
    /// What each engine could hold, in bytes.
    pub memory_bytes: u64,
    /// Whether each stream was reassembled alone.
    pub streams_alone: bool,
    /// Whether bytes were of use only behind a head that was heard.
    pub need_heads: bool,
    /// In the order of the command line.
    pub observers: Vec<Observed>,
}

/// One file.
#[derive(Debug, Default, Serialize)]
pub struct Observed {
    /// As the command line has it.
    pub file: String,
    /// Why it could not be read to its end; all else holds up to there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bytes of the file that were read.
    pub capture_bytes: u64,
    /// Records.
    pub frames: u64,
    /// The earliest time of a record, in seconds since 1970.
    pub began_unix_s: f64,
    /// From there to the latest.
    pub seconds: f64,
    /// Packets that gave no TCP segment, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// TCP segments.
    pub segments: u64,
    /// Flows with payload, each direction for itself.
    pub flows: u64,
    /// TCP payload.
    pub payload_bytes: u64,
    /// Heads of chunks, repetitions too.
    pub heads: u64,
    /// Those of them that were not heard, but known from what another flow has there.
    pub heads_guessed: u64,
    /// Chunks whose head was heard.
    pub chunks_named: u64,
    /// Their bytes, as heads say.
    pub chunks_named_bytes: u64,
    /// Chunks that came together and bear their names.
    pub chunks_reconstructed: u64,
    /// Their bytes.
    pub chunks_reconstructed_bytes: u64,
    /// The share of those that were named.
    pub reconstructed_share: Option<f64>,
    /// The same of bytes.
    pub reconstructed_bytes_share: Option<f64>,
    /// Payload that did not help to make a chunk: the paper's memory overhead.
    pub unused_bytes: u64,
    /// Its share of all payload.
    pub unused_share: Option<f64>,
    /// Of what is unused: what was there already.
    pub duplicate_bytes: u64,
    /// What no head claimed: other traffic, and chunks without their heads.
    pub unclaimed_bytes: u64,
    /// What is there of half-heard chunks.
    pub half_heard_bytes: u64,
    /// What made room.
    pub evicted_bytes: u64,
    /// What was false.
    pub false_bytes: u64,
    /// Chunks that were not complete in the end.
    pub half_heard: Vec<HalfHeard>,
    /// How often a chunk was complete and did not bear its name.
    pub chunks_false: u64,
    /// Chunks that made room for others.
    pub chunks_evicted: u64,
    /// Flows that made room for others.
    pub flows_evicted: u64,
    /// The most that the engine held.
    pub memory_peak_bytes: u64,
    /// What parsing and reassembly took, without reading.
    pub processing_seconds: f64,
}

/// A chunk that was named, and is not complete.
#[derive(Debug, Serialize)]
pub struct HalfHeard {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u32,
    /// How much of that is missing.
    pub missing_bytes: u32,
    /// Where: first byte, and the one behind the last.
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
