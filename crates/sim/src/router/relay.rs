//! Transport hop by hop without a cache: each hop has a TCP connection of its own, as in MeshCache's
//! comparison with one connection from end to end (section 6.1, figures 4 to 6).
//!
//! *What this is:* [`Download`], a chain with a source at one end and a sink at the other. *Who calls it:*
//! experiments. *What it never does:* look at the bytes, or store them. *Where to start:* [`Download::run`].

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::time::Duration;

use bytes::Bytes;
use radio::{Links, Station};
use wire::Instant;

use crate::net::{self, Event, Host, SocketId, tcp};
use crate::scenario::seed;
use crate::world::{Program, Routes, World, address};

/// The port that the source and the relays listen on.
const PORT: u16 = 9000;
/// Size of each socket's buffers at relays and ends, in bytes (MeshCache, section 6.1).
pub const SOCKET_BUFFER: u32 = 16 * 1024;
/// A relay's buffer between its two sockets, in bytes (MeshCache, section 6.1).
pub const RELAY_BUFFER: usize = 8 * 1024;
/// The content of files.
static NOTHING: [u8; 8192] = [0; 8192];

/// How bytes get from the source to the sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Over one connection, whose packets relays forward.
    Direct,
    /// Over one connection a hop.
    PerHop,
}

/// The download of one file over a chain of stations, from the first to the last.
#[derive(Clone, Debug)]
pub struct Download {
    /// The stations' rates and queues.
    pub radio: radio::Config,
    /// The links between the stations, which number one more than the hops.
    pub links: Links,
    /// How the bytes are carried.
    pub transport: Transport,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// TCP settings of all machines.
    pub tcp: tcp::Config,
    /// The download fails after this long.
    pub timeout: Duration,
}

/// What a download gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Downloaded {
    /// Seconds from the sink's first attempt to connect to the last byte, or to the failure.
    pub seconds: f64,
    /// Throughput in kbit/s.
    pub kbps: f64,
    /// Network load: IP packets sent at all hops, including TCP acknowledgements.
    pub packets: u64,
    /// Whether the whole file arrived.
    pub is_whole: bool,
}

/// TCP settings with MeshCache's socket buffers.
pub fn small_buffers() -> tcp::Config {
    let (send_buffer, receive_buffer) = (SOCKET_BUFFER, SOCKET_BUFFER);
    tcp::Config { send_buffer, receive_buffer, ..tcp::Config::default() }
}

/// A chain of stations `spacing_m` metres apart. Each hop loses the given share of frames, in both
/// directions.
pub fn chain(spacing_m: f64, ranges: radio::Ranges, losses: &[f64]) -> Links {
    let place = |number: usize| (number as f64 * spacing_m, 0.0);
    let places: Vec<_> = (0..=losses.len()).map(place).collect();
    let mut links = Links::by_distance(&places, ranges, |_| 0.0);
    for (hop, loss) in losses.iter().enumerate() {
        let (a, b) = (Station(hop as u16), Station(hop as u16 + 1));
        for (from, to) in [(a, b), (b, a)] {
            if let Some(link) = links.get(from, to).copied() {
                links.set(from, to, radio::Link { loss: *loss, ..link });
            }
        }
    }
    links
}

impl Download {
    /// Runs the download.
    pub fn run(&self) -> Downloaded {
        let stations = self.links.stations();
        let last = stations - 1;
        let config = net::Config { tcp: self.tcp, ..net::Config::default() };
        let next = |machine: usize| match self.transport {
            Transport::Direct => 0,
            Transport::PerHop => machine - 1,
        };
        let machine = |number: usize| {
            let host = Host::new(config, &[address(number)], seed(self.seed, number, 0));
            let program = match number {
                0 => Member::Source { left: self.bytes, socket: None },
                _ if number == last => Member::Sink(Sink { from: next(number), ..Sink::default() }),
                _ => Member::Relay(Relay { from: next(number), pairs: Vec::new() }),
            };
            (host, program)
        };
        let machines = (0..stations).map(machine).collect();
        let routes = Routes::over(stations, (0..last).map(|hop| (hop, hop + 1)));
        let mut world =
            World::new(self.radio.clone(), self.links.clone(), routes, self.seed, machines);
        let until = Instant::ZERO + self.timeout;
        let sink = |world: &World<Member>| match world.program(last) {
            Member::Sink(sink) => (sink.bytes, sink.ended),
            _ => (0, None),
        };
        while sink(&world).1.is_none() && world.now() < until && world.step().is_some() {}
        let (bytes, ended) = sink(&world);
        let seconds = ended.unwrap_or(world.now()).since(Instant::ZERO).as_secs_f64();
        Downloaded {
            seconds,
            kbps: if seconds > 0.0 { bytes as f64 * 8.0 / seconds / 1000.0 } else { 0.0 },
            packets: world.counters().packets_sent,
            is_whole: bytes == self.bytes,
        }
    }
}

