//! What a connection does when a timer expires.

use wire::Instant;

use super::connection::{Connection, End, State};

impl Connection {
    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.retry_at, self.ack_at, self.leave_at].into_iter().flatten().min()
    }

    /// Handles every timer that has expired at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.leave_at) {
            self.leave_at = None;
            // In FIN-WAIT-2 the peer has never closed. In TIME-WAIT, or while waiting for the last read,
            // the connection is done.
            if self.state == State::FinWait2 {
                self.finish(End::TimedOut);
            } else {
                self.input.clear();
                self.finish(End::Done);
            }
            return;
        }
        if due(self.ack_at) {
            self.ack_at = None;
            self.ack_due = true;
        }
        if due(self.retry_at) {
            self.retry_at = None;
            self.retry();
        }
    }

    /// The retransmission or probe timer has expired: no acknowledgement came, or the window stayed closed.
    fn retry(&mut self) {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        self.tries += 1;
        if self.tries > if opening { self.config.syn_retries } else { self.config.retries } {
            self.finish(End::TimedOut);
        } else if opening {
            self.counters.timeouts += 1;
            self.rtt.back_off();
            self.send_syn_again();
        } else if self.peer.size == 0 || self.next == self.una {
            // With nothing in flight or a closed window, the window is probed instead of retransmitting.
            if self.sack {
                self.congestion.abandon(self.sent);
                self.scoreboard.clear();
            }
            self.next = self.una;
            self.probe = true;
            self.probes += 1;
        } else {
            self.counters.timeouts += 1;
            self.rtt.back_off();
            self.rtt.sent_again();
            self.congestion.timed_out(self.flight(), self.sent, self.tries > 1);
            self.scoreboard.clear();
            self.next = self.una;
            self.resend = false;
        }
    }

    /// Our SYN or the peer's answer was lost: sends the SYN again.
    pub(super) fn send_syn_again(&mut self) {
        self.syn_was_lost = true;
        self.rtt.sent_again();
        self.next = self.iss;
    }
}
