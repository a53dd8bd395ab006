//! The two engines between IP and the MAC.

use std::collections::VecDeque;
use std::net::IpAddr;

use wire::Instant;

use crate::pace::{self, Pace};
use crate::recover::{self, Recover};
use crate::{Frame, Header, Kind, Message, Next, Outcome, Packet, Verdict};

/// The settings of a router's link plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The router's address in the mesh.
    pub me: IpAddr,
    /// Pacing; `None`: off.
    pub pace: Option<pace::Config>,
    /// Recovery; `None`: off.
    pub recover: Option<recover::Config>,
}

/// What the driver is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// Give this to the MAC, and report its verdict.
    Transmit {
        /// The frame.
        frame: Frame<P>,
        /// The neighbour.
        next: IpAddr,
    },
    /// Give this to IP: it is for this router, or to be forwarded.
    Deliver(P),
    /// Send this message in a packet to this address, through [`Layer::send`] like all packets.
    Originate {
        /// Destination of the packet.
        to: IpAddr,
        /// The message.
        message: Message,
    },
}

/// What both engines have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pacing's.
    pub pace: pace::Counters,
    /// Recovery's.
    pub recover: recover::Counters,
}

/// A router's link plane.
///
/// After each input, the driver drains [`poll_output`](Self::poll_output) at the same moment, then asks
/// [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct Layer<P> {
    me: IpAddr,
    pace: Option<Pace<P>>,
    recover: Option<Recover<P>>,
    outputs: VecDeque<Output<P>>,
}

impl<P: Packet> Layer<P> {
    /// A link plane that has seen nothing.
    pub fn new(config: Config) -> Self {
        Self {
            me: config.me,
            pace: config.pace.map(|it| Pace::new(config.me, it)),
            recover: config.recover.map(|it| Recover::new(config.me, it)),
            outputs: VecDeque::new(),
        }
    }

    /// IP sends or forwards a packet to a neighbour.
    pub fn send(&mut self, now: Instant, packet: P, next: Next) {
        let header = packet.header();
        match &mut self.recover {
            Some(recover) => recover.outgoing(now, &header, packet, next),
            None => self.enqueue(now, &header, packet, next.hop),
        }
        self.settle(now);
    }

    /// The MAC has received a frame for this router, from this neighbour.
    pub fn receive(&mut self, now: Instant, frame: Frame<P>, from: IpAddr) {
        let Frame { interlay, packet } = frame;
        let header = packet.header();
        if let (Some(pace), Some(interlay)) = (&mut self.pace, interlay) {
            pace.passed(now, &header, interlay, from);
        }
        if let Kind::Message(message) = header.kind {
            return self.take(now, message, &header, packet, from);
        }
        let pass = self.recover.as_mut().is_none_or(|it| it.incoming(now, &header));
        if pass {
            self.outputs.push_back(Output::Deliver(packet));
        }
        self.settle(now);
    }

    /// A packet that came from the MAC has gone on by another interface. The interlay node before this one is told that
    /// this packet is no longer under way.
    pub fn gone(&mut self, now: Instant, packet: &P) {
        if let Some((pace, interlay)) = self.pace.as_mut().zip(packet.interlay()) {
            pace.gone(now, interlay);
        }
        self.settle(now);
    }

    /// The MAC has received a frame that was for another router.
    pub fn overhear(&mut self, now: Instant, packet: &P, from: IpAddr) {
        if let Some(recover) = &mut self.recover {
            recover.overheard(now, &packet.header(), from);
        }
        self.settle(now);
    }

    /// The MAC has finished with a frame to this neighbour.
    pub fn verdict(&mut self, now: Instant, frame: Frame<P>, next: IpAddr, verdict: Verdict) {
        if let Some(pace) = &mut self.pace {
            pace.finished(now);
        }
        if let Some(recover) = &mut self.recover {
            let header = frame.packet.header();
            recover.verdict(now, &header, frame.packet, next, verdict);
        }
        self.settle(now);
    }

