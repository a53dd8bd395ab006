//! A router that lies off the way to the gateway, and is an honest next hop on it (decision 0033).
//!
//! It says that it has each object that it ever heard of, when others search and in hints; it names itself and other
//! liars in place of an answer; and what it is then asked for it withholds, confuses or damages. *Where to start:*
//! [`Liar::hears`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use node::{Instead, Tamper};
use wire::peer::{Call, ChunkHead, Copies, Envelope, Found, Get, Head, Message, Outcome, Request};
use wire::{ChunkId, Hint, Instant, NodeId, peer};

/// It repeats its hints this often, because those that turned out wrong are forgotten.
const HINTS_EVERY: Duration = Duration::from_secs(10);

/// The state of a liar; see the module.
#[derive(Debug)]
pub struct Liar {
    own: IpAddr,
    /// All liars, itself included.
    liars: Vec<peer::Router>,
    /// Objects that it has heard of.
    names: BTreeSet<Hint>,
    /// The peer that is told about copies.
    next_hop: Option<NodeId>,
    hinted: Instant,
    /// The requests that are for this router, and what comes of them.
    lies: BTreeMap<(NodeId, Request), Lie>,
    /// The units that peers want by these requests.
    units: BTreeMap<(NodeId, ChunkId), Lie>,
    /// The latest head that it gave.
    head: Option<Box<Head>>,
    turn: usize,
}

/// What a request off the way leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// No answer.
    Silence,
    /// That it has nothing.
    Denial,
    /// The record of another object.
    Confusion,
    /// The right record, and then no units.
    Stop,
    /// The right record, and wrong units.
    Damage,
}

impl Lie {
    /// In turns, so that no run of one kind is long.
    const ALL: [Self; 5] = [Self::Silence, Self::Denial, Self::Confusion, Self::Stop, Self::Damage];
}

impl Liar {
    /// A liar at this address.
    pub fn new(own: IpAddr, liars: Vec<peer::Router>) -> Self {
        Self {
            own,
            liars,
            names: BTreeSet::new(),
            next_hop: None,
            hinted: Instant::ZERO,
            lies: BTreeMap::new(),
            units: BTreeMap::new(),
            head: None,
            turn: 0,
        }
    }

    /// What it answers to a datagram, and to whom: it has each object that is searched for.
    pub fn found(own: IpAddr, bytes: &[u8], port: u16) -> Option<(SocketAddr, Bytes)> {
        let (Envelope::Open, call) = Envelope::read(bytes).ok()? else { return None };
        let Call::Locate(locate) = Call::decode(call).ok()? else { return None };
        let found = Call::Found(Found { search: locate.search, holder: own, hops: locate.hops });
        let mut answer = Vec::new();
        Envelope::Open.write(&mut answer);
        answer.extend(found.encode());
        (locate.origin != own).then(|| (SocketAddr::new(locate.origin, port), answer.into()))
    }

    fn asked(&mut self, from: NodeId, get: &Get) -> Instead {
        self.turn += 1;
        let end = |outcome| Some(vec![(from, Message::End(get.request, outcome))]);
        if get.options.towards == Some(self.own) {
            let lie = Lie::ALL[self.turn % Lie::ALL.len()];
            self.lies.insert((from, get.request), lie);
            return match (lie, &self.head) {
                (Lie::Silence, _) => Some(Vec::new()),
                (Lie::Denial, _) => end(Outcome::NotCached),
                (Lie::Confusion, Some(head)) => {
                    Some(vec![(from, Message::Head(get.request, head.clone()))])
                }
                _ => None,
            };
        }
        if get.options.elsewhere {
            let first = self.turn % self.liars.len();
            let named = self.liars.iter().cycle().skip(first).take(peer::Router::COUNT_MAX);
            let known = named.filter(|router| !get.visited.contains(&router.id));
            return end(Outcome::Elsewhere(known.copied().collect()));
        }
        None
    }

    /// That it has everything.
    fn hints(&mut self, now: Instant) -> Vec<(NodeId, Message)> {
        let Some(next_hop) = self.next_hop.filter(|_| now - self.hinted >= HINTS_EVERY) else {
            return Vec::new();
        };
        self.hinted = now;
        let names: Vec<_> = self.names.iter().copied().collect();
        let hint = |stored: &[Hint]| {
            let copies = Copies { router: self.own, stored: stored.to_vec(), evicted: Vec::new() };
            (next_hop, Message::Copies(copies))
        };
        names.chunks(Message::HELD_MAX).map(hint).collect()
    }
}

impl Tamper for Liar {
    fn hears(&mut self, _now: Instant, from: NodeId, message: &Message) -> Instead {
        match message {
            Message::Get(get) => return self.asked(from, get),
            Message::Want(request, wants) => {
                let lie = self.lies.get(&(from, *request));
                for unit in wants.iter().map(|want| (from, want.name)) {
                    match lie {
                        Some(lie) => self.units.insert(unit, *lie),
                        None => self.units.remove(&unit),
                    };
                }
            }
            Message::Copies(copies) => self.names.extend(&copies.stored),
            _ => {}
        }
        None
    }

    fn says(&mut self, now: Instant, to: NodeId, message: &Message) -> Instead {
        match message {
            Message::Reach(_) => self.next_hop = Some(to),
            Message::Copies(copies) => self.names.extend(&copies.stored),
            Message::Head(_, head) => self.head = Some(head.clone()),
            _ => {}
        }
        let hints = self.hints(now);
        (!hints.is_empty()).then(|| [(to, message.clone())].into_iter().chain(hints).collect())
    }

    fn sends(&mut self, to: NodeId, head: &ChunkHead, bytes: Bytes) -> Option<Bytes> {
        match self.units.get(&(to, head.name)) {
            Some(Lie::Stop) => None,
            Some(Lie::Damage) => Some(bytes.iter().map(|byte| !byte).collect()),
            _ => Some(bytes),
        }
    }
}
