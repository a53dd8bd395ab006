//! The far end of the gateway's uplink: what `hearsay far` does, in virtual time, for one gateway.

#![deny(clippy::wildcard_enum_match_arm, reason = "no output may be overlooked")]

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use node::uplink::{
    Far as Engine, FarConfig, FarInput, FarOutput, Guest, MemoryUnits, PairKeys, Reach, Worker,
};
use node::{FetchError, FetchId, Input, OriginInput, OriginOutput};
use wire::{Instant, PublicKey};

use super::fetches::Fetches;
use super::line::{Line, Moved};
use super::pair::{UNITS_MAX, chance, keys, keys_for_guests, worker};
use super::streams::{Change, Heard, Streams, WAITING_MAX};
use crate::hosts::{discard, read};
use crate::net::{Event, Host, SocketId};
use crate::world::Program;

/// The port on which the gateway connects.
pub const FAR_PORT: u16 = 3144;
/// Bytes of a handshake that are read at one time at most.
const READ_MAX: usize = 2048;

/// The far end as a program.
pub struct Far {
    engine: Engine,
    worker: Worker<MemoryUnits>,
    keys: PairKeys,
    near: PublicKey,
    /// Connections that have not proven a key yet.
    guests: BTreeMap<SocketId, Guest>,
    line: Option<Line>,
    fetches: Fetches,
    /// Connections with servers, for clients of the gateway whose connections go by the pair.
    streams: Streams<FetchId>,
    /// What origins have answered.
    answers: VecDeque<Input>,
}

impl Far {
    /// The far end of the gateway with this key. Its own keys and its chance follow from `seed`; `names` are the
    /// origins' addresses.
    pub fn new(near: PublicKey, seed: u64, names: BTreeMap<String, IpAddr>) -> Self {
        let worker = worker(seed);
        let config = FarConfig { near_key: near, units_max: UNITS_MAX, held: worker.held() };
        Self {
            engine: Engine::new(config, keys(seed), &chance(seed), worker.marks().into_iter()),
            worker,
            keys: keys_for_guests(seed),
            near,
            guests: BTreeMap::new(),
            line: None,
            fetches: Fetches::new(names),
            streams: Streams::default(),
            answers: VecDeque::new(),
        }
    }

    /// Performs the engine's outputs, writes and reads, until nothing more happens now.
    fn work(&mut self, now: Instant, host: &mut Host) {
        loop {
            let drained = self.drain(now, host) | self.carry_on(now, host);
            let moved = match &mut self.line {
                Some(line) => line.flush(now, host, &mut self.engine),
                None => Moved::Nothing,
            };
            if moved == Moved::End {
                self.line = None;
                self.engine.handle_input(now, FarInput::Closed);
            } else if moved == Moved::Nothing && !drained {
                return;
            }
        }
    }

    /// Gives the engine what origins have answered, and performs its outputs. Returns whether there was any of
    /// either.
    fn drain(&mut self, now: Instant, host: &mut Host) -> bool {
        let mut drained = false;
        while let Some(input) = self.answers.pop_front() {
            drained = true;
            // Requests to origins give no other inputs.
            if let Input::Origin(input) = input {
                self.engine.handle_input(now, FarInput::Origin(input));
            }
        }
        while let Some(output) = self.engine.poll_output() {
            drained = true;
            match output {
                FarOutput::Hangup => self.line.iter_mut().for_each(Line::hang_up),
                FarOutput::Work(number, job) => {
                    let done = self.worker.work(job);
                    self.engine.handle_input(now, FarInput::Done(number, done));
                }
                FarOutput::Origin(output, _) => self.ask(now, host, output),
                FarOutput::Dial(id, to, _) => self.dial(now, host, id, to),
                // Of a connection: no simulated client's request has content.
                FarOutput::Content(id, bytes) => {
                    if let Some(stream) = self.streams.get(id) {
                        stream.put(bytes);
                    }
                }
                FarOutput::ContentEnd(id, result) => {
                    self.streams.get(id).into_iter().for_each(|it| it.end(result));
                }
            }
        }
        drained
    }

