//! The sockets of one machine.
//!
//! *What this is:* [`Host`], which gives each packet to the connection, listener or interception that
//! it belongs to, or back to be forwarded. *Who calls it:* the driver of a machine, which carries
//! packets and runs a program on it. *What it never does:* know interfaces' routes or queues; it says
//! what is to be sent, not over which of them. *Where to start:* [`Host::handle_packet`].

use std::net::{Ipv4Addr, SocketAddrV4};

use bytes::Bytes;
use wire::Instant;

use super::tcp::{self, Connection, End};
use super::{Body, Datagram, Packet};

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
    index: u32,
    generation: u32,
}

/// Why no connection could be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The host has as many connections as it can have.
    TooManySockets,
    /// Every port that could be used towards this peer is in use.
    NoFreePort,
}

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

/// The sockets of one machine.
///
/// After every call that takes `now`, the driver drains [`poll_packet`](Self::poll_packet) and
/// [`poll_event`](Self::poll_event) at the same moment, then asks [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct Host {
    config: Config,
    addresses: Vec<Ipv4Addr>,
}

impl Host {
    /// One with these addresses, of which it speaks by the first where nothing else is said. The seed
    /// decides sequence numbers and ports.
    ///
    /// # Panics
    ///
    /// If there is no address.
    pub fn new(config: Config, addresses: &[Ipv4Addr], seed: u64) -> Self {
        assert!(!addresses.is_empty(), "a host has an address");
        let _ = seed;
        Self { config, addresses: addresses.to_vec() }
    }

    /// Its addresses.
    pub fn addresses(&self) -> &[Ipv4Addr] {
        &self.addresses
    }

    /// Accepts connections to this port of its own addresses from now on.
    pub fn listen(&mut self, port: u16) {
        let _ = port;
    }

    /// Accepts connections to this port of other hosts' addresses that come in by these interfaces,
    /// instead of forwarding them, from now on. An empty list ends it.
    pub fn intercept(&mut self, port: u16, interfaces: &[Interface]) {
        let _ = (port, interfaces);
    }

    /// Takes datagrams to this port from now on.
    pub fn listen_datagrams(&mut self, port: u16) {
        let _ = port;
    }

    /// Begins a connection from its first address and a free port.
    pub fn connect(&mut self, now: Instant, to: SocketAddrV4) -> Result<SocketId, ConnectError> {
        self.connect_from(now, SocketAddrV4::new(self.addresses[0], 0), to)
    }

    /// Begins a connection from this address and port, which may be another host's if answers come by
    /// here; port 0 takes a free one.
    pub fn connect_from(
        &mut self,
        now: Instant,
        local: SocketAddrV4,
        to: SocketAddrV4,
    ) -> Result<SocketId, ConnectError> {
        let _ = (now, local, to);
        Err(ConnectError::TooManySockets)
    }

    /// Takes as much off the front of `data` as there is room for, and says how much. If something is
    /// left, [`Event::Writable`] will tell when there is room again.
    pub fn write(&mut self, now: Instant, id: SocketId, data: &mut Bytes) -> usize {
        let _ = (now, id, data);
        0
    }

    /// How much a write would take.
    pub fn writable(&self, id: SocketId) -> usize {
        self.connection(id).map_or(0, Connection::writable)
    }

    /// The next piece of what was received, of at most `max` bytes; `None` if there is nothing now.
    pub fn read(&mut self, now: Instant, id: SocketId, max: usize) -> Option<Bytes> {
        let _ = (now, id, max);
        None
    }

    /// How much there is to read.
    pub fn readable(&self, id: SocketId) -> usize {
        self.connection(id).map_or(0, Connection::readable)
    }

    /// Nothing more will be written: a FIN follows the data. The peer's data may still be read until it
    /// closes too, upon which [`Event::Closed`] tells the end.
    pub fn close(&mut self, now: Instant, id: SocketId) {
        let _ = (now, id);
    }

    /// Ends a connection at once, with a RST to the peer. Its id means nothing any more.
    pub fn abort(&mut self, now: Instant, id: SocketId) {
        let _ = (now, id);
    }

    /// Whether small segments of this connection go out at once.
    pub fn set_nodelay(&mut self, id: SocketId, nodelay: bool) {
        let _ = (id, nodelay);
    }

    /// The connection behind an id, for questions.
    pub fn connection(&self, id: SocketId) -> Option<&Connection> {
        let _ = id;
        None
    }

    /// Sends a datagram from its first address and this port.
    pub fn send_datagram(&mut self, now: Instant, from: u16, to: SocketAddrV4, payload: Bytes) {
        let _ = (now, from, to, Body::Udp(Datagram { payload }));
    }

    /// Takes a packet that came in by an interface. One that is neither for this host nor intercepted
    /// comes back to be forwarded, with one hop less to go, unless it has none left.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        interface: Interface,
        packet: Packet,
    ) -> Option<Packet> {
        let _ = (now, interface);
        Some(packet)
    }

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// By when [`handle_timeout`](Self::handle_timeout) is to be called. It may then have nothing to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The next packet that this host has made, for the driver to route.
    pub fn poll_packet(&mut self) -> Option<Packet> {
        None
    }

    /// The next thing to tell the program.
    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
