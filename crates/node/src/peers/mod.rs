//! Peers: connections, identities, and what is said over them.
//!
//! *What this is:* an engine of its own: links in, messages and chunk frames out. *Who calls it:*
//! `node`, which gives it what its links do ([`Peers::handle`]) and drains [`Peers::poll_output`] and
//! [`Peers::poll_event`] afterwards. *What it never does:* look into requests or objects. *Where to
//! start:* `link.rs` for the stages of a connection, then `connecting`, `rivals`, `control` and
//! `data`. *Source:* Noise revision 34; docs/protocol.md, "Opening a connection".
//!
//! *What it holds at most:* [`PEERS_MAX`] peers with three links each, [`HANDSHAKES_MAX`] accepted
//! links that have not proven who they are, one that waits beside each peer, and [`DIALS_MAX`] of our
//! own dials (then no more are begun). `places.rs` says who leaves when there are too many. A link holds one
//! frame that has not come whole; what waits to be written is bounded by [`CONTROL_BACKLOG_MAX`] and [`WINDOW`].

mod alive;
mod backlog;
mod chunks;
mod connecting;
mod control;
mod data;
mod inbox;
mod link;
mod noise;
mod outbox;
mod peer;
mod places;
mod recent;
mod rivals;

#[cfg(test)]
mod tests;

use crate::identity::{Identity, node_id};
use crate::input::{LinkId, LinkInput, MeshConfig};
use crate::misbehaviour::Misbehaviour;
use crate::output::LinkOutput;
use bytes::Bytes;
use connecting::{Signatures, presentable};
use link::{Link, Role};
use noise::Noise;
use peer::Peer;
use recent::Recent;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::counters::Tally;
use wire::peer::{ChunkHead, Gateway, Hello, Message, Refusal};
use wire::{Instant, NodeId, PublicKey};

/// The most peers at a time.
pub const PEERS_MAX: usize = 64;
/// The most accepted connections that have not proven who they are.
pub const HANDSHAKES_MAX: usize = 16;
/// The most dials of ours at a time that have not ended well or badly.
pub const DIALS_MAX: usize = 64;
/// The most bytes of messages that may wait for a peer; one that takes them slower is hung up.
pub const CONTROL_BACKLOG_MAX: usize = 1 << 20;
/// The most bytes of chunk frames that may wait for a peer, and one frame.
pub const WINDOW: usize = 64 * 1024;

/// An expelled peer is not listened to for so long.
const EXPELLED_FOR: Duration = Duration::from_secs(60);
/// Whoever is refused is told of once in so long.
const TOLD_FOR: Duration = Duration::from_secs(60);

/// What the peers did.
#[derive(Debug)]
pub enum Event {
    /// A peer is there: both sides have proven who they are. `dialled` is the address, if it was we
    /// who dialled it (also where another connection with the same peer stays in its place: then the
    /// peer may have been there before, and this comes once for each address).
    Up {
        /// Who.
        peer: NodeId,
        /// What we had dialled.
        dialled: Option<SocketAddr>,
    },
    /// A peer says what it is, anew.
    Hello(NodeId, Hello),
    /// A peer says something else than what is for this engine alone.
    Message(NodeId, Message),
    /// A peer sends bytes of a unit.
    Chunk(NodeId, ChunkHead, Bytes),
    /// A peer is gone; what was asked of it, and by it, is void.
    Down(NodeId, Down),
    /// What was dialled did not turn out to be a peer.
    Failed(SocketAddr, Down),
    /// More chunk frames can be given to [`Peers::send_chunk`] for this peer.
    Room(NodeId),
    /// The connection over which a peer sends us chunk frames has ended, or could not be made; those
    /// that were on their way are lost. [`Peers::open_data`] makes another.
    DataLost(NodeId),
    /// Somebody who connected from there was refused. Said once a minute for each address.
    Rejected(SocketAddr, Refusal),
    /// A peer at this address is about to go down because of what it did.
    Expelled(NodeId, IpAddr, Misbehaviour),
}

/// Why a peer is gone, or never was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// Nobody answers there, or nobody who speaks our protocol.
    Unreachable,
    /// It has refused us, or we it.
    Refused(Refusal),
    /// The connection ended.
    Closed,
    /// It says nothing any more.
    Silent,
    /// It broke the protocol.
    Misbehaved,
}

