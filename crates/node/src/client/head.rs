//! What a response's head makes of it: stored, given on, a confirmation, or an error.

use super::{Client, Value};
use crate::client::miss::{Miss, Pass, Stage};
use crate::context::Context;
use crate::exchanges::exchange::State;
use crate::growing::cutting::Cutting;
use crate::growing::storing::{Inflow, Label, Storing};
use crate::http;
use crate::http::{
    Asked, Audience, CacheControl, Record, Row, add_status, add_upstream, bodiless, content_length,
};
use crate::input::{ExchangeId, FetchError, FetchId};
use crate::output::{ClientOutput, Head, Output};
use crate::pursuits::{Goal, Pursuit};
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::rc::Rc;

impl Client {
    /// The head of a response.
    pub fn head(&mut self, cx: &mut Context, id: FetchId, status: StatusCode, headers: HeaderMap) {
        self.invalidate(cx, id, status, &headers);
        let Some(miss) = self.misses.get(&id) else { return };
        if let Stage::Passing(_) = miss.stage {
            return self.pass_on(cx, id, status, headers);
        }
        if let (Some(old), true, StatusCode::NOT_MODIFIED) = (&miss.old, miss.confirms, status) {
            let old = Rc::clone(old);
            return self.confirmed(cx, id, &old, &headers);
        }
        if self.stale_instead(cx, id, status) {
            return;
        }
        match self.storable(cx, id, status, &headers) {
            Ok(()) => self.begin_storing(cx, id, status, headers),
            Err(reason) => self.do_not_store(cx, id, reason, status, headers),
        }
    }

