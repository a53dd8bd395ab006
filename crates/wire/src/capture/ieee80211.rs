//! 802.11 frames as they are sent, without the FCS (IEEE 802.11-2020, clause 9).

#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

use super::{Refusal, take};

/// A link-layer address.
pub type Mac = [u8; 6];

/// Length of a data frame's header in an ad hoc network (three addresses).
pub const DATA_HEADER_LEN: usize = 24;

/// Length of the LLC and SNAP headers, between that header and the network layer's packet (RFC
/// 1042).
pub const LLC_LEN: usize = 8;

/// Length of an ACK frame, and of a CTS frame.
pub const ACK_LEN: usize = 10;

/// Length of an RTS frame.
pub const RTS_LEN: usize = 16;

/// Type data, subtype 0; both DS bits are zero in an ad hoc network.
const DATA: u8 = 0x08;

/// Type control, subtypes ACK, RTS and CTS.
const ACK: u8 = 0xd4;
const RTS: u8 = 0xb4;
const CTS: u8 = 0xc4;

/// Masks for the first byte: version; type; and the two bits of a data frame's subtype for "no
/// data" and "a QoS field follows" (9.2.4.1).
const VERSION: u8 = 0x03;
const TYPE: u8 = 0x0c;
const NULL: u8 = 0x40;
const QOS: u8 = 0x80;

/// Bits of the second byte: to DS, from DS, more fragments.
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const MORE_FRAGMENTS: u8 = 0x04;

/// Bit of the second byte: a retransmission.
const RETRY: u8 = 0x08;

/// Further bits of the second byte: encrypted; in frames with a QoS field, an HT control field
/// follows it.
const PROTECTED: u8 = 0x40;
const HT_CONTROL: u8 = 0x80;

/// Bits of the QoS field: the body is an A-MSDU; a mesh control field is present (9.2.4.5).
const AGGREGATE: u16 = 0x0080;
const MESH_CONTROL: u16 = 0x0100;

/// Before each packet of an A-MSDU: two addresses and a length.
const SUBFRAME_HEADER_LEN: usize = 14;

/// The header of a data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The receiver's address.
    pub to: Mac,
    /// The sender's address.
    pub from: Mac,
    /// The address of the network (BSSID).
    pub bssid: Mac,
    /// The duration field: the rest of the frame exchange after this frame, in microseconds.
    pub duration_us: u16,
    /// The sender's sequence number, 12 bits.
    pub sequence: u16,
    /// Whether the frame is a retransmission.
    pub retry: bool,
}

impl Data {
    /// The header, followed by the LLC/SNAP header of a packet with this EtherType.
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

/// An ACK to this station. It ends the frame exchange, so its duration is zero.
pub fn ack(to: Mac) -> [u8; ACK_LEN] {
    let mut frame = [0; ACK_LEN];
    frame[0] = ACK;
    frame[4..].copy_from_slice(&to);
    frame
}

/// An RTS: asks another station whether the sender may transmit.
pub fn rts(to: Mac, from: Mac, duration_us: u16) -> [u8; RTS_LEN] {
    let mut frame = [0; RTS_LEN];
    frame[0] = RTS;
    frame[2..4].copy_from_slice(&duration_us.to_le_bytes());
    frame[4..10].copy_from_slice(&to);
    frame[10..].copy_from_slice(&from);
    frame
}

/// A CTS: the answer to an RTS.
pub fn cts(to: Mac, duration_us: u16) -> [u8; ACK_LEN] {
    let mut frame = ack(to);
    frame[0] = CTS;
    frame[2..4].copy_from_slice(&duration_us.to_le_bytes());
    frame
}

/// The fields of a data frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The receiver on this hop: a station or a group.
    pub receiver: Mac,
    /// The sender on this hop.
    pub transmitter: Mac,
    /// The transmitter's sequence number, 12 bits.
    pub sequence: u16,
    /// Whether the frame is a retransmission.
    pub retry: bool,
}

