//! One observer: feeds the frames of one capture, with their times, to an engine.

use std::hash::{BuildHasher as _, RandomState};

use node::overhear::{Options, Output, Overhear};
use wire::Instant;
use wire::capture::Heard;
use wire::capture::records::Record;

use super::observed::{HalfHeard, Observed};
use super::refused::Refused;

/// Later than any event.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

/// An engine, and counts of its input.
#[derive(Debug)]
pub struct Observer {
    engine: Overhear,
    /// The latest time so far: the engine's time never goes back, even if records do.
    now: Instant,
    times: Option<(Instant, Instant)>,
    frames: u64,
    /// Packets without a TCP segment, by reason.
    refused: Refused,
    /// Chunks whose head was heard, and their bytes.
    named: u64,
    named_bytes: u64,
}

impl Observer {
    /// An observer with `memory` bytes for its engine, and these ways of listening.
    pub fn new(memory: usize, options: Options) -> Self {
        Self {
            engine: Overhear::with_options(memory, &seed(), options),
            now: Instant::ZERO,
            times: None,
            frames: 0,
            refused: Refused::default(),
            named: 0,
            named_bytes: 0,
        }
    }

    /// Handles a captured frame.
    pub fn handle_record(&mut self, record: &Record<'_>) {
        self.frames += 1;
        let (first, last) = self.times.unwrap_or((record.time, record.time));
        self.times = Some((first.min(record.time), last.max(record.time)));
        self.now = self.now.max(record.time);
        if self.engine.poll_timeout().is_some_and(|when| when <= self.now) {
            self.engine.handle_timeout(self.now);
            self.drain();
        }
        for segment in Heard::new(record.frame) {
            match segment {
                Ok(segment) => {
                    self.engine.handle_segment(self.now, &segment);
                    self.drain();
                }
                Err(refusal) => self.refused.add(refusal, record.frame.link_type),
            }
        }
    }

    /// Counts chunks whose head was heard. Complete chunks are dropped: the engine has counted them.
    fn drain(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            if let Output::Begun { total, .. } = output {
                self.named += 1;
                self.named_bytes += u64::from(total);
            }
        }
    }

    /// Ends the capture, and gives the result.
    pub fn finish(mut self) -> Observed {
        // Lets the engine give up what still waits for a chunk's head.
        self.engine.handle_timeout(NEVER);
        self.drain();
        let half_heard = self.half_heard();
        let it = self.engine.counters();
        let (first, last) = self.times.unwrap_or_default();
        Observed {
            frames: self.frames,
            began_unix_s: first.as_nanos() as f64 / 1e9,
            seconds: (last - first).as_secs_f64(),
            refused: self.refused,
            segments: it.segments,
            flows: it.flows,
            payload_bytes: it.payload_bytes,
            heads: it.heads,
            heads_guessed: it.heads_guessed,
            chunks_named: self.named,
            chunks_named_bytes: self.named_bytes,
            chunks_reconstructed: it.chunks,
            chunks_reconstructed_bytes: it.used_bytes,
            reconstructed_share: share(it.chunks, self.named),
            reconstructed_bytes_share: share(it.used_bytes, self.named_bytes),
            unused_bytes: it.unused_bytes(),
            unused_share: share(it.unused_bytes(), it.payload_bytes),
            duplicate_bytes: it.duplicate_bytes,
            unclaimed_bytes: it.unclaimed_bytes,
            half_heard_bytes: it.assembling_bytes,
            evicted_bytes: it.evicted_bytes,
            false_bytes: it.false_bytes,
            half_heard,
            chunks_false: it.falsehoods,
            chunks_evicted: it.chunks_evicted,
            flows_evicted: it.flows_evicted,
            memory_peak_bytes: it.memory_peak_bytes,
            ..Observed::default()
        }
    }

    /// Incomplete chunks in the order of their names.
    fn half_heard(&self) -> Vec<HalfHeard> {
        let mut all: Vec<_> = self.engine.unfinished().map(HalfHeard::from).collect();
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

/// A part as a share; `None` of nothing.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A seed that no capture's author can know. No result depends on it.
fn seed() -> [u8; 32] {
    let mut seed = [0; 32];
    for word in seed.chunks_exact_mut(8) {
        word.copy_from_slice(&RandomState::new().hash_one(0).to_le_bytes());
    }
    seed
}
