//! Data connections: dialled by the side that receives units, opened with a token, not encrypted.

use super::link::{Link, Role};
use super::{Event, Misbehaviour, Peers, WINDOW};
use crate::input::LinkId;
use crate::output::LinkOutput;
use bytes::Bytes;
use std::time::Duration;
use wire::peer::{ChunkHead, Message, Refusal};
use wire::{Instant, NodeId, Token};

/// A data connection over which nothing arrives for this long, while units are wanted, is dialled
/// again. After several losses in a row, TCP's retransmission timer outlasts their cause.
const STUCK: Duration = Duration::from_secs(15);
/// The pause before the next dial, after a data connection over which no unit arrived.
const PAUSE: Duration = Duration::from_secs(1);

impl Peers {
    /// Opens the data connection over which a peer sends us chunk frames, unless there is one or a dial for it. If a
    /// pause or the lack of a token prevents the dial now, it follows later.
    pub fn open_data(&mut self, now: Instant, them: NodeId) {
        let Some(peer) = self.peers.get_mut(&them) else { return };
        if peer.data_in.is_some() {
            return;
        }
        peer.data_wanted = true;
        if let Some(pause) = peer.data_pause.filter(|pause| *pause > now) {
            return self.wake_at(pause);
        }
        let Some(token) = peer.tokens.draw().or(peer.tried) else { return };
        peer.tried = Some(token);
        peer.data_wanted = false;
        peer.data_pause = None;
        let address = peer.listens;
        let link = self.connect(now, address, Role::DiallingData(them, token));
        if let Some(peer) = self.peers.get_mut(&them) {
            peer.data_in = Some(link);
        }
    }

    /// Units have been wanted from a peer for a while. If its data connection is stuck, ends it →
    /// [`Event::DataLost`].
    pub fn hurry(&mut self, now: Instant, them: NodeId) {
        let Some(peer) = self.peers.get(&them) else { return };
        let Some(link) = peer.data_in.and_then(|id| Some((id, self.links.get(&id)?))) else {
            return;
        };
        let (id, since) = (link.0, link.1.since);
        if now - since.max(peer.gave) > STUCK {
            self.hang_up(id);
            self.data_lost(now, them);
        }
    }

    /// The data connection that brings chunks from a peer has ended, or could not be made.
    pub(super) fn data_lost(&mut self, now: Instant, them: NodeId) {
        let Some(peer) = self.peers.get_mut(&them) else { return };
        peer.data_in = None;
        let was_in_vain = peer.tried.is_some();
        peer.data_pause = was_in_vain.then_some(now + PAUSE);
        self.events.push_back(Event::DataLost(them));
    }

    /// Reads the token of an accepted data connection, over which we send chunks.
    pub(super) fn read_token(&mut self, now: Instant, id: LinkId, bytes: &mut Bytes) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Some(token) = link.inbox.take(bytes, Token::LEN) else { return };
        let Ok(token) = token[..].try_into().map(Token) else { return };
        let redeemed =
            self.peers.iter_mut().find_map(|(it, peer)| peer.issued.redeem(&token).then_some(*it));
        let Some(them) = redeemed else {
            // The peer has accepted our dial, but its answer has not arrived yet. It will dial again.
            let is_early = |link: &Link| link.proven().is_some_and(|it| it.token == token);
            return match self.links.values().any(is_early) {
                true => drop(self.hang_up(id)),
                false => self.refuse(now, id, Refusal::Token),
            };
        };
        link.role = Role::DataOut(them);
        // Each token opens one connection: the peer needs a new one for its next.
        let fresh = self.noise.token();
        let Some(peer) = self.peers.get_mut(&them) else { return };
        peer.bytes_in += link.bytes_in;
        peer.issued.add(fresh);
        peer.starved = false;
        // The peer dialled again, because it takes the older one for dead.
        if let Some(older) = peer.data_out.replace(id) {
            self.hang_up(older);
        }
        self.outputs.push_back(LinkOutput::BulkData(id));
        self.events.push_back(Event::Room(them));
        self.say(now, them, &Message::Token(fresh));
    }

    /// Reads one chunk frame, or a part of one.
    pub(super) fn read_chunk(&mut self, now: Instant, id: LinkId, them: NodeId, bytes: &mut Bytes) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let Role::DataIn(_, reader) = &mut link.role else { return };
        match reader.next(bytes) {
            Ok(Some((head, bytes))) => {
                if let Some(peer) = self.peers.get_mut(&them) {
                    peer.units_in += bytes.len() as u64;
                    peer.gave_unit = Some(now);
                    peer.tried = None;
                }
                self.events.push_back(Event::Chunk(them, head, bytes));
            }
            Ok(None) => {}
            Err(_) => self.expel(now, them, Misbehaviour::ChunkFrame),
        }
    }

    /// How many bytes of chunk frames a peer can be sent now; zero until it has opened a data
    /// connection. [`Event::Room`] follows once there is room again.
    pub fn chunk_room(&self, them: NodeId) -> usize {
        let link = self.peers.get(&them).and_then(|it| self.links.get(&it.data_out?));
        link.map_or(0, |link| WINDOW.saturating_sub(link.out.len()))
    }

    /// Queues a chunk frame, and writes as much as the connection has room for.
    pub(super) fn push_chunk(
        &mut self,
        now: Instant,
        them: NodeId,
        head: &ChunkHead,
        bytes: Bytes,
    ) {
        let Some(peer) = self.peers.get_mut(&them) else { return };
        let Some(id) = peer.data_out else { return };
        let Some(link) = self.links.get_mut(&id) else { return };
        peer.units_out += bytes.len() as u64;
        peer.took = Some(now);
        link.out.append(|out| out.extend_from_slice(&head.encode()));
        link.out.push(bytes);
        self.write(id);
        let is_full = self.chunk_room(them) == 0;
        if let Some(peer) = self.peers.get_mut(&them) {
            peer.starved |= is_full;
        }
    }
}
