//! Events and messages of peers, handed to the machine that handles each.

use super::Node;
use crate::events::{self, Events, LinkEnd, Stale};
use crate::hints;
use crate::input::FetchId;
use crate::peers::{Down, Event};
use crate::source::{LOOK_EVERY, Source};
use wire::NodeId;
use wire::counters::Reason as _;
use wire::peer::{Message, Request};

impl Node {
    pub(super) fn peer_event(&mut self, event: Event) {
        let cx = &mut self.cx;
        match event {
            Event::Up { peer, dialled } => {
                cx.events.emit(|| events::Event::LinkUp { peer, dialled });
                // The peer may have told a new gateway: then our own hello changes too.
                cx.introduce();
                let mesh = cx.mesh.as_mut();
                if let Some(mesh) = mesh.filter(|it| it.config.selection.tells_of_copies()) {
                    mesh.copies.met(cx.now);
                }
                if let Some(mesh) = &mut cx.mesh
                    && let Some(address) = mesh.peers.address(peer)
                {
                    mesh.refusals.forget(address);
                }
                if let Some(address) = dialled {
                    self.source.peer_is_up(cx, peer, address);
                }
            }
            Event::Hello(..) => cx.introduce(),
            Event::Message(peer, message) => self.message(peer, message),
            Event::Chunk(peer, head, bytes) => self.object.unit_part(cx, peer, head, bytes),
            // The connection has drained: the requests of this peer take turns to fill it.
            Event::Room(peer) => self.client.supply_peer(cx, peer),
            // Units on the lost connection will not come: they are wanted again.
            Event::DataLost(peer) => self.source.want_again_of(cx, peer),
            Event::Down(peer, why) => {
                cx.events.emit(|| events::Event::LinkDown { peer, why: why.into() });
                // First, so that no request that is now moved to another source is moved back to
                // this peer.
                cx.forget_holder(peer);
                self.client.peer_is_gone(cx, peer);
                self.source.peer_is_gone(cx, peer);
            }
            Event::Failed(address, why) => {
                cx.events.emit(|| events::Event::LinkFailed { address, why: why.into() });
                // A refusal repeats at each attempt: the operator is told once for each change of
                // routes.
                if let Down::Refused(refusal) = why
                    && let Some(mesh) = &mut cx.mesh
                {
                    mesh.refusals.add(cx.now, address.ip(), false, refusal);
                    if mesh.routes.is_news(cx.now, address.ip()) {
                        let why = refusal.clause();
                        cx.notice(format!("the node at {address} refuses us: {why}"));
                    }
                }
                self.source.no_peer(cx, address);
            }
            Event::Rejected(address, refusal) => {
                let why = refusal.into();
                cx.events.emit(|| events::Event::LinkRefused { address, why });
                if let Some(mesh) = &mut cx.mesh {
                    mesh.refusals.add(cx.now, address.ip(), true, refusal);
                }
                cx.notice(format!("refused a node at {address}: {}", refusal.clause()));
            }
            Event::Expelled(peer, address, why) => {
                *cx.report.peers_expelled.of(why) += 1;
                cx.events.emit(|| events::Event::Expelled { peer, why });
                cx.notice(format!("left the peer at {address} for a while: {}", why.clause()));
            }
        }
    }

    fn message(&mut self, peer: NodeId, message: Message) {
        let cx = &mut self.cx;
        match message {
            Message::Get(ask) => {
                self.client.peer_asks(cx, peer, *ask);
                // From now on a peer waits for our progress: the timer that checks it must run.
                if !self.client.peer_readers.requests.is_empty() {
                    self.source.look_by(cx.now + LOOK_EVERY);
                }
            }
            Message::End(request, outcome) => {
                self.source.peer_ends(cx, (peer, request), outcome);
            }
            Message::Head(request, head) => {
                if let Some(id) = asked(&self.source, &mut cx.events, peer, request) {
                    self.client.record_head(cx, id, (peer, request), *head);
                }
            }
            Message::Opaque(request, opaque) => {
                if let Some(id) = asked(&self.source, &mut cx.events, peer, request) {
                    self.client.opaque_head(cx, id, (peer, request), *opaque);
                }
            }
            // Loose bytes belong to an object that pauses, all others to a response that is not
            // stored.
            Message::Bytes(request, offset, bytes) => {
                let Some(id) = asked(&self.source, &mut cx.events, peer, request) else { return };
                match cx.transfers.contains_key(&id) {
                    true => {
                        self.object.loose_bytes(cx, id, (peer, request), offset, bytes.into());
                    }
                    false => self.client.opaque_bytes(cx, id, peer, offset, bytes.into()),
                }
            }
            Message::Segment(request, signature, bytes) => {
                if let Some(id) = asked(&self.source, &mut cx.events, peer, request) {
                    self.object.segment(cx, id, (peer, request), *signature, &bytes);
                }
            }
            Message::DontHave(request, names) => {
                if let Some(id) = asked(&self.source, &mut cx.events, peer, request) {
                    self.object.units_lost(cx, id, &names);
                }
            }
            Message::Credit(request, ..)
            | Message::Want(request, _)
            | Message::CancelWant(request, _)
            | Message::Cancel(request) => match self.client.peer_readers.get(peer, request) {
                Some(id) => self.client.peer_says(cx, id, message),
                None => cx.events.stale(Stale::PeerRequest),
            },
            Message::Have(names) => hints::hold(cx, peer, names),
            Message::Withdraw(names) => hints::let_go(cx, peer, &names),
            Message::Reach(reach) => {
                if let Some(mesh) = cx.mesh.as_mut().filter(|mesh| mesh.hears_copies_from(peer)) {
                    mesh.copies.handle_reach(cx.now, peer, *reach);
                }
            }
            Message::Copies(copies) => {
                if let Some(mesh) = cx.mesh.as_mut().filter(|mesh| mesh.hears_copies_from(peer)) {
                    mesh.copies.handle_copies(cx.now, peer, copies);
                }
            }
            // The other messages are handled in `peers`.
            Message::Hello(_) | Message::Token(_) | Message::Ping(_) | Message::Pong(_) => {}
        }
    }
}

/// The fetch for which a peer was asked; none if it is over.
fn asked(source: &Source, events: &mut Events, peer: NodeId, request: Request) -> Option<FetchId> {
    let id = source.asked(peer, request);
    if id.is_none() {
        events.stale(Stale::PeerAnswer);
    }
    id
}

impl From<Down> for LinkEnd {
    fn from(down: Down) -> Self {
        match down {
            Down::Unreachable => Self::Unreachable,
            Down::Refused(refusal) => refusal.into(),
            Down::Closed => Self::Closed,
            Down::Silent => Self::Silent,
            Down::Misbehaved => Self::Misbehaved,
        }
    }
}
