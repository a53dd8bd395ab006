//! What a host is told and tells: its settings, its interfaces and connections by number, its events.

use std::fmt;
use std::net::SocketAddrV4;

use bytes::Bytes;

use crate::net::tcp::{self, End};

/// How a host is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Its TCP.
    pub tcp: tcp::Config,
    /// Time to live of the packets that it makes.
    pub ttl: u8,
    /// How many connections it has at most, closing ones counted.
    pub sockets_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { tcp: tcp::Config::default(), ttl: 64, sockets_max: 32_768 }
    }
}

/// One of a machine's interfaces, numbered by its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interface(pub u16);

/// A connection of a host. One of a connection that is over is never used again; whatever is asked of
/// it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// Why no connection could be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The host has as many connections as it can have.
    TooManySockets,
    /// Every port that could be used towards this peer is in use.
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

/// What a host tells the program that runs on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection that was begun here is open.
    Connected(SocketId),
    /// A peer has opened a connection.
    Accepted {
        /// The new connection.
        id: SocketId,
        /// The address it was opened to: of this host, or, if intercepted, of another.
        local: SocketAddrV4,
        /// The peer.
        remote: SocketAddrV4,
        /// Over which interface its SYN came in.
        interface: Interface,
        /// Whether it was meant for another host.
        intercepted: bool,
    },
    /// There is something to read: read until nothing is left, or nothing more is told.
    Readable(SocketId),
    /// There is room again, after a write that did not fit.
    Writable(SocketId),
    /// The peer has closed its side. What came before may still have to be read.
    PeerClosed(SocketId),
    /// The connection is over; its id means nothing any more. One that this host aborted is not told,
    /// nor one of a peer's that never was open.
    Closed {
        /// The connection.
        id: SocketId,
        /// How it ended.
        why: End,
    },
    /// A datagram came for a port that is listened to.
    Datagram {
        /// Who sent it.
        from: SocketAddrV4,
        /// To which address and port.
        to: SocketAddrV4,
        /// Over which interface it came in.
        interface: Interface,
        /// What it says.
        payload: Bytes,
    },
}
