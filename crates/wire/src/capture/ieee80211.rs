//! 802.11 frames as they are on the air, without the FCS (IEEE 802.11-2020, clause 9).

#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

use super::{Refusal, take};

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

/// Parts of the first byte: version, type, and of a data frame's subtype the bits that say that
/// nothing is carried, and that a QoS field follows (9.2.4.1).
const VERSION: u8 = 0x03;
const TYPE: u8 = 0x0c;
const NULL: u8 = 0x40;
const QOS: u8 = 0x80;

/// Parts of the second byte: towards and from a distribution system; more parts follow.
const TO_DS: u8 = 0x01;
const FROM_DS: u8 = 0x02;
const MORE_FRAGMENTS: u8 = 0x04;

/// This is not the first try.
const RETRY: u8 = 0x08;

/// More parts of the second byte: encrypted; behind a QoS field, HT control follows.
const PROTECTED: u8 = 0x40;
const HT_CONTROL: u8 = 0x80;

/// Parts of the QoS field: several packets; a mesh control field is there (9.2.4.5).
const AGGREGATE: u16 = 0x0080;
const MESH_CONTROL: u16 = 0x0100;

/// Two addresses and a length, before each packet of an aggregate.
const SUBFRAME_HEADER_LEN: usize = 14;

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

/// What a data frame's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The station that it was sent to on this hop, or a group.
    pub receiver: Mac,
    /// The station that sent it on this hop.
    pub transmitter: Mac,
    /// The transmitter's count, 12 bits.
    pub sequence: u16,
    /// Whether it was sent before.
    pub retry: bool,
}

/// What a data frame carries.
#[derive(Debug)]
pub(super) enum Body<'a> {
    /// One packet, with LLC in front.
    Msdu(&'a [u8]),
    Aggregate(Msdus<'a>),
}

/// Reads a frame without its FCS. `padded` as radiotap says it; `cut` if it was captured in part.
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
    // In frames from stations to their access point, this bit has another meaning.
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

/// Whether by its first two bytes it is a data frame that can be read.
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

/// What follows the first two bytes, up to what is carried (9.3.2.1): the header and the QoS field,
/// zero if there is none. `None` if the bytes end before.
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

/// How long the mesh control field is that these bytes begin with (9.2.4.7.3): flags, time to live,
/// sequence number, no, one or two addresses. `None` if it is none: the bit that announces it means
/// something else between access points, and its reserved bits tell.
fn mesh_control_len(bytes: &[u8]) -> Option<usize> {
    match bytes.first()? {
        0 => Some(6),
        1 => Some(12),
        2 => Some(18),
        _ => None,
    }
}

/// The packets of an aggregate (A-MSDU, 9.3.2.2), each with LLC in front.
#[derive(Clone, Debug)]
pub(super) struct Msdus<'a> {
    rest: &'a [u8],
    length: Length,
    cut: bool,
}

/// How the length in front of each packet is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// Big-endian, of all that follows.
    Plain,
    /// In a mesh, as the standard has it: little-endian, of what follows the mesh control field.
    Mesh,
    /// The same, big-endian, as Linux sent it.
    MeshBigEndian,
    /// In a mesh, big-endian and with the mesh control field, as some hardware sends it.
    MeshWithin,
}

impl<'a> Msdus<'a> {
    fn new(rest: &'a [u8], mesh: bool, cut: bool) -> Self {
        // In a mesh, the reading that ends where the frame does is the right one.
        let readings = [Length::Mesh, Length::MeshBigEndian, Length::MeshWithin, Length::Plain];
        let fits = |length: &Length| {
            Msdus { rest, length: *length, cut: false }.all(|packet| packet.is_ok())
        };
        let mesh = mesh.then(|| readings.into_iter().find(fits).unwrap_or(Length::Mesh));
        Self { rest, length: mesh.unwrap_or(Length::Plain), cut }
    }
}

impl Length {
    /// Where the packet begins behind its subframe's header, and where it ends.
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
        // Less than a header is no packet, but a checksum or padding that nobody announced.
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
