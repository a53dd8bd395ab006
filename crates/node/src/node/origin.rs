//! What origins answer, and what becomes of it.

use super::Node;
use crate::client::exchange::State;
use crate::http::{self, Asked, Audience, CacheControl, Record, Row};
use crate::input::{ExchangeId, FetchError, FetchId};
use crate::object::fetch::{self, Fetch};
use crate::output::{ClientOutput, Head, OriginOutput, Output};
use crate::report::Unstored;
use crate::source::{Goal, Pursuit};
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use bytes::Bytes;
use std::rc::Rc;

impl Node {
    /// The head of a response.
    pub(super) fn head(&mut self, id: FetchId, status: StatusCode, mut headers: HeaderMap) {
        if !self.object.fetches.contains_key(&id) {
            return;
        }
        self.source.forget_former(&mut self.cx, id);
        if status != StatusCode::SWITCHING_PROTOCOLS {
            http::strip_hop_by_hop(&mut headers);
        }
        if self.onward_head(id, status, &headers) {
            return;
        }
        self.invalidate(id, status, &headers);
        let fetch = &self.object.fetches[&id];
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
        let fetch = &self.object.fetches[&id];
        if fetch.ask.method == Method::HEAD {
            return Err("head");
        }
        if let Some(reason) = fetch.unstorable {
            return Err(reason);
        }
        let asked = Asked { method: &fetch.ask.method, headers: &fetch.ask.headers };
        http::judge(&asked, status, headers, self.cx.date()).map_err(|reason| reason.as_str())?;
        if content_length(headers).is_some_and(|bytes| bytes > self.cx.config.object_bytes_max) {
            return Err("body-size");
        }
        if headers.contains_key(header::SET_COOKIE) && self.begun_by_peer(fetch) {
            // The cookie is for that peer's client, and a record has none: so it gets the response as it is.
            return Err("cookie");
        }
        if self.cx.store_works() { Ok(()) } else { Err("store") }
    }

    /// Whether it was begun for a peer, which asks for a client of its own or of others behind it.
    fn begun_by_peer(&self, fetch: &Fetch) -> bool {
        let starter = fetch.starter.and_then(|starter| self.client.exchanges.get(&starter));
        starter.is_some_and(|starter| starter.peer().is_some())
    }

    /// The response is not stored: who began the transfer gets it, the others ask for themselves.
    fn do_not_store(
        &mut self,
        id: FetchId,
        reason: &'static str,
        status: StatusCode,
        headers: HeaderMap,
    ) {
        let mut others = self.object.retire(id);
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        // It may be for that one alone, and made with that one's fields.
        let starter = others.iter().position(|waiter| Some(*waiter) == fetch.starter);
        match starter.map(|at| others.remove(at)) {
            Some(starter) => {
                fetch.state = fetch::State::Passing(starter, reason);
                self.source.get_mut(id).into_iter().for_each(|it| it.seeks(Goal::Pass));
                self.pass_on(id, starter, reason, status, headers);
            }
            None => self.cx.turns.end(id),
        }
        self.ask_alone(&others);
    }

    /// These could not share somebody else's response.
    pub(super) fn ask_alone(&mut self, ids: &[ExchangeId]) {
        for id in ids {
            if let Some(exchange) = self.client.exchanges.get_mut(id) {
                exchange.ask.alone = true;
                // What it waited for is not its own any more, and not to be broken off with it.
                exchange.state = State::Looking;
                self.miss(*id, None, "uri-miss");
            }
        }
    }

    fn pass_on(
        &mut self,
        id: FetchId,
        client: ExchangeId,
        reason: &'static str,
        status: StatusCode,
        mut headers: HeaderMap,
    ) {
        let Some(exchange) = self.client.exchanges.get_mut(&client) else {
            return self.cx.turns.end(id);
        };
        exchange.state = State::Passing(id);
        let credit = exchange.credit;
        let fetch = &self.object.fetches[&id];
        let detail = format!("fwd={}; fwd-status={}; detail={reason}", fetch.why, status.as_u16());
        add_upstream(&mut headers, &fetch.status_line);
        add_status(&mut headers, &self.cx.config.name, &detail);
        let length =
            if bodiless(&fetch.ask.method, status) { Some(0) } else { content_length(&headers) };
        self.cx.report.requests.pass += 1;
        self.cx.report.not_stored.entry(reason).or_default().responses += 1;
        if self.client.exchanges[&client].peer().is_some() {
            self.supply_opaque(client, status, &headers, length);
        } else {
            http::add_via(&mut headers, ::http::Version::HTTP_11, &self.cx.via);
            let output = ClientOutput::Respond(client, Box::new(Head { status, headers, length }));
            self.cx.out.push_back(Output::Client(output));
        }
        // A peer was given some credit with the request.
        let granted = self.object.fetches.get(&id).map_or(0, |fetch| fetch.granted);
        self.grant(id, (credit.max(0) as u64).saturating_sub(granted));
    }

