//! 802.11 frames as they are on the air, without the FCS (IEEE 802.11-2020, clause 9).

/// A link-layer address.
pub type Mac = [u8; 6];

/// Length of a data frame's header in an ad hoc network (three addresses).
pub const DATA_HEADER_LEN: usize = 24;

/// Length of what stands between that header and the network layer's packet (RFC 1042).
pub const LLC_LEN: usize = 8;

/// Length of an acknowledgement, and of a CTS.
pub const ACK_LEN: usize = 10;

/// Length of an RTS.
pub const RTS_LEN: usize = 16;

/// Type data, subtype 0; to and from no distribution system.
const DATA: u8 = 0x08;

/// Type control, subtypes ACK, RTS and CTS.
const ACK: u8 = 0xd4;
const RTS: u8 = 0xb4;
const CTS: u8 = 0xc4;

/// This is not the first try.
const RETRY: u8 = 0x08;

/// The header of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Whom it is for.
    pub to: Mac,
    /// Who sends it.
    pub from: Mac,
    /// The network's own address.
    pub bssid: Mac,
    /// How long the exchange goes on after this frame, in microseconds.
    pub duration_us: u16,
    /// The sender's count, 12 bits.
    pub sequence: u16,
    /// Whether it was sent before.
    pub retry: bool,
}

impl Data {
    /// The header, and the LLC/SNAP header of a packet of this Ethernet type after it.
    pub fn to_bytes(self, ethertype: [u8; 2]) -> [u8; DATA_HEADER_LEN + LLC_LEN] {
        let mut header = [0; DATA_HEADER_LEN + LLC_LEN];
        header[0] = DATA;
        header[1] = if self.retry { RETRY } else { 0 };
        header[2..4].copy_from_slice(&self.duration_us.to_le_bytes());
        header[4..10].copy_from_slice(&self.to);
        header[10..16].copy_from_slice(&self.from);
        header[16..22].copy_from_slice(&self.bssid);
        header[22..24].copy_from_slice(&(self.sequence << 4).to_le_bytes());
        header[24..30].copy_from_slice(&[0xaa, 0xaa, 0x03, 0, 0, 0]);
        header[30..].copy_from_slice(&ethertype);
        header
    }
}

/// An acknowledgement to this station: it ends the exchange, so it announces no duration.
pub fn ack(to: Mac) -> [u8; ACK_LEN] {
    let mut frame = [0; ACK_LEN];
    frame[0] = ACK;
    frame[4..].copy_from_slice(&to);
    frame
}

/// A station asks another whether it may send.
pub fn rts(to: Mac, from: Mac, duration_us: u16) -> [u8; RTS_LEN] {
    let mut frame = [0; RTS_LEN];
    frame[0] = RTS;
    frame[2..4].copy_from_slice(&duration_us.to_le_bytes());
    frame[4..10].copy_from_slice(&to);
    frame[10..].copy_from_slice(&from);
    frame
}

/// The answer that it may.
pub fn cts(to: Mac, duration_us: u16) -> [u8; ACK_LEN] {
    let mut frame = ack(to);
    frame[0] = CTS;
    frame[2..4].copy_from_slice(&duration_us.to_le_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_as_the_standard_has_them() {
        let data = Data {
            to: [1; 6],
            from: [2; 6],
            bssid: [3; 6],
            duration_us: 314,
            sequence: 0x123,
            retry: true,
        };
        let mut expected = vec![0x08, 0x08, 0x3a, 0x01];
        expected.extend([[1; 6], [2; 6], [3; 6]].concat());
        expected.extend([0x30, 0x12, 0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x00]);
        assert_eq!(data.to_bytes([8, 0])[..], expected[..]);
        assert_eq!(ack([7; 6]), [0xd4, 0, 0, 0, 7, 7, 7, 7, 7, 7]);
        assert_eq!(cts([7; 6], 314), [0xc4, 0, 0x3a, 1, 7, 7, 7, 7, 7, 7]);
        let expected = [0xb4, 0, 0x3a, 1, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8];
        assert_eq!(rts([7; 6], [8; 6], 314), expected);
    }
}