    fn storable(
        &self,
        cx: &Context,
        id: FetchId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), &'static str> {
        let fetch = &self.misses[&id];
        if fetch.ask.method == Method::HEAD {
            return Err("head");
        }
        if let Some(reason) = fetch.unstorable {
            return Err(reason);
        }
        let asked = Asked { method: &fetch.ask.method, headers: &fetch.ask.headers };
        http::judge(&asked, status, headers, cx.date()).map_err(|reason| reason.as_str())?;
        if content_length(headers).is_some_and(|bytes| bytes > cx.config.object_bytes_max) {
            return Err("body-size");
        }
        if headers.contains_key(header::SET_COOKIE) && self.begun_by_peer(cx, fetch) {
            // The cookie is for that peer's client, and a record has none: so it gets the response as it is.
            return Err("cookie");
        }
        if cx.store_works() { Ok(()) } else { Err("store") }
    }

    /// Whether it was begun for a peer, which asks for a client of its own or of others behind it.
    fn begun_by_peer(&self, cx: &Context, fetch: &Miss) -> bool {
        let starter = fetch.starter.and_then(|starter| cx.exchanges.get(&starter));
        starter.is_some_and(|starter| starter.peer().is_some())
    }

    pub fn begin_storing(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        mut headers: HeaderMap,
    ) {
        let (now, right) = (cx.date(), cx.clock_right());
        let Some(fetch) = self.misses.get_mut(&id) else { return };
        let announced =
            if bodiless(&Method::GET, status) { Some(0) } else { content_length(&headers) };
        headers.remove(header::CONTENT_LENGTH);
        let cookies = http::take_cookies(&mut headers);
        if let Some(starter) = fetch.starter.and_then(|starter| cx.exchanges.get_mut(&starter)) {
            starter.ask.cookies = cookies;
        }
        if right && !headers.contains_key(header::DATE) {
            headers.insert(header::DATE, http::format_date(now));
        }
        let cutting = Cutting::new(cx.config.profile, cx.sealer.clone());
        let inflow = Inflow::Cut(Box::new(cutting));
        let mut storing = Storing::new(cx.dice.record_id(), status, headers, (now, right), inflow);
        storing.announced = announced;
        let names = http::vary(&storing.headers).unwrap_or_default();
        storing.selecting = http::selecting(names, &fetch.ask.headers);
        self.begin(id, storing);
        cx.turns.dirty(id);
    }

    /// The head is that of an object, which begins to come.
    pub fn begin(&mut self, id: FetchId, mut storing: Storing) {
        let Some(miss) = self.misses.get_mut(&id) else { return };
        let (key, uri, named) = (miss.ask.key, miss.ask.target.to_string(), miss.ask.named);
        storing.label = Some(Label { key, uri, named });
        storing.requested = miss.requested;
        miss.stage = Stage::Object;
        self.says(Value::Begin(id, Box::new(storing)));
    }

    /// An object begins to come: who waited reads it, if it is for them.
    pub fn begun(&mut self, cx: &mut Context, id: FetchId) {
        let now = cx.date();
        let Some((miss, storing)) = self.misses.get_mut(&id).zip(cx.growing.get(&id)) else {
            return;
        };
        let record = storing.so_far();
        miss.joined.clear();
        let (starter, waiters) = (miss.starter, std::mem::take(&mut miss.waiters));
        cx.pursuits.seeks(id, Goal::Object);
        let mut others = Vec::new();
        for waiter in waiters {
            let Some(exchange) = cx.exchanges.get(&waiter) else { continue };
            let joins = starter != Some(waiter);
            if joins && !http::may_join(&record, &exchange.ask.headers, now) {
                others.push(waiter);
                continue;
            }
            let counts = &mut cx.report.requests;
            *(if joins { &mut counts.collapsed } else { &mut counts.miss }) += 1;
            self.serve_growing(cx, waiter, id, joins);
        }
        self.ask_alone(cx, &others);
    }

    /// The response is not stored: who began the transfer gets it, the others ask for themselves.
    fn do_not_store(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        reason: &'static str,
        status: StatusCode,
        headers: HeaderMap,
    ) {
        let mut others = self.retire(id);
        let Some(fetch) = self.misses.get_mut(&id) else { return };
        // It may be for that one alone, and made with that one's fields.
        let starter = others.iter().position(|waiter| Some(*waiter) == fetch.starter);
        match starter.map(|at| others.remove(at)) {
            Some(starter) => {
                fetch.stage = Stage::Passing(Pass::new(starter, reason, fetch.granted));
                cx.pursuits.seeks(id, Goal::Pass);
                self.pass_on(cx, id, status, headers);
            }
            None => cx.turns.end(id),
        }
        self.ask_alone(cx, &others);
    }

    fn pass_on(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        mut headers: HeaderMap,
    ) {
        let Some(miss) = self.misses.get(&id) else { return };
        let Stage::Passing(Pass { client, reason, granted, .. }) = miss.stage else { return };
        let Some(exchange) = cx.exchanges.get_mut(&client) else {
            return cx.turns.end(id);
        };
        exchange.state = State::Passing(id);
        let credit = exchange.credit;
        let detail = format!("fwd={}; fwd-status={}; detail={reason}", miss.why, status.as_u16());
        add_upstream(&mut headers, &miss.status_line);
        add_status(&mut headers, &cx.config.name, &detail);
        let length =
            if bodiless(&miss.ask.method, status) { Some(0) } else { content_length(&headers) };
        cx.report.requests.pass += 1;
        cx.report.not_stored.entry(reason).or_default().responses += 1;
        if cx.exchanges[&client].peer().is_some() {
            self.supply_opaque(cx, client, status, &headers, length);
        } else {
            http::add_via(&mut headers, ::http::Version::HTTP_11, &cx.via);
            let output = ClientOutput::Respond(client, Box::new(Head { status, headers, length }));
            cx.out.push_back(Output::Client(output));
        }
        // A peer was given some credit with the request.
        self.grant(id, (credit.max(0) as u64).saturating_sub(granted));
    }

    /// The origin says that the old record still holds (RFC 9111 §4.3.4).
    fn confirmed(&mut self, cx: &mut Context, id: FetchId, old: &Rc<Record>, headers: &HeaderMap) {
        let waiters = self.retire(id);
        let Some(fetch) = self.remove(id) else { return };
        if !http::confirms(headers, old) {
            // It speaks of another version: ask again, without conditions.
            return self.ask_alone(cx, &waiters);
        }
        let starter = fetch.starter.and_then(|starter| cx.exchanges.get_mut(&starter));
        if let Some(starter) = starter.filter(|starter| starter.peer().is_none()) {
            starter.ask.cookies = http::take_cookies(&mut headers.clone());
        }
        let fresh = http::freshened(old, headers, fetch.requested, cx.date(), cx.clock_right());
        self.serve_confirmed(cx, &fetch, fresh, &waiters);
    }

    /// A record holds again: whoever waited is served from the store.
    pub fn serve_confirmed(
        &mut self,
        cx: &mut Context,
        fetch: &Miss,
        fresh: Record,
        waiters: &[ExchangeId],
    ) {
        let fresh = Rc::new(fresh);
        let control = CacheControl::of_response(&fresh.headers);
        // After a cookie no lifetime is guessed: the next one asks again.
        if !fetch.ask.headers.contains_key(header::COOKIE)
            || http::is_ruled(&fresh.headers, &control, fresh.received)
        {
            cx.put_record(fetch.ask.key, fetch.ask.target.to_string(), Rc::clone(&fresh));
        }
        for waiter in waiters {
            let Some(exchange) = cx.exchanges.get_mut(waiter) else { continue };
            exchange.ask.trail.upstream.clone_from(&fetch.status_line);
            if http::selects(&fresh, &exchange.ask.headers) {
                let forwarded = Some("fwd=stale; fwd-status=304".to_owned());
                self.check(cx, *waiter, Rc::clone(&fresh), 0, forwarded);
            } else {
                self.ask_alone(cx, &[*waiter]);
            }
        }
    }

    /// A server error, where a stale response may be used instead (RFC 5861 §4).
    fn stale_instead(&mut self, cx: &mut Context, id: FetchId, status: StatusCode) -> bool {
        let Some(old) = self.misses[&id].old.clone() else { return false };
        if !matches!(status.as_u16(), 500 | 502 | 503 | 504) {
            return false;
        }
        let now = cx.date();
        let waiters = self.misses[&id].waiters.clone();
        let permitted = waiters.iter().all(|waiter| {
            cx.exchanges.get(waiter).is_none_or(|exchange| {
                http::stale_permitted(&old, &exchange.ask.headers, now, true)
            })
        });
        if !permitted {
            return false;
        }
        self.retire(id);
        cx.turns.end(id);
        let detail = format!("fwd=stale; fwd-status={}", status.as_u16());
        for waiter in waiters {
            self.check(cx, waiter, Rc::clone(&old), -1, Some(detail.clone()));
        }
        true
    }

    /// A successful unsafe request makes what is stored for its target doubtful (RFC 9111 §4.4).
    fn invalidate(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        headers: &HeaderMap,
    ) {
        let Some(fetch) = self.misses.get(&id) else { return };
        // Whoever is not known to be the host does not speak for its URIs.
        let speaks = fetch.ask.verified && !fetch.ask.method.is_safe();
        if !speaks || !(200..400).contains(&status.as_u16()) {
            return;
        }
        let target = fetch.ask.target.clone();
        let secret = &cx.config.secret;
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
            self.joinable.remove(&key);
            // What only the catalogue has is not worth a look-up: it goes.
            match cx.rows.get(&key) {
                Some(row) => cx.mark_invalid(key, &row),
                // The answer to a look-up that is under way may be older than this.
                None if cx.rows.is_awaited(&key) => {
                    cx.write_row(key, Row::default());
                }
                None => cx.remove_row(key),
            }
        }
    }

    /// No head came: a stale response where that is permitted, else an honest error.
    pub fn unanswered(&mut self, cx: &mut Context, id: FetchId, error: Option<FetchError>) {
        let in_vain = cx.pursuits.get(&id).is_some_and(Pursuit::is_helpless);
        let waiters = self.retire(id);
        let Some(fetch) = self.remove(id) else { return };
        // Where peers were asked in vain before, it is the mesh that could not help.
        let is_forbidden = matches!(error, Some(FetchError::Forbidden(_)));
        let error = if in_vain && !is_forbidden { Some(FetchError::NoRoute) } else { error };
        let now = cx.date();
        for waiter in waiters {
            let Some(exchange) = cx.exchanges.get(&waiter) else { continue };
            let stale = fetch
                .old
                .as_ref()
                .filter(|old| http::stale_permitted(old, &exchange.ask.headers, now, false));
            match stale {
                Some(old) => {
                    let forwarded = Some("fwd=stale; detail=unreachable".to_owned());
                    self.check(cx, waiter, Rc::clone(old), -1, forwarded);
                }
                None => self.unreachable(cx, waiter, error),
            }
        }
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
