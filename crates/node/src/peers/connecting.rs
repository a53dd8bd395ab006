//! Opening a connection, until both sides have proven their identities.
//!
//! The dialling side sends a preamble. Then follow the three messages of Noise's handshake: the
//! second holds the accepting side's introduction, the third the dialling side's. The accepting side
//! accepts with an empty message of the session. Until then it may refuse instead: in clear, with a
//! length of zero and a code of one byte.

use super::inbox::Frame;
use super::link::{Handshake, Link, Proven, Role};
use super::{Down, Event, Peers, alive};
use crate::identity::{Identity, node_id, verify};
use crate::input::LinkId;
use crate::noise::{self, HANDSHAKE_MAX, RunKey, Session};
use crate::output::LinkOutput;
use bytes::Bytes;
use std::net::SocketAddr;
use wire::peer::{Connection, FrameError, Hello, Introduction, Preamble, Refusal};
use wire::{Instant, NodeId, Signature, Token};

/// The first part of what an identity signs. Whether it dialled, and the Noise key, follow.
const CONTEXT: &[u8] = b"hearsay 2026 this Noise key is mine\0";

/// Our signatures over the Noise key of this run: one for connections that we dial, one for
/// connections that we accept.
pub struct Signatures {
    pub dialling: Signature,
    pub accepting: Signature,
}

/// What the node at the other end has proven and said in its introduction.
pub struct Them {
    pub id: NodeId,
    pub run_key: RunKey,
    pub hello: Hello,
    pub token: Token,
}

impl Signatures {
    /// Signs a Noise key.
    pub fn new(me: &Identity, key: &RunKey) -> Self {
        Self { dialling: me.sign(&claim(true, key)), accepting: me.sign(&claim(false, key)) }
    }
}

fn claim(dialling: bool, key: &RunKey) -> Vec<u8> {
    [CONTEXT, &[u8::from(dialling)], key].concat()
}

/// A hello without control characters in its name, and with the name shortened to fit the message.
pub fn presentable(mut hello: Hello) -> Hello {
    hello.name.retain(|c| !c.is_control());
    while hello.name.len() > Hello::NAME_MAX {
        hello.name.pop();
    }
    hello
}

impl Peers {
    /// A node has connected to our port.
    pub(super) fn accepted(&mut self, now: Instant, id: LinkId, address: SocketAddr) {
        if let Some(other) = self.unknown_to_leave() {
            self.refuse(now, other, Refusal::Busy);
        }
        self.links.insert(id, Link::new(now, address, false, Role::Preamble));
        self.wake_at(now + alive::HANDSHAKE);
        self.grant(id);
    }

    /// A connection that we dialled is established: sends the first bytes.
    pub(super) fn connected(&mut self, now: Instant, id: LinkId) {
        let sealed = self.noise.sealed();
        let Some(link) = self.links.get_mut(&id) else { return };
        match link.role {
            Role::Dialling => {
                let preamble = Preamble { connection: Connection::Control, sealed }.encode();
                // The preamble is part of what is authenticated: no one on the path can change it.
                let mut noise = self.noise.handshake(true, &preamble);
                let Some(first) = noise::write(&mut noise, &[]) else { return };
                link.out.append(|out| {
                    out.extend_from_slice(&preamble);
                    out.extend_from_slice(&first);
                });
                let (token, hello_number) = (self.noise.token(), self.hello_number);
                let handshake = Handshake { noise, token, hello_number, begun: true };
                link.role = Role::Handshake(Box::new(handshake));
            }
            Role::DiallingData(peer, token) => {
                let preamble = Preamble { connection: Connection::Data, sealed }.encode();
                link.out.append(|out| {
                    out.extend_from_slice(&preamble);
                    out.extend_from_slice(token.as_bytes());
                });
                // A valid token gets no answer on this connection: chunk frames follow.
                link.role = Role::DataIn(peer, Box::default());
                self.outputs.push_back(LinkOutput::BulkData(id));
            }
            _ => return,
        }
        // The time to connect does not count as time for the handshake.
        link.since = now;
        self.wake_at(now + alive::HANDSHAKE);
        self.write(id);
        self.grant(id);
    }