/// A peer, for people.
#[derive(Clone, Debug)]
pub struct PeerInfo {
    /// Its identity.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub address: IpAddr,
    /// What it says of the gateway.
    pub gateway: Gateway,
    /// Bytes of units received and sent, heads of frames not counted.
    pub units_in_bytes: u64,
    /// Bytes of units sent.
    pub units_out_bytes: u64,
    /// Bytes of everything received from it.
    pub in_bytes: u64,
    /// Bytes of everything sent to it.
    pub out_bytes: u64,
    /// For how long it has been there, in seconds.
    pub since_seconds: u64,
}

/// All peers of a node.
pub struct Peers {
    me: Identity,
    id: NodeId,
    noise: Noise,
    signatures: Signatures,
    port: u16,
    hello: Hello,
    /// How often `hello` has changed: a handshake may have begun with an older one.
    hello_number: u64,
    links: BTreeMap<LinkId, Link>,
    peers: BTreeMap<NodeId, Peer>,
    links_dialled: u64,
    pings: u64,
    /// Whether chunk frames are taken in.
    accepting: bool,
    /// Nothing is due before this.
    alarm: Option<Instant>,
    outputs: VecDeque<LinkOutput>,
    events: VecDeque<Event>,
    /// Control links with something to write: several messages make one output.
    unwritten: BTreeSet<LinkId>,
    expelled: Recent<NodeId, 64>,
    told: Recent<IpAddr, 64>,
    /// Where those are who find a place in any case, in canonical form.
    needed: Vec<IpAddr>,
    /// Peers that left for one who is needed.
    displaced: u64,
    /// Connections that were refused, since the node began.
    pub refused: Tally<Refusal>,
    /// The most bytes of messages that may wait for all peers together.
    backlogs_max: usize,
}

impl Peers {
    /// No peers yet. The seed must be another one at each start.
    pub fn new(config: &MeshConfig, hello: Hello, seed: [u8; 32]) -> Self {
        let me = Identity::new(&config.identity);
        let noise = Noise::new(&seed, config.key.as_ref());
        Self {
            id: node_id(&me.key()),
            signatures: Signatures::new(&me, noise.public()),
            me,
            noise,
            port: config.port,
            hello: presentable(hello),
            hello_number: 0,
            links: BTreeMap::new(),
            peers: BTreeMap::new(),
            links_dialled: 0,
            pings: 0,
            accepting: true,
            alarm: None,
            outputs: VecDeque::new(),
            events: VecDeque::new(),
            unwritten: BTreeSet::new(),
            expelled: Recent::new(EXPELLED_FOR),
            told: Recent::new(TOLD_FOR),
            needed: Vec::new(),
            displaced: 0,
            refused: Tally::default(),
            backlogs_max: PEERS_MAX * CONTROL_BACKLOG_MAX,
        }
    }

    /// Who we are.
    pub fn own_id(&self) -> NodeId {
        self.id
    }

    /// Who we are, in full.
    pub fn own_key(&self) -> PublicKey {
        self.me.key()
    }

    /// Something happened to a link; false if there is no such link, or no more.
    pub fn handle(&mut self, now: Instant, input: LinkInput) -> bool {
        let is_known = self.links.contains_key(&input.link());
        let begins = matches!(input, LinkInput::Accepted(..));
        match input {
            LinkInput::Accepted(link, address) => self.accepted(now, link, address),
            LinkInput::Connected(link) => self.connected(now, link),
            LinkInput::Received(link, bytes) => self.received(now, link, bytes),
            LinkInput::Room(link, bytes) => self.has_room(link, bytes),
            LinkInput::Closed(link) => {
                if let Some(link) = self.links.remove(&link) {
                    self.ended(now, link, Down::Closed);
                }
            }
        }
        is_known || begins
    }