    /// The origin says that the old record still holds (RFC 9111 §4.3.4).
    fn confirmed(&mut self, id: FetchId, old: &Rc<Record>, headers: &HeaderMap) {
        let waiters = self.object.retire(id);
        let Some(fetch) = self.remove_fetch(id) else { return };
        if !http::confirms(headers, old) {
            // It speaks of another version: ask again, without conditions.
            return self.ask_alone(&waiters);
        }
        let starter = fetch.starter.and_then(|starter| self.client.exchanges.get_mut(&starter));
        if let Some(starter) = starter.filter(|starter| starter.peer().is_none()) {
            starter.ask.cookies = http::take_cookies(&mut headers.clone());
        }
        let fresh =
            http::freshened(old, headers, fetch.requested, self.cx.date(), self.cx.clock_right());
        self.serve_confirmed(&fetch, fresh, &waiters);
    }

    /// A record holds again: whoever waited is served from the store.
    pub(super) fn serve_confirmed(&mut self, fetch: &Fetch, fresh: Record, waiters: &[ExchangeId]) {
        let fresh = Rc::new(fresh);
        let control = CacheControl::of_response(&fresh.headers);
        // After a cookie no lifetime is guessed: the next one asks again.
        if !fetch.ask.headers.contains_key(header::COOKIE)
            || http::is_ruled(&fresh.headers, &control, fresh.received)
        {
            self.put_record(fetch.ask.key, fetch.ask.target.to_string(), Rc::clone(&fresh));
        }
        for waiter in waiters {
            let Some(exchange) = self.client.exchanges.get_mut(waiter) else { continue };
            exchange.ask.trail.upstream.clone_from(&fetch.status_line);
            if http::selects(&fresh, &exchange.ask.headers) {
                let forwarded = Some("fwd=stale; fwd-status=304".to_owned());
                self.check(*waiter, Rc::clone(&fresh), 0, forwarded);
            } else {
                self.ask_alone(&[*waiter]);
            }
        }
    }

    /// A server error, where a stale response may be used instead (RFC 5861 §4).
    fn stale_instead(&mut self, id: FetchId, status: StatusCode) -> bool {
        let Some(old) = self.object.fetches[&id].old.clone() else { return false };
        if !matches!(status.as_u16(), 500 | 502 | 503 | 504) {
            return false;
        }
        let now = self.cx.date();
        let waiters = self.object.fetches[&id].waiters.clone();
        let permitted = waiters.iter().all(|waiter| {
            self.client.exchanges.get(waiter).is_none_or(|exchange| {
                http::stale_permitted(&old, &exchange.ask.headers, now, true)
            })
        });
        if !permitted {
            return false;
        }
        self.object.retire(id);
        self.cx.turns.end(id);
        let detail = format!("fwd=stale; fwd-status={}", status.as_u16());
        for waiter in waiters {
            self.check(waiter, Rc::clone(&old), -1, Some(detail.clone()));
        }
        true
    }

