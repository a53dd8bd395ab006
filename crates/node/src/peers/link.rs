//! One connection: which stage it is in, and what can be written to it and read from it.

use super::chunks::ChunkReader;
use super::connecting::Them;
use super::inbox::Inbox;
use super::noise::Session;
use super::outbox::Outbox;
use super::{Down, Event, Peers, WINDOW};
use crate::input::LinkId;
use crate::output::LinkOutput;
use bytes::Bytes;
use snow::HandshakeState;
use std::net::SocketAddr;
use wire::{Instant, NodeId, Token};

/// Bytes that may be under way to us: enough for a handshake before it is known who that is.
const GRANT_UNKNOWN: u64 = 4 * 1024;
/// Two of the longest messages of a control connection.
const GRANT_CONTROL: u64 = 128 * 1024;
/// A window for the air's longest ways: 256 KiB in 20 ms is 100 Mbit/s.
const GRANT_DATA: u64 = 256 * 1024;
/// No more is waited for before it is read: whoever has just begun to send, sends 14 KiB before the first
/// acknowledgement (RFC 6928).
const GATHER_MAX: usize = 14 * 1024;
/// The last packet of a unit is not waited for: where it is not full, its sender may keep it until those before
/// it are acknowledged (Nagle's algorithm), which they are when they are read. No packet carries more.
const PACKET: usize = 1460;

/// A connection.
pub struct Link {
    /// The other end.
    pub address: SocketAddr,
    /// Whether it was we who dialled.
    pub dialled: bool,
    pub since: Instant,
    pub role: Role,
    pub inbox: Inbox,
    pub out: Outbox,
    /// Bytes that can be written.
    pub room: u64,
    /// Bytes that may come.
    pub granted: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// So much waited that whoever had more to say may have kept it back.
    pub was_long: bool,
}

/// What a link is for, and how far that has come.
pub enum Role {
    /// Ours, for control: not connected yet.
    Dialling,
    /// Ours, for chunks of this peer: not connected yet.
    DiallingData(NodeId, Token),
    /// Accepted: its first bytes have not come.
    Preamble,
    /// Accepted, for data: the token has not come.
    Token,
    /// Control: the other side has not proven who it is.
    Handshake(Box<Handshake>),
    /// Control: it has. Ours waits to be accepted; an accepted one waits until it is known whether
    /// another connection with the same peer stays.
    Proven(Box<Proven>),
    /// Control.
    Control(NodeId, Box<Session>),
    /// Ours: chunk frames come.
    DataIn(NodeId, Box<ChunkReader>),
    /// Accepted: chunk frames go.
    DataOut(NodeId),
}

/// A handshake under way.
pub struct Handshake {
    pub noise: HandshakeState,
    /// What the other side is given to open a data connection with.
    pub token: Token,
    /// Which of our hellos the other side is given.
    pub hello_number: u64,
    /// Of an accepted one: the first message has come.
    pub begun: bool,
}

/// A handshake that has ended well.
pub struct Proven {
    pub session: Session,
    pub token: Token,
    pub hello_number: u64,
    pub them: Them,
    /// What the connection that stands in its way was asked, and when.
    pub probe: Option<(u64, Instant)>,
}

impl Link {
    /// One that has just come to be.
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

    /// Whether it is a control connection of ours that is not decided yet.
    pub fn is_own_dial(&self) -> bool {
        self.dialled && matches!(self.role, Role::Dialling | Role::Handshake(_) | Role::Proven(_))
    }

    /// Whether it was accepted, and has not proven who it is.
    pub fn is_unknown(&self) -> bool {
        !self.dialled && matches!(self.role, Role::Preamble | Role::Token | Role::Handshake(_))
    }

    /// Who has proven to be at its other end, while that is undecided.
    pub fn proven(&self) -> Option<&Proven> {
        match &self.role {
            Role::Proven(proven) => Some(proven),
            _ => None,
        }
    }

    /// The peer that it belongs to.
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
    /// Dials.
    pub(super) fn connect(&mut self, now: Instant, address: SocketAddr, role: Role) -> LinkId {
        let id = LinkId::dialled(self.links_dialled);
        self.links_dialled += 1;
        self.links.insert(id, Link::new(now, address, true, role));
        self.outputs.push_back(LinkOutput::Connect(id, address));
        self.wake_at(now + super::alive::HANDSHAKE);
        id
    }

    /// Lets more bytes come, once half of what was granted has.
    pub(super) fn grant(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let full = link.grant_full(self.accepting);
        if link.granted < full.div_ceil(2) {
            self.outputs.push_back(LinkOutput::Receive(id, full - link.granted));
            link.granted = full;
        }
    }

    /// A unit is of no use before it is whole.
    fn gather(&mut self, id: LinkId) {
        let Some(Link { role: Role::DataIn(_, reader), .. }) = self.links.get(&id) else { return };
        let gathers = reader.lacks().saturating_sub(PACKET).min(GATHER_MAX);
        if gathers > 0 {
            self.outputs.push_back(LinkOutput::ReadThreshold(id, gathers as u64));
        }
    }

    /// More can be written.
    pub(super) fn has_room(&mut self, id: LinkId, bytes: u64) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.room = link.room.saturating_add(bytes);
        self.write(id);
    }

    /// Writes what waits, as far as there is room.
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
        // Half, so that whoever waits is woken for more than a few bytes.
        if peer.starved && peer.data_out == Some(id) && link.out.len() <= WINDOW / 2 {
            peer.starved = false;
            self.events.push_back(Event::Room(name));
        }
    }

    /// Ends a connection, after what can be written at once.
    pub(super) fn hang_up(&mut self, id: LinkId) -> Option<Link> {
        self.write(id);
        let link = self.links.remove(&id)?;
        self.unwritten.remove(&id);
        self.outputs.push_back(LinkOutput::Hangup(id));
        Some(link)
    }

    /// A connection is no more: what that means for whom it was for.
    pub(super) fn ended(&mut self, now: Instant, link: Link, why: Down) {
        let Link { address, dialled, role, .. } = link;
        match role {
            Role::Dialling => self.failed(now, address, None, Down::Unreachable),
            Role::Preamble | Role::Handshake(_) if dialled => {
                // Whoever has not answered once speaks another protocol.
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

    /// Bytes came: as many steps as they make.
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

    /// Takes one thing out of what came, or all of it; `false` if there is no more to be done.
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
            // Nothing is to come; its peer is told by the end of it.
            Role::DataOut(_) => {
                if let Some(link) = self.hang_up(id) {
                    self.ended(now, link, Down::Misbehaved);
                }
            }
        }
        true
    }
}
