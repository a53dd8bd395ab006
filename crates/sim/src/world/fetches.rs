//! Clients that fetch a file over TCP, think, and fetch again; and their server.
//!
//! *What this is:* [`Fetcher`], the program of a machine that fetches or serves. *What it never does:* speak
//! HTTP or cache: a request and a file are plain bytes of a given length.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::time::Duration;

use bytes::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use wire::Instant;

use super::Program;
use super::draws::exponential;
use super::times::Times;
use crate::net::tcp::End;
use crate::net::{Event, Host, SocketId};

/// The server's port.
pub const PORT: u16 = 80;

/// Length of a request, about that of a short HTTP request.
const REQUEST_BYTES: usize = 64;
/// Number of failures whose details are kept; later ones are only counted.
pub const FAILED_MAX: usize = 20;
/// The content of requests and files.
static NOTHING: [u8; 65_536] = [0; 65_536];

/// The program of a machine.
#[derive(Debug)]
pub enum Fetcher {
    /// Only forwards.
    Idle,
    /// Fetches.
    Client(Box<Client>),
    /// Serves the file.
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
    /// Durations of successful fetches.
    times: Times,
    /// The first failed fetches: their numbers, from 1, and reasons.
    failed: Vec<(u64, End)>,
    /// Number of failed fetches.
    failures: u64,
    /// Bytes of files received, including those of a fetch in progress.
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Thinking {
        until: Instant,
    },
    /// `last` is the time of the latest data, or of the beginning.
    Fetching {
        id: SocketId,
        began: Instant,
        last: Instant,
        left: u64,
    },
}

/// Sends the file to each client that requests it.
#[derive(Debug)]
pub struct Server {
    file_bytes: u64,
    /// For each connection, the unread bytes of the request and the unsent bytes of the file.
    open: BTreeMap<SocketId, (usize, u64)>,
}

impl Server {
    /// A server with a file of `file_bytes` bytes.
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
    /// A client that has just begun to think; `seed` draws its think times.
    pub fn new(server: SocketAddrV4, file_bytes: u64, think: Duration, seed: u64) -> Self {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let until = Instant::ZERO + exponential(&mut chance, think);
        Self {
            server,
            file_bytes,
            think,
            chance,
            state: State::Thinking { until },
            times: Times::default(),
            failed: Vec::new(),
            failures: 0,
            bytes: 0,
        }
    }

    /// Durations of successful fetches.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// The first failed fetches, up to [`FAILED_MAX`]: their numbers, from 1, and reasons.
    pub fn failed(&self) -> &[(u64, End)] {
        &self.failed
    }

    /// Number of failed fetches.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Number of ended fetches, failed ones included.
    pub fn ended(&self) -> u64 {
        self.times.count() + self.failures
    }

    /// Since when the fetch in progress has received nothing, if there is one.
    pub fn waiting(&self) -> Option<Instant> {
        match self.state {
            State::Thinking { .. } => None,
            State::Fetching { last, .. } => Some(last),
        }
    }

    /// Bytes of files received.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: &Event) {
        let State::Fetching { id, began, mut last, mut left } = self.state else { return };
        match event {
            Event::Connected(it) if *it == id => {
                host.write(now, id, &mut Bytes::from_static(&NOTHING[..REQUEST_BYTES]));
            }
            Event::Readable(it) if *it == id => {
                while let Some(data) = host.read(now, id, usize::MAX) {
                    left = left.saturating_sub(data.len() as u64);
                    self.bytes += data.len() as u64;
                    last = now;
                }
                self.state = State::Fetching { id, began, last, left };
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
                let (began, last, left) = (now, now, self.file_bytes);
                self.state = State::Fetching { id, began, last, left };
            }
            Err(_) => self.end(now, now, Some(End::Aborted)),
        }
    }

    fn end(&mut self, now: Instant, began: Instant, failed: Option<End>) {
        match failed {
            None => self.times.record(now - began),
            Some(why) => {
                self.failures += 1;
                if self.failed.len() < FAILED_MAX {
                    self.failed.push((self.ended(), why));
                }
            }
        }
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
