//! Objects while they come: cut, named, written, and read by whoever wants them.

use super::answer::overheard;
use super::origin::{add_status, add_upstream, bodiless, content_length};
use super::{ABANDONED_MAX, LIST_AFTER, Node};
use crate::catalogue::Signed;
use crate::client::exchange::{Piece, Serving, Source, State};
use crate::http;
use crate::input::{ExchangeId, FetchError, FetchId};
use crate::object::cutting::{Cutting, Fresh};
use crate::object::fetch::{self, Fetch};
use crate::object::storing::{Inflow, Storing};
use crate::output::{ClientOutput, Head, Output};
use crate::request::UNASKED_BYTES;
use crate::source::Goal;
use crate::trust::Trust;
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use content::Segment;
use smallvec::SmallVec;
use std::rc::Rc;
use store::Provenance;

/// Units in a segment that is closed because peers wait for it, at most: a signature for each 128 KiB.
const LISTED_UNITS: usize = 16;
/// As much, in bytes, where units are of 8 KiB.
const LISTED_BYTES: u64 = 128 * 1024;

impl Node {
    pub(super) fn begin_storing(
        &mut self,
        id: FetchId,
        status: StatusCode,
        mut headers: HeaderMap,
    ) {
        let (now, right) = (self.cx.date(), self.cx.clock_right());
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let announced =
            if bodiless(&Method::GET, status) { Some(0) } else { content_length(&headers) };
        headers.remove(header::CONTENT_LENGTH);
        let cookies = http::take_cookies(&mut headers);
        if let Some(starter) =
            fetch.starter.and_then(|starter| self.client.exchanges.get_mut(&starter))
        {
            starter.ask.cookies = cookies;
        }
        if right && !headers.contains_key(header::DATE) {
            headers.insert(header::DATE, http::format_date(now));
        }
        let cutting = Cutting::new(self.cx.config.profile, self.cx.sealer.clone());
        let inflow = Inflow::Cut(Box::new(cutting));
        let mut storing =
            Storing::new(self.cx.dice.record_id(), status, headers, (now, right), inflow);
        storing.announced = announced;
        let names = http::vary(&storing.headers).unwrap_or_default();
        storing.selecting = http::selecting(names, &fetch.ask.headers);
        self.begin(id, storing);
        self.cx.turns.dirty(id);
    }

    /// An object begins to come: whoever waited reads it, if it is for them.
    pub(super) fn begin(&mut self, id: FetchId, storing: Storing) {
        let now = self.cx.date();
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let record = storing.so_far(fetch.requested);
        fetch.joined.clear();
        let (starter, waiters) = (fetch.starter, std::mem::take(&mut fetch.waiters));
        fetch.state = fetch::State::Storing(Box::new(storing));
        self.source.get_mut(id).into_iter().for_each(|it| it.seeks(Goal::Object));
        let mut others = Vec::new();
        for waiter in waiters {
            let Some(exchange) = self.client.exchanges.get(&waiter) else { continue };
            let joins = starter != Some(waiter);
            if joins && !http::may_join(&record, &exchange.ask.headers, now) {
                others.push(waiter);
                continue;
            }
            let counts = &mut self.cx.report.requests;
            *(if joins { &mut counts.collapsed } else { &mut counts.miss }) += 1;
            self.serve_growing(waiter, id, joins);
        }
        self.ask_alone(&others);
    }

