//! Chooses the peer to ask next.

use super::Source;
use super::select::{Answer, Query, Select, on_the_way};
use crate::context::Context;
use crate::input::FetchId;
use crate::mesh::Mesh;
use crate::pursuits::{Goal, Pursuit, Quest};
use crate::request::{Ask, Asker, FIELDS_MAX};
use std::net::IpAddr;
use wire::{Instant, Oid, peer};

/// The longest path that a request to a peer may have, in bytes.
const URI_MAX: usize = 8 * 1024;

impl Source {
    /// Whether there is a peer that could be asked and has not been.
    pub(super) fn may_ask_another(&self, cx: &Context, id: FetchId) -> bool {
        let pursuit = cx.pursuits.get(&id);
        pursuit.is_some_and(|pursuit| pursuit.choose(cx, id, &*self.select) != Answer::Nobody)
    }

    /// The number of transfers that wait for the same peer as this one, itself included. Each one
    /// that moves is load elsewhere, so the more there are, the longer they wait (decision 0014).
    /// One if the route leads elsewhere by now.
    pub(super) fn asked_beside(&self, cx: &Context, id: FetchId, pursuit: &Pursuit) -> u32 {
        let Some((mesh, supplier)) = cx.mesh.as_ref().zip(pursuit.supplier()) else { return 1 };
        let first = pursuit.scheme_says(cx.now, mesh, id, &*self.select, &|_| true);
        let (Answer::Found(address) | Answer::Holder { by: address, .. }) = first else { return 1 };
        if mesh.peers.at(address) != Some(supplier) {
            return 1;
        }
        self.asks.keys().filter(|(peer, _)| *peer == supplier).count().max(1) as u32
    }
}

impl Pursuit {
    /// Whether a response that this node gets from the origin can be used: where gateways are
    /// configured, peers trust only them.
    pub(super) fn is_vouched_for(&self, cx: &Context) -> bool {
        let Some(mesh) = &cx.mesh else { return true };
        let for_peer = matches!(self.quest.ask.asker, Asker::Peer(..));
        let takes_up = self.quest.ask.peer_hops.resume.is_some();
        !for_peer || (!takes_up && mesh.believes(&mesh.peers.own_key()))
    }

    /// Whether the origin may be asked while a peer may still answer. Not once a head has arrived:
    /// two versions must not be spliced.
    pub(super) fn may_race_origin(&self, cx: &Context) -> bool {
        let asks = self.quest.goal == Goal::Head;
        asks && !self.origin_raced && !self.is_for_peers() && self.is_vouched_for(cx)
    }

    /// The peer to ask now: first the rules that hold under every scheme, then the scheme's choice.
    pub(super) fn choose(&self, cx: &Context, id: FetchId, select: &dyn Select) -> Answer {
        let Some(mesh) = &cx.mesh else { return Answer::Nobody };
        let ask = &self.quest.ask;
        let wide = ask.peer_hops.hops == 0 || ask.peer_hops.visited.len() >= peer::Get::VISITED_MAX;
        let may = |address| self.may_ask(mesh, address);
        let first = |address| may(address) && !mesh.routes.is_passed_over(cx.now, address);
        let referred = self.referred_to(mesh, first).filter(|_| !self.roams);
        let holder = ask.named.and_then(|name| holder(mesh, &name, first));
        // A request goes straight to the origin if peers have no part in it, if the origin is inside
        // the mesh, or if the request is too long for a peer.
        let stays =
            ask.named.is_none() && (ask.stays_here() || ask.goes_alone() || self.is_direct(cx));
        match holder {
            _ if wide => return Answer::Nobody,
            _ if ask.peer_hops.towards.is_some() => return self.onward(mesh, first),
            _ if referred.is_some() => return referred.map_or(Answer::Nobody, Answer::Found),
            Some(address) => return Answer::Found(address),
            None if stays => return Answer::Nobody,
            None if mesh.routes.route().is_none()
                && (mesh.routes.is_gateway() || !select.searches_without_way()) =>
            {
                return Answer::Nobody;
            }
            None => {}
        }
        let resumes =
            ask.asker == Asker::Client && self.quest.goal.is_object() && ask.named.is_none();
        match self.scheme_says(cx.now, mesh, id, select, &first) {
            // The client cannot use the origin any more, so a peer that did not answer lately is
            // tried again (decision 0018). A peer's request is not: that peer may have another
            // route.
            Answer::Nobody if resumes => self.scheme_says(cx.now, mesh, id, select, &may),
            answer => answer,
        }
    }

