//! Objects that come from a peer: a record's head, its units, its end; or a response that is only given
//! on.

use super::Node;
use crate::chunks::{Flight, Unit};
use crate::http::{self, Asked, Record, Voucher, headers};
use crate::input::{ExchangeId, FetchId};
use crate::object::cutting::Fresh;
use crate::object::fetch::{self, Fetch};
use crate::object::storing::{Inflow, Listed, Storing};
use crate::peers::verify;
use crate::request::COVER;
use crate::source::{CREDIT, Pursuit};
use ::http::{HeaderMap, HeaderName, StatusCode, header};
use bytes::Bytes;
use std::rc::Rc;
use store::Provenance;
use wire::peer::{ChunkHead, Head, Opaque, Request, Selecting};
use wire::{ChunkId, NodeId};

/// Units that a peer does not have and that are remembered for one transfer, at most.
const LOST_MAX: usize = 4096;

impl Node {
    /// A peer answers with a record.
    pub(super) fn record_head(&mut self, peer: NodeId, request: Request, head: Head) {
        let Some(id) = self.source.asked(peer, request) else { return };
        let Some((mesh, fetch)) = self.cx.mesh.as_ref().zip(self.object.fetches.get(&id)) else {
            return;
        };
        if let Some(name) = fetch.ask.named {
            return self.named_head(id, (peer, request), &name, &head);
        }
        if !mesh.believes(&head.signer) {
            // It may be honest, and have dialled the origin itself.
            self.source.heed(&mut self.cx, id, (peer, request));
            return self.source.disregard(&mut self.cx, id);
        }
        if !verify(&head.signer, &head.signed(&fetch.ask.key), &head.signature) {
            return self.cx.expel(peer, "a record is not signed by whom it names");
        }
        self.source.heed(&mut self.cx, id, (peer, request));
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        match &mut fetch.state {
            fetch::State::Asking => self.record_for(id, peer, &head),
            fetch::State::Storing(storing) if storing.record == head.record => self.goes_on(id),
            // Two versions are never spliced.
            fetch::State::Storing(_) => self.broken(id),
            _ => {}
        }
    }

    fn record_for(&mut self, id: FetchId, peer: NodeId, head: &Head) {
        let Some(headers) = headers(&head.fields).filter(http::is_end_to_end) else {
            return self.cx.expel(peer, "fields that do not belong into a record");
        };
        let Ok(status) = StatusCode::from_u16(head.status) else {
            return self.cx.expel(peer, "a status that is none");
        };
        if matches!(head.status, 100..200 | 206 | 304) {
            return self.cx.expel(peer, "a record of a response that none is made of");
        }
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        fetch.status_line.clone_from(&head.status_line);
        if !head.confirmed {
            return self.follow(id, head, status, headers);
        }
        let same = |old: &Rc<Record>| {
            old.id == head.record
                && old.status == status
                && old.selecting == selecting(&head.selecting)
        };
        let old = fetch.old.clone().filter(|old| fetch.confirms && same(old));
        let Some(old) = old else { return self.cx.expel(peer, "it confirms what nobody has") };
        let requested = fetch.requested;
        let fresh = Record {
            headers,
            requested,
            received: self.cx.date(),
            clocked: self.cx.clock_right(),
            invalid: false,
            carried: u64::from(head.age),
            voucher: Some(Voucher { signer: head.signer, signature: head.signature }),
            ..Record::clone(&old)
        };
        let waiters = self.object.retire(id);
        let Some(fetch) = self.remove_fetch(id) else { return };
        self.serve_confirmed(&fetch, fresh, &waiters);
    }