    /// A client, or a peer, reads an object while it grows.
    pub(super) fn serve_growing(&mut self, client: ExchangeId, id: FetchId, collapsed: bool) {
        let now = self.cx.date();
        let (peer, head_alone) = (self.client.is_peer(client), self.client.wants_head(client));
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let (why, requested) = (fetch.why, fetch.requested);
        let upstream = fetch.status_line.clone();
        let Some(storing) = fetch.storing() else { return };
        let code = storing.status.as_u16();
        // RFC 9211 §2.6: only of what the cache stores. One that failed is tried again, and may fail again.
        let is_kept = !storing.failed && !storing.is_hollow() && self.cx.trust == Trust::Works;
        let stored = if is_kept { "; stored" } else { "" };
        let with = if collapsed { "; collapsed" } else { "" };
        let detail = format!("fwd={why}; fwd-status={code}{stored}{with}");
        if peer {
            return self.supply_growing(client, id, &detail);
        }
        let (record, first) = (storing.record, storing.segment_at(0));
        let heard = self.cx.is_overheard_at(record, first, 0);
        let detail = overheard(detail, heard);
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        let mut headers = storing.headers.clone();
        if collapsed || storing.carried > 0 {
            let age = http::age(&storing.so_far(requested), now);
            headers.insert(header::AGE, HeaderValue::from(age));
        }
        if let Some(exchange) = self.client.exchanges.get(&client) {
            exchange.ask.set_cookies(&mut headers);
        }
        add_upstream(&mut headers, &upstream);
        add_status(&mut headers, &self.cx.config.name, &detail);
        http::add_via(&mut headers, ::http::Version::HTTP_11, &self.cx.via);
        let end = storing.announced.unwrap_or(u64::MAX);
        if end < u64::MAX && !bodiless(&Method::GET, storing.status) {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(end));
        }
        let bare = (end == 0 && storing.limit() > 0) || head_alone;
        let pieces = if bare { [].into() } else { [Piece::Object(0..end)].into() };
        let head = Head { status: storing.status, headers, length: storing.announced };
        let mut serving = Serving::new(Source::Growing(id), storing.record, pieces);
        serving.leads = !collapsed;
        storing.readers.push(client);
        if let Some(listed) = storing.listed() {
            listed.wanted_here |= !head_alone;
        }
        self.cx.out.push_back(Output::Client(ClientOutput::Respond(client, Box::new(head))));
        self.client.put_state(client, State::Serving(Box::new(serving)));
        self.cx.turns.ready(client);
    }

    /// An object whose length was not announced is larger than what is stored.
    pub(super) fn outgrow(&mut self, id: FetchId) {
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        if !storing.failed {
            self.cx.report.not_stored.entry("body-size").or_default().responses += 1;
            self.fail_storing(id, &[]);
        }
    }

    /// A unit is whole: lists it, and has it written with its neighbours.
    pub(super) fn keep(&mut self, id: FetchId, unit: Fresh) {
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        let full = storing.cutting().and_then(|cutting| cutting.list(&unit));
        if let Some(segment) = full {
            self.add_segment(id, Rc::new(segment));
        }
        self.object.enter(&mut self.cx, id, unit, Provenance::Own);
    }

    /// Our own manifest has one more segment.
    fn add_segment(&mut self, id: FetchId, segment: Rc<Segment>) {
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        // What a name certifies needs no signature of ours.
        let signature = storing.voucher.as_ref().map(|voucher| voucher.signature);
        storing.close_segment(&segment, signature);
        self.object.write_segment(
            &mut self.cx,
            id,
            Signed { segment: Rc::clone(&segment), signature },
        );
        self.publish.handle_listed(&self.cx, id, &segment);
    }

    /// Closes the open segment for peers that read along, once it is worth its signature: one unit at
    /// first, then more and more. What is too little waits a moment.
    pub(super) fn list_for_peers(&mut self, id: FetchId) {
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        let closed = storing.offsets.len() as u32;
        let announced = storing.announced.unwrap_or(u64::MAX);
        let Some(cutting) = storing.cutting() else { return };
        let open = cutting.open_units();
        // A small object is told of in one piece, so that all of it can follow unasked. So is what follows
        // the first unit of one that fits into a segment: each message costs the air nearly as much as a
        // packet of content.
        let rest = announced <= UNASKED_BYTES || (announced <= LISTED_BYTES && closed > 0);
        let worth = if rest { usize::MAX } else { LISTED_UNITS.min(1 << closed.min(8)) };
        if open == 0 || !self.is_read_by_peers(id) {
            return;
        }
        if open >= worth {
            self.list_open(id);
        } else if !self.object.to_list.iter().any(|(_, waiting)| *waiting == id) {
            self.object.to_list.push_back((self.cx.now + LIST_AFTER, id));
        }
    }

    /// Closes the open segment, and tells the peers.
    pub(super) fn list_open(&mut self, id: FetchId) {
        if !self.is_read_by_peers(id) {
            return;
        }
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        let Some(segment) = storing.cutting().and_then(Cutting::flush) else { return };
        self.add_segment(id, Rc::new(segment));
        self.peers_ready(id);
    }

    /// Those readers of an object that are peers may be able to go on.
    pub(super) fn peers_ready(&mut self, id: FetchId) {
        let Some(fetch::State::Storing(storing)) = self.object.fetches.get(&id).map(|it| &it.state)
        else {
            return;
        };
        let peers = storing.readers.iter().filter(|reader| self.client.is_peer(**reader));
        let peers: SmallVec<[ExchangeId; 8]> = peers.copied().collect();
        self.cx.turns.all_ready(peers);
    }

    pub(super) fn is_read_by_peers(&self, id: FetchId) -> bool {
        match self.object.fetches.get(&id).map(|fetch| &fetch.state) {
            // Asked for every piece of every body: where there is no mesh, nobody is looked at.
            Some(fetch::State::Storing(storing)) if self.cx.mesh.is_some() => {
                storing.readers.iter().any(|reader| self.client.is_peer(*reader))
            }
            _ => false,
        }
    }

    /// The object is whole: closes its record.
    pub(super) fn close(&mut self, id: FetchId) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let Some(cutting) = fetch.storing().and_then(Storing::cutting) else { return };
        if let Some(unit) = cutting.end() {
            self.keep(id, unit);
        }
        self.object.retire(id);
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let (requested, received) = (fetch.requested, fetch.received);
        let Some(storing) = fetch.storing() else { return };
        storing.announced = Some(received);
        storing.ended = true;
        let group = storing.flush();
        let Some(last) = storing.cutting().map(Cutting::close) else { return };
        self.cx.append(Some(id), group);
        self.add_segment(id, Rc::new(last));
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        let record = storing.so_far(requested);
        let readers = storing.readers.clone();
        let failed = storing.failed;
        for reader in &readers {
            self.client.object_ends(*reader, received);
        }
        if !failed {
            let record = Rc::new(record);
            let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
            let (key, uri) = (fetch.ask.key, fetch.ask.target.to_string());
            if let Some(storing) = fetch.storing() {
                storing.whole = Some(Rc::clone(&record));
            }
            if self.publish.has(id) {
                return self.cx.turns.dirty(id);
            }
            self.put_record(key, uri, record);
        }
        self.cx.turns.all_ready(readers);
        self.cx.turns.dirty(id);
    }

    /// The disk has all of a closed object: its readers go on from there.
    pub(super) fn settle(&mut self, id: FetchId) {
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        let Some(record) = storing.whole.clone() else { return };
        if storing.failed || !storing.closed.is_empty() || self.cx.chunks.is_writing_for(id) {
            return;
        }
        if let Inflow::Listed(_) = storing.inflow {
            return self.settle_listed(id, record);
        }
        let readers = std::mem::take(&mut storing.readers);
        self.publish.handle_written(&mut self.cx, id, &record);
        self.remove_fetch(id);
        for reader in readers {
            self.client.read_closed(reader, &record);
        }
    }

    /// The origin ended too early: nobody takes the part for the whole (RFC 9111 §3.3).
    pub(super) fn broken(&mut self, id: FetchId) {
        if self.cannot_fill(id) {
            return;
        }
        if let Some(fetch::State::Passing(..)) =
            self.object.fetches.get(&id).map(|fetch| &fetch.state)
        {
            return self.end(id, Err(FetchError::Truncated));
        }
        self.object.retire(id);
        let Some(fetch) = self.remove_fetch(id) else { return };
        let readers = self.object.drop_storing(&mut self.cx, id, fetch);
        for reader in readers {
            self.abort(reader);
        }
    }

    /// A reader has left a growing object, or has all of it.
    pub(super) fn unread(&mut self, id: FetchId, reader: ExchangeId, of_peer: bool) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let received = fetch.received;
        let Some(storing) = fetch.storing() else { return };
        storing.readers.retain(|other| *other != reader);
        if storing.listed().is_some() {
            return self.unread_listed(id);
        }
        if storing.ended {
            return self.cx.turns.dirty(id);
        }
        if !storing.readers.is_empty() {
            // Perhaps the others waited for this one.
            return self.cx.turns.dirty(id);
        }
        let left = storing.announced.map(|length| length.saturating_sub(received));
        if left.is_some_and(|left| left <= ABANDONED_MAX) && !storing.failed {
            self.object.orphan(&mut self.cx, id);
            self.cx.turns.dirty(id);
        } else if of_peer && !storing.failed {
            // It may come back by another way, and go on (protocol: Resume).
            storing.parked = true;
            self.object.orphan(&mut self.cx, id);
        } else {
            self.cx.turns.end(id);
        }
    }

    /// A transfer of which all has come from an origin ends with its last reader.
    pub(super) fn forget_if_read(&mut self, id: FetchId) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let is_put = self.publish.has(id);
        let Some(storing) = fetch.storing() else { return };
        let is_cut = matches!(storing.inflow, Inflow::Cut(_)) && !is_put;
        if is_cut
            && storing.ended
            && storing.readers.is_empty()
            && let Some(fetch) = self.remove_fetch(id)
        {
            self.object.drop_storing(&mut self.cx, id, fetch);
        }
    }
}
