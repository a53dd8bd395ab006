//! Peers: their connections, identities, messages and chunk frames.
//!
//! *What this is:* an engine with inputs and outputs of its own: it turns bytes of connections
//! (*links*) into messages and chunk frames, and back. *Who calls it:* `node`, which hands it the
//! events of links ([`Peers::handle`]), then drains [`Peers::poll_output`] and [`Peers::poll_event`].
//! *What it never does:* look into requests or objects. *Where to start:* `link.rs` for the stages of
//! a connection, then `connecting`, `rivals`, `control` and `data`. *Source:* Noise revision 34;
//! docs/protocol.md, "Opening a connection".
//!
//! *What it holds at most:* [`PEERS_MAX`] peers with three links each, and one more link that waits
//! beside each peer; [`HANDSHAKES_MAX`] accepted links without a proven identity; [`DIALS_MAX`] dials
//! of our own (then no more are begun). `places.rs` decides which peer or link leaves when there are
//! too many. A link holds one incomplete frame. Bytes that wait to be written are limited by
//! [`CONTROL_BACKLOG_MAX`] and [`WINDOW`].

mod alive;
mod backlog;
mod chunks;
mod connecting;
mod control;
mod data;
mod inbox;
mod link;
mod outbox;
mod peer;
mod places;
mod recent;
mod rivals;
mod tamper;

#[cfg(test)]
mod tests;

use crate::identity::{Identity, node_id};
use crate::input::{LinkId, LinkInput, MeshConfig};
use crate::misbehaviour::Misbehaviour;
use crate::noise::Noise;
use crate::output::LinkOutput;
use bytes::Bytes;
use connecting::{Signatures, presentable};
use link::{Link, Role};
use peer::Peer;
use recent::Recent;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::counters::Tally;
use wire::peer::{ChunkHead, Hello, Message, Refusal};
use wire::{Instant, NodeId, PublicKey};

pub use tamper::{Instead, Tamper};

/// The most peers at a time.
pub const PEERS_MAX: usize = 64;
/// The most accepted connections whose other end has not proven its identity.
pub const HANDSHAKES_MAX: usize = 16;
/// The most dials of our own under way at a time.
pub const DIALS_MAX: usize = 64;
/// The most bytes of messages that may wait for a peer; a peer that reads them too slowly is
/// disconnected.
pub const CONTROL_BACKLOG_MAX: usize = 1 << 20;
/// The bytes of chunk frames that may wait for a peer; the last frame may exceed them.
pub const WINDOW: usize = 64 * 1024;

/// An expelled peer is refused for this long.
const EXPELLED_FOR: Duration = Duration::from_secs(60);
/// Refusals of one address are reported to the caller once in this time.
const TOLD_FOR: Duration = Duration::from_secs(60);

/// What happened to the peers.
#[derive(Debug)]
pub enum Event {
    /// A peer is connected: both sides have proven their identities. Sent once for each address that
    /// we dialled, even if another connection with the same peer is kept instead. The peer may then
    /// have been connected before.
    Up {
        /// The peer.
        peer: NodeId,
        /// The address that we dialled; `None` if only the peer dialled.
        dialled: Option<SocketAddr>,
    },
    /// A peer has sent a new hello.
    Hello(NodeId, Hello),
    /// A peer has sent a message that this engine does not handle itself.
    Message(NodeId, Message),
    /// A peer has sent bytes of a unit.
    Chunk(NodeId, ChunkHead, Bytes),
    /// A peer is gone; all requests to it and from it are void.
    Down(NodeId, Down),
    /// A dial to this address has failed.
    Failed(SocketAddr, Down),
    /// A peer has room again: for chunk frames ([`Peers::send_chunk`]), or for messages after a long
    /// backlog.
    Room(NodeId),
    /// The connection over which a peer sends us chunk frames has ended, or could not be made. Frames
    /// in flight are lost. [`Peers::open_data`] makes another connection.
    DataLost(NodeId),
    /// A connection from this address was refused. Reported once a minute for each address.
    Rejected(SocketAddr, Refusal),
    /// The peer at this address is expelled for misbehaviour; `Down` follows.
    Expelled(NodeId, IpAddr, Misbehaviour),
}

/// Why a peer is gone, or why a dial failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Down {
    /// No answer from the address, or not in our protocol.
    Unreachable,
    /// One side has refused the other.
    Refused(Refusal),
    /// The connection ended.
    Closed,
    /// The peer has been silent for too long, or has read its messages too slowly.
    Silent,
    /// The peer broke the protocol.
    Misbehaved,
}

/// How much of what peers sent was skipped or refused because this version does not know it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unknown {
    /// Messages of unknown types.
    pub messages: u64,
    /// Messages and introductions of which a part was skipped.
    pub parts: u64,
    /// Requests that require something unknown.
    pub requests: u64,
}

