//! The physical layers: slots, interframe spaces, and the airtime of frames.
//!
//! Sources: IEEE 802.11-2016, the clauses on the high-rate direct-sequence PHY (802.11b), the OFDM
//! PHY (802.11a) and the extended-rate PHY (802.11g): in each, the table of PHY characteristics and
//! the equation of the transmit time. The DCF clause gives the interframe spaces.

use crate::rate::Rate;
use std::time::Duration;

/// A physical layer, used by all stations of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phy {
    /// 802.11b with long preambles: 1, 2, 5.5 and 11 Mbit/s.
    #[default]
    B,
    /// 802.11b with short preambles, except at 1 Mbit/s, which has none.
    BShort,
    /// 802.11a: OFDM in the 5 GHz band, 6 to 54 Mbit/s.
    A,
    /// 802.11g without stations of 802.11b (short slots): 6 to 54 Mbit/s, and the rates of 802.11b
    /// with long preambles.
    G,
}

impl Phy {
    /// Whether it has this rate.
    pub const fn has(self, rate: Rate) -> bool {
        match self {
            Self::B | Self::BShort => !rate.is_ofdm(),
            Self::A => rate.is_ofdm(),
            Self::G => true,
        }
    }

    /// The lowest mandatory rate, at which an EIFS expects ACKs. In 802.11g the rates of 802.11b
    /// are mandatory too.
    pub const fn slowest(self) -> Rate {
        match self {
            Self::B | Self::BShort | Self::G => Rate::Mbps1,
            Self::A => Rate::Mbps6,
        }
    }

    /// One slot of the backoff (aSlotTime).
    pub const fn slot(self) -> Duration {
        Duration::from_micros(match self {
            Self::B | Self::BShort => 20,
            Self::A | Self::G => 9,
        })
    }

    /// The space between a frame and its response (aSIFSTime).
    pub const fn sifs(self) -> Duration {
        Duration::from_micros(match self {
            Self::B | Self::BShort | Self::G => 10,
            Self::A => 16,
        })
    }

    /// The time that the medium must be idle before a station sends: a SIFS and two slots (DCF
    /// timing relations).
    pub fn difs(self) -> Duration {
        self.sifs() + 2 * self.slot()
    }

    /// The first contention window, in slots (aCWmin).
    pub const fn window_min(self) -> u32 {
        match self {
            Self::B | Self::BShort => 31,
            Self::A | Self::G => 15,
        }
    }

    /// Duration of preamble and PHY header before a frame of this rate.
    pub const fn preamble(self, rate: Rate) -> Duration {
        Duration::from_micros(match (rate.is_ofdm(), self, rate) {
            // Training symbols, and the SIGNAL symbol.
            (true, ..) => 16 + 4,
            // 72 bits at 1 Mbit/s, then 48 bits at 2 Mbit/s.
            (false, Self::BShort, Rate::Mbps2 | Rate::Mbps5_5 | Rate::Mbps11) => 72 + 24,
            // 144 bits and 48 bits at 1 Mbit/s.
            _ => 144 + 48,
        })
    }

    /// The idle time that the standard adds at the end of a frame of this rate (signal extension).
    pub const fn extension(self, rate: Rate) -> Duration {
        match self {
            Self::G if rate.is_ofdm() => Duration::from_micros(6),
            _ => Duration::ZERO,
        }
    }

    /// The airtime of a frame with this number of bytes, including its MAC header and FCS.
    ///
    /// With direct sequence, the bits take a whole number of microseconds, rounded up (LENGTH
    /// field). With OFDM, they are sent in symbols of 4 microseconds, together with 16 service and
    /// 6 tail bits; in the 2.4 GHz band the signal extension follows.
    pub fn airtime(self, bytes: u32, rate: Rate) -> Duration {
        let bits = u64::from(bytes) * 8;
        // Both sides are doubled, since rates are in units of 500 kbit/s.
        let half_mbps = u64::from(rate.units_of_500_kbps());
        let micros = if rate.is_ofdm() {
            (2 * (16 + bits + 6)).div_ceil(4 * half_mbps) * 4
        } else {
            (2 * bits).div_ceil(half_mbps)
        };
        self.preamble(rate) + Duration::from_micros(micros) + self.extension(rate)
    }

    /// The width of a channel in hertz, which determines the thermal noise.
    pub(crate) const fn bandwidth_hz(self) -> f64 {
        match self {
            Self::B | Self::BShort => 22e6,
            Self::A | Self::G => 20e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_sequence_lasts_as_long_as_the_standard_says() {
        let micros = |phy: Phy, bytes, rate| phy.airtime(bytes, rate).as_micros();
        assert_eq!(Phy::B.difs().as_micros(), 50);
        assert_eq!(micros(Phy::B, 14, Rate::Mbps1), 304);
        assert_eq!(micros(Phy::B, 14, Rate::Mbps2), 248);
        // 1524 bytes: 1108.36 microseconds at 11 Mbit/s.
        assert_eq!(micros(Phy::B, 1524, Rate::Mbps11), 192 + 1109);
        assert_eq!(micros(Phy::B, 1524, Rate::Mbps5_5), 192 + 2217);
        assert_eq!(micros(Phy::B, 1524, Rate::Mbps1), 192 + 1524 * 8);
        assert_eq!(micros(Phy::BShort, 1524, Rate::Mbps11), 96 + 1109);
        assert_eq!(micros(Phy::BShort, 14, Rate::Mbps2), 96 + 56);
        assert_eq!(micros(Phy::BShort, 14, Rate::Mbps1), 304, "no short preamble at 1 Mbit/s");
    }

    #[test]
    fn ofdm_fills_symbols() {
        let micros = |phy: Phy, bytes, rate| phy.airtime(bytes, rate).as_micros();
        assert_eq!((Phy::A.difs().as_micros(), Phy::G.difs().as_micros()), (34, 28));
        // 22 + 8 × 14 bits = 134 bits take 5.6 symbols of 24 bits, or 2.8 of 48.
        assert_eq!(micros(Phy::A, 14, Rate::Mbps6), 20 + 6 * 4);
        assert_eq!(micros(Phy::A, 14, Rate::Mbps12), 20 + 3 * 4);
        assert_eq!(micros(Phy::A, 14, Rate::Mbps24), 20 + 2 * 4);
        // 22 + 8 × 1536 bits take 57 symbols of 216 bits: 12310 / 216 = 56.99.
        assert_eq!(micros(Phy::A, 1536, Rate::Mbps54), 20 + 57 * 4);
        assert_eq!(micros(Phy::G, 1536, Rate::Mbps54), 20 + 57 * 4 + 6);
        assert_eq!(micros(Phy::G, 14, Rate::Mbps1), 304);
    }

    #[test]
    fn each_has_its_rates() {
        let count = |phy: Phy| Rate::ALL.into_iter().filter(|rate| phy.has(*rate)).count();
        assert_eq!([Phy::B, Phy::BShort, Phy::A, Phy::G].map(count), [4, 4, 8, 12]);
    }
}
