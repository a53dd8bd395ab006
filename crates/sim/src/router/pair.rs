//! The gateway's end of the uplink's pair: what the daemon's `uplink.rs` does, in virtual time. Jobs are done
//! at once.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use std::collections::VecDeque;
use std::net::{SocketAddr, SocketAddrV4};

use node::uplink::{
    FlowId, MemoryUnits, Near, NearConfig, NearInput, NearOutput, PairKeys, PairReport, Published,
    TcpId, Worker,
};
use node::{Access, Input, OriginOutput};
use store::{Files as _, Memory, Ring};
use wire::{Instant, PublicKey};

use super::fetches::Fetches;
use super::line::{Line, Moved};
use super::streams::{Change, Heard, Streams, WAITING_MAX};
use crate::net::{Event, Host, SocketId};

/// Units that either end keeps at most: as many as the daemon's default of memory has in its index.
pub(super) const UNITS_MAX: usize = 512 * 1024;

/// What a published scheme's log has at most, and its tables. Both grow as they are used.
const RING_BYTES: u64 = 1 << 30;
const CHUNKS_MAX: usize = 8 << 20;

/// Where the far end is, and what it must prove.
#[derive(Clone, Copy, Debug)]
pub struct FarPlace {
    /// Its address and port.
    pub to: SocketAddrV4,
    /// Its key.
    pub key: PublicKey,
    /// By which published scheme content crosses; `None`: by the histories.
    pub scheme: Option<Published>,
}

/// The keys of an end whose machine has this seed.
pub fn keys(seed: u64) -> PairKeys {
    PairKeys::new(&stream("hearsay sim 2026 identity", seed), &chance(seed))
}

/// The same for those who have not proven a key yet: no chance may be used twice.
pub(super) fn keys_for_guests(seed: u64) -> PairKeys {
    let chance = stream("hearsay sim 2026 chance of a far end's guests", seed);
    PairKeys::new(&stream("hearsay sim 2026 identity", seed), &chance)
}

/// The chance of that end.
pub(super) fn chance(seed: u64) -> [u8; 32] {
    stream("hearsay sim 2026 chance of a pair", seed)
}

/// The empty histories of that end.
pub(super) fn worker(seed: u64) -> Worker<MemoryUnits> {
    let epoch = u128::from(seed).to_le_bytes();
    let history = || MemoryUnits::new(epoch, UNITS_MAX);
    let worker = Worker::new(history(), history());
    let file = Memory::new().create("ring");
    let key = stream("hearsay sim 2026 log of a published scheme", seed);
    match file.and_then(|file| Ring::new(file, RING_BYTES, key)) {
        Ok(ring) => worker.with_cache(ring, CHUNKS_MAX),
        Err(error) => unreachable!("a new file in memory: {error}"),
    }
}

fn stream(purpose: &str, seed: u64) -> [u8; 32] {
    blake3::derive_key(purpose, &seed.to_le_bytes())
}

/// The near end, and its connection.
pub(super) struct Pair {
    near: Near,
    worker: Worker<MemoryUnits>,
    to: SocketAddrV4,
    line: Option<Line>,
    /// Clients' connections that go by it, and how many there were.
    streams: Streams<TcpId>,
    dialled: u64,
}

impl Pair {
    /// The near end of a machine with this seed.
    pub fn new(far: FarPlace, seed: u64) -> Self {
        let worker = worker(seed);
        let config = NearConfig {
            far_key: far.key,
            access: Access::default(),
            held: worker.held(),
            scheme: far.scheme,
        };
        let near = Near::new(config, keys(seed), &chance(seed), worker.marks().into_iter());
        let streams = Streams::default();
        Self { near, worker, to: far.to, line: None, streams, dialled: 0 }
    }

    /// Whether the far end answers.
    pub fn is_up(&self) -> bool {
        self.near.is_up()
    }

    /// Its counters.
    pub fn report(&self) -> PairReport {
        self.near.report()
    }

    /// Whether this goes by the pair.
    pub fn takes(&mut self, output: &OriginOutput) -> bool {
        self.near.takes(output)
    }

    /// Performs an output that it takes. [`flush`](Self::flush) does the rest.
    pub fn perform(&mut self, now: Instant, output: OriginOutput) {
        // No simulated client's request has content.
        self.near.handle_input(now, NearInput::Origin(output, false));
    }

    /// Whether clients' connections may go by it now.
    pub fn takes_tcp(&self) -> bool {
        self.near.takes_tcp()
    }

    /// Has the far end dial for a client. One that came while the last room was taken is reset: the daemon would dial its
    /// server itself.
    pub fn carry(
        &mut self,
        now: Instant,
        host: &mut Host,
        socket: SocketId,
        [client, to]: [SocketAddr; 2],
    ) {
        if !self.near.may_dial(to, client.ip()) {
            return host.abort(now, socket);
        }
        self.dialled += 1;
        let id = TcpId(self.dialled);
        self.streams.open(id, host, socket);
        self.near.handle_input(now, NearInput::Dial(id, to, client.ip()));
        self.near.handle_input(now, NearInput::GrantTcp(id, WAITING_MAX));
    }

