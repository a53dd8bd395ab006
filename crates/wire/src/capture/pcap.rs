//! The classic capture format, with times in nanoseconds or microseconds (draft-ietf-opsawg-pcap).

#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

use std::time::Duration;

use super::records::{Cause, FRAME_MAX, Record};
use super::{Frame, take};
use crate::Instant;

/// The link type of Ethernet frames.
pub const LINKTYPE_ETHERNET: u32 = 1;

/// The link type of 802.11 frames without a header before them.
pub const LINKTYPE_IEEE802_11: u32 = 105;

/// The link type of frames with a radiotap header.
pub const LINKTYPE_IEEE802_11_RADIOTAP: u32 = 127;

/// The link type of packets with an address family before them, in the capturing machine's byte order: BSD's loopback
/// and tunnels.
pub const LINKTYPE_NULL: u32 = 0;

/// The same in network byte order: OpenBSD's loopback.
pub const LINKTYPE_LOOP: u32 = 108;

/// The link types of IP packets without a header before them: tunnels. Files with 12 and 14, the numbers of two BSDs, exist
/// too; 228 and 229 are IPv4 and IPv6 alone.
pub const LINKTYPES_RAW: [u32; 5] = [101, 228, 229, 12, 14];

/// The link type of Linux's cooked frames, of several interfaces or of one without a common header.
pub const LINKTYPE_LINUX_SLL: u32 = 113;

/// The same, newer: `tcpdump -i any`.
pub const LINKTYPE_LINUX_SLL2: u32 = 276;

/// Magic number of a file with times in nanoseconds. It also shows the file's byte order.
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;

/// Magic number of a file with times in microseconds.
const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;

/// The bits of the link-type field that hold the link type; the others describe checksums.
const LINK_TYPE: u32 = 0xffff;

/// The greatest captured length: longer frames would be cut, but none is longer.
const SNAP_LENGTH: u32 = 65_535;

/// The header of a file.
pub fn file_header(link_type: u32) -> [u8; 24] {
    let mut header = [0; 24];
    header[0..4].copy_from_slice(&MAGIC_NANOSECONDS.to_le_bytes());
    header[4..6].copy_from_slice(&2u16.to_le_bytes());
    header[6..8].copy_from_slice(&4u16.to_le_bytes());
    header[16..20].copy_from_slice(&SNAP_LENGTH.to_le_bytes());
    header[20..24].copy_from_slice(&link_type.to_le_bytes());
    header
}

/// The header of a record whose frame has `length` bytes. `epoch` is the date of the driver's zero,
/// as a duration since 1970.
pub fn record_header(epoch: Duration, time: Instant, length: u32) -> [u8; 16] {
    let date = epoch.saturating_add(Duration::from_nanos(time.as_nanos()));
    let (seconds, nanos) = (date.as_secs() as u32, date.subsec_nanos());
    let mut header = [0; 16];
    for (field, value) in header.chunks_exact_mut(4).zip([seconds, nanos, length, length]) {
        field.copy_from_slice(&value.to_le_bytes());
    }
    header
}

/// The byte order of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Takes a number off the front.
    pub fn take_u32(self, bytes: &mut &[u8]) -> Option<u32> {
        take(bytes).map(|number| self.u32(number))
    }
}

/// The properties of a file that its header gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    order: Order,
    /// The unit of the fraction of a second, in nanoseconds.
    nanos_per_unit: u64,
    link_type: u32,
}

/// Lengths of the headers of a file and of a record.
pub(super) const FILE_HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;

impl Format {
    /// Reads the header at the front of a file; `None` if more bytes are needed.
    pub fn read(mut bytes: &[u8]) -> Result<Option<Self>, Cause> {
        let Some(magic) = take(&mut bytes) else { return Ok(None) };
        let read = |order: Order| match order.u32(magic) {
            MAGIC_MICROSECONDS => Some((order, 1000)),
            MAGIC_NANOSECONDS => Some((order, 1)),
            _ => None,
        };
        let (order, nanos_per_unit) =
            read(Order::Little).or_else(|| read(Order::Big)).ok_or(Cause::Magic)?;
        let Some(rest) = take::<16>(&mut bytes).and_then(|_| order.take_u32(&mut bytes)) else {
            return Ok(None);
        };
        Ok(Some(Self { order, nanos_per_unit, link_type: rest & LINK_TYPE }))
    }

    /// The record at the front, and its length with its header; `None` if more bytes are needed.
    pub fn record<'a>(&self, bytes: &'a [u8]) -> Result<Option<(Record<'a>, usize)>, Cause> {
        let Some((&header, rest)) = bytes.split_first_chunk::<RECORD_HEADER_LEN>() else {
            return Ok(None);
        };
        let [seconds, units, captured, length] = self.numbers(header);
        let captured = captured as usize;
        if captured > FRAME_MAX {
            return Err(Cause::FrameLength);
        }
        let Some(bytes) = rest.get(..captured) else { return Ok(None) };
        // Both factors are below 2^32 and 10^9: no overflow.
        let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(units) * self.nanos_per_unit;
        let frame = Frame { link_type: self.link_type, bytes, length: length as usize };
        let record = Record { time: Instant::from_nanos(nanos), frame };
        Ok(Some((record, RECORD_HEADER_LEN + captured)))
    }

    fn numbers(&self, header: [u8; RECORD_HEADER_LEN]) -> [u32; 4] {
        let mut rest = &header[..];
        [(); 4].map(|()| self.order.take_u32(&mut rest).unwrap_or(0))
    }
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
