//! Pacing between interlay nodes (WINE, chapter 2).

use std::collections::VecDeque;
use std::net::IpAddr;

use wire::Instant;

use crate::{Frame, Header, Message, Packet, Probe};

/// The settings of pacing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Config {}

impl Config {
    /// As published.
    pub fn wine() -> Self {
        Self {}
    }
}

/// What pacing has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {}

/// What pacing asks of the layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// Give this frame to the MAC.
    Transmit {
        /// The frame, with this router's header.
        frame: Frame<P>,
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

/// The pacing of one router.
#[derive(Debug)]
pub struct Pace<P> {
    me: IpAddr,
    outputs: VecDeque<Output<P>>,
}

impl<P: Packet> Pace<P> {
    /// Pacing that knows no other interlay node yet; `me` is this router's address.
    pub fn new(me: IpAddr, _config: Config) -> Self {
        Self { me, outputs: VecDeque::new() }
    }

    /// A packet is to go to a neighbour: at once, or after those before it.
    pub fn enqueue(&mut self, _now: Instant, _header: &Header, packet: P, next: IpAddr) {
        let frame = Frame { interlay: Some(self.me), packet };
        self.outputs.push_back(Output::Transmit { frame, next });
    }

    /// The MAC has finished with a frame, so that it can take another.
    pub fn finished(&mut self, _now: Instant) {}

    /// A packet has come that passed interlay node `node` last.
    pub fn passed(&mut self, _now: Instant, _header: &Header, _node: IpAddr) {}

    /// A probe has come for this router.
    pub fn probe(&mut self, _now: Instant, _header: &Header, _probe: &Probe) {}

    /// An answer to a probe has come for this router.
    pub fn echo(&mut self, _now: Instant, _header: &Header, _echo: &Probe) {}

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