/// A peer, for people.
#[derive(Clone, Debug)]
pub struct PeerInfo {
    /// Its identity.
    pub id: NodeId,
    /// Its address.
    pub address: IpAddr,
    /// What it has last said of itself.
    pub hello: Hello,
    /// Bytes of units received from it, without the heads of frames.
    pub units_in_bytes: u64,
    /// Bytes of units sent to it, without the heads of frames.
    pub units_out_bytes: u64,
    /// All bytes received from it.
    pub in_bytes: u64,
    /// All bytes sent to it.
    pub out_bytes: u64,
    /// How long it has been connected, in seconds.
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
    /// How often `hello` has changed: a handshake may have sent an older one.
    hello_number: u64,
    links: BTreeMap<LinkId, Link>,
    peers: BTreeMap<NodeId, Peer>,
    links_dialled: u64,
    pings: u64,
    /// Whether chunk frames are accepted.
    accepting: bool,
    /// No timer is due before this.
    alarm: Option<Instant>,
    outputs: VecDeque<LinkOutput>,
    events: VecDeque<Event>,
    /// Control links with something to write: several messages make one output.
    unwritten: BTreeSet<LinkId>,
    expelled: Recent<NodeId, 64>,
    told: Recent<IpAddr, 64>,
    /// Addresses with a reserved place, in canonical form.
    needed: Vec<IpAddr>,
    /// How many peers left for one at a needed address.
    displaced: u64,
    /// Connections that were refused, since the node started.
    pub refused: Tally<Refusal>,
    /// What peers sent that this version does not know, since the node started.
    pub unknown: Unknown,
    /// The most bytes of messages that may wait for all peers together.
    backlogs_max: usize,
    /// Changes what is said, in simulations and tests.
    pub tamper: Option<Box<dyn Tamper>>,
}

impl Peers {
    /// No peers yet. The seed must differ at each start.
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
            unknown: Unknown::default(),
            backlogs_max: PEERS_MAX * CONTROL_BACKLOG_MAX,
            tamper: None,
        }
    }

    /// This node's id.
    pub fn own_id(&self) -> NodeId {
        self.id
    }

    /// This node's public key.
    pub fn own_key(&self) -> PublicKey {
        self.me.key()
    }

    /// Handles an event of a link; false if the link is not known, or not any more.
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

    /// Handles the timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.ring(now);
    }

    /// When the next timer is due. May be earlier than needed, never later.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.alarm
    }

    /// Takes the next output; call until `None`.
    pub fn poll_output(&mut self) -> Option<LinkOutput> {
        loop {
            if let Some(output) = self.outputs.pop_front() {
                return Some(output);
            }
            let link = self.unwritten.pop_first()?;
            self.write(link);
        }
    }

    /// Takes the next event; call until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Changes this node's hello: sends it to all peers now, and to later ones in introductions.
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

    /// Dials an address, unless it is being dialled → [`Event::Up`], [`Event::Failed`]. If a peer at
    /// this address is connected, [`Event::Up`] follows at once.
    pub fn dial(&mut self, now: Instant, address: SocketAddr) {
        let mut dials = self.links.values().filter(|link| link.is_own_dial());
        if let Some(peer) = self.at(address.ip()) {
            self.events.push_back(Event::Up { peer, dialled: Some(address) });
        } else if dials.any(|link| link.address == address) {
            // The end of that dial is reported for both.
        } else if !self.may_dial(address.ip()) {
            self.events.push_back(Event::Failed(address, Down::Unreachable));
        } else {
            self.connect(now, address, Role::Dialling);
        }
    }

    /// The connected peer that we dialled at this address, or that dialled us from it.
    pub fn at(&self, address: IpAddr) -> Option<NodeId> {
        let address = address.to_canonical();
        let found = self.peers.iter().find(|(_, peer)| peer.addresses.contains(&address));
        found.map(|(id, _)| *id)
    }

    /// A peer's last hello.
    pub fn hello(&self, peer: NodeId) -> Option<&Hello> {
        self.peers.get(&peer).map(|it| &it.hello)
    }

    /// Sends a message. False if it was not queued: the peer is gone, or the message cannot be encoded.
    pub fn send(&mut self, now: Instant, peer: NodeId, message: &Message) -> bool {
        self.instead(now, |it| it.says(now, peer, message)) || self.say(now, peer, message)
    }

    /// Sends bytes of a unit as a chunk frame. Its head counts towards [`chunk_room`](Self::chunk_room),
    /// which the last frame may exceed.
    pub fn send_chunk(&mut self, now: Instant, peer: NodeId, head: ChunkHead, bytes: Bytes) {
        let bytes = match &mut self.tamper {
            Some(tamper) => tamper.sends(peer, &head, bytes),
            None => Some(bytes),
        };
        bytes.into_iter().for_each(|bytes| self.push_chunk(now, peer, &head, bytes));
    }

    /// Sets whether chunk frames are accepted: not while memory is short.
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

    /// Disconnects a peer that broke the protocol, and refuses it for a minute →
    /// [`Event::Expelled`], [`Event::Down`].
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

    /// A peer's address.
    pub fn address(&self, peer: NodeId) -> Option<IpAddr> {
        self.peers.get(&peer).map(|peer| peer.address.ip())
    }

    /// When a peer last sent bytes of a chunk frame, or a message other than pings, pongs, tokens and
    /// hellos.
    pub fn gave(&self, peer: NodeId) -> Option<Instant> {
        self.peers.get(&peer).map(|peer| peer.gave)
    }

    /// How many peers have left for another node, since the node started.
    pub fn displaced(&self) -> u64 {
        self.displaced
    }

    /// How many peers are connected.
    pub fn count(&self) -> usize {
        self.peers.len()
    }

    /// Signs bytes with this node's identity.
    pub fn sign(&self, bytes: &[u8]) -> wire::Signature {
        self.me.sign(bytes)
    }

    /// Sets the next timer to this time, unless an earlier one is set.
    fn wake_at(&mut self, due: Instant) {
        self.alarm = Some(self.alarm.map_or(due, |alarm| alarm.min(due)));
    }
}
