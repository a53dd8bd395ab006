//! What origins answer, and what becomes of it.

use super::{ABANDONED_MAX, AHEAD, AHEAD_MIN, Node};
use crate::exchange::{Piece, Serving, Source, State};
use crate::fetch::{self, Fetch, Fresh, Storing};
use crate::http::{self, Asked, Record, Row};
use crate::input::{ExchangeId, FetchError, FetchId};
use crate::output::{Head, Output};
use crate::report::Unstored;
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use bytes::Bytes;
use std::rc::Rc;

impl Node {
    /// The head of a response.
    pub(super) fn head(&mut self, id: FetchId, status: StatusCode, mut headers: HeaderMap) {
        if !self.fetches.contains_key(&id) {
            return;
        }
        if status != StatusCode::SWITCHING_PROTOCOLS {
            http::strip_hop_by_hop(&mut headers);
        }
        self.invalidate(id, status, &headers);
        let fetch = &self.fetches[&id];
        if let fetch::State::Repairing(_) = fetch.state {
            return self.repair_head(id, status, &headers);
        }
        if let fetch::State::Passing(client, reason) = fetch.state {
            return self.pass_on(id, client, reason, status, headers);
        }
        if let (Some(old), true, StatusCode::NOT_MODIFIED) = (&fetch.old, fetch.confirms, status) {
            let old = Rc::clone(old);
            return self.confirmed(id, &old, &headers);
        }
        if self.stale_instead(id, status) {
            return;
        }
        match self.storable(id, status, &headers) {
            Ok(()) => self.begin_storing(id, status, headers),
            Err(reason) => self.do_not_store(id, reason, status, headers),
        }
    }

