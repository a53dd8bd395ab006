//! All that belongs to one station: receiver, turn, queue, and what it has on the air.

use crate::chance::Chance;
use crate::contention::{Contention, Rules};
use crate::output::{ControlFrame, Destination, Frame, Station};
use crate::packets::PacketId;
use crate::physics::Speed;
use crate::receiver::Receiver;
use crate::report::Report;
use std::collections::VecDeque;
use wire::Instant;

/// Sequence numbers have 12 bits (sequence control field).
const SEQUENCE_MASK: u64 = 0xfff;

/// One station.
#[derive(Clone, Debug)]
pub struct Transceiver {
    pub receiver: Receiver,
    pub contention: Contention,
    pub chance: Chance,
    pub report: Report,
    /// What it sends at this moment.
    pub on_air: Option<OnAir>,
    /// What it owes a SIFS after what it received.
    pub owes: Option<Answer>,
    /// What it waits for while its answer timer runs.
    pub awaits: Awaited,
    /// The packet that it is working on.
    pub current: Option<Current>,
    queue: VecDeque<PacketId>,
    /// How many packets it has begun to work on.
    begun: u64,
}

/// A transmission.
#[derive(Clone, Copy, Debug)]
pub enum OnAir {
    /// Of a packet.
    Data { frame: Frame, packet: PacketId, serial: u64 },
    /// Of a control frame.
    Control(ControlFrame),
}

impl OnAir {
    /// At which of the channel's two rates it goes.
    pub fn speed(&self) -> Speed {
        match self {
            Self::Data { frame: Frame { to: Destination::Station(_), .. }, .. } => Speed::Data,
            Self::Data { .. } | Self::Control(_) => Speed::Basic,
        }
    }
}

/// What a station sends without regard to the medium.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// An ACK for a data frame.
    Ack { to: Station },
    /// A CTS for an RTS that reserves the medium until then.
    Cts { to: Station, until: Instant },
    /// The packet that a CTS was for.
    Data,
}

/// What a station waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    Ack,
    Cts,
}

/// A packet that its station is working on: it waits for its turn, is on the air, or waits for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Current {
    pub packet: PacketId,
    /// Counted by the station from 1.
    pub serial: u64,
    /// How often it has been on the air.
    pub tries: u8,
    /// How often it, or an RTS for it, has failed since a CTS came last.
    pub short_fails: u8,
    /// How often it has failed though it was announced.
    pub long_fails: u8,
}

impl Current {
    pub fn sequence(&self) -> u16 {
        (self.serial & SEQUENCE_MASK) as u16
    }
}

impl Transceiver {
    pub fn new(chance: Chance, rules: Rules, queue_frames_max: usize) -> Self {
        Self {
            receiver: Receiver::default(),
            contention: Contention::new(rules),
            chance,
            report: Report::default(),
            on_air: None,
            owes: None,
            awaits: Awaited::Ack,
            current: None,
            queue: VecDeque::with_capacity(queue_frames_max),
            begun: 0,
        }
    }

    /// Puts a packet behind the others, unless so many wait already; says whether it did.
    pub fn enqueue(&mut self, packet: PacketId, frames_max: usize) -> bool {
        let fits = self.current.is_none() || self.queue.len() < frames_max;
        if fits {
            self.queue.push_back(packet);
        }
        fits
    }

    /// Begins to work on the next packet, if it is not working on one and there is one; says whether
    /// it did.
    pub fn next(&mut self, now: Instant) -> bool {
        if self.current.is_some() {
            return false;
        }
        let Some(packet) = self.queue.pop_front() else { return false };
        self.begun += 1;
        let serial = self.begun;
        self.current = Some(Current { packet, serial, tries: 0, short_fails: 0, long_fails: 0 });
        self.contention.want(now, &mut self.chance);
        true
    }

    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.queue.capacity()
    }
}