/// The program of a station.
#[derive(Debug)]
enum Member {
    /// Sends its file to the first station that connects.
    Source {
        left: u64,
        socket: Option<SocketId>,
    },
    Relay(Relay),
    Sink(Sink),
}

/// The destination of the file.
#[derive(Debug, Default)]
struct Sink {
    /// The machine that it connects to.
    from: usize,
    bytes: u64,
    ended: Option<Instant>,
}

/// Connects to the next station for each station that connects to it, and passes bytes on.
#[derive(Debug)]
struct Relay {
    from: usize,
    pairs: Vec<Pair>,
}

/// The two connections of a relay.
#[derive(Debug)]
struct Pair {
    /// Towards the source …
    up: SocketId,
    /// … and towards the sink.
    down: SocketId,
    buffer: VecDeque<Bytes>,
    /// Bytes in `buffer`.
    held: usize,
    /// The connection towards the source has ended.
    is_ended: bool,
}

fn at(machine: usize) -> SocketAddrV4 {
    SocketAddrV4::new(address(machine), PORT)
}

impl Program for Member {
    fn start(&mut self, now: Instant, host: &mut Host) {
        match self {
            Self::Source { .. } | Self::Relay(_) => host.listen(PORT),
            Self::Sink(sink) => {
                if host.connect(now, at(sink.from)).is_err() {
                    sink.ended = Some(now);
                }
            }
        }
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event) {
        match self {
            Self::Source { left, socket } => {
                if let Event::Accepted { id, .. } = event {
                    socket.get_or_insert(id);
                }
                if let Some(socket) = *socket {
                    send(now, host, socket, left);
                }
            }
            Self::Relay(relay) => relay.handle(now, host, event),
            Self::Sink(sink) => match event {
                Event::Readable(id) => sink.read(now, host, id),
                Event::PeerClosed(id) => {
                    sink.read(now, host, id);
                    host.close(now, id);
                    sink.ended.get_or_insert(now);
                }
                Event::Closed { .. } => {
                    sink.ended.get_or_insert(now);
                }
                _ => {}
            },
        }
    }
}

impl Sink {
    fn read(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        while let Some(bytes) = host.read(now, id, usize::MAX) {
            self.bytes += bytes.len() as u64;
        }
    }
}

impl Relay {
    fn handle(&mut self, now: Instant, host: &mut Host, event: Event) {
        match event {
            Event::Accepted { id: down, .. } => match host.connect(now, at(self.from)) {
                Ok(up) => {
                    let (buffer, held) = (VecDeque::new(), 0);
                    self.pairs.push(Pair { up, down, buffer, held, is_ended: false });
                }
                Err(_) => host.abort(now, down),
            },
            Event::Readable(id) | Event::Writable(id) => self.pass(now, host, id, false),
            Event::PeerClosed(id) => self.pass(now, host, id, true),
            Event::Closed { id, .. } => {
                let over = self.pairs.iter().position(|pair| pair.up == id || pair.down == id);
                if let Some(Pair { up, down, is_ended, .. }) =
                    over.map(|place| self.pairs.remove(place))
                    && !is_ended
                {
                    host.abort(now, if id == up { down } else { up });
                }
            }
            Event::Connected(_) | Event::Datagram { .. } => {}
        }
    }

    /// Passes bytes on, as far as there is room.
    fn pass(&mut self, now: Instant, host: &mut Host, id: SocketId, is_closed: bool) {
        let of_it = |pair: &&mut Pair| pair.up == id || pair.down == id;
        let Some(pair) = self.pairs.iter_mut().find(of_it) else { return };
        pair.is_ended |= is_closed && pair.up == id;
        loop {
            let held = pair.held;
            while let Some(front) = pair.buffer.front_mut() {
                pair.held -= host.write(now, pair.down, front);
                if !front.is_empty() {
                    break;
                }
                pair.buffer.pop_front();
            }
            let is_stuck = held > 0 && pair.held == held;
            let room = RELAY_BUFFER - pair.held;
            match if room > 0 { host.read(now, pair.up, room) } else { None } {
                Some(bytes) => {
                    pair.held += bytes.len();
                    pair.buffer.push_back(bytes);
                }
                None if pair.held == 0 || is_stuck => break,
                None => {}
            }
        }
        if pair.is_ended && pair.held == 0 && host.readable(pair.up) == 0 {
            host.close(now, pair.down);
            host.close(now, pair.up);
        }
    }
}

/// Sends the rest of a file, as far as there is room, then closes.
fn send(now: Instant, host: &mut Host, socket: SocketId, left: &mut u64) {
    while *left > 0 {
        let length = (*left).min(NOTHING.len() as u64) as usize;
        let mut bytes = Bytes::from_static(&NOTHING[..length]);
        let written = host.write(now, socket, &mut bytes);
        *left -= written as u64;
        if written < length {
            return;
        }
    }
    host.close(now, socket);
}

#[cfg(test)]
#[path = "relay_tests.rs"]
mod tests;
