//! The radiotap header: what the receiver knows of a frame beside its bytes (<https://www.radiotap.org>).

/// Length of the header that [`Radiotap::to_bytes`] writes.
pub const LEN: usize = 23;

/// Where in that header the signal stands, for whoever shows one frame to many receivers.
pub const SIGNAL_AT: usize = 22;

/// Fields that are present: TSFT, flags, rate, channel, antenna signal.
const PRESENT: u32 = 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5;

/// Channel flags.
const CCK: u16 = 0x0020;
const OFDM: u16 = 0x0040;
const BAND_2_GHZ: u16 = 0x0080;
const BAND_5_GHZ: u16 = 0x0100;

/// Rates of 802.11b, in units of 500 kbit/s; all others are OFDM's.
const CCK_RATES: [u8; 4] = [2, 4, 11, 22];

/// What a receiver knows of a frame of 802.11b, a or g.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Radiotap {
    /// When the frame's first bit came, its preamble past, in microseconds of the receiver's clock.
    pub tsft_us: u64,
    /// Rate in units of 500 kbit/s.
    pub rate: u8,
    /// Frequency in MHz.
    pub channel_mhz: u16,
    /// Received power.
    pub signal_dbm: i8,
}

impl Radiotap {
    /// The header: little-endian, each field aligned to its own size, no FCS after the frame.
    pub fn to_bytes(self) -> [u8; LEN] {
        let mut header = [0; LEN];
        header[2..4].copy_from_slice(&(LEN as u16).to_le_bytes());
        header[4..8].copy_from_slice(&PRESENT.to_le_bytes());
        header[8..16].copy_from_slice(&self.tsft_us.to_le_bytes());
        header[17] = self.rate;
        header[18..20].copy_from_slice(&self.channel_mhz.to_le_bytes());
        let modulation = if CCK_RATES.contains(&self.rate) { CCK } else { OFDM };
        let band = if self.channel_mhz < 5000 { BAND_2_GHZ } else { BAND_5_GHZ };
        header[20..22].copy_from_slice(&(modulation | band).to_le_bytes());
        header[SIGNAL_AT] = self.signal_dbm.to_le_bytes()[0];
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_as_the_standard_has_them() {
        let header = Radiotap { tsft_us: 1, rate: 22, channel_mhz: 2412, signal_dbm: -60 };
        let expected = [
            0, 0, 23, 0, 0x2f, 0, 0, 0, // version, length, present
            1, 0, 0, 0, 0, 0, 0, 0, // TSFT
            0, 22, 0x6c, 0x09, 0xa0, 0x00, 0xc4, // flags, rate, channel, signal
        ];
        assert_eq!(header.to_bytes(), expected);
    }
}
