//! Objects that are asked for by name: never stale, never an origin's, and vouched for by nobody but
//! their names.

use super::Node;
use crate::catalogue;
use crate::client::exchange::{self, Exchange, Source};
use crate::http::Row;
use crate::input::{ExchangeId, FetchId};
use crate::named;
use crate::object::fetch;
use crate::object::storing::{Inflow, Listed, Storing};
use crate::request::Ask;
use crate::request::COVER;
use crate::source::Pursuit;
use ::http::{HeaderMap, StatusCode, header};
use content::Root;
use std::rc::Rc;
use wire::peer::{Head, Request};
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

    /// Whether anybody but an origin could be asked for what is missing of an object.
    pub(super) fn has_sources(&self, ask: &Ask) -> bool {
        let Some(mesh) = &self.cx.mesh else { return false };
        let led = ask.named.is_some_and(|name| mesh.holders.has(&name));
        led || mesh.routes.route().is_some()
    }

    /// Whether a segment that the catalogue has shown is what the name certifies, if those who wait for it
    /// asked by one. Names of units vouch for each of them, and nothing but this for their order. What nobody
    /// waits for was read for the walk, which looks itself.
    pub(super) fn is_certified(&self, at: (RecordId, u32), bytes: &[u8]) -> bool {
        let waiters = self.cx.manifests.waiters(&at);
        !waiters.is_empty()
            && waiters.iter().all(|waiter| {
                let Some(exchange) = self.client.exchanges.get(waiter) else { return true };
                let Some(name) = exchange.ask.named else { return true };
                let root = self.headers_of(exchange).and_then(|it| named::root_in(&name, it));
                root.is_some_and(|root| catalogue::certifies_kept(&root, bytes).is_some())
            })
    }

    /// The fields of the record that somebody reads, or is going to.
    fn headers_of<'a>(&'a self, exchange: &'a Exchange) -> Option<&'a HeaderMap> {
        if let exchange::State::Checking(record, ..) = &exchange.state {
            return Some(&record.headers);
        }
        match exchange.source()? {
            Source::Closed(record) => Some(&record.headers),
            Source::Growing(fetch) => match &self.object.fetches.get(fetch)?.state {
                fetch::State::Storing(storing) => Some(&storing.headers),
                _ => None,
            },
        }
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
        self.source.heed(&mut self.cx, id, (peer, request));
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
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
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        fetch.status_line.clone_from(&head.status_line);
        let next = fetch.ask.trail.resume.map_or(0, |resume| resume.segment);
        let cover = fetch.ask.trail.cover.max(COVER);
        let listed = Listed { next, hollow: next > 0, cover, ..Listed::default() };
        let (inflow, headers) =
            (Inflow::Listed(Box::new(listed)), named::headers(name, &root.encode()));
        let mut storing = Storing::new(head.record, StatusCode::OK, headers, came, inflow);
        storing.announced = Some(root.length);
        storing.voucher = Some(named::VOUCHER);
        storing.failed = root.length > self.cx.config.object_bytes_max || !works;
        storing.root = Some(Rc::new(root));
        (fetch.granted, fetch.received) = (0, 0);
        self.source.get_mut(id).into_iter().for_each(Pursuit::is_answering);
        self.begin(id, storing);
    }
}
