//! Which connection with a peer stays, where there are several.
//!
//! Exactly one does, and both sides come to the same one, whatever arrives first:
//!
//! - *Who accepts decides*, when the third message comes: by the empty message, by hanging up, or by
//!   letting it wait. Whoever has dialled takes the decision for what it is.
//! - *Both have dialled, and neither has an answer*: the dial of the lower id stays. The higher side
//!   accepts and lets its own dial go; the lower side lets the higher's wait until its own is decided,
//!   and accepts it only if that comes to nothing. So no dial ever fails because of the other.
//! - *The connection stands and its other end dials again*: a Noise key that differs is of another
//!   run of the same node, and the old connection is of a process that is no more: the new one
//!   replaces it. The same key means that the two dials have crossed, or that the other end has lost
//!   what we still believe in. So the old connection is asked: an answer means that the dial has been
//!   let go; silence, or its end, that the dial replaces it.
//! - *Our dial turns out to lead to a peer that is there*, in the same run: it is let go before we say
//!   who we are.

use super::link::{Link, Proven, Role};
use super::peer::Peer;
use super::{Down, Event, Peers, alive};
use crate::input::LinkId;
use std::net::SocketAddr;
use wire::peer::{Message, Refusal};
use wire::{Instant, NodeId};

impl Peers {
    /// Somebody has proven who they are on a connection that we have accepted.
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
            // Waits for what becomes of ours.
        } else {
            self.establish(now, id, None);
        }
    }

    /// A connection is the one with its peer from now on, if there is a place for it. `also` had been
    /// dialled for it too, and has ended.
    pub(super) fn establish(&mut self, now: Instant, id: LinkId, also: Option<SocketAddr>) {
        let proven =
            self.links.get(&id).and_then(|link| Some((link.proven()?.them.id, link.address)));
        let Some((them, address)) = proven else { return };
        // Since its introduction others may have come.
        if !self.make_place(&them, address.ip()) {
            return self.turn_away(now, id, also);
        }
        self.remove(them, Down::Closed);
        let mut dialled = self.let_rivals_go(id, them);
        dialled.extend(also);
        let Some(link) = self.links.get_mut(&id) else { return };
        let Role::Proven(proven) = std::mem::replace(&mut link.role, Role::Preamble) else {
            return;
        };
        let Proven { mut session, token, hello_number, them: who, .. } = *proven;
        if link.dialled {
            dialled.insert(0, link.address);
        } else {
            link.out.append(|out| session.seal(&[], out));
        }
        let listens = match link.dialled {
            true => link.address,
            false => at_port(link.address, self.port),
        };
        let mut peer = Peer::new(now, who, id, (link.address, listens), token);
        peer.bytes_in = link.bytes_in;
        peer.bytes_out = link.bytes_out;
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
        if hello_number != self.hello_number {
            self.say(now, them, &Message::Hello(self.hello.clone()));
        }
        self.write(id);
        self.grant(id);
    }

    /// There is no place for one who has proven who they are.
    fn turn_away(&mut self, now: Instant, id: LinkId, also: Option<SocketAddr>) {
        match self.links.get(&id).is_some_and(|link| link.dialled) {
            true => self.end(now, id, Down::Refused(Refusal::Busy)),
            false => self.refuse(now, id, Refusal::Busy),
        }
        let failed = also.map(|address| Event::Failed(address, Down::Refused(Refusal::Busy)));
        self.events.extend(failed);
    }

    /// A dial of ours has come to nothing, unless who is there has dialled us.
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

    /// A peer is gone; if it has dialled anew, that is taken up.
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

    /// Ends the connection of a peer that waits beside the one that stands.
    pub(super) fn drop_parked(&mut self, them: NodeId) {
        if let Some(parked) = self.parked(them) {
            self.hang_up(parked);
        }
    }

    /// The connection over which a question was asked has answered: whoever waits because of it has
    /// let go.
    pub(super) fn probe_answered(&mut self, them: NodeId, number: u64) {
        let parked = self.parked(them);
        let Some(proven) = parked.and_then(|it| self.links.get(&it)?.proven()) else { return };
        if proven.probe.is_some_and(|(asked, _)| asked == number) {
            self.drop_parked(them);
        }
    }

    /// Asks the connection that stands whether it does.
    fn probe(&mut self, now: Instant, id: LinkId, them: NodeId) {
        let number = self.ping(now, them);
        let Some(link) = self.links.get_mut(&id) else { return };
        if let Role::Proven(proven) = &mut link.role {
            proven.probe = Some((number, now));
            self.wake_at(now + alive::PROBE);
        }
    }

    /// Ends all else that would lead to the same peer; returns which of it we had dialled.
    fn let_rivals_go(&mut self, id: LinkId, them: NodeId) -> Vec<SocketAddr> {
        let is_rival = |link: &Link| link.proven().is_some_and(|it| it.them.id == them);
        let rivals = self.links.iter().filter(|(it, link)| **it != id && is_rival(link));
        let rivals: Vec<_> = rivals.map(|(it, _)| *it).collect();
        let ended = rivals.into_iter().filter_map(|it| self.hang_up(it)).filter(|it| it.dialled);
        ended.map(|it| it.address).collect()
    }

    /// The accepted connection of somebody that waits until it is known which one stays. There is one
    /// at most, the newest.
    fn parked(&self, them: NodeId) -> Option<LinkId> {
        let is_parked =
            |link: &Link| !link.dialled && link.proven().is_some_and(|it| it.them.id == them);
        self.links.iter().find(|(_, link)| is_parked(link)).map(|(id, _)| *id)
    }

    /// Our dials of somebody that wait for an answer.
    fn awaits(&self, them: NodeId) -> impl Iterator<Item = &Proven> {
        let own = self.links.values().filter(|link| link.dialled).filter_map(Link::proven);
        own.filter(move |proven| proven.them.id == them)
    }
}

/// The same place at another port; a link-local address keeps the interface that it is behind.
fn at_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}
