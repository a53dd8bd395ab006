//! From what follows the addresses of a frame to an IP packet: types, LLC/SNAP, VLAN tags.
#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

use super::ip::Version;
use super::{Refusal, take};

/// Both addresses of an Ethernet frame.
pub(super) const ADDRESSES_LEN: usize = 12;

/// Larger numbers in the place of a type are types, not lengths (IEEE 802.3-2018, 3.2.6).
const LENGTH_MAX: u16 = 1500;

/// LLC of a SNAP header, and its organisation for types of Ethernet (RFC 1042).
const SNAP_RFC1042: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];

/// The same for bridge tunnels (IEEE 802.1H).
const SNAP_BRIDGE_TUNNEL: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0xf8];

/// More tags in a row than a customer's and a provider's make no sense (IEEE 802.1Q-2018, 9).
const TAGS_MAX: usize = 2;

/// An IP packet, perhaps with padding behind it.
pub(super) type Packet<'a> = (Version, &'a [u8]);

/// What an Ethernet frame carries.
pub(super) fn frame(bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    let typed = bytes.get(ADDRESSES_LEN..).ok_or(Refusal::Short)?;
    typed_packet(typed)
}

/// What a frame carries that has LLC in front, as those of 802.11 do.
pub(super) fn llc(mut bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    match take(&mut bytes) {
        Some(SNAP_RFC1042 | SNAP_BRIDGE_TUNNEL) => typed_packet(bytes),
        Some(_) => Err(Refusal::NotIp),
        None => Err(Refusal::Short),
    }
}

/// A type, with tags before it, and what it is the type of.
fn typed_packet(mut bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    for _ in 0..=TAGS_MAX {
        match take(&mut bytes).map(u16::from_be_bytes).ok_or(Refusal::Short)? {
            0x0800 => return Ok((Version::V4, bytes)),
            0x86dd => return Ok((Version::V6, bytes)),
            // The tag of 802.1Q (a customer's) or 802.1ad (a provider's): identifier, priority.
            0x8100 | 0x88a8 => take::<2>(&mut bytes).ok_or(Refusal::Short)?,
            ..=LENGTH_MAX => return untyped_packet(bytes),
            _ => return Err(Refusal::NotIp),
        };
    }
    Err(Refusal::VlanTags)
}

/// A packet with a length in the place of the type: LLC follows, and no further tags. What is
/// behind the length is padding, which the IP header cuts off anyway.
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
