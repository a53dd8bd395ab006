//! The peer's receive window (RFC 9293, section 3.3.1: SND.WND, SND.WL1 and SND.WL2).

use super::seq::before;
use crate::net::Segment;

/// The peer's receive window, and the segment that set it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerWindow {
    /// How many bytes after the first unacknowledged one the peer accepts.
    pub size: u32,
    /// The largest size so far.
    pub largest: u32,
    seq: u32,
    ack: u32,
}

impl PeerWindow {
    /// The window that this segment sets, which is newer than all before.
    pub fn set(&mut self, segment: &Segment) {
        self.size = segment.window;
        self.largest = self.largest.max(segment.window);
        self.seq = segment.seq;
        self.ack = segment.ack;
    }

    /// The window of the peer's SYN. What it acknowledges matters only once our SYN is acknowledged.
    pub fn meet(&mut self, syn: &Segment) {
        self.size = syn.window;
        self.largest = syn.window;
        self.seq = syn.seq;
    }

    /// Takes the window of a segment unless a newer one has set it. Returns whether it has grown.
    pub fn update(&mut self, segment: &Segment) -> bool {
        let newer = before(self.seq, segment.seq)
            || (self.seq == segment.seq && !before(segment.ack, self.ack));
        let grown = newer && segment.window > self.size;
        if newer {
            self.set(segment);
        }
        grown
    }
}