    /// Whether only those on the way to the gateway can help: the response is not stored, or the origin is to confirm it.
    pub(super) fn stays_on_the_way(&self) -> bool {
        let Quest { goal, have, ask, .. } = &self.quest;
        *goal == Goal::Pass || have.is_some() || ask.is_insistent()
    }

    /// A peer's request goes on towards the router for which it is; the scheme has no part in it.
    fn onward(&self, mesh: &Mesh, may: impl Fn(IpAddr) -> bool) -> Answer {
        let holder = self.quest.ask.peer_hops.towards.and_then(|at| {
            let by = mesh.routes.path_to(at)?.next_hop;
            may(by).then_some(Answer::Holder { at, by })
        });
        holder.unwrap_or(Answer::Nobody)
    }

    /// The scheme's choice. A request for the gateway itself does not use the scheme: that breaks
    /// loops.
    fn scheme_says(
        &self,
        now: Instant,
        mesh: &Mesh,
        id: FetchId,
        select: &dyn Select,
        may: &dyn Fn(IpAddr) -> bool,
    ) -> Answer {
        if self.to_gateway {
            return mesh.routes.ways().choose(false, may).map_or(Answer::Nobody, Answer::Found);
        }
        let query = self.query(now, mesh, id, may);
        match self.stays_on_the_way() {
            true => on_the_way(&query, mesh.per_hop()),
            false => select.choose(&query),
        }
    }

    /// The question for the scheme.
    pub(super) fn query<'a>(
        &self,
        now: Instant,
        mesh: &'a Mesh,
        id: FetchId,
        may: &'a dyn Fn(IpAddr) -> bool,
    ) -> Query<'a> {
        let per_hop = match self.quest.ask.asker {
            Asker::Client => None,
            Asker::Peer(..) => Some(self.quest.ask.peer_hops.per_hop),
        };
        let referred = self.referred.iter().flatten().map(|(_, address)| *address);
        Query {
            now,
            id,
            key: self.quest.ask.key,
            per_hop,
            routes: &mesh.routes,
            copies: &mesh.copies,
            referred: referred.filter(|_| self.roams).collect(),
            may,
        }
    }

    /// Whether a node has not been tried yet, and does not wait for this request itself.
    pub(super) fn may_ask(&self, mesh: &Mesh, address: IpAddr) -> bool {
        let visited = |peer| self.quest.ask.peer_hops.visited.contains(&peer);
        !self.tried.contains(&address) && !mesh.peers.at(address).is_some_and(visited)
    }

    /// Whether each hop is to look up, store and forward the response. This is a flag of the
    /// request.
    pub(super) fn is_per_hop(&self, mesh: &Mesh) -> bool {
        is_per_hop(&self.quest.ask, mesh) && !self.to_gateway
    }

    /// Whether the origin is inside the mesh, or the request is too long for a peer.
    fn is_direct(&self, cx: &Context) -> bool {
        let target = &self.quest.ask.target;
        let within = |address: IpAddr| cx.config.access.is_direct(address);
        let known = cx.dns.addresses(target.host(), cx.now);
        let long: usize =
            self.quest.headers.iter().map(|(n, v)| n.as_str().len() + v.len() + 8).sum();
        target.address().is_some_and(within)
            || known.is_some_and(|addresses| addresses.iter().any(|address| within(*address)))
            || long > FIELDS_MAX
            || target.path().len() > URI_MAX
    }
}

/// Whether each hop is to look up, store and forward the response to a request.
pub fn is_per_hop(ask: &Ask, mesh: &Mesh) -> bool {
    match ask.asker {
        Asker::Client => mesh.per_hop(),
        Asker::Peer(..) => ask.peer_hops.per_hop,
    }
}

/// The address of a peer that has announced a named object.
fn holder(mesh: &Mesh, name: &Oid, may: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    let holders = mesh.holders_of(name);
    holders.iter().filter_map(|peer| mesh.peers.address(*peer)).find(|address| may(*address))
}
