//! Frames as each station's monitor interface shows them, for captures.
//!
//! *What this is:* a frame's bytes, made once, behind a radiotap header that differs by receiver in
//! nothing but the signal. *Who calls it:* the world, if somebody watches. *What it never does:* write
//! files: that is what a [`Tap`] is for.

use std::fmt;

use radio::{Config, Control, ControlFrame, Destination, Frame, Phy, Rate, Reception, Station};
use wire::Instant;
use wire::capture::ieee80211::{self, Data, Mac};
use wire::capture::radiotap::{self, Radiotap};

use crate::net::Packet;

/// The channels that we say it is: 1, or of 802.11a 36.
const CHANNEL_MHZ: u16 = 2412;
const CHANNEL_A_MHZ: u16 = 5180;
/// The ad hoc network's own address on the air.
const BSSID: Mac = [0x02, 0x68, 0x65, 0x61, 0x72, 0x00];
/// What the packets in frames are: IPv4.
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
/// What a station's own frames are shown with.
const OWN_DBM: i8 = 0;

/// Who is shown frames.
pub trait Tap: fmt::Debug {
    /// A station sent or received a frame, whose last bit ended at `at`: radiotap's header, then the
    /// frame without FCS.
    fn frame(&mut self, station: usize, at: Instant, frame: &[u8]);
}

/// A tap, and what it is shown.
#[derive(Debug)]
pub(super) struct Monitor {
    tap: Box<dyn Tap>,
    packet: Vec<u8>,
    shown: Vec<u8>,
    phy: Phy,
    reserved_us: u16,
}

impl Monitor {
    /// For the frames of such a channel.
    pub fn new(tap: Box<dyn Tap>, config: &Config) -> Self {
        let reserved_us = config.reserved_for_ack().as_micros() as u16;
        Self { tap, packet: Vec::new(), shown: Vec::new(), phy: config.phy, reserved_us }
    }

    /// Shows a data frame.
    pub fn data(&mut self, frame: &Frame, packet: &Packet, by: &[Reception]) {
        let (to, duration_us) = match frame.to {
            Destination::Station(to) => (mac(to), self.reserved_us),
            Destination::Broadcast => ([0xff; 6], 0),
        };
        let header = Data {
            to,
            from: mac(frame.from),
            bssid: BSSID,
            duration_us,
            sequence: frame.sequence,
            retry: frame.retry,
        };
        self.begin(frame.began, frame.rate);
        self.shown.extend_from_slice(&header.to_bytes(ETHERTYPE_IPV4));
        self.packet.clear();
        packet.write(&mut self.packet);
        self.shown.extend_from_slice(&self.packet);
        self.show(frame.from, frame.ended, by);
    }

    /// Shows an ACK, an RTS or a CTS.
    pub fn control(&mut self, frame: &ControlFrame, by: &[Reception]) {
        self.begin(frame.began, frame.rate);
        let (to, duration_us) = (mac(frame.to), frame.reserves.as_micros() as u16);
        let shown = &mut self.shown;
        match frame.kind {
            Control::Ack => shown.extend_from_slice(&ieee80211::ack(to)),
            Control::Cts => shown.extend_from_slice(&ieee80211::cts(to, duration_us)),
            Control::Rts => {
                shown.extend_from_slice(&ieee80211::rts(to, mac(frame.from), duration_us));
            }
        }
        self.show(frame.from, frame.ended, by);
    }

    /// Radiotap's time is that of the first bit behind preamble and header.
    fn begin(&mut self, began: Instant, rate: Rate) {
        let radiotap = Radiotap {
            tsft_us: (began + self.phy.preamble(rate)).as_nanos() / 1000,
            rate: rate.units_of_500_kbps(),
            channel_mhz: if self.phy == Phy::A { CHANNEL_A_MHZ } else { CHANNEL_MHZ },
            signal_dbm: OWN_DBM,
        };
        self.shown.clear();
        self.shown.extend_from_slice(&radiotap.to_bytes());
    }

    fn show(&mut self, from: Station, at: Instant, by: &[Reception]) {
        self.tap.frame(usize::from(from.0), at, &self.shown);
        for reception in by {
            self.shown[radiotap::SIGNAL_AT] = (reception.power_dbm() as i8).to_le_bytes()[0];
            self.tap.frame(usize::from(reception.by.0), at, &self.shown);
        }
    }
}

/// A station's link-layer address, counted from 1.
fn mac(station: Station) -> Mac {
    let [high, low] = (station.0 + 1).to_be_bytes();
    [0x02, 0x68, 0x65, 0x61, 0x72_u8.wrapping_add(high), low]
}