    /// An object is going to be listed.
    fn follow(&mut self, id: FetchId, head: &Head, status: StatusCode, headers: HeaderMap) {
        let (now, right) = (self.cx.date(), self.cx.clock_right());
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let next = fetch.ask.trail.resume.map_or(0, |resume| resume.segment);
        let cover = fetch.ask.trail.cover.max(COVER);
        let listed = Listed { next, hollow: next > 0, cover, ..Listed::default() };
        let inflow = Inflow::Listed(Box::new(listed));
        let mut storing = Storing::new(head.record, status, headers, (now, right), inflow);
        storing.announced = head.length;
        storing.carried = u64::from(head.age);
        storing.voucher = Some(Voucher { signer: head.signer, signature: head.signature });
        storing.selecting = selecting(&head.selecting);
        if !http::selects(&storing.so_far(fetch.requested), &fetch.ask.headers) {
            return self.source.disregard(&mut self.cx, id);
        }
        self.source.get_mut(id).into_iter().for_each(Pursuit::is_answering);
        let asked = Asked { method: &fetch.ask.method, headers: &fetch.ask.headers };
        let judged = http::judge(&asked, status, &storing.headers, now);
        let large = head.length.is_some_and(|bytes| bytes > self.cx.config.object_bytes_max);
        (fetch.granted, fetch.received) = (0, 0);
        storing.failed = judged.is_err() || large || !self.cx.store_works();
        let mut others = Vec::new();
        if judged.is_err() {
            // Whatever others think of it: here it is for nobody but who began.
            others = self.object.retire(id);
            let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
            let starter = others.iter().position(|waiter| Some(*waiter) == fetch.starter);
            fetch.waiters.extend(starter.map(|at| others.remove(at)));
        }
        self.begin(id, storing);
        self.ask_alone(&others);
    }

    /// The peer that we turned to knows the transfer: what was on its way is wanted of it.
    pub(super) fn goes_on(&mut self, id: FetchId) {
        if !self.cx.is_flying(id) {
            // Else only what comes shows that the way is good.
            self.source.get_mut(id).into_iter().for_each(Pursuit::found_way);
        }
        let storing = self.object.fetches.get_mut(&id).and_then(Fetch::storing);
        if let Some(listed) = storing.and_then(Storing::listed) {
            listed.turned = true;
            self.source.get_mut(id).into_iter().for_each(Pursuit::is_answering);
        }
        self.source.want_again(&mut self.cx, id);
        self.object.readers_ready(&mut self.cx, id);
    }

    /// Bytes of a unit have come.
    pub(super) fn unit_part(&mut self, peer: NodeId, head: ChunkHead, bytes: Bytes) {
        self.cx.report.peer_units_in_bytes += bytes.len() as u64;
        self.unit_bytes(peer, &head.name, head.total, head.offset, bytes);
    }

    pub(super) fn unit_bytes(
        &mut self,
        peer: NodeId,
        name: &ChunkId,
        total: u32,
        offset: u32,
        bytes: Bytes,
    ) {
        if !self.cx.flights.contains(name) {
            if self.cx.chunks.holds(name) {
                // It has come another way meanwhile.
                return;
            }
            // It may have overtaken the manifest, which comes by another connection.
            let whole = bytes.len() as u32 == total;
            return match whole && content::name(&bytes) == *name {
                true => self.cx.flights.early.keep(*name, bytes),
                false if whole => self.cx.expel(peer, "a unit is not what its name says"),
                false => {}
            };
        }
        let of = self.cx.flights.get_mut(name).map(|flight| flight.fetch);
        let giving = of.and_then(|id| self.source.get(id)?.giving());
        let asked = giving.is_some_and(|(giver, _)| giver == peer);
        if !asked && (bytes.len() as u32) < total {
            // Parts are joined only if they come from one.
            return;
        }
        let arrived = self.cx.flights.arrive(name, total, offset, bytes);
        let Some((flight, whole)) = arrived else { return };
        if content::name(&whole) != *name {
            if flight.heard_bytes() > 0 {
                let Some(ear) = &mut self.cx.ear else { return };
                ear.misheard(self.cx.now, &mut self.cx.flights, *name, flight);
                return self.hand_on_heard();
            }
            self.cx.report.units_false += 1;
            self.cx.flights.begin(*name, flight.fetch, flight.unit);
            if let Some(again) = self.cx.flights.get_mut(name) {
                (again.waiters, again.counted) = (flight.waiters, flight.counted);
            }
            return self.cx.expel(peer, "a unit is not what its name says");
        }
        self.source.get_mut(flight.fetch).into_iter().for_each(Pursuit::found_way);
        self.source.shows(&mut self.cx, flight.fetch, peer);
        if let Some(ear) = &mut self.cx.ear {
            ear.repaired(&flight);
            self.hand_on_heard();
        }
        self.unit_is_here(*name, flight, whole, Provenance::Own);
    }

