//! Reaching whoever can answer a request of ours: the next hop, the gateway, the origin; and another
//! one when the way breaks.

use super::hear::fields;
use super::{LOOK_EVERY, Node};
use crate::exchange::{Asker, State};
use crate::fetch::{self, Fetch, Via};
use crate::http::{Audience, Record, selects};
use crate::input::{ExchangeId, FetchError, FetchId};
use crate::mesh::Mesh;
use crate::output::{self, OriginOutput, Output};
use crate::source::Choice;
use crate::storing::Tail;
use crate::supplying::COVER;
use ::http::{HeaderMap, HeaderValue, header};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use wire::peer::{Ask, Message, Request, Resume};
use wire::{Instant, NodeId};

/// Who joined a request that has no head after so long, of a peer that says nothing, goes to the gateway,
/// alone (protocol: No loops).
const JOINED_PATIENCE: Duration = Duration::from_secs(2);
/// While the peer sends other things the air is full, and one more copy would fill it more; but nobody
/// waits longer than this.
const JOINED_MAX: Duration = Duration::from_secs(10);
/// A peer that gives nothing for so long is not given up: another is asked too, where there is one, and
/// who answers first is listened to. Three losses of the same packet in a row, with the pauses that TCP
/// makes in between, fit in.
const HOP_PATIENCE: Duration = Duration::from_secs(5);
/// If nobody else can be asked, units are waited for so long, of a peer that gives nothing at all: a little
/// less than a client's minute.
const GIVER_PATIENCE: Duration = Duration::from_secs(55);
/// A head may take so long: the origin may be slow.
const HEAD_PATIENCE: Duration = Duration::from_secs(60);
/// A transfer whose way broke waits so long for another one.
const STRANDED_MAX: Duration = Duration::from_secs(20);
/// On behalf of a peer not so long: the peer may have a way of its own, and waits itself.
const RELAY_STRANDED_MAX: Duration = Duration::from_secs(3);
/// A transfer of which nothing has come for so long, though more is to be listed, is looked at anew.
const ANEW: Duration = Duration::from_secs(2);
/// Bytes of a response that is not stored may come before the asker has said more.
pub(super) const CREDIT: u32 = 16 * 1024;
/// More of header fields than that, in bytes, are for the origin itself: peers keep what they are asked.
pub(super) const FIELDS_MAX: usize = 16 * 1024;
/// So is a longer path.
const URI_MAX: usize = 8 * 1024;

impl Node {
    /// Asks whoever is the right one now.
    pub(super) fn reach(&mut self, id: FetchId) {
        let Some(fetch) = self.fetches.get(&id) else { return };
        match self.choose(fetch) {
            Choice::Peer(address) => self.ask_at(id, address),
            Choice::Origin => self.ask_origin(id),
        }
    }

    /// Who is the right one to be asked next.
    pub(super) fn choose(&self, fetch: &Fetch) -> Choice {
        let Some(mesh) = &self.cx.mesh else { return Choice::Origin };
        let ask = &fetch.ask;
        if let Some(name) = &ask.named {
            return self.choose_holder(fetch, name);
        }
        let kept = ask.audience != Audience::Everyone;
        let stays = mesh.routes.route().is_none() || kept || self.is_direct(fetch);
        let wide = ask.trail.hops == 0 || ask.trail.visited.len() >= Ask::VISITED_MAX;
        if stays || wide {
            return Choice::Origin;
        }
        let per_hop = is_per_hop(ask, mesh);
        let for_client = ask.asker == Asker::Client;
        let visited = |peer| ask.trail.visited.contains(&peer);
        let may = |address: &IpAddr| {
            !fetch.tried.contains(address) && !mesh.peers.at(*address).is_some_and(visited)
        };
        let first = |address| may(&address) && !mesh.is_passed_over(self.cx.now, address);
        match mesh.ways().choose(per_hop, first) {
            // The origin is of no use to it: whoever did not answer lately may do so again. A peer that asks
            // may have a way of its own, and waits itself.
            Choice::Origin if for_client && matches!(fetch.state, fetch::State::Storing(_)) => {
                mesh.ways().choose(per_hop, |address| may(&address))
            }
            choice => choice,
        }
    }

