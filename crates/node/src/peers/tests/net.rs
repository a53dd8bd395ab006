//! A small network: links with latency, room and grants, in virtual time.

use super::PORT;
use crate::input::{LinkId, LinkInput};
use crate::output::LinkOutput;
use crate::peers::{Event, Peers};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use wire::Instant;

/// Bytes that a socket accepts before the other end reads, in each direction.
const SOCKET: u64 = 64 * 1024;

pub struct Net {
    pub now: Instant,
    pub nodes: Vec<Host>,
    cables: Vec<Cable>,
    /// Arrivals by time, then by the order in which they were sent.
    due: BTreeMap<(Instant, u64), (usize, usize, What)>,
    sent: u64,
    /// The latencies of connections, in the order of their dials; after the last, the first again.
    latencies: Vec<Duration>,
    /// All outputs, for comparison.
    pub log: blake3::Hasher,
}

pub struct Host {
    pub peers: Peers,
    pub events: Vec<Event>,
    links: BTreeMap<LinkId, (usize, usize)>,
    accepted: u64,
}

#[derive(Default)]
struct Cable {
    ends: [Option<(usize, LinkId)>; 2],
    latency: Duration,
    granted: [u64; 2],
    /// How many more bytes each end may write.
    room: [u64; 2],
    arrived: [VecDeque<Bytes>; 2],
    fin: [bool; 2],
    is_cut: bool,
}

enum What {
    Accepted,
    Connected,
    Bytes(Bytes),
    Room(u64),
    Fin,
}

/// A node's address. The number plus 100 gives another address of the same node.
pub fn address(node: usize) -> SocketAddr {
    let node = u8::try_from(node).expect("few nodes");
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, node)), PORT)
}

impl Net {
    pub fn new(nodes: impl IntoIterator<Item = Peers>, latencies: &[u64]) -> Self {
        Self {
            now: Instant::ZERO,
            nodes: nodes.into_iter().map(Host::new).collect(),
            cables: Vec::new(),
            due: BTreeMap::new(),
            sent: 0,
            latencies: latencies.iter().map(|it| Duration::from_millis(*it)).collect(),
            log: blake3::Hasher::new(),
        }
    }

    /// Acts on a node, then performs the node's outputs.
    pub fn with<T>(&mut self, node: usize, act: impl FnOnce(&mut Peers, Instant) -> T) -> T {
        let result = act(&mut self.nodes[node].peers, self.now);
        self.drain(node);
        result
    }

    /// A node dials another.
    pub fn dial(&mut self, node: usize, other: usize) {
        self.with(node, |peers, now| peers.dial(now, address(other)));
    }

    /// Lets time pass.
    pub fn run(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        let mut turns = 0;
        loop {
            turns += 1;
            assert!(turns < 1_000_000, "time does not pass");
            let timers = self.nodes.iter().enumerate();
            let timer = timers.filter_map(|(i, it)| Some((it.peers.poll_timeout()?, i))).min();
            let arrival = self.due.keys().next().copied();
            match (timer, arrival) {
                (_, Some((time, number))) if time <= end && timer.is_none_or(|it| it.0 >= time) => {
                    self.now = self.now.max(time);
                    let (cable, side, what) = self.due.remove(&(time, number)).expect("a key");
                    self.arrive(cable, side, what);
                }
                (Some((time, node)), _) if time <= end => {
                    self.now = self.now.max(time);
                    self.with(node, |peers, now| peers.handle_timeout(now));
                    let next = self.nodes[node].peers.poll_timeout();
                    assert!(next.is_none_or(|it| it > self.now), "a timer stays due");
                }
                _ => break,
            }
        }
        self.now = end;
    }

    /// Takes the events of a node.
    pub fn events(&mut self, node: usize) -> Vec<Event> {
        std::mem::take(&mut self.nodes[node].events)
    }

    /// All connections of a node lose everything from now on; no end is notified.
    pub fn cut(&mut self, node: usize) {
        for cable in &mut self.cables {
            cable.is_cut |= cable.ends.iter().flatten().any(|(it, _)| *it == node);
        }
    }

    /// One connection loses everything from now on; no end is notified. Connections are numbered from 0
    /// in the order of their dials.
    pub fn cut_cable(&mut self, cable: usize) {
        self.cables[cable].is_cut = true;
    }

    /// All connections of a node are reported to it as closed; the other ends are not notified.
    pub fn forget(&mut self, node: usize) {
        self.cut(node);
        for link in std::mem::take(&mut self.nodes[node].links).into_keys() {
            self.with(node, |peers, now| peers.handle(now, LinkInput::Closed(link)));
        }
    }

    /// Replaces a node, as if its process restarted. Its connections lose everything; the other ends
    /// are not notified.
    pub fn replace(&mut self, node: usize, peers: Peers) {
        self.cut(node);
        let accepted = self.nodes[node].accepted;
        self.nodes[node] = Host { accepted, ..Host::new(peers) };
    }

    /// The number of connections that are open at both ends and not cut.
    pub fn cables(&self) -> usize {
        let is_whole = |it: &&Cable| !it.is_cut && it.ends.iter().all(Option::is_some);
        self.cables.iter().filter(is_whole).count()
    }

