//! The two ends of a connection, as simple as loss recovery allows: NewReno without SACK, and a receiver that
//! acknowledges every second segment.

use std::collections::BTreeMap;
use std::time::Duration;

use wire::Instant;

use super::{Plain, end, packet, segment};
use crate::Flags;

pub(super) const MSS: u32 = 1460;
const RTO_MIN: Duration = Duration::from_millis(200);
const ACK_DELAY: Duration = Duration::from_millis(200);

/// Sends a number of bytes to the last router.
pub(super) struct Sender {
    to: usize,
    iss: u32,
    /// Offsets into the stream, so that nothing wraps here.
    pub(super) una: u64,
    next: u64,
    length: u64,
    window: f64,
    threshold: f64,
    duplicates: u32,
    recover: u64,
    is_recovering: bool,
    rto: Duration,
    smoothed: Option<(f64, f64)>,
    timed: Option<(u64, Instant)>,
    pub(super) retry_at: Option<Instant>,
}

impl Sender {
    pub(super) fn new(to: usize, iss: u32, length: u64) -> Self {
        Self {
            to,
            iss,
            una: 0,
            next: 0,
            length,
            window: 2.0,
            threshold: f64::MAX,
            duplicates: 0,
            recover: 0,
            is_recovering: false,
            rto: Duration::from_secs(1),
            smoothed: None,
            timed: None,
            retry_at: None,
        }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    fn data(&self, offset: u64) -> Plain {
        let payload = (self.length - offset).min(MSS.into()) as u32;
        packet(end(0), end(self.to), segment(self.iss.wrapping_add(offset as u32), payload, 77))
    }

    /// The next segment that may be sent.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Plain> {
        let window = (self.window.min(89.0) * f64::from(MSS)) as u64;
        if self.next >= self.length || self.next >= self.una + window {
            return None;
        }
        let it = self.data(self.next);
        self.next += u64::from(it.0.tcp()?.payload);
        self.timed.get_or_insert((self.next, now));
        self.retry_at.get_or_insert(now + self.rto);
        Some(it)
    }

    /// An acknowledgement has come. Returns a segment to send again.
    pub(super) fn acknowledged(&mut self, now: Instant, it: &Plain) -> Option<Plain> {
        let number = it.0.tcp()?.ack.wrapping_sub(self.iss.wrapping_add(self.una as u32));
        let flight = (self.next - self.una) as f64 / f64::from(MSS);
        if u64::from(number) > self.length - self.una {
            return None;
        }
        if number == 0 {
            self.duplicates += u32::from(self.next > self.una);
            if self.is_recovering {
                self.window += 1.0;
            } else if self.duplicates == 3 && self.una >= self.recover {
                (self.is_recovering, self.recover) = (true, self.next);
                self.threshold = (flight / 2.0).max(2.0);
                self.window = self.threshold + 3.0;
                self.timed = None;
                return Some(self.data(self.una));
            }
            return None;
        }
        self.una += u64::from(number);
        self.next = self.next.max(self.una);
        self.duplicates = 0;
        if let Some((_, at)) = self.timed.filter(|(offset, _)| *offset <= self.una) {
            self.sample(now.since(at).as_secs_f64());
        }
        self.retry_at = (self.una < self.next).then(|| now + self.rto);
        if self.is_recovering && self.una < self.recover {
            self.window = (self.window - f64::from(number / MSS) + 1.0).max(1.0);
            return Some(self.data(self.una));
        }
        if std::mem::take(&mut self.is_recovering) {
            self.window = self.threshold;
        } else {
            self.window += if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
        }
        None
    }

    fn sample(&mut self, time: f64) {
        self.timed = None;
        let (smoothed, deviation) = match self.smoothed {
            None => (time, time / 2.0),
            Some((old, deviation)) => {
                let error = time - old;
                (old + error / 8.0, deviation + (error.abs() - deviation) / 4.0)
            }
        };
        self.smoothed = Some((smoothed, deviation));
        self.rto = Duration::from_secs_f64(smoothed + 4.0 * deviation).max(RTO_MIN);
    }

    /// The retransmission timer has expired: go back to the first unacknowledged byte.
    pub(super) fn timeout(&mut self, now: Instant) {
        self.threshold = ((self.next - self.una) as f64 / f64::from(MSS) / 2.0).max(2.0);
        (self.window, self.is_recovering) = (1.0, false);
        (self.recover, self.next) = (self.next, self.una);
        self.timed = None;
        self.rto = (self.rto * 2).min(Duration::from_secs(60));
        self.retry_at = Some(now + self.rto);
    }
}

/// Receives the stream and notes what it got.
pub(super) struct Receiver {
    me: usize,
    iss: u32,
    pub(super) received: u64,
    early: BTreeMap<u64, u64>,
    unacked: u32,
    pub(super) ack_at: Option<Instant>,
}

impl Receiver {
    pub(super) fn new(me: usize, iss: u32) -> Self {
        Self { me, iss, received: 0, early: BTreeMap::new(), unacked: 0, ack_at: None }
    }

    /// The acknowledgement of all that came in order.
    pub(super) fn ack(&mut self) -> Plain {
        (self.unacked, self.ack_at) = (0, None);
        let number = self.iss.wrapping_add(self.received as u32);
        packet(end(self.me), end(0), segment(77, 0, number))
    }

    /// Data has come. Returns an acknowledgement that is due.
    pub(super) fn take(&mut self, now: Instant, it: &Plain) -> Option<Plain> {
        let tcp = it.0.tcp()?;
        assert_eq!(tcp.flags, Flags::ACK);
        let offset = tcp.seq.wrapping_sub(self.iss.wrapping_add(self.received as u32)) as i32;
        let first = self.received.checked_add_signed(offset.into()).unwrap();
        let after = first + u64::from(tcp.payload);
        if first > self.received || after <= self.received {
            if first > self.received {
                self.early.insert(first, after);
            }
            return Some(self.ack());
        }
        let filled = !self.early.is_empty();
        self.received = after;
        while let Some(entry) = self.early.first_entry().filter(|it| *it.key() <= self.received) {
            self.received = self.received.max(entry.remove());
        }
        self.unacked += 1;
        if filled || self.unacked >= 2 {
            return Some(self.ack());
        }
        self.ack_at = Some(now + ACK_DELAY);
        None
    }
}
