//! The table of a host's connections, by number and by the addresses of both sides.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddrV4;

use super::{Interface, SocketId};
use crate::net::tcp::Connection;

/// One connection, and which of its events the program has had.
#[derive(Clone, Debug)]
pub struct Socket {
    pub id: SocketId,
    pub local: SocketAddrV4,
    pub remote: SocketAddrV4,
    pub connection: Connection,
    /// If a peer opened it: on which interface, and whether it was intercepted.
    pub accepted: Option<(Interface, bool)>,
    /// Events that the program has had, or does not need: the connection is open, …
    pub reported_open: bool,
    /// … data can be read (reset by each read), …
    pub reported_readable: bool,
    /// … the peer has closed its side, …
    pub reported_peer_closed: bool,
    /// … the connection has ended.
    pub reported_closed: bool,
    /// The last write did not fit.
    pub wants_room: bool,
    /// If the program waits for this, the bytes that may be unsent then.
    pub wants_unsent_below: Option<usize>,
    /// It is in the list of connections that may have something to send.
    pub busy: bool,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    generation: u32,
    socket: Option<Box<Socket>>,
}

/// All connections of a host.
#[derive(Clone, Debug, Default)]
pub struct Sockets {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_addresses: BTreeMap<u128, u32>,
    /// Connections that may have something to send.
    busy: VecDeque<u32>,
}

/// Both addresses and ports in one number, which compares fast.
fn key(local: SocketAddrV4, remote: SocketAddrV4) -> u128 {
    let half = |it: SocketAddrV4| u128::from(it.ip().to_bits()) << 16 | u128::from(it.port());
    half(local) << 48 | half(remote)
}

impl Sockets {
    /// Number of connections.
    pub fn len(&self) -> usize {
        self.by_addresses.len()
    }

    /// The connection between these addresses.
    pub fn find(&self, local: SocketAddrV4, remote: SocketAddrV4) -> Option<u32> {
        if self.by_addresses.is_empty() {
            return None;
        }
        self.by_addresses.get(&key(local, remote)).copied()
    }

    /// The connection at this index.
    pub fn at(&mut self, index: u32) -> Option<&mut Socket> {
        self.slots.get_mut(index as usize)?.socket.as_deref_mut()
    }

    /// The connection of this id, while the id is valid.
    pub fn get(&self, id: SocketId) -> Option<&Socket> {
        self.ending(id).filter(|it| !it.reported_closed)
    }

    /// As [`get`](Self::get), also while the program handles the connection's end.
    pub fn ending(&self, id: SocketId) -> Option<&Socket> {
        self.slots.get(id.index as usize)?.socket.as_deref().filter(|it| it.id == id)
    }

    /// Like [`get`](Self::get), mutable.
    pub fn get_mut(&mut self, id: SocketId) -> Option<&mut Socket> {
        self.at(id.index).filter(|it| it.id == id && !it.reported_closed)
    }

    /// Adds a connection. There must be none between these addresses.
    pub fn insert(
        &mut self,
        local: SocketAddrV4,
        remote: SocketAddrV4,
        connection: Connection,
        accepted: Option<(Interface, bool)>,
    ) -> SocketId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        let id = SocketId { index, generation: slot.generation };
        slot.socket = Some(Box::new(Socket {
            id,
            local,
            remote,
            connection,
            accepted,
            reported_open: false,
            reported_readable: false,
            reported_peer_closed: false,
            reported_closed: false,
            wants_room: false,
            wants_unsent_below: None,
            busy: false,
        }));
        self.by_addresses.insert(key(local, remote), index);
        id
    }

    /// Forgets a connection.
    pub fn remove(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        let Some(socket) = slot.socket.take() else { return };
        slot.generation = slot.generation.wrapping_add(1);
        self.by_addresses.remove(&key(socket.local, socket.remote));
        self.free.push(index);
        if socket.busy {
            self.busy.retain(|other| *other != index);
        }
    }

    /// Notes that a connection may have something to send.
    pub fn mark_busy(&mut self, index: u32) {
        let Some(socket) = self.at(index) else { return };
        if !std::mem::replace(&mut socket.busy, true) {
            self.busy.push_back(index);
        }
    }

    /// The first connection that may have something to send.
    pub fn first_busy(&mut self) -> Option<&mut Socket> {
        let index = *self.busy.front()?;
        self.at(index)
    }

    /// Notes that the first such connection has nothing to send now.
    pub fn first_idle(&mut self) {
        if let Some(index) = self.busy.pop_front()
            && let Some(socket) = self.at(index)
        {
            socket.busy = false;
        }
    }
}
