//! The congestion window: NewReno (RFC 5681, RFC 6582) or Reno with limited transmit (RFC 3042), by selective
//! acknowledgements (RFC 6675), or as in ns-3.

use super::Recovery;
use super::guesses::Guesses;
use super::phases::Phase;
use super::seq::before;

/// This many duplicate acknowledgements mean a loss.
pub(super) const DUPLICATES: u32 = 3;

/// The congestion window and the state that changes it. Windows are in bytes.
#[derive(Clone, Debug)]
pub struct Congestion {
    mss: u32,
    window: u32,
    threshold: u32,
    duplicates: u32,
    /// The highest sequence number sent when the last loss was detected. Losses below it start no second
    /// recovery.
    recover: u32,
    recovering: bool,
    first_partial: bool,
    recovery: Recovery,
    /// Used by ns-3's recovery only.
    guesses: Guesses,
    /// Used by ns-3's recovery only: data that was in flight at a timeout is not yet acknowledged.
    timed_out: bool,
}

/// What an acknowledgement of new data means for recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// No segment is known to be missing.
    Whole,
    /// A partial acknowledgement: the next segment is missing too. `first` marks the first in this recovery.
    Partial { first: bool },
    /// The next segment was wrongly assumed to have arrived, and now counts as lost (ns-3).
    Misjudged,
}

impl Congestion {
    /// The state at the beginning of a connection whose initial sequence number is `iss`.
    pub fn new(mss: u32, initial_window: u32, iss: u32, recovery: Recovery) -> Self {
        Self {
            mss,
            window: mss * initial_window,
            threshold: u32::MAX,
            duplicates: 0,
            recover: iss,
            recovering: false,
            first_partial: false,
            recovery,
            guesses: Guesses::default(),
            timed_out: false,
        }
    }

    /// How many bytes may be in flight now. Each of the first two duplicates allows one segment more; in
    /// ns-3, each segment that is assumed to have arrived does. With selective acknowledgements such segments
    /// are not in flight.
    pub fn allowed(&self) -> u32 {
        match self.recovery {
            Recovery::Standard | Recovery::Reno => {}
            Recovery::Sack => return self.window,
            Recovery::Ns3 => return self.window.saturating_add(self.guessed()),
        }
        let limited = if self.recovering { 0 } else { self.duplicates.min(DUPLICATES - 1) };
        self.window.saturating_add(limited * self.mss)
    }

    /// The congestion window.
    #[cfg(test)]
    pub fn window(&self) -> u32 {
        self.window
    }

    /// The window at which slow start ends; `u32::MAX` before the first loss.
    #[cfg(test)]
    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Whether the sender is in fast recovery.
    pub fn recovering(&self) -> bool {
        self.recovering
    }

    /// The sequence number whose acknowledgement ends the recovery.
    pub fn recover(&self) -> u32 {
        self.recover
    }

    /// What makes the window grow now.
    pub fn phase(&self) -> Phase {
        let slow = self.window < self.threshold && !self.recovering;
        if slow { Phase::SlowStart } else { Phase::Avoidance }
    }

