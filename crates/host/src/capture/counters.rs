//! The counters of the capture, and its state.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use wire::capture::Refusal;

/// Why a segment is not passed on; these add to the reasons why a frame has none.
#[derive(Clone, Copy, Debug)]
pub enum Ignored {
    /// From or to this machine.
    Own,
    /// Neither from nor to the peers' port; possible within an aggregate.
    OtherPort,
    /// An acknowledgement without data.
    Empty,
}

impl Ignored {
    const NAMES: [&'static str; 3] = ["own", "other_port", "empty"];
}

/// The counters since the start, and the current state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The kind of frames that are captured; `None`: none can be captured now.
    pub link: Option<&'static str>,
    /// Why nothing can be captured, and what to do about it.
    pub trouble: Option<String>,
    /// Frames that passed the filter and fitted into the ring.
    pub frames: u64,
    /// Segments in them that were passed on.
    pub segments: u64,
    /// Their payload, in bytes.
    pub payload_bytes: u64,
    /// Frames that passed the filter but found the kernel's ring full.
    pub dropped_frames: u64,
    /// Segments that were dropped because the engine's queue was full.
    pub dropped_segments: u64,
    /// Frames and segments that were ignored, by reason.
    pub refused: BTreeMap<&'static str, u64>,
}

/// The thread's counters, which other threads may read.
#[derive(Debug, Default)]
pub struct Counters {
    pub frames: AtomicU64,
    pub segments: AtomicU64,
    pub payload_bytes: AtomicU64,
    pub dropped_frames: AtomicU64,
    pub dropped_segments: AtomicU64,
    refused: [AtomicU64; Refusal::ALL.len()],
    ignored: [AtomicU64; Ignored::NAMES.len()],
    /// The kind of frames that are captured, or why none are; `None` before either is known.
    state: Mutex<Option<Result<&'static str, String>>>,
}

impl Counters {
    /// Counts a frame, or a packet of it, without a segment.
    pub fn refuse(&self, why: Refusal) {
        add(&self.refused[why as usize], 1);
    }

    /// Counts a segment that is not passed on.
    pub fn ignore(&self, why: Ignored) {
        add(&self.ignored[why as usize], 1);
    }

    /// Sets the state; returns whether it has changed.
    pub fn set_state(&self, state: Result<&'static str, String>) -> bool {
        let mut now = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = now.replace(state);
        before != *now
    }

    /// A copy of all values.
    pub fn report(&self) -> Report {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let refused = Refusal::ALL.iter().map(|it| it.name()).zip(&self.refused);
        let ignored = Ignored::NAMES.into_iter().zip(&self.ignored);
        let all = refused.chain(ignored).map(|(name, count)| (name, count.load(Relaxed)));
        Report {
            link: state.as_ref().and_then(|it| it.as_ref().ok().copied()),
            trouble: state.and_then(Result::err),
            frames: self.frames.load(Relaxed),
            segments: self.segments.load(Relaxed),
            payload_bytes: self.payload_bytes.load(Relaxed),
            dropped_frames: self.dropped_frames.load(Relaxed),
            dropped_segments: self.dropped_segments.load(Relaxed),
            refused: all.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

/// Only the capturing thread writes, so this need not be atomic.
pub fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed) + count, Relaxed);
}
