//! Frames as a monitor interface shows them.

use std::time::Duration;

use radio::{Config, ControlFrame, Destination, Frame, Phy, Rate, Reception, Station};
use wire::Instant;
use wire::capture::ieee80211::{self, Data, Mac};
use wire::capture::radiotap::{self, Radiotap};

use crate::address;

/// The channel that we say it is: 1.
const CHANNEL_MHZ: u16 = 2412;

/// One frame, made once and shown to all who heard it; the signal alone differs.
#[derive(Debug)]
pub struct Monitor {
    shown: Vec<u8>,
    phy: Phy,
    reserved_for_ack: Duration,
}

impl Monitor {
    /// For the frames of such a channel.
    pub fn new(config: &Config) -> Self {
        let (phy, reserved_for_ack) = (config.phy, config.reserved_for_ack());
        Self { shown: Vec::new(), phy, reserved_for_ack }
    }

    /// Shows a data frame that carries a packet to this link-layer address.
    pub fn data(&mut self, frame: &Frame, to: Mac, ethertype: [u8; 2], packet: &[u8]) {
        let duration_us = match frame.to {
            Destination::Station(_) => self.reserved_for_ack.as_micros() as u16,
            Destination::Broadcast => 0,
        };
        let header = Data {
            to,
            from: mac(frame.from),
            bssid: address::BSSID,
            duration_us,
            sequence: frame.sequence,
            retry: frame.retry,
        };
        self.begin(frame.began, frame.rate);
        self.shown.extend_from_slice(&header.to_bytes(ethertype));
        self.shown.extend_from_slice(packet);
    }

    /// Shows an acknowledgement.
    pub fn ack(&mut self, frame: &ControlFrame) {
        self.begin(frame.began, frame.rate);
        self.shown.extend_from_slice(&ieee80211::ack(mac(frame.to)));
    }

    /// The frame as one receiver got it.
    pub fn shown_to(&mut self, reception: &Reception) -> &[u8] {
        self.shown[radiotap::SIGNAL_AT] = (reception.power_dbm() as i8).to_le_bytes()[0];
        &self.shown
    }

    /// Radiotap's time is that of the first bit behind preamble and header.
    fn begin(&mut self, began: Instant, rate: Rate) {
        let radiotap = Radiotap {
            tsft_us: (began + self.phy.preamble(rate)).as_nanos() / 1000,
            rate: rate.units_of_500_kbps(),
            channel_mhz: CHANNEL_MHZ,
            signal_dbm: 0,
        };
        self.shown.clear();
        self.shown.extend_from_slice(&radiotap.to_bytes());
    }
}

fn mac(station: Station) -> Mac {
    address::mac(usize::from(station.0))
}