    fn drain(&mut self, node: usize) {
        let host = &mut self.nodes[node];
        while let Some(event) = host.peers.poll_event() {
            host.events.push(event);
        }
        while let Some(output) = self.nodes[node].peers.poll_output() {
            self.log.update(format!("{node} {:?} {output:?}", self.now).as_bytes());
            self.act(node, output);
        }
        let host = &mut self.nodes[node];
        host.events.extend(std::iter::from_fn(|| host.peers.poll_event()));
    }

    fn act(&mut self, node: usize, output: LinkOutput) {
        match output {
            LinkOutput::Connect(link, to) => {
                assert_eq!(link.0 % 2, 0);
                let latency = self.latencies[self.cables.len() % self.latencies.len()];
                let ends = [Some((node, link)), None];
                self.cables.push(Cable { ends, latency, room: [SOCKET; 2], ..Cable::default() });
                let cable = self.cables.len() - 1;
                self.nodes[node].links.insert(link, (cable, 0));
                let is_there = |it: &usize| address(*it) == to || address(*it + 100) == to;
                // The accepting end gets its real link when the connection arrives.
                if let Some(node) = (0..self.nodes.len()).find(is_there) {
                    self.cables[cable].ends[1] = Some((node, LinkId(u64::MAX)));
                    self.post(cable, 1, What::Accepted);
                } else {
                    self.post(cable, 0, What::Fin);
                }
            }
            LinkOutput::Write(link, bytes) => {
                let (cable, side) = self.nodes[node].links[&link];
                let room = &mut self.cables[cable].room[side];
                *room = room.checked_sub(bytes.len() as u64).expect("within the room");
                self.post(cable, 1 - side, What::Bytes(bytes));
            }
            LinkOutput::Receive(link, bytes) => {
                let (cable, side) = self.nodes[node].links[&link];
                self.cables[cable].granted[side] += bytes;
                self.deliver(cable, side);
            }
            LinkOutput::ReadThreshold(..) | LinkOutput::BulkData(_) => {}
            LinkOutput::Hangup(link) => {
                let (cable, side) = self.nodes[node].links.remove(&link).expect("a link that is");
                self.cables[cable].ends[side] = None;
                self.post(cable, 1 - side, What::Fin);
            }
        }
    }

    fn post(&mut self, cable: usize, side: usize, what: What) {
        self.sent += 1;
        let time = self.now + self.cables[cable].latency;
        self.due.insert((time, self.sent), (cable, side, what));
    }

    fn arrive(&mut self, cable: usize, side: usize, what: What) {
        if self.cables[cable].is_cut {
            return;
        }
        let Some((node, link)) = self.cables[cable].ends[side] else { return };
        match what {
            What::Accepted => {
                let host = &mut self.nodes[node];
                host.accepted += 1;
                let link = LinkId::accepted(host.accepted);
                host.links.insert(link, (cable, 1));
                self.cables[cable].ends[1] = Some((node, link));
                let dialler = self.cables[cable].ends[0].map_or(0, |(it, _)| it);
                let from = SocketAddr::new(address(dialler).ip(), 50_000);
                self.with(node, |it, now| it.handle(now, LinkInput::Accepted(link, from)));
                self.input(cable, 1, |link| LinkInput::Room(link, SOCKET));
                self.post(cable, 0, What::Connected);
            }
            What::Connected => {
                self.input(cable, 0, LinkInput::Connected);
                self.input(cable, 0, |link| LinkInput::Room(link, SOCKET));
            }
            What::Bytes(bytes) => {
                self.cables[cable].arrived[side].push_back(bytes);
                self.deliver(cable, side);
            }
            What::Room(bytes) => {
                self.cables[cable].room[side] += bytes;
                self.input(cable, side, |link| LinkInput::Room(link, bytes));
            }
            What::Fin if link.0 == u64::MAX => {}
            What::Fin => {
                self.cables[cable].fin[side] = true;
                self.deliver(cable, side);
            }
        }
    }

    /// Gives an end the bytes that have arrived, as far as its credit allows.
    fn deliver(&mut self, cable: usize, side: usize) {
        loop {
            let it = &mut self.cables[cable];
            let Some(front) = it.arrived[side].front_mut() else { break };
            let length = (front.len() as u64).min(it.granted[side]);
            if length == 0 {
                return;
            }
            it.granted[side] -= length;
            let bytes = front.split_to(usize::try_from(length).expect("short"));
            if front.is_empty() {
                it.arrived[side].pop_front();
            }
            self.post(cable, 1 - side, What::Room(length));
            self.input(cable, side, |link| LinkInput::Received(link, bytes));
        }
        if self.cables[cable].fin[side]
            && let Some((node, link)) = self.cables[cable].ends[side].take()
        {
            self.nodes[node].links.remove(&link);
            self.with(node, |peers, now| peers.handle(now, LinkInput::Closed(link)));
        }
    }

    fn input(&mut self, cable: usize, side: usize, input: impl FnOnce(LinkId) -> LinkInput) {
        if let Some((node, link)) = self.cables[cable].ends[side] {
            self.with(node, |peers, now| peers.handle(now, input(link)));
        }
    }
}

impl Host {
    fn new(peers: Peers) -> Self {
        Self { peers, events: Vec::new(), links: BTreeMap::new(), accepted: 0 }
    }
}