    fn storable(
        &self,
        id: FetchId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), &'static str> {
        let fetch = &self.fetches[&id];
        if fetch.ask.method == Method::HEAD {
            return Err("head");
        }
        if !fetch.storable {
            return Err("range");
        }
        let asked = Asked { method: &fetch.ask.method, headers: &fetch.ask.headers };
        http::judge(&asked, status, headers, self.date()).map_err(|reason| reason.as_str())?;
        if content_length(headers).is_some_and(|bytes| bytes > self.config.object_bytes_max) {
            return Err("body-size");
        }
        if self.store_works() { Ok(()) } else { Err("store") }
    }

    /// The response is not stored: who began the transfer gets it, the others ask for themselves.
    fn do_not_store(
        &mut self,
        id: FetchId,
        reason: &'static str,
        status: StatusCode,
        headers: HeaderMap,
    ) {
        let mut others = self.retire(id);
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        // It may be for that one alone, and made with that one's fields.
        let starter = others.iter().position(|waiter| Some(*waiter) == fetch.starter);
        match starter.map(|at| others.remove(at)) {
            Some(starter) => {
                fetch.state = fetch::State::Passing(starter, reason);
                self.pass_on(id, starter, reason, status, headers);
            }
            None => self.cancel(id),
        }
        self.ask_alone(&others);
    }

    /// These could not share somebody else's response.
    fn ask_alone(&mut self, ids: &[ExchangeId]) {
        for id in ids {
            if let Some(exchange) = self.exchanges.get_mut(id) {
                exchange.ask.alone = true;
                self.miss(*id, None, "uri-miss");
            }
        }
    }

    /// Nobody may join any more; answers who waits.
    fn retire(&mut self, id: FetchId) -> Vec<ExchangeId> {
        let Some(fetch) = self.fetches.get_mut(&id) else { return Vec::new() };
        let key = fetch.ask.key;
        let waiters = std::mem::take(&mut fetch.waiters);
        if self.joinable.get(&key) == Some(&id) {
            self.joinable.remove(&key);
        }
        waiters
    }

    fn pass_on(
        &mut self,
        id: FetchId,
        client: ExchangeId,
        reason: &'static str,
        status: StatusCode,
        mut headers: HeaderMap,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&client) else { return self.cancel(id) };
        let fetch = &self.fetches[&id];
        let detail = format!("fwd={}; fwd-status={}; detail={reason}", fetch.why, status.as_u16());
        add_status(&mut headers, &self.config.name, &detail);
        http::add_via(&mut headers, ::http::Version::HTTP_11, &self.via);
        exchange.state = State::Passing(id);
        let credit = exchange.credit;
        let length =
            if bodiless(&fetch.ask.method, status) { Some(0) } else { content_length(&headers) };
        self.report.requests.pass += 1;
        self.report.not_stored.entry(reason).or_default().responses += 1;
        self.out.push_back(Output::Respond(client, Box::new(Head { status, headers, length })));
        self.grant(id, credit.max(0) as u64);
    }

    /// The origin says that the old record still holds (RFC 9111 §4.3.4).
    fn confirmed(&mut self, id: FetchId, old: &Rc<Record>, headers: &HeaderMap) {
        let waiters = self.retire(id);
        let Some(fetch) = self.fetches.remove(&id) else { return };
        if !http::confirms(headers, old) {
            // It speaks of another version: ask again, without conditions.
            return self.ask_alone(&waiters);
        }
        let fresh = http::freshened(old, headers, fetch.requested, self.date(), self.clock_right());
        let fresh = Rc::new(fresh);
        self.put_record(fetch.ask.key, fetch.ask.target.to_string(), Rc::clone(&fresh));
        for waiter in waiters {
            let Some(exchange) = self.exchanges.get(&waiter) else { continue };
            if http::selects(&fresh, &exchange.ask.headers) {
                let forwarded = Some("fwd=stale; fwd-status=304".to_owned());
                self.check(waiter, Rc::clone(&fresh), 0, forwarded);
            } else {
                self.ask_alone(&[waiter]);
            }
        }
    }

    /// A server error, where a stale response may be used instead (RFC 5861 §4).
    fn stale_instead(&mut self, id: FetchId, status: StatusCode) -> bool {
        let Some(old) = self.fetches[&id].old.clone() else { return false };
        if !matches!(status.as_u16(), 500 | 502 | 503 | 504) {
            return false;
        }
        let now = self.date();
        let waiters = self.fetches[&id].waiters.clone();
        let permitted = waiters.iter().all(|waiter| {
            self.exchanges.get(waiter).is_none_or(|exchange| {
                http::stale_permitted(&old, &exchange.ask.headers, now, true)
            })
        });
        if !permitted {
            return false;
        }
        self.retire(id);
        self.cancel(id);
        let detail = format!("fwd=stale; fwd-status={}", status.as_u16());
        for waiter in waiters {
            self.check(waiter, Rc::clone(&old), -1, Some(detail.clone()));
        }
        true
    }

    /// A successful unsafe request makes what is stored for its target doubtful (RFC 9111 §4.4).
    fn invalidate(&mut self, id: FetchId, status: StatusCode, headers: &HeaderMap) {
        let fetch = &self.fetches[&id];
        if fetch.ask.method.is_safe() || !(200..400).contains(&status.as_u16()) {
            return;
        }
        let target = fetch.ask.target.clone();
        let client = fetch.ask.client;
        let mut keys = vec![fetch.ask.key];
        for name in [header::LOCATION, header::CONTENT_LOCATION] {
            let path = headers.get(name).and_then(|value| same_host(value, &target));
            keys.extend(path.map(|path| target.with_path(&path).key(&self.config.secret, client)));
        }
        for key in keys {
            // What only the catalogue has is not worth a look-up: it goes.
            match self.rows.get(&key) {
                Some(row) => self.mark_invalid(key, &row),
                // The answer to a look-up that is under way may be older than this.
                None if self.rows.is_awaited(&key) => {
                    let nothing = Rc::new(Row::default());
                    self.rows.put(key, nothing, &mut self.tickets, &mut self.out);
                }
                None => self.out.push_back(Output::Change(
                    self.tickets.draw(),
                    vec![store::Change::Remove { key }],
                )),
            }
        }
    }

    fn mark_invalid(&mut self, key: wire::ObjectKey, row: &Row) {
        if row.records.iter().all(|record| record.invalid) {
            return;
        }
        let mut marked = row.clone();
        for record in &mut marked.records {
            Rc::make_mut(record).invalid = true;
        }
        self.rows.put(key, Rc::new(marked), &mut self.tickets, &mut self.out);
        self.dirty();
    }

    fn begin_storing(&mut self, id: FetchId, status: StatusCode, mut headers: HeaderMap) {
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

    /// Content of a response.
    pub(super) fn body(&mut self, id: FetchId, bytes: Bytes) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let before = fetch.received;
        fetch.received += bytes.len() as u64;
        self.report.origin_bytes += bytes.len() as u64;
        match &mut fetch.state {
            fetch::State::Asking => {}
            fetch::State::Repairing(_) => self.repair_body(id, &bytes),
            fetch::State::Passing(client, reason) => {
                let (client, reason) = (*client, *reason);
                let count: &mut Unstored = self.report.not_stored.entry(reason).or_default();
                count.bytes += bytes.len() as u64;
                self.send(client, bytes);
            }
            fetch::State::Storing(storing) => {
                let fresh = storing.take(&bytes);
                let readers = storing.readers.clone();
                for unit in fresh {
                    self.keep(id, unit);
                }
                if before + bytes.len() as u64 > self.config.object_bytes_max {
                    self.outgrow(id);
                }
                for reader in readers {
                    self.feed(reader, before, &bytes);
                }
                self.grant_ahead(id);
            }
        }
    }

    /// An object whose length was not announced is larger than what is stored.
    fn outgrow(&mut self, id: FetchId) {
        let Some(storing) = self.fetches.get_mut(&id).and_then(Fetch::storing) else { return };
        if !storing.failed {
            self.report.not_stored.entry("body-size").or_default().responses += 1;
            self.fail_storing(id, &[]);
        }
    }

    /// Gives a reader who is up to date what has just come; the others will come for it.
    fn feed(&mut self, reader: ExchangeId, before: u64, bytes: &Bytes) {
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
    fn keep(&mut self, id: FetchId, unit: Fresh) {
        let full_memory = self.chunks.pinned_bytes() > self.pinned_max();
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        let Some(storing) = fetch.storing() else { return };
        let full = storing.list(&unit);
        let fresh = self.chunks.enter(unit.id, &unit.bytes);
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

    /// A response has ended, well or not.
    pub(super) fn end(&mut self, id: FetchId, result: Result<(), FetchError>) {
        let Some(fetch) = self.fetches.get_mut(&id) else { return };
        match (&mut fetch.state, result) {
            (fetch::State::Storing(storing), Ok(()))
                if storing.announced.is_none_or(|length| length == fetch.received) =>
            {
                self.close(id);
            }
            (fetch::State::Storing(_), _) => self.broken(id),
            (fetch::State::Passing(client, _), result) => {
                let client = *client;
                self.fetches.remove(&id);
                let answered = self
                    .exchanges
                    .get(&client)
                    .is_some_and(|exchange| matches!(exchange.state, State::Passing(_)));
                match result {
                    Ok(()) if answered => self.finish(client),
                    Err(_) if answered => self.abort(client),
                    result => self.unreachable(client, result.err()),
                }
            }
            (fetch::State::Asking, result) => self.unanswered(id, result.err()),
            (fetch::State::Repairing(_), _) => self.give_up(id),
        }
    }

    /// No head came: a stale response where that is permitted, else an honest error.
    fn unanswered(&mut self, id: FetchId, error: Option<FetchError>) {
        let waiters = self.retire(id);
        let Some(fetch) = self.fetches.remove(&id) else { return };
        let now = self.date();
        for waiter in waiters {
            let Some(exchange) = self.exchanges.get(&waiter) else { continue };
            let stale = fetch
                .old
                .as_ref()
                .filter(|old| http::stale_permitted(old, &exchange.ask.headers, now, false));
            match stale {
                Some(old) => {
                    let forwarded = Some("fwd=stale; detail=unreachable".to_owned());
                    self.check(waiter, Rc::clone(old), -1, forwarded);
                }
                None => self.unreachable(waiter, error),
            }
        }
    }

    /// The object is whole: closes its record.
    fn close(&mut self, id: FetchId) {
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
    fn broken(&mut self, id: FetchId) {
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

    /// Breaks off a request to an origin.
    pub(super) fn cancel(&mut self, id: FetchId) {
        self.retire(id);
        if let Some(fetch) = self.fetches.remove(&id) {
            self.out.push_back(Output::Cancel(id));
            for reader in self.drop_storing(id, fetch) {
                self.abort(reader);
            }
        }
    }

    /// Accepts so much more from an origin.
    pub(super) fn grant(&mut self, id: FetchId, bytes: u64) {
        if let Some(fetch) = self.fetches.get_mut(&id)
            && bytes > 0
        {
            fetch.granted += bytes;
            self.out.push_back(Output::Grant(id, bytes));
        }
    }

    /// Keeps the origin a little ahead of its fastest reader, as long as the disk keeps up and there
    /// is memory. A little is always granted: what others were promised may never come.
    pub(super) fn grant_ahead(&mut self, id: FetchId) {
        if self.is_crowded() {
            self.ungranted = true;
            return;
        }
        let Some(fetch) = self.fetches.get(&id) else { return };
        let fetch::State::Storing(storing) = &fetch.state else { return };
        let positions =
            storing.readers.iter().filter_map(|reader| match &self.exchanges.get(reader)?.state {
                State::Serving(serving) => serving.position(),
                _ => None,
            });
        // Where the store has failed, nothing may be forgotten before the slowest has it.
        let pace = if storing.failed { positions.min() } else { positions.max() };
        let full_memory = self.chunks.pinned_bytes() > self.pinned_max();
        let ahead = if full_memory { AHEAD_MIN } else { AHEAD };
        self.ungranted |= full_memory;
        let target = pace.unwrap_or(fetch.received) + ahead;
        let open = target.saturating_sub(fetch.granted.max(fetch.received));
        let little = AHEAD_MIN.saturating_sub(fetch.promised());
        if open < AHEAD / 4 && (little == 0 || open < AHEAD_MIN) {
            return;
        }
        let promised: u64 = self.fetches.values().map(Fetch::promised).sum();
        let room = self.pinned_max().saturating_sub(self.chunks.pinned_bytes() + promised);
        self.grant(id, open.min(room.max(little)));
    }

    pub(super) fn pinned_max(&self) -> u64 {
        self.config.memory_bytes / 4
    }

    /// Whether there are too many units in memory, and waiting for the disk will help.
    fn is_crowded(&self) -> bool {
        self.chunks.pinned_bytes() > self.pinned_max() && self.chunks.is_writing()
    }

    /// Goes on with transfers that waited for memory, once there is some.
    pub(super) fn grant_others(&mut self) {
        if !self.ungranted || self.is_crowded() {
            return;
        }
        self.ungranted = false;
        let mut ids: Vec<FetchId> = self.fetches.keys().copied().collect();
        ids.sort_unstable();
        ids.into_iter().for_each(|id| self.grant_ahead(id));
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
}

/// `Content-Length`; the screen has seen to it that it is one number.
fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

fn bodiless(method: &Method, status: StatusCode) -> bool {
    method == Method::HEAD || matches!(status.as_u16(), 100..200 | 204 | 304)
}

/// Adds a member to `Cache-Status` (RFC 9211).
pub(super) fn add_status(headers: &mut HeaderMap, name: &str, detail: &str) {
    let value = HeaderValue::try_from(format!("{name}; {detail}")).expect("tokens are ASCII");
    headers.append("cache-status", value);
}

/// The path that a URI reference names on the same host; `None` for another host.
fn same_host(value: &HeaderValue, target: &http::Target) -> Option<String> {
    let text = value.to_str().ok()?;
    let uri: ::http::Uri = text.parse().ok()?;
    let same = match uri.authority() {
        None => true,
        Some(authority) => http::Target::new(authority, None)
            .is_some_and(|other| other.authority() == target.authority()),
    };
    same.then(|| uri.path_and_query().map_or("/".into(), ToString::to_string))
}
