//! TCP flows of any kind: what is known of their content, and what the two ends say to begin one.

use super::codec::{Fields, Malformed, Writer};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Bytes that wait after a pause and are fewer than this cross uncut, in a message of their own, and are not kept. More
/// are a unit: an answer of that length may come again.
pub const PIECE_MAX: usize = 2 * 1024;
/// How many bytes of a TCP flow the sender may be ahead of what the receiver has passed on. Uncut bytes wait in memory.
pub const TCP_WINDOW: u64 = 1024 * 1024;
/// A flow is judged by this much of its content …
const JUDGED: u64 = 256 * 1024;
/// … and is opaque if it crosses as at least this part of its size.
const OPAQUE: (u64, u64) = (97, 100);

/// The kind of a flow's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Content of HTTP: all of it is cut into units.
    Http,
    /// A TCP flow: it is cut into units, but little bytes that wait cross uncut.
    Tcp {
        /// Content that has been judged, in bytes, and what it cost to cross.
        seen: u64,
        cost: u64,
        /// What is in hand has waited long enough.
        is_due: bool,
    },
    /// A TCP flow that is encrypted or compressed: it crosses uncut.
    Opaque,
}

impl Kind {
    /// A TCP flow of which nothing is known.
    pub const TCP: Self = Self::Tcp { seen: 0, cost: 0, is_due: false };

    /// Judges content that crossed at this cost, in bytes.
    pub fn judge(&mut self, content: u64, crossed: u64) {
        let Self::Tcp { seen, cost, .. } = self else { return };
        if *seen >= JUDGED {
            return;
        }
        (*seen, *cost) = (*seen + content, *cost + crossed);
        if *seen >= JUDGED && *cost * OPAQUE.1 >= *seen * OPAQUE.0 {
            *self = Self::Opaque;
        }
    }

    /// Judges the first bytes of a flow.
    pub fn begin(&mut self, bytes: &[u8]) {
        if matches!(self, Self::Tcp { .. }) && is_encrypted(bytes) {
            *self = Self::Opaque;
        }
    }
}

/// Whether a flow that begins so is encrypted: a TLS handshake (RFC 8446 §5.1), or SSH (RFC 4253 §4.2).
fn is_encrypted(first: &[u8]) -> bool {
    matches!(first, [22, 3, 0..=4, ..]) || first.starts_with(b"SSH-")
}

/// The families of addresses that the far end reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// IPv4.
    pub v4: bool,
    /// IPv6.
    pub v6: bool,
}

impl Reach {
    /// Whether this address is of a family that it reaches.
    pub fn covers(self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(_) => self.v4,
            IpAddr::V6(_) => self.v6,
        }
    }

    /// As a byte: a bit for each family.
    pub fn bits(self) -> u8 {
        u8::from(self.v4) | u8::from(self.v6) << 1
    }

    /// The families of such a byte. Other bits are left for later versions.
    pub fn from_bits(bits: u8) -> Self {
        Self { v4: bits & 1 != 0, v6: bits & 2 != 0 }
    }
}

/// A TCP connection that the far end is to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialled {
    /// Where to.
    pub to: SocketAddr,
    /// Tells apart those for whom flows are.
    pub client: u64,
}

pub fn encode_dialled(dialled: &Dialled, w: &mut Writer<'_>) {
    match dialled.to.ip() {
        IpAddr::V4(ip) => w.string(&ip.octets()),
        IpAddr::V6(ip) => w.string(&ip.octets()),
    }
    w.number(dialled.to.port().into());
    w.number(dialled.client);
}

pub fn decode_dialled(fields: &mut Fields<'_>) -> Result<Dialled, Malformed> {
    let address = fields.string(16)?;
    let v4 = <[u8; 4]>::try_from(address).map(IpAddr::from);
    let ip = v4.or_else(|_| <[u8; 16]>::try_from(address).map(IpAddr::from));
    let ip = ip.map_err(|_| Malformed)?;
    let port = fields.up_to(0xffff)? as u16;
    Ok(Dialled { to: SocketAddr::new(ip, port), client: fields.number()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encrypted_shows_in_its_first_bytes() {
        for first in [&b"\x16\x03\x01\x02\x00\x01"[..], b"\x16\x03\x03\x00", b"SSH-2.0-x\r\n"] {
            let mut kind = Kind::TCP;
            kind.begin(first);
            assert_eq!(kind, Kind::Opaque, "{}", first.escape_ascii());
        }
        for first in [&b"HELO"[..], b"", b"\x16", b"\x16\x03", b"\x16\x03\x05\x00", b"SSH"] {
            let mut kind = Kind::TCP;
            kind.begin(first);
            assert_eq!(kind, Kind::TCP, "{}", first.escape_ascii());
        }
        let mut http = Kind::Http;
        http.begin(b"SSH-2.0");
        assert_eq!(http, Kind::Http);
    }

    #[test]
    fn a_flow_that_does_not_shrink_at_first_is_opaque_from_then_on() {
        let after = |steps: &[(u64, u64)]| {
            let mut kind = Kind::TCP;
            steps.iter().for_each(|(content, crossed)| kind.judge(*content, *crossed));
            kind
        };
        let (half, all) = (JUDGED / 2, JUDGED);
        assert_ne!(after(&[(half, half)]), Kind::Opaque, "too early");
        assert_eq!(after(&[(half, half), (half, half)]), Kind::Opaque);
        assert_ne!(after(&[(half, half), (half, half / 2), (all, all)]), Kind::Opaque);
    }

    #[test]
    fn a_dialled_address_reads_back() {
        for to in ["192.0.2.1:25", "[2001:db8::1]:65535"] {
            let dialled = Dialled { to: to.parse().unwrap(), client: 300 };
            let mut bytes = Vec::new();
            encode_dialled(&dialled, &mut Writer(&mut bytes));
            let mut fields = Fields(&bytes);
            assert_eq!(decode_dialled(&mut fields), Ok(dialled));
            assert!(fields.0.is_empty());
        }
        assert_eq!(decode_dialled(&mut Fields(&[5, 1, 2, 3, 4, 5, 0, 0])), Err(Malformed));
    }
}
