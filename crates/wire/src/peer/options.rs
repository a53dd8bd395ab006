//! The options of a get: what most gets do without, and what later versions add.
//!
//! # Bytes of the options
//!
//! Their number; then each, in ascending order of its type: the type, the length of its value, its value. An odd
//! type is required: a node that does not know it, or does not know its value, does not understand the request.
//! An even type may be skipped.
//!
//! | type | value |
//! |---|---|
//! | 1 passed | 1: the method, 0 GET, 1 HEAD |
//! | 3 range | 1: 0 between two places, 1 from a place on, 2 at the end; one number, or two between places |
//! | 5 to | 16: a node id |
//! | 7 follow | nothing |
//! | 8 digest | 1: 1 SHA-256, 2 SHA-512; the digest, 32 or 64 |
//! | 9 towards | 4 or 16: the address of a router |
//! | 10 elsewhere | nothing |

use std::net::IpAddr;

use super::address;
use super::codec::{FrameError, Part, Reader, Unknown, at_most, sound, write_bytes};
use crate::varint;
use crate::{Digest, NodeId};

const PASSED: u16 = 1;
const RANGE: u16 = 3;
const TO: u16 = 5;
const FOLLOW: u16 = 7;
const DIGEST: u16 = 8;
const TOWARDS: u16 = 9;
const ELSEWHERE: u16 = 10;

const SHA256: u8 = 1;
const SHA512: u8 = 2;

/// What a request demands besides the object (docs/protocol.md, "Messages").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The asker passes the response on and stores nothing: it is answered with a
    /// [`Message::Opaque`](super::Message::Opaque), to a request with this method.
    pub passed: Option<Passed>,
    /// The part of the content that is wanted; only with `passed`.
    pub range: Option<ByteRange>,
    /// The only node that may answer.
    pub to: Option<NodeId>,
    /// The node that dials the origin follows redirects, and answers with what they lead to.
    pub follow: bool,
    /// The digest of the content, as an index promised it. A node that does not know it ignores it.
    pub digest: Option<Digest>,
    /// The router that is said to have the object. Those on the way there look it up, pass the request on and keep
    /// the answer; that router answers from its store alone.
    pub towards: Option<IpAddr>,
    /// The asker would go elsewhere: instead of forwarding the request, or of answering as the gateway, a node may
    /// name routers that have the object and are no farther from the asker.
    pub elsewhere: bool,
}

/// The method of a request whose response is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// GET.
    Get = 0,
    /// HEAD: no content follows the head.
    Head = 1,
}

/// A part of some content (RFC 9110 §14.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteRange {
    /// From the first byte to the last, both included; the last is not before the first.
    Between(u64, u64),
    /// From this byte on.
    From(u64),
    /// This many bytes at the end; at least one.
    Last(u64),
}

impl Options {
    /// The most options of one request, known or not.
    pub const COUNT_MAX: usize = 16;

    fn values(&self) -> Vec<(u16, Vec<u8>)> {
        let to = self.to.map(|to| to.0.to_vec());
        [
            (PASSED, self.passed.map(|method| vec![method as u8])),
            (RANGE, self.range.map(ByteRange::bytes)),
            (TO, to),
            (FOLLOW, self.follow.then(Vec::new)),
            (DIGEST, self.digest.as_ref().map(digest_bytes)),
            (TOWARDS, self.towards.map(address_bytes)),
            (ELSEWHERE, self.elsewhere.then(Vec::new)),
        ]
        .into_iter()
        .filter_map(|(kind, value)| Some((kind, value?)))
        .collect()
    }

    /// Reads the value of one option. `Ok(false)`: its type, or its value, is not known.
    fn read_one(&mut self, kind: u16, value: &mut Reader<'_>) -> Result<bool, FrameError> {
        match kind {
            PASSED => {
                self.passed = match value.byte()? {
                    0 => Some(Passed::Get),
                    1 => Some(Passed::Head),
                    _ => return Ok(false),
                }
            }
            RANGE => {
                self.range = match value.byte()? {
                    0 => Some(ByteRange::Between(value.number()?, value.number()?)),
                    1 => Some(ByteRange::From(value.number()?)),
                    2 => Some(ByteRange::Last(value.number()?)),
                    _ => return Ok(false),
                }
            }
            TO => self.to = Some(NodeId(value.array()?)),
            FOLLOW => self.follow = true,
            ELSEWHERE => self.elsewhere = true,
            DIGEST => {
                self.digest = match value.byte()? {
                    SHA256 => Some(Digest::Sha256(value.array()?)),
                    SHA512 => Some(Digest::Sha512(value.array()?)),
                    _ => return Ok(false),
                }
            }
            TOWARDS => {
                self.towards = Some(match value.rest().len() {
                    4 => value.array::<4>()?.into(),
                    _ => value.array::<16>()?.into(),
                });
            }
            _ => return Ok(false),
        }
        sound(value.is_empty())?;
        Ok(true)
    }
}

impl Part for Options {
    fn write(&self, out: &mut Vec<u8>) {
        let values = self.values();
        varint::write(values.len() as u64, out);
        for (kind, value) in values {
            varint::write(kind.into(), out);
            write_bytes(&value, out);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let count: usize = reader.number()?;
        at_most(count, Self::COUNT_MAX)?;
        let (mut options, mut last) = (Self::default(), None);
        for _ in 0..count {
            let kind: u16 = reader.number()?;
            sound(last.replace(kind) < Some(kind))?;
            let length = reader.number()?;
            let mut value = Reader::new(reader.take(length)?);
            if !options.read_one(kind, &mut value)? {
                let is_required = kind % 2 == 1;
                reader.meets(if is_required { Unknown::Required } else { Unknown::Optional });
            }
        }
        Ok(options)
    }

    fn check(&self) -> Result<(), FrameError> {
        sound(self.range.is_none() || self.passed.is_some())?;
        match self.range {
            Some(ByteRange::Between(first, last)) => sound(first <= last),
            Some(ByteRange::Last(count)) => sound(count > 0),
            Some(ByteRange::From(_)) | None => Ok(()),
        }
    }
}

impl ByteRange {
    fn bytes(self) -> Vec<u8> {
        let (kind, first, second) = match self {
            Self::Between(first, last) => (0, first, Some(last)),
            Self::From(first) => (1, first, None),
            Self::Last(count) => (2, count, None),
        };
        let mut out = vec![kind];
        for number in [Some(first), second].into_iter().flatten() {
            varint::write(number, &mut out);
        }
        out
    }
}

fn address_bytes(address: IpAddr) -> Vec<u8> {
    let mut bytes = Vec::new();
    address::write(Some(address), &mut bytes);
    bytes
}

fn digest_bytes(digest: &Digest) -> Vec<u8> {
    let algorithm = match digest {
        Digest::Sha256(_) => SHA256,
        Digest::Sha512(_) => SHA512,
    };
    [&[algorithm], digest.as_bytes()].concat()
}
