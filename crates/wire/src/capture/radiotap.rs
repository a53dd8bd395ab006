//! The radiotap header: metadata of the receiver about a frame (<https://www.radiotap.org>).

#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

use super::{Refusal, take};

/// Length of the header that [`Radiotap::to_bytes`] writes.
pub const LEN: usize = 23;

/// Offset of the signal field in that header: a caller that gives one frame to many receivers
/// changes only this field.
pub const SIGNAL_AT: usize = 22;

/// Offset of the first presence word; and the length of a header that has only this word.
const FIRST_WORD: usize = 4;
const SHORTEST: usize = 8;

/// The fields present: TSFT, flags, rate, channel, antenna signal.
const PRESENT: u32 = 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5;

/// Channel flags.
const CCK: u16 = 0x0020;
const OFDM: u16 = 0x0040;
const BAND_2_GHZ: u16 = 0x0080;
const BAND_5_GHZ: u16 = 0x0100;

/// Rates of 802.11b, in units of 500 kbit/s; all others use OFDM.
const CCK_RATES: [u8; 4] = [2, 4, 11, 22];

/// The receiver's metadata of a frame of 802.11b, a or g.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Radiotap {
    /// When the first bit after the preamble arrived, in microseconds of the receiver's clock.
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

/// The receiver's metadata of a frame. If a field occurs several times (once for each antenna), the
/// first is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// When the first bit after the preamble arrived, in microseconds of the receiver's clock.
    pub tsft_us: Option<u64>,
    /// The frame's checksum follows it.
    pub fcs: bool,
    /// The checksum of the frame or of the physical header was wrong.
    pub bad_fcs: bool,
    /// The 802.11 header is padded to a multiple of four bytes.
    pub padded: bool,
    /// Rate in units of 500 kbit/s.
    pub rate: Option<u8>,
    /// Index of the modulation and coding scheme (MCS) of 802.11n.
    pub mcs: Option<u8>,
    /// Frequency in MHz.
    pub channel_mhz: Option<u16>,
    /// Received power.
    pub signal_dbm: Option<i8>,
    /// Noise power.
    pub noise_dbm: Option<i8>,
}

/// For each bit of a presence word, alignment and size of its field. TLVs (bit 28) and the bits
/// above have no fixed size; none of their fields is needed here.
const FIELDS: [(usize, usize); 28] = [
    (8, 8),  // 0: TSFT
    (1, 1),  // 1: flags
    (1, 1),  // 2: rate
    (2, 4),  // 3: channel
    (2, 2),  // 4: FHSS
    (1, 1),  // 5: antenna signal, dBm
    (1, 1),  // 6: antenna noise, dBm
    (2, 2),  // 7: lock quality
    (2, 2),  // 8: TX attenuation
    (2, 2),  // 9: TX attenuation, dB
    (1, 1),  // 10: TX power, dBm
    (1, 1),  // 11: antenna
    (1, 1),  // 12: antenna signal, dB
    (1, 1),  // 13: antenna noise, dB
    (2, 2),  // 14: RX flags
    (2, 2),  // 15: TX flags
    (1, 1),  // 16: RTS retries
    (1, 1),  // 17: data retries
    (4, 8),  // 18: XChannel
    (1, 3),  // 19: MCS
    (4, 8),  // 20: A-MPDU status
    (2, 12), // 21: VHT
    (8, 12), // 22: timestamp
    (2, 12), // 23: HE
    (2, 12), // 24: HE-MU
    (2, 6),  // 25: HE-MU, other user
    (1, 1),  // 26: 0-length PSDU
    (2, 4),  // 27: L-SIG
];

/// The fields of the next word are numbered from the first standard field again.
const RADIOTAP_NAMESPACE: u32 = 1 << 29;

/// The fields of the next word are a vendor's.
const VENDOR_NAMESPACE: u32 = 1 << 30;

/// Another presence word follows.
const MORE: u32 = 1 << 31;

/// Bits that do not stand for a field.
const NAMESPACES: u32 = RADIOTAP_NAMESPACE | VENDOR_NAMESPACE | MORE;

