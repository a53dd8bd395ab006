//! The interface of the medium: stations, frames, inputs and outputs.

use crate::links::Link;
use crate::power;
use crate::rate::Rate;
use std::time::Duration;
use wire::Instant;

/// A station: its index in [`Links`](crate::Links), from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Station(pub u16);

/// The addressee of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// One station, which acknowledges it.
    Station(Station),
    /// All stations in range; none of them acknowledges it.
    Broadcast,
}

/// An event that the driver reports to the medium.
#[derive(Clone, Debug)]
pub enum Input<F> {
    /// A station's network layer has a packet to send.
    Send {
        /// The station.
        from: Station,
        /// The addressee.
        to: Destination,
        /// Length of the network layer's packet, in bytes.
        bytes: u32,
        /// The packet itself, or a handle of it; the medium does not look into it.
        payload: F,
    },
    /// Replaces or removes the link between two stations, which may move. A frame that `from` is
    /// sending now is completed over the old link.
    Link {
        /// The sender.
        from: Station,
        /// The receiver.
        to: Station,
        /// The new link; `None` removes it.
        link: Option<Link>,
    },
}

/// An event that the medium reports to the driver.
#[derive(Debug)]
pub enum Output<'a, F> {
    /// A data frame's transmission ended.
    Heard {
        /// The frame.
        frame: Frame,
        /// Its payload.
        payload: &'a F,
        /// The stations that received it, in order of their numbers: the addressee, if it did, and
        /// overhearing stations. May be empty.
        by: &'a [Reception],
    },
    /// The transmission of an ACK, an RTS or a CTS ended.
    HeardControl {
        /// The frame.
        frame: ControlFrame,
        /// The stations that received it, in order of their numbers; `is_new` is always true. May
        /// be empty.
        by: &'a [Reception],
    },
    /// The sender has finished with a packet. This is reported exactly once for every packet.
    Done {
        /// The sender.
        from: Station,
        /// The addressee.
        to: Destination,
        /// The payload from the input.
        payload: F,
        /// When it was finished.
        at: Instant,
        /// The result.
        outcome: Outcome,
        /// The number of its transmissions, without RTS.
        tries: u8,
    },
}

/// One transmission of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The sender.
    pub from: Station,
    /// The addressee.
    pub to: Destination,
    /// Length of the network layer's packet in it, in bytes.
    pub bytes: u32,
    /// The rate at which it was sent.
    pub rate: Rate,
    /// The sender's sequence number, 12 bits; the same for all tries of a packet.
    pub sequence: u16,
    /// Whether this is a retransmission.
    pub retry: bool,
    /// When its preamble began.
    pub began: Instant,
    /// When its last bit ended.
    pub ended: Instant,
}

/// The kinds of control frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// ACK: a data frame was received.
    Ack,
    /// RTS: announces a data frame.
    Rts,
    /// CTS: allows the data frame.
    Cts,
}

/// One transmission of an ACK, an RTS or a CTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ControlFrame {
    /// The kind.
    pub kind: Control,
    /// The sender. An ACK or a CTS on the air does not contain it.
    pub from: Station,
    /// The addressee.
    pub to: Station,
    /// How long it reserves the medium after its end (the Duration field).
    pub reserves: Duration,
    /// The rate at which it was sent.
    pub rate: Rate,
    /// When its preamble began.
    pub began: Instant,
    /// When its last bit ended.
    pub ended: Instant,
}

/// One station received a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reception {
    /// The station.
    pub by: Station,
    /// Received power in attowatts (10⁻¹⁸ W).
    pub power: u64,
    /// The receiver's noise plus the greatest interference during the frame, in attowatts.
    pub noise: u64,
    /// False if this station received an earlier try of the same frame. An addressee's duplicate
    /// filter does this; here it is done for overhearing stations too.
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

    /// The ratio of power to noise and interference, in dB.
    pub fn snr_db(&self) -> f64 {
        self.power_dbm() - self.noise_dbm()
    }
}

/// The result of sending a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The addressee acknowledged it.
    Acked,
    /// It was broadcast once; no station acknowledges a broadcast.
    Broadcast,
    /// No try was answered, and the retry limit is reached. The addressee may nevertheless have
    /// received it.
    GivenUp,
    /// It was never sent: the station's queue was full.
    QueueFull,
}