/// The body of a data frame.
#[derive(Debug)]
pub(super) enum Body<'a> {
    /// One packet, preceded by LLC.
    Msdu(&'a [u8]),
    Aggregate(Msdus<'a>),
}

/// Parses a frame without its FCS. `padded`: radiotap announces padding after the header; `cut`:
/// part of the frame was not captured.
pub(super) fn read(frame: &[u8], padded: bool, cut: bool) -> Result<(Header, Body<'_>), Refusal> {
    let mut rest = frame;
    let [kind, flags] = take(&mut rest).ok_or(Refusal::Short)?;
    carries_data(kind, flags)?;
    let (header, qos) = read_header(&mut rest, kind, flags).ok_or(Refusal::Short)?;
    let header = header?;
    if padded {
        let length = frame.len() - rest.len();
        rest = frame.get(length.next_multiple_of(4)..).ok_or(Refusal::Short)?;
    }
    // Without the "from DS" bit, from a station to its access point, this bit means something else.
    let mesh = flags & FROM_DS != 0 && qos & MESH_CONTROL != 0;
    let body = if qos & AGGREGATE != 0 {
        Body::Aggregate(Msdus::new(rest, mesh, cut))
    } else if mesh && let Some(length) = mesh_control_len(rest) {
        Body::Msdu(rest.get(length..).ok_or(Refusal::Short)?)
    } else {
        Body::Msdu(rest)
    };
    Ok((header, body))
}

/// Checks by the first two bytes that this is a data frame that can be read.
fn carries_data(kind: u8, flags: u8) -> Result<(), Refusal> {
    match kind & (VERSION | TYPE) {
        0x00 => Err(Refusal::Management),
        0x04 => Err(Refusal::Control),
        DATA if kind & NULL != 0 => Err(Refusal::Null),
        DATA if flags & PROTECTED != 0 => Err(Refusal::Protected),
        DATA if flags & MORE_FRAGMENTS != 0 => Err(Refusal::LinkFragment),
        DATA => Ok(()),
        _ => Err(Refusal::Reserved),
    }
}

/// The fields from the third byte to the body (9.3.2.1): the header, and the QoS field, zero if
/// absent. `None` if the bytes end before the body.
fn read_header(rest: &mut &[u8], kind: u8, flags: u8) -> Option<(Result<Header, Refusal>, u16)> {
    let _duration: [u8; 2] = take(rest)?;
    let (receiver, transmitter, _third): (Mac, Mac, Mac) = (take(rest)?, take(rest)?, take(rest)?);
    let sequence = u16::from_le_bytes(take(rest)?);
    if flags & (TO_DS | FROM_DS) == TO_DS | FROM_DS {
        let _fourth: Mac = take(rest)?;
    }
    let mut qos = 0;
    if kind & QOS != 0 {
        qos = u16::from_le_bytes(take(rest)?);
        if flags & HT_CONTROL != 0 {
            let _ht_control: [u8; 4] = take(rest)?;
        }
    }
    if sequence & 0xf != 0 {
        return Some((Err(Refusal::LinkFragment), qos));
    }
    let (sequence, retry) = (sequence >> 4, flags & RETRY != 0);
    Some((Ok(Header { receiver, transmitter, sequence, retry }), qos))
}

/// The length of the mesh control field at the front (9.2.4.7.3): flags, time to live, sequence
/// number, and up to two addresses. `None` if there is none: between access points the bit that
/// announces the field has another meaning, which is detected by the reserved flags.
fn mesh_control_len(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        0 => Some(6),
        1 => Some(12),
        2 => Some(18),
        _ => None,
    }
}

/// The packets of an aggregate (A-MSDU, 9.3.2.2), each preceded by LLC.
#[derive(Clone, Debug)]
pub(super) struct Msdus<'a> {
    rest: &'a [u8],
    length: Length,
    cut: bool,
}

/// The meaning of the length field before each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// Big-endian; counts all that follows.
    Plain,
    /// In a mesh, by the standard: little-endian; counts what follows the mesh control field.
    Mesh,
    /// The same in big-endian, as Linux used to send it.
    MeshBigEndian,
    /// In a mesh: big-endian, counting the mesh control field too, as some hardware sends it.
    MeshWithin,
}

impl<'a> Msdus<'a> {
    fn new(rest: &'a [u8], mesh: bool, cut: bool) -> Self {
        // The sender does not say which it uses; the right reading is the one that ends where the
        // frame does.
        let readings = [Length::Mesh, Length::MeshBigEndian, Length::MeshWithin, Length::Plain];
        let fits = |length: &Length| {
            Msdus { rest, length: *length, cut: false }.all(|packet| packet.is_ok())
        };
        let mesh = mesh.then(|| readings.into_iter().find(fits).unwrap_or(Length::Mesh));
        Self { rest, length: mesh.unwrap_or(Length::Plain), cut }
    }
}

impl Length {
    /// Where in the subframe the packet begins and ends.
    fn borders(self, subframe: &[u8]) -> Option<(usize, usize)> {
        let mut after = subframe.get(2 * size_of::<Mac>()..)?;
        let length: [u8; 2] = take(&mut after)?;
        let control = match self {
            Self::Plain => 0,
            _ => mesh_control_len(after)?,
        };
        let length = usize::from(match self {
            Self::Mesh => u16::from_le_bytes(length),
            _ => u16::from_be_bytes(length),
        });
        let start = SUBFRAME_HEADER_LEN + control;
        let counted_from = match self {
            Self::MeshWithin => SUBFRAME_HEADER_LEN,
            _ => start,
        };
        let end = counted_from + length;
        (start <= end).then_some((start, end))
    }
}

impl<'a> Iterator for Msdus<'a> {
    type Item = Result<&'a [u8], Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        // A rest shorter than a header is no packet but an unannounced checksum or padding.
        if self.rest.len() < SUBFRAME_HEADER_LEN {
            return None;
        }
        let rest = std::mem::take(&mut self.rest);
        let Some((start, end)) = self.length.borders(rest) else {
            return Some(Err(Refusal::Short));
        };
        if let Some(packet) = rest.get(start..end) {
            self.rest = rest.get(end.next_multiple_of(4)..).unwrap_or_default();
            return Some(Ok(packet));
        }
        Some(rest.get(start..).filter(|_| self.cut).ok_or(Refusal::Short))
    }
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
