//! Two connections and the line between them, in virtual time.

mod closing;
mod loss;
mod opening;
mod phases;
mod random;
mod receiving;
mod sack;
mod sending;
mod stamps;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use wire::Instant;

use super::{Config, Connection};
use crate::net::{Flags, Segment};

pub const MS: Duration = Duration::from_millis(1);
/// One-way delay; a round trip takes 100 ms.
pub const DELAY: Duration = Duration::from_millis(50);
pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

/// For a segment, the extra delay of each copy that arrives.
pub type Fate = Box<dyn FnMut(&Sent) -> Vec<Duration>>;

/// A segment that a side has sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Instant,
    pub from: usize,
    pub segment: Segment,
}

/// A client, a server, and the line between them.
pub struct Pair {
    pub now: Instant,
    pub client: Connection,
    /// Exists once a SYN has arrived.
    pub server: Option<Connection>,
    server_config: Config,
    server_iss: u32,
    fate: Fate,
    /// Segments on the line, by arrival and number.
    line: BTreeMap<(Instant, usize), (usize, Segment)>,
    count: usize,
    pub sent: Vec<Sent>,
    /// What each side has read, and whether it reads.
    pub got: [Vec<u8>; 2],
    pub reads: [bool; 2],
    pending: [Bytes; 2],
}

pub const CLIENT_ISS: u32 = 1000;
pub const SERVER_ISS: u32 = 5_000_000;

impl Pair {
    pub fn new(config: Config) -> Self {
        Self::with(config, config, [CLIENT_ISS, SERVER_ISS], Box::new(|_| vec![Duration::ZERO]))
    }

    pub fn with(client: Config, server: Config, iss: [u32; 2], fate: Fate) -> Self {
        let mut pair = Self {
            now: Instant::ZERO,
            client: Connection::connect(client, Instant::ZERO, iss[CLIENT]),
            server: None,
            server_config: server,
            server_iss: iss[SERVER],
            fate,
            line: BTreeMap::new(),
            count: 0,
            sent: Vec::new(),
            got: [Vec::new(), Vec::new()],
            reads: [true, true],
            pending: [Bytes::new(), Bytes::new()],
        };
        pair.drain();
        pair
    }

    /// From now on, drops the segments that `lost` selects.
    pub fn lose(&mut self, mut lost: impl FnMut(&Sent) -> bool + 'static) {
        self.fate = Box::new(move |sent| if lost(sent) { vec![] } else { vec![Duration::ZERO] });
    }

    pub fn side(&mut self, side: usize) -> &mut Connection {
        if side == CLIENT { &mut self.client } else { self.server.as_mut().unwrap() }
    }

    pub fn server(&mut self) -> &mut Connection {
        self.side(SERVER)
    }

    /// Runs until both sides are established.
    pub fn opened(config: Config) -> Self {
        let mut pair = Self::new(config);
        pair.run_for(4 * DELAY);
        pair.sent.clear();
        pair
    }

    /// Writes all of `data`, as room becomes free.
    pub fn write(&mut self, side: usize, data: impl Into<Bytes>) {
        assert!(self.pending[side].is_empty());
        self.pending[side] = data.into();
        self.drain();
    }

    /// Applies `act` to a side.
    pub fn then<T>(&mut self, side: usize, act: impl FnOnce(&mut Connection) -> T) -> T {
        let result = act(self.side(side));
        self.drain();
        result
    }

    /// Lets the programs read and write, and sends the sides' segments.
    pub fn drain(&mut self) {
        for side in [CLIENT, SERVER] {
            let connection = match (side, &mut self.server) {
                (CLIENT, _) => &mut self.client,
                (_, Some(server)) => server,
                _ => return,
            };
            while self.reads[side]
                && let Some(piece) = connection.read(usize::MAX)
            {
                self.got[side].extend_from_slice(&piece);
            }
            connection.write(&mut self.pending[side]);
            while let Some(segment) = connection.poll_transmit(self.now) {
                let sent = Sent { at: self.now, from: side, segment };
                for late in (self.fate)(&sent) {
                    self.count += 1;
                    let key = (self.now + DELAY + late, self.count);
                    self.line.insert(key, (1 - side, sent.segment.clone()));
                }
                self.sent.push(sent);
            }
        }
    }

