//! Connections between peers, as a driver gives them: bytes in order, with a latency and at a rate, a
//! socket's buffer at most on their way, within what the receiver grants.

use super::air::Passing;
use super::ground::{Ground, PORT, Port, address};
use crate::common::check;
use bytes::Bytes;
use node::driver::LinkBuffer;
use node::driver::links::{DIAL, LINGER};
use node::{LinkId, LinkInput, LinkOutput};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;
use wire::Instant;
use wire::peer::Connection;

/// What is written and not yet delivered, at most. No driver has a limit of places here: the engine keeps its own.
const SOCKET: u64 = 64 * 1024;
/// Bytes travel in pieces of at most this many, and each piece is read alone. A driver reads more at once, so messages
/// are cut more often here.
const PIECE: usize = 4096;
/// A machine that gets no acknowledgement closes the connection after this long.
const USER_TIMEOUT: Duration = Duration::from_secs(20);

/// What happens to a connection when its time comes.
#[derive(Clone, Copy, Debug)]
pub enum Wire {
    Accept(usize),
    Connected(usize),
    /// One side learns that it is over.
    Closed(usize, usize),
    /// Bytes come to one side.
    Arrive(usize, usize),
    /// One side may write more.
    Room(usize, usize, u64),
    /// The user timeout.
    GiveUp(usize),
}

/// What is to happen later.
pub type Later = Vec<(Duration, Wire)>;

/// One side of a connection: what comes to it, and what it may send.
#[derive(Debug)]
struct Side {
    node: usize,
    id: LinkId,
    /// Nothing more is said of it there.
    gone: bool,
    /// It was hung up there: until when what still comes is thrown away.
    parting: Option<Instant>,
    /// The other side will write no more.
    ended: bool,
    buffer: LinkBuffer,
    room: u64,
    coming: VecDeque<(Instant, Bytes)>,
    /// An `Arrive` is on its way.
    arriving: bool,
    /// Bytes that it wrote.
    wrote: u64,
    /// Bytes that came to it.
    read: u64,
}

#[derive(Debug)]
struct Link {
    /// The side that dialled, and the side that was dialled.
    sides: [Side; 2],
    /// The first bytes that the dialling side wrote.
    first: Vec<u8>,
    giving_up: bool,
}

/// All connections of the world, and those that were.
#[derive(Debug)]
pub struct Links {
    pub ground: Ground,
    /// How long a hop takes.
    pub latency: Duration,
    /// Bytes per second from one machine to another.
    pub rate: u64,
    /// Machines that read nothing any more, even if they have granted credit.
    pub deaf: BTreeSet<usize>,
    /// If recording is on: all bytes that crossed a connection, by its number and the side that wrote them.
    pub heard: Option<BTreeMap<(usize, usize), Vec<u8>>>,
    all: Vec<Link>,
    ids: BTreeMap<(usize, LinkId), (usize, usize)>,
    /// Ways that are slower or faster than others, in bytes per second.
    pub rates: BTreeMap<(usize, usize), u64>,
    /// When the way from one machine to another is free.
    free: BTreeMap<(usize, usize), Instant>,
}

impl Links {
    pub fn new(ground: Ground, latency: Duration, rate: u64) -> Self {
        let (all, ids, free) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let (deaf, heard, rates) = (BTreeSet::new(), None, BTreeMap::new());
        Self { ground, latency, rate, deaf, heard, all, ids, rates, free }
    }

    /// Does what a node asks for.
    pub fn perform(&mut self, now: Instant, node: usize, output: LinkOutput) -> Later {
        match output {
            LinkOutput::Connect(id, to) => self.connect(node, id, to),
            LinkOutput::Write(id, bytes) => self.write(now, node, id, &bytes),
            LinkOutput::Receive(id, _) => {
                let Some((link, side)) = self.ids.get(&(node, id)).copied() else { return vec![] };
                self.all[link].sides[side].buffer.take(output);
                self.arrive_soon(link, side, Duration::ZERO)
            }
            // There are no packets that they could save.
            LinkOutput::ReadThreshold(..) | LinkOutput::BulkData(_) => Vec::new(),
            LinkOutput::Hangup(id) => {
                let Some((link, side)) = self.ids.remove(&(node, id)) else { return vec![] };
                let here = &mut self.all[link].sides[side];
                (here.gone, here.parting) = (true, Some(now + LINGER));
                self.all[link].sides[1 - side].ended = true;
                let wait = self.latency_of(link);
                self.arrive_soon(link, 1 - side, wait)
            }
        }
    }

