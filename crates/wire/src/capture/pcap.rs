//! Capture files, in the classic format with nanoseconds (draft-ietf-opsawg-pcap).

use std::time::Duration;

use crate::Instant;

/// The link type of frames with a radiotap header.
pub const LINKTYPE_IEEE802_11_RADIOTAP: u32 = 127;

/// Marks a file whose times are in nanoseconds, by the byte order that it is written in.
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;

/// Longer frames would be cut; none is.
const SNAP_LENGTH: u32 = 65_535;

/// What a file begins with.
pub fn file_header(link_type: u32) -> [u8; 24] {
    let mut header = [0; 24];
    header[0..4].copy_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
    header[4..6].copy_from_slice(&2u16.to_le_bytes());
    header[6..8].copy_from_slice(&4u16.to_le_bytes());
    header[16..20].copy_from_slice(&SNAP_LENGTH.to_le_bytes());
    header[20..24].copy_from_slice(&link_type.to_le_bytes());
    header
}

/// What stands before each frame of `length` bytes; `epoch` is the date of the driver's zero, since
/// 1970.
pub fn record_header(epoch: Duration, time: Instant, length: u32) -> [u8; 16] {
    let date = epoch.saturating_add(Duration::from_nanos(time.as_nanos()));
    let (seconds, nanos) = (date.as_secs() as u32, date.subsec_nanos());
    let mut header = [0; 16];
    for (field, value) in header.chunks_exact_mut(4).zip([seconds, nanos, length, length]) {
        field.copy_from_slice(&value.to_le_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_as_the_format_has_them() {
        let expected = [
            0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, //
            0, 0, 0, 0, 0xff, 0xff, 0, 0, 127, 0, 0, 0,
        ];
        assert_eq!(file_header(LINKTYPE_IEEE802_11_RADIOTAP), expected);
        let record = record_header(Duration::new(16, 1), Instant::from_nanos(2_000_000_002), 5);
        assert_eq!(record, [18, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0]);
    }
}
