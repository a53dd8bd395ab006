//! What peers say, and what follows from it.

use super::Node;
use super::charge::size_of_ask;
use crate::client::exchange::{Exchange, State};
use crate::client::supplying::{REQUESTS_MAX, requests_of};
use crate::http::{self, Audience, Row, Target};
use crate::input::{Entrance, ExchangeId, LinkInput};
use crate::named;
use crate::output::{Dial, LinkOutput, Output};
use crate::peers::{Down, Event};
use crate::publish::hints;
use crate::request::{Ask, Asker, Trail};
use crate::routes::RouteTable;
use crate::source::FIELDS_MAX;
use ::http::{HeaderMap, Method, Uri, Version, header};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use wire::NodeId;
use wire::peer::{self, Message, Outcome, Refusal, Request, Resume};

/// More credit than this is not used at once, in bytes.
const CREDIT_MAX: u32 = 64 * 1024;

impl Node {
    /// Something happened to a connection with a peer.
    pub(super) fn link(&mut self, input: LinkInput) {
        if let LinkInput::Received(_, bytes) = &input {
            self.cx.report.peer_in_bytes += bytes.len() as u64;
        }
        if let Some(mesh) = &mut self.cx.mesh {
            mesh.peers.handle(self.cx.now, input);
        }
    }

    /// The way to the gateway has changed.
    pub(super) fn routes(&mut self, routes: RouteTable) {
        let Some(mesh) = &mut self.cx.mesh else { return };
        mesh.set_routes(self.cx.now, routes);
        mesh.meet(self.cx.now);
        // Who had no way may have one now.
        self.look_after();
    }

    /// Hands out what is to be said to peers.
    pub(super) fn talk(&mut self) {
        hints::tell(&mut self.cx);
        let Some(mesh) = &mut self.cx.mesh else { return };
        while let Some(output) = mesh.peers.poll_output() {
            if let LinkOutput::Write(_, bytes) = &output {
                self.cx.report.peer_out_bytes += bytes.len() as u64;
            }
            self.cx.out.push_back(Output::Link(output));
        }
    }

    pub(super) fn peer_event(&mut self, event: Event) {
        match event {
            Event::Up { peer, dialled } => self.peer_up(peer, dialled),
            Event::Hello(..) => self.introduce(),
            Event::Message(peer, message) => self.message(peer, message),
            Event::Chunk(peer, head, bytes) => self.unit_part(peer, head, bytes),
            Event::Down(peer, _) => self.peer_down(peer),
            Event::Failed(address, why) => {
                let mesh = self.cx.mesh.as_mut();
                if let Down::Refused(refusal) = why
                    && mesh.is_some_and(|mesh| mesh.routes.is_news(self.cx.now, address.ip()))
                {
                    self.cx
                        .notice(format!("the node at {address} refuses us: {}", reason(refusal)));
                }
                self.no_peer(address);
            }
            Event::Room(peer) => self.supply_peer(peer),
            Event::DataLost(peer) => self.want_again(peer),
            Event::Rejected(address, refusal) => {
                self.cx.notice(format!("refused a node at {address}: {}", reason(refusal)));
            }
            Event::Expelled(_, address, why) => {
                self.cx.notice(format!("left the peer at {address} for a while: {why}"));
            }
        }
    }

    fn peer_up(&mut self, peer: NodeId, dialled: Option<SocketAddr>) {
        self.introduce();
        let (Some(mesh), Some(address)) = (&mut self.cx.mesh, dialled) else { return };
        mesh.routes.found(address.ip());
        // Whoever is dialled will be asked: a lost SYN, for which TCP waits a second, is better lost now.
        mesh.peers.open_data(self.cx.now, peer);
        self.source.found(&mut self.cx, address);
    }

    /// What a peer says of the gateway may be news to us, and so to the others.
    fn introduce(&mut self) {
        if let Some(mesh) = &mut self.cx.mesh {
            mesh.introduce(self.cx.now);
        }
    }

    fn no_peer(&mut self, address: SocketAddr) {
        let waited = self.source.found_nobody(&mut self.cx, address);
        let Some(mesh) = &mut self.cx.mesh else { return };
        if !waited && hints::found_nobody(self.cx.now, mesh, address.ip()) {
            // It was only to be met, and may just be starting.
            mesh.routes.missed(self.cx.now);
        } else {
            mesh.routes.pass_over(self.cx.now, address.ip());
        }
    }

    /// What a peer had on its way to us is lost with the connection.
    fn want_again(&mut self, peer: NodeId) {
        for id in self.source.given_by(peer) {
            self.source.want_again(&mut self.cx, id);
        }
    }

    fn peer_down(&mut self, peer: NodeId) {
        let Some(mesh) = &mut self.cx.mesh else { return };
        mesh.holders.gone(peer);
        let mut supplied: Vec<ExchangeId> = requests_of(&self.client.supplied, peer).collect();
        supplied.sort_unstable();
        for id in supplied {
            self.leave(id);
        }
        self.source.peer_is_gone(&mut self.cx, peer);
    }

