//! One connection: its stage, and how many bytes may be written to it and read from it.

use super::chunks::ChunkReader;
use super::connecting::Them;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::{Down, Event, Peers, WINDOW};
use crate::input::LinkId;
use crate::noise::Session;
use crate::output::LinkOutput;
use bytes::Bytes;
use snow::HandshakeState;
use std::net::SocketAddr;
use wire::{Instant, NodeId, Token};

/// The receive credit, in bytes, before the other side is known: enough for a handshake.
const GRANT_UNKNOWN: u64 = 4 * 1024;
/// The receive credit of a control connection, in bytes: two messages of the greatest length.
const GRANT_CONTROL: u64 = 128 * 1024;
/// The receive credit of a data connection, in bytes. At a round-trip time of 20 ms, a long path over
/// several hops, 256 KiB allow 100 Mbit/s.
const GRANT_DATA: u64 = 256 * 1024;
/// The most bytes to gather before a read: a TCP sender that has just started sends 14 KiB before it
/// needs an acknowledgement (RFC 6928).
const GATHER_MAX: usize = 14 * 1024;
/// The most bytes that a packet carries. A read does not wait for the last packet of a unit. If that
/// packet is not full, its sender may hold it back until the ones before it are acknowledged (Nagle's
/// algorithm), and they are acknowledged when they are read.
const PACKET: usize = 1460;

/// A connection.
pub struct Link {
    /// The address of the other end.
    pub address: SocketAddr,
    /// Whether it was we who dialled.
    pub dialled: bool,
    pub since: Instant,
    pub role: Role,
    pub inbox: Inbox,
    pub out: Outbox,
    /// How many more bytes can be written.
    pub room: u64,
    /// The receive credit that is left.
    pub granted: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// Whether the backlog was so long that the caller may have held messages back.
    pub was_long: bool,
}

/// What a link is for, and the stage that it has reached.
pub enum Role {
    /// Dialled, for control: not connected yet.
    Dialling,
    /// Dialled, for chunks from this peer: not connected yet.
    DiallingData(NodeId, Token),
    /// Accepted: waits for the preamble.
    Preamble,
    /// Accepted, for data: waits for the token.
    Token,
    /// Control: the other side has not proven its identity.
    Handshake(Box<Handshake>),
    /// Control: the other side has proven its identity. A dialled link waits to be accepted. An
    /// accepted link waits until it is decided whether another connection with the same peer is kept.
    Proven(Box<Proven>),
    /// Control: established.
    Control(NodeId, Box<Session>),
    /// Dialled: the peer sends chunk frames.
    DataIn(NodeId, Box<ChunkReader>),
    /// Accepted: we send chunk frames.
    DataOut(NodeId),
}

/// A handshake under way.
pub struct Handshake {
    pub noise: HandshakeState,
    /// The token with which the other side may open a data connection to us.
    pub token: Token,
    /// The number of the hello that we sent in our introduction.
    pub hello_number: u64,
    /// On an accepted link, whether the first message has arrived; true on a dialled one.
    pub begun: bool,
}

/// A finished handshake, before one of its links is established.
pub struct Proven {
    pub session: Session,
    pub token: Token,
    pub hello_number: u64,
    pub them: Them,
    /// The ping sent over the peer's established connection to decide which one is kept, and when.
    pub probe: Option<(u64, Instant)>,
}

impl Link {
    /// A link that has just been dialled or accepted.
    pub fn new(now: Instant, address: SocketAddr, dialled: bool, role: Role) -> Self {
        Self {
            address,
            dialled,
            since: now,
            role,
            inbox: Inbox::default(),
            out: Outbox::default(),
            room: 0,
            granted: 0,
            bytes_in: 0,
            bytes_out: 0,
            was_long: false,
        }
    }

    /// Whether it is a control connection that we dialled and that is not established yet.
    pub fn is_own_dial(&self) -> bool {
        self.dialled && matches!(self.role, Role::Dialling | Role::Handshake(_) | Role::Proven(_))
    }

    /// Whether it was accepted, and its other side has not proven its identity.
    pub fn is_unknown(&self) -> bool {
        !self.dialled && matches!(self.role, Role::Preamble | Role::Token | Role::Handshake(_))
    }

    /// The finished handshake, while the link is not established.
    pub fn proven(&self) -> Option<&Proven> {
        match &self.role {
            Role::Proven(proven) => Some(proven),
            _ => None,
        }
    }

    /// The peer that an established link belongs to.
    pub fn peer(&self) -> Option<NodeId> {
        match self.role {
            Role::Control(peer, _) | Role::DataIn(peer, _) | Role::DataOut(peer) => Some(peer),
            _ => None,
        }
    }

    fn grant_full(&self, accepting: bool) -> u64 {
        match self.role {
            Role::Dialling | Role::DiallingData(..) => 0,
            Role::Control(..) => GRANT_CONTROL,
            Role::DataIn(..) if accepting => GRANT_DATA,
            Role::DataIn(..) => 0,
            _ => GRANT_UNKNOWN,
        }
    }
}

impl Peers {
    /// Dials an address for the given role.
    pub(super) fn connect(&mut self, now: Instant, address: SocketAddr, role: Role) -> LinkId {
        let id = LinkId::dialled(self.links_dialled);
        self.links_dialled += 1;
        self.links.insert(id, Link::new(now, address, true, role));
        self.outputs.push_back(LinkOutput::Connect(id, address));
        self.wake_at(now + super::alive::HANDSHAKE);
        id
    }

