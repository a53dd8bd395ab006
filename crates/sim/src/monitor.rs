//! Frames as a station's monitor interface shows them: a radiotap header, then the frame without its FCS.
//!
//! *Who calls it:* the world if a tap watches it, and the lab's air. *What it never does:* write files.

use radio::{Config, Control, ControlFrame, Destination, Frame, Phy, Rate, Reception, Station};
use wire::Instant;
use wire::capture::ieee80211::{self, Data, Mac};
use wire::capture::radiotap::{self, Radiotap};

/// The BSSID of the ad hoc network.
pub const BSSID: Mac = [0x02, 0x68, 0x65, 0x61, 0x72, 0x00];

/// Centre frequency of the channel that radiotap headers name: channel 1, or 36 for 802.11a.
const CHANNEL_MHZ: u16 = 2412;
const CHANNEL_A_MHZ: u16 = 5180;
/// Signal strength with which a station's own frames are shown.
const OWN_DBM: i8 = 0;

/// One frame, built once and shown to each station that received it; only the signal strength differs.
#[derive(Debug)]
pub struct Monitor {
    shown: Vec<u8>,
    phy: Phy,
    reserved_for_ack_us: u16,
}

impl Monitor {
    /// A monitor for frames on a medium with this configuration.
    pub fn new(config: &Config) -> Self {
        let reserved_for_ack_us = config.reserved_for_ack().as_micros() as u16;
        Self { shown: Vec::new(), phy: config.phy, reserved_for_ack_us }
    }

    /// Shows a data frame that carries a packet to this link-layer address.
    pub fn data(&mut self, frame: &Frame, to: Mac, ethertype: [u8; 2], packet: &[u8]) {
        let duration_us = match frame.to {
            Destination::Station(_) => self.reserved_for_ack_us,
            Destination::Broadcast => 0,
        };
        let header = Data {
            to,
            from: mac(usize::from(frame.from.0)),
            bssid: BSSID,
            duration_us,
            sequence: frame.sequence,
            retry: frame.retry,
        };
        self.begin(frame.began, frame.rate);
        self.shown.extend_from_slice(&header.to_bytes(ethertype));
        self.shown.extend_from_slice(packet);
    }

    /// Shows an ACK, an RTS or a CTS.
    pub fn control(&mut self, frame: &ControlFrame) {
        let of = |station: Station| mac(usize::from(station.0));
        let (to, duration_us) = (of(frame.to), frame.reserves.as_micros() as u16);
        self.begin(frame.began, frame.rate);
        let shown = &mut self.shown;
        match frame.kind {
            Control::Ack => shown.extend_from_slice(&ieee80211::ack(to)),
            Control::Cts => shown.extend_from_slice(&ieee80211::cts(to, duration_us)),
            Control::Rts => {
                shown.extend_from_slice(&ieee80211::rts(to, of(frame.from), duration_us));
            }
        }
    }

    /// The frame as its sender's monitor interface shows it.
    pub fn shown_to_sender(&mut self) -> &[u8] {
        self.shown_with(OWN_DBM)
    }

    /// The frame as a receiver's monitor interface shows it.
    pub fn shown_to(&mut self, reception: &Reception) -> &[u8] {
        self.shown_with(reception.power_dbm() as i8)
    }

    fn shown_with(&mut self, signal_dbm: i8) -> &[u8] {
        self.shown[radiotap::SIGNAL_AT] = signal_dbm.to_le_bytes()[0];
        &self.shown
    }

    /// Radiotap's timestamp is that of the first bit after the preamble and header.
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
}

/// The MAC address of a router; routers are counted from 0.
pub fn mac(router: usize) -> Mac {
    let [.., high, low] = (router + 1).to_be_bytes();
    [0x02, 0x68, 0x65, 0x61, 0x72_u8.wrapping_add(high), low]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn addresses_differ_and_are_nobody_elses() {
        let mut macs: Vec<_> = (0..1000).map(mac).collect();
        assert_eq!(macs[0], [0x02, 0x68, 0x65, 0x61, 0x72, 1]);
        macs.push(BSSID);
        macs.sort_unstable();
        macs.dedup();
        assert_eq!(macs.len(), 1001);
    }

    #[test]
    fn control_frames_are_shown_behind_radiotap() {
        let mut monitor = Monitor::new(&Config::default());
        let frame = ControlFrame {
            kind: Control::Rts,
            from: Station(0),
            to: Station(1),
            reserves: Duration::from_micros(314),
            rate: Rate::Mbps1,
            began: Instant::from_nanos(8_000),
            ended: Instant::from_nanos(360_000),
        };
        monitor.control(&frame);
        let shown = monitor.shown_to_sender();
        // The long preamble and header take 192 µs.
        assert_eq!(shown[8..16], 200_u64.to_le_bytes());
        assert_eq!(shown[radiotap::LEN..], ieee80211::rts(mac(1), mac(0), 314));
    }
}
