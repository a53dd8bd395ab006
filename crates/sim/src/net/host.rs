//! The sockets of one machine.
//!
//! *What this is:* [`Host`], which gives each packet to its connection, listener or interception, or returns
//! it to be forwarded. *Who calls it:* the driver of a machine, which carries packets and runs a program.
//! *What it never does:* know routes, or queues of interfaces: it gives packets, and the driver chooses the
//! interface. *Where to start:* [`Host::handle_packet`].

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

/// The ephemeral ports (RFC 6335, section 6).
const EPHEMERAL: std::ops::RangeInclusive<u16> = 49_152..=65_535;
/// Packets or datagrams that wait for the driver to fetch them; further ones are dropped.
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
    /// Packets that belong to no connection, such as refusals and datagrams.
    packets: VecDeque<Packet>,
    events: VecDeque<Event>,
    /// The time of the latest call.
    now: Instant,
    expired: u64,
}

impl Host {
    /// A host with these addresses. It uses the first one unless a call names another. The seed decides
    /// initial sequence numbers and ports.
    ///
    /// # Panics
    ///
    /// If `addresses` is empty.
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

    /// From now on, accepts connections to this port of its own addresses.
    pub fn listen(&mut self, port: u16) {
        if !self.listening.contains(&port) {
            self.listening.push(port);
        }
    }

    /// From now on, accepts connections to this port of other hosts' addresses that arrive on these
    /// interfaces, instead of forwarding them. An empty list ends interception for new connections only.
    pub fn intercept(&mut self, port: u16, interfaces: &[Interface]) {
        self.intercepting.retain(|(other, _)| *other != port);
        if !interfaces.is_empty() {
            self.intercepting.push((port, interfaces.to_vec()));
        }
    }

    /// From now on, takes datagrams to this port.
    pub fn listen_datagrams(&mut self, port: u16) {
        if !self.taking_datagrams.contains(&port) {
            self.taking_datagrams.push(port);
        }
    }

    /// Opens a connection from its first address and a free port.
    pub fn connect(&mut self, now: Instant, to: SocketAddrV4) -> Result<SocketId, ConnectError> {
        self.connect_from(now, SocketAddrV4::new(self.addresses[0], 0), to)
    }

    /// Opens a connection from this address and port; port 0 takes a free one. The address may be another
    /// host's if its packets are routed through this host.
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

    /// `local` with its port, or with a free one if that is 0. `None` if no port is free for that peer.
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

    /// Takes as many bytes off the front of `data` as fit, and returns their number. If some are left,
    /// [`Event::Writable`] follows once there is room.
    pub fn write(&mut self, now: Instant, id: SocketId, data: &mut Bytes) -> usize {
        let taken = self.change(now, id, |socket| {
            let taken = socket.connection.write(data);
            socket.wants_room = !data.is_empty();
            taken
        });
        taken.unwrap_or(0)
    }

    /// How many bytes a write would take.
    pub fn writable(&self, id: SocketId) -> usize {
        self.connection(id).map_or(0, Connection::writable)
    }

    /// Whether fewer than `bytes` written bytes are unsent, as with Linux's TCP_NOTSENT_LOWAT. If not,
    /// [`Event::Writable`] follows once that is so.
    pub fn wants_more(&mut self, id: SocketId, bytes: usize) -> bool {
        let Some(socket) = self.sockets.get_mut(id) else { return false };
        let wants = socket.connection.unsent() < bytes;
        socket.wants_unsent_below = (!wants).then_some(bytes);
        wants
    }

    /// The next received bytes, at most `max`; `None` if there are none now.
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

    /// Delays [`Event::Readable`] until at least `bytes` can be read. Like Linux, the host does not
    /// acknowledge the waiting bytes before they are read or the delayed-acknowledgement timer ends.
    pub fn gather(&mut self, id: SocketId, bytes: usize) {
        if let Some(socket) = self.sockets.get_mut(id) {
            socket.reported_readable = false;
            socket.connection.gather(bytes);
        }
    }

    /// How many bytes can be read.
    pub fn readable(&self, id: SocketId) -> usize {
        self.connection(id).map_or(0, Connection::readable)
    }

    /// Closes this side: a FIN follows the written data. The peer's data can be read until the peer closes
    /// too and [`Event::Closed`] follows.
    pub fn close(&mut self, now: Instant, id: SocketId) {
        self.change(now, id, |socket| socket.connection.close());
    }

