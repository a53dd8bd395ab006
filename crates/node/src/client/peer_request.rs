//! A peer's request: parsed, and admitted if there is memory for it.

use super::Client;
use super::charge::{cost_of_ask, size_of_ask};
use super::classified::judge;
use crate::context::Context;
use crate::events::Event;
use crate::exchanges::exchange::{Exchange, State};
use crate::exchanges::peer_reader::REQUESTS_MAX;
use crate::http::{Audience, Target};
use crate::input::Entrance;
use crate::output::Dial;
use crate::request::{Ask, Asker, FIELDS_MAX, PeerHops};
use crate::{http, named};
use ::http::{HeaderMap, Method, Uri, Version, header};
use std::net::IpAddr;
use wire::peer::{Message, Outcome};
use wire::{NodeId, peer};

/// Initial credit beyond this is ignored, in bytes.
const CREDIT_MAX: u32 = 64 * 1024;

impl Client {
    pub fn peer_asks(&mut self, cx: &mut Context, peer: NodeId, ask: peer::Get) {
        cx.report.asks_in += 1;
        let Some(mesh) = &mut cx.mesh else { return };
        let request = ask.request;
        // All that needs the message is computed first, because `understand` consumes it.
        let known = self.peer_readers.get(peer, request).is_some();
        let is_full = self.peer_readers.of(peer).count() >= REQUESTS_MAX;
        let loops = ask.visited.contains(&mesh.peers.own_id());
        let address = mesh.peers.address(peer);
        let fields = ask.fields.iter().map(|(name, value)| name.len() + value.len());
        let large = fields.sum::<usize>() > FIELDS_MAX;
        let size = size_of_ask(&ask);
        // If the number is in use, an answer would end the other request.
        let Some(client) = address.filter(|_| !known) else { return };
        let understood = understand(cx, peer, client, ask);
        let outcome = match understood {
            // The order matters: a loop is answered as such even by a router that is full, so that
            // the other asks elsewhere.
            _ if loops => Outcome::Loop,
            _ if is_full => Outcome::Busy,
            None => Outcome::Malformed,
            // A head of this size would not fit into a message to the next hop.
            Some(_) if large => Outcome::Busy,
            Some(ask) if self.has_room_for(cx, peer, cost_of_ask(size)) => {
                let Some(mesh) = &mut cx.mesh else { return };
                let id = mesh.draw_exchange();
                self.peer_readers.requests.insert((peer, request), id);
                let (credit, url) = (ask.peer_hops.credit, || ask.target.to_string());
                cx.events.emit(|| Event::Request { exchange: id, peer: Some(peer), url: url() });
                cx.exchanges.insert(id, Exchange { ask, credit, state: State::Looking });
                self.peer_readers.charge(cx, id);
                return self.look(cx, id);
            }
            // Busy, not refused: the peer then asks another router or the origin.
            Some(_) => {
                cx.report.asks_short += 1;
                Outcome::Busy
            }
        };
        cx.say(peer, Message::End(request, outcome));
    }
}

/// Translates a peer's request; `None` if it is malformed.
fn understand(cx: &Context, peer: NodeId, client: IpAddr, ask: peer::Get) -> Option<Ask> {
    let size = size_of_ask(&ask);
    let uri: Uri = ask.uri.parse().ok()?;
    // Peers fetch only plain HTTP for one another; a node fetches `https` URIs for its own clients only.
    let target = Target::read(&uri).filter(|target| !target.is_tls())?;
    let mut headers = http::headers(&ask.fields)?;
    // A hostile peer may send fields that an honest one strips.
    http::strip_hop_by_hop(&mut headers);
    // The URI has the host; a second one might contradict it.
    headers.remove(header::HOST);
    http::add_via(&mut headers, Version::HTTP_11, &cx.via);
    // By name: an address that the peer found may lead elsewhere from here.
    let dial = Dial::Name(target.host().to_owned(), target.port());
    let peer_hops = PeerHops {
        size,
        visited: ask.visited,
        hops: ask.hops,
        per_hop: ask.per_hop,
        to_gateway: false,
        resume: ask.resume,
        have: ask.have,
        manifest_credit: ask.manifest_credit,
        given: 0,
        // A peer may ask for any credit, but we buffer only so much for it.
        credit: i64::from(ask.credit.min(CREDIT_MAX)),
        sparing: ask.sparing,
        upstream: String::new(),
    };
    let verdict = judge(cx, &target);
    let ask = Ask {
        asker: Asker::Peer(peer, ask.request),
        peer_hops,
        method: Method::GET,
        expected: verdict.digest(),
        follow: false,
        verdict,
        // Peers get only what everyone may have.
        key: target.key(&cx.config.secret, Audience::Everyone),
        target,
        named: None,
        headers,
        client,
        audience: Audience::Everyone,
        may_turn_home: false,
        entrance: Entrance::Explicit,
        dial,
        has_body: false,
        upgrade: false,
        alone: !ask.merge,
        cookies: HeaderMap::new(),
        verified: true,
    };
    named::understand(ask, &cx.config.secret).ok()
}
