//! How a connection handles the peer's segments (RFC 9293, section 3.10.7).

use wire::Instant;

use super::Recovery;
use super::congestion::{Congestion, Progress};
use super::connection::{Connection, End, State};
use super::receive_buffer::{Arrival, ReceiveBuffer};
use super::reports::Reports;
use super::seq::{ahead, before};
use crate::net::segment::STAMPS_OPTION;
use crate::net::{Flags, Segment};

impl Connection {
    /// Handles a segment from the peer.
    pub fn handle_segment(&mut self, now: Instant, segment: Segment) {
        match self.state {
            State::Closed => {}
            State::SynSent => self.handle_answer(now, &segment),
            _ if segment.flags.has(Flags::RST) => self.handle_reset(&segment),
            _ if segment.flags.has(Flags::SYN) => self.handle_repeated_syn(&segment),
            _ if segment.flags.has(Flags::ACK) => self.handle_sequence(now, segment),
            _ => {}
        }
    }

    /// Handles a segment in SYN-SENT.
    fn handle_answer(&mut self, now: Instant, segment: &Segment) {
        let acked = segment.flags.has(Flags::ACK);
        if acked && segment.ack != self.iss.wrapping_add(1) {
            // The acknowledgement belongs to an older connection, which the peer still has.
            if !segment.flags.has(Flags::RST) {
                self.reset = Some(segment.ack);
            }
        } else if segment.flags.has(Flags::RST) {
            if acked {
                self.finish(End::Refused);
            }
        } else if segment.flags.has(Flags::SYN) {
            self.meet(segment);
            if acked {
                self.open(now, segment);
                self.ack_due = true;
            } else {
                // Both sides have opened at the same time.
                self.state = State::SynReceived;
                self.next = self.iss;
            }
        }
    }

    /// Takes the peer's initial sequence number, window and MSS from its SYN.
    pub(super) fn meet(&mut self, syn: &Segment) {
        self.irs = syn.seq;
        self.input = ReceiveBuffer::new(self.config.receive_buffer, syn.seq.wrapping_add(1));
        self.advertised = self.input.next();
        // RFC 9293 assumes 536 bytes without the option. Every host here sends it.
        self.mss = self.mss.min(u32::from(syn.mss.unwrap_or(536))).max(1);
        self.sack &= syn.sack_permitted;
        if self.stamps.meet(syn) {
            // The option takes its place from the payload (RFC 9293, section 3.7.1), and times the SYN too.
            self.mss = self.mss.saturating_sub(STAMPS_OPTION).max(1);
            self.rtt.sent_again();
        }
        if self.sack {
            self.reports = Reports::permitted(self.stamps.in_use());
        }
        self.peer.meet(syn);
    }

    /// Our SYN is acknowledged: the connection is established.
    fn open(&mut self, now: Instant, segment: &Segment) {
        let mut initial_window = self.config.initial_window;
        if self.syn_was_lost {
            // After a lost SYN, RFC 5681 section 3.1 and RFC 6298 rule 5.7 apply, whichever side
            // retransmitted.
            initial_window = 1;
            self.rtt.syn_was_lost();
        }
        let recovery = match self.config.recovery {
            Recovery::Sack if !self.sack => Recovery::Standard,
            other => other,
        };
        self.congestion = Congestion::new(self.mss, initial_window, self.iss, recovery);
        self.rtt.acknowledged(now, segment.ack);
        if let Some(echoed) = self.stamps.round_trip(now, segment)
            && !self.syn_was_lost
        {
            self.rtt.measured(echoed);
        }
        self.una = segment.ack;
        self.next = segment.ack;
        self.tries = 0;
        self.retry_at = None;
        self.peer.set(segment);
        self.state = if self.fin_wanted { State::FinWait1 } else { State::Established };
    }

    /// Handles a RST, which is valid only inside the window.
    fn handle_reset(&mut self, segment: &Segment) {
        let next = self.input.next();
        let inside = !before(segment.seq, next) && before(segment.seq, self.advertised);
        if segment.seq == next || inside {
            let refused = self.state == State::SynReceived;
            self.finish(if refused { End::Refused } else { End::Reset });
        }
    }

    /// Handles the peer's SYN again: our answer to it was lost.
    fn handle_repeated_syn(&mut self, segment: &Segment) {
        let repeated = self.state == State::SynReceived && segment.seq == self.irs;
        if !repeated {
            self.ack_due = true;
        } else if segment.flags.has(Flags::ACK) && segment.ack == self.sent {
            // Both sides opened at the same time, and the peer's plain acknowledgement was lost.
            self.next = segment.ack;
            self.ack_due = true;
        } else {
            self.send_syn_again();
        }
    }