    /// Reads the preamble of an accepted connection.
    pub(super) fn read_preamble(&mut self, now: Instant, id: LinkId, bytes: &mut Bytes) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(first) = link.inbox.take(bytes, Preamble::LENGTH) else { return };
        let Ok(first) = <[u8; Preamble::LENGTH]>::try_from(&first[..]) else { return };
        match Preamble::decode(&first) {
            Ok(Preamble { connection: Connection::Data, .. }) => link.role = Role::Token,
            Ok(preamble) if preamble.sealed != self.noise.sealed() => {
                self.refuse(now, id, Refusal::MeshKey);
            }
            Ok(_) => {
                let noise = self.noise.handshake(false, &first);
                let (token, hello_number) = (self.noise.token(), self.hello_number);
                let handshake = Handshake { noise, token, hello_number, begun: false };
                link.role = Role::Handshake(Box::new(handshake));
            }
            Err(FrameError::Version(_)) => self.refuse(now, id, Refusal::Version),
            Err(FrameError::Kind(_)) => self.refuse(now, id, Refusal::Kind),
            // The other end speaks another protocol and would not understand a refusal.
            Err(_) => drop(self.hang_up(id)),
        }
    }

    /// Reads a message of the handshake, or a refusal.
    pub(super) fn read_handshake(&mut self, now: Instant, id: LinkId, bytes: &mut Bytes) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let frame = match link.inbox.frame(bytes, HANDSHAKE_MAX) {
            Ok(None) => return,
            Ok(Some(frame)) => Some(frame),
            Err(_) => None,
        };
        let Role::Handshake(handshake) = &mut link.role else { return };
        match frame {
            Some(Frame::Message(message)) if !handshake.begun => {
                handshake.begun = true;
                // The accepting side introduces itself only after a message that fits the mesh key.
                if noise::read(&mut handshake.noise, &message).is_none() {
                    drop(self.hang_up(id));
                } else if !self.introduce_on(id) {
                    self.refuse(now, id, Refusal::Identity);
                }
            }
            Some(Frame::Message(message)) if link.dialled => self.answered(now, id, &message),
            Some(Frame::Message(message)) => self.completed(now, id, &message),
            Some(Frame::Refusal(code)) if link.dialled => {
                let why = Refusal::from_code(code).map_or(Down::Unreachable, Down::Refused);
                self.end(now, id, why);
            }
            _ => self.end(now, id, Down::Unreachable),
        }
    }

    /// Reads the second message, the accepting side's introduction, and answers with ours.
    fn answered(&mut self, now: Instant, id: LinkId, message: &[u8]) {
        let Some(them) = self.read_introduction(id, message) else {
            return self.end(now, id, Down::Unreachable);
        };
        let them = match them.and_then(|it| self.check(now, it, true)) {
            Ok(them) => them,
            Err(refusal) => return self.end(now, id, Down::Refused(refusal)),
        };
        let Some(&Link { address, .. }) = self.links.get(&id) else { return };
        if let Some(peer) = self.peers.get_mut(&them.id) {
            // The same run of the same node is already a peer: its connection stays.
            if peer.run_key == them.run_key {
                peer.is_also_at(address.ip());
                self.events.push_back(Event::Up { peer: them.id, dialled: Some(address) });
                drop(self.hang_up(id));
                return;
            }
        } else if !self.may_enter(now, &them.id, address.ip()) {
            return self.end(now, id, Down::Refused(Refusal::Busy));
        }
        if !self.introduce_on(id) || !self.prove(id, them) {
            self.end(now, id, Down::Misbehaved);
        }
    }

    /// Reads the third message, the dialling side's introduction.
    fn completed(&mut self, now: Instant, id: LinkId, message: &[u8]) {
        let Some(them) = self.read_introduction(id, message) else {
            // The mesh key enters only the third message: if it cannot be read, the keys differ.
            return match self.noise.sealed() {
                true => self.refuse(now, id, Refusal::MeshKey),
                false => drop(self.hang_up(id)),
            };
        };
        let them = match them.and_then(|it| self.check(now, it, false)) {
            Ok(them) => them,
            Err(refusal) => return self.refuse(now, id, refusal),
        };
        let peer = them.id;
        let Some(&Link { address, .. }) = self.links.get(&id) else { return };
        if !self.may_enter(now, &peer, address.ip()) {
            self.refuse(now, id, Refusal::Busy);
        } else if self.prove(id, them) {
            self.welcome(now, id, peer);
        } else {
            drop(self.hang_up(id));
        }
    }

    /// Reads what follows the handshake. If we dialled, this is an empty message of the session, which
    /// accepts, or a refusal. If we accepted, the other side must not send before we have answered.
    pub(super) fn read_answer(&mut self, now: Instant, id: LinkId, bytes: &mut Bytes) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let frame = match link.inbox.frame(bytes, HANDSHAKE_MAX) {
            Ok(None) => return,
            Ok(Some(frame)) if link.dialled => Some(frame),
            _ => None,
        };
        let Role::Proven(proven) = &mut link.role else { return };
        match frame {
            Some(Frame::Refusal(code)) => {
                let why = Refusal::from_code(code).map_or(Down::Misbehaved, Down::Refused);
                self.end(now, id, why);
            }
            Some(Frame::Message(message)) if proven.session.open(&message) == Some(Vec::new()) => {
                let peer = proven.them.id;
                // The peer may have been expelled since its introduction.
                if self.expelled.has(now, &peer) {
                    self.end(now, id, Down::Refused(Refusal::Identity));
                } else {
                    self.establish(now, id, None);
                }
            }
            _ => self.end(now, id, Down::Misbehaved),
        }
    }

    /// Ends a connection, and its peer or dial if this connection carried it.
    pub(super) fn end(&mut self, now: Instant, id: LinkId, why: Down) {
        if let Some(link) = self.hang_up(id) {
            self.ended(now, link, why);
        }
    }

    /// Ends an accepted connection and says why: to the other side in clear, and to our caller once a
    /// minute for each address.
    pub(super) fn refuse(&mut self, now: Instant, id: LinkId, why: Refusal) {
        let Some(link) = self.links.get_mut(&id) else { return };
        *self.refused.of(why) += 1;
        let address = link.address;
        // A data connection carries only chunk frames: its end must suffice as a refusal.
        if !matches!(link.role, Role::Token) {
            link.out.append(|out| out.extend_from_slice(&[0, 0, why.code()]));
        }
        self.hang_up(id);
        let from = address.ip().to_canonical();
        if !self.told.has(now, &from) && self.told.has_place(now) {
            self.told.add(now, from);
            self.events.push_back(Event::Rejected(address, why));
        }
    }

    /// Reads the other side's introduction and its Noise key; `None` if the message does not belong to
    /// this handshake.
    fn read_introduction(
        &mut self,
        id: LinkId,
        message: &[u8],
    ) -> Option<Result<(Introduction, RunKey), Refusal>> {
        let link = self.links.get_mut(&id)?;
        let Role::Handshake(handshake) = &mut link.role else { return None };
        let payload = noise::read(&mut handshake.noise, message)?;
        let key = noise::run_key(&handshake.noise)?;
        let them = Introduction::receive(&payload).map(|(it, skipped)| {
            self.unknown.parts += u64::from(skipped);
            (it, key)
        });
        Some(them.map_err(|_| Refusal::Identity))
    }

    /// Verifies that the other side has signed its Noise key, and that it is neither this node nor
    /// expelled.
    fn check(
        &self,
        now: Instant,
        (them, run_key): (Introduction, RunKey),
        is_dialled: bool,
    ) -> Result<Them, Refusal> {
        let id = node_id(&them.identity);
        let claim = claim(!is_dialled, &run_key);
        let is_welcome = id != self.id && !self.expelled.has(now, &id);
        if !is_welcome || !verify(&them.identity, &claim, &them.signature) {
            return Err(Refusal::Identity);
        }
        Ok(Them { id, run_key, hello: them.hello, token: them.token })
    }

    /// Sends the handshake message with our introduction; false if that fails.
    fn introduce_on(&mut self, id: LinkId) -> bool {
        let Some(link) = self.links.get_mut(&id) else { return false };
        let Role::Handshake(handshake) = &mut link.role else { return false };
        handshake.hello_number = self.hello_number;
        let signature =
            if link.dialled { self.signatures.dialling } else { self.signatures.accepting };
        let introduction = Introduction {
            identity: self.me.key(),
            signature,
            token: handshake.token,
            hello: self.hello.clone(),
        };
        let payload = introduction.encode();
        let message = payload.and_then(|it| noise::write(&mut handshake.noise, &it));
        let Some(message) = message else { return false };
        link.out.append(|out| out.extend_from_slice(&message));
        self.write(id);
        true
    }

    /// Replaces the finished handshake by its session; false if it is not finished.
    fn prove(&mut self, id: LinkId, them: Them) -> bool {
        let Some(link) = self.links.get_mut(&id) else { return false };
        match std::mem::replace(&mut link.role, Role::Preamble) {
            Role::Handshake(handshake) => {
                let Handshake { noise, token, hello_number, .. } = *handshake;
                let Some(session) = Session::new(noise) else { return false };
                let proven = Proven { session, token, hello_number, them, probe: None };
                link.role = Role::Proven(Box::new(proven));
                true
            }
            role => {
                link.role = role;
                false
            }
        }
    }
}
