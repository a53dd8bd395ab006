//! How long things take on the air: the numbers of 802.11b and what follows from them.
//!
//! Sources: IEEE 802.11-2016, the clause on the high-rate direct-sequence PHY (its table of PHY
//! characteristics: slot, SIFS, contention window; its long PPDU format: preamble and header), and
//! the DCF clause (DIFS, EIFS, ACK timeout). OFDM would be a second table here.

use std::time::Duration;

/// One slot of the backoff (PHY characteristics: aSlotTime).
pub const SLOT: Duration = Duration::from_micros(20);
/// Between a frame and its ACK (PHY characteristics: aSIFSTime).
pub const SIFS: Duration = Duration::from_micros(10);
/// What a station waits for after the medium fell idle: a SIFS and two slots (DCF timing relations).
pub const DIFS: Duration = Duration::from_micros(50);
/// Long preamble (144 bits) and PLCP header (48 bits), always at 1 Mbit/s (long PPDU format).
pub const PREAMBLE_AND_HEADER: Duration = Duration::from_micros(192);
/// The first contention window, in slots (PHY characteristics: aCWmin).
pub const WINDOW_MIN: u32 = 31;
/// The widest contention window, in slots (PHY characteristics: aCWmax).
pub const WINDOW_MAX: u32 = 1023;

/// LLC and SNAP header before the network layer's packet (IEEE 802.2; RFC 1042), in bytes.
const LLC_SNAP_BYTES: u32 = 8;
/// Header of a data frame with three addresses (data frame format), in bytes.
const MAC_HEADER_BYTES: u32 = 24;
/// Frame check sequence (general frame format), in bytes.
const FCS_BYTES: u32 = 4;
/// An ACK frame with its FCS (ACK frame format), in bytes.
pub const ACK_BYTES: u32 = 14;

/// A rate of 802.11b.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rate {
    /// 1 Mbit/s (DBPSK).
    Mbps1,
    /// 2 Mbit/s (DQPSK).
    Mbps2,
    /// 5.5 Mbit/s (CCK).
    Mbps5_5,
    /// 11 Mbit/s (CCK).
    Mbps11,
}

impl Rate {
    /// All of them, slowest first.
    pub const ALL: [Self; 4] = [Self::Mbps1, Self::Mbps2, Self::Mbps5_5, Self::Mbps11];

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.units_of_500_kbps() as u64 * 500_000
    }

    /// The rate of so many Mbit/s, if 802.11b has it.
    pub fn from_mbps(mbps: f64) -> Option<Self> {
        Self::ALL.into_iter().find(|rate| f64::from(rate.units_of_500_kbps()) / 2.0 == mbps)
    }

    /// In units of 500 kbit/s, as radiotap's rate field has it.
    pub const fn units_of_500_kbps(self) -> u8 {
        match self {
            Self::Mbps1 => 2,
            Self::Mbps2 => 4,
            Self::Mbps5_5 => 11,
            Self::Mbps11 => 22,
        }
    }
}

/// How long a data frame that carries a packet of so many bytes is on the air.
pub fn data(packet_bytes: u32, rate: Rate) -> Duration {
    frame(data_bytes(packet_bytes), rate)
}

/// Length of a data frame that carries a packet of so many bytes, in bytes.
pub fn data_bytes(packet_bytes: u32) -> u32 {
    packet_bytes.saturating_add(LLC_SNAP_BYTES + MAC_HEADER_BYTES + FCS_BYTES)
}

/// How long an ACK is on the air.
pub fn ack(rate: Rate) -> Duration {
    frame(ACK_BYTES, rate)
}

/// How long a station waits after a reception that failed: long enough for an ACK that it could not
/// foresee, at the lowest rate, and then a DIFS (DCF: EIFS).
pub fn eifs() -> Duration {
    SIFS + ack(Rate::Mbps1) + DIFS
}

/// After the end of its data frame, when a sender that has not begun to receive gives up on the ACK:
/// a SIFS, a slot, and the delay until a frame's header is received (DCF: ACK procedure).
pub fn ack_timeout() -> Duration {
    SIFS + SLOT + PREAMBLE_AND_HEADER
}

/// Payload bits last a whole number of microseconds, rounded up (high-rate PHY: LENGTH field).
fn frame(bytes: u32, rate: Rate) -> Duration {
    let half_bits = u64::from(bytes) * 8 * 2;
    let micros = half_bits.div_ceil(u64::from(rate.units_of_500_kbps()));
    PREAMBLE_AND_HEADER + Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_the_standard() {
        assert_eq!(DIFS, SIFS + 2 * SLOT);
        assert_eq!(ack(Rate::Mbps1).as_micros(), 304);
        assert_eq!(ack(Rate::Mbps2).as_micros(), 248);
        assert_eq!(eifs().as_micros(), 364);
        assert_eq!(ack_timeout().as_micros(), 222);
        // 1524 bytes: 1108.36 microseconds at 11 Mbit/s.
        assert_eq!(data(1488, Rate::Mbps11).as_micros(), 192 + 1109);
        assert_eq!(data(1488, Rate::Mbps5_5).as_micros(), 192 + 2217);
        assert_eq!(data(1488, Rate::Mbps1).as_micros(), 192 + 1524 * 8);
    }

    #[test]
    fn rates_have_three_names() {
        for (rate, mbps, units) in
            [(Rate::Mbps1, 1.0, 2), (Rate::Mbps2, 2.0, 4), (Rate::Mbps5_5, 5.5, 11)]
        {
            assert_eq!(Rate::from_mbps(mbps), Some(rate));
            assert_eq!(rate.units_of_500_kbps(), units);
        }
        assert_eq!(Rate::from_mbps(11.0).map(Rate::bits_per_second), Some(11_000_000));
        assert_eq!(Rate::from_mbps(54.0), None);
        assert_eq!(Rate::from_mbps(f64::NAN), None);
    }
}