    fn connect(&mut self, node: usize, id: LinkId, to: SocketAddr) -> Later {
        check(id.is_dialled(), || format!("the engine dials with an odd number: {id:?}"));
        let number = self.all.len();
        let target = self.ground.at(to);
        // Odd numbers that no node has used.
        let odd = LinkId::accepted(number as u64);
        let mut sides = [Side::new(node, id), Side::new(target.unwrap_or(node), odd)];
        // Nothing is said of it there before it was accepted.
        sides[1].gone = true;
        self.all.push(Link { sides, first: Vec::new(), giving_up: false });
        let old = self.ids.insert((node, id), (number, 0));
        check(old.is_none(), || format!("{id:?} was used before"));
        let hops = target.and_then(|target| self.ground.hops(node, target));
        match (target.map(|target| self.ground.ports[target]), hops) {
            (Some(Port::Open), Some(hops)) => vec![(self.latency * hops, Wire::Accept(number))],
            (Some(Port::Refuses), Some(hops)) => {
                vec![(self.latency * hops * 2, Wire::Closed(number, 0))]
            }
            _ => vec![(DIAL, Wire::Closed(number, 0))],
        }
    }

    fn write(&mut self, now: Instant, node: usize, id: LinkId, bytes: &Bytes) -> Later {
        let Some((link, side)) = self.ids.get(&(node, id)).copied() else { return vec![] };
        if let Some(heard) = &mut self.heard {
            heard.entry((link, side)).or_default().extend_from_slice(bytes);
        }
        let latency = self.latency_of(link);
        let Link { sides, first, .. } = &mut self.all[link];
        if side == 0 && first.len() < wire::peer::Preamble::LENGTH {
            first.extend_from_slice(bytes);
        }
        let count = bytes.len() as u64;
        check(count <= sides[side].room, || {
            format!("node {node} writes {count} bytes where {} have room", sides[side].room)
        });
        sides[side].room -= count;
        sides[side].wrote += count;
        let way = (node, sides[1 - side].node);
        let rate = self.rates.get(&way).copied().unwrap_or(self.rate);
        let line = self.free.entry(way).or_default();
        for at in (0..bytes.len()).step_by(PIECE) {
            let piece = bytes.slice(at..bytes.len().min(at + PIECE));
            let time = Duration::from_nanos(piece.len() as u64 * 1_000_000_000 / rate);
            *line = (*line).max(now) + time;
            sides[1 - side].coming.push_back((*line + latency, piece));
        }
        let wait = sides[1 - side].coming.front().map_or(Duration::ZERO, |(at, _)| *at - now);
        self.arrive_soon(link, 1 - side, wait)
    }

    fn arrive_soon(&mut self, link: usize, side: usize, wait: Duration) -> Later {
        let already = std::mem::replace(&mut self.all[link].sides[side].arriving, true);
        if already { vec![] } else { vec![(wait, Wire::Arrive(link, side))] }
    }

