//! The rates of 802.11b, a and g.

/// A rate of 802.11b (1, 2, 5.5, 11 Mbit/s) or of OFDM, that is 802.11a and g (6 to 54 Mbit/s).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rate {
    /// 1 Mbit/s (DBPSK).
    Mbps1,
    /// 2 Mbit/s (DQPSK).
    Mbps2,
    /// 5.5 Mbit/s (CCK).
    Mbps5_5,
    /// 6 Mbit/s (OFDM, BPSK, code rate 1/2).
    Mbps6,
    /// 9 Mbit/s (OFDM, BPSK, code rate 3/4).
    Mbps9,
    /// 11 Mbit/s (CCK).
    Mbps11,
    /// 12 Mbit/s (OFDM, QPSK, code rate 1/2).
    Mbps12,
    /// 18 Mbit/s (OFDM, QPSK, code rate 3/4).
    Mbps18,
    /// 24 Mbit/s (OFDM, 16-QAM, code rate 1/2).
    Mbps24,
    /// 36 Mbit/s (OFDM, 16-QAM, code rate 3/4).
    Mbps36,
    /// 48 Mbit/s (OFDM, 64-QAM, code rate 2/3).
    Mbps48,
    /// 54 Mbit/s (OFDM, 64-QAM, code rate 3/4).
    Mbps54,
}

impl Rate {
    /// All of them, slowest first.
    pub const ALL: [Self; 12] = [
        Self::Mbps1,
        Self::Mbps2,
        Self::Mbps5_5,
        Self::Mbps6,
        Self::Mbps9,
        Self::Mbps11,
        Self::Mbps12,
        Self::Mbps18,
        Self::Mbps24,
        Self::Mbps36,
        Self::Mbps48,
        Self::Mbps54,
    ];

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.units_of_500_kbps() as u64 * 500_000
    }

    /// Megabits per second.
    pub fn mbps(self) -> f64 {
        f64::from(self.units_of_500_kbps()) / 2.0
    }

    /// The rate with this number of Mbit/s, if there is one. [`Phy`](crate::Phy) says which rates a
    /// channel has.
    pub fn from_mbps(mbps: f64) -> Option<Self> {
        Self::ALL.into_iter().find(|rate| rate.mbps() == mbps)
    }

    /// In units of 500 kbit/s, as in radiotap's rate field.
    pub const fn units_of_500_kbps(self) -> u8 {
        match self {
            Self::Mbps1 => 2,
            Self::Mbps2 => 4,
            Self::Mbps5_5 => 11,
            Self::Mbps6 => 12,
            Self::Mbps9 => 18,
            Self::Mbps11 => 22,
            Self::Mbps12 => 24,
            Self::Mbps18 => 36,
            Self::Mbps24 => 48,
            Self::Mbps36 => 72,
            Self::Mbps48 => 96,
            Self::Mbps54 => 108,
        }
    }

    /// Whether it is an OFDM rate; the others are direct-sequence rates.
    pub const fn is_ofdm(self) -> bool {
        !matches!(self, Self::Mbps1 | Self::Mbps2 | Self::Mbps5_5 | Self::Mbps11)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_names() {
        for (rate, mbps, units) in
            [(Rate::Mbps1, 1.0, 2), (Rate::Mbps5_5, 5.5, 11), (Rate::Mbps54, 54.0, 108)]
        {
            assert_eq!(Rate::from_mbps(mbps), Some(rate));
            assert_eq!(rate.units_of_500_kbps(), units);
        }
        assert_eq!(Rate::from_mbps(11.0).map(Rate::bits_per_second), Some(11_000_000));
        assert_eq!(Rate::from_mbps(22.0), None);
        assert_eq!(Rate::from_mbps(f64::NAN), None);
        assert!(Rate::ALL.is_sorted());
    }
}
