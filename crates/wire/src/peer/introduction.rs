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

use std::net::IpAddr;

use super::codec::{self, FrameError, Part, Reader, check_line, write_bytes};
use crate::{PublicKey, Signature, Token};

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
    /// The name, the profile and the gateway.
    pub hello: Hello,
}

impl Introduction {
    /// The longest introduction, in bytes.
    pub const LENGTH_MAX: usize = PublicKey::LEN + Signature::LEN + Token::LEN + Hello::LENGTH_MAX;

    /// Its encoding; `None` if it breaks a limit.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        codec::encode(self, Self::LENGTH_MAX)
    }

    /// Reads exactly one introduction. Nothing is verified.
    ///
    /// # Errors
    ///
    /// Any input that is not the encoding of an introduction within the limits.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        codec::decode(bytes, Self::LENGTH_MAX)
    }
}

/// A description of a node, sent by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Its name, for display: at most [`Hello::NAME_MAX`] bytes, without control characters.
    pub name: String,
    /// How it cuts objects into chunks: the id of the profile.
    pub profile: u8,
    /// What it knows of the gateway.
    pub gateway: Gateway,
}

impl Hello {
    /// The longest name, in bytes.
    pub const NAME_MAX: usize = 64;
    /// The longest hello, in bytes: a name, a profile, a gateway with its address.
    const LENGTH_MAX: usize = 1 + Self::NAME_MAX + 1 + 1 + 16;
}

/// What a node knows of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gateway {
    /// It knows no gateway.
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
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        Ok(Self { name: reader.text()?, profile: reader.byte()?, gateway: Gateway::read(reader)? })
    }

    fn check(&self) -> Result<(), FrameError> {
        check_line(&self.name, Self::NAME_MAX)
    }
}

impl Part for Gateway {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Unknown => out.push(0),
            Self::Here => out.push(1),
            Self::At(IpAddr::V4(address)) => {
                out.push(2);
                out.extend_from_slice(&address.octets());
            }
            Self::At(IpAddr::V6(address)) => {
                out.push(3);
                out.extend_from_slice(&address.octets());
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