    /// Something happens; what nodes are told of it, and what follows.
    pub fn happen(&mut self, now: Instant, wire: Wire) -> (Option<(usize, LinkInput)>, Later) {
        match wire {
            Wire::Accept(link) => self.accept(link),
            Wire::Connected(link) => {
                (self.tell(link, 0, LinkInput::Connected), vec![self.first_room(link, 0)])
            }
            Wire::Closed(link, side) => {
                let told = self.tell(link, side, LinkInput::Closed);
                let here = &mut self.all[link].sides[side];
                // A machine that began again uses the same numbers for others.
                if !std::mem::replace(&mut here.gone, true) {
                    self.ids.remove(&(here.node, here.id));
                }
                (told, vec![])
            }
            Wire::Room(link, side, bytes) => {
                self.all[link].sides[side].room += bytes;
                (self.tell(link, side, |id| LinkInput::Room(id, bytes)), vec![])
            }
            Wire::Arrive(link, side) => self.arrive(now, link, side),
            Wire::GiveUp(link) => (None, self.give_up(link)),
        }
    }

    fn accept(&mut self, link: usize) -> (Option<(usize, LinkInput)>, Later) {
        let [dialler, dialled] = &self.all[link].sides;
        let (from, to, id) = (dialler.node, dialled.node, dialled.id);
        let latency = self.latency_of(link);
        if !self.passes(link) {
            return (None, vec![(DIAL, Wire::Closed(link, 0))]);
        }
        if self.all[link].sides[0].gone || self.ground.ports[to] != Port::Open {
            return (None, vec![(latency, Wire::Closed(link, 0))]);
        }
        self.all[link].sides[1].gone = false;
        self.ids.insert((to, id), (link, 1));
        let from = SocketAddr::new(address(from), dialling_port(link));
        let later = vec![(latency, Wire::Connected(link)), self.first_room(link, 1)];
        (Some((to, LinkInput::Accepted(id, from))), later)
    }

    fn first_room(&self, link: usize, side: usize) -> (Duration, Wire) {
        (Duration::ZERO, Wire::Room(link, side, SOCKET))
    }

    fn arrive(
        &mut self,
        now: Instant,
        link: usize,
        side: usize,
    ) -> (Option<(usize, LinkInput)>, Later) {
        let latency = self.latency_of(link);
        let passes = self.passes(link);
        let Link { sides, giving_up, .. } = &mut self.all[link];
        let here = &mut sides[side];
        here.arriving = false;
        let nothing = here.coming.is_empty() && !here.ended;
        if nothing {
            return (None, vec![]);
        }
        if !passes {
            let first = !std::mem::replace(giving_up, true);
            let wait = (USER_TIMEOUT, Wire::GiveUp(link));
            return (None, if first { vec![wait] } else { vec![] });
        }
        if here.gone {
            let count = here.coming.drain(..).map(|(_, bytes)| bytes.len() as u64).sum();
            let is_parting = here.parting.is_some_and(|until| now < until);
            let room = Wire::Room(link, 1 - side, count);
            let then = if is_parting { room } else { Wire::Closed(link, 1 - side) };
            return (None, vec![(latency, then)]);
        }
        // Not even the end is read.
        if here.buffer.most() == 0 {
            return (None, vec![]);
        }
        let Some((at, bytes)) = here.coming.front_mut() else {
            return (None, vec![(Duration::ZERO, Wire::Closed(link, side))]);
        };
        if *at > now {
            let wait = *at - now;
            return (None, self.arrive_soon(link, side, wait));
        }
        if self.deaf.contains(&here.node) {
            return (None, vec![]);
        }
        let taken = bytes.split_to(bytes.len().min(here.buffer.most() as usize));
        if bytes.is_empty() {
            here.coming.pop_front();
        }
        let count = taken.len() as u64;
        here.buffer.received(count);
        here.read += count;
        let told = (here.node, LinkInput::Received(here.id, taken));
        let mut later = vec![(latency, Wire::Room(link, 1 - side, count))];
        later.extend(self.arrive_soon(link, side, Duration::ZERO));
        (Some(told), later)
    }

    /// Says something to a node, unless it wants to hear nothing more.
    fn tell(
        &self,
        link: usize,
        side: usize,
        what: impl FnOnce(LinkId) -> LinkInput,
    ) -> Option<(usize, LinkInput)> {
        let side = &self.all[link].sides[side];
        (!side.gone).then(|| (side.node, what(side.id)))
    }

