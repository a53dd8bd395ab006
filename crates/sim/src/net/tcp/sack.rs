//! What a connection does with selective acknowledgements (RFC 6675, section 5).

use wire::Instant;

use super::connection::Connection;
use super::reports::reports_duplicate;
use crate::net::Segment;

impl Connection {
    /// Handles the SACK option of a segment whose acknowledgement number has been handled.
    pub(super) fn handle_reports(&mut self, segment: &Segment) {
        // A FIN is acknowledged beside the data.
        let acked = self.counters.acknowledged + 1;
        if reports_duplicate(&segment.sack, segment.ack, acked) {
            self.counters.dsacks += 1;
        }
        let mut news = false;
        for block in segment.sack.blocks() {
            news |= self.scoreboard.note(self.una, self.sent, *block);
        }
        if !news {
            return;
        }
        let lost = self.scoreboard.lost_before(self.mss).is_some();
        let flight = self.sent.wrapping_sub(self.una);
        if self.congestion.reported(self.una, lost, flight, self.sent) {
            self.counters.recoveries += 1;
            self.next = self.sent;
            self.resend = true;
        }
    }

    /// The next segment in a recovery, if a whole one more may be in flight: lost data, new data, data that may
    /// be lost, or at last the end of what was sent (NextSeg, rules 1 to 4).
    pub(super) fn transmit_in_recovery(&mut self, now: Instant) -> Option<Segment> {
        let (una, sent, mss) = (self.una, self.sent, self.mss);
        let pipe = self.scoreboard.pipe(una, sent, mss);
        if self.congestion.allowed().saturating_sub(pipe) < mss {
            return None;
        }
        let lost = self.scoreboard.next_lost(una, mss);
        if lost.is_none()
            && let Some(new) = self.transmit_data(now)
        {
            return Some(new);
        }
        if let Some(missing) = lost.or_else(|| self.scoreboard.next_before_reported(una)) {
            let again = self.transmit_again(now, missing);
            self.scoreboard.sent_again(again.seq.wrapping_add(again.sequence_len()));
            return Some(again);
        }
        let recover = self.congestion.recover();
        let payload_max = self.reports.payload_max(&self.input, mss);
        let last = self.scoreboard.rescue(una, sent, recover, payload_max)?;
        Some(self.transmit_again(now, last))
    }
}
