//! Clients that fetch a file over TCP, think, and fetch again; and the server that has it.
//!
//! *What this is:* [`Fetcher`], the program of a machine that fetches or serves. *What it never does:*
//! speak HTTP or cache: a request and a file are so many bytes.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::time::Duration;

use bytes::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore as _, SeedableRng as _};
use wire::Instant;

use super::Program;
use crate::net::tcp::End;
use crate::net::{Event, Host, SocketId};

/// Where the server listens.
pub const PORT: u16 = 80;

/// About as long as a short request of HTTP.
const REQUEST_BYTES: usize = 64;
/// What requests and files consist of.
static NOTHING: [u8; 65_536] = [0; 65_536];

/// What a machine does.
#[derive(Debug)]
pub enum Fetcher {
    /// Relays.
    Idle,
    /// Fetches.
    Client(Box<Client>),
    /// Has the file.
    Server(Server),
}

/// Fetches, thinks, and fetches again.
#[derive(Debug)]
pub struct Client {
    server: SocketAddrV4,
    file_bytes: u64,
    think: Duration,
    chance: Xoshiro256PlusPlus,
    state: State,
    /// All that have ended.
    fetches: Vec<Fetch>,
    /// Bytes of files that arrived, of those too that have not ended.
    bytes: u64,
}

/// A fetch that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// When it began.
    pub began: Instant,
    /// From then to its last byte.
    pub lasted: Duration,
    /// Why it failed, if it did.
    pub failed: Option<End>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Thinking { until: Instant },
    Fetching { id: SocketId, began: Instant, left: u64 },
}

/// Sends the file to whoever asks for it.
#[derive(Debug)]
pub struct Server {
    file_bytes: u64,
    /// For each connection how much of the request it has not read, and of the file not sent.
    open: BTreeMap<SocketId, (usize, u64)>,
}

impl Server {
    /// One with a file of so many bytes.
    pub fn new(file_bytes: u64) -> Self {
        Self { file_bytes, open: BTreeMap::new() }
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: &Event) {
        match event {
            Event::Accepted { id, .. } => {
                self.open.insert(*id, (REQUEST_BYTES, self.file_bytes));
            }
            Event::Readable(id) => {
                let Some((asked, _)) = self.open.get_mut(id) else { return };
                while let Some(data) = host.read(now, *id, usize::MAX) {
                    *asked = asked.saturating_sub(data.len());
                }
                self.send(now, host, *id);
            }
            Event::Writable(id) => self.send(now, host, *id),
            Event::Closed { id, .. } => {
                self.open.remove(id);
            }
            Event::Connected(_) | Event::PeerClosed(_) | Event::Datagram { .. } => {}
        }
    }

    fn send(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        let Some((0, left)) = self.open.get_mut(&id) else { return };
        while *left > 0 {
            let mut data = Bytes::from_static(&NOTHING[..NOTHING.len().min(*left as usize)]);
            match host.write(now, id, &mut data) {
                0 => return,
                written => *left -= written as u64,
            }
        }
        self.open.remove(&id);
        host.close(now, id);
    }
}

impl Client {
    /// One that has just begun to think; `seed` says for how long it thinks each time.
    pub fn new(server: SocketAddrV4, file_bytes: u64, think: Duration, seed: u64) -> Self {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let until = Instant::ZERO + exponential(&mut chance, think);
        let (state, fetches) = (State::Thinking { until }, Vec::new());
        Self { server, file_bytes, think, chance, state, fetches, bytes: 0 }
    }

    /// The fetches that have ended.
    pub fn fetches(&self) -> &[Fetch] {
        &self.fetches
    }

    /// When the fetch began that has not ended, if there is one.
    pub fn fetching(&self) -> Option<Instant> {
        match self.state {
            State::Thinking { .. } => None,
            State::Fetching { began, .. } => Some(began),
        }
    }

    /// Bytes of files that arrived.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: &Event) {
        let State::Fetching { id, began, mut left } = self.state else { return };
        match event {
            Event::Connected(it) if *it == id => {
                host.write(now, id, &mut Bytes::from_static(&NOTHING[..REQUEST_BYTES]));
            }
            Event::Readable(it) if *it == id => {
                while let Some(data) = host.read(now, id, usize::MAX) {
                    left = left.saturating_sub(data.len() as u64);
                    self.bytes += data.len() as u64;
                }
                self.state = State::Fetching { id, began, left };
                if left == 0 {
                    host.close(now, id);
                    self.end(now, began, None);
                }
            }
            Event::Closed { id: it, why } if *it == id => self.end(now, began, Some(*why)),
            _ => {}
        }
    }

    fn begin(&mut self, now: Instant, host: &mut Host) {
        match host.connect(now, self.server) {
            Ok(id) => {
                self.state = State::Fetching { id, began: now, left: self.file_bytes };
            }
            Err(_) => self.end(now, now, Some(End::Aborted)),
        }
    }

    fn end(&mut self, now: Instant, began: Instant, failed: Option<End>) {
        self.fetches.push(Fetch { began, lasted: now - began, failed });
        let until = now + exponential(&mut self.chance, self.think);
        self.state = State::Thinking { until };
    }
}

impl Program for Fetcher {
    fn start(&mut self, _now: Instant, host: &mut Host) {
        if let Self::Server(_) = self {
            host.listen(PORT);
        }
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event) {
        match self {
            Self::Idle => {}
            Self::Client(client) => client.handle_event(now, host, &event),
            Self::Server(server) => server.handle_event(now, host, &event),
        }
    }

    fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        if let Self::Client(client) = self
            && let State::Thinking { until } = client.state
            && until <= now
        {
            client.begin(now, host);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Client(client) => match client.state {
                State::Thinking { until } => Some(until),
                State::Fetching { .. } => None,
            },
            Self::Idle | Self::Server(_) => None,
        }
    }
}

/// An exponential time of this mean, through `libm`, so that it is the same on every machine.
fn exponential(chance: &mut Xoshiro256PlusPlus, mean: Duration) -> Duration {
    // Above 0 and up to 1, of 53 bits.
    let uniform = ((chance.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    mean.mul_f64(-libm::log(uniform))
}
