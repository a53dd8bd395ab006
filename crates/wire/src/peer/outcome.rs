//! The end of a response.
//!
//! # Bytes of an outcome
//!
//! | bytes | field |
//! |---|---|
//! | 1 | the code: the number of the variant |
//! | varint, … | if elsewhere: the number of routers, then each |
//!
//! # Bytes of a router
//!
//! | bytes | field |
//! |---|---|
//! | 16 | the node id |
//! | 1 | flags: bit 0 an IPv4 address, 1 an IPv6 address, 2 a cost; the others zero |
//! | 4 or 16 | if bit 0 or 1 is set: its address in the mesh |
//! | varint | if bit 2 is set: the cost |

use std::net::IpAddr;

use super::address;
use super::codec::{FrameError, Item, Part, Reader, Unknown, check_list, write_list};
use crate::{NodeId, varint};

const COST: u8 = 1 << 2;

/// The code of [`Outcome::Elsewhere`], the only one that has fields.
const ELSEWHERE: u8 = 12;

/// How a response ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The whole response was sent.
    Complete,
    /// The origin's name has no address.
    Unresolved,
    /// The access rules forbid dialling the origin.
    Forbidden,
    /// The origin refuses connections, or its network cannot be reached.
    Unreachable,
    /// The origin did not answer in time, or paused for too long.
    TimedOut,
    /// The origin's response was not valid HTTP.
    Malformed,
    /// The origin's connection ended before the response did.
    Truncated,
    /// The node has already handled this request, or it has visited too many nodes.
    Loop,
    /// The request was to continue a record that the node does not know.
    UnknownRecord,
    /// The node has too many requests.
    Busy,
    /// The request allowed only a stored response (`only-if-cached`), and there is none.
    NotCached,
    /// The node does not know a scheme, or something else that the request requires; or, received, an outcome
    /// that this version does not know. Another node may know it.
    NotUnderstood,
    /// These routers may answer the request, the best first; at most [`Router::COUNT_MAX`]. The node itself does
    /// not.
    Elsewhere(Vec<Router>),
    /// The origin's certificate does not prove that it is the host of the URI.
    Untrusted,
    /// The origin speaks no TLS, or none that is accepted.
    NotTls,
}

/// A router that may answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Router {
    /// Its id.
    pub id: NodeId,
    /// Its address in the mesh, if it is known.
    pub address: Option<IpAddr>,
    /// The cost of the path to it, in the unit of the routing protocol, if it is known; less is better.
    pub cost: Option<u32>,
}

impl Router {
    /// The most in one outcome.
    pub const COUNT_MAX: usize = 4;

    fn flags(&self) -> u8 {
        address::flags(self.address) | if self.cost.is_some() { COST } else { 0 }
    }
}

impl Outcome {
    /// All that have no fields, with their codes.
    const PLAIN: [(u8, Self); 14] = [
        (0, Self::Complete),
        (1, Self::Unresolved),
        (2, Self::Forbidden),
        (3, Self::Unreachable),
        (4, Self::TimedOut),
        (5, Self::Malformed),
        (6, Self::Truncated),
        (7, Self::Loop),
        (8, Self::UnknownRecord),
        (9, Self::Busy),
        (10, Self::NotCached),
        (11, Self::NotUnderstood),
        (13, Self::Untrusted),
        (14, Self::NotTls),
    ];
}

impl Part for Outcome {
    fn write(&self, out: &mut Vec<u8>) {
        if let Self::Elsewhere(routers) = self {
            out.push(ELSEWHERE);
            return write_list(routers, out);
        }
        let plain = Self::PLAIN.iter().find(|(_, outcome)| outcome == self);
        out.extend(plain.map(|(code, _)| *code));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let code = reader.byte()?;
        if code == ELSEWHERE {
            return reader.list().map(Self::Elsewhere);
        }
        let known = Self::PLAIN.into_iter().find(|(it, _)| *it == code);
        Ok(known.map_or_else(
            || {
                reader.meets(Unknown::Optional);
                reader.skip_rest();
                Self::NotUnderstood
            },
            |(_, outcome)| outcome,
        ))
    }

    fn check(&self) -> Result<(), FrameError> {
        match self {
            Self::Elsewhere(routers) => check_list(routers),
            _ => Ok(()),
        }
    }
}

impl Part for Router {
    fn write(&self, out: &mut Vec<u8>) {
        self.id.write(out);
        out.push(self.flags());
        address::write(self.address, out);
        if let Some(cost) = self.cost {
            varint::write(cost.into(), out);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let id = NodeId::read(reader)?;
        let flags = reader.flags(address::FLAGS | COST)?;
        let address = address::read(flags, reader)?;
        Ok(Self { id, address, cost: reader.option(flags & COST != 0, Reader::number)? })
    }

    fn check(&self) -> Result<(), FrameError> {
        Ok(())
    }
}

impl Item for Router {
    const SHORTEST: usize = NodeId::LEN + 1;
    const MOST: usize = Self::COUNT_MAX;
}
