//! From the bytes after a frame's addresses to an IP packet: EtherTypes, LLC/SNAP, VLAN tags, PPPoE.
#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

use super::ip::Version;
use super::{Refusal, take};

/// Length of both addresses of an Ethernet frame.
pub(super) const ADDRESSES_LEN: usize = 12;

/// In the type field, larger numbers are types, others lengths (IEEE 802.3-2018, 3.2.6).
const LENGTH_MAX: u16 = 1500;

/// The LLC and SNAP headers whose organisation is that for EtherTypes (RFC 1042).
const SNAP_RFC1042: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];

/// The same for bridge tunnels (IEEE 802.1H).
const SNAP_BRIDGE_TUNNEL: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0xf8];

/// A PPPoE session's version and type, and the code of its data (RFC 2516, 4).
const PPPOE_DATA: [u8; 2] = [0x11, 0];

/// Two VLAN tags are a customer's and a provider's; more have no meaning (IEEE 802.1Q-2018, 9).
const TAGS_MAX: usize = 2;

/// An IP packet, which padding may follow.
pub(super) type Packet<'a> = (Version, &'a [u8]);

/// The packet in an Ethernet frame.
pub(super) fn frame(bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    let typed = bytes.get(ADDRESSES_LEN..).ok_or(Refusal::Short)?;
    typed_packet(typed)
}

/// The packet in a frame body that begins with LLC, as those of 802.11 do.
pub(super) fn llc(mut bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    match take(&mut bytes) {
        Some(SNAP_RFC1042 | SNAP_BRIDGE_TUNNEL) => typed_packet(bytes),
        Some(_) => Err(Refusal::NotIp),
        None => Err(Refusal::Short),
    }
}

/// The packet after an EtherType, which VLAN tags may precede.
fn typed_packet(mut bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    let kind = take(&mut bytes).map(u16::from_be_bytes).ok_or(Refusal::Short)?;
    packet_of(kind, bytes)
}

/// The packet in bytes of this EtherType, or length; VLAN tags may precede it.
pub(super) fn packet_of(mut kind: u16, mut bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    for _ in 0..=TAGS_MAX {
        match kind {
            0x0800 => return Ok((Version::V4, bytes)),
            0x86dd => return Ok((Version::V6, bytes)),
            // A tag of 802.1Q (a customer's) or 802.1ad (a provider's): priority and VLAN
            // identifier.
            0x8100 | 0x88a8 => take::<2>(&mut bytes).ok_or(Refusal::Short)?,
            0x8864 => return pppoe(bytes),
            ..=LENGTH_MAX => return untyped_packet(bytes),
            _ => return Err(Refusal::NotIp),
        };
        kind = take(&mut bytes).map(u16::from_be_bytes).ok_or(Refusal::Short)?;
    }
    Err(Refusal::VlanTags)
}

/// A packet whose type field is a length: LLC follows, without tags. Padding after that length
/// needs no care, because the IP header's length excludes it.
fn untyped_packet(mut bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    let Some(SNAP_RFC1042 | SNAP_BRIDGE_TUNNEL) = take(&mut bytes) else {
        return Err(Refusal::NotIp);
    };
    match take(&mut bytes) {
        Some([0x08, 0x00]) => Ok((Version::V4, bytes)),
        Some([0x86, 0xdd]) => Ok((Version::V6, bytes)),
        Some(_) => Err(Refusal::NotIp),
        None => Err(Refusal::Short),
    }
}

/// The packet in a PPPoE session: a number of the session and a length follow the code, then PPP's protocol. The IP
/// header's length excludes padding, as elsewhere.
fn pppoe(mut bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    let [version, code, _, _, _, _] = take(&mut bytes).ok_or(Refusal::Short)?;
    if [version, code] != PPPOE_DATA {
        return Err(Refusal::NotIp);
    }
    match take(&mut bytes).map(u16::from_be_bytes).ok_or(Refusal::Short)? {
        0x0021 => Ok((Version::V4, bytes)),
        0x0057 => Ok((Version::V6, bytes)),
        _ => Err(Refusal::NotIp),
    }
}