    fn give_up(&mut self, link: usize) -> Later {
        self.all[link].giving_up = false;
        if self.passes(link) {
            return self.wake(link);
        }
        (0..2).map(|side| (Duration::ZERO, Wire::Closed(link, side))).collect()
    }

    fn wake(&mut self, link: usize) -> Later {
        (0..2).flat_map(|side| self.arrive_soon(link, side, Duration::ZERO)).collect()
    }

    /// Something was mended: what had stopped goes on.
    pub fn wake_all(&mut self) -> Later {
        (0..self.all.len()).flat_map(|link| self.wake(link)).collect()
    }

    /// A daemon has ended: the kernel says so to those who are connected, if it still has power.
    pub fn reset(&mut self, node: usize) -> Later {
        let mut later = Vec::new();
        for link in 0..self.all.len() {
            for side in 0..2 {
                if self.all[link].sides[side].node == node && !self.all[link].sides[side].gone {
                    let latency = self.latency_of(link);
                    self.all[link].sides[side].gone = true;
                    if self.passes(link) {
                        later.push((latency, Wire::Closed(link, 1 - side)));
                    }
                }
            }
        }
        self.ids.retain(|(at, _), _| *at != node);
        later
    }

    /// One of the connections that stand breaks.
    pub fn break_one(&mut self, number: u64) -> Later {
        let standing = |link: &usize| self.all[*link].sides.iter().all(|side| !side.gone);
        let standing: Vec<_> = (0..self.all.len()).filter(standing).collect();
        let Some(at) = number.checked_rem(standing.len() as u64) else { return vec![] };
        let link = standing[at as usize];
        (0..2).map(|side| (Duration::ZERO, Wire::Closed(link, side))).collect()
    }

    fn passes(&self, link: usize) -> bool {
        let [one, other] = &self.all[link].sides;
        self.ground.hops(one.node, other.node).is_some()
    }

    fn latency_of(&self, link: usize) -> Duration {
        let [one, other] = &self.all[link].sides;
        self.latency * self.ground.hops(one.node, other.node).unwrap_or(1)
    }

    /// What passes as these bytes come to a machine, if they are of a data connection.
    pub fn passing(&self, node: usize, id: LinkId, bytes: &Bytes) -> Option<Passing> {
        let (number, side) = self.ids.get(&(node, id)).copied()?;
        let Link { sides, first, .. } = &self.all[number];
        if connection(first) != Some(Connection::Data) {
            return None;
        }
        let dialled = |side: usize| {
            let port = if side == 1 { PORT } else { dialling_port(number) };
            SocketAddr::new(address(sides[side].node), port)
        };
        Some(Passing {
            machines: [sides[1 - side].node, node],
            from: dialled(1 - side),
            to: dialled(side),
            at: sides[side].read - bytes.len() as u64,
            bytes: bytes.clone(),
        })
    }

    /// How many bytes one machine wrote to another over connections of a kind.
    pub fn wrote(&self, from: usize, to: usize, kind: Connection) -> u64 {
        let of_kind = self.all.iter().filter(|link| connection(&link.first) == Some(kind));
        of_kind
            .flat_map(|link| [(&link.sides[0], &link.sides[1]), (&link.sides[1], &link.sides[0])])
            .filter(|(here, there)| (here.node, there.node) == (from, to))
            .map(|(here, _)| here.wrote)
            .sum()
    }
}

impl Side {
    fn new(node: usize, id: LinkId) -> Self {
        Self {
            node,
            id,
            gone: false,
            parting: None,
            ended: false,
            buffer: LinkBuffer::default(),
            room: 0,
            coming: VecDeque::new(),
            arriving: false,
            wrote: 0,
            read: 0,
        }
    }
}

fn dialling_port(link: usize) -> u16 {
    40_000 + (link % 20_000) as u16
}

/// What a connection is for, by its first bytes.
fn connection(first: &[u8]) -> Option<Connection> {
    let preamble = first.first_chunk()?;
    wire::peer::Preamble::decode(preamble).ok().map(|preamble| preamble.connection)
}
