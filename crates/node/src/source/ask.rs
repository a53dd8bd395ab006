//! Sends a request: to a peer, which may have to be dialled first, or to the origin.

use super::select::{Answer, Here, Said};
use super::{LOOK_EVERY, Source, Value};
use crate::context::Context;
use crate::events::{Event, SourceKind};
use crate::http::{fields, only_range};
use crate::input::{FetchError, FetchId};
use crate::mesh::Mesh;
use crate::output::{OriginOutput, Output};
use crate::pursuits::{Goal, Pursuit, Upstream};
use crate::request::{CREDIT, MANIFEST_CREDIT};
use crate::stock::name_of;
use crate::{hints, output};
use ::http::{HeaderMap, Method, header};
use std::net::{IpAddr, SocketAddr};
use wire::peer::{Get, Message, Options, Passed, Request, Resume};
use wire::{Hint, NodeId};

impl Source {
    pub(super) fn reach(&mut self, cx: &mut Context, id: FetchId, from: Option<(Resume, u64)>) {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        // The router that was found did not help, or another is asked beside it.
        if pursuit.towards.is_some() {
            let (failed, name) = (pursuit.leave_holder(), name_of(&pursuit.quest.ask.key));
            // What it may still answer would be taken for an answer of a router on the way.
            self.forget_previous(cx, id);
            if let Some((at, denied)) = failed {
                self.select.in_vain(cx.now, id, at, denied);
                cx.mesh.iter_mut().for_each(|mesh| mesh.copies.remove(at, &name));
            }
        }
        let Some(pursuit) = cx.pursuits.get(&id) else { return };
        let answer = pursuit.choose(cx, id, &*self.select);
        if let Some(mesh) = &cx.mesh
            && matches!(answer, Answer::Found(_) | Answer::Holder { .. })
        {
            let may = |address| {
                pursuit.may_ask(mesh, address) && !mesh.routes.is_passed_over(cx.now, address)
            };
            let query = pursuit.query(cx.now, mesh, id, &may);
            self.select.asked(&here(cx, mesh, &|name| hints::has(cx, name)), &query, answer);
            self.poll_select(cx);
        }
        match answer {
            Answer::Found(address) => self.ask_at(cx, id, address, from),
            Answer::Holder { at, by } => {
                cx.pursuits.entry(id).and_modify(|pursuit| pursuit.towards = Some(at));
                self.ask_at(cx, id, by, from);
            }
            Answer::Later => self.begin_select(cx, id),
            Answer::Nobody => self.ask_origin(cx, id),
        }
    }

    /// Lets the scheme find out which peer to ask.
    fn begin_select(&mut self, cx: &mut Context, id: FetchId) {
        if let Some(pursuit) = cx.pursuits.get_mut(&id) {
            pursuit.via = Upstream::Selecting(cx.now);
            cx.events.emit(|| Event::Source { fetch: id, of: SourceKind::Selection });
        }
        let Some((mesh, pursuit)) = cx.mesh.as_ref().zip(cx.pursuits.get(&id)) else { return };
        let may = |address| pursuit.may_ask(mesh, address);
        let query = pursuit.query(cx.now, mesh, id, &may);
        self.select.begin(&here(cx, mesh, &|name| hints::has(cx, name)), &query);
        self.look_by(cx.now + LOOK_EVERY);
        self.poll_select(cx);
    }

    /// A datagram for the scheme has arrived.
    pub fn handle_datagram(&mut self, cx: &mut Context, from: SocketAddr, bytes: &[u8]) {
        let Some(mesh) = &cx.mesh else { return };
        self.select.handle_datagram(&here(cx, mesh, &|name| hints::has(cx, name)), from, bytes);
        self.poll_select(cx);
    }

    /// Handles the scheme's timer, if it is due.
    pub fn handle_timeout(&mut self, cx: &mut Context) {
        if self.select.poll_timeout().is_some_and(|at| at <= cx.now) {
            self.select.handle_timeout(cx.now);
            self.poll_select(cx);
        }
    }

    pub(super) fn poll_select(&mut self, cx: &mut Context) {
        while let Some(said) = self.select.poll() {
            match said {
                Said::Datagram(to, bytes) => cx.out.push_back(Output::Datagram(to, bytes)),
                Said::Broadcast(bytes) => cx.out.push_back(Output::Broadcast(bytes)),
                Said::Known(id) => {
                    if matches!(cx.pursuits.via(id), Some(Upstream::Selecting(_))) {
                        self.ask_next(cx, id);
                    }
                }
            }
        }
    }