    /// A unit that was on its way is here, and true.
    pub(super) fn unit_is_here(
        &mut self,
        name: ChunkId,
        flight: Flight,
        whole: Bytes,
        from: Provenance,
    ) {
        let id = flight.fetch;
        if let Some(fetch) = self.object.fetches.get_mut(&id) {
            fetch.received += whole.len() as u64;
        }
        self.source.came(id, self.cx.now);
        if let Some(ear) = &mut self.cx.ear {
            ear.cancel(self.cx.now, name, whole.len() as u32);
        }
        let Unit { parent_end, end, .. } = flight.unit;
        self.object.enter(
            &mut self.cx,
            id,
            Fresh { id: name, bytes: whole, key: None, end, parent_end },
            from,
        );
        self.cx.turns.all_ready(flight.waiters);
        self.cx.turns.dirty(id);
    }

    /// A peer does not have units that it was asked for.
    pub(super) fn units_lost(&mut self, peer: NodeId, request: Request, names: &[ChunkId]) {
        let Some(id) = self.source.asked(peer, request) else { return };
        let mut waiters = Vec::new();
        for name in names {
            let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
            if self.cx.flights.get_mut(name).is_none_or(|flight| flight.fetch != id) {
                continue;
            }
            self.cx.report.wants_lost += 1;
            self.source.came(id, self.cx.now);
            if let Some(listed) = fetch.storing().and_then(Storing::listed)
                && listed.lost.len() < LOST_MAX
            {
                listed.lost.insert(*name);
            }
            let lost = self.cx.flights.remove(name);
            if let (Some(ear), Some(flight)) = (&mut self.cx.ear, &lost) {
                ear.unwant(self.cx.now, &[flight.unit.want(*name)]);
            }
            waiters.extend(lost.map(|flight| flight.waiters));
        }
        self.cx.turns.all_ready(waiters.concat());
        self.cx.turns.dirty(id);
    }

