//! Which connection with a peer is kept, where there are several.
//!
//! Exactly one is kept, and both sides keep the same one, in any order of arriving messages:
//!
//! - *The accepting side decides*, when the third message arrives: it accepts with the empty message,
//!   closes the connection, or lets it wait. The dialling side follows that decision.
//! - *Both sides have dialled, and neither has an answer*: the dial of the lower id is kept. The side
//!   with the higher id accepts it and drops its own dial. The side with the lower id lets the other
//!   dial wait, and accepts it only if its own fails. So no dial ever fails because of the other.
//! - *A connected peer dials again with another Noise key*: the peer has restarted, and the old
//!   connection belongs to a process that has ended. The new connection replaces it.
//! - *A connected peer dials again with the same key*: the two dials have crossed, or the peer has
//!   lost the connection that we still hold open. So we ping over the old connection. A pong means that
//!   the peer has dropped its new dial. If the old connection is silent or ends, the new one
//!   replaces it.
//! - *Our dial leads to a connected peer*, in the same run: the dial is dropped before we send our
//!   introduction.

use super::link::{Link, Proven, Role};
use super::peer::Peer;
use super::{Down, Event, Peers, alive};
use crate::input::LinkId;
use std::net::SocketAddr;
use wire::peer::{Message, Refusal};
use wire::{Instant, NodeId};

impl Peers {
    /// A node has proven its identity on an accepted connection: establishes the connection, or lets it
    /// wait.
    pub(super) fn welcome(&mut self, now: Instant, id: LinkId, them: NodeId) {
        let Some(proven) = self.links.get(&id).and_then(Link::proven) else { return };
        let run_key = proven.them.run_key;
        let parked = self.parked(them).filter(|other| *other != id);
        if let Some(older) = parked {
            self.hang_up(older);
        }
        if self.peers.get(&them).is_some_and(|peer| peer.run_key == run_key) {
            self.probe(now, id, them);
        } else if self.id < them && self.awaits(them).any(|own| own.them.run_key == run_key) {
            // The connection waits for the outcome of our own dial.
        } else {
            self.establish(now, id, None);
        }
    }

    /// Makes this the control connection of its peer, if there is a place for the peer. `also` is an
    /// address that we dialled for the same peer; that dial has ended.
    pub(super) fn establish(&mut self, now: Instant, id: LinkId, also: Option<SocketAddr>) {
        let proven =
            self.links.get(&id).and_then(|link| Some((link.proven()?.them.id, link.address)));
        let Some((them, address)) = proven else { return };
        // Since the introduction, other peers may have taken the last place.
        if !self.make_place(now, &them, address.ip()) {
            return self.turn_away(now, id, also);
        }
        // The peer may have an older connection, of an earlier run or broken: this one replaces it.
        self.remove(them, Down::Closed);
        let mut dialled = self.let_rivals_go(id, them);
        dialled.extend(also);
        let Some(link) = self.links.get_mut(&id) else { return };
        let Role::Proven(proven) = std::mem::replace(&mut link.role, Role::Preamble) else {
            return;
        };
        let Proven { mut session, token, hello_number, them: who, .. } = *proven;
        if link.dialled {
            // We sent the last message of the handshake already.
            dialled.insert(0, link.address);
        } else {
            link.out.append(|out| session.seal(&[], out));
        }
        // A peer that dialled us has a port of its own choice: its port for peers is the mesh's.
        let listens = match link.dialled {
            true => link.address,
            false => at_port(link.address, self.port),
        };
        let mut peer = Peer::new(now, who, id, (link.address, listens), token);
        // The handshake counts as the peer's traffic.
        peer.bytes_in = link.bytes_in;
        peer.bytes_out = link.bytes_out;
        // Requests that wait for one of these addresses find the peer there.
        for address in &dialled {
            peer.is_also_at(address.ip());
        }
        link.role = Role::Control(them, Box::new(session));
        self.wake_at(peer.due());
        self.peers.insert(them, peer);
        if dialled.is_empty() {
            self.events.push_back(Event::Up { peer: them, dialled: None });
        }
        for address in dialled {
            self.events.push_back(Event::Up { peer: them, dialled: Some(address) });
        }
        // Our hello has changed since the introduction was sent.
        if hello_number != self.hello_number {
            self.say(now, them, &Message::Hello(self.hello.clone()));
        }
        self.write(id);
        self.grant(id);
    }

