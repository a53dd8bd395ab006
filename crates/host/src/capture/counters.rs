//! What capturing has come to, in numbers, and how it stands.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use wire::capture::Refusal;

/// Why a segment is not for the engine, beside the reasons why a frame has none.
#[derive(Clone, Copy, Debug)]
pub enum Passed {
    /// From or to this machine.
    Own,
    /// Neither from nor to the peers' port; such a one can be in an aggregate.
    OtherPort,
    /// An acknowledgement, and nothing else.
    Empty,
}

impl Passed {
    const NAMES: [&'static str; 3] = ["own", "other_port", "empty"];
}

/// Counters since the start, and how it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The kind of frames that are heard; `None`: nothing can be heard now.
    pub link: Option<&'static str>,
    /// Why nothing can be heard, and what to do.
    pub trouble: Option<String>,
    /// Frames that passed the filter and found room.
    pub frames: u64,
    /// Segments in them that were handed on.
    pub segments: u64,
    /// Their payload, in bytes.
    pub payload_bytes: u64,
    /// Frames that passed the filter and found no room in the kernel's ring.
    pub dropped_frames: u64,
    /// Segments that found no room in the queue to the engine.
    pub dropped_segments: u64,
    /// Frames, and segments of them, that were passed over, by reason.
    pub refused: BTreeMap<&'static str, u64>,
}

/// What the thread that captures tells, for others to look at.
#[derive(Debug, Default)]
pub struct Counters {
    pub frames: AtomicU64,
    pub segments: AtomicU64,
    pub payload_bytes: AtomicU64,
    pub dropped_frames: AtomicU64,
    pub dropped_segments: AtomicU64,
    refused: [AtomicU64; Refusal::ALL.len()],
    passed: [AtomicU64; Passed::NAMES.len()],
    /// What kind of frames is heard, or why nothing is; `None` before either is known.
    stand: Mutex<Option<Result<&'static str, String>>>,
}

impl Counters {
    /// A frame, or a packet of it, has no segment.
    pub fn refuse(&self, why: Refusal) {
        add(&self.refused[why as usize], 1);
    }

    /// A segment is not for the engine.
    pub fn pass(&self, why: Passed) {
        add(&self.passed[why as usize], 1);
    }

    /// Frames of this kind are heard, or why none; whether that is news.
    pub fn stand(&self, stand: Result<&'static str, String>) -> bool {
        let mut now = self.stand.lock().unwrap_or_else(PoisonError::into_inner);
        let before = now.replace(stand);
        before != *now
    }

    /// All of it, as it is now.
    pub fn report(&self) -> Report {
        let stand = self.stand.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let refused = Refusal::ALL.iter().map(|it| it.name()).zip(&self.refused);
        let passed = Passed::NAMES.into_iter().zip(&self.passed);
        let all = refused.chain(passed).map(|(name, count)| (name, count.load(Relaxed)));
        Report {
            link: stand.as_ref().and_then(|it| it.as_ref().ok().copied()),
            trouble: stand.and_then(Result::err),
            frames: self.frames.load(Relaxed),
            segments: self.segments.load(Relaxed),
            payload_bytes: self.payload_bytes.load(Relaxed),
            dropped_frames: self.dropped_frames.load(Relaxed),
            dropped_segments: self.dropped_segments.load(Relaxed),
            refused: all.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

/// Nobody else counts: this need not be one step.
pub fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed) + count, Relaxed);
}
