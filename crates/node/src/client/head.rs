//! Decides what becomes of a response by its head: it is stored, passed on, a confirmation, or an
//! error.

use super::Client;
use super::misses::GoesOn;
use crate::client::miss::{Miss, Pass, Stage};
use crate::context::Context;
use crate::events::{Event, Judgement, Stale};
use crate::exchanges::exchange::State;
use crate::http;
use crate::http::{
    CacheControl, NotStored, Record, add_status, add_upstream, bodiless, content_length,
};
use crate::input::{ExchangeId, FetchError, FetchId};
use crate::output::{ClientOutput, Head, Output};
use crate::pursuits::{Goal, Pursuit};
use crate::request::Ask;
use ::http::{HeaderMap, Method, StatusCode, header};
use std::rc::Rc;
use wire::peer::Outcome;

impl Client {
    /// The head of a response has arrived.
    pub fn head(&mut self, cx: &mut Context, id: FetchId, status: StatusCode, headers: HeaderMap) {
        // First: also an answer that is not stored may invalidate what is (RFC 9111 §4.4).
        self.misses.invalidate(cx, id, status, &headers);
        let Some(miss) = self.misses.get(&id) else { return cx.events.stale(Stale::OriginHead) };
        let date = cx.clock_right().then(|| cx.date());
        self.pauses.learn(&miss.ask.target, status, &headers, (cx.now, date));
        let code = status.as_u16();
        let judged = |verdict| move || Event::Head { fetch: id, status: code, verdict };
        // The request alone showed that its response cannot be stored: there is nothing to judge.
        if let Stage::Passing(_) = miss.stage {
            cx.events.emit(judged(Judgement::Passed));
            return self.pass_on(cx, id, status, headers);
        }
        self.misses.learn(cx, id, status, &headers);
        let Some(miss) = self.misses.get(&id) else { return };
        if let (Some(old), true, StatusCode::NOT_MODIFIED) = (&miss.old, miss.confirms, status) {
            let old = Rc::clone(old);
            cx.events.emit(judged(Judgement::Confirms));
            return self.confirmed(cx, id, &old, &headers);
        }
        // The origin failed, and its last good response may be used instead (RFC 5861 §4).
        if let Some(old) = miss.stands_in(cx, status) {
            let detail = format!("fwd=stale; fwd-status={code}");
            cx.events.emit(judged(Judgement::StandsIn));
            let waiters = self.misses.retire(id);
            cx.turns.end(id);
            for waiter in waiters {
                self.check(cx, waiter, Rc::clone(&old), -1, Some(detail.clone()));
            }
            return;
        }
        if cx.pursuits.get(&id).is_some_and(Pursuit::is_for_rest) {
            match self.misses.go_on(cx, id, status, &headers, &mut self.values) {
                GoesOn::No => {}
                GoesOn::Yes => return cx.events.emit(judged(Judgement::Object)),
                // The client has not asked for a part of another version.
                GoesOn::Anew => {
                    let waiters = self.misses.retire(id);
                    cx.turns.end(id);
                    return self.ask_alone(cx, &waiters);
                }
            }
        }
        let Some(miss) = self.misses.get(&id) else { return };
        match miss.judge(cx, status, &headers) {
            Ok(()) => {
                cx.events.emit(judged(Judgement::Object));
                self.misses.begin_storing(cx, id, status, headers, &mut self.values);
            }
            Err(reason) => {
                cx.events.emit(judged(Judgement::Passed));
                self.do_not_store(cx, id, reason, status, headers);
            }
        }
    }

    /// An object has begun: the requests that wait read it, if its response fits them.
    pub fn begun(&mut self, cx: &mut Context, id: FetchId) {
        let now = cx.date();
        let Some((miss, incoming)) = self.misses.get_mut(&id).zip(cx.transfers.get(&id)) else {
            return;
        };
        let (record, verdict) = (incoming.so_far(), miss.ask.verdict);
        miss.joined.clear();
        let (starter, waiters) = (miss.starter, std::mem::take(&mut miss.waiters));
        cx.pursuits.seeks(id, Goal::Object);
        let mut others = Vec::new();
        for waiter in waiters {
            let Some(exchange) = cx.exchanges.get(&waiter) else { continue };
            let joins = starter != Some(waiter);
            // The response was made for the starter's request. The others may want another variant.
            if joins && !http::may_join(&record, &exchange.ask.headers, &verdict, now) {
                others.push(waiter);
                continue;
            }
            let counts = &mut cx.report.requests;
            *(if joins { &mut counts.collapsed } else { &mut counts.miss }) += 1;
            self.serve_growing(cx, waiter, id, joins);
        }
        self.ask_alone(cx, &others);
    }

