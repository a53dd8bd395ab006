//! The identity of a peer, and what it says of itself.
//!
//! # Bytes of an introduction
//!
//! | bytes | field |
//! |---|---|
//! | 32 | identity |
//! | 64 | signature |
//! | 16 | token |
//! | … | the hello |
//!
//! # Bytes of a hello
//!
//! | bytes | field |
//! |---|---|
//! | varint, … | the name's length, the name |
//! | 1 | profile |
//! | 1 | gateway: 0 unknown, 1 here, 2 at an IPv4 address, 3 at an IPv6 address |
//! | 4 or 16 | its address, if it has one |
//! | varint, … | capabilities: their number, then each, a varint, ascending |
//! | 1 | flags: bit 0 an IPv4 address, 1 an IPv6 address, 2 hops, 3 the gateway's key; the others zero |
//! | 4 or 16 | if bit 0 or 1 is set: the node's address |
//! | varint | if bit 2 is set: hops |
//! | 32 | if bit 3 is set: the gateway's key |
//!
//! Bytes after these are skipped.

use std::net::IpAddr;

use super::address;
use super::capability::Capability;
use super::codec::{
    self, FrameError, Part, Reader, Unknown, check_line, check_list, sound, write_bytes, write_list,
};
use crate::varint;
use crate::{PublicKey, Signature, Token};

const HOPS: u8 = 1 << 2;
const GATEWAY_KEY: u8 = 1 << 3;

/// The payload of a handshake: the sender's identity, and the token that opens its first data
/// connection.
///
/// *Usage:* the last handshake message of each side carries one. *Effects:* the receiver verifies
/// the signature and accepts the peer, or closes the connection. *Side effects:* the sender must
/// remember the token until it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// The identity: an Ed25519 key.
    pub identity: PublicKey,
    /// Its signature over the Noise key of this connection, and over which side dialled it.
    pub signature: Signature,
    /// Opens one data connection towards the sender.
    pub token: Token,
    /// What the sender says of itself.
    pub hello: Hello,
}

impl Introduction {
    /// The longest introduction, in bytes, also of later versions: with Noise's own bytes it fits a message of
    /// the handshake. The longest of this version has 330.
    pub const LENGTH_MAX: usize = 900;

    /// Its encoding; `None` if it breaks a limit.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        codec::encode(self, Self::LENGTH_MAX)
    }

    /// Reads exactly one introduction, of which this version knows everything. Nothing is verified.
    ///
    /// # Errors
    ///
    /// Any input that is not the encoding of an introduction within the limits.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        codec::decode(bytes, Self::LENGTH_MAX)
    }

    /// Reads an introduction that may be of a later version; true if a part of it was skipped.
    ///
    /// # Errors
    ///
    /// Any input whose known part is not the encoding of an introduction within the limits.
    pub fn receive(bytes: &[u8]) -> Result<(Self, bool), FrameError> {
        let (introduction, unknown) = codec::receive(bytes, Self::LENGTH_MAX)?;
        Ok((introduction, unknown != Unknown::Nothing))
    }
}

/// A description of a node, sent by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// Its name, for display: at most [`Hello::NAME_MAX`] bytes, without control characters.
    pub name: String,
    /// How it cuts objects into chunks: the id of the profile.
    pub profile: u8,
    /// What it knows of the gateway.
    pub gateway: Gateway,
    /// What it can do, ascending; unknown ones are ignored. At most [`Capability::COUNT_MAX`].
    pub capabilities: Vec<Capability>,
    /// The address by which the mesh knows it.
    pub address: Option<IpAddr>,
    /// The number of hops from it to the gateway; zero if it is the gateway.
    pub hops: Option<u32>,
    /// The gateway's identity. Nothing proves it.
    pub gateway_key: Option<PublicKey>,
}

impl Hello {
    /// The longest name, in bytes.
    pub const NAME_MAX: usize = 64;
}

/// What a node knows of the gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gateway {
    /// It knows no gateway.
    #[default]
    Unknown,
    /// It is the gateway.
    Here,
    /// The gateway has this address.
    At(IpAddr),
}

impl Part for Introduction {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.identity.0);
        out.extend_from_slice(&self.signature.0);
        out.extend_from_slice(&self.token.0);
        self.hello.write(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        Ok(Self {
            identity: PublicKey(reader.array()?),
            signature: Signature(reader.array()?),
            token: Token(reader.array()?),
            hello: Hello::read(reader)?,
        })
    }

    fn check(&self) -> Result<(), FrameError> {
        self.hello.check()
    }
}

impl Part for Hello {
    fn write(&self, out: &mut Vec<u8>) {
        write_bytes(self.name.as_bytes(), out);
        out.push(self.profile);
        self.gateway.write(out);
        write_list(&self.capabilities, out);
        out.push(self.flags());
        address::write(self.address, out);
        if let Some(hops) = self.hops {
            varint::write(hops.into(), out);
        }
        if let Some(key) = self.gateway_key {
            out.extend_from_slice(&key.0);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let (name, profile) = (reader.text()?, reader.byte()?);
        let (gateway, capabilities) = (Gateway::read(reader)?, reader.list()?);
        let flags = reader.flags(address::FLAGS | HOPS | GATEWAY_KEY)?;
        let address = address::read(flags, reader)?;
        let hops = reader.option(flags & HOPS != 0, Reader::number)?;
        let gateway_key =
            reader.option(flags & GATEWAY_KEY != 0, |reader| reader.array().map(PublicKey))?;
        Ok(Self { name, profile, gateway, capabilities, address, hops, gateway_key })
    }

    fn check(&self) -> Result<(), FrameError> {
        check_line(&self.name, Self::NAME_MAX)?;
        check_list(&self.capabilities)?;
        // In order, so that a set has one encoding.
        sound(self.capabilities.is_sorted_by(|one, next| one < next))
    }
}

impl Hello {
    fn flags(&self) -> u8 {
        let hops = if self.hops.is_some() { HOPS } else { 0 };
        let key = if self.gateway_key.is_some() { GATEWAY_KEY } else { 0 };
        address::flags(self.address) | hops | key
    }
}

impl Part for Gateway {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Unknown => out.push(0),
            Self::Here => out.push(1),
            Self::At(address) => {
                out.push(if address.is_ipv4() { 2 } else { 3 });
                address::write(Some(*address), out);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        match reader.byte()? {
            0 => Ok(Self::Unknown),
            1 => Ok(Self::Here),
            2 => Ok(Self::At(IpAddr::from(reader.array::<4>()?))),
            3 => Ok(Self::At(IpAddr::from(reader.array::<16>()?))),
            _ => Err(FrameError::Malformed),
        }
    }

    fn check(&self) -> Result<(), FrameError> {
        Ok(())
    }
}
