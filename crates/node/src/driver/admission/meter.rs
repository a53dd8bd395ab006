//! What the code that owns a client's socket tells admission control of it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The state of one connection's traffic. The code that owns the socket updates it, and [`Admission`](super::Admission)
/// reads it. The two need not run on one thread, hence the atomics.
#[derive(Debug, Default)]
pub struct Meter {
    moved: AtomicU64,
    has_head: AtomicBool,
    waits: AtomicBool,
    is_unsent: AtomicBool,
    is_reset: AtomicBool,
}

impl Meter {
    /// This many more bytes were received from the client, or written to it.
    pub fn moved(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets whether an incomplete head is buffered.
    pub fn holds(&self, is_holding: bool) {
        self.has_head.store(is_holding, Ordering::Relaxed);
    }

    /// We wait for the client, within a body that it sends or receives.
    pub fn waits(&self) {
        self.waits.store(true, Ordering::Relaxed);
    }

    /// Whether we wait for the client.
    pub(super) fn is_waiting(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    /// The connection is polled again, which clears `waits`. The poll sets it again if
    /// we still wait for the client.
    pub fn awake(&self) {
        self.waits.store(false, Ordering::Relaxed);
    }

    /// Sets whether a part of a response waits in our memory for the client to read more.
    pub fn keeps(&self, is_unsent: bool) {
        self.is_unsent.store(is_unsent, Ordering::Relaxed);
    }

    /// Whether a part of a response waits in our memory for the client to read more.
    pub fn is_unsent(&self) -> bool {
        self.is_unsent.load(Ordering::Relaxed)
    }

    /// The connection must be reset when it ends, so that the kernel frees its buffers at once.
    pub fn reset(&self) {
        self.is_reset.store(true, Ordering::Relaxed);
    }

    /// Whether the connection must be reset when it ends.
    pub fn is_reset(&self) -> bool {
        self.is_reset.load(Ordering::Relaxed)
    }

    /// Whether an incomplete head is buffered.
    pub fn has_head(&self) -> bool {
        self.has_head.load(Ordering::Relaxed)
    }

    pub(super) fn total(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }
}