    /// Whether an origin is in the mesh itself, or the request cannot be told to a peer.
    fn is_direct(&self, fetch: &Fetch) -> bool {
        let target = &fetch.ask.target;
        let within = |address: IpAddr| self.cx.config.access.is_direct(address);
        let known = self.cx.names.get(target.host(), self.cx.now);
        let long: usize = fetch.headers.iter().map(|(n, v)| n.as_str().len() + v.len() + 8).sum();
        target.address().is_some_and(within)
            || known.is_some_and(|addresses| addresses.iter().any(|address| within(*address)))
            || long > FIELDS_MAX
            || target.path().len() > URI_MAX
    }

    fn ask_at(&mut self, id: FetchId, address: IpAddr) {
        let Some(mesh) = &mut self.cx.mesh else { return };
        if let Some(peer) = mesh.peers.at(address) {
            return self.ask_peer(id, peer, address);
        }
        let socket = mesh.socket(address);
        mesh.dialling.entry(socket).or_default().push(id);
        mesh.peers.dial(self.cx.now, socket);
        if let Some(fetch) = self.fetches.get_mut(&id) {
            fetch.via = Via::Dialling(socket);
        }
        self.look_at.get_or_insert(self.cx.now + LOOK_EVERY);
    }

    /// No peer can be asked: the origin is, where that makes sense.
    fn ask_origin(&mut self, id: FetchId) {
        if self.cannot_fill(id) || self.has_no_holder(id) {
            return;
        }
        let vouches = self.vouches_for(id);
        if self.fall_back(id) {
            return;
        }
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        match &fetch.state {
            // Two versions are never spliced: it has to be the same transfer, by another way.
            fetch::State::Storing(_) => {
                fetch.via = Via::Nobody;
                fetch.stranded.get_or_insert(self.cx.now);
                fetch.tried.clear();
                self.look_at.get_or_insert(self.cx.now + LOOK_EVERY);
            }
            _ if vouches => self.dial_origin(id),
            _ => self.end(id, Err(FetchError::NoRoute)),
        }
    }

    /// Whether what we would dial for is of use to who asked: where gateways are named, peers believe
    /// nobody else.
    fn vouches_for(&self, id: FetchId) -> bool {
        let Some((mesh, fetch)) = self.cx.mesh.as_ref().zip(self.fetches.get(&id)) else {
            return true;
        };
        let for_peer = matches!(fetch.ask.asker, Asker::Peer(..));
        let takes_up = fetch.ask.trail.resume.is_some();
        !for_peer || (!takes_up && mesh.believes(&mesh.peers.own_key()))
    }