    /// A packet of this host has entered an interface's queue.
    pub fn enter_queue(&mut self, packet: &Packet) {
        if let Some(index) = self.queued(packet)
            && let Some(socket) = self.sockets.at(index)
        {
            socket.connection.enter_queue();
        }
    }

    /// A packet has left the queue, sent or dropped. Returns whether the connection may send more now.
    pub fn leave_queue(&mut self, packet: &Packet) -> bool {
        let Some(index) = self.queued(packet) else { return false };
        if let Some(socket) = self.sockets.at(index) {
            socket.connection.leave_queue();
            self.sockets.mark_busy(index);
        }
        true
    }

    /// The connection of a queued packet. `None` unless the packet has data, for which later small segments
    /// wait (`cork`).
    fn queued(&self, packet: &Packet) -> Option<u32> {
        let Body::Tcp(segment) = &packet.body else { return None };
        let counts = self.config.tcp.cork && !segment.payload.is_empty();
        if counts { self.sockets.find(packet.from, packet.to) } else { None }
    }

    /// Ends a connection at once with a RST to the peer. Its id becomes invalid.
    pub fn abort(&mut self, now: Instant, id: SocketId) {
        self.change(now, id, |socket| {
            socket.connection.abort();
            socket.reported_closed = true;
        });
    }

    /// Sets whether small segments of this connection are sent at once.
    pub fn set_nodelay(&mut self, id: SocketId, nodelay: bool) {
        if let Some(socket) = self.sockets.get_mut(id) {
            socket.connection.set_nodelay(nodelay);
        }
    }

    /// The connection of an id, for its getters.
    pub fn connection(&self, id: SocketId) -> Option<&Connection> {
        self.sockets.get(id).map(|socket| &socket.connection)
    }

    /// The connection of an id, for its getters, also while the program handles its [`Event::Closed`].
    pub fn ending(&self, id: SocketId) -> Option<&Connection> {
        self.sockets.ending(id).map(|socket| &socket.connection)
    }

    /// The addresses of a connection: this side's and the peer's.
    pub fn addresses_of(&self, id: SocketId) -> Option<(SocketAddrV4, SocketAddrV4)> {
        self.sockets.get(id).map(|socket| (socket.local, socket.remote))
    }

    /// Number of connections, including those that are closing.
    #[cfg(test)]
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// Number of packets dropped because their time to live was used up.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Sends a datagram from its first address and port `from`.
    pub fn send_datagram(&mut self, now: Instant, from: u16, to: SocketAddrV4, payload: Bytes) {
        self.now = now;
        let from = SocketAddrV4::new(self.addresses[0], from);
        let body = Body::Udp(Datagram { payload });
        self.send(Packet::new(from, to, self.config.ttl, body));
    }

    fn send(&mut self, packet: Packet) {
        if self.packets.len() < WAITING_MAX {
            self.packets.push_back(packet);
        }
    }

    /// Applies `act` to a connection, then reports events and output.
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

    /// Does everything that is due at `now`.
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

    /// When to call [`handle_timeout`](Self::handle_timeout) next. There may then be nothing to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.earliest()
    }

    /// The next packet that this host has made, for the driver to route. A packet to one of its own addresses
    /// goes to [`handle_packet`](Self::handle_packet).
    pub fn poll_packet(&mut self) -> Option<Packet> {
        if let Some(packet) = self.packets.pop_front() {
            return Some(packet);
        }
        while let Some(socket) = self.sockets.first_busy() {
            if let Some(segment) = socket.connection.poll_transmit(self.now) {
                let (from, to, id) = (socket.local, socket.remote, socket.id);
                let unsent = socket.connection.unsent();
                if socket.wants_unsent_below.take_if(|below| unsent < *below).is_some() {
                    self.events.push_back(Event::Writable(id));
                }
                return Some(Packet::new(from, to, self.config.ttl, Body::Tcp(segment)));
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

    /// The next event for the program.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Queues the events of a connection that the program does not know yet.
    fn report_events(&mut self, index: u32) {
        let Some(socket) = self.sockets.at(index) else { return };
        let Socket { id, local, remote, .. } = *socket;
        let connection = &socket.connection;
        let events = &mut self.events;
        if !socket.reported_open {
            if matches!(connection.state(), State::SynSent | State::SynReceived) {
                return;
            }
            // The program never learns of a peer's connection that fails before it is open.
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

/// Room for two segments: with less, the program would be woken for each byte.
fn room_worth_reporting(config: &tcp::Config) -> usize {
    (2 * usize::from(config.mss)).min(config.send_buffer as usize / 2).max(1)
}
