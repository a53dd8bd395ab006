//! The counters of the capture, and its state.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use wire::capture::Refusal;
use wire::counters::Reason;

wire::reasons! {
    /// Why a segment is not for the engine.
    pub enum Ignored {
        /// From or to this machine.
        Own = "own",
        /// Neither from nor to the peers' port. An aggregate can contain such segments.
        OtherPort = "other_port",
        /// An acknowledgement, and nothing else.
        Empty = "empty",
    }
}

/// Why something captured is not for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassedOver {
    /// A frame, or a packet of it, has no segment.
    Frame(Refusal),
    /// A segment is of no use.
    Segment(Ignored),
}

impl Reason for PassedOver {
    fn all() -> impl Iterator<Item = Self> {
        Refusal::all().map(Self::Frame).chain(Ignored::all().map(Self::Segment))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Frame(why) => why.name(),
            Self::Segment(why) => why.name(),
        }
    }

    fn help(self) -> &'static str {
        match self {
            Self::Frame(why) => why.help(),
            Self::Segment(why) => why.help(),
        }
    }
}

wire::counters! {
    /// Counters since the start.
    pub struct Counts, "capture_" {
        Overhearing () {
            /// Frames that passed the capture's filter and found room.
            frames: Counter, Frames;
            /// TCP segments in captured frames that were handed to the engine.
            segments: Counter, Segments;
            /// Payload of the segments that were handed to the engine.
            payload_bytes: Counter, Bytes;
        }
        Overhearing ("hearsay_capture_dropped_total", where, "Frames and segments that were lost here, by where.") {
            /// Frames that passed the filter and found no room in the kernel's ring.
            dropped_frames: Counter, Frames, "kernel";
            /// Segments that found no room in the queue to the engine.
            dropped_segments: Counter, Segments, "queue";
        }
        Overhearing () {
            /// Frames, and segments of them, that were passed over, by reason.
            refused: Tally<PassedOver>, Frames;
        }
    }
}

/// The counters since the start, and the current state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The kind of frames that are captured; `None`: none can be captured now.
    pub link: Option<&'static str>,
    /// Why nothing can be captured, and what to do about it.
    pub trouble: Option<String>,
    /// The counters.
    pub counts: Counts,
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
    ignored: [AtomicU64; Ignored::ALL.len()],
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
        let counts = self.refused.iter().chain(&self.ignored).map(|count| count.load(Relaxed));
        Report {
            link: state.as_ref().and_then(|it| it.as_ref().ok().copied()),
            trouble: state.and_then(Result::err),
            counts: Counts {
                frames: self.frames.load(Relaxed),
                segments: self.segments.load(Relaxed),
                payload_bytes: self.payload_bytes.load(Relaxed),
                dropped_frames: self.dropped_frames.load(Relaxed),
                dropped_segments: self.dropped_segments.load(Relaxed),
                refused: PassedOver::all().zip(counts).filter(|(_, count)| *count > 0).collect(),
            },
        }
    }
}

/// Only the capturing thread writes, so this need not be atomic.
pub fn add(counter: &AtomicU64, count: u64) {
    counter.store(counter.load(Relaxed) + count, Relaxed);
}
