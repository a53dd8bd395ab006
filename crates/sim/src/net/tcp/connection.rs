//! A connection: what it remembers, and what its user does with it.

use bytes::Bytes;
use std::time::Duration;
use wire::Instant;

use super::Config;
use super::congestion::Congestion;
use super::receive_buffer::ReceiveBuffer;
use super::rtt::Rtt;
use super::send_buffer::SendBuffer;
use super::seq::ahead;
use crate::net::Segment;

/// One side of a TCP connection.
///
/// Methods are of four kinds. *Input:* [`handle_segment`](Self::handle_segment) and
/// [`handle_timeout`](Self::handle_timeout). *Commands:* [`write`](Self::write), [`read`](Self::read),
/// [`close`](Self::close), [`abort`](Self::abort). *Output:*
/// [`poll_transmit`](Self::poll_transmit), to be called until it gives `None` after every input and
/// command, at the same moment, and then [`poll_timeout`](Self::poll_timeout). *Questions:* the rest.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) config: Config,
    pub(super) state: State,
    pub(super) end: Option<End>,
    pub(super) counters: Counters,
    /// Largest payload that both sides want.
    pub(super) mss: u32,

    /// Our first sequence number: that of our SYN.
    pub(super) iss: u32,
    /// First one that is not acknowledged.
    pub(super) una: u32,
    /// The next to be sent; goes back to `una` when the retransmission timer runs out.
    pub(super) next: u32,
    /// The one after the highest ever sent.
    pub(super) sent: u32,
    /// How much after `una` the peer takes, the most it ever took, and by which segment we know
    /// (RFC 9293: SND.WL1 and SND.WL2).
    pub(super) window: u32,
    pub(super) window_max: u32,
    pub(super) window_seq: u32,
    pub(super) window_ack: u32,
    /// Data from `una` on, or from the byte after the SYN as long as that is not acknowledged.
    pub(super) output: SendBuffer,
    /// A FIN is to follow the data.
    pub(super) fin_wanted: bool,
    pub(super) congestion: Congestion,
    pub(super) rtt: Rtt,
    /// The segment at `una` is to be sent again at once.
    pub(super) resend: bool,
    /// Something is to be sent although the peer's window is too small.
    pub(super) probe: bool,
    /// How often the window was probed since it closed.
    pub(super) probes: u32,
    /// How often something was sent again since the peer's last answer.
    pub(super) tries: u32,
    /// Our SYN had to be sent again.
    pub(super) syn_was_lost: bool,
    pub(super) last_sent: Instant,
    /// Segments with data that have not left the machine's own queue.
    pub(super) queued: u32,
    /// A RST with this sequence number is to be sent.
    pub(super) reset: Option<u32>,

    pub(super) input: ReceiveBuffer,
    /// The peer's first sequence number.
    pub(super) irs: u32,
    /// Sequence number after all that we have said we would take.
    pub(super) advertised: u32,
    /// Sequence number of the peer's FIN, once one came.
    pub(super) fin_at: Option<u32>,
    pub(super) peer_closed: bool,
    /// An acknowledgement is to be sent at once.
    pub(super) ack_due: bool,
    /// Segments that are not acknowledged yet.
    pub(super) unacked: u32,
    /// What comes in order is left unread until it is so much, and not acknowledged before it is read, or
    /// before that has waited long enough.
    pub(super) gathers: usize,

    /// When to send again what is not acknowledged, or to probe the window.
    pub(super) retry_at: Option<Instant>,
    /// When to acknowledge what is not acknowledged yet.
    pub(super) ack_at: Option<Instant>,
    /// When to stop waiting for the peer: in FIN-WAIT-2, TIME-WAIT, and for the last read.
    pub(super) leave_at: Option<Instant>,
}

/// The states of RFC 9293, section 3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A SYN has been sent.
    SynSent,
    /// SYNs have gone both ways, ours is not acknowledged.
    SynReceived,
    /// Data may flow both ways.
    Established,
    /// We have closed; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged, the peer may still send.
    FinWait2,
    /// The peer has closed, we may still send.
    CloseWait,
    /// Both have closed at the same time; our FIN is not acknowledged.
    Closing,
    /// The peer has closed, then we; our FIN is not acknowledged.
    LastAck,
    /// Both have closed; a repeated FIN is still answered.
    TimeWait,
    /// Over; [`Connection::end`] says how.
    Closed,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both sides have closed, and all data has been acknowledged.
    Done,
    /// Nobody listens there: a RST answered our SYN.
    Refused,
    /// The peer has reset it.
    Reset,
    /// The peer has not answered for too long.
    TimedOut,
    /// It has been aborted on this side.
    Aborted,
}

/// What a connection has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments sent, of any kind.
    pub segments: u64,
    /// Segments with data, SYN or FIN that had been sent before.
    pub retransmitted: u64,
    /// How often the retransmission timer ran out.
    pub timeouts: u64,
    /// How often three duplicate acknowledgements started a fast recovery.
    pub recoveries: u64,
}

