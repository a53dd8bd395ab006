//! Datagrams between routers: the search for a copy of an object (MeshCache §4.2.2 and §7.3).
//!
//! # Bytes of a datagram
//!
//! | bytes | |
//! |---|---|
//! | 4 | `HSDG` |
//! | 1 | version: 2 |
//! | 1 | flags: bit 0, what follows is sealed |
//! | 24 | if it is sealed: a nonce |
//! | … | a call, in clear or sealed |
//!
//! # Bytes of a call
//!
//! | bytes | field |
//! |---|---|
//! | 1 | kind: 1 locate, 2 found, 3 setup |
//! | 12 | the search: boot, 8; sequence, 4; both big-endian |
//! | 8 | locate, setup: the short name of the object |
//! | 1, 1 | locate: hops that it may still go, hops that it has gone. Found: the hops that the locate had gone |
//! | 1, 4 or 16 | flags (bit 0, an IPv4 address follows; 1, an IPv6 address), the address. Locate: who searches. Found, setup: the holder |

use std::net::IpAddr;

use super::address;
use super::codec::{FrameError, Part, Reader, VERSION, decode, encode, sound};
use crate::Hint;

const MARKER: [u8; 4] = *b"HSDG";
const SEALED: u8 = 1;

const LOCATE: u8 = 1;
const FOUND: u8 = 2;
const SETUP: u8 = 3;

/// The opening of a datagram, which is never sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// The call follows in clear.
    Open,
    /// The sealed call follows.
    Sealed {
        /// The nonce under which it was sealed.
        nonce: [u8; 24],
    },
}

/// A search of one router: no two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Search {
    /// Grows with each start of the router.
    pub boot: u64,
    /// Grows with each search since then.
    pub sequence: u32,
}

/// What a datagram says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Who has this object? Each router passes it on once.
    Locate(Locate),
    /// The sender has it.
    Found(Found),
    /// The object can be had from a router, to which this path leads (MeshCache §7.3).
    Setup(Setup),
}

/// *Content locate*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locate {
    /// The router that searches, by its address in the mesh.
    pub origin: IpAddr,
    /// The search.
    pub search: Search,
    /// The object.
    pub name: Hint,
    /// The hops that it may still go; at least one.
    pub ttl: u8,
    /// The hops that it has gone, this one included; at least one.
    pub hops: u8,
}

/// *Content found*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The search that it answers.
    pub search: Search,
    /// The router that has the object.
    pub holder: IpAddr,
    /// The hops that the locate had gone.
    pub hops: u8,
}

/// *Setup*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The search that found the holder.
    pub search: Search,
    /// The object.
    pub name: Hint,
    /// The router that has it.
    pub holder: IpAddr,
}

impl Envelope {
    /// The longest datagram, in bytes: far below any path's MTU.
    pub const LENGTH_MAX: usize = 128;

    /// The opening's bytes; the call follows them.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MARKER);
        out.push(VERSION);
        match self {
            Self::Open => out.push(0),
            Self::Sealed { nonce } => {
                out.push(SEALED);
                out.extend_from_slice(&nonce);
            }
        }
    }

    /// Takes the opening off a datagram. Returns the bytes of the call.
    ///
    /// # Errors
    ///
    /// It is no datagram of this protocol, or of another version of it.
    pub fn read(bytes: &[u8]) -> Result<(Self, &[u8]), FrameError> {
        if bytes.len() > Self::LENGTH_MAX {
            return Err(FrameError::TooLong);
        }
        let mut reader = Reader::new(bytes);
        reader.opening(MARKER)?;
        let envelope = match reader.flags(SEALED)? {
            0 => Self::Open,
            _ => Self::Sealed { nonce: reader.array()? },
        };
        Ok((envelope, reader.rest()))
    }
}

impl Call {
    /// The bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self, Envelope::LENGTH_MAX).expect("each field has a fixed length")
    }

    /// Reads the bytes.
    ///
    /// # Errors
    ///
    /// They are not exactly one call.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        decode(bytes, Envelope::LENGTH_MAX)
    }
}

impl Part for Search {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.boot.to_be_bytes());
        out.extend_from_slice(&self.sequence.to_be_bytes());
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let boot = u64::from_be_bytes(reader.array()?);
        Ok(Self { boot, sequence: u32::from_be_bytes(reader.array()?) })
    }

    fn check(&self) -> Result<(), FrameError> {
        Ok(())
    }
}

impl Part for Call {
    fn write(&self, out: &mut Vec<u8>) {
        let (kind, search) = match self {
            Self::Locate(it) => (LOCATE, it.search),
            Self::Found(it) => (FOUND, it.search),
            Self::Setup(it) => (SETUP, it.search),
        };
        out.push(kind);
        search.write(out);
        let router = match self {
            Self::Locate(it) => {
                out.extend_from_slice(&it.name.0);
                out.extend([it.ttl, it.hops]);
                it.origin
            }
            Self::Found(it) => {
                out.push(it.hops);
                it.holder
            }
            Self::Setup(it) => {
                out.extend_from_slice(&it.name.0);
                it.holder
            }
        };
        address::write_router(router, out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let kind = reader.byte()?;
        let search = Search::read(reader)?;
        Ok(match kind {
            LOCATE => {
                let (name, ttl, hops) = (Hint(reader.array()?), reader.byte()?, reader.byte()?);
                Self::Locate(Locate {
                    origin: address::read_router(reader)?,
                    search,
                    name,
                    ttl,
                    hops,
                })
            }
            FOUND => {
                let hops = reader.byte()?;
                Self::Found(Found { search, holder: address::read_router(reader)?, hops })
            }
            SETUP => {
                let name = Hint(reader.array()?);
                Self::Setup(Setup { search, name, holder: address::read_router(reader)? })
            }
            _ => return Err(FrameError::Malformed),
        })
    }

    fn check(&self) -> Result<(), FrameError> {
        match self {
            Self::Locate(it) => sound(it.ttl > 0 && it.hops > 0),
            Self::Found(it) => sound(it.hops > 0),
            Self::Setup(_) => Ok(()),
        }
    }
}