    fn ask_at(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        address: IpAddr,
        from: Option<(Resume, u64)>,
    ) {
        let Some(mesh) = &mut cx.mesh else { return };
        if let Some(peer) = mesh.peers.at(address) {
            return self.ask_peer(cx, id, peer, address, from);
        }
        let socket = mesh.socket(address);
        self.dialling.entry(socket).or_default().push(id);
        mesh.peers.dial(cx.now, socket);
        if let Some(pursuit) = cx.pursuits.get_mut(&id) {
            pursuit.via = Upstream::Dialling(socket);
            if pursuit.towards.is_some() {
                pursuit.moved = cx.now;
            }
            let of = SourceKind::Dialled { address: socket };
            cx.events.emit(|| Event::Source { fetch: id, of });
        }
        if let Some(pursuit) = cx.pursuits.get(&id) {
            self.look_by(pursuit.look_at(cx, self.answer_time.timeout()));
        }
    }

    fn ask_peer(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        peer: NodeId,
        address: IpAddr,
        from: Option<(Resume, u64)>,
    ) {
        self.requests = self.requests.wrapping_add(1);
        let request = Request(self.requests);
        let hopeful = cx.ear.as_ref().is_some_and(|ear| ear.is_hopeful(cx.now));
        let Some((mesh, pursuit)) = cx.mesh.as_mut().zip(cx.pursuits.get_mut(&id)) else {
            return;
        };
        pursuit.via = Upstream::Peer(peer, request);
        // By address, because a router that is not connected yet has no other name. The one that leads to a holder
        // may still be asked as one on the way.
        if pursuit.towards.is_none() || pursuit.quest.ask.peer_hops.towards.is_some() {
            pursuit.tried.push(address);
        }
        pursuit.moved = cx.now;
        // Many units may have been overheard, so the peer should send only wanted ones.
        pursuit.sparing |= hopeful;
        self.asks.insert((peer, request), id);
        // What has changed goes along with the request.
        mesh.copies.tell_now(cx.now);
        let per_hop = pursuit.is_per_hop(mesh);
        let mut message = pursuit.message(request, per_hop, mesh.peers.own_id(), from);
        message.options.to = pursuit.only(peer);
        // Chunks have a connection of their own: it is opened while the peer looks the object up.
        mesh.peers.open_data(cx.now, peer);
        if !mesh.peers.send(cx.now, peer, &Message::Get(Box::new(message))) {
            self.asks.remove(&(peer, request));
            return self.ask_origin(cx, id);
        }
        cx.events.emit(|| Event::Source { fetch: id, of: SourceKind::Peer { peer } });
        cx.report.asks_out += 1;
        if let Some(pursuit) = cx.pursuits.get(&id) {
            self.look_by(pursuit.look_at(cx, self.answer_time.timeout()));
        }
    }

    /// No peer can be asked: asks the origin, if its answer can be used.
    pub(super) fn ask_origin(&mut self, cx: &mut Context, id: FetchId) {
        let Some(vouches) = cx.pursuits.get(&id).map(|it| it.is_vouched_for(cx)) else { return };
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        // Holes are filled from the origin by range requests, which are transfers of their own.
        if pursuit.quest.goal == Goal::Holes {
            return self.values.push_back(Value::CannotFill(id));
        }
        if pursuit.is_for_peers() && !pursuit.quest.goal.is_object() {
            return match pursuit.previous.take() {
                // The peer asked first may only be slow.
                Some((peer, request)) => pursuit.via = Upstream::Peer(peer, request),
                None => self.ends(id, Err(FetchError::NoHolder)),
            };
        }
        if self.fall_back(cx, id) {
            return;
        }
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        if pursuit.quest.goal.is_object() {
            // Two versions must not be spliced: the same transfer has to continue by another route.
            if pursuit.via != Upstream::Nobody || pursuit.lost_route_at.is_none() {
                cx.events.emit(|| Event::Source { fetch: id, of: SourceKind::None });
            }
            pursuit.via = Upstream::Nobody;
            pursuit.lost_route_at.get_or_insert(cx.now);
            pursuit.tried.clear();
            self.look_by(cx.now + LOOK_EVERY);
        } else if vouches {
            self.dial_origin(cx, id);
        } else {
            self.ends(id, Err(FetchError::NoRoute));
        }
    }

    /// Sends the request to the origin.
    pub fn dial_origin(&mut self, cx: &mut Context, id: FetchId) {
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        pursuit.via = Upstream::Origin;
        self.detours.remember_token(cx, id);
        let works = cx.store_works();
        let Some(pursuit) = cx.pursuits.get_mut(&id) else { return };
        if works && let Some(from) = cx.parts.ask_for_rest(&mut pursuit.quest) {
            cx.events.emit(|| Event::Resume { fetch: id, from });
            cx.report.resumes += 1;
        }
        cx.events.emit(|| Event::Source { fetch: id, of: SourceKind::Origin });
        let request = pursuit.origin_request(pursuit.quest.headers.clone());
        cx.out.push_back(Output::Origin(OriginOutput::Fetch(id, Box::new(request))));
    }

