//! Addresses: two bits of flags, and then the bytes. Where an address is optional, the part around it writes the flags.

use std::net::IpAddr;

use super::codec::{FrameError, Reader};

/// Flag: there is an IPv4 address.
const V4: u8 = 1;
/// Flag: there is an IPv6 address.
const V6: u8 = 1 << 1;
/// Both flags.
pub(super) const FLAGS: u8 = V4 | V6;

pub(super) fn flags(address: Option<IpAddr>) -> u8 {
    match address {
        None => 0,
        Some(IpAddr::V4(_)) => V4,
        Some(IpAddr::V6(_)) => V6,
    }
}

pub(super) fn write(address: Option<IpAddr>, out: &mut Vec<u8>) {
    match address {
        None => {}
        Some(IpAddr::V4(address)) => out.extend_from_slice(&address.octets()),
        Some(IpAddr::V6(address)) => out.extend_from_slice(&address.octets()),
    }
}

/// Reads the address that these flags announce.
pub(super) fn read(flags: u8, reader: &mut Reader<'_>) -> Result<Option<IpAddr>, FrameError> {
    match flags & FLAGS {
        0 => Ok(None),
        V4 => reader.array::<4>().map(|octets| Some(octets.into())),
        V6 => reader.array::<16>().map(|octets| Some(octets.into())),
        _ => Err(FrameError::Malformed),
    }
}

/// Writes an address with its flags.
pub(super) fn write_router(router: IpAddr, out: &mut Vec<u8>) {
    out.push(flags(Some(router)));
    write(Some(router), out);
}

/// Reads an address with its flags.
pub(super) fn read_router(reader: &mut Reader<'_>) -> Result<IpAddr, FrameError> {
    let flags = reader.flags(FLAGS)?;
    read(flags, reader)?.ok_or(FrameError::Malformed)
}