    /// Something for an origin, or for the server of a client's connection.
    fn ask(&mut self, now: Instant, host: &mut Host, output: OriginOutput) {
        match output {
            OriginOutput::Grant(id, bytes) if self.streams.has(id) => {
                self.streams.get(id).into_iter().for_each(|it| it.room += bytes);
            }
            OriginOutput::Cancel(id) if self.streams.has(id) => self.streams.abort(now, host, id),
            OriginOutput::Fetch(..)
            | OriginOutput::Grant(..)
            | OriginOutput::Cancel(_)
            | OriginOutput::TakeIn(..) => {
                self.fetches.perform(now, host, output, &mut self.answers);
            }
        }
    }

    fn dial(&mut self, now: Instant, host: &mut Host, id: FetchId, to: SocketAddr) {
        let socket = match to {
            SocketAddr::V4(to) => host.connect(now, to).ok(),
            SocketAddr::V6(_) => None,
        };
        match socket {
            Some(socket) => self.streams.open(id, host, socket),
            None => self.answer(now, OriginInput::End(id, Err(FetchError::Unreachable))),
        }
    }

    fn answer(&mut self, now: Instant, input: OriginInput) {
        self.engine.handle_input(now, FarInput::Origin(input));
    }

    /// Reads and writes connections with servers. Returns whether there was anything.
    fn carry_on(&mut self, now: Instant, host: &mut Host) -> bool {
        let mut moved = false;
        for (id, stream) in self.streams.iter() {
            let taken = stream.say(now, host);
            if taken > 0 {
                moved = true;
                self.engine.accept_content(now, id, taken);
            }
            while let Some(heard) = stream.hear(now, host) {
                moved = true;
                let input = match heard {
                    Heard::Bytes(bytes) => OriginInput::Body(id, bytes),
                    Heard::End(result) => OriginInput::End(id, result),
                };
                self.engine.handle_input(now, FarInput::Origin(input));
            }
        }
        self.streams.forget();
        moved
    }

    fn stream_changed(&mut self, now: Instant, change: Change<FetchId>) {
        match change {
            Change::Made(id) => self.engine.accept_content(now, id, WAITING_MAX),
            Change::Ended(id, Err(why)) => self.answer(now, OriginInput::End(id, Err(why))),
            Change::Ended(_, Ok(())) | Change::Ready => {}
        }
    }

    /// Reads on until it is known who is there.
    fn greet(&mut self, now: Instant, host: &mut Host, id: SocketId) {
        while let Some(guest) = self.guests.get_mut(&id)
            && let Some(bytes) = read(now, host, id, READ_MAX)
        {
            let known = guest.receive(&bytes, &mut self.keys);
            if let Some(mut bytes) = guest.take_outbox() {
                host.write(now, id, &mut bytes);
            }
            if known == Ok(None) {
                continue;
            }
            match self.guests.remove(&id) {
                Some(guest) if known == Ok(Some(self.near)) => self.admit(now, host, id, guest),
                _ => host.abort(now, id),
            }
        }
    }

    /// The gateway is there; its new connection replaces an older one.
    fn admit(&mut self, now: Instant, host: &mut Host, id: SocketId, guest: Guest) {
        if let Some(old) = self.line.replace(Line::new(id, true)) {
            host.abort(now, old.socket);
        }
        let from = host.addresses_of(id).map_or(IpAddr::from([0; 4]), |(_, it)| (*it.ip()).into());
        let reach = Reach { v4: true, v6: false };
        self.engine.handle_input(now, FarInput::Connected(guest, from, reach));
    }
}

