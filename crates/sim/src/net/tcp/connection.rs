//! The state of a connection, and the commands of its user.

use bytes::Bytes;
use std::time::Duration;
use wire::Instant;

use super::congestion::Congestion;
use super::peer_window::PeerWindow;
use super::phases::{PhaseTimes, Phases};
use super::receive_buffer::ReceiveBuffer;
use super::reports::Reports;
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::send_buffer::SendBuffer;
use super::seq::ahead;
use super::stamps::Stamps;
use super::{Config, Recovery};
use crate::net::Segment;

/// One side of a TCP connection.
///
/// Methods are of four kinds. *Input:* [`handle_segment`](Self::handle_segment) and
/// [`handle_timeout`](Self::handle_timeout). *Commands:* [`write`](Self::write), [`read`](Self::read),
/// [`close`](Self::close), [`abort`](Self::abort). *Output:* after each input and command, at the same
/// moment, call [`poll_transmit`](Self::poll_transmit) until it gives `None`, then
/// [`poll_timeout`](Self::poll_timeout). *Getters:* the rest.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) config: Config,
    pub(super) state: State,
    pub(super) end: Option<End>,
    pub(super) counters: Counters,
    /// Largest payload that both sides accept.
    pub(super) mss: u32,

    /// Our initial sequence number: that of our SYN.
    pub(super) iss: u32,
    /// The first unacknowledged sequence number (SND.UNA).
    pub(super) una: u32,
    /// The next sequence number to send (SND.NXT). It goes back to `una` when the retransmission timer
    /// expires.
    pub(super) next: u32,
    /// The sequence number after the highest ever sent.
    pub(super) sent: u32,
    pub(super) peer: PeerWindow,
    /// Data from `una` on; from the byte after the SYN while that is unacknowledged.
    pub(super) output: SendBuffer,
    /// The user has closed: a FIN follows the data.
    pub(super) fin_wanted: bool,
    pub(super) congestion: Congestion,
    pub(super) phases: Phases,
    pub(super) rtt: Rtt,
    /// Whether both sides take selective acknowledgements; before the peer's SYN, whether this side does.
    pub(super) sack: bool,
    /// What the peer has selectively acknowledged.
    pub(super) scoreboard: Scoreboard,
    pub(super) stamps: Stamps,
    /// The segment at `una` must be sent again at once.
    pub(super) resend: bool,
    /// A probe must be sent although the peer's window is too small.
    pub(super) probe: bool,
    /// Number of window probes since the window closed.
    pub(super) probes: u32,
    /// Number of retransmissions since the peer's last answer.
    pub(super) tries: u32,
    /// Our SYN was sent more than once.
    pub(super) syn_was_lost: bool,
    pub(super) last_sent: Instant,
    /// Segments with data that are still in the machine's own queue.
    pub(super) queued: u32,
    /// A RST with this sequence number must be sent.
    pub(super) reset: Option<u32>,

    pub(super) input: ReceiveBuffer,
    /// What to acknowledge selectively.
    pub(super) reports: Reports,
    /// The peer's initial sequence number.
    pub(super) irs: u32,
    /// The right edge of the window that we have advertised.
    pub(super) advertised: u32,
    /// Sequence number of the peer's FIN, once it has arrived.
    pub(super) fin_at: Option<u32>,
    pub(super) peer_closed: bool,
    /// An acknowledgement must be sent at once.
    pub(super) ack_due: bool,
    /// Received segments that are not acknowledged yet.
    pub(super) unacked: u32,
    /// The user reads no fewer bytes than this. Until then received data is not acknowledged, unless the
    /// delayed-acknowledgement timer expires.
    pub(super) gathers: usize,

    /// When the retransmission or window-probe timer expires.
    pub(super) retry_at: Option<Instant>,
    /// When the delayed-acknowledgement timer expires.
    pub(super) ack_at: Option<Instant>,
    /// When to stop waiting for the peer, in FIN-WAIT-2 and TIME-WAIT, or for the user's last read.
    pub(super) leave_at: Option<Instant>,
}

