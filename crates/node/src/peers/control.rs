//! Messages over a control connection.

use super::inbox::Frame;
use super::link::Role;
use super::{Down, Event, Misbehaviour, Peers};
use crate::input::LinkId;
use bytes::Bytes;
use wire::peer::{Message, Outcome, Received};
use wire::{Instant, NodeId};

impl Peers {
    /// Queues a message to a peer. False if it cannot be encoded, or if the peer is gone, also because
    /// its backlog has grown too long.
    pub(super) fn say(&mut self, now: Instant, them: NodeId, message: &Message) -> bool {
        let Some(peer) = self.peers.get_mut(&them) else { return false };
        let Some(link) = self.links.get_mut(&peer.control) else { return false };
        let Role::Control(_, session) = &mut link.role else { return false };
        let Some(bytes) = message.encode() else { return false };
        if !link.out.append(|out| session.seal(&bytes, out)) {
            return false;
        }
        self.unwritten.insert(peer.control);
        // A peer that takes answers keeps its place longer than one that is idle (`places.rs`).
        if matches!(message, Message::Head(..) | Message::Opaque(..) | Message::Bytes(..)) {
            peer.took = Some(now);
        }
        // Pongs and tokens answer the peer: its silence after them is no sign of death.
        let wants_answer = !matches!(message, Message::Pong(_) | Message::Token(_));
        if wants_answer && peer.asked.is_none() {
            peer.asked = Some(now);
            let due = peer.due();
            self.wake_at(due);
        }
        // All backlogs share a limit: the longest one is dropped, which may be another peer's.
        match self.who_is_too_slow(them) {
            Some(slow) => {
                self.gone(now, slow, Down::Silent);
                slow != them
            }
            None => true,
        }
    }

    /// Pings a peer, which counts as gone if it stays silent; returns the ping's number.
    pub(super) fn ping(&mut self, now: Instant, them: NodeId) -> u64 {
        if let Some(peer) = self.peers.get_mut(&them) {
            peer.pinged.get_or_insert(now);
            let due = peer.due();
            self.wake_at(due);
        }
        self.say_ping(now, them)
    }

    /// Sends a ping, and returns its number.
    pub(super) fn say_ping(&mut self, now: Instant, them: NodeId) -> u64 {
        self.pings += 1;
        let number = self.pings;
        if let Some(peer) = self.peers.get_mut(&them) {
            peer.ping.get_or_insert((number, now));
        }
        self.say(now, them, &Message::Ping(number));
        number
    }

    /// Reads one message.
    pub(super) fn read_message(
        &mut self,
        now: Instant,
        id: LinkId,
        them: NodeId,
        bytes: &mut Bytes,
    ) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Role::Control(_, session) = &mut link.role else { return };
        let message = match link.inbox.frame(bytes, usize::from(u16::MAX)) {
            Ok(None) => return,
            Ok(Some(Frame::Message(sealed))) => session.open(&sealed),
            // After the handshake a refusal is out of place, as is a frame that is too long.
            Ok(Some(Frame::Refusal(_))) | Err(_) => None,
        };
        let Some(message) = message else {
            // Bytes that do not decrypt may be a third party's on the path: no reason to expel the peer.
            return self.gone(now, them, Down::Misbehaved);
        };
        match Message::receive(&message) {
            Ok(Received::Message { message, skipped }) => {
                self.unknown.parts += u64::from(skipped);
                if !self.instead(now, |it| it.hears(now, them, &message)) {
                    self.heard(now, them, message);
                }
            }
            Ok(Received::UnknownType(_)) => self.unknown.messages += 1,
            Ok(Received::NotUnderstood(request)) => {
                self.unknown.requests += 1;
                self.say(now, them, &Message::End(request, Outcome::NotUnderstood));
            }
            Err(_) => self.expel(now, them, Misbehaviour::Message),
        }
    }

    fn heard(&mut self, now: Instant, them: NodeId, message: Message) {
        match message {
            Message::Ping(number) => {
                self.say(now, them, &Message::Pong(number));
            }
            Message::Pong(number) => {
                // A pong measures the round trip, and may show that the peer has dropped a dial
                // that waits here.
                self.ping_answered(now, them, number);
                self.probe_answered(them, number);
            }
            Message::Token(token) => {
                let Some(peer) = self.peers.get_mut(&them) else { return };
                peer.tokens.add(token);
                // The connection for chunks waited for a token to open it.
                if peer.data_wanted {
                    self.open_data(now, them);
                }
            }
            Message::Hello(hello) => {
                let Some(peer) = self.peers.get_mut(&them) else { return };
                peer.hello = hello.clone();
                self.events.push_back(Event::Hello(them, hello));
            }
            message => {
                if let Some(peer) = self.peers.get_mut(&them) {
                    // Only messages of use show that the peer serves; pings and hellos do not.
                    peer.gave = now;
                }
                self.events.push_back(Event::Message(them, message));
            }
        }
    }
}