    /// Handles a segment in a synchronised state.
    fn handle_sequence(&mut self, now: Instant, segment: Segment) {
        let next = self.input.next();
        let right = if before(self.advertised, next) { next } else { self.advertised };
        let len = segment.sequence_len();
        // A segment beyond the window is only acknowledged (RFC 9293, section 3.10.7.4).
        if before(right, segment.seq) {
            self.ack_due = true;
            return;
        }
        if !self.stamps.take(&segment) {
            return;
        }
        if self.sack && !segment.payload.is_empty() {
            let twice = self.input.known(segment.seq, segment.payload.len() as u32);
            self.reports.arrived_twice(twice);
        }
        // Data that the peer repeats is acknowledged again: our last acknowledgement may have been lost.
        let repeated = len > 0 && !before(next, segment.seq.wrapping_add(len));
        self.ack_due |= repeated;
        if self.state == State::SynReceived {
            // Only the acknowledgement of our SYN completes the handshake.
            if segment.ack != self.iss.wrapping_add(1) {
                self.reset = Some(segment.ack);
                return;
            }
            self.open(now, &segment);
        }
        if !self.handle_ack(now, &segment) {
            return;
        }
        match self.state {
            State::Closed => return,
            // The peer still sends, so the wait for its FIN starts again.
            State::FinWait2 => self.leave_at = Some(now + self.config.fin_wait),
            State::TimeWait if repeated => self.leave_at = Some(now + self.config.time_wait),
            _ => {}
        }
        if len > 0 && !repeated && !self.peer_closed {
            self.handle_data(now, segment, right);
        }
    }

    /// Handles the acknowledgement number. Returns whether the rest of the segment should be processed.
    fn handle_ack(&mut self, now: Instant, segment: &Segment) -> bool {
        let ack = segment.ack;
        // The peer acknowledges data that we never sent.
        if before(self.sent, ack) {
            self.ack_due = true;
            return false;
        }
        if before(ack, self.una) {
            return true;
        }
        // An answer to a probe proves that the peer is alive, even if its window stays closed.
        if self.probes > 0 {
            self.tries = 0;
        }
        if ack != self.una {
            self.handle_progress(now, segment);
        } else if !self.sack
            && self.next != self.una
            && segment.sequence_len() == 0
            && segment.window == self.peer.size
        {
            let flight = self.flight();
            if self.congestion.duplicate(self.una, flight, self.sent) {
                self.counters.recoveries += 1;
                self.resend = true;
            }
        }
        if self.sack {
            self.handle_reports(segment);
        }
        if self.peer.update(segment) && self.next == self.una {
            // The window is open: probing ends.
            self.retry_at = None;
            self.probe = false;
            self.probes = 0;
        }
        true
    }

    /// Handles an acknowledgement of new data.
    fn handle_progress(&mut self, now: Instant, segment: &Segment) {
        let ack = segment.ack;
        let acked = ack.wrapping_sub(self.una);
        let flight = self.flight();
        let fin_acked = acked > self.output.len();
        self.rtt.acknowledged(now, ack);
        if let Some(echoed) = self.stamps.round_trip(now, segment) {
            self.rtt.measured(echoed);
        }
        let data = acked.min(self.output.len());
        self.output.discard(data);
        self.counters.acknowledged += u64::from(data);
        self.scoreboard.acknowledged(ack);
        self.una = ack;
        if before(self.next, ack) {
            self.next = ack;
        }
        self.tries = 0;
        let progress = self.congestion.acknowledged(ack, acked, flight);
        self.resend = progress != Progress::Whole;
        if self.next == self.una {
            self.retry_at = None;
        } else if progress != (Progress::Partial { first: false }) {
            // Only the first partial acknowledgement restarts the timer. A window with many losses therefore
            // ends in a timeout (RFC 6582, section 4: the impatient variant).
            self.retry_at = Some(now + self.rtt.rto());
        }
        if fin_acked {
            self.fin_acknowledged(now);
        }
    }

    fn fin_acknowledged(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.leave_at = Some(now + self.config.fin_wait);
            }
            State::Closing => self.wait_a_while(now),
            State::LastAck => {
                self.finish(End::Done);
                if self.readable() > 0 {
                    self.leave_at = Some(now + self.config.time_wait);
                }
            }
            _ => {}
        }
    }

    /// Enters TIME-WAIT.
    fn wait_a_while(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.end = Some(End::Done);
        self.retry_at = None;
        self.leave_at = Some(now + self.config.time_wait);
    }

    /// Takes the data inside the window, whose right edge is `right`, and the FIN.
    fn handle_data(&mut self, now: Instant, segment: Segment, right: u32) {
        let Segment { mut seq, mut payload, flags, .. } = segment;
        let known = ahead(seq, self.input.next()).min(payload.len() as u32);
        seq = seq.wrapping_add(known);
        let room = ahead(seq, right) as usize;
        let whole = payload.len() - known as usize <= room;
        payload = payload.slice(known as usize..payload.len().min(known as usize + room));
        // A FIN whose data does not fit in the window is dropped with that data; the peer sends it again.
        if flags.has(Flags::FIN) && whole {
            self.fin_at = Some(seq.wrapping_add(payload.len() as u32));
        }
        let arrival =
            if payload.is_empty() { Arrival::Early } else { self.input.insert(seq, payload) };
        // Data in order may be acknowledged later. A gap, or data that fills one, is acknowledged at once,
        // because the sender recovers by these acknowledgements (RFC 5681, section 4.2).
        if arrival == Arrival::Next {
            self.unacked += 1;
            self.ack_due |= self.owes_ack() && self.readable() >= self.gathers;
            self.ack_at = self.ack_at.or(Some(now + self.config.delayed_ack_timeout));
        } else {
            self.ack_due = true;
        }
        if self.sack && arrival == Arrival::Early {
            self.reports.arrived(seq);
        }
        if self.fin_at == Some(self.input.next()) {
            self.handle_fin(now);
        }
    }

    /// Handles the peer's FIN once all its data has arrived.
    fn handle_fin(&mut self, now: Instant) {
        self.input.skip();
        self.peer_closed = true;
        self.ack_due = true;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.wait_a_while(now),
            _ => {}
        }
    }
}
