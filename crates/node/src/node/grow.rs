//! Objects while they come: cut, named, written, and read by whoever wants them.

use super::origin::{add_status, bodiless, content_length};
use super::{ABANDONED_MAX, Node, ORPHAN_PATIENCE, ORPHANS_MAX};
use crate::exchange::{Piece, Serving, Source, State};
use crate::fetch::{self, Fetch, Fresh, Storing};
use crate::http;
use crate::input::{ExchangeId, FetchId};
use crate::output::{Head, Output};
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use bytes::Bytes;
use std::rc::Rc;

impl Node {
    pub(super) fn begin_storing(
        &mut self,
        id: FetchId,
        status: StatusCode,
        mut headers: HeaderMap,
    ) {
        let (now, right) = (self.date(), self.clock_right());
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let announced =
            if bodiless(&Method::GET, status) { Some(0) } else { content_length(&headers) };
        headers.remove(header::CONTENT_LENGTH);
        if right && !headers.contains_key(header::DATE) {
            headers.insert(header::DATE, http::format_date(now));
        }
        let mut storing = Storing::new(self.dice.record_id(), status, headers, now);
        storing.announced = announced;
        let names = http::vary(&storing.headers).unwrap_or_default();
        storing.selecting = http::selecting(names, &fetch.ask.headers);
        let record = storing.so_far(fetch.requested, right);
        let (starter, waiters) = (fetch.starter, std::mem::take(&mut fetch.waiters));
        fetch.state = fetch::State::Storing(Box::new(storing));
        let mut others = Vec::new();
        for waiter in waiters {
            let Some(exchange) = self.exchanges.get(&waiter) else { continue };
            let joins = starter != Some(waiter);
            if joins && !http::may_join(&record, &exchange.ask.headers, now) {
                others.push(waiter);
                continue;
            }
            let counts = &mut self.report.requests;
            *(if joins { &mut counts.collapsed } else { &mut counts.miss }) += 1;
            self.serve_growing(waiter, id, joins);
        }
        self.ask_alone(&others);
        self.grant_ahead(id);
    }

