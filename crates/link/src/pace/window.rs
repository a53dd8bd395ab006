//! What is under way to a neighbouring interlay node, by the numbers in the headers of both.

use wire::Instant;

/// The numbers of packets to and from a neighbour, modulo 256.
#[derive(Debug)]
pub(super) struct Window {
    /// The number of the last packet that was sent to it.
    sent: u8,
    /// The last number that has left it, as it said.
    gone: u8,
    /// How many were under way when it said so.
    under_way: u8,
    /// The last of its numbers that has left this router, if any has.
    left: Option<u8>,
    /// When it was told.
    told_at: Instant,
}

impl Window {
    pub(super) fn new(now: Instant) -> Self {
        Self { sent: 0, gone: 0, under_way: 0, left: None, told_at: now }
    }

    /// The number of a packet that is sent to it now.
    pub(super) fn next(&mut self) -> u8 {
        self.sent = self.sent.wrapping_add(1);
        self.sent
    }

    /// The last of its numbers that has left this router. It is told so now.
    pub(super) fn tell(&mut self, now: Instant) -> Option<u8> {
        self.told_at = now;
        self.left
    }

    /// One of its packets has left this router: when it was told of such before.
    pub(super) fn has_left(&mut self, number: u8) -> Instant {
        if self.left.is_none_or(|last| number.wrapping_sub(last) < 128) {
            self.left = Some(number);
        }
        self.told_at
    }

    /// It says that this number has left it: how many more than it said before; `None`: that is old, or was never sent.
    pub(super) fn heed(&mut self, number: u8) -> Option<u8> {
        let advance = number.wrapping_sub(self.gone);
        let most = self.sent.wrapping_sub(self.gone);
        if advance > most {
            return None;
        }
        self.gone = number;
        self.under_way = self.sent.wrapping_sub(number);
        (advance > 0).then_some(advance)
    }

    /// How many were under way when it last said what had left.
    pub(super) fn under_way(&self) -> u8 {
        self.under_way
    }

    /// How many more were under way than these.
    pub(super) fn beyond(&self, limit: f64) -> f64 {
        (f64::from(self.under_way) - limit).max(0.0)
    }
}
