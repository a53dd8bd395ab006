//! Durations on one channel, from its PHY and its rates.

use crate::config::Config;
use crate::phy::Phy;
use crate::rate::Rate;
use std::time::Duration;

/// The widest contention window, in slots (aCWmax of all PHYs here).
pub const WINDOW_MAX: u32 = 1023;

/// LLC and SNAP header before the network layer's packet (IEEE 802.2; RFC 1042), in bytes.
const LLC_SNAP_BYTES: u32 = 8;
/// Header of a data frame with three addresses (data frame format), in bytes.
const MAC_HEADER_BYTES: u32 = 24;
/// Frame check sequence (general frame format), in bytes.
const FCS_BYTES: u32 = 4;
/// An ACK or a CTS frame with its FCS (ACK and CTS frame formats), in bytes.
pub const ACK_BYTES: u32 = 14;
/// An RTS frame with its FCS (RTS frame format), in bytes.
pub const RTS_BYTES: u32 = 20;

/// Length of the data frame that carries a packet of this length, in bytes.
pub fn data_bytes(packet_bytes: u32) -> u32 {
    packet_bytes.saturating_add(LLC_SNAP_BYTES + MAC_HEADER_BYTES + FCS_BYTES)
}

/// The durations on one channel.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub phy: Phy,
    pub data_rate: Rate,
    pub basic_rate: Rate,
    /// The space between a frame and its response.
    pub sifs: Duration,
    /// The airtime of an ACK or a CTS.
    pub ack: Duration,
    /// The airtime of an RTS.
    pub rts: Duration,
    /// After the end of its frame, when a sender that is not receiving gives up waiting for the
    /// response: a SIFS, a slot, and the time until a frame's header is received (DCF: ACK
    /// procedure, CTS procedure).
    pub answer_timeout: Duration,
    /// After the end of an RTS, when a reservation by it ends unless a reception has begun
    /// (NAVTimeout).
    pub nav_timeout: Duration,
}

impl Timing {
    pub fn new(config: &Config) -> Self {
        let Config { phy, data_rate, basic_rate, .. } = *config;
        let (sifs, slot) = (phy.sifs(), phy.slot());
        let (ack, preamble) = (phy.airtime(ACK_BYTES, basic_rate), phy.preamble(basic_rate));
        Self {
            phy,
            data_rate,
            basic_rate,
            sifs,
            ack,
            rts: phy.airtime(RTS_BYTES, basic_rate),
            answer_timeout: sifs + slot + preamble,
            nav_timeout: 2 * sifs + ack + preamble + 2 * slot,
        }
    }

    /// The airtime of a data frame that carries a packet of this length.
    pub fn data(&self, packet_bytes: u32, rate: Rate) -> Duration {
        self.phy.airtime(data_bytes(packet_bytes), rate)
    }

    /// How long a data frame to one station reserves the medium after its end.
    pub fn reserved_by_data(&self) -> Duration {
        self.sifs + self.ack
    }

    /// How long an RTS reserves the medium after its end: for a CTS, the data frame, and its ACK.
    pub fn reserved_by_rts(&self, packet_bytes: u32) -> Duration {
        3 * self.sifs + 2 * self.ack + self.data(packet_bytes, self.data_rate)
    }
}

/// The waiting time after a failed reception: long enough for an ACK at the lowest mandatory rate,
/// which the station could not foresee, and a DIFS (IEEE 802.11-2016, 10.3.2.3.7).
pub fn eifs(phy: Phy) -> Duration {
    phy.sifs() + phy.airtime(ACK_BYTES, phy.slowest()) + phy.difs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_the_standard() {
        let timing = Timing::new(&Config::default());
        assert_eq!(eifs(Phy::B).as_micros(), 364);
        assert_eq!(eifs(Phy::A).as_micros(), 16 + 44 + 34);
        // The ACK is at 1 Mbit/s: stations of 802.11g need not send it at an OFDM rate.
        assert_eq!(eifs(Phy::G).as_micros(), 10 + 304 + 28);
        assert_eq!(timing.answer_timeout.as_micros(), 222);
        assert_eq!(timing.rts.as_micros(), 192 + 160);
        assert_eq!(timing.reserved_by_data().as_micros(), 314);
        // 1524 bytes at 11 Mbit/s.
        assert_eq!(timing.reserved_by_rts(1488).as_micros(), 3 * 10 + 2 * 304 + 192 + 1109);
        assert_eq!(timing.nav_timeout.as_micros(), 20 + 304 + 192 + 40);
    }

    #[test]
    fn an_eifs_outlasts_every_ack() {
        for phy in [Phy::B, Phy::BShort, Phy::A, Phy::G] {
            for basic_rate in Rate::ALL.into_iter().filter(|rate| phy.has(*rate)) {
                let timing = Timing::new(&Config { phy, basic_rate, ..Config::default() });
                let after_ack = timing.reserved_by_data() + phy.difs();
                assert!(eifs(phy) >= after_ack, "{phy:?} {basic_rate:?}");
            }
        }
    }
}