    fn message(&mut self, peer: NodeId, message: Message) {
        match message {
            Message::Ask(ask) => self.peer_asks(peer, *ask),
            Message::Head(request, head) => self.record_head(peer, request, *head),
            Message::Segment(request, signature, bytes) => {
                self.segment(peer, request, *signature, &bytes);
            }
            Message::Opaque(request, opaque) => self.opaque_head(peer, request, *opaque),
            Message::Bytes(request, offset, bytes) => {
                self.opaque_bytes(peer, request, offset, bytes);
            }
            Message::End(request, outcome) => {
                self.source.peer_ends(&mut self.cx, (peer, request), outcome);
            }
            Message::Lost(request, names) => self.units_lost(peer, request, &names),
            Message::Credit(request, bytes, cover) => {
                if let Some(id) = self.client.supplied(peer, request) {
                    self.peer_credit(id, bytes, cover);
                }
            }
            Message::Want(request, wants) => {
                if let Some(id) = self.client.supplied(peer, request) {
                    self.peer_wants(id, wants);
                }
            }
            Message::Unwant(request, names) => {
                if let Some(id) = self.client.supplied(peer, request) {
                    self.client.peer_unwants(&mut self.cx, id, &names);
                }
            }
            Message::Cancel(request) => {
                if let Some(id) = self.client.supplied(peer, request) {
                    self.leave(id);
                }
            }
            Message::Hold(names) => hints::hold(&mut self.cx, peer, names),
            Message::LetGo(names) => hints::let_go(&mut self.cx, peer, &names),
            // The rest is between the connections.
            Message::Hello(_) | Message::Token(_) | Message::Ping(_) | Message::Pong(_) => {}
        }
    }

    fn peer_asks(&mut self, peer: NodeId, ask: peer::Ask) {
        self.cx.report.asks_in += 1;
        let Some(mesh) = &mut self.cx.mesh else { return };
        let request = ask.request;
        let known = self.client.supplied.contains_key(&(peer, request));
        let crowd = requests_of(&self.client.supplied, peer).count() >= REQUESTS_MAX;
        let loops = ask.visited.contains(&mesh.peers.own_id());
        let address = mesh.peers.address(peer);
        let fields = ask.fields.iter().map(|(name, value)| name.len() + value.len());
        let large = fields.sum::<usize>() > FIELDS_MAX;
        let size = size_of_ask(&ask);
        let Some(client) = address.filter(|_| !known) else { return };
        let understood = self.understand_peer(peer, client, ask);
        let outcome = match understood {
            _ if loops => Outcome::Loop,
            _ if crowd => Outcome::Busy,
            None => Outcome::Malformed,
            Some(_) if large => Outcome::Busy,
            Some(ask) if self.has_room_for_ask(peer, size) => {
                return self.admit_peer(peer, request, ask);
            }
            Some(_) => {
                self.cx.report.asks_short += 1;
                Outcome::Busy
            }
        };
        self.cx.say(peer, Message::End(request, outcome));
    }

    fn admit_peer(&mut self, peer: NodeId, request: Request, ask: Ask) {
        let Some(mesh) = &mut self.cx.mesh else { return };
        let id = mesh.draw_exchange();
        self.client.supplied.insert((peer, request), id);
        self.source.look_again(self.cx.now);
        let credit = ask.trail.credit;
        self.client.exchanges.insert(id, Exchange { ask, credit, state: State::Looking });
        self.charge(id);
        self.look(id);
    }

    fn understand_peer(&self, peer: NodeId, client: IpAddr, ask: peer::Ask) -> Option<Ask> {
        let size = size_of_ask(&ask);
        let uri: Uri = ask.uri.parse().ok()?;
        let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"))?;
        let target = Target::new(authority, uri.path_and_query())?;
        let mut headers = http::headers(&ask.fields)?;
        http::strip_hop_by_hop(&mut headers);
        headers.remove(header::HOST);
        http::add_via(&mut headers, Version::HTTP_11, &self.cx.via);
        let dial = Dial::Name(target.host().to_owned(), target.port());
        let trail = Trail {
            size,
            visited: ask.visited,
            hops: ask.hops,
            per_hop: ask.per_hop,
            to_gateway: false,
            resume: ask.resume,
            have: ask.have,
            cover: ask.cover,
            given: 0,
            credit: i64::from(ask.credit.min(CREDIT_MAX)),
            sparing: ask.sparing,
            upstream: String::new(),
        };
        let ask = Ask {
            asker: Asker::Peer(peer, ask.request),
            trail,
            method: Method::GET,
            key: target.key(&self.cx.config.secret, Audience::Everyone),
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
        named::understand(ask, &self.cx.config.secret).ok()
    }

    /// A peer goes on with a transfer that was broken off.
    pub(super) fn take_up(&mut self, id: ExchangeId, resume: Resume, row: &Row) {
        let Some(key) = self.client.exchanges.get(&id).map(|exchange| exchange.ask.key) else {
            return;
        };
        let growing = self.object.fetches.iter_mut().find_map(|(fetch_id, fetch)| {
            // A record is of one object: it is not to be vouched for under the name of another.
            let same = fetch.ask.key == key;
            let storing = fetch.storing().filter(|_| same)?;
            let has = storing.record == resume.record
                && (!storing.is_hollow() || storing.segment_is_here(resume.segment));
            has.then_some(*fetch_id)
        });
        if let Some(fetch) = growing {
            return self.supply_growing(id, fetch, "collapsed");
        }
        if let Some(record) = row.records.iter().find(|record| record.id == resume.record) {
            return self.supply_closed(id, &Rc::clone(record), "hit");
        }
        let Some(exchange) = self.client.exchanges.get(&id) else { return };
        if self.has_sources(&exchange.ask) {
            let ask = exchange.ask.clone();
            let fetch = self.fetch(ask, None, "uri-miss", vec![id]);
            return self.client.put_state(id, State::Waiting(fetch));
        }
        self.client.end_supply(&mut self.cx, id, Outcome::UnknownRecord);
        self.leave(id);
    }
}

fn reason(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Version => "it speaks another version of the protocol",
        Refusal::MeshKey => "its mesh key is another than ours",
        Refusal::Identity => "its identity is not proven, or unwelcome for a while",
        Refusal::Busy => "it has too many peers",
        Refusal::Token => "the token for chunks is unknown, or was used before",
    }
}
