//! A peer's request: parsed, and admitted if there is memory for it.

use super::charge::{cost_of_ask, size_of_ask};
use super::classified::classify;
use super::{Client, elsewhere};
use crate::context::Context;
use crate::events::Event;
use crate::exchanges::exchange::{Exchange, State};
use crate::exchanges::peer_reader::REQUESTS_MAX;
use crate::http::{Audience, Scheme, Target};
use crate::input::Entrance;
use crate::mesh::Mesh;
use crate::output::Dial;
use crate::request::{Ask, Asker, FIELDS_MAX, PeerHops};
use crate::{http, named};
use ::http::{HeaderMap, Method, Uri, Version, header};
use std::net::IpAddr;
use wire::peer::{Message, Outcome, Passed};
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
        let elsewhere = meant_for_another(mesh, &ask);
        let is_gateway = mesh.routes.is_gateway();
        let address = mesh.peers.address(peer);
        let fields = ask.fields.iter().map(|(name, value)| name.len() + value.len());
        let large = fields.sum::<usize>() > FIELDS_MAX;
        let size = size_of_ask(&ask);
        // If the number is in use, an answer would end the other request.
        let Some(client) = address.filter(|_| !known) else { return };
        let understood = understand(cx, peer, client, ask);
        let sent_on = understood.as_ref().ok().filter(|_| is_gateway);
        let sent_on = sent_on.and_then(|ask| elsewhere::nearer(cx, ask));
        let outcome = match understood {
            // The order matters: a loop is answered as such even by a router that is full, so that
            // the other asks elsewhere.
            _ if loops => Outcome::Loop,
            _ if is_full => Outcome::Busy,
            Err(outcome) => {
                cx.report.asks_unknown += u64::from(outcome == Outcome::NotUnderstood);
                outcome
            }
            Ok(_) if elsewhere.is_some() => elsewhere.unwrap_or(Outcome::Busy),
            // The gateway is spared also what it has itself, where another copy is no farther.
            Ok(_) if sent_on.is_some() => {
                cx.report.redirects += 1;
                sent_on.unwrap_or(Outcome::Busy)
            }
            // A head of this size would not fit into a message to the next hop.
            Ok(_) if large => Outcome::Busy,
            Ok(ask) if self.has_room_for(cx, peer, cost_of_ask(size)) => {
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
            Ok(_) => {
                cx.report.asks_short += 1;
                Outcome::Busy
            }
        };
        cx.say(peer, Message::End(request, outcome));
    }
}

/// The answer to a request that only another node may answer; `None` if this node may.
fn meant_for_another(mesh: &Mesh, ask: &peer::Get) -> Option<Outcome> {
    let to = ask.options.to.filter(|to| *to != mesh.peers.own_id())?;
    Some(elsewhere::at(mesh, [to], &ask.visited))
}

/// Whether a request that was for this router goes on towards the gateway: a router to which a name is hashed gets what it
/// lacks.
fn goes_on_from_here(cx: &Context, towards: IpAddr) -> bool {
    cx.mesh.as_ref().is_some_and(|mesh| {
        mesh.config.selection.hashes() && mesh.routes.own_address() == Some(towards)
    })
}

/// Translates a peer's request.
///
/// # Errors
/// The outcome, if it is malformed or not understood.
fn understand(cx: &Context, peer: NodeId, client: IpAddr, ask: peer::Get) -> Result<Ask, Outcome> {
    let size = size_of_ask(&ask);
    let uri: Uri = ask.uri.parse().map_err(|_| Outcome::Malformed)?;
    if uri.scheme().is_some() && Scheme::of(&uri).is_none() {
        return Err(Outcome::NotUnderstood);
    }
    let target = Target::read(&uri).ok_or(Outcome::Malformed)?;
    let mut headers = http::headers(&ask.fields).ok_or(Outcome::Malformed)?;
    // A hostile peer may send fields that an honest one strips.
    http::strip_hop_by_hop(&mut headers);
    // The URI has the host; a second one might contradict it.
    headers.remove(header::HOST);
    http::add_via(&mut headers, Version::HTTP_11, &cx.via);
    let options = ask.options;
    if let Some(range) = options.range {
        headers.insert(header::RANGE, http::range_field(range));
    }
    // By name: an address that the peer found may lead elsewhere from here.
    let dial = Dial::Name(target.host().to_owned(), target.port());
    let peer_hops = PeerHops {
        size,
        visited: ask.visited,
        hops: ask.hops,
        per_hop: ask.per_hop,
        to_gateway: false,
        towards: options.towards.filter(|it| !goes_on_from_here(cx, *it)),
        elsewhere: options.elsewhere,
        forwarded: false,
        // What is only passed on has no record.
        resume: ask.resume.filter(|_| options.passed.is_none()),
        have: ask.have.filter(|_| options.passed.is_none()),
        manifest_credit: ask.manifest_credit,
        given: 0,
        // A peer may ask for any credit, but we buffer only so much for it.
        credit: i64::from(ask.credit.min(CREDIT_MAX)),
        sparing: ask.sparing,
        passed: options.passed.is_some(),
        upstream: String::new(),
    };
    let (verdict, expected) = classify(cx, &target, options.digest);
    let ask = Ask {
        asker: Asker::Peer(peer, ask.request),
        peer_hops,
        method: if options.passed == Some(Passed::Head) { Method::HEAD } else { Method::GET },
        verdict,
        // Peers get only what everyone may have.
        key: target.key(&cx.config.secret, Audience::Everyone),
        target,
        named: None,
        expected,
        follow: options.follow,
        headers,
        client,
        audience: Audience::Everyone,
        may_turn_home: false,
        entrance: Entrance::Explicit,
        dial,
        has_body: false,
        upgrade: false,
        takes_interim: false,
        binding: None,
        alone: !ask.merge,
        cookies: HeaderMap::new(),
        verified: true,
    };
    let ask = named::understand(ask, &cx.config.secret).map_err(|_| Outcome::Malformed)?;
    // Nothing certifies what is passed on, so it cannot be a published object.
    if ask.named.is_some() && ask.peer_hops.passed {
        return Err(Outcome::NotUnderstood);
    }
    Ok(ask)
}
