//! From the bytes of link types without a frame's addresses to an IP packet: Linux's cooked captures, BSD's loopback,
//! bare packets (<https://www.tcpdump.org/linktypes.html>).
#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

use super::ethernet::{self, Packet};
use super::ip::Version;
use super::{Refusal, take};

/// The hardware type of monitor interfaces: a radiotap header and an 802.11 frame follow (`ARPHRD_IEEE80211_RADIOTAP`).
const RADIOTAP: u16 = 803;

/// IPv4 as an address family, everywhere.
const FAMILY_V4: u32 = 2;

/// IPv6 as an address family: NetBSD and OpenBSD, FreeBSD, Darwin.
const FAMILIES_V6: [u32; 3] = [24, 28, 30];

/// What a cooked header precedes.
pub(super) enum Payload<'a> {
    Packet(Packet<'a>),
    /// A radiotap header with its frame.
    Radiotap(&'a [u8]),
}

/// The payload of `LINKTYPE_LINUX_SLL`. Its header: packet type, hardware type, length of the address, the address in eight
/// bytes, EtherType.
pub(super) fn sll(mut bytes: &[u8]) -> Result<Payload<'_>, Refusal> {
    let [_, _, h0, h1, _, _, _, _, _, _, _, _, _, _, t0, t1] =
        take(&mut bytes).ok_or(Refusal::Short)?;
    payload([h0, h1], [t0, t1], bytes)
}

/// The payload of `LINKTYPE_LINUX_SLL2`. Its header: EtherType, two bytes that are reserved, number of the interface,
/// hardware type, packet type, length of the address, the address in eight bytes.
pub(super) fn sll2(mut bytes: &[u8]) -> Result<Payload<'_>, Refusal> {
    let [t0, t1, _, _, _, _, _, _, h0, h1, _, _, _, _, _, _, _, _, _, _] =
        take(&mut bytes).ok_or(Refusal::Short)?;
    payload([h0, h1], [t0, t1], bytes)
}

/// The payload of a hardware type and an EtherType. In the EtherType's place Linux also has numbers of its own, all
/// among the lengths: 4 is LLC.
fn payload(hardware: [u8; 2], kind: [u8; 2], bytes: &[u8]) -> Result<Payload<'_>, Refusal> {
    if u16::from_be_bytes(hardware) == RADIOTAP {
        return Ok(Payload::Radiotap(bytes));
    }
    ethernet::packet_of(u16::from_be_bytes(kind), bytes).map(Payload::Packet)
}

/// The packet of `LINKTYPE_NULL`. The file does not say which byte order the capturing machine had; families are below 256,
/// so that no number is a family in both.
pub(super) fn null(mut bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    let family = take(&mut bytes).ok_or(Refusal::Short)?;
    of_family(u32::from_be_bytes(family).min(u32::from_le_bytes(family)), bytes)
}

/// The packet of `LINKTYPE_LOOP`.
pub(super) fn loopback(mut bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    let family = take(&mut bytes).ok_or(Refusal::Short)?;
    of_family(u32::from_be_bytes(family), bytes)
}

fn of_family(family: u32, bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    match family {
        FAMILY_V4 => Ok((Version::V4, bytes)),
        family if FAMILIES_V6.contains(&family) => Ok((Version::V6, bytes)),
        _ => Err(Refusal::NotIp),
    }
}

/// A packet without a header before it: its first four bits are its version.
pub(super) fn raw(bytes: &[u8]) -> Result<Packet<'_>, Refusal> {
    match bytes.first().ok_or(Refusal::Short)? >> 4 {
        4 => Ok((Version::V4, bytes)),
        6 => Ok((Version::V6, bytes)),
        _ => Err(Refusal::NotIp),
    }
}
