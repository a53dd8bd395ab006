//! Timestamps (RFC 7323, sections 3 and 4): each segment carries its sender's clock and echoes the peer's, so
//! that each acknowledgement of new data gives a round-trip time, also of data that was sent twice.
//!
//! There is no protection against wrapped sequence numbers (PAWS): no simulated connection sends 4 GB while an
//! old segment is still on its way. As in [`Rtt`](super::rtt), each sample counts alike, however many there are
//! in a round trip (RFC 7323, section 4.2, leaves the weights open).

use std::time::Duration;

use wire::Instant;

use super::seq::before;
use crate::net::Segment;

/// The clock's tick.
const TICK: Duration = Duration::from_millis(1);

/// Whether timestamps are used, and what to echo.
#[derive(Clone, Copy, Debug)]
pub struct Stamps {
    /// Before the peer's SYN: whether this side wants them.
    in_use: bool,
    /// The peer's value to echo (TS.Recent).
    recent: u32,
    /// The latest acknowledgement number sent (Last.ACK.sent).
    acked: u32,
}

impl Stamps {
    /// The state before the peer's SYN.
    pub fn new(wanted: bool) -> Self {
        Self { in_use: wanted, recent: 0, acked: 0 }
    }

    /// Takes the peer's SYN. Returns whether both sides want timestamps.
    pub fn meet(&mut self, syn: &Segment) -> bool {
        self.in_use &= syn.stamps.is_some();
        self.recent = syn.stamps.map_or(0, |(value, _)| value);
        self.acked = syn.seq.wrapping_add(1);
        self.in_use
    }

    /// Whether timestamps are used.
    pub fn in_use(&self) -> bool {
        self.in_use
    }

    /// The option of a segment that acknowledges `ack`.
    pub fn option(&mut self, now: Instant, ack: u32) -> Option<(u32, u32)> {
        self.acked = ack;
        self.in_use.then(|| (ticks(now), self.recent))
    }

    /// Takes the value of a segment inside the window, if it is the newest that was not sent after a gap: the
    /// time until its acknowledgement includes a delay of that (section 4.3). Returns whether the segment may
    /// be used: one without the option may not (section 3.2).
    pub fn take(&mut self, segment: &Segment) -> bool {
        let Some((value, _)) = segment.stamps else { return !self.in_use };
        if !before(value, self.recent) && !before(self.acked, segment.seq) {
            self.recent = value;
        }
        true
    }

    /// The round-trip time that an acknowledgement of new data gives, in whole milliseconds.
    pub fn round_trip(&self, now: Instant, segment: &Segment) -> Option<Duration> {
        let (_, echo) = segment.stamps.filter(|_| self.in_use)?;
        let now = ticks(now);
        (!before(now, echo)).then(|| TICK * now.wrapping_sub(echo))
    }
}

/// The clock, which wraps after 49 days.
fn ticks(now: Instant) -> u32 {
    ((now - Instant::ZERO).as_nanos() / TICK.as_nanos()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn at(ms: u32) -> Instant {
        Instant::ZERO + TICK * ms
    }

    fn segment(seq: u32, stamps: (u32, u32)) -> Segment {
        let payload = Bytes::from_static(&[0; 100]);
        Segment { seq, stamps: Some(stamps), payload, ..Segment::default() }
    }

    #[test]
    fn the_oldest_unacknowledged_segment_is_echoed() {
        let mut stamps = Stamps::new(true);
        assert_eq!(stamps.option(at(5), 0), Some((5, 0)));
        assert!(stamps.meet(&segment(999, (40, 0))));
        assert_eq!(stamps.option(at(6), 1000), Some((6, 40)));
        // Of two segments that one delayed acknowledgement answers, the first is echoed.
        assert!(stamps.take(&segment(1000, (50, 0))) && stamps.take(&segment(1100, (51, 0))));
        assert_eq!(stamps.option(at(7), 1200), Some((7, 50)));
        // After a gap, the last one before it is echoed, and the one that fills the gap once it comes.
        assert!(stamps.take(&segment(1300, (60, 0))));
        assert_eq!(stamps.option(at(8), 1200), Some((8, 50)));
        assert!(stamps.take(&segment(1200, (70, 0))));
        assert_eq!(stamps.option(at(9), 1400), Some((9, 70)));
        // A late copy is not.
        assert!(stamps.take(&segment(1000, (50, 0))));
        assert_eq!(stamps.option(at(9), 1400), Some((9, 70)));
    }

    #[test]
    fn an_echo_gives_a_round_trip_unless_it_is_of_the_future() {
        let stamps = Stamps::new(true);
        let trip = |now, echo| stamps.round_trip(at(now), &segment(0, (9, echo)));
        assert_eq!(trip(130, 30), Some(100 * TICK));
        assert_eq!(trip(130, 130), Some(Duration::ZERO));
        assert_eq!(trip(130, 131), None);
        assert_eq!(trip(30, u32::MAX - 9), Some(40 * TICK), "the clock has wrapped");
        assert_eq!(Stamps::new(false).round_trip(at(130), &segment(0, (9, 30))), None);
    }

    #[test]
    fn both_sides_must_want_them() {
        let plain = Segment::default();
        let mut stamps = Stamps::new(true);
        assert!(!stamps.meet(&plain) && !stamps.in_use());
        assert_eq!(stamps.option(at(1), 1), None);
        assert!(stamps.take(&plain));
        let mut stamps = Stamps::new(false);
        assert!(!stamps.meet(&segment(0, (1, 1))) && stamps.option(at(1), 1).is_none());
        let mut stamps = Stamps::new(true);
        stamps.meet(&segment(0, (1, 1)));
        assert!(!stamps.take(&plain), "a segment without the option is not for this connection");
    }
}
