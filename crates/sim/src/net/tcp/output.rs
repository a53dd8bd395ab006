//! What a connection sends, and when.

use bytes::Bytes;
use wire::Instant;

use super::Recovery;
use super::connection::{Connection, State};
use super::seq::{ahead, before, later};
use crate::net::{Flags, Segment};

impl Connection {
    /// The next segment to send now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let is_open = self.state.synchronised() && self.end.is_none();
        self.phases.enter(now, is_open.then(|| self.congestion.phase()));
        if let Some(seq) = self.reset.take() {
            return Some(self.make_reset(seq));
        }
        match self.state {
            State::Closed => None,
            State::SynSent | State::SynReceived => self.transmit_syn(now),
            State::TimeWait => self.transmit_ack(now),
            _ if self.resend => Some(self.transmit_first_again(now)),
            _ if self.sack && self.congestion.recovering() => {
                self.transmit_in_recovery(now).or_else(|| self.transmit_ack(now))
            }
            _ => self.transmit_data(now).or_else(|| self.transmit_ack(now)),
        }
    }

    fn transmit_syn(&mut self, now: Instant) -> Option<Segment> {
        if self.next != self.iss {
            return self.transmit_ack(now);
        }
        let answer = self.state == State::SynReceived;
        let flags = if answer { Flags::SYN | Flags::ACK } else { Flags::SYN };
        self.next = self.iss.wrapping_add(1);
        let mut syn = self.make(now, self.iss, flags, Bytes::new());
        syn.mss = Some(self.config.mss);
        syn.sack_permitted = self.sack;
        // The first SYN acknowledges nothing.
        if !answer {
            (syn.ack, syn.window) = (0, self.config.receive_buffer);
        }
        Some(syn)
    }

    /// Sends the first missing segment again: in fast retransmit, and after partial acknowledgements.
    fn transmit_first_again(&mut self, now: Instant) -> Segment {
        self.resend = false;
        let missing = self.scoreboard.gap(self.una, self.sent).unwrap_or((self.una, self.sent));
        let again = self.transmit_again(now, missing);
        self.scoreboard.begin(again.seq.wrapping_add(again.sequence_len()));
        again
    }

    /// Sends a segment of this range again, from its first sequence number on.
    pub(super) fn transmit_again(&mut self, now: Instant, (start, end): (u32, u32)) -> Segment {
        let written = self.una.wrapping_add(self.output.len());
        let (flight, left) = (end.wrapping_sub(start), ahead(start, written));
        let len = left.min(self.reports.payload_max(&self.input, self.mss)).min(flight);
        // A repeated segment gives no round-trip time.
        match self.config.recovery {
            Recovery::Ns3 => self.rtt.one_sent_again(start.wrapping_add(len)),
            Recovery::Standard | Recovery::Reno | Recovery::Sack => self.rtt.sent_again(),
        }
        let fin = len == left && flight > len;
        self.make_data(now, start, len, fin)
    }

    /// The next segment in sequence, if both windows are open and it is large enough to send.
    pub(super) fn transmit_data(&mut self, now: Instant) -> Option<Segment> {
        let (next, gap) = self.scoreboard.skip(self.next, self.sent);
        self.next = next;
        let flight = self.flight();
        let unsent = self.output.len().saturating_sub(flight);
        let fin_due = self.state.owes_fin() && flight <= self.output.len();
        if unsent == 0 && !fin_due {
            return None;
        }
        // After an idle time longer than a timeout the window is reduced.
        if flight == 0 && now - self.last_sent > self.rtt.rto() {
            self.congestion.idle(self.config.initial_window);
        }
        let in_flight = if self.sack && self.congestion.recovering() {
            self.scoreboard.pipe(self.una, self.sent, self.mss)
        } else {
            self.scoreboard.unreported(self.una, self.next)
        };
        let usable = self.congestion.allowed().saturating_sub(in_flight);
        let usable = usable.min(self.peer.size.saturating_sub(flight));
        let full = self.reports.payload_max(&self.input, self.mss);
        let len = unsent.min(usable).min(full).min(gap);
        // A probe sends what little fits in the window, or one byte beyond it if nothing fits.
        let probe = std::mem::take(&mut self.probe);
        let forced = probe && len > 0;
        let worth = len == gap || self.worth_sending(unsent, len, flight, full);
        if !forced && !worth {
            return if probe { Some(self.transmit_probe(now)) } else { self.wait_for_window(now) };
        }
        let seq = self.next;
        let fin = fin_due && len == unsent;
        self.next = seq.wrapping_add(len + u32::from(fin));
        Some(self.make_data(now, seq, len, fin))
    }

    /// Avoids the silly window syndrome (RFC 1122, section 4.2.3.4): sends a full segment, all data there is,
    /// or at least half the largest window that the peer has advertised.
    fn worth_sending(&self, unsent: u32, len: u32, flight: u32, full: u32) -> bool {
        if len == unsent {
            let corked = self.config.cork && self.queued > 0 && flight > 0;
            if corked && len < full && !self.fin_wanted {
                return false;
            }
            return self.config.nodelay || self.fin_wanted || flight == 0 || len == full;
        }
        len == full || (len > 0 && len >= self.peer.largest / 2)
    }

    /// Arms the probe timer. With nothing in flight, no acknowledgement would reopen the window.
    fn wait_for_window(&mut self, now: Instant) -> Option<Segment> {
        if self.next == self.una && self.retry_at.is_none() {
            self.retry_at = Some(now + self.rtt.doubled(self.probes));
        }
        None
    }

    /// A probe: one byte beyond the peer's closed window, which makes it answer with its window. The byte
    /// does not count as sent, but is acknowledged if the peer accepts it. The next probe follows after the
    /// retransmission timeout, then after twice as long each time (RFC 1122, section 4.2.2.17).
    fn transmit_probe(&mut self, now: Instant) -> Segment {
        self.retry_at = Some(now + self.rtt.doubled(self.probes));
        let segment = self.make_data(now, self.una, 1, false);
        self.rtt.sent_again();
        segment
    }

    fn transmit_ack(&mut self, now: Instant) -> Option<Segment> {
        if !self.ack_due {
            return None;
        }
        self.counters.segments += 1;
        let seq = self.usable_seq();
        Some(self.finish_segment(now, seq, Flags::ACK, Bytes::new()))
    }

    /// A segment with `len` bytes of data from sequence number `seq` on.
    fn make_data(&mut self, now: Instant, seq: u32, len: u32, fin: bool) -> Segment {
        let offset = seq.wrapping_sub(self.una);
        let payload = if len > 0 { self.output.slice(offset, len) } else { Bytes::new() };
        let mut flags = Flags::ACK;
        if fin {
            flags = flags | Flags::FIN;
        }
        if offset + len == self.output.len() {
            flags = flags | Flags::PSH;
        }
        self.make(now, seq, flags, payload)
    }

    /// A segment that takes sequence numbers: it is counted and timed, and starts the retransmission timer.
    fn make(&mut self, now: Instant, seq: u32, flags: Flags, payload: Bytes) -> Segment {
        let segment = self.finish_segment(now, seq, flags, payload);
        let end = seq.wrapping_add(segment.sequence_len());
        self.counters.segments += 1;
        if before(seq, self.sent) {
            self.counters.retransmitted += 1;
        } else if self.state == State::SynSent || !self.stamps.in_use() {
            self.rtt.sent(now, end);
        }
        self.sent = later(self.sent, end);
        self.last_sent = now;
        self.retry_at = self.retry_at.or(Some(now + self.rtt.rto()));
        segment
    }

    /// Completes a segment with what each carries: the acknowledgement number, the window, and the options.
    fn finish_segment(&mut self, now: Instant, seq: u32, flags: Flags, payload: Bytes) -> Segment {
        self.ack_due = false;
        self.unacked = 0;
        self.ack_at = None;
        let (ack, window, sack) =
            (self.input.next(), self.advertise(), self.reports.blocks(&self.input));
        self.reports.sent(&self.input);
        let stamps = self.stamps.option(now, ack);
        Segment { seq, ack, flags, window, sack, stamps, payload, ..Segment::default() }
    }

    /// The window to advertise. Its right edge never moves left, and moves right only by a segment or half
    /// the buffer at least (RFC 1122, section 4.2.3.3).
    fn advertise(&mut self) -> u32 {
        let next = self.input.next();
        let open = ahead(next, self.advertised);
        let room = self.input.room();
        if room < open.saturating_add(self.mss.min(self.config.receive_buffer / 2)) {
            return open;
        }
        self.advertised = next.wrapping_add(room);
        room
    }

    /// A RST; only its sequence number matters.
    fn make_reset(&mut self, seq: u32) -> Segment {
        self.counters.segments += 1;
        let flags = if self.state.synchronised() || self.end.is_some() {
            Flags::RST | Flags::ACK
        } else {
            Flags::RST
        };
        let ack = if flags.has(Flags::ACK) { self.input.next() } else { 0 };
        Segment { seq, ack, flags, ..Segment::default() }
    }

    /// The sequence number for a segment without data. It lies inside the peer's window, which `next` may not
    /// after a probe.
    pub(super) fn usable_seq(&self) -> u32 {
        let right = self.una.wrapping_add(self.peer.size);
        if before(right, self.sent) { right } else { self.sent }
    }
}
