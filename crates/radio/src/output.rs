//! The words at the door: stations, frames, and what goes in and comes out.

use crate::links::Link;
use crate::power;
use crate::rate::Rate;
use std::time::Duration;
use wire::Instant;

/// A station: its place in [`Links`](crate::Links), from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Station(pub u16);

/// Whom a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// One station, which acknowledges it.
    Station(Station),
    /// All that hear it; nobody acknowledges it.
    Broadcast,
}

/// What the driver tells the medium.
#[derive(Clone, Debug)]
pub enum Input<F> {
    /// A station's network layer has a packet to send.
    Send {
        /// The station.
        from: Station,
        /// Whom it is for.
        to: Destination,
        /// Length of the network layer's packet, in bytes.
        bytes: u32,
        /// The packet itself, or a word for it; the medium does not look into it.
        payload: F,
    },
    /// From now on `to` gets this of the signals of `from`, or nothing: stations move, links come and
    /// go. If `from` is sending, what it sends ends as it began.
    Link {
        /// The sender.
        from: Station,
        /// Who hears it.
        to: Station,
        /// How well; `None` if not at all.
        link: Option<Link>,
    },
}

/// What the medium tells the driver.
#[derive(Debug)]
pub enum Output<'a, F> {
    /// A data frame's transmission ended.
    Heard {
        /// What was sent.
        frame: Frame,
        /// What it carried.
        payload: &'a F,
        /// Those that received it, in order of their numbers: the addressee if it did, and whoever
        /// else did. May be empty.
        by: &'a [Reception],
    },
    /// The transmission of an ACK, an RTS or a CTS ended.
    HeardControl {
        /// What was sent.
        frame: ControlFrame,
        /// Those that received it, in order of their numbers; always new to them. May be empty.
        by: &'a [Reception],
    },
    /// The sender is done with a packet. Every packet comes back so, once.
    Done {
        /// The sender.
        from: Station,
        /// Whom it was for.
        to: Destination,
        /// What was given in.
        payload: F,
        /// When it was done.
        at: Instant,
        /// How it went.
        outcome: Outcome,
        /// How often it was on the air; RTS do not count.
        tries: u8,
    },
}

/// One transmission of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The sender.
    pub from: Station,
    /// Whom it is for.
    pub to: Destination,
    /// Length of the network layer's packet in it, in bytes.
    pub bytes: u32,
    /// How fast it was sent.
    pub rate: Rate,
    /// 12 bits, counted by each sender; the same for all tries of a packet.
    pub sequence: u16,
    /// This is not the first try.
    pub retry: bool,
    /// When its preamble began.
    pub began: Instant,
    /// When its last bit ended.
    pub ended: Instant,
}

/// What a control frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// A data frame arrived.
    Ack,
    /// A data frame is to come.
    Rts,
    /// It may come.
    Cts,
}

/// One transmission of an ACK, an RTS or a CTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ControlFrame {
    /// Which of them.
    pub kind: Control,
    /// The sender. ACK and CTS do not carry it.
    pub from: Station,
    /// Whom it is for.
    pub to: Station,
    /// For how long after its end it reserves the medium (the Duration field).
    pub reserves: Duration,
    /// How fast it was sent.
    pub rate: Rate,
    /// When its preamble began.
    pub began: Instant,
    /// When its last bit ended.
    pub ended: Instant,
}

/// One station received a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reception {
    /// Who received it.
    pub by: Station,
    /// How strongly, in attowatts (10⁻¹⁸ W).
    pub power: u64,
    /// Noise in the receiver, and the most interference that the frame met, in attowatts.
    pub noise: u64,
    /// False if this station already got this very frame in an earlier try: what an addressee's
    /// duplicate filter does, but for overhearers too.
    pub is_new: bool,
}

impl Reception {
    /// Received power in dBm.
    pub fn power_dbm(&self) -> f64 {
        power::to_dbm(self.power)
    }

    /// Noise and interference in dBm.
    pub fn noise_dbm(&self) -> f64 {
        power::to_dbm(self.noise)
    }

    /// Power above noise and interference, in dB.
    pub fn snr_db(&self) -> f64 {
        self.power_dbm() - self.noise_dbm()
    }
}

/// How sending went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The addressee acknowledged it.
    Acked,
    /// It was sent once; nobody acknowledges a broadcast.
    Broadcast,
    /// No try was answered, and there are no more. The addressee may have got it all the same.
    GivenUp,
    /// It was never sent: the station's queue was full.
    QueueFull,
}
