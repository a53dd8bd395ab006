//! Shows each frame of a world to a tap, as stations' monitor interfaces would show it.

use std::fmt;

use radio::{Config, ControlFrame, Destination, Frame, Reception, Station};
use wire::Instant;
use wire::capture::ieee80211::Mac;

use crate::monitor::{Monitor, mac};
use crate::net::Packet;

/// The EtherType of IPv4, which all frames carry.
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
/// The broadcast MAC address.
const BROADCAST: Mac = [0xff; 6];

/// A viewer of frames.
pub trait Tap: fmt::Debug {
    /// A station has sent or received a frame whose last bit ended at `at`. `frame` is a radiotap header,
    /// then the frame without FCS.
    fn frame(&mut self, station: usize, at: Instant, frame: &[u8]);
}

/// A tap, and what builds the frames for it.
#[derive(Debug)]
pub(super) struct Watch {
    tap: Box<dyn Tap>,
    monitor: Monitor,
    packet: Vec<u8>,
}

impl Watch {
    /// A watch on a medium with this configuration.
    pub fn new(tap: Box<dyn Tap>, config: &Config) -> Self {
        Self { tap, monitor: Monitor::new(config), packet: Vec::new() }
    }

    /// Shows a data frame.
    pub fn data(&mut self, frame: &Frame, packet: &Packet, by: &[Reception]) {
        let to = match frame.to {
            Destination::Station(to) => mac(usize::from(to.0)),
            Destination::Broadcast => BROADCAST,
        };
        self.packet.clear();
        packet.write(&mut self.packet);
        self.monitor.data(frame, to, ETHERTYPE_IPV4, &self.packet);
        self.show(frame.from, frame.ended, by);
    }

    /// Shows an ACK, an RTS or a CTS.
    pub fn control(&mut self, frame: &ControlFrame, by: &[Reception]) {
        self.monitor.control(frame);
        self.show(frame.from, frame.ended, by);
    }

    fn show(&mut self, from: Station, at: Instant, by: &[Reception]) {
        self.tap.frame(usize::from(from.0), at, self.monitor.shown_to_sender());
        for reception in by {
            self.tap.frame(usize::from(reception.by.0), at, self.monitor.shown_to(reception));
        }
    }
}