    /// A successful unsafe request makes what is stored for its target doubtful (RFC 9111 §4.4).
    fn invalidate(&mut self, id: FetchId, status: StatusCode, headers: &HeaderMap) {
        let fetch = &self.object.fetches[&id];
        // Whoever is not known to be the host does not speak for its URIs.
        let speaks = fetch.ask.verified && !fetch.ask.method.is_safe();
        if !speaks || !(200..400).contains(&status.as_u16()) {
            return;
        }
        let target = fetch.ask.target.clone();
        let secret = &self.cx.config.secret;
        // What others have stored may be from the same origin.
        let audiences = match fetch.ask.audience {
            Audience::Everyone => &[Audience::Everyone][..],
            Audience::Site | Audience::ThisMachine => &Audience::ALL,
        };
        let mut targets = vec![target.clone()];
        for name in [header::LOCATION, header::CONTENT_LOCATION] {
            let path = headers.get(name).and_then(|value| same_host(value, &target));
            targets.extend(path.map(|path| target.with_path(&path)));
        }
        let keys = targets
            .iter()
            .flat_map(|target| audiences.iter().map(|audience| target.key(secret, *audience)));
        let keys: Vec<_> = keys.collect();
        for key in keys {
            // What is under way is from before it.
            self.object.joinable.remove(&key);
            // What only the catalogue has is not worth a look-up: it goes.
            match self.cx.rows.get(&key) {
                Some(row) => self.mark_invalid(key, &row),
                // The answer to a look-up that is under way may be older than this.
                None if self.cx.rows.is_awaited(&key) => {
                    self.write_row(key, Row::default());
                }
                None => self.remove_row(key),
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
        self.write_row(key, marked);
    }

    /// Content of a response.
    pub(super) fn body(&mut self, id: FetchId, bytes: Bytes) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let before = fetch.received;
        fetch.received += bytes.len() as u64;
        self.publish.handle_bytes(id, &bytes);
        self.source.came(id, self.cx.now);
        if self.source.is_at_origin(id) {
            self.cx.report.origin_bytes += bytes.len() as u64;
        }
        match &mut fetch.state {
            fetch::State::Asking => {}
            fetch::State::Repairing(_) => self.repair_body(id, &bytes),
            fetch::State::Passing(_, reason) => {
                let reason = *reason;
                fetch.held.push_back(bytes.clone());
                let count: &mut Unstored = self.cx.report.not_stored.entry(reason).or_default();
                count.bytes += bytes.len() as u64;
                self.let_go(id);
            }
            fetch::State::Storing(storing) => {
                let Some(cutting) = storing.cutting() else { return };
                let fresh = cutting.take(&bytes);
                for reader in &storing.readers {
                    self.cx.turns.hand(*reader, (before, bytes.clone()));
                }
                for unit in fresh {
                    self.keep(id, unit);
                }
                if before + bytes.len() as u64 > self.cx.config.object_bytes_max {
                    self.outgrow(id);
                }
                self.list_for_peers(id);
                self.watch(id);
                self.cx.turns.dirty(id);
            }
        }
    }

    /// Gives a client what it can take of a response that is not stored.
    pub(super) fn let_go(&mut self, id: FetchId) {
        while let Some(fetch) = self.object.fetches.get_mut(&id) {
            let fetch::State::Passing(client, _) = fetch.state else { return };
            let credit = self.client.exchanges.get(&client).map_or(0, |exchange| exchange.credit);
            let over = fetch.over;
            match fetch.held.pop_front() {
                Some(mut bytes) if credit > 0 => {
                    let rest = bytes.split_off(bytes.len().min(credit as usize));
                    if !rest.is_empty() {
                        fetch.held.push_front(rest);
                    }
                    self.send(client, bytes);
                }
                Some(bytes) => return fetch.held.push_front(bytes),
                None => return over.into_iter().for_each(|result| self.end(id, result)),
            }
        }
    }

    /// A response has ended, well or not.
    pub(super) fn end(&mut self, id: FetchId, result: Result<(), FetchError>) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        match (&mut fetch.state, result) {
            (fetch::State::Storing(storing), Ok(()))
                if storing.announced.is_none_or(|length| length == fetch.received) =>
            {
                self.close(id);
            }
            (fetch::State::Storing(_), _) => self.broken(id),
            (fetch::State::Passing(..), result) if !fetch.held.is_empty() => {
                fetch.over = Some(result);
                self.source.done(id);
            }
            (fetch::State::Passing(client, _), result) => {
                let client = *client;
                self.remove_fetch(id);
                let answered = self
                    .client
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
        if self.source.falls_back_beside(id) {
            // The peer beside which it was asked may still answer.
            return;
        }
        let in_vain = self.source.get(id).is_some_and(Pursuit::is_helpless);
        let waiters = self.object.retire(id);
        let Some(fetch) = self.remove_fetch(id) else { return };
        // Where peers were asked in vain before, it is the mesh that could not help.
        let is_forbidden = matches!(error, Some(FetchError::Forbidden(_)));
        let error = if in_vain && !is_forbidden { Some(FetchError::NoRoute) } else { error };
        let now = self.cx.date();
        for waiter in waiters {
            let Some(exchange) = self.client.exchanges.get(&waiter) else { continue };
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

    /// Breaks off a request to an origin.
    pub(super) fn cancel(&mut self, id: FetchId) {
        self.object.retire(id);
        let is_put = self.publish.has(id);
        self.source.cancel(&mut self.cx, id);
        if let Some(fetch) = self.remove_fetch(id) {
            if is_put {
                self.cx.out.push_back(Output::Origin(OriginOutput::Cancel(id)));
            }
            for reader in self.object.drop_storing(&mut self.cx, id, fetch) {
                self.abort(reader);
            }
        }
    }
}

/// `Content-Length`; the screen has seen to it that it is one number.
pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

pub(super) fn bodiless(method: &Method, status: StatusCode) -> bool {
    method == Method::HEAD || matches!(status.as_u16(), 100..200 | 204 | 304)
}

/// Adds a member to `Cache-Status` (RFC 9211).
pub(super) fn add_status(headers: &mut HeaderMap, name: &str, detail: &str) {
    let value = HeaderValue::try_from(format!("{name}; {detail}")).expect("tokens are ASCII");
    headers.append("cache-status", value);
}

/// Puts the members of the caches before us first (RFC 9211 §2).
pub(super) fn add_upstream(headers: &mut HeaderMap, status_line: &str) {
    if !status_line.is_empty()
        && let Ok(value) = HeaderValue::try_from(status_line)
    {
        headers.append("cache-status", value);
    }
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