    /// Performs what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(recover) = &mut self.recover {
            recover.handle_timeout(now);
        }
        if let Some(pace) = &mut self.pace {
            pace.handle_timeout(now);
        }
        self.settle(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let pace = self.pace.as_ref().and_then(Pace::poll_timeout);
        let recover = self.recover.as_ref().and_then(Recover::poll_timeout);
        pace.into_iter().chain(recover).min()
    }

    /// Takes one output; drain until `None`.
    pub fn poll_output(&mut self) -> Option<Output<P>> {
        self.outputs.pop_front()
    }

    /// What both engines have counted.
    pub fn counters(&self) -> Counters {
        Counters {
            pace: self.pace.as_ref().map(Pace::counters).unwrap_or_default(),
            recover: self.recover.as_ref().map(Recover::counters).unwrap_or_default(),
        }
    }

    /// Pacing, if it is on: its estimates.
    pub fn pace(&self) -> Option<&Pace<P>> {
        self.pace.as_ref()
    }

    /// Recovery, if it is on: its estimates.
    pub fn recover(&self) -> Option<&Recover<P>> {
        self.recover.as_ref()
    }

    /// A message has arrived, for this router or on its way.
    fn take(&mut self, now: Instant, message: Message, header: &Header, packet: P, from: IpAddr) {
        let is_mine = header.to.ip() == self.me;
        match message {
            Message::Notice(notice) => {
                if let Some(recover) = &mut self.recover {
                    recover.notice(now, &notice);
                }
            }
            Message::Probe(probe) if is_mine => {
                if let Some(pace) = &mut self.pace {
                    pace.probe(now, header, &probe, from);
                }
            }
            Message::Echo(echo) if is_mine => {
                if let Some(pace) = &mut self.pace {
                    pace.echo(now, header, &echo);
                }
            }
            Message::Probe(_) | Message::Echo(_) | Message::Left => {}
        }
        if !is_mine {
            self.outputs.push_back(Output::Deliver(packet));
        }
        self.settle(now);
    }

    fn enqueue(&mut self, now: Instant, header: &Header, packet: P, next: IpAddr) {
        match &mut self.pace {
            Some(pace) => pace.enqueue(now, header, packet, next),
            None => {
                let frame = Frame { interlay: packet.interlay(), packet };
                self.outputs.push_back(Output::Transmit { frame, next });
            }
        }
    }

    /// Passes what recovery sends to pacing, what pacing drops to recovery, and what both have for the driver to
    /// it.
    fn settle(&mut self, now: Instant) {
        self.settle_recovery(now);
        while let Some(output) = self.pace.as_mut().and_then(Pace::poll_output) {
            match output {
                pace::Output::Transmit { frame, next } => {
                    self.outputs.push_back(Output::Transmit { frame, next });
                }
                pace::Output::Originate { to, message } => {
                    self.outputs.push_back(Output::Originate { to, message });
                }
                pace::Output::Dropped { packet, next } => self.dropped(now, packet, next),
            }
        }
    }

    /// A packet has found pacing's queue full: for recovery this is as if the MAC's had been.
    fn dropped(&mut self, now: Instant, packet: P, next: IpAddr) {
        if let Some(recover) = &mut self.recover {
            let (header, outcome) = (packet.header(), Outcome::QueueFull);
            recover.verdict(now, &header, packet, next, Verdict { outcome, tries: 0 });
        }
        self.settle_recovery(now);
    }

    fn settle_recovery(&mut self, now: Instant) {
        while let Some(output) = self.recover.as_mut().and_then(Recover::poll_output) {
            match output {
                recover::Output::Send { packet, next } => {
                    let header = packet.header();
                    self.enqueue(now, &header, packet, next);
                }
                recover::Output::Originate { to, message } => {
                    self.outputs.push_back(Output::Originate { to, message });
                }
            }
        }
    }
}
