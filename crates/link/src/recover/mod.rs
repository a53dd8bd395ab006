//! Local recovery of lost TCP packets (InPCM, section 3).

use std::collections::VecDeque;
use std::net::IpAddr;

use wire::Instant;

use crate::{Header, Message, Next, Notice, Packet, Verdict};

/// The settings of recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Config {}

impl Config {
    /// As published.
    pub fn inpcm() -> Self {
        Self {}
    }
}

/// What recovery has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {}

/// What recovery asks of the layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// Send this packet to this neighbour.
    Send {
        /// The packet.
        packet: P,
        /// The neighbour.
        next: IpAddr,
    },
    /// Send this message.
    Originate {
        /// Destination.
        to: IpAddr,
        /// The message.
        message: Message,
    },
}

/// The recovery of one router.
#[derive(Debug)]
pub struct Recover<P> {
    outputs: VecDeque<Output<P>>,
}

impl<P: Packet> Recover<P> {
    /// Recovery that has seen nothing; `me` is this router's address.
    pub fn new(_me: IpAddr, _config: Config) -> Self {
        Self { outputs: VecDeque::new() }
    }

    /// A packet leaves this router: its own, or one that it forwards.
    pub fn outgoing(&mut self, _now: Instant, _header: &Header, packet: P, next: Next) {
        self.outputs.push_back(Output::Send { packet, next: next.hop });
    }

    /// The MAC has finished with a packet to this neighbour.
    pub fn verdict(
        &mut self,
        _now: Instant,
        _header: &Header,
        _packet: P,
        _next: IpAddr,
        _verdict: Verdict,
    ) {
    }

    /// A neighbour was heard sending a packet to another router.
    pub fn overheard(&mut self, _now: Instant, _header: &Header, _from: IpAddr) {}

    /// Another router has sent a packet again.
    pub fn notice(&mut self, _now: Instant, _notice: &Notice) {}

    /// Performs what is due.
    pub fn handle_timeout(&mut self, _now: Instant) {}

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Takes one output; drain until `None`.
    pub fn poll_output(&mut self) -> Option<Output<P>> {
        self.outputs.pop_front()
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        Counters::default()
    }
}