    /// A client reads an object while it grows.
    pub(super) fn serve_growing(&mut self, client: ExchangeId, id: FetchId, collapsed: bool) {
        let (now, right) = (self.date(), self.clock_right());
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let (why, requested) = (fetch.why, fetch.requested);
        let Some(storing) = fetch.storing() else { return };
        let mut headers = storing.headers.clone();
        if collapsed {
            let age = http::age(&storing.so_far(requested, right), now);
            headers.insert(header::AGE, HeaderValue::from(age));
        }
        let code = storing.status.as_u16();
        let with = if collapsed { "; collapsed" } else { "" };
        let detail = format!("fwd={why}; fwd-status={code}; stored{with}");
        add_status(&mut headers, &self.config.name, &detail);
        http::add_via(&mut headers, ::http::Version::HTTP_11, &self.via);
        let end = storing.announced.unwrap_or(u64::MAX);
        if end < u64::MAX && !bodiless(&Method::GET, storing.status) {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(end));
        }
        let pieces = if end == 0 { [].into() } else { [Piece::Object(0..end)].into() };
        let head = Head { status: storing.status, headers, length: storing.announced };
        let mut serving = Serving::new(Source::Growing(id), storing.record, pieces);
        serving.leads = !collapsed;
        storing.readers.push(client);
        self.out.push_back(Output::Respond(client, Box::new(head)));
        self.put_state(client, State::Serving(Box::new(serving)));
        self.pump(client);
    }

    /// An object whose length was not announced is larger than what is stored.
    pub(super) fn outgrow(&mut self, id: FetchId) {
        let Some(storing) = self.fetches.get_mut(&id).and_then(Fetch::storing) else { return };
        if !storing.failed {
            self.report.not_stored.entry("body-size").or_default().responses += 1;
            self.fail_storing(id, &[]);
        }
    }

    /// Gives a reader who is up to date what has just come; the others will come for it.
    pub(super) fn feed(&mut self, reader: ExchangeId, before: u64, bytes: &Bytes) {
        let Some(exchange) = self.exchanges.get_mut(&reader) else { return };
        let State::Serving(serving) = &mut exchange.state else { return };
        if serving.position() == Some(before) && exchange.credit > 0 {
            let count = bytes.len().min(exchange.credit as usize);
            serving.sent(count as u64);
            self.send(reader, bytes.slice(..count));
        }
        self.pump(reader);
    }

    /// A unit is whole: lists it, and has it written with its neighbours.
    pub(super) fn keep(&mut self, id: FetchId, unit: Fresh) {
        let full_memory = self.chunks.pinned_bytes() > self.pinned_max();
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let Some(storing) = fetch.storing() else { return };
        let full = storing.list(&unit);
        let fresh = self.chunks.enter(id, unit.id, &unit.bytes, &mut self.tickets, &mut self.out);
        let parent_end = unit.parent_end;
        let group = match fresh {
            true if storing.failed => {
                storing.unstored.push_back((unit.end, unit.id));
                Vec::new()
            }
            true => storing.collect(unit),
            false if storing.failed && self.chunks.is_pinned(&unit.id) => {
                storing.unstored.push_back((unit.end, unit.id));
                Vec::new()
            }
            false if parent_end => storing.flush(),
            false => Vec::new(),
        };
        // Neighbours are worth waiting for only while there is memory.
        let group = if group.is_empty() && full_memory { storing.flush() } else { group };
        if let Some(segment) = full {
            self.write_segment(id, &segment);
        }
        self.append(id, group);
    }

    /// The object is whole: closes its record.
    pub(super) fn close(&mut self, id: FetchId) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let Some(storing) = fetch.storing() else { return };
        if let Some(unit) = storing.end() {
            self.keep(id, unit);
        }
        self.retire(id);
        let right = self.clock_right();
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let (requested, received) = (fetch.requested, fetch.received);
        let Some(storing) = fetch.storing() else { return };
        storing.announced = Some(received);
        let group = storing.flush();
        let (record, last) = storing.finish(requested, right);
        let readers = storing.readers.clone();
        let failed = storing.failed;
        self.append(id, group);
        self.write_segment(id, &last);
        for reader in &readers {
            self.object_ends(*reader, received);
        }
        if !failed {
            let record = Rc::new(record);
            let Some(fetch) = self.fetches.get_mut(&id) else { return };
            let (key, uri) = (fetch.ask.key, fetch.ask.target.to_string());
            if let Some(storing) = fetch.storing() {
                storing.whole = Some(Rc::clone(&record));
            }
            self.put_record(key, uri, record);
        }
        for reader in readers {
            self.pump(reader);
        }
        self.forget_if_read(id);
        self.settle(id);
    }

    /// The disk has all of a closed object: its readers go on from there.
    pub(super) fn settle(&mut self, id: FetchId) {
        let Some(storing) = self.fetches.get_mut(&id).and_then(Fetch::storing) else { return };
        let Some(record) = storing.whole.clone() else { return };
        if storing.failed || !storing.closed.is_empty() || self.chunks.is_writing_for(id) {
            return;
        }
        let readers = std::mem::take(&mut storing.readers);
        self.fetches.remove(&id);
        for reader in readers {
            self.read_closed(reader, &record);
        }
    }

    /// The origin ended too early: nobody takes the part for the whole (RFC 9111 §3.3).
    pub(super) fn broken(&mut self, id: FetchId) {
        self.retire(id);
        let Some(fetch) = self.fetches.remove(&id) else { return };
        let readers = self.drop_storing(id, fetch);
        for reader in readers {
            self.abort(reader);
        }
    }

    /// Lets go of all that a transfer had kept; answers who still reads.
    pub(super) fn drop_storing(&mut self, id: FetchId, mut fetch: Fetch) -> Vec<ExchangeId> {
        let Some(storing) = fetch.storing() else { return Vec::new() };
        let (group, readers) = (storing.flush(), std::mem::take(&mut storing.readers));
        for (_, unit) in &storing.unstored {
            self.chunks.release(unit);
        }
        if storing.whole.is_none() || storing.failed {
            let drop = store::Change::DropSegments { record: storing.record };
            self.out.push_back(Output::Change(self.tickets.draw(), vec![drop]));
        }
        // Another transfer may have met the same units, and count on their being written.
        self.append(id, group);
        readers
    }

    /// A reader has left a growing object, or has all of it.
    pub(super) fn unread(&mut self, id: FetchId, reader: ExchangeId) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let received = fetch.received;
        let Some(storing) = fetch.storing() else { return };
        storing.readers.retain(|other| *other != reader);
        if storing.ended {
            return self.forget_if_read(id);
        }
        if !storing.readers.is_empty() {
            // Perhaps the others waited for this one.
            self.passed(id);
            return self.grant_ahead(id);
        }
        let left = storing.announced.map(|length| length.saturating_sub(received));
        if left.is_some_and(|left| left <= ABANDONED_MAX) && !storing.failed {
            self.orphan(id);
            self.grant_ahead(id);
        } else {
            self.cancel(id);
        }
    }

    /// A transfer whose object could not be stored ends with its last reader.
    pub(super) fn forget_if_read(&mut self, id: FetchId) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let Some(storing) = fetch.storing() else { return };
        if storing.ended
            && storing.readers.is_empty()
            && let Some(fetch) = self.fetches.remove(&id)
        {
            self.drop_storing(id, fetch);
        }
    }

    /// Nobody waits for a transfer: it may go on for a while.
    pub(super) fn orphan(&mut self, id: FetchId) {
        self.orphans.push_back((self.now + ORPHAN_PATIENCE, id));
        if self.orphans.len() > ORPHANS_MAX
            && let Some((_, oldest)) = self.orphans.pop_front()
        {
            self.end_orphan(oldest);
        }
    }

    /// A transfer that nobody waited for has had its time; somebody may have joined it since.
    pub(super) fn end_orphan(&mut self, id: FetchId) {
        let Some(fetch) = self.fetches.get(&id) else { return };
        let unread = match &fetch.state {
            fetch::State::Storing(storing) => storing.readers.is_empty() && !storing.ended,
            fetch::State::Asking => fetch.waiters.is_empty(),
            _ => false,
        };
        if unread {
            self.cancel(id);
        }
    }
}