/// The states of RFC 9293, section 3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A SYN has been sent.
    SynSent,
    /// SYNs have gone both ways; ours is not acknowledged.
    SynReceived,
    /// Data may flow both ways.
    Established,
    /// We have closed; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer has closed; we may still send.
    CloseWait,
    /// Both sides have closed at the same time; our FIN is not acknowledged.
    Closing,
    /// The peer has closed, then we have; our FIN is not acknowledged.
    LastAck,
    /// Both sides have closed; a repeated FIN is still answered.
    TimeWait,
    /// The connection has ended; [`Connection::end`] says how.
    Closed,
}

impl State {
    /// Whether both sides know each other's sequence numbers, and the connection has not ended.
    pub(super) fn synchronised(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// Whether a FIN must be sent, or is unacknowledged.
    pub(super) fn owes_fin(self) -> bool {
        matches!(self, Self::FinWait1 | Self::Closing | Self::LastAck)
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both sides have closed, and all data is acknowledged.
    Done,
    /// The peer does not listen on that port: a RST answered our SYN.
    Refused,
    /// The peer has reset the connection.
    Reset,
    /// The peer has not answered in time.
    TimedOut,
    /// This side has aborted it.
    Aborted,
}

/// Counts of what a connection has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments sent, of any kind.
    pub segments: u64,
    /// Retransmitted segments with data, SYN or FIN.
    pub retransmitted: u64,
    /// How often the retransmission timer expired.
    pub timeouts: u64,
    /// How often duplicate or selective acknowledgements started a fast recovery.
    pub recoveries: u64,
    /// Bytes of data up to the largest acknowledgement number received.
    pub acknowledged: u64,
    /// Acknowledgements that reported a segment's second arrival (D-SACK, RFC 2883).
    pub dsacks: u64,
}

impl Connection {
    /// Opens a connection actively; `iss` is its initial sequence number.
    pub fn connect(config: Config, now: Instant, iss: u32) -> Self {
        let mss = u32::from(config.mss);
        Self {
            state: State::SynSent,
            end: None,
            counters: Counters::default(),
            mss,
            iss,
            una: iss,
            next: iss,
            sent: iss,
            peer: PeerWindow::default(),
            output: SendBuffer::new(config.send_buffer),
            fin_wanted: false,
            congestion: Congestion::new(mss, config.initial_window, iss, config.recovery),
            phases: Phases::default(),
            rtt: Rtt::new(&config),
            sack: config.recovery == Recovery::Sack,
            scoreboard: Scoreboard::default(),
            stamps: Stamps::new(config.timestamps),
            resend: false,
            probe: false,
            probes: 0,
            tries: 0,
            syn_was_lost: false,
            last_sent: now,
            queued: 0,
            reset: None,
            input: ReceiveBuffer::new(config.receive_buffer, 0),
            reports: Reports::default(),
            irs: 0,
            advertised: 0,
            fin_at: None,
            peer_closed: false,
            ack_due: false,
            unacked: 0,
            gathers: 0,
            retry_at: None,
            ack_at: None,
            leave_at: None,
            config,
        }
    }

    /// Opens a connection passively: `syn` is the peer's first segment.
    pub fn accept(config: Config, now: Instant, iss: u32, syn: &Segment) -> Self {
        let mut it = Self { state: State::SynReceived, ..Self::connect(config, now, iss) };
        it.meet(syn);
        it
    }

    /// Takes as many bytes off the front of `data` as fit, and returns their number.
    pub fn write(&mut self, data: &mut Bytes) -> usize {
        if self.writable() == 0 { 0 } else { self.output.push(data) }
    }

    /// How many bytes [`write`](Self::write) would take; none once closed.
    pub fn writable(&self) -> usize {
        if self.fin_wanted || self.end.is_some() { 0 } else { self.output.room() }
    }

    /// Number of bytes that are written and were never sent.
    pub fn unsent(&self) -> usize {
        self.output.len().saturating_sub(self.sent.wrapping_sub(self.una)) as usize
    }

