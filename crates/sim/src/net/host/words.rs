//! The types of a host's interface: its settings, interfaces and connections by number, and events.

use std::fmt;
use std::net::SocketAddrV4;

use bytes::Bytes;

use crate::net::tcp::{self, End};

/// The settings of a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Settings of its TCP.
    pub tcp: tcp::Config,
    /// Time to live of its packets.
    pub ttl: u8,
    /// Largest number of connections, including those that are closing.
    pub sockets_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { tcp: tcp::Config::default(), ttl: 64, sockets_max: 32_768 }
    }
}

/// An interface of a machine, by the number that its driver gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interface(pub u16);

/// A connection of a host. The id of an ended connection is never used again; calls with it have no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// Why a connection could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The host has `sockets_max` connections.
    TooManySockets,
    /// All ports that could be used towards this peer are in use.
    NoFreePort,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::TooManySockets => "too many connections",
            Self::NoFreePort => "no free port towards this peer",
        })
    }
}

impl std::error::Error for ConnectError {}

/// What a host reports to its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection that this host opened is established.
    Connected(SocketId),
    /// A peer has opened a connection.
    Accepted {
        /// The new connection.
        id: SocketId,
        /// The destination address: one of this host's, or of another host if the connection was intercepted.
        local: SocketAddrV4,
        /// The peer.
        remote: SocketAddrV4,
        /// The interface on which the SYN arrived.
        interface: Interface,
        /// Whether it was opened to another host.
        intercepted: bool,
    },
    /// Data can be read. Read until nothing is left, or no further event comes.
    Readable(SocketId),
    /// There is room again after a write that did not fit.
    Writable(SocketId),
    /// The peer has closed its side. Data may still have to be read.
    PeerClosed(SocketId),
    /// The connection has ended, and its id is invalid. There is no such event for a connection that this
    /// host aborted, nor for a peer's connection that was never established.
    Closed {
        /// The connection.
        id: SocketId,
        /// How it ended.
        why: End,
    },
    /// A datagram arrived at a port that this host takes datagrams on.
    Datagram {
        /// The sender's address and port.
        from: SocketAddrV4,
        /// Its destination address and port.
        to: SocketAddrV4,
        /// The interface on which it arrived.
        interface: Interface,
        /// Its payload.
        payload: Bytes,
    },
}