    /// Lets due timers go off.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.ring(now);
    }

    /// When the next timer is due. May be earlier than needed, never later.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.alarm
    }

    /// Gives out one thing to do; drain it until `None`.
    pub fn poll_output(&mut self) -> Option<LinkOutput> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            let link = self.unwritten.pop_first()?;
            self.write(link);
        }
    }

    /// Gives out one thing that happened; drain it until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Says what we are from now on, to those who are here and those who come.
    pub fn introduce(&mut self, now: Instant, hello: Hello) {
        let hello = presentable(hello);
        if hello == self.hello {
            return;
        }
        self.hello = hello;
        self.hello_number += 1;
        let message = Message::Hello(self.hello.clone());
        let peers: Vec<_> = self.peers.keys().copied().collect();
        for peer in peers {
            self.send(now, peer, &message);
        }
    }

    /// Makes a connection, unless one is being made → [`Event::Up`], [`Event::Failed`]. If there is
    /// one with whoever is at this address, they come at once.
    pub fn dial(&mut self, now: Instant, address: SocketAddr) {
        let mut dials = self.links.values().filter(|link| link.is_own_dial());
        if let Some(peer) = self.at(address.ip()) {
            self.events.push_back(Event::Up { peer, dialled: Some(address) });
        } else if dials.any(|link| link.address == address) {
            // It says how it ended when it has.
        } else if !self.may_dial(address.ip()) {
            self.events.push_back(Event::Failed(address, Down::Unreachable));
        } else {
            self.connect(now, address, Role::Dialling);
        }
    }

    /// The peer that answered at an address that we dialled, or that dialled from there, if it is
    /// there now.
    pub fn at(&self, address: IpAddr) -> Option<NodeId> {
        let address = address.to_canonical();
        let found = self.peers.iter().find(|(_, peer)| peer.addresses.contains(&address));
        found.map(|(id, _)| *id)
    }

    /// What a peer says of itself.
    pub fn hello(&self, peer: NodeId) -> Option<&Hello> {
        self.peers.get(&peer).map(|it| &it.hello)
    }

    /// Says something; a peer that is gone hears nothing. What cannot be encoded is not said: whether
    /// it was is the answer.
    pub fn send(&mut self, now: Instant, peer: NodeId, message: &Message) -> bool {
        self.say(now, peer, message)
    }

    /// Sees to it that a peer can send us chunk frames: opens the data connection, if there is none.
    pub fn open_data(&mut self, now: Instant, peer: NodeId) {
        self.want_data(now, peer);
    }

    /// How many bytes of chunk frames can be given for a peer now; zero as long as it has opened no
    /// data connection. [`Event::Room`] says when there is some again.
    pub fn chunk_room(&self, peer: NodeId) -> usize {
        self.window(peer)
    }

    /// Sends bytes of a unit; the head counts in [`chunk_room`](Self::chunk_room), which a whole
    /// frame may exceed.
    pub fn send_chunk(&mut self, now: Instant, peer: NodeId, head: ChunkHead, bytes: Bytes) {
        self.push_chunk(now, peer, &head, bytes);
    }

    /// Whether chunk frames are taken in at all: not while memory is short.
    pub fn accept_chunks(&mut self, accept: bool) {
        if self.accepting == accept {
            return;
        }
        self.accepting = accept;
        let links: Vec<_> = self.links.keys().copied().collect();
        for link in links {
            self.grant(link);
        }
    }

    /// A peer has done what none does: it goes, and is not listened to for a while. Said once.
    pub fn expel(&mut self, now: Instant, peer: NodeId, why: Misbehaviour) {
        let Some(it) = self.peers.get(&peer) else { return };
        self.events.push_back(Event::Expelled(peer, it.address.ip().to_canonical(), why));
        self.expelled.add(now, peer);
        self.remove(peer, Down::Misbehaved);
        self.drop_parked(peer);
    }

    /// All peers, by id.
    pub fn list(&self, now: Instant) -> Vec<PeerInfo> {
        self.peers.iter().map(|(id, peer)| peer.info(*id, now)).collect()
    }

    /// Where a peer is.
    pub fn address(&self, peer: NodeId) -> Option<IpAddr> {
        self.peers.get(&peer).map(|peer| peer.address.ip())
    }

    /// When a peer last gave something: a message that is not between the connections alone, or bytes of
    /// a unit, however few.
    pub fn gave(&self, peer: NodeId) -> Option<Instant> {
        self.peers.get(&peer).map(|peer| peer.gave)
    }

    /// How many peers left for one who is needed, since the node began.
    pub fn displaced(&self) -> u64 {
        self.displaced
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.peers.len()
    }

    /// Signs something with our identity.
    pub fn sign(&self, bytes: &[u8]) -> wire::Signature {
        self.me.sign(bytes)
    }

    /// Something is due then, if not earlier.
    fn wake_at(&mut self, due: Instant) {
        self.alarm = Some(self.alarm.map_or(due, |alarm| alarm.min(due)));
    }
}