    fn next(&self) -> Option<Instant> {
        let arrival = self.line.first_key_value().map(|((at, _), _)| *at);
        let server = self.server.as_ref().and_then(Connection::poll_timeout);
        [arrival, self.client.poll_timeout(), server].into_iter().flatten().min()
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Instant) {
        while let Some(next) = self.next().filter(|at| *at <= end) {
            assert!(next >= self.now, "what was due at {next:?} was not done by {:?}", self.now);
            self.now = next;
            self.step();
            self.drain();
        }
        self.now = end;
    }

    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    fn step(&mut self) {
        let arrived = self.line.first_entry().filter(|entry| entry.key().0 <= self.now);
        if let Some(entry) = arrived {
            let (to, segment) = entry.remove();
            self.arrive(to, segment);
            return;
        }
        for connection in std::iter::once(&mut self.client).chain(&mut self.server) {
            if connection.poll_timeout().is_some_and(|at| at <= self.now) {
                connection.handle_timeout(self.now);
                assert!(connection.poll_timeout().is_none_or(|at| at > self.now));
            }
        }
    }

    fn arrive(&mut self, to: usize, segment: Segment) {
        match &mut self.server {
            _ if to == CLIENT => self.client.handle_segment(self.now, segment),
            Some(server) => server.handle_segment(self.now, segment),
            None if segment.flags == Flags::SYN => {
                let (config, iss) = (self.server_config, self.server_iss);
                self.server = Some(Connection::accept(config, self.now, iss, &segment));
            }
            None => {}
        }
    }

    /// The data that a side has sent since `since`: time in ms, offset, number of bytes.
    pub fn data_sent(&self, from: usize, since: Instant) -> Vec<(u64, u32, usize)> {
        let iss = if from == CLIENT { CLIENT_ISS } else { SERVER_ISS };
        let sent = self.sent.iter().filter(|it| it.from == from && it.at >= since);
        sent.filter(|it| !it.segment.payload.is_empty())
            .map(|it| (ms(it.at - since), it.segment.seq - iss - 1, it.segment.payload.len()))
            .collect()
    }

    /// The plain acknowledgements that a side has sent: time in ms, offset.
    pub fn acks_sent(&self, from: usize, since: Instant) -> Vec<(u64, u32)> {
        let iss = if from == CLIENT { SERVER_ISS } else { CLIENT_ISS };
        let sent = self.sent.iter().filter(|it| it.from == from && it.at >= since);
        sent.filter(|it| it.segment.sequence_len() == 0)
            .map(|it| (ms(it.at - since), it.segment.ack - iss - 1))
            .collect()
    }
}

/// A pair with these settings whose client may send twenty segments at once and has a timeout of 400 ms. From
/// now on the line drops each of the client's segments whose number is in `lost`, as often as it occurs there.
pub fn twenty_of_which_are_lost(config: Config, lost: &[u32]) -> (Pair, Instant) {
    let config = Config { initial_window: 20, delayed_ack: 1, rto_min: 400 * MS, ..config };
    let mut pair = Pair::opened(config);
    assert_eq!((pair.client.congestion_window(), pair.client.rto()), (20_000, 400 * MS));
    let start = pair.now;
    let offsets: Vec<_> = lost.iter().map(|i| CLIENT_ISS + 1 + 1000 * i).collect();
    let left = Rc::new(RefCell::new(offsets));
    pair.lose(move |sent| {
        let mut left = left.borrow_mut();
        let place = left.iter().position(|seq| sent.from == CLIENT && sent.segment.seq == *seq);
        place.map(|place| left.remove(place)).is_some()
    });
    (pair, start)
}

/// The numbers, from `first` on, of the segments that were sent at this moment.
pub fn numbers(pair: &Pair, start: Instant, at: u64) -> Vec<u32> {
    let sent = pair.data_sent(CLIENT, start);
    sent.iter().filter(|it| it.0 == at).map(|it| it.1 / 1000).collect()
}

/// Whole milliseconds.
pub fn ms(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// Bytes varied enough that a misplaced one is noticed.
pub fn data(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

/// Segments of 1,000 bytes, for round figures.
pub fn round() -> Config {
    Config { mss: 1000, ..Config::default() }
}