impl Program for Far {
    fn start(&mut self, _now: Instant, host: &mut Host) {
        host.listen(FAR_PORT);
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event) {
        if let Some(change) = self.streams.handle_event(&event) {
            self.stream_changed(now, change);
            return self.work(now, host);
        }
        let line = self.line.as_ref().map(|line| line.socket);
        let answers = &mut self.answers;
        match event {
            Event::Accepted { id, .. } => {
                host.set_nodelay(id, true);
                self.guests.insert(id, Guest::default());
            }
            Event::Readable(id) if self.guests.contains_key(&id) => self.greet(now, host, id),
            Event::Closed { id, .. } if self.guests.remove(&id).is_some() => {}
            Event::PeerClosed(id) if self.guests.remove(&id).is_some() => host.abort(now, id),
            Event::Readable(id) | Event::Writable(id) if line == Some(id) => {}
            Event::PeerClosed(id) if line == Some(id) => self.line.iter_mut().for_each(Line::ended),
            Event::Closed { id, .. } if line == Some(id) => {
                self.line = None;
                self.engine.handle_input(now, FarInput::Closed);
            }
            Event::Connected(id) => self.fetches.connected(now, host, id, answers),
            Event::Readable(id) | Event::Writable(id) if self.fetches.has(id) => {
                self.fetches.ready(now, host, id, false, answers);
            }
            Event::PeerClosed(id) if self.fetches.has(id) => {
                self.fetches.ready(now, host, id, true, answers);
            }
            // The socket was closed here, but the other side still sends.
            Event::Readable(id) | Event::PeerClosed(id) => discard(now, host, id),
            Event::Closed { id, why } => self.fetches.closed(now, host, id, why, answers),
            Event::Writable(_) | Event::Datagram { .. } => {}
        }
        self.work(now, host);
    }

    fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        if self.engine.poll_timeout().is_some_and(|at| at <= now) {
            self.engine.handle_input(now, FarInput::Tick);
        }
        self.fetches.handle_timeout(now, host, &mut self.answers);
        self.work(now, host);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.engine.poll_timeout().into_iter().chain(self.fetches.poll_timeout()).min()
    }
}

impl fmt::Debug for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Far").field("report", &self.engine.report()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wire::Scheme;

    use crate::hosts::Ask;
    use crate::router::mesh::{Member, Mesh, Options};
    use crate::scenario::Scenario;

    /// What a client breaks off is forgotten at both ends, and what it asks for after that comes.
    #[test]
    fn a_client_that_breaks_off_leaves_nothing_behind() {
        let settings =
            [("far", "pair"), ("http", "bypass"), ("bytes", "1_000_000"), ("files", "4")];
        let own = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Scenario::load("uplink", &own).unwrap();
        let mut mesh = Mesh::build(&scenario, Scheme::Default, 1, Options::default()).unwrap();
        mesh.meet(Scheme::Default);
        let client = mesh.clients[&0];
        let act = |mesh: &mut Mesh<'_>, number: Option<usize>, time| {
            mesh.world.act(client, |now, host, member| {
                let Member::Client(it) = member else { unreachable!() };
                match number {
                    Some(number) => {
                        it.ask(now, host, Ask { number, file: number, size: 1_000_000 })
                    }
                    None => it.abandon(now, host),
                }
            });
            mesh.world.run(mesh.world.now() + time);
        };
        for number in 0..3 {
            act(&mut mesh, Some(number), Duration::from_secs(3));
            act(&mut mesh, None, Duration::from_secs(30));
        }
        let far = mesh.world.program(mesh.outer);
        let Member::Far(far) = far else { unreachable!() };
        assert_eq!((far.engine.flows(), far.engine.report().tcp_flows), (0, 3));
        act(&mut mesh, Some(3), Duration::from_secs(30));
        let got: Vec<_> = mesh.world.act(client, |_, _, member| {
            let Member::Client(it) = member else { unreachable!() };
            std::iter::from_fn(|| it.poll_done()).collect()
        });
        let whole: Vec<_> = got.iter().map(|it| it.is_right).collect();
        assert_eq!(whole, [false, false, false, true], "{got:?}");
    }
}
