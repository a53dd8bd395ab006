//! Packets, and a line of routers in virtual time whose every hop takes the same time for the same packet.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use link::{
    Config, Flags, Frame, Header, Kind, Layer, Message, Next, Outcome, Output, Sack, Tcp, Verdict,
    pace,
};
use wire::Instant;

/// A packet: its number, and what it would carry on the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    pub number: u64,
    pub header: Header,
    pub interlay: Option<link::Interlay>,
}

impl link::Packet for Packet {
    fn header(&self) -> Header {
        self.header
    }

    fn interlay(&self) -> Option<link::Interlay> {
        self.interlay
    }
}

/// The address of a node.
pub fn ip(node: usize) -> IpAddr {
    let [.., high, low] = (node as u32).to_be_bytes();
    Ipv4Addr::new(10, 0, high, low).into()
}

/// The node that has an address.
pub fn node(ip: IpAddr) -> usize {
    match ip {
        IpAddr::V4(ip) => usize::from(u16::from_be_bytes([ip.octets()[2], ip.octets()[3]])),
        IpAddr::V6(_) => unreachable!("this line has IPv4"),
    }
}

/// The moment this many seconds after the start.
pub fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// A datagram.
pub fn datagram(number: u64, from: usize, to: usize, bytes: u32) -> Packet {
    let socket = |it| SocketAddr::new(ip(it), 9);
    let header =
        Header { bytes, ttl: Header::TTL, from: socket(from), to: socket(to), kind: Kind::Other };
    Packet { number, header, interlay: None }
}

/// A pure ACK of one flow.
pub fn ack(number: u64, from: usize, to: usize, ack: u32) -> Packet {
    let tcp = Tcp {
        seq: 1,
        ack,
        payload: 0,
        flags: Flags::ACK,
        window: 1000,
        sack: Sack::default(),
        stamps: None,
        has_other_options: false,
    };
    let Packet { header, .. } = datagram(number, from, to, 40);
    Packet { number, header: Header { kind: Kind::Tcp(tcp), ..header }, interlay: None }
}

/// How long a packet takes over one hop: as long as this many bytes more at this rate.
#[derive(Clone, Copy)]
pub struct Hop {
    pub bytes_per_second: f64,
    pub overhead_bytes: f64,
}

impl Hop {
    pub fn time(&self, bytes: u32) -> Duration {
        Duration::from_secs_f64((f64::from(bytes) + self.overhead_bytes) / self.bytes_per_second)
    }
}

/// When the MAC of the first node of the watched stretch got a packet, and when the last node had it.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    pub left: Instant,
    pub arrived: Option<Instant>,
}

struct Mac {
    queue: VecDeque<(Frame<Packet>, IpAddr)>,
    done_at: Option<Instant>,
}

/// The line.
pub struct Line {
    pub now: Instant,
    pub hop: Hop,
    pub layers: Vec<Layer<Packet>>,
    macs: Vec<Mac>,
    /// This node's answers to probes are lost.
    pub mute: Option<usize>,
    /// Each packet that arrives at its destination is answered by an ACK.
    pub answers: bool,
    /// Packets over this stretch are watched.
    pub watched: (usize, usize),
    pub passages: BTreeMap<u64, Passage>,
    pub arrived: Vec<(usize, Packet)>,
    pub messages: usize,
    next_number: u64,
}

impl Line {
    /// A line of routers, of which some pace.
    pub fn new(nodes: usize, interlay: &[usize], config: pace::Config, hop: Hop) -> Self {
        let layer = |node: usize| {
            let pace = interlay.contains(&node).then_some(config);
            Layer::new(Config { me: ip(node), pace, recover: None })
        };
        Self {
            now: Instant::ZERO,
            hop,
            layers: (0..nodes).map(layer).collect(),
            macs: (0..nodes).map(|_| Mac { queue: VecDeque::new(), done_at: None }).collect(),
            mute: None,
            answers: false,
            watched: (0, nodes - 1),
            passages: BTreeMap::new(),
            arrived: Vec::new(),
            messages: 0,
            next_number: 1,
        }
    }

    /// A host sends a packet.
    pub fn send(&mut self, from: usize, mut packet: Packet) {
        packet.number = self.next_number;
        self.next_number += 1;
        self.route(from, packet);
    }

