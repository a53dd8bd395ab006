//! Objects that are asked for by name: never stale, never an origin's, and vouched for by nobody but
//! their names.

use super::Node;
use crate::exchange::{self, Ask, Exchange, Source};
use crate::fetch::{self, Fetch, Via};
use crate::http::Row;
use crate::input::{ExchangeId, FetchError, FetchId};
use crate::named;
use crate::source::Choice;
use crate::storing::{Inflow, Listed, Signed, Storing};
use crate::supplying::COVER;
use ::http::{HeaderMap, StatusCode, header};
use content::{Root, Segment};
use std::net::IpAddr;
use std::rc::Rc;
use wire::peer::{Head, Outcome, Request};
use wire::{NodeId, Oid, RecordId};

impl Node {
    /// The row of a named object is known: what is stored answers, whatever its age.
    pub(super) fn decide_named(&mut self, id: ExchangeId, name: &Oid, row: &Row) {
        let wanted = named::record_id(name);
        if let Some(record) = row.records.iter().find(|record| record.id == wanted) {
            return self.check(id, Rc::clone(record), named::LEFT, None);
        }
        self.miss(id, None, "uri-miss");
    }

    /// What is asked of others for a named object: what comes is kept, and a part of it comes out of the store the
    /// next time.
    pub(super) fn whole_of_named(ask: &mut Ask) {
        for part in [header::RANGE, header::IF_RANGE, header::IF_NONE_MATCH] {
            ask.headers.remove(part);
        }
    }

    /// What is asked of others for a named object that only its head is wanted of: who holds it tells
    /// that first, and is to send nothing else meanwhile. A peer is never asked for less.
    pub(super) fn head_alone(ask: Ask) -> Ask {
        let mut ask = ask.in_background();
        ask.trail.sparing = true;
        ask
    }

    /// Whom to ask for a named object: who says that it leads there, else who is nearer the gateway.
    /// There is no origin.
    pub(super) fn choose_holder(&self, fetch: &Fetch, name: &Oid) -> Choice {
        let Some(mesh) = &self.cx.mesh else { return Choice::Origin };
        let trail = &fetch.ask.trail;
        if trail.hops == 0 || trail.visited.len() >= wire::peer::Ask::VISITED_MAX {
            return Choice::Origin;
        }
        let may = |address: IpAddr| {
            let visited = |peer| trail.visited.contains(&peer);
            !fetch.tried.contains(&address)
                && !mesh.is_passed_over(self.cx.now, address)
                && !mesh.peers.at(address).is_some_and(visited)
        };
        let holders = mesh.holders.of(name);
        let mut holders = holders.iter().filter_map(|peer| mesh.peers.address(*peer));
        match holders.find(|address| may(*address)) {
            Some(address) => Choice::Peer(address),
            None if mesh.routes.route().is_none() => Choice::Origin,
            None => mesh.ways().choose(super::reach::is_per_hop(&fetch.ask, mesh), may),
        }
    }

    /// Nobody is left to be asked for a named object. False if there may be an origin.
    pub(super) fn has_no_holder(&mut self, id: FetchId) -> bool {
        let Some(fetch) = self.fetches.get_mut(&id) else { return false };
        if fetch.ask.named.is_none() || matches!(fetch.state, fetch::State::Storing(_)) {
            return false;
        }
        match fetch.former.take() {
            // Whoever was asked first may only be slow.
            Some((peer, request)) => fetch.via = Via::Peer(peer, request),
            None => self.end(id, Err(FetchError::NoHolder)),
        }
        true
    }

    /// Whether anybody but an origin could be asked for what is missing of an object.
    pub(super) fn has_sources(&self, ask: &Ask) -> bool {
        let Some(mesh) = &self.cx.mesh else { return false };
        let led = ask.named.is_some_and(|name| mesh.holders.has(&name));
        led || mesh.routes.route().is_some()
    }

    /// Whether this node publishes what is asked for.
    pub(super) fn publishes(&self, ask: &Ask) -> bool {
        let object = ask.named.and_then(|name| self.published.objects.get(&name));
        object.is_some_and(|object| !object.foreign)
    }

    /// Whether a segment that the catalogue has shown is what the name certifies, if those who wait for it
    /// asked by one. Names of units vouch for each of them, and nothing but this for their order. What nobody
    /// waits for was read for the walk, which looks itself.
    pub(super) fn is_certified(&self, at: (RecordId, u32), bytes: &[u8]) -> bool {
        let waiters = self.cx.manifests.waiters(&at);
        !waiters.is_empty()
            && waiters.iter().all(|waiter| {
                let Some(exchange) = self.exchanges.get(waiter) else { return true };
                let Some(name) = exchange.ask.named else { return true };
                let root = self.headers_of(exchange).and_then(|it| named::root_in(&name, it));
                root.is_some_and(|root| certifies_kept(&root, bytes).is_some())
            })
    }