    /// Asks the origin itself.
    pub(super) fn dial_origin(&mut self, id: FetchId) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        (fetch.via, fetch.granted, fetch.received) = (Via::Origin, 0, 0);
        let request = origin_request(fetch, fetch.headers.clone());
        self.cx.out.push_back(Output::Origin(OriginOutput::Fetch(id, Box::new(request))));
    }

    fn ask_peer(&mut self, id: FetchId, peer: NodeId, address: IpAddr) {
        let Some((mesh, fetch)) = self.cx.mesh.as_mut().zip(self.fetches.get_mut(&id)) else {
            return;
        };
        let request = mesh.draw_request();
        fetch.via = Via::Peer(peer, request);
        fetch.tried.push(address);
        fetch.moved = self.cx.now;
        mesh.asks.insert((peer, request), id);
        let per_hop = is_per_hop(&fetch.ask, mesh);
        fetch.ask.trail.sparing |=
            self.cx.ear.as_ref().is_some_and(|ear| ear.is_hopeful(self.cx.now));
        if matches!(fetch.state, fetch::State::Asking) {
            fetch.granted = u64::from(CREDIT);
        }
        let message = message(fetch, request, per_hop, mesh.peers.own_id());
        mesh.peers.open_data(self.cx.now, peer);
        if !mesh.peers.send(self.cx.now, peer, &Message::Ask(Box::new(message))) {
            mesh.asks.remove(&(peer, request));
            return self.ask_origin(id);
        }
        self.cx.report.asks_out += 1;
        self.look_at.get_or_insert(self.cx.now + LOOK_EVERY);
    }

    /// A transfer is over, for us: nothing more of it is wanted.
    pub(super) fn remove_fetch(&mut self, id: FetchId) -> Option<Fetch> {
        let fetch = self.fetches.remove(&id)?;
        self.lines.remove(&fetch.line(id));
        self.put_ends(id);
        let Some(mesh) = &mut self.cx.mesh else { return Some(fetch) };
        for asked in fetch.former.into_iter().chain(fetch.request()) {
            mesh.withdraw(self.cx.now, asked);
        }
        if let Some(ear) = &mut self.cx.ear {
            ear.unwant(self.cx.now, &self.cx.flights.wants_of(id));
        }
        // Others may have waited for units that were asked for by this one.
        self.cx.turns.all_ready(self.cx.flights.remove_all(id));
        Some(fetch)
    }

    /// What a transfer was asked of is gone, or of no use: it goes on by another way.
    pub(super) fn lose_way(&mut self, id: FetchId) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        if let (Some(asked), Some(mesh)) = (fetch.request(), &mut self.cx.mesh) {
            mesh.withdraw(self.cx.now, asked);
        }
        fetch.via = Via::Nobody;
        if self.fall_back(id) {
            return;
        }
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        match &mut fetch.state {
            fetch::State::Storing(storing) => {
                if let Some(listed) = storing.listed() {
                    listed.answered = false;
                    // Whoever is asked next lists more of it, or begins its bytes elsewhere.
                    listed.tail = Tail::default();
                    // What one does not have another may.
                    listed.lost.clear();
                }
                let whole = storing.whole.clone();
                fetch.stranded.get_or_insert(self.cx.now);
                self.cx.report.resumes += 1;
                self.resume(id, whole);
            }
            fetch::State::Asking => self.ask_next(id),
            // Opaque bodies do not resume.
            _ => self.end(id, Err(FetchError::Truncated)),
        }
    }

    /// A transfer goes on by another way; if nothing of it is on its way, what is here is kept first.
    fn resume(&mut self, id: FetchId, whole: Option<Rc<Record>>) {
        self.cx.flights.drop_parts(id);
        let flying = self.cx.flights.has(id);
        match whole {
            Some(record) if !flying => self.finish_listed(id, &record),
            _ => self.ask_next(id),
        }
    }

    /// Looks whether what was asked of peers comes on.
    pub(super) fn look_after(&mut self) {
        let by_peer = |(id, fetch): (&FetchId, &Fetch)| {
            (!matches!(fetch.via, Via::Origin | Via::Publisher | Via::Done)).then_some(*id)
        };
        let mut ids: Vec<FetchId> = self.fetches.iter().filter_map(by_peer).collect();
        ids.sort_unstable();
        for id in &ids {
            self.look_after_joined(*id);
            self.look_after_one(*id);
        }
        self.end_idle();
        self.grant_anew();
        let bodies = self.look_after_bodies();
        let supplies = self.cx.mesh.as_ref().is_some_and(|mesh| !mesh.supplied.is_empty());
        if !ids.is_empty() || supplies || bodies {
            self.look_at.get_or_insert(self.cx.now + LOOK_EVERY);
        }
    }

    fn look_after_one(&mut self, id: FetchId) {
        let Some(fetch) = self.fetches.get(&id) else { return };
        let silent = self.silent_for(fetch);
        // A peer may have a way of its own, and waits itself; but one that was just found has its time.
        let is_at_a_loss = fetch.via == Via::Nobody && fetch.ask.asker != Asker::Client;
        let patience = if is_at_a_loss { RELAY_STRANDED_MAX } else { STRANDED_MAX };
        let stranded = fetch.stranded.is_some_and(|since| self.cx.now - since > patience);
        if stranded && silent > patience {
            return self.end(id, Err(FetchError::NoRoute));
        }
        match fetch.via {
            Via::Nobody if matches!(fetch.state, fetch::State::Passing(..)) => {}
            Via::Nobody => {
                if let Some(fetch) = self.fetches.get_mut(&id) {
                    fetch.tried.clear();
                }
                self.ask_next(id);
            }
            Via::Peer(..) => self.look_after_asked(id, silent),
            Via::Dialling(_) | Via::Origin | Via::Publisher | Via::Done | Via::Next => {}
        }
    }

    /// For how long whoever gives a transfer has given nothing, for it or for any other: a peer that
    /// gives to others is slow, not dead.
    fn silent_for(&self, fetch: &Fetch) -> Duration {
        let gave = self.cx.mesh.as_ref().zip(fetch.giver());
        let gave = gave.and_then(|(mesh, peer)| mesh.peers.gave(peer));
        self.cx.now - gave.map_or(fetch.moved, |gave| fetch.moved.max(gave))
    }

    /// A peer that was asked has its time; what that is depends on what is waited for.
    fn look_after_asked(&mut self, id: FetchId, silent: Duration) {
        let flying = self.cx.is_flying(id);
        let Some(fetch) = self.fetches.get(&id) else { return };
        let waited = self.cx.now - fetch.moved;
        let (patience, giver) = (HOP_PATIENCE * self.asked_beside(fetch), fetch.giver());
        let (awaits, open) = match &fetch.state {
            fetch::State::Asking => (true, false),
            fetch::State::Storing(storing) => {
                let awaits = flying || !storing.is_answered();
                (awaits, !flying && !storing.ended && !storing.is_loose())
            }
            _ => return,
        };
        let is_asking = matches!(fetch.state, fetch::State::Asking);
        let (first, since) = (fetch.former.is_none(), fetch.moved);
        let mute = self.is_mute(giver.filter(|_| awaits || open), since);
        if mute && first && self.may_ask_another(id) {
            self.ask_another(id);
        } else if mute && first && self.may_dial_beside(id) {
            self.fetches.entry(id).and_modify(|fetch| fetch.beside = true);
            self.ask_another(id);
        } else if awaits
            && (silent > patience || waited > HEAD_PATIENCE)
            && self.may_ask_another(id)
        {
            self.ask_another(id);
        } else if (open || is_asking) && waited > HEAD_PATIENCE {
            self.lose_way(id);
        } else if flying && silent > GIVER_PATIENCE {
            self.end(id, Err(FetchError::NoRoute));
        } else if let Some((mesh, peer)) = self.cx.mesh.as_mut().zip(giver).filter(|_| flying) {
            mesh.peers.hurry(self.cx.now, peer);
        } else if open && waited > ANEW {
            self.want_anew(id);
        }
    }

    /// Whether a peer that something has been waited for since then seems to be gone: it does not even answer
    /// pings. If it has said nothing for a while, it is asked.
    fn is_mute(&mut self, giver: Option<NodeId>, since: Instant) -> bool {
        let Some((mesh, giver)) = self.cx.mesh.as_mut().zip(giver) else { return false };
        mesh.peers.doubt(self.cx.now, giver, since);
        mesh.peers.is_mute(self.cx.now, giver)
    }

    /// Whether the origin can be asked while a peer may still answer: not once a head has come, since two
    /// versions are never spliced.
    fn may_dial_beside(&self, id: FetchId) -> bool {
        let Some(fetch) = self.fetches.get(&id) else { return false };
        let asks = matches!(fetch.state, fetch::State::Asking);
        asks && !fetch.beside && fetch.ask.named.is_none() && self.vouches_for(id)
    }

    /// How many transfers wait for the same peer, this one among them: each that goes elsewhere is more
    /// load there, so the more they are, the longer they wait. One, where the route leads elsewhere anyway.
    fn asked_beside(&self, fetch: &Fetch) -> u32 {
        let Some((mesh, giver)) = self.cx.mesh.as_ref().zip(fetch.giver()) else { return 1 };
        let first = mesh.ways().choose(is_per_hop(&fetch.ask, mesh), |_| true);
        if !matches!(first, Choice::Peer(address) if mesh.peers.at(address) == Some(giver)) {
            return 1;
        }
        mesh.asks.keys().filter(|(peer, _)| *peer == giver).count().max(1) as u32
    }

    /// Whether there is a peer that could be asked and was not.
    pub(super) fn may_ask_another(&self, id: FetchId) -> bool {
        let fetch = self.fetches.get(&id);
        fetch.is_some_and(|fetch| matches!(self.choose(fetch), Choice::Peer(_)))
    }

    /// The next hop takes its time, perhaps because the origin does, or the air is full: another is asked
    /// too, and who answers first is listened to. Until then units are wanted of the former.
    fn ask_another(&mut self, id: FetchId) {
        self.is_silent(id);
        let Some((mesh, fetch)) = self.cx.mesh.as_mut().zip(self.fetches.get_mut(&id)) else {
            return;
        };
        match (fetch.former, fetch.request()) {
            // Of three, the one that has not helped yet is let go.
            (Some(_), Some(asked)) => mesh.withdraw(self.cx.now, asked),
            (_, asked) => fetch.former = asked,
        }
        self.ask_next(id);
    }

    /// The other one that was asked is of no help with a transfer: who was asked before goes on with it.
    pub(super) fn fall_back(&mut self, id: FetchId) -> bool {
        let Some((mesh, fetch)) = self.cx.mesh.as_mut().zip(self.fetches.get_mut(&id)) else {
            return false;
        };
        let of_use = match fetch.state {
            fetch::State::Storing(_) => true,
            fetch::State::Asking => fetch.via == Via::Origin,
            _ => false,
        };
        let Some((peer, request)) = fetch.former.take_if(|_| of_use) else { return false };
        if let Some(asked) = fetch.request() {
            mesh.asks.remove(&asked);
        }
        fetch.turn_back(peer, request);
        true
    }

    /// Nobody but who is asked now is listened to any more.
    pub(super) fn forget_former(&mut self, id: FetchId) {
        let Some((mesh, fetch)) = self.cx.mesh.as_mut().zip(self.fetches.get_mut(&id)) else {
            return;
        };
        if let Some(former) = fetch.former.take() {
            mesh.withdraw(self.cx.now, former);
        }
    }

    /// One of two who were asked has answered: the other's answer is not wanted any more.
    pub(super) fn listen_to(&mut self, id: FetchId, peer: NodeId, request: Request) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let Some(former) = fetch.former.take() else { return };
        if fetch.via == Via::Origin {
            self.cx.out.push_back(Output::Origin(OriginOutput::Cancel(fetch.line(id))));
        }
        let stays = former == (peer, request);
        let other = if stays { fetch.request() } else { Some(former) };
        fetch.turn_back(peer, request);
        let Some(mesh) = &mut self.cx.mesh else { return };
        if !stays {
            self.cx.flights.drop_parts(id);
        }
        if let Some(other) = other {
            mesh.withdraw(self.cx.now, other);
        }
    }

    /// Who joined a request that has no head yet does not wait for ever.
    fn look_after_joined(&mut self, id: FetchId) {
        let Some((mesh, fetch)) = self.cx.mesh.as_ref().zip(self.fetches.get_mut(&id)) else {
            return;
        };
        let gave = fetch.peer().and_then(|peer| mesh.peers.gave(peer));
        let silent = gave.is_none_or(|gave| self.cx.now - gave > JOINED_PATIENCE);
        let patience = if silent { JOINED_PATIENCE } else { JOINED_MAX };
        let due = |(at, _): &(_, _)| self.cx.now - *at > patience;
        let count = fetch.joined.iter().take_while(|it| due(it)).count();
        let impatient: Vec<ExchangeId> = fetch.joined.drain(..count).map(|(_, id)| id).collect();
        fetch.waiters.retain(|waiter| !impatient.contains(waiter));
        let old = fetch.old.clone();
        for waiter in impatient {
            let Some(exchange) = self.exchanges.get_mut(&waiter) else { continue };
            if matches!(exchange.state, State::Waiting(fetch) if fetch == id) {
                exchange.ask.alone = true;
                exchange.ask.trail.to_gateway = true;
                let old = old.clone().filter(|old| selects(old, &exchange.ask.headers));
                self.miss(waiter, old, "uri-miss");
            }
        }
    }
}

