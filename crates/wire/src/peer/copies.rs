//! What routers tell each other of copies: who has which objects, and how far routers are from each other. Each hop
//! passes it on towards the gateway.
//!
//! # Bytes
//!
//! A *router* is flags, 1 (bit 0, an IPv4 address follows; 1, an IPv6 address), and its address in the mesh, 4 or 16.
//!
//! | bytes | field of [`Reach`] |
//! |---|---|
//! | 16 | the id of a router |
//! | … | the router |
//! | varint | the cost of its path to the gateway |
//! | varint, … | the number of paths; of each, the other router, and the cost, varint |
//!
//! | bytes | field of [`Copies`] |
//! |---|---|
//! | … | the router |
//! | varint, 8 each | the objects that it has stored since: their number, then their short names |
//! | varint, 8 each | the objects that it has evicted since |

use std::net::IpAddr;

use super::address;
use super::codec::{FrameError, Item, Part, Reader, check_list, sound, write_list};
use crate::varint;
use crate::{Hint, NodeId};

/// How far other routers are from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The id of the router that this is about.
    pub id: NodeId,
    /// Its address in the mesh.
    pub address: IpAddr,
    /// The cost of its path to the gateway; in the unit of the routing protocol, less is better.
    pub gateway: u32,
    /// The routers that are no farther than the gateway, and the costs of the paths to them: at most
    /// [`Reach::PATHS_MAX`].
    pub paths: Vec<Cost>,
}

/// The cost of the path to a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The router's address in the mesh.
    pub router: IpAddr,
    /// The cost.
    pub cost: u32,
}

/// What a router has stored and evicted since it last said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copies {
    /// The router's address in the mesh.
    pub router: IpAddr,
    /// Stored: at most [`Message::HELD_MAX`](super::Message::HELD_MAX).
    pub stored: Vec<Hint>,
    /// Evicted: at most as many.
    pub evicted: Vec<Hint>,
}

impl Reach {
    /// The most paths of one router.
    pub const PATHS_MAX: usize = 64;
}

impl Part for Cost {
    fn write(&self, out: &mut Vec<u8>) {
        address::write_router(self.router, out);
        varint::write(self.cost.into(), out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        Ok(Self { router: address::read_router(reader)?, cost: reader.number()? })
    }

    fn check(&self) -> Result<(), FrameError> {
        Ok(())
    }
}

impl Item for Cost {
    const SHORTEST: usize = 6;
    const MOST: usize = Reach::PATHS_MAX;
}

impl Part for Reach {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0);
        address::write_router(self.address, out);
        varint::write(self.gateway.into(), out);
        write_list(&self.paths, out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let (id, address) = (NodeId(reader.array()?), address::read_router(reader)?);
        Ok(Self { id, address, gateway: reader.number()?, paths: reader.list()? })
    }

    fn check(&self) -> Result<(), FrameError> {
        check_list(&self.paths)
    }
}

impl Part for Copies {
    fn write(&self, out: &mut Vec<u8>) {
        address::write_router(self.router, out);
        write_list(&self.stored, out);
        write_list(&self.evicted, out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, FrameError> {
        let router = address::read_router(reader)?;
        Ok(Self { router, stored: reader.list()?, evicted: reader.list()? })
    }

    fn check(&self) -> Result<(), FrameError> {
        check_list(&self.stored)?;
        check_list(&self.evicted)?;
        sound(!(self.stored.is_empty() && self.evicted.is_empty()))
    }
}
