//! The state of one station: receiver, channel access, queue, and the frame on the air.

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
    /// The frame that it is sending.
    pub on_air: Option<OnAir>,
    /// The response that it must send a SIFS after the frame received.
    pub owes: Option<Answer>,
    /// The response that it waits for while its answer timer runs.
    pub awaits: Awaited,
    /// The packet that it is handling.
    pub current: Option<Current>,
    queue: VecDeque<PacketId>,
    /// The number of packets that it has begun to handle.
    begun: u64,
}

/// A transmission.
#[derive(Clone, Copy, Debug)]
pub enum OnAir {
    /// A data frame, with a packet.
    Data { frame: Frame, packet: PacketId, serial: u64 },
    /// A control frame.
    Control(ControlFrame),
}

impl OnAir {
    /// Which of the channel's two rates it uses.
    pub fn speed(&self) -> Speed {
        match self {
            Self::Data { frame: Frame { to: Destination::Station(_), .. }, .. } => Speed::Data,
            Self::Data { .. } | Self::Control(_) => Speed::Basic,
        }
    }
}

/// A frame that a station sends without carrier sense.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// An ACK for a data frame.
    Ack { to: Station },
    /// A CTS for an RTS, which reserves the medium until then.
    Cts { to: Station, until: Instant },
    /// The data frame that a CTS allows.
    Data,
}

/// The response that a station waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    Ack,
    Cts,
}

/// The packet that a station is handling: it waits for channel access, is being sent, or waits for
/// its response.
#[derive(Clone, Copy, Debug)]
pub struct Current {
    pub packet: PacketId,
    /// The station's serial number of the packet, from 1.
    pub serial: u64,
    /// The number of its transmissions.
    pub tries: u8,
    /// The number of failures of it, or of an RTS for it, since the last CTS.
    pub short_fails: u8,
    /// The number of failures of it after an RTS.
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

    /// Queues a packet; returns false if the queue is full.
    pub fn enqueue(&mut self, packet: PacketId, frames_max: usize) -> bool {
        let fits = self.current.is_none() || self.queue.len() < frames_max;
        if fits {
            self.queue.push_back(packet);
        }
        fits
    }

    /// Begins to handle the next packet, if the station is free and there is one; returns whether
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