    /// Handles an event of one of its sockets. Returns whether it was one.
    pub fn handle_event(&mut self, now: Instant, host: &mut Host, event: &Event) -> bool {
        let Some(change) = self.streams.handle_event(event) else {
            return self.line_event(now, host, event);
        };
        if let Change::Ended(id, Err(why)) = change {
            self.near.handle_input(now, NearInput::ContentEnd(FlowId::Tcp(id), Err(why)));
        }
        true
    }

    fn line_event(&mut self, now: Instant, host: &mut Host, event: &Event) -> bool {
        let Some(line) = &mut self.line else { return false };
        let is_ours = |id: &SocketId| *id == line.socket;
        match event {
            Event::Connected(id) if is_ours(id) => {
                line.open(host);
                self.near.handle_input(now, NearInput::Connected);
            }
            Event::PeerClosed(id) if is_ours(id) => line.ended(),
            Event::Closed { id, .. } if is_ours(id) => {
                self.line = None;
                self.near.handle_input(now, NearInput::Closed);
            }
            Event::Readable(id) | Event::Writable(id) => return is_ours(id),
            Event::Connected(_)
            | Event::PeerClosed(_)
            | Event::Closed { .. }
            | Event::Accepted { .. }
            | Event::Datagram { .. } => return false,
        }
        true
    }

    /// Performs the engine's outputs, writes and reads, until nothing more happens now.
    pub fn flush(
        &mut self,
        now: Instant,
        host: &mut Host,
        fetches: &mut Fetches,
        inputs: &mut VecDeque<Input>,
    ) {
        loop {
            let drained = self.drain(now, host, fetches, inputs) | self.carry_on(now, host);
            let moved = match &mut self.line {
                Some(line) => line.flush(now, host, &mut self.near),
                None => Moved::Nothing,
            };
            if moved == Moved::End {
                self.line = None;
                self.near.handle_input(now, NearInput::Closed);
            } else if moved == Moved::Nothing && !drained {
                return;
            }
        }
    }

    /// Performs the engine's outputs. Returns whether there were any.
    fn drain(
        &mut self,
        now: Instant,
        host: &mut Host,
        fetches: &mut Fetches,
        inputs: &mut VecDeque<Input>,
    ) -> bool {
        let mut drained = false;
        while let Some(output) = self.near.poll_output() {
            drained = true;
            match output {
                NearOutput::Dial => self.dial(now, host),
                NearOutput::Hangup => self.line.iter_mut().for_each(Line::hang_up),
                NearOutput::Work(number, job) => {
                    let done = self.worker.work(job);
                    self.near.handle_input(now, NearInput::Done(number, done));
                }
                NearOutput::Origin(input) => inputs.push_back(Input::Origin(input)),
                NearOutput::Past(id, fetch, granted) => {
                    fetches.perform(now, host, OriginOutput::Fetch(id, fetch), inputs);
                    if granted > 0 {
                        fetches.perform(now, host, OriginOutput::Grant(id, granted), inputs);
                    }
                }
                NearOutput::Tcp(id, bytes) => {
                    if let Some(stream) = self.streams.get(id) {
                        stream.put(bytes);
                    }
                }
                NearOutput::TcpEnd(id, result) => {
                    self.streams.get(id).into_iter().for_each(|it| it.end(result));
                }
                // That the far end answers is no trouble.
                NearOutput::TcpCrossed(..) | NearOutput::Notice(_) => {}
            }
        }
        drained
    }

    /// Reads and writes clients' connections. Returns whether there was anything.
    fn carry_on(&mut self, now: Instant, host: &mut Host) -> bool {
        let mut moved = false;
        for (id, stream) in self.streams.iter() {
            let flow = FlowId::Tcp(id);
            let taken = stream.say(now, host);
            if taken > 0 {
                moved = true;
                self.near.handle_input(now, NearInput::GrantTcp(id, taken));
            }
            stream.room = self.near.room(flow);
            while let Some(heard) = stream.hear(now, host) {
                moved = true;
                let input = match heard {
                    Heard::Bytes(bytes) => NearInput::Content(flow, bytes),
                    Heard::End(result) => NearInput::ContentEnd(flow, result),
                };
                self.near.handle_input(now, input);
                stream.room = self.near.room(flow);
            }
        }
        self.streams.forget();
        moved
    }

    fn dial(&mut self, now: Instant, host: &mut Host) {
        if let Some(old) = self.line.take() {
            host.abort(now, old.socket);
        }
        match host.connect(now, self.to) {
            Ok(socket) => self.line = Some(Line::new(socket, false)),
            Err(_) => self.near.handle_input(now, NearInput::Closed),
        }
    }

    /// When it needs [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.near.poll_timeout()
    }

    /// Handles what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.near.poll_timeout().is_some_and(|at| at <= now) {
            self.near.handle_input(now, NearInput::Tick);
        }
    }
}
