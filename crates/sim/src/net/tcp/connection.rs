//! A connection: what it remembers, and what its user does with it.

use bytes::Bytes;
use wire::Instant;

use super::Config;
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
    config: Config,
    state: State,
    end: Option<End>,
    counters: Counters,
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
        let _ = (now, iss);
        Self { config, state: State::SynSent, end: None, counters: Counters::default() }
    }

    /// One that is being opened by a peer, whose first segment is this SYN.
    pub fn accept(config: Config, now: Instant, iss: u32, syn: &Segment) -> Self {
        let _ = syn;
        Self { state: State::SynReceived, ..Self::connect(config, now, iss) }
    }

    /// Takes a segment of the peer's.
    pub fn handle_segment(&mut self, now: Instant, segment: Segment) {
        let _ = (now, segment);
    }

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The next segment to be sent now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let _ = now;
        None
    }

    /// Takes as much off the front of `data` as there is room for, and says how much.
    pub fn write(&mut self, data: &mut Bytes) -> usize {
        let _ = data;
        0
    }

    /// How much [`write`](Self::write) would take; none once closed.
    pub fn writable(&self) -> usize {
        self.config.send_buffer as usize
    }

    /// The next piece of what was received in order, of at most `max` bytes.
    pub fn read(&mut self, max: usize) -> Option<Bytes> {
        let _ = max;
        None
    }

    /// How much there is to read.
    pub fn readable(&self) -> usize {
        0
    }

    /// Nothing more will be written: a FIN follows the data. The peer's data may still be read.
    pub fn close(&mut self) {}

    /// Ends it at once, with a RST to the peer.
    pub fn abort(&mut self) {}

    /// Whether Nagle's algorithm is off from now on.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.config.nodelay = nodelay;
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
        false
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}