    /// Grants more receive credit, once less than half is left.
    pub(super) fn grant(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let full = link.grant_full(self.accepting);
        if link.granted < full.div_ceil(2) {
            self.outputs.push_back(LinkOutput::Receive(id, full - link.granted));
            link.granted = full;
        }
    }

    /// Lets the rest of a unit gather before the next read: a unit is of no use until it is complete.
    fn gather(&mut self, id: LinkId) {
        let Some(Link { role: Role::DataIn(_, reader), .. }) = self.links.get(&id) else { return };
        let gathers = reader.lacks().saturating_sub(PACKET).min(GATHER_MAX);
        if gathers > 0 {
            self.outputs.push_back(LinkOutput::ReadThreshold(id, gathers as u64));
        }
    }

    /// This many more bytes can be written.
    pub(super) fn has_room(&mut self, id: LinkId, bytes: u64) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.room = link.room.saturating_add(bytes);
        self.write(id);
    }

    /// Writes waiting bytes, as many as there is room for.
    pub(super) fn write(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let mut written = 0;
        while let Some(bytes) = link.out.pop(link.room) {
            let length = bytes.len() as u64;
            link.room -= length;
            written += length;
            self.outputs.push_back(LinkOutput::Write(id, bytes));
        }
        link.bytes_out += written;
        // The caller is told once each time a long queue has become short.
        let drained = std::mem::take(&mut link.was_long) && link.out.len() <= WINDOW / 2;
        link.was_long |= link.out.len() > WINDOW / 2;
        let Some((name, peer)) = link.peer().and_then(|it| Some((it, self.peers.get_mut(&it)?)))
        else {
            return;
        };
        peer.bytes_out += written;
        if drained && peer.control == id {
            self.events.push_back(Event::Room(name));
        }
        // Not before half is free, so that the caller is not woken for a few bytes.
        if peer.starved && peer.data_out == Some(id) && link.out.len() <= WINDOW / 2 {
            peer.starved = false;
            self.events.push_back(Event::Room(name));
        }
    }

    /// Writes what there is room for, then closes the connection.
    pub(super) fn hang_up(&mut self, id: LinkId) -> Option<Link> {
        self.write(id);
        let link = self.links.remove(&id)?;
        self.unwritten.remove(&id);
        self.outputs.push_back(LinkOutput::Hangup(id));
        Some(link)
    }

    /// A connection has ended: its dial has failed, or its peer is gone or has lost a data connection.
    pub(super) fn ended(&mut self, now: Instant, link: Link, why: Down) {
        let Link { address, dialled, role, .. } = link;
        match role {
            Role::Dialling => self.failed(now, address, None, Down::Unreachable),
            Role::Preamble | Role::Handshake(_) if dialled => {
                // An end that closes without an answer does not speak our protocol.
                let refused = matches!(why, Down::Refused(_));
                let why = if refused { why } else { Down::Unreachable };
                self.failed(now, address, None, why);
            }
            Role::Proven(proven) if dialled => {
                self.failed(now, address, Some(proven.them.id), why);
            }
            Role::Preamble | Role::Token | Role::Handshake(_) | Role::Proven(_) => {}
            Role::Control(peer, _) => self.gone(now, peer, why),
            Role::DiallingData(peer, _) | Role::DataIn(peer, _) => {
                self.data_lost(now, peer);
            }
            Role::DataOut(peer) => {
                if let Some(peer) = self.peers.get_mut(&peer) {
                    peer.data_out = None;
                }
            }
        }
    }

    /// Handles all complete items in received bytes.
    pub(super) fn received(&mut self, now: Instant, id: LinkId, mut bytes: Bytes) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let length = bytes.len() as u64;
        link.granted = link.granted.saturating_sub(length);
        link.bytes_in += length;
        let is_data = matches!(link.role, Role::DataIn(..));
        if let Some(peer) = link.peer().and_then(|it| self.peers.get_mut(&it)) {
            peer.bytes_in += length;
            peer.is_heard(now);
            if is_data {
                peer.gave = now;
            }
        }
        while !bytes.is_empty() && self.step(now, id, &mut bytes) {}
        self.gather(id);
        self.grant(id);
    }

    /// Reads one item, or uses up all bytes if none is complete; `false` if nothing may be read.
    fn step(&mut self, now: Instant, id: LinkId, bytes: &mut Bytes) -> bool {
        let Some(link) = self.links.get_mut(&id) else { return false };
        match link.role {
            Role::Dialling | Role::DiallingData(..) => return false,
            Role::Preamble => self.read_preamble(now, id, bytes),
            Role::Token => self.read_token(now, id, bytes),
            Role::Handshake(_) => self.read_handshake(now, id, bytes),
            Role::Proven(_) => self.read_answer(now, id, bytes),
            Role::Control(peer, _) => self.read_message(now, id, peer, bytes),
            Role::DataIn(peer, _) => self.read_chunk(now, id, peer, bytes),
            // The receiver of chunks must send nothing on this link. Closing it tells the peer so.
            Role::DataOut(_) => {
                if let Some(link) = self.hang_up(id) {
                    self.ended(now, link, Down::Misbehaved);
                }
            }
        }
        true
    }
}
