//! The retransmission timeout (RFC 6298).

use std::collections::VecDeque;
use std::time::Duration;

use wire::Instant;

use super::Config;
use super::seq::before;

/// The clock's granularity, the least that is added for deviation (ns-3: 1 ms).
const GRANULARITY: Duration = Duration::from_millis(1);
/// The timeout for the first data after a SYN was lost (RFC 6298, rule 5.7).
const RTO_AFTER_LOST_SYN: Duration = Duration::from_secs(3);
/// Largest number of segments timed at once.
const TIMED_MAX: usize = 256;

/// The estimate of the round-trip time, and the timeout that follows from it.
#[derive(Clone, Debug)]
pub struct Rtt {
    min: Duration,
    max: Duration,
    /// Smoothed round-trip time and its mean deviation, after the first measurement.
    estimate: Option<(Duration, Duration)>,
    rto: Duration,
    /// Segments sent once: the sequence number after each, and when it was sent.
    timed: VecDeque<(u32, Instant)>,
}

impl Rtt {
    /// The state before any measurement.
    pub fn new(config: &Config) -> Self {
        let (min, max) = (config.rto_min, config.rto_max);
        Self { min, max, estimate: None, rto: config.rto_initial, timed: VecDeque::new() }
    }

    /// The current timeout, including every doubling since the last measurement.
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// The smoothed round-trip time, once one is measured.
    #[cfg(test)]
    pub fn smoothed(&self) -> Option<Duration> {
        self.estimate.map(|(smoothed, _)| smoothed)
    }

    /// A segment is sent for the first time; `end` is the sequence number after it.
    pub fn sent(&mut self, now: Instant, end: u32) {
        if self.timed.len() < TIMED_MAX {
            self.timed.push_back((end, now));
        }
    }

    /// A segment is sent again, so no segment in flight gives a round-trip time: its acknowledgement may
    /// answer either copy, or be delayed by the gap (Karn's algorithm).
    pub fn sent_again(&mut self) {
        self.timed.clear();
    }

    /// In ns-3, only the repeated segment, which ends at `end`, is excluded.
    pub fn one_sent_again(&mut self, end: u32) {
        self.timed.retain(|(other, _)| *other != end);
    }

    /// Everything before `ack` is acknowledged. The oldest segment of it is measured, so that the time
    /// includes the peer's delayed acknowledgement.
    pub fn acknowledged(&mut self, now: Instant, ack: u32) {
        let mut oldest = None;
        while let Some((end, sent)) = self.timed.front()
            && !before(ack, *end)
        {
            oldest = oldest.or(Some(*sent));
            self.timed.pop_front();
        }
        if let Some(sent) = oldest {
            self.measured(now - sent);
        }
    }

    /// A round trip was measured: updates the estimate (rules 2.2 to 2.4).
    pub fn measured(&mut self, round_trip: Duration) {
        let (smoothed, deviation) = match self.estimate {
            None => (round_trip, round_trip / 2),
            Some((smoothed, deviation)) => {
                let off = smoothed.abs_diff(round_trip);
                ((smoothed * 7 + round_trip) / 8, (deviation * 3 + off) / 4)
            }
        };
        self.estimate = Some((smoothed, deviation));
        let rto = smoothed + (deviation * 4).max(GRANULARITY);
        self.rto = rto.max(self.min).min(self.max);
    }

    /// The timeout after this many doublings of its own, for probes of a closed window.
    pub fn doubled(&self, times: u32) -> Duration {
        self.rto.saturating_mul(1 << times.min(16)).min(self.max)
    }

    /// The timer has expired: the timeout doubles (rule 5.5).
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.max);
    }

    /// The SYN was sent again, and is now acknowledged.
    pub fn syn_was_lost(&mut self) {
        self.rto = RTO_AFTER_LOST_SYN.min(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u32) -> Instant {
        Instant::ZERO + ms * MS
    }

    #[test]
    fn the_timeout_follows_the_rules() {
        let mut rtt = Rtt::new(&Config::default());
        assert_eq!(rtt.rto(), 1000 * MS);
        rtt.sent(at(0), 10);
        rtt.acknowledged(at(400), 10);
        // First measurement: R + 4 * R/2.
        assert_eq!(rtt.rto(), 1200 * MS);
        rtt.sent(at(1000), 20);
        rtt.acknowledged(at(1800), 20);
        // SRTT = 7/8 * 400 + 1/8 * 800 = 450; RTTVAR = 3/4 * 200 + 1/4 * 400 = 250.
        assert_eq!((rtt.smoothed(), rtt.rto()), (Some(450 * MS), 1450 * MS));
    }

    #[test]
    fn the_timeout_stays_between_its_bounds() {
        let mut rtt = Rtt::new(&Config::default());
        rtt.sent(at(0), 1);
        rtt.acknowledged(at(1), 1);
        assert_eq!(rtt.rto(), 200 * MS);
        let doubled = std::iter::from_fn(|| {
            rtt.back_off();
            Some(rtt.rto().as_millis())
        });
        let doubled: Vec<_> = doubled.take(10).collect();
        let expected = [400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000];
        assert_eq!(doubled, expected);
    }

    #[test]
    fn what_was_out_when_something_was_sent_again_is_not_measured() {
        let mut rtt = Rtt::new(&Config::default());
        rtt.sent(at(0), 10);
        rtt.sent(at(1), 20);
        rtt.back_off();
        rtt.sent_again();
        rtt.acknowledged(at(500), 20);
        assert_eq!((rtt.smoothed(), rtt.rto()), (None, 2000 * MS));
        // A measurement of new data ends the doubling.
        rtt.sent(at(500), 30);
        rtt.acknowledged(at(600), 30);
        assert_eq!((rtt.smoothed(), rtt.rto()), (Some(100 * MS), 300 * MS));
    }

    #[test]
    fn of_several_acknowledged_at_once_the_oldest_is_measured() {
        let mut rtt = Rtt::new(&Config::default());
        for i in 0..1000 {
            rtt.sent(at(i), u32::MAX.wrapping_add(i));
        }
        assert_eq!(rtt.timed.len(), TIMED_MAX);
        rtt.acknowledged(at(100), 1);
        assert_eq!((rtt.smoothed(), rtt.timed.len()), (Some(100 * MS), TIMED_MAX - 3));
    }
}