    /// A peer answers with a response that is not stored.
    pub(super) fn opaque_head(&mut self, peer: NodeId, request: Request, opaque: Opaque) {
        let Some(id) = self.source.asked(peer, request) else { return };
        let Some(fetch) = self.object.fetches.get(&id) else { return };
        let (headers, status) = (headers(&opaque.fields), StatusCode::from_u16(opaque.status));
        let (Some(mut headers), Ok(status)) = (headers, status) else {
            return self.cx.expel(peer, "a head that is none");
        };
        if !matches!(fetch.state, fetch::State::Asking) {
            return self.cx.expel(peer, "a second head");
        }
        if fetch.ask.named.is_some() {
            return self.cx.expel(peer, "an answer that the object's name does not certify");
        }
        if !self.takes_unsigned(id, (peer, request)) {
            return;
        }
        self.source.heed(&mut self.cx, id, (peer, request));
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let confirms = status == StatusCode::NOT_MODIFIED && fetch.confirms;
        if confirms && self.cx.mesh.as_ref().is_some_and(|mesh| !mesh.config.gateways.is_empty()) {
            // Nobody who is believed has signed that: the whole is asked for.
            let waiters = self.object.retire(id);
            self.remove_fetch(id);
            return self.ask_alone(&waiters);
        }
        headers.remove(header::CONTENT_LENGTH);
        if let Some(length) = opaque.length {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        fetch.unstorable = Some("relayed");
        fetch.granted = u64::from(CREDIT);
        fetch.status_line = opaque.status_line;
        self.head(id, status, headers);
    }

    /// Content of a response that is not stored.
    pub(super) fn opaque_bytes(
        &mut self,
        peer: NodeId,
        request: Request,
        offset: u64,
        bytes: Vec<u8>,
    ) {
        let Some(id) = self.source.asked(peer, request) else { return };
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let beyond = fetch.received + bytes.len() as u64 > fetch.granted;
        match &fetch.state {
            fetch::State::Passing(..) if offset == fetch.received && !beyond => {
                self.body(id, bytes.into());
            }
            fetch::State::Passing(..) => self.cx.expel(peer, "bytes that nobody gave credit for"),
            fetch::State::Storing(storing) if storing.root.is_some() => {
                self.cx.expel(peer, "bytes that the object's name does not certify");
            }
            fetch::State::Storing(_) => {
                self.loose_bytes(id, (peer, request), offset, bytes.into());
            }
            _ => {}
        }
    }

    /// All that a followed object's readers here want has come: they go on from the store. Peers may
    /// want more.
    pub(super) fn settle_listed(&mut self, id: FetchId, record: Rc<Record>) {
        let flying = self.cx.is_flying(id);
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        let readers = storing.readers.clone();
        let has_all = |reader: &ExchangeId| {
            self.client
                .exchanges
                .get(reader)
                .is_none_or(|exchange| exchange.has_wanted(record.length))
        };
        if !flying && readers.iter().all(has_all) {
            self.finish_listed(id, &record);
        }
    }

    /// The last reader has left an object that a peer lists, or one of them.
    pub(super) fn unread_listed(&mut self, id: FetchId) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let received = fetch.received;
        let Some(storing) = fetch.storing() else { return };
        if !storing.readers.is_empty() {
            return self.cx.turns.dirty(id);
        }
        if storing.is_reopened() || storing.is_hollow() {
            return self.cx.turns.end(id);
        }
        let left = storing.announced.map(|length| length.saturating_sub(received));
        let little = left.is_some_and(|left| left <= super::ABANDONED_MAX) && !storing.failed;
        let here = storing.listed().is_some_and(|listed| listed.wanted_here)
            && self.source.get(id).is_some_and(Pursuit::is_answered);
        let whole = storing.whole.clone().filter(|_| !self.cx.is_flying(id));
        match whole {
            // It is kept if more came of it than its head.
            Some(record)
                if self.cx.begins_here(&record)
                    && !(little && here && received < record.length) =>
            {
                self.finish_listed(id, &record);
            }
            _ if little && here => {
                self.object.orphan(&mut self.cx, id);
                self.want_rest(id);
                self.cx.turns.dirty(id);
            }
            _ => self.cx.turns.end(id),
        }
    }

    /// A followed object is as complete as it will be: its record is kept.
    pub(super) fn finish_listed(&mut self, id: FetchId, record: &Rc<Record>) {
        self.object.retire(id);
        let Some(mut fetch) = self.remove_fetch(id) else { return };
        let (key, uri) = (fetch.ask.key, fetch.ask.target.to_string());
        let published = fetch.ask.named.is_some_and(|name| self.cx.published.has(&name));
        let Some(storing) = fetch.storing() else { return };
        let (failed, hollow) = (storing.failed, storing.is_hollow());
        let reopened = storing.is_reopened();
        if failed || hollow {
            for reader in self.object.drop_storing(&mut self.cx, id, fetch) {
                self.client.read_closed(reader, record);
                self.cx.turns.ready(reader);
            }
            return;
        }
        let group = storing.flush();
        let readers = std::mem::take(&mut storing.readers);
        self.cx.append(Some(id), group);
        if !reopened && !published {
            self.put_record(key, uri, Rc::clone(record));
        }
        for reader in readers {
            self.client.read_closed(reader, record);
            self.cx.turns.ready(reader);
        }
    }
}

fn selecting(fields: &[Selecting]) -> Vec<(HeaderName, Option<Vec<u8>>)> {
    let name = |name: &str| HeaderName::from_bytes(name.as_bytes()).ok();
    fields.iter().filter_map(|(n, value)| Some((name(n)?, value.clone()))).collect()
}