    /// Lets time pass.
    pub fn run(&mut self, until: Instant) {
        while let Some(due) = self.next_due().filter(|due| *due <= until) {
            self.now = due;
            for node in 0..self.layers.len() {
                if self.macs[node].done_at.is_some_and(|at| at <= due) {
                    self.finish(node);
                }
                if self.layers[node].poll_timeout().is_some_and(|at| at <= due) {
                    self.layers[node].handle_timeout(due);
                    self.drain(node);
                }
            }
        }
        self.now = until;
    }

    /// The pacing of a node.
    pub fn pace(&self, node: usize) -> &pace::Pace<Packet> {
        self.layers[node].pace().expect("it paces")
    }

    /// How many packets were on the watched stretch, averaged over time.
    pub fn mean_under_way(&self, from: Instant, to: Instant) -> f64 {
        let inside = |passage: &Passage| {
            let arrived = passage.arrived.unwrap_or(to).min(to);
            arrived.since(passage.left.max(from)).as_secs_f64()
        };
        self.passages.values().map(inside).sum::<f64>() / to.since(from).as_secs_f64()
    }

    fn next_due(&self) -> Option<Instant> {
        let timers = self.layers.iter().filter_map(Layer::poll_timeout);
        timers.chain(self.macs.iter().filter_map(|mac| mac.done_at)).min()
    }

    fn route(&mut self, node: usize, packet: Packet) {
        let to = self::node(packet.header.to.ip());
        let hop = if to > node { node + 1 } else { node - 1 };
        self.layers[node].send(self.now, packet, Next { hop: ip(hop), other: None });
        self.drain(node);
    }

    /// The MAC of a node has sent a frame: its neighbour gets it.
    fn finish(&mut self, node: usize) {
        self.macs[node].done_at = None;
        let Some((mut frame, next)) = self.macs[node].queue.pop_front() else { return };
        self.start(node);
        let verdict = Verdict { outcome: Outcome::Acked, tries: 1 };
        self.layers[node].verdict(self.now, frame.clone(), next, verdict);
        self.drain(node);
        let next = self::node(next);
        frame.packet.interlay = frame.interlay;
        if next == self.watched.1
            && let Some(passage) = self.passages.get_mut(&frame.packet.number)
        {
            passage.arrived = Some(self.now);
        }
        let is_echo = matches!(frame.packet.header.kind, Kind::Message(Message::Echo(_)));
        if is_echo && self.mute == Some(node) {
            return;
        }
        self.layers[next].receive(self.now, frame, ip(node));
        self.drain(next);
    }

    fn start(&mut self, node: usize) {
        let mac = &mut self.macs[node];
        if let (None, Some((frame, _))) = (mac.done_at, mac.queue.front()) {
            mac.done_at = Some(self.now + self.hop.time(frame.packet.header.bytes));
        }
    }

    fn drain(&mut self, node: usize) {
        while let Some(output) = self.layers[node].poll_output() {
            match output {
                Output::Transmit { frame, next } => self.transmit(node, frame, next),
                Output::Deliver(packet) => self.deliver(node, packet),
                Output::Originate { to, message } => {
                    self.messages += 1;
                    let mut packet = datagram(0, node, self::node(to), message.bytes());
                    packet.header.kind = Kind::Message(message);
                    self.send(node, packet);
                }
            }
        }
    }

    fn transmit(&mut self, node: usize, frame: Frame<Packet>, next: IpAddr) {
        let is_traffic = matches!(frame.packet.header.kind, Kind::Other);
        if node == self.watched.0 && is_traffic {
            let passage = Passage { left: self.now, arrived: None };
            self.passages.insert(frame.packet.number, passage);
        }
        self.macs[node].queue.push_back((frame, next));
        self.start(node);
    }

    fn deliver(&mut self, node: usize, mut packet: Packet) {
        if self::node(packet.header.to.ip()) != node {
            packet.header.ttl -= 1;
            return self.route(node, packet);
        }
        let from = self::node(packet.header.from.ip());
        let is_traffic = matches!(packet.header.kind, Kind::Other);
        self.arrived.push((node, packet));
        if self.answers && is_traffic {
            let number = self.arrived.len() as u32;
            self.send(node, ack(0, node, from, number));
        }
    }
}