    /// Refuses a node with a proven identity, because there is no place for it.
    fn turn_away(&mut self, now: Instant, id: LinkId, also: Option<SocketAddr>) {
        match self.links.get(&id).is_some_and(|link| link.dialled) {
            true => self.end(now, id, Down::Refused(Refusal::Busy)),
            false => self.refuse(now, id, Refusal::Busy),
        }
        let failed = also.map(|address| Event::Failed(address, Down::Refused(Refusal::Busy)));
        self.events.extend(failed);
    }

    /// A dial of ours has failed. If its peer has a connection waiting, that one is established instead.
    pub(super) fn failed(
        &mut self,
        now: Instant,
        address: SocketAddr,
        them: Option<NodeId>,
        why: Down,
    ) {
        match them.and_then(|it| self.parked(it)) {
            Some(parked) => self.establish(now, parked, Some(address)),
            None => self.events.push_back(Event::Failed(address, why)),
        }
    }

    /// Removes a peer; if it has dialled again, the new connection is established.
    pub(super) fn gone(&mut self, now: Instant, them: NodeId, why: Down) {
        self.remove(them, why);
        if let Some(parked) = self.parked(them) {
            self.establish(now, parked, None);
        }
    }

    /// Ends all connections with a peer.
    pub(super) fn remove(&mut self, them: NodeId, why: Down) {
        let Some(peer) = self.peers.remove(&them) else { return };
        for link in [Some(peer.control), peer.data_in, peer.data_out].into_iter().flatten() {
            self.hang_up(link);
        }
        self.events.push_back(Event::Down(them, why));
    }

    /// Closes the connection of a peer that waits beside another.
    pub(super) fn drop_parked(&mut self, them: NodeId) {
        if let Some(parked) = self.parked(them) {
            self.hang_up(parked);
        }
    }

    /// The established connection has answered a ping: if that was the probe, the peer has dropped the
    /// dial that waits here.
    pub(super) fn probe_answered(&mut self, them: NodeId, number: u64) {
        let parked = self.parked(them);
        let Some(proven) = parked.and_then(|it| self.links.get(&it)?.proven()) else { return };
        if proven.probe.is_some_and(|(asked, _)| asked == number) {
            self.drop_parked(them);
        }
    }

    /// Pings over the established connection, to decide whether connection `id` replaces it.
    fn probe(&mut self, now: Instant, id: LinkId, them: NodeId) {
        let number = self.ping(now, them);
        let Some(link) = self.links.get_mut(&id) else { return };
        if let Role::Proven(proven) = &mut link.role {
            proven.probe = Some((number, now));
            self.wake_at(now + alive::PROBE);
        }
    }

    /// Closes all other connections with a peer that are not established; returns the addresses of those
    /// that we dialled.
    fn let_rivals_go(&mut self, id: LinkId, them: NodeId) -> Vec<SocketAddr> {
        let is_rival = |link: &Link| link.proven().is_some_and(|it| it.them.id == them);
        let rivals = self.links.iter().filter(|(it, link)| **it != id && is_rival(link));
        let rivals: Vec<_> = rivals.map(|(it, _)| *it).collect();
        let ended = rivals.into_iter().filter_map(|it| self.hang_up(it)).filter(|it| it.dialled);
        ended.map(|it| it.address).collect()
    }

    /// The accepted connection of a peer that waits until it is decided which one is kept. There is at
    /// most one, the newest.
    fn parked(&self, them: NodeId) -> Option<LinkId> {
        let is_parked =
            |link: &Link| !link.dialled && link.proven().is_some_and(|it| it.them.id == them);
        self.links.iter().find(|(_, link)| is_parked(link)).map(|(id, _)| *id)
    }

    /// Our dials to a peer that wait for its answer.
    fn awaits(&self, them: NodeId) -> impl Iterator<Item = &Proven> {
        let own = self.links.values().filter(|link| link.dialled).filter_map(Link::proven);
        own.filter(move |proven| proven.them.id == them)
    }
}

/// The same address with another port; a link-local address keeps its scope id.
fn at_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}