impl Fetch {
    /// Goes on with a peer that was asked, whoever was asked meanwhile.
    fn turn_back(&mut self, peer: NodeId, request: Request) {
        if self.via == Via::Origin {
            // As when it was asked; nothing of the origin has come.
            (self.granted, self.received) = (u64::from(CREDIT), 0);
        }
        self.via = Via::Peer(peer, request);
    }
}

/// Whether each hop is to look, keep and forward: it is a flag of the request, not another transfer.
pub(super) fn is_per_hop(ask: &crate::exchange::Ask, mesh: &Mesh) -> bool {
    let wished = match ask.asker {
        Asker::Client => mesh.per_hop(),
        Asker::Peer(..) => ask.trail.per_hop,
    };
    wished && !ask.trail.to_gateway
}

/// What an origin is asked for a transfer, with these fields.
pub(super) fn origin_request(fetch: &Fetch, headers: HeaderMap) -> output::Fetch {
    let ask = &fetch.ask;
    let exchange = fetch.starter.filter(|_| ask.has_body || ask.upgrade);
    output::Fetch { exchange, ..bare_request(ask, headers) }
}

/// A request with these fields and without content.
pub(super) fn bare_request(ask: &crate::exchange::Ask, mut headers: HeaderMap) -> output::Fetch {
    let host = HeaderValue::try_from(ask.target.authority());
    headers.insert(header::HOST, host.expect("it was read as one"));
    output::Fetch {
        dial: ask.dial.clone(),
        client: ask.client,
        caller: ask.caller(),
        method: ask.method.clone(),
        path: ask.target.path().to_owned(),
        headers,
        exchange: None,
    }
}

fn message(fetch: &mut Fetch, request: Request, per_hop: bool, own: NodeId) -> Ask {
    let mut resume = fetch.ask.trail.resume;
    let mut cover = fetch.ask.trail.cover.max(COVER);
    if let Some(storing) = fetch.storing() {
        let record = storing.record;
        resume = storing.listed().map(|listed| {
            cover = cover.max(listed.cover);
            Resume { record, segment: listed.next }
        });
    }
    let trail = &fetch.ask.trail;
    let visited = trail.visited.iter().copied().chain([own]).collect();
    Ask {
        request,
        hops: trail.hops - 1,
        visited,
        merge: !fetch.ask.alone,
        per_hop,
        resume,
        have: fetch.old.as_ref().filter(|_| fetch.confirms).map(|old| old.id),
        sparing: trail.sparing,
        cover,
        credit: CREDIT,
        uri: fetch.ask.target.to_string(),
        // `Host` is not among them: the URI has it.
        fields: fields(&fetch.headers),
    }
}