/// Reads the header, and returns the frame after it. An unknown field ends the reading of fields,
/// because its length is unknown; the frame's offset is given separately.
pub(super) fn read(bytes: &[u8]) -> Result<(Received, &[u8]), Refusal> {
    let mut fixed = bytes;
    let [version, _, low, high] = take(&mut fixed).ok_or(Refusal::Short)?;
    let length = usize::from(u16::from_le_bytes([low, high]));
    if version != 0 || length < SHORTEST {
        return Err(Refusal::Radiotap);
    }
    let (header, frame) = bytes.split_at_checked(length).ok_or(Refusal::Short)?;
    let mut received = Received::default();
    // Fields read before an error stay valid.
    let _ = read_fields(header, &mut received);
    Ok((received, frame))
}

/// `None` if the reading of fields ends early.
fn read_fields(header: &[u8], received: &mut Received) -> Option<()> {
    let words = header.get(FIRST_WORD..)?.chunks_exact(4);
    let words = words.map_while(|word| Some(u32::from_le_bytes(word.try_into().ok()?)));
    let count = words.clone().position(|word| word & MORE == 0)? + 1;
    let mut fields = Fields { header, at: FIRST_WORD + 4 * count };
    let mut namespace = Namespace::Radiotap;
    for word in words.take(count) {
        match namespace {
            Namespace::Radiotap => fields.standard(word, received)?,
            // All its fields were skipped where it began.
            Namespace::Vendor => {}
            // No known field has a number above 31.
            Namespace::Beyond => none_of(word & !NAMESPACES)?,
        }
        namespace = match word & (RADIOTAP_NAMESPACE | VENDOR_NAMESPACE) {
            0 if namespace == Namespace::Radiotap => Namespace::Beyond,
            0 => namespace,
            RADIOTAP_NAMESPACE => Namespace::Radiotap,
            VENDOR_NAMESPACE => {
                fields.skip_vendor()?;
                Namespace::Vendor
            }
            _ => return None,
        };
    }
    Some(())
}

/// Which list of fields a presence word refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Radiotap,
    /// The standard fields from number 32 on.
    Beyond,
    Vendor,
}

fn none_of(bits: u32) -> Option<()> {
    (bits == 0).then_some(())
}

/// The fields after the presence words.
struct Fields<'a> {
    header: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// Reads the fields of one word.
    fn standard(&mut self, word: u32, received: &mut Received) -> Option<()> {
        let mut left = word & !NAMESPACES;
        while left != 0 {
            let number = left.trailing_zeros() as usize;
            let (align, size) = *FIELDS.get(number)?;
            received.note(number, self.next(align, size)?);
            left &= left - 1;
        }
        Some(())
    }

    /// Skips a vendor's fields; their length follows an organisation and a sub-namespace.
    fn skip_vendor(&mut self) -> Option<()> {
        let [_, _, _, _, low, high] = *self.next(2, 6)?.first_chunk()?;
        self.next(1, u16::from_le_bytes([low, high]).into())?;
        Some(())
    }

    /// The next field. Its alignment, a power of two, counts from the start of the header.
    fn next(&mut self, align: usize, size: usize) -> Option<&'a [u8]> {
        let start = (self.at + align - 1) & !(align - 1);
        let field = self.header.get(start..start + size)?;
        self.at = start + size;
        Some(field)
    }
}

impl Received {
    fn note(&mut self, number: usize, field: &[u8]) {
        match (number, field) {
            (0, &[a, b, c, d, e, f, g, h]) => {
                first(&mut self.tsft_us, u64::from_le_bytes([a, b, c, d, e, f, g, h]));
            }
            (1, &[flags]) => {
                self.fcs |= flags & 0x10 != 0;
                self.padded |= flags & 0x20 != 0;
                self.bad_fcs |= flags & 0x40 != 0;
            }
            (2, &[rate]) => first(&mut self.rate, rate),
            (3, &[low, high, ..]) | (18, &[_, _, _, _, low, high, ..]) => {
                first(&mut self.channel_mhz, u16::from_le_bytes([low, high]));
            }
            (5, &[signal]) => first(&mut self.signal_dbm, i8::from_le_bytes([signal])),
            (6, &[noise]) => first(&mut self.noise_dbm, i8::from_le_bytes([noise])),
            (14, &[flags, _]) => self.bad_fcs |= flags & 0x02 != 0,
            (19, &[known, _, index]) if known & 0x02 != 0 => first(&mut self.mcs, index),
            _ => {}
        }
    }
}

fn first<T>(place: &mut Option<T>, value: T) {
    place.get_or_insert(value);
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