    /// A peer that was dialled has connected: the requests that waited for it are sent.
    pub fn peer_is_up(&mut self, cx: &mut Context, peer: NodeId, address: SocketAddr) {
        let Some(mesh) = &mut cx.mesh else { return };
        mesh.routes.found(address.ip());
        // A peer that was dialled will be asked soon. Opening the data connection now gets a lost
        // SYN, for which TCP waits a second, over with early.
        mesh.peers.open_data(cx.now, peer);
        for id in self.dialled(cx, address) {
            // It was only dialled: what is asked of it is chosen again.
            cx.pursuits.entry(id).and_modify(|pursuit| pursuit.towards = None);
            self.ask_next(cx, id);
        }
    }

    /// No peer answered at an address that was dialled.
    pub fn no_peer(&mut self, cx: &mut Context, address: SocketAddr) {
        let waited = self.found_nobody(cx, address);
        let Some(mesh) = &mut cx.mesh else { return };
        if !waited && hints::found_nobody(cx.now, mesh, address.ip()) {
            // The address was dialled only to meet a neighbour, which may still be starting.
            mesh.routes.missed(cx.now);
        } else {
            mesh.routes.pass_over(cx.now, address.ip());
        }
    }

    /// No peer answered at an address: the requests that waited for it go elsewhere. False if there
    /// were none.
    fn found_nobody(&mut self, cx: &mut Context, address: SocketAddr) -> bool {
        let waiting = self.dialled(cx, address);
        for id in &waiting {
            if let Some(pursuit) = cx.pursuits.get_mut(id) {
                pursuit.tried.push(address.ip());
                // One that leads there is not the one that has it.
                pursuit.towards.take_if(|at| *at != address.ip());
            }
            self.ask_next(cx, *id);
        }
        !waiting.is_empty()
    }

    /// The requests that wait for this dialled address, and not for another by now.
    fn dialled(&mut self, cx: &Context, address: SocketAddr) -> Vec<FetchId> {
        let mut waiting = self.dialling.remove(&address).unwrap_or_default();
        waiting.sort_unstable();
        waiting.dedup();
        let waits = |id: &FetchId| cx.pursuits.via(*id) == Some(Upstream::Dialling(address));
        waiting.retain(waits);
        waiting
    }

    pub(super) fn ends(&mut self, id: FetchId, result: Result<(), FetchError>) {
        self.values.push_back(Value::Ended(id, result));
    }
}

/// What the scheme may look up here.
fn here<'a>(cx: &Context, mesh: &'a Mesh, holds: &'a dyn Fn(&Hint) -> bool) -> Here<'a> {
    Here { now: cx.now, date: cx.date(), routes: &mesh.routes, holds }
}

impl Pursuit {
    /// The request to the origin, with these header fields.
    pub(super) fn origin_request(&self, headers: HeaderMap) -> output::Fetch {
        let bare = self.quest.ask.bare_request(headers);
        let mut request = output::Fetch { exchange: self.quest.content, ..bare };
        self.redirect(&mut request);
        request
    }

    fn message(
        &self,
        request: Request,
        per_hop: bool,
        own: NodeId,
        from: Option<(Resume, u64)>,
    ) -> Get {
        let peer_hops = &self.quest.ask.peer_hops;
        let manifest_credit = peer_hops.manifest_credit.max(MANIFEST_CREDIT);
        let (resume, manifest_credit) = match from {
            Some((resume, covered)) => (Some(resume), manifest_credit.max(covered)),
            None => (peer_hops.resume, manifest_credit),
        };
        let mut headers = self.quest.headers.clone();
        let options = self.options(&mut headers);
        Get {
            request,
            // `visited` ends loops; this ends chains that are too long to be of use.
            hops: peer_hops.hops - 1,
            visited: peer_hops.visited.iter().copied().chain([own]).collect(),
            merge: !self.quest.ask.alone,
            per_hop,
            resume,
            have: self.quest.have,
            sparing: self.sparing,
            manifest_credit,
            credit: CREDIT,
            uri: self.quest.ask.target.to_string(),
            // `Host` is not among the fields: the URI contains it.
            fields: fields(&headers),
            options,
        }
    }

    /// What the request demands besides the object. A range moves from the header fields to the options.
    fn options(&self, headers: &mut HeaderMap) -> Options {
        let ask = &self.quest.ask;
        let is_head = ask.method == Method::HEAD;
        let passed = (self.quest.goal == Goal::Pass).then_some(if is_head {
            Passed::Head
        } else {
            Passed::Get
        });
        let range = passed.and_then(|_| only_range(headers));
        if range.is_some() {
            headers.remove(header::RANGE);
        }
        Options {
            passed,
            range,
            to: None,
            follow: ask.follow,
            digest: ask.expected,
            towards: self.towards,
            elsewhere: self.roams
                && self.elsewhere.is_empty()
                && self.towards.is_none()
                && !self.stays_on_the_way(),
        }
    }
}