    /// The fields of the record that somebody reads, or is going to.
    fn headers_of<'a>(&'a self, exchange: &'a Exchange) -> Option<&'a HeaderMap> {
        if let exchange::State::Checking(record, ..) = &exchange.state {
            return Some(&record.headers);
        }
        match exchange.source()? {
            Source::Closed(record) => Some(&record.headers),
            Source::Growing(fetch) => match &self.fetches.get(fetch)?.state {
                fetch::State::Storing(storing) => Some(&storing.headers),
                _ => None,
            },
        }
    }

    /// A published object whose record this is.
    pub(super) fn published_as(&self, record: RecordId) -> Option<Oid> {
        let mut names = self.published.objects.keys();
        names.find(|name| named::record_id(name) == record).copied()
    }

    /// A peer answers for a named object: what its name does not certify is a lie of that peer, because
    /// every hop checks it.
    pub(super) fn named_head(
        &mut self,
        id: FetchId,
        (peer, request): (NodeId, Request),
        name: &Oid,
        head: &Head,
    ) {
        let root = head.fields.iter().find(|(field, _)| field == named::ROOT);
        let root = root.and_then(|(_, text)| named::root_of(name, text));
        let is_plain = head.record == named::record_id(name) && !head.confirmed;
        let Some(root) = root.filter(|_| is_plain && head.status == 200) else {
            return self.cx.expel(peer, "it tells of another object than was asked for");
        };
        self.heed(id, peer, request);
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        match &fetch.state {
            fetch::State::Asking => self.follow_named(id, name, root, head),
            fetch::State::Storing(_) => self.goes_on(id),
            _ => {}
        }
    }

    /// A named object is going to be listed. Nothing of it is told by the peer but the rest of
    /// `Cache-Status`.
    fn follow_named(&mut self, id: FetchId, name: &Oid, root: Root, head: &Head) {
        let came = (self.cx.date(), self.cx.clock_right());
        let works = self.cx.store_works();
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        fetch.status_line.clone_from(&head.status_line);
        let next = fetch.ask.trail.resume.map_or(0, |resume| resume.segment);
        let cover = fetch.ask.trail.cover.max(COVER);
        let listed = Listed { next, hollow: next > 0, answered: true, cover, ..Listed::default() };
        let (inflow, headers) =
            (Inflow::Listed(Box::new(listed)), named::headers(name, &root.encode()));
        let mut storing = Storing::new(head.record, StatusCode::OK, headers, came, inflow);
        storing.announced = Some(root.length);
        storing.voucher = Some(named::VOUCHER);
        storing.failed = root.length > self.cx.config.object_bytes_max || !works;
        storing.root = Some(Rc::new(root));
        (fetch.granted, fetch.received) = (0, 0);
        self.begin(id, storing);
    }

    /// A peer that was believed to lead to an object says that it does not.
    fn unlead(&mut self, peer: NodeId, name: &Oid) {
        if let Some(mesh) = &mut self.cx.mesh {
            mesh.holders.let_go(peer, name);
        }
    }

    /// A peer that was asked for a named object ends that: whatever it says, others come before it next
    /// time if it has told nothing of the object.
    pub(super) fn does_not_lead(&mut self, peer: NodeId, request: Request, outcome: Outcome) {
        let asked = self.asked(peer, request).and_then(|id| self.fetches.get(&id));
        let Some((fetch, name)) = asked.and_then(|fetch| Some((fetch, fetch.ask.named?))) else {
            return;
        };
        let in_vain = matches!(fetch.state, fetch::State::Asking) || outcome == Outcome::NotCached;
        if outcome == Outcome::NotCached {
            self.unlead(peer, &name);
        }
        if let Some(mesh) = self.cx.mesh.as_mut().filter(|_| in_vain) {
            mesh.holders.failed(peer);
        }
    }

    /// A peer has given a unit of an object that it led to, and that is true.
    pub(super) fn shows(&mut self, id: FetchId, peer: NodeId) {
        let is_named = self.fetches.get(&id).is_some_and(|fetch| fetch.ask.named.is_some());
        if let Some(mesh) = self.cx.mesh.as_mut().filter(|_| is_named) {
            mesh.holders.proved(peer);
        }
    }

    /// A peer that was asked for a named object is silent: others come before it next time.
    pub(super) fn is_silent(&mut self, id: FetchId) {
        let fetch = self.fetches.get(&id).filter(|fetch| fetch.ask.named.is_some());
        if let Some((peer, mesh)) = fetch.and_then(Fetch::peer).zip(self.cx.mesh.as_mut()) {
            mesh.holders.failed(peer);
        }
    }
}

/// A segment as the catalogue keeps it, if the root of its object certifies it.
pub(super) fn certifies_kept(root: &Root, bytes: &[u8]) -> Option<Rc<Segment>> {
    let segment = Signed::decode(bytes)?.segment;
    let digest = Segment::digest(&segment.encode());
    certifies(root, &segment, &digest).then_some(segment)
}

/// Whether the root of an object certifies a segment.
pub(super) fn certifies(root: &Root, segment: &Segment, digest: &[u8; 32]) -> bool {
    let number = usize::try_from(segment.number).unwrap_or(usize::MAX);
    let is_last = number.checked_add(1) == Some(root.segments.len());
    root.segments.get(number) == Some(digest) && segment.closing.is_some() == is_last
}