    /// The next bytes received in order, at most `max`.
    pub fn read(&mut self, max: usize) -> Option<Bytes> {
        let piece = self.input.read(max)?;
        // Linux acknowledges here what had waited for the user's read (tcp_cleanup_rbuf).
        let gathered = std::mem::take(&mut self.gathers) > 0;
        self.ack_due |= self.window_update_due() || (gathered && self.owes_ack());
        Some(piece)
    }

    /// Until the next read, fewer than `bytes` received bytes count as nothing to read.
    pub fn gather(&mut self, bytes: usize) {
        self.gathers = bytes;
    }

    /// Whether enough bytes have arrived for the user to read.
    pub fn is_readable(&self) -> bool {
        self.readable() >= self.gathers.max(1)
    }

    /// Whether enough segments have arrived that an acknowledgement is due.
    pub(super) fn owes_ack(&self) -> bool {
        self.unacked >= self.config.delayed_ack
    }

    /// How many bytes can be read.
    pub fn readable(&self) -> usize {
        self.input.len() as usize
    }

    /// Closes this side: a FIN follows the data. The peer's data can still be read.
    pub fn close(&mut self) {
        self.fin_wanted = true;
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        };
    }

    /// Ends the connection at once, with a RST to the peer.
    pub fn abort(&mut self) {
        if !matches!(self.state, State::SynSent | State::TimeWait | State::Closed) {
            self.reset = Some(self.usable_seq());
        }
        self.finish(End::Aborted);
    }

    /// Sets whether Nagle's algorithm is off.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.config.nodelay = nodelay;
    }

    /// A segment with data has entered the machine's own queue.
    pub fn enter_queue(&mut self) {
        self.queued += 1;
    }

    /// A segment has left that queue, sent or dropped.
    pub fn leave_queue(&mut self) {
        self.queued = self.queued.saturating_sub(1);
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }

    /// How it ended, once it is in [`State::TimeWait`] or [`State::Closed`].
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Whether the peer's FIN and all data before it have arrived. Some data may still have to be read.
    pub fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Number of sequence numbers in flight, as far as this side knows.
    pub fn flight(&self) -> u32 {
        self.next.wrapping_sub(self.una)
    }

    /// The congestion window, bytes.
    #[cfg(test)]
    pub fn congestion_window(&self) -> u32 {
        self.congestion.window()
    }

    /// The window at which slow start ends, bytes; `u32::MAX` before the first loss.
    #[cfg(test)]
    pub fn slow_start_threshold(&self) -> u32 {
        self.congestion.threshold()
    }

    /// The smoothed round trip, once one was measured.
    #[cfg(test)]
    pub fn round_trip(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// The current retransmission timeout.
    pub fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// The next sequence number expected from the peer.
    pub fn expected(&self) -> u32 {
        self.input.next()
    }

    /// Whether an acknowledgement must be sent at once.
    pub fn has_ack_due(&self) -> bool {
        self.ack_due
    }

    /// Counts of what it has done.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How long it has been in slow start and in congestion avoidance until `now`.
    pub fn phase_times(&self, now: Instant) -> PhaseTimes {
        self.phases.until(now)
    }

    /// Number of pieces of received data.
    #[cfg(test)]
    pub(super) fn buffered_pieces(&self) -> usize {
        self.input.pieces()
    }

    /// Whether reading has opened the window far enough that the peer should be told: by half the buffer, or
    /// by two segments if less than two were open.
    fn window_update_due(&self) -> bool {
        if !self.state.synchronised() || self.peer_closed {
            return false;
        }
        let open = ahead(self.input.next(), self.advertised);
        let opened = self.input.room().saturating_sub(open);
        let half = self.config.receive_buffer / 2;
        opened >= half || (open < 2 * self.mss && opened >= half.min(2 * self.mss))
    }

    /// Ends the connection. After an orderly end its data can be read for a while.
    pub(super) fn finish(&mut self, end: End) {
        self.state = State::Closed;
        self.end = Some(end);
        self.output.clear();
        if end != End::Done {
            self.input.clear();
        }
        self.ack_due = false;
        self.resend = false;
        self.probe = false;
        self.retry_at = None;
        self.ack_at = None;
        self.leave_at = None;
    }
}
