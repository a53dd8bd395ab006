//! The sockets of one machine.
//!
//! *What this is:* [`Host`], which gives each packet to the connection, listener or interception that
//! it belongs to, or back to be forwarded. *Who calls it:* the driver of a machine, which carries
//! packets and runs a program on it. *What it never does:* know interfaces' routes or queues; it says
//! what is to be sent, not over which of them. *Where to start:* [`Host::handle_packet`].

mod incoming;
mod sockets;
#[cfg(test)]
mod tests;
mod timers;
mod words;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

use bytes::Bytes;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use wire::Instant;

use self::sockets::{Socket, Sockets};
use self::timers::Timers;
pub use self::words::{Config, ConnectError, Event, Interface, SocketId};
use super::tcp::{self, Connection, End, State};
use super::{Body, Datagram, Packet};

/// Ports that a host chooses from (RFC 6335, section 6).
const EPHEMERAL: std::ops::RangeInclusive<u16> = 49_152..=65_535;
/// More packets or datagrams than this do not wait for a driver that does not fetch them.
const WAITING_MAX: usize = 4096;

/// The sockets of one machine.
///
/// After every call that takes `now`, the driver drains [`poll_packet`](Self::poll_packet) and
/// [`poll_event`](Self::poll_event) at the same moment, then asks [`poll_timeout`](Self::poll_timeout).
#[derive(Clone, Debug)]
pub struct Host {
    config: Config,
    addresses: Vec<Ipv4Addr>,
    chance: SplitMix64,
    next_port: u16,
    listening: Vec<u16>,
    intercepting: Vec<(u16, Vec<Interface>)>,
    taking_datagrams: Vec<u16>,
    sockets: Sockets,
    timers: Timers,
    /// What does not belong to a connection.
    packets: VecDeque<Packet>,
    events: VecDeque<Event>,
    /// When it was last called.
    now: Instant,
    expired: u64,
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
        let mut chance = SplitMix64::seed_from_u64(seed);
        let ports = u64::from(EPHEMERAL.end() - EPHEMERAL.start()) + 1;
        let next_port = EPHEMERAL.start() + (chance.next_u64() % ports) as u16;
        Self {
            config,
            addresses: addresses.to_vec(),
            chance,
            next_port,
            listening: Vec::new(),
            intercepting: Vec::new(),
            taking_datagrams: Vec::new(),
            sockets: Sockets::default(),
            timers: Timers::default(),
            packets: VecDeque::new(),
            events: VecDeque::new(),
            now: Instant::ZERO,
            expired: 0,
        }
    }

    /// Its addresses.
    pub fn addresses(&self) -> &[Ipv4Addr] {
        &self.addresses
    }

    /// Accepts connections to this port of its own addresses from now on.
    pub fn listen(&mut self, port: u16) {
        if !self.listening.contains(&port) {
            self.listening.push(port);
        }
    }

    /// Accepts connections to this port of other hosts' addresses that come in by these interfaces,
    /// instead of forwarding them, from now on. An empty list ends it. Connections that are open stay.
    pub fn intercept(&mut self, port: u16, interfaces: &[Interface]) {
        self.intercepting.retain(|(other, _)| *other != port);
        if !interfaces.is_empty() {
            self.intercepting.push((port, interfaces.to_vec()));
        }
    }

    /// Takes datagrams to this port from now on.
    pub fn listen_datagrams(&mut self, port: u16) {
        if !self.taking_datagrams.contains(&port) {
            self.taking_datagrams.push(port);
        }
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
        self.now = now;
        if self.sockets.len() >= self.config.sockets_max {
            return Err(ConnectError::TooManySockets);
        }
        let local = self.free_port(local, to).ok_or(ConnectError::NoFreePort)?;
        let connection = Connection::connect(self.config.tcp, now, self.chance.next_u64() as u32);
        let id = self.sockets.insert(local, to, connection, None);
        self.sockets.mark_busy(id.index);
        Ok(id)
    }

    /// The address with a port, if it had none, by which no connection to that peer exists.
    fn free_port(&mut self, local: SocketAddrV4, to: SocketAddrV4) -> Option<SocketAddrV4> {
        if local.port() != 0 {
            return self.sockets.find(local, to).is_none().then_some(local);
        }
        for _ in EPHEMERAL {
            let port = self.next_port;
            self.next_port = if port == *EPHEMERAL.end() { *EPHEMERAL.start() } else { port + 1 };
            let local = SocketAddrV4::new(*local.ip(), port);
            if self.sockets.find(local, to).is_none() {
                return Some(local);
            }
        }
        None
    }

    /// Takes as much off the front of `data` as there is room for, and says how much. If something is
    /// left, [`Event::Writable`] will tell when there is room again.
    pub fn write(&mut self, now: Instant, id: SocketId, data: &mut Bytes) -> usize {
        let taken = self.change(now, id, |socket| {
            let taken = socket.connection.write(data);
            socket.wants_room = !data.is_empty();
            taken
        });
        taken.unwrap_or(0)
    }

    /// How much a write would take.
    pub fn writable(&self, id: SocketId) -> usize {
        self.connection(id).map_or(0, Connection::writable)
    }

    /// The next piece of what was received, of at most `max` bytes; `None` if there is nothing now.
    pub fn read(&mut self, now: Instant, id: SocketId, max: usize) -> Option<Bytes> {
        self.now = now;
        let socket = self.sockets.get_mut(id)?;
        socket.reported_readable = false;
        let piece = socket.connection.read(max)?;
        let (owes, over) = (socket.connection.has_ack_due(), socket.connection.end().is_some());
        if owes {
            self.sockets.mark_busy(id.index);
        }
        if over {
            self.report_events(id.index);
        }
        Some(piece)
    }

    /// Leaves what there is unread until it is so much, upon which [`Event::Readable`] tells. Linux does not
    /// acknowledge it before it is read, or has waited for as long as an acknowledgement may.
    pub fn gather(&mut self, id: SocketId, bytes: usize) {
        if let Some(socket) = self.sockets.get_mut(id) {
            socket.reported_readable = false;
            socket.connection.gather(bytes);
        }
    }

    /// How much there is to read.
    pub fn readable(&self, id: SocketId) -> usize {
        self.connection(id).map_or(0, Connection::readable)
    }

    /// Nothing more will be written: a FIN follows the data. The peer's data may still be read until it
    /// closes too, upon which [`Event::Closed`] tells the end.
    pub fn close(&mut self, now: Instant, id: SocketId) {
        self.change(now, id, |socket| socket.connection.close());
    }

    /// A packet that this host has made waits to be sent.
    pub fn enter_queue(&mut self, packet: &Packet) {
        if let Some(index) = self.queued(packet)
            && let Some(socket) = self.sockets.at(index)
        {
            socket.connection.enter_queue();
        }
    }

    /// It does not wait any more, sent or not: whether something may now be sent behind it.
    pub fn leave_queue(&mut self, packet: &Packet) -> bool {
        let Some(index) = self.queued(packet) else { return false };
        if let Some(socket) = self.sockets.at(index) {
            socket.connection.leave_queue();
            self.sockets.mark_busy(index);
        }
        true
    }

    /// Whose packet it is, if that matters to what is sent behind it.
    fn queued(&self, packet: &Packet) -> Option<u32> {
        let Body::Tcp(segment) = &packet.body else { return None };
        let counts = self.config.tcp.cork && !segment.payload.is_empty();
        if counts { self.sockets.find(packet.from, packet.to) } else { None }
    }

    /// Ends a connection at once, with a RST to the peer. Its id means nothing any more.
    pub fn abort(&mut self, now: Instant, id: SocketId) {
        self.change(now, id, |socket| {
            socket.connection.abort();
            socket.reported_closed = true;
        });
    }

    /// Whether small segments of this connection go out at once.
    pub fn set_nodelay(&mut self, id: SocketId, nodelay: bool) {
        if let Some(socket) = self.sockets.get_mut(id) {
            socket.connection.set_nodelay(nodelay);
        }
    }

    /// The connection behind an id, for questions.
    pub fn connection(&self, id: SocketId) -> Option<&Connection> {
        self.sockets.get(id).map(|socket| &socket.connection)
    }

    /// The addresses of a connection: this side's and the peer's.
    pub fn addresses_of(&self, id: SocketId) -> Option<(SocketAddrV4, SocketAddrV4)> {
        self.sockets.get(id).map(|socket| (socket.local, socket.remote))
    }

    /// How many connections there are, closing ones counted.
    #[cfg(test)]
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// How many packets could go no further because their hops were used up.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Sends a datagram from its first address and this port.
    pub fn send_datagram(&mut self, now: Instant, from: u16, to: SocketAddrV4, payload: Bytes) {
        self.now = now;
        let from = SocketAddrV4::new(self.addresses[0], from);
        let body = Body::Udp(Datagram { payload });
        self.send(Packet { from, to, ttl: self.config.ttl, body });
    }

    fn send(&mut self, packet: Packet) {
        if self.packets.len() < WAITING_MAX {
            self.packets.push_back(packet);
        }
    }

    /// Does something with a connection, and sees what comes of it.
    fn change<T>(
        &mut self,
        now: Instant,
        id: SocketId,
        change: impl FnOnce(&mut Socket) -> T,
    ) -> Option<T> {
        self.now = now;
        let result = change(self.sockets.get_mut(id)?);
        self.sockets.mark_busy(id.index);
        Some(result)
    }

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        while let Some(index) = self.timers.take(now) {
            let Some(socket) = self.sockets.at(index) else { continue };
            match socket.connection.poll_timeout() {
                Some(at) if at <= now => {
                    socket.connection.handle_timeout(now);
                    self.report_events(index);
                    self.sockets.mark_busy(index);
                }
                Some(later) => self.timers.enter(index, later),
                None => {}
            }
        }
    }

    /// By when [`handle_timeout`](Self::handle_timeout) is to be called. It may then have nothing to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.earliest()
    }

    /// The next packet that this host has made, for the driver to route; one to an address of its own
    /// is for [`handle_packet`](Self::handle_packet).
    pub fn poll_packet(&mut self) -> Option<Packet> {
        if let Some(packet) = self.packets.pop_front() {
            return Some(packet);
        }
        while let Some(socket) = self.sockets.first_busy() {
            if let Some(segment) = socket.connection.poll_transmit(self.now) {
                let (from, to) = (socket.local, socket.remote);
                return Some(Packet { from, to, ttl: self.config.ttl, body: Body::Tcp(segment) });
            }
            let index = socket.id.index;
            let over = socket.reported_closed && socket.connection.state() == State::Closed;
            let due = socket.connection.poll_timeout();
            self.sockets.first_idle();
            if over {
                self.sockets.remove(index);
            } else if let Some(at) = due {
                self.timers.enter(index, at);
            }
        }
        None
    }

    /// The next thing to tell the program.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Tells the program what is new about a connection.
    fn report_events(&mut self, index: u32) {
        let Some(socket) = self.sockets.at(index) else { return };
        let Socket { id, local, remote, .. } = *socket;
        let connection = &socket.connection;
        let events = &mut self.events;
        if !socket.reported_open {
            if matches!(connection.state(), State::SynSent | State::SynReceived) {
                return;
            }
            // A peer's connection that never was open is nothing to talk about.
            let never = connection.end().is_some_and(|why| why != End::Done);
            match socket.accepted {
                Some(_) if never => socket.reported_closed = true,
                Some((interface, intercepted)) => {
                    events.push_back(Event::Accepted { id, local, remote, interface, intercepted });
                }
                None if never => {}
                None => events.push_back(Event::Connected(id)),
            }
            socket.reported_open = true;
        }
        if socket.reported_closed {
            return;
        }
        if !socket.reported_readable && connection.is_readable() {
            socket.reported_readable = true;
            events.push_back(Event::Readable(id));
        }
        if socket.wants_room && connection.writable() >= room_worth_reporting(&self.config.tcp) {
            socket.wants_room = false;
            events.push_back(Event::Writable(id));
        }
        if !socket.reported_peer_closed && connection.peer_closed() {
            socket.reported_peer_closed = true;
            events.push_back(Event::PeerClosed(id));
        }
        if let Some(why) = connection.end().filter(|_| connection.readable() == 0) {
            socket.reported_closed = true;
            events.push_back(Event::Closed { id, why });
            self.sockets.mark_busy(index);
        }
    }
}

/// Room for two segments, so that a program is not woken for each byte.
fn room_worth_reporting(config: &tcp::Config) -> usize {
    (2 * usize::from(config.mss)).min(config.send_buffer as usize / 2).max(1)
}