    /// An acknowledgement of everything before `una` reported data that was not reported before (RFC 6675,
    /// section 5). `lost` says that the segment at `una` counts as lost; `flight` and `sent` are as in
    /// [`duplicate`](Self::duplicate). Returns whether a recovery begins.
    pub fn reported(&mut self, una: u32, lost: bool, flight: u32, sent: u32) -> bool {
        if self.recovering {
            return false;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        if (self.duplicates < DUPLICATES && !lost) || before(una, self.recover) {
            return false;
        }
        // Segments that limited transmit sent beyond the window do not count (step 4.2).
        self.threshold = self.half_of(flight.min(self.window));
        self.window = self.threshold;
        self.recover = sent;
        self.recovering = true;
        true
    }

    /// Ends a recovery although not all is acknowledged. Duplicates of what is in flight start no other.
    pub fn abandon(&mut self, sent: u32) {
        self.recover = sent;
        self.recovering = false;
        self.duplicates = 0;
    }

    /// A duplicate acknowledgement of `una` arrived. `flight` is the number of bytes in flight, `sent` the
    /// sequence number after them. Returns whether it starts a recovery, so that the first segment must be
    /// sent again.
    pub fn duplicate(&mut self, una: u32, flight: u32, sent: u32) -> bool {
        if self.recovery == Recovery::Ns3 {
            return self.duplicate_in_ns3(una, flight, sent);
        }
        if self.recovering {
            // Each further duplicate shows that a segment has left the network (RFC 5681, section 3.2, step 4).
            self.window = self.window.saturating_add(self.mss);
            return false;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        // Duplicates of data sent before the last recovery or timeout start no new one.
        if self.duplicates != DUPLICATES || !before(self.recover, una) {
            return false;
        }
        // Segments that limited transmit sent beyond the window do not count (RFC 5681, section 3.2).
        self.threshold = self.half_of(flight.min(self.window));
        self.window = self.threshold + DUPLICATES * self.mss;
        self.recover = sent;
        self.recovering = true;
        self.first_partial = true;
        true
    }

    /// Like [`duplicate`](Self::duplicate), in ns-3. After a timeout it ignores duplicates until all data in
    /// flight at the timeout is acknowledged.
    fn duplicate_in_ns3(&mut self, una: u32, flight: u32, sent: u32) -> bool {
        if self.timed_out && before(una, self.recover) {
            return false;
        }
        self.guesses.add(flight.div_ceil(self.mss));
        if self.recovering {
            return false;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        if self.duplicates != DUPLICATES || before(una, self.recover) {
            return false;
        }
        self.threshold = self.half_of(flight.saturating_sub(self.guessed()));
        self.window = self.threshold;
        self.recover = sent;
        self.recovering = true;
        self.first_partial = true;
        true
    }

    /// Like [`acknowledged`](Self::acknowledged), in ns-3.
    fn acknowledged_in_ns3(&mut self, una: u32, acked: u32, flight: u32) -> Progress {
        let left = flight.saturating_sub(acked).div_ceil(self.mss);
        let misjudged = self.guesses.acknowledged(acked.div_ceil(self.mss), left);
        if self.recovering && before(una, self.recover) {
            return Progress::Partial { first: std::mem::take(&mut self.first_partial) };
        }
        self.timed_out &= before(una, self.recover);
        if std::mem::take(&mut self.recovering) {
            self.window = self.threshold;
        }
        if flight >= self.window / 2 {
            self.grow(acked);
        }
        if misjudged { Progress::Misjudged } else { Progress::Whole }
    }

    /// How many bytes are assumed to have arrived.
    fn guessed(&self) -> u32 {
        self.guesses.count().saturating_mul(self.mss)
    }

    /// `acked` bytes are newly acknowledged, up to `una`; `flight` bytes were in flight before.
    pub fn acknowledged(&mut self, una: u32, acked: u32, flight: u32) -> Progress {
        self.duplicates = 0;
        if self.recovery == Recovery::Ns3 {
            return self.acknowledged_in_ns3(una, acked, flight);
        }
        if !self.recovering {
            // A window that is less than half used says nothing about the network, so it does not grow (RFC
            // 7661, section 4.3).
            if flight >= self.window / 2 {
                self.grow(acked);
            }
            return Progress::Whole;
        }
        let is_partial = before(una, self.recover);
        if is_partial && self.recovery == Recovery::Sack {
            // What to send follows from the reports, and the window stays (RFC 6675, section 5, step B).
            return Progress::Whole;
        }
        if is_partial && self.recovery != Recovery::Reno {
            // A partial acknowledgement deflates the window by what it acknowledges, and lets one segment
            // out (RFC 6582, section 3.2, step 3).
            let first = std::mem::take(&mut self.first_partial);
            let again = if acked >= self.mss { self.mss } else { 0 };
            self.window = (self.window.saturating_sub(acked) + again).max(self.mss);
            return Progress::Partial { first };
        }
        // RFC 6582, section 3.2, step 3, allows two ways to leave a recovery. This is option 2, which ns-2
        // and ns-3 take. Reno leaves it so at once (RFC 5681, section 3.2, step 6).
        self.recovering = false;
        self.window = self.threshold;
        Progress::Whole
    }

    /// Grows by slow start, or by congestion avoidance (RFC 5681, equation 3).
    fn grow(&mut self, acked: u32) {
        let more = if self.window < self.threshold {
            acked.min(self.mss)
        } else {
            (u64::from(self.mss) * u64::from(self.mss) / u64::from(self.window)).max(1) as u32
        };
        self.window = self.window.saturating_add(more);
    }

    /// The retransmission timer expired with `flight` bytes in flight; `again` says that it expired for the
    /// same segment before.
    pub fn timed_out(&mut self, flight: u32, sent: u32, again: bool) {
        // A second timeout for the same segment keeps the threshold (RFC 5681, section 3.1).
        if !again {
            self.threshold = self.half_of(flight.saturating_sub(self.guessed()));
        }
        self.guesses = Guesses::default();
        self.timed_out = true;
        self.window = self.mss;
        self.abandon(sent);
    }

    /// After an idle time longer than a timeout, what is known of the network may be outdated: the window
    /// shrinks (RFC 5681, section 4.1).
    pub fn idle(&mut self, initial_window: u32) {
        self.window = self.window.min(initial_window * self.mss);
        self.duplicates = 0;
    }

    fn half_of(&self, flight: u32) -> u32 {
        (flight / 2).max(2 * self.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn started(segments: u32) -> Congestion {
        Congestion::new(MSS, segments, 0, Recovery::Standard)
    }

    /// A window in ns-3's recovery, after ten duplicates of 5001 with ten segments in flight.
    fn recovering_as_ns3() -> Congestion {
        let mut it = Congestion::new(MSS, 10, 0, Recovery::Ns3);
        assert!(!it.duplicate(5001, 10_000, 15_001));
        assert_eq!(it.allowed(), 11_000, "one is held for arrived");
        assert!(!it.duplicate(5001, 11_000, 16_001));
        // Three of twelve segments are assumed to have arrived, so the threshold is half of nine.
        assert!(it.duplicate(5001, 12_000, 17_001));
        assert_eq!((it.threshold(), it.window(), it.allowed()), (4500, 4500, 7500));
        (0..7).for_each(|_| assert!(!it.duplicate(5001, 12_000, 17_001)));
        assert_eq!((it.window(), it.allowed()), (4500, 14_500));
        it
    }

    #[test]
    fn ns3_lets_out_as_much_as_it_holds_for_arrived() {
        let mut it = recovering_as_ns3();
        assert_eq!(it.acknowledged(7001, 2000, 14_000), Progress::Partial { first: true });
        assert_eq!((it.window(), it.allowed()), (4500, 4500 + 9000));
        // Everything is acknowledged, beyond all guesses.
        assert_eq!(it.acknowledged(17_001, 10_000, 17_000), Progress::Whole);
        assert!(!it.recovering() && it.allowed() == it.window());
        // While guesses remain, the next segment is sent again, although nothing shows that it is lost.
        let mut it = recovering_as_ns3();
        it.recover = 8001;
        assert_eq!(it.acknowledged(8001, 3000, 14_000), Progress::Misjudged);
        assert!(!it.recovering() && it.allowed() > it.window());
    }

    #[test]
    fn ns3_counts_no_duplicates_until_a_timeout_is_repaired() {
        let mut it = recovering_as_ns3();
        it.timed_out(12_000, 17_001, false);
        assert_eq!((it.threshold(), it.allowed()), (2000, 1000));
        assert!((0..5).all(|_| !it.duplicate(5001, 5000, 17_001)));
        assert_eq!(it.allowed(), 1000);
        it.acknowledged(17_001, 12_000, 12_000);
        it.duplicate(17_001, 5000, 22_001);
        assert_eq!(it.allowed(), it.window() + MSS);
    }

    #[test]
    fn slow_start_adds_a_segment_for_each_acknowledgement_of_a_full_window() {
        let mut it = started(2);
        it.acknowledged(1001, 1000, 2000);
        assert_eq!(it.window(), 3000);
        it.acknowledged(3001, 2000, 2500);
        assert_eq!(it.window(), 4000);
        // An acknowledgement of fewer bytes adds less. A window that is not filled does not grow.
        it.acknowledged(3101, 100, 3500);
        assert_eq!(it.window(), 4100);
        it.acknowledged(4101, 1000, 2049);
        assert_eq!(it.window(), 4100);
    }

    #[test]
    fn above_the_threshold_a_window_grows_by_a_segment_in_a_round_trip() {
        let mut it = started(10);
        it.threshold = 10_000;
        for _ in 0..10 {
            it.acknowledged(1, 1000, 10_000 + MSS);
        }
        assert!((10_900..=11_000).contains(&it.window()), "{}", it.window());
    }

    #[test]
    fn three_duplicates_halve_the_window_once() {
        let mut it = started(10);
        assert!(!it.duplicate(5001, 10_000, 15_001));
        assert_eq!(it.allowed(), 11_000);
        assert!(!it.duplicate(5001, 11_000, 16_001));
        assert_eq!(it.allowed(), 12_000);
        // Two segments went out beyond the window; they do not count.
        assert!(it.duplicate(5001, 12_000, 17_001));
        assert_eq!((it.threshold(), it.window(), it.recovering()), (5000, 8000, true));
        assert!(!it.duplicate(5001, 12_000, 17_001));
        assert_eq!(it.allowed(), 9000);
        assert_eq!(it.acknowledged(7001, 2000, 12_000), Progress::Partial { first: true });
        assert_eq!(it.window(), 8000);
        assert_eq!(it.acknowledged(7501, 500, 12_000), Progress::Partial { first: false });
        assert_eq!((it.window(), it.threshold()), (7500, 5000));
        assert_eq!(it.acknowledged(17_001, 9500, 12_000), Progress::Whole);
        assert_eq!((it.window(), it.recovering()), (5000, false));
    }

    #[test]
    fn reno_leaves_at_the_first_acknowledgement_of_new_data_and_starts_no_second_recovery() {
        let mut it = Congestion::new(MSS, 10, 0, Recovery::Reno);
        assert!((0..3).any(|_| it.duplicate(5001, 10_000, 15_001)));
        assert_eq!((it.window(), it.threshold(), it.phase()), (8000, 5000, Phase::Avoidance));
        assert_eq!(it.acknowledged(7001, 2000, 12_000), Progress::Whole);
        assert_eq!((it.window(), it.recovering()), (5000, false));
        assert!((0..9).all(|_| !it.duplicate(7001, 10_000, 17_001)));
        it.acknowledged(15_002, 8001, 10_000);
        assert!((0..3).any(|_| it.duplicate(15_002, 10_000, 25_001)));
    }

    #[test]
    fn three_reports_or_a_loss_start_a_recovery_which_leaves_the_window_alone() {
        let recovers = |lost| {
            let mut it = Congestion::new(MSS, 10, 0, Recovery::Sack);
            let count = (1..9).find(|_| it.reported(5001, lost, 12_000, 17_001));
            assert_eq!((it.window(), it.threshold(), it.allowed()), (5000, 5000, 5000));
            assert_eq!(it.acknowledged(7001, 2000, 12_000), Progress::Whole);
            assert_eq!((it.window(), it.recovering(), it.recover()), (5000, true, 17_001));
            assert_eq!(it.acknowledged(17_001, 10_000, 12_000), Progress::Whole);
            assert_eq!((it.window(), it.recovering()), (5000, false));
            count
        };
        assert_eq!((recovers(false), recovers(true)), (Some(3), Some(1)));
        // After a timeout none begins before all that was in flight is acknowledged.
        let mut it = Congestion::new(MSS, 10, 0, Recovery::Sack);
        it.timed_out(10_000, 10_001, false);
        assert!((0..9).all(|_| !it.reported(10_000, true, 10_000, 12_001)));
        assert!(it.reported(10_001, true, 2000, 12_001));
    }

    #[test]
    fn duplicates_of_what_was_out_at_a_timeout_start_no_recovery() {
        let mut it = started(10);
        it.timed_out(10_000, 10_001, false);
        assert_eq!((it.threshold(), it.window()), (5000, 1000));
        it.timed_out(1000, 10_001, true);
        assert_eq!(it.threshold(), 5000);
        assert!((0..10).all(|_| !it.duplicate(10_001, 3000, 12_001)));
        it.acknowledged(11_001, 1000, 3000);
        assert!((0..3).any(|_| it.duplicate(11_001, 3000, 13_001)));
    }

    #[test]
    fn the_threshold_is_two_segments_at_least_and_idling_ends_growth() {
        let mut it = started(2);
        it.timed_out(1000, 1001, false);
        assert_eq!(it.threshold(), 2000);
        it.window = 50_000;
        it.idle(2);
        assert_eq!(it.window(), 2000);
    }
}