    /// The response is not stored: the request that began it gets it, the others ask for
    /// themselves.
    fn do_not_store(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        reason: NotStored,
        status: StatusCode,
        headers: HeaderMap,
    ) {
        let mut others = self.misses.retire(id);
        let Some(fetch) = self.misses.get_mut(&id) else { return };
        // The response may be meant for that client alone, and depend on its header fields.
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
        // From here on the body goes to this one exchange.
        exchange.state = State::Passing(id);
        let credit = exchange.credit;
        let detail = format!(
            "fwd={}; fwd-status={}; detail={}",
            miss.why.name(),
            status.as_u16(),
            reason.name()
        );
        add_upstream(&mut headers, &miss.status_line);
        add_status(&mut headers, &cx.config.name, &detail);
        let length =
            if bodiless(&miss.ask.method, status) { Some(0) } else { content_length(&headers) };
        cx.report.requests.pass += 1;
        cx.report.not_stored.of(reason).responses += 1;
        if cx.exchanges[&client].peer().is_some() {
            // To a HEAD, the length is that of the content which a GET would get.
            let is_head = miss.ask.method == Method::HEAD;
            let length = if is_head { content_length(&headers) } else { length };
            if !self.peer_readers.say_opaque(cx, client, status, &headers, length) {
                self.dismiss(cx, client, Outcome::Busy);
            }
        } else {
            http::add_via(&mut headers, ::http::Version::HTTP_11, &cx.via);
            let output = ClientOutput::Respond(client, Box::new(Head { status, headers, length }));
            cx.out.push_back(Output::Client(output));
        }
        // A peer's request came with some credit of its own.
        self.misses.grant(id, (credit.max(0) as u64).saturating_sub(granted), &mut self.values);
    }

    /// The origin confirms the stored record (RFC 9111 §4.3.4).
    fn confirmed(&mut self, cx: &mut Context, id: FetchId, old: &Rc<Record>, headers: &HeaderMap) {
        let waiters = self.misses.retire(id);
        let Some(fetch) = self.misses.end(id, &mut self.values) else { return };
        if !http::confirms(headers, old) {
            // The confirmation is for another version: ask again without conditions.
            return self.ask_alone(cx, &waiters);
        }
        let starter = fetch.starter.and_then(|starter| cx.exchanges.get_mut(&starter));
        if let Some(starter) = starter.filter(|starter| starter.peer().is_none()) {
            starter.ask.cookies = http::take_cookies(&mut headers.clone());
        }
        let fresh = http::freshened(old, headers, fetch.requested, cx.date(), cx.clock_right());
        // What a 304 says to credentials is for others only if it says so itself.
        let is_for_all =
            !fetch.ask.goes_alone() || http::is_for_all(&CacheControl::of_response(headers));
        self.serve_confirmed(cx, &fetch, fresh, &waiters, is_for_all);
    }

    /// A record is fresh again: the waiting requests are served from the store. Others get what the confirmation says
    /// of it if that is for all.
    pub fn serve_confirmed(
        &mut self,
        cx: &mut Context,
        fetch: &Miss,
        fresh: Record,
        waiters: &[ExchangeId],
        is_for_all: bool,
    ) {
        let fresh = Rc::new(fresh);
        let control = CacheControl::of_response(&fresh.headers);
        // A request with a cookie must not set a heuristic lifetime: the next request asks again.
        let is_ruled = !fetch.ask.headers.contains_key(header::COOKIE)
            || http::is_ruled(&fresh.headers, &control, fresh.received);
        if is_ruled && is_for_all {
            cx.put_record(fetch.ask.key, fetch.ask.target.to_string(), Rc::clone(&fresh));
        }
        for waiter in waiters {
            let Some(exchange) = cx.exchanges.get_mut(waiter) else { continue };
            exchange.ask.peer_hops.upstream.clone_from(&fetch.status_line);
            // The 304 was for one request's fields; this one may select another variant.
            if http::selects(&fresh, &exchange.ask.headers) {
                let forwarded = Some("fwd=stale; fwd-status=304".to_owned());
                self.check(cx, *waiter, Rc::clone(&fresh), 0, forwarded);
            } else {
                self.ask_alone(cx, &[*waiter]);
            }
        }
    }

    /// No head arrived: answers with a stale response where that is permitted, else with an error.
    pub fn unanswered(&mut self, cx: &mut Context, id: FetchId, error: Option<FetchError>) {
        let in_vain = cx.pursuits.get(&id).is_some_and(Pursuit::is_helpless);
        let waiters = self.misses.retire(id);
        let Some(fetch) = self.misses.end(id, &mut self.values) else { return };
        if error == Some(FetchError::Elsewhere) {
            // Other routers were named for one asker: requests of others are sent anew.
            let asker = fetch.ask.peer_hops.visited.first();
            let is_own = |waiter: &ExchangeId| {
                cx.exchanges.get(waiter).is_some_and(|it| it.ask.peer_hops.visited.first() == asker)
            };
            let (own, others): (Vec<_>, Vec<_>) = waiters.into_iter().partition(is_own);
            self.ask_alone(cx, &others);
            for waiter in own {
                if cx.exchanges.get(&waiter).is_some() {
                    self.unreachable(cx, waiter, error);
                }
            }
            return;
        }
        // Peers had failed before: then it is the mesh that gave no answer.
        let is_forbidden = matches!(error, Some(FetchError::Forbidden(_)));
        let error = if in_vain && !is_forbidden { Some(FetchError::NoRoute) } else { error };
        self.pauses.fail(&fetch.ask.target, error, cx.now);
        let now = cx.date();
        for waiter in waiters {
            let Some(exchange) = cx.exchanges.get(&waiter) else { continue };
            let Ask { headers, verdict, .. } = &exchange.ask;
            let permitted =
                |old: &&Rc<Record>| http::stale_permitted(old, headers, verdict, now, false);
            match fetch.old.as_ref().filter(permitted) {
                Some(old) => {
                    let forwarded = Some("fwd=stale; detail=unreachable".to_owned());
                    self.check(cx, waiter, Rc::clone(old), -1, forwarded);
                }
                None => self.unreachable(cx, waiter, error),
            }
        }
    }
}