impl Connection {
    /// One that is being opened from here; `iss` is its first sequence number.
    pub fn connect(config: Config, now: Instant, iss: u32) -> Self {
        let mss = u32::from(config.mss);
        let first = iss.wrapping_add(1);
        Self {
            state: State::SynSent,
            end: None,
            counters: Counters::default(),
            mss,
            iss,
            una: iss,
            next: iss,
            sent: iss,
            window: 0,
            window_max: 0,
            window_seq: 0,
            window_ack: first,
            output: SendBuffer::new(config.send_buffer),
            fin_wanted: false,
            congestion: Congestion::new(mss, config.initial_window, iss, config.recovery),
            rtt: Rtt::new(&config),
            resend: false,
            probe: false,
            probes: 0,
            tries: 0,
            syn_was_lost: false,
            last_sent: now,
            queued: 0,
            reset: None,
            input: ReceiveBuffer::new(config.receive_buffer, 0),
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

    /// One that is being opened by a peer, whose first segment is this SYN.
    pub fn accept(config: Config, now: Instant, iss: u32, syn: &Segment) -> Self {
        let mut it = Self { state: State::SynReceived, ..Self::connect(config, now, iss) };
        it.meet(syn);
        it
    }

    /// Takes as much off the front of `data` as there is room for, and says how much.
    pub fn write(&mut self, data: &mut Bytes) -> usize {
        if self.writable() == 0 { 0 } else { self.output.push(data) }
    }

    /// How much [`write`](Self::write) would take; none once closed.
    pub fn writable(&self) -> usize {
        if self.fin_wanted || self.end.is_some() { 0 } else { self.output.room() }
    }

    /// The next piece of what was received in order, of at most `max` bytes.
    pub fn read(&mut self, max: usize) -> Option<Bytes> {
        let piece = self.input.read(max)?;
        // What its reader had let gather (Linux: tcp_cleanup_rbuf).
        let gathered = std::mem::take(&mut self.gathers) > 0;
        self.ack_due |= self.window_update_due() || (gathered && self.owes_ack());
        Some(piece)
    }

    /// Until the next read, less than so much counts as nothing to read.
    pub fn gather(&mut self, bytes: usize) {
        self.gathers = bytes;
    }

    /// Whether so much is there that it is worth reading.
    pub fn is_readable(&self) -> bool {
        self.readable() >= self.gathers.max(1)
    }

    /// Whether so many segments have come that they are to be acknowledged.
    pub(super) fn owes_ack(&self) -> bool {
        self.unacked >= self.config.delayed_ack
    }

    /// How much there is to read.
    pub fn readable(&self) -> usize {
        self.input.len() as usize
    }

    /// Nothing more will be written: a FIN follows the data. The peer's data may still be read.
    pub fn close(&mut self) {
        self.fin_wanted = true;
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        };
    }

    /// Ends it at once, with a RST to the peer.
    pub fn abort(&mut self) {
        if !matches!(self.state, State::SynSent | State::TimeWait | State::Closed) {
            self.reset = Some(self.usable_seq());
        }
        self.finish(End::Aborted);
    }

    /// Whether Nagle's algorithm is off from now on.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.config.nodelay = nodelay;
    }

    /// A segment with data waits in the machine's own queue.
    pub fn enter_queue(&mut self) {
        self.queued += 1;
    }

    /// One of them is gone, sent or not.
    pub fn leave_queue(&mut self) {
        self.queued = self.queued.saturating_sub(1);
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// How it ended, once it is over: in [`State::TimeWait`] or [`State::Closed`].
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Whether the peer's FIN is here, with all data before it. Some may still have to be read.
    pub fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// How many sequence numbers are on their way, as far as is known.
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

    /// The retransmission timeout now.
    pub fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// The next sequence number that is expected of the peer.
    pub fn expected(&self) -> u32 {
        self.input.next()
    }

    /// Whether an acknowledgement waits to be fetched.
    pub fn has_ack_due(&self) -> bool {
        self.ack_due
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How many pieces of received data there are.
    #[cfg(test)]
    pub(super) fn buffered_pieces(&self) -> usize {
        self.input.pieces()
    }

    /// Whether what has been read opened the window so far that the peer should know: by half of it, or
    /// by two segments where no more than that was open.
    fn window_update_due(&self) -> bool {
        if !self.synchronised() || self.peer_closed {
            return false;
        }
        let open = ahead(self.input.next(), self.advertised);
        let opened = self.input.room().saturating_sub(open);
        let half = self.config.receive_buffer / 2;
        opened >= half || (open < 2 * self.mss && opened >= half.min(2 * self.mss))
    }

    /// Whether both sides know each other's sequence numbers, and it is not over.
    pub(super) fn synchronised(&self) -> bool {
        !matches!(self.state, State::SynSent | State::SynReceived | State::Closed)
    }

    /// It is over. Data that came before an orderly end can be read for a while.
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
