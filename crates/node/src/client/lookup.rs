//! Decides where the answer to a request comes from: the store, a transfer under way, or a new one.

use super::alias::{self, Found};
use super::pauses::Excuse;
use super::{Client, Value};
use crate::client::miss::{Forward, Stage};
use crate::context::Context;
use crate::events::{Event, Stale};
use crate::exchanges::exchange::State;
use crate::fault::Fault;
use crate::http::{CacheControl, NotStored, Record, Reuse, Row, selects};
use crate::input::{Entrance, ExchangeId, FetchId};
use crate::pursuits::Pursuit;
use crate::{http, named};
use ::http::{Method, header};
use std::rc::Rc;
use std::time::Duration;
use wire::peer::{Outcome, Resume};

/// A request that joined another waits this long for a head while the peer sends nothing; then it
/// asks the gateway, alone.
const JOINED_TIMEOUT: Duration = Duration::from_secs(2);
/// It waits up to this long while the peer sends other things: the air is full then, and another
/// copy would fill it more.
const JOINED_MAX: Duration = Duration::from_secs(10);

impl Client {
    /// The host's addresses are known. Passes on what the request alone shows to be uncacheable,
    /// and looks the rest up in the catalogue.
    pub fn look(&mut self, cx: &mut Context, id: ExchangeId) {
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return cx.events.stale(Stale::Name) };
        let addresses = cx.dns.of(&exchange.ask.target, cx.now);
        // Before the row is looked up: this may change the key.
        exchange.ask.keep_in_site(addresses.as_deref(), &cx.config);
        exchange.state = State::Looking;
        if let Entrance::Intercepted(dialled) = exchange.ask.entrance
            && let Some(reason) = self.pauses.verify(cx, id, dialled, addresses.as_deref())
        {
            return self.misses.pass(cx, id, Forward::Bypass, reason, &mut self.values);
        }
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        let ask = &exchange.ask;
        if let Some(reason) = ask.bypass() {
            let is_method = reason == NotStored::Method;
            let why = if is_method { Forward::Method } else { Forward::Bypass };
            return self.misses.pass(cx, id, why, reason, &mut self.values);
        }
        let key = ask.key;
        match cx.rows.get(&key) {
            Some(row) => self.decide(cx, id, &row),
            None => cx.rows.look_up(key, id, &mut cx.out),
        }
    }

    /// The row is known: hit, revalidation or miss.
    pub fn decide(&mut self, cx: &mut Context, id: ExchangeId, row: &Row) {
        let (now, clock_right) = (cx.date(), cx.clock_right());
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        let ask = &exchange.ask;
        // A resumed transfer must go on with the same record, fresh or not.
        if let Some(resume) = ask.peer_hops.resume {
            return self.take_up(cx, id, resume, row);
        }
        if let Some(name) = ask.named {
            // A named object never becomes stale: its name certifies its content.
            let wanted = named::record_id(&name);
            return match row.records.iter().find(|record| record.id == wanted) {
                Some(record) => self.check(cx, id, Rc::clone(record), named::LEFT, None),
                None => self.miss(cx, id, None, Forward::UriMiss),
            };
        }
        let found = match http::decide(row, &ask.headers, &ask.verdict, now, clock_right) {
            _ if matches!(exchange.state, State::Aliased { .. }) => alias::step(cx, id, row),
            Reuse::Miss(varies) => alias::begin(cx, id, varies),
            // Another version than the one that is asked for, or one at which nobody has looked: it is not revalidated
            // either, since an origin's 304 says nothing about the digest of what is stored here.
            Reuse::Hit(record, _)
            | Reuse::Revalidate(record)
            | Reuse::WhileRevalidating(record, _)
                if !record.may_have(ask.expected) =>
            {
                alias::begin(cx, id, false)
            }
            Reuse::Hit(record, left) => return self.check(cx, id, record, left, None),
            Reuse::Revalidate(record) => match self.pauses.excuse(cx, ask, &record) {
                Some(excuse) => {
                    if excuse == Excuse::Unreachable(true) && ask.verified {
                        self.misses.revalidate_beside(cx, ask.clone(), &record, &mut self.values);
                    }
                    return self.check(cx, id, record, -1, Some(excuse.status()));
                }
                None => return self.miss(cx, id, Some(record), Forward::Stale),
            },
            Reuse::WhileRevalidating(record, left) => {
                // The client gets the stale response at once; nobody waits for the new one (RFC
                // 5861).
                let ask = ask.clone();
                self.check(cx, id, Rc::clone(&record), left, None);
                if ask.verified {
                    self.misses.revalidate_beside(cx, ask, &record, &mut self.values);
                }
                return;
            }
        };
        match found {
            Found::Later => {}
            Found::Record(record) => self.check(cx, id, record, http::FOR_EVER, None),
            Found::Nothing(why) => self.miss(cx, id, None, why),
        }
    }

    /// A peer resumes a transfer that was interrupted.
    pub fn take_up(&mut self, cx: &mut Context, id: ExchangeId, resume: Resume, row: &Row) {
        let Some(key) = cx.exchanges.get(&id).map(|exchange| exchange.ask.key) else {
            return;
        };
        let incoming = cx.transfers.iter().find_map(|(fetch_id, incoming)| {
            // The key must match too: the record must not be served under another object's name.
            let same = incoming.label.as_ref().is_some_and(|label| label.key == key);
            let has = same
                && incoming.record == resume.record
                && (!incoming.starts_late() || incoming.segment_is_here(resume.segment));
            has.then_some(*fetch_id)
        });
        if let Some(fetch) = incoming {
            return self.supply_growing(cx, id, fetch, "collapsed");
        }
        if let Some(record) = row.records.iter().find(|record| record.id == resume.record) {
            return self.supply_closed(cx, id, &Rc::clone(record), "hit");
        }
        // Another router may have the record, if the rest is not here.
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        let named = exchange.ask.named;
        if cx.mesh.as_ref().is_some_and(|mesh| mesh.has_sources(named)) {
            let ask = exchange.ask.clone();
            let (old, why) = (None, Forward::UriMiss);
            let fetch = self.misses.fetch(cx, ask, old, why, vec![id], &mut self.values);
            cx.events.emit(|| Event::Miss { exchange: id, fetch, why });
            return cx.exchanges.put_state(id, State::Waiting(fetch));
        }
        self.dismiss(cx, id, Outcome::UnknownRecord);
    }

    /// Nothing stored answers the request: joins a transfer, or begins one.
    pub fn miss(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        old: Option<Rc<Record>>,
        why: Forward,
    ) {
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return };
        // A published object is fetched whole, and its ranges are cut from that.
        if exchange.ask.named.is_some() {
            exchange.ask.make_whole();
        }
        let ask = exchange.ask.clone();
        let only_here = ask.peer_hops.towards.is_some_and(|towards| {
            cx.mesh.as_ref().and_then(|mesh| mesh.routes.own_address()) == Some(towards)
        });
        if only_here || CacheControl::of_request(&ask.headers).only_if_cached {
            return self.refuse(cx, id, Fault::NotCached);
        }
        // Whether the address that the client dialled is the host's is unknown: what comes from there is for this client.
        if !ask.verified {
            let (why, reason) = (Forward::Bypass, NotStored::HostUnknown);
            return self.misses.pass(cx, id, why, reason, &mut self.values);
        }
        if let Some(outcome) = super::elsewhere::nearer(cx, &ask) {
            cx.report.redirects += 1;
            self.dismiss(cx, id, outcome);
            return;
        }
        // The peer stores nothing, and what it asks for is rarely the whole object.
        if ask.peer_hops.passed {
            return self.misses.pass(cx, id, why, NotStored::Relayed, &mut self.values);
        }
        let ask = match ask.method {
            Method::HEAD if ask.named.is_some() => ask.head_alone(),
            Method::HEAD if old.is_none() => {
                return self.misses.pass(cx, id, why, NotStored::Head, &mut self.values);
            }
            _ => ask,
        };
        // Only whole responses are stored, so a range that misses is passed on.
        if old.is_none() && ask.headers.contains_key(header::RANGE) {
            return self.misses.pass(cx, id, Forward::Partial, NotStored::Range, &mut self.values);
        }
        // A client that insists on the origin's current answer cannot share an earlier request.
        let insists = ask.is_insistent();
        let joins = ask.is_plain()
            && !insists
            && !ask.alone
            && !ask.goes_alone()
            && ask.peer_hops.towards.is_none();
        if let Some(fetch) = joins.then(|| self.join(cx, id)).flatten() {
            return cx.events.emit(|| Event::Join { exchange: id, fetch });
        }
        // `Cache-Status` says that the request itself asked for this.
        let why = if insists { Forward::Request } else { why };
        let fetch = self.misses.fetch(cx, ask, old, why, vec![id], &mut self.values);
        cx.events.emit(|| Event::Miss { exchange: id, fetch, why });
        if let Some(exchange) = cx.exchanges.get_mut(&id) {
            exchange.ask.peer_hops.forwarded = true;
        }
        cx.exchanges.put_state(id, State::Waiting(fetch));
    }

    /// Joins a transfer of the same object if its response will fit this request too.
    fn join(&mut self, cx: &mut Context, id: ExchangeId) -> Option<FetchId> {
        let ask = &cx.exchanges[&id].ask;
        let fetch_id = self.misses.joinable.get(&ask.key).copied()?;
        let (now, right) = (cx.date(), cx.clock_right());
        let crowded = cx.chunks.pinned_bytes() > cx.pinned_max();
        let miss = self.misses.get_mut(&fetch_id)?;
        // Nobody looks at the digest of that response, or at another one.
        if ask.expected.is_some() && ask.expected != miss.ask.expected {
            return None;
        }
        // If the peer that we asked waits for this request itself, waiting for its answer would be
        // a deadlock.
        let asked = cx.pursuits.get(&fetch_id).and_then(Pursuit::peer);
        if asked.is_some_and(|peer| ask.peer_hops.visited.contains(&peer)) {
            return None;
        }
        match &miss.stage {
            Stage::Asking => {
                miss.waiters.push(id);
                miss.joined.push((cx.now, id));
                cx.exchanges.put_state(id, State::Waiting(fetch_id));
            }
            Stage::Object => {
                let incoming = cx.transfers.get(&fetch_id)?;
                let record = incoming.so_far();
                let fits = record.clocked == right
                    && http::may_join(&record, &ask.headers, &ask.verdict, now);
                // A new reader needs the object's beginning. It is missing if the object is kept in
                // memory only, or starts late.
                if !fits || incoming.memory_only || incoming.starts_late() || crowded {
                    return None;
                }
                cx.report.requests.collapsed += 1;
                self.serve_growing(cx, id, fetch_id, true);
            }
            Stage::Passing(_) => return None,
        }
        Some(fetch_id)
    }

    /// A stored response fits: checks first that its units are still stored.
    pub fn check(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        record: Rc<Record>,
        left: i64,
        forwarded: Option<String>,
    ) {
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        // The asker has the content: only the head is sent, and no unit is needed.
        let known = match exchange.peer() {
            Some(_) if !exchange.ask.peer_hops.passed => {
                exchange.ask.peer_hops.have == Some(record.id)
            }
            _ => http::not_modified(&exchange.ask.headers, &record),
        };
        let needs_content = exchange.ask.method == Method::GET && record.length > 0 && !known;
        if !needs_content {
            return self.answer(cx, id, &record, left, forwarded.as_deref());
        }
        match cx.manifests.get(record.id, 0) {
            Some(segment) if cx.is_sound(&record, &segment) => {
                self.answer(cx, id, &record, left, forwarded.as_deref());
            }
            // The row is right, but its units were evicted: that is a miss.
            Some(_) => self.lost(cx, id, &record),
            None => {
                cx.manifests.read((record.id, 0), id, &mut cx.out);
                cx.exchanges.put_state(id, State::Checking(record, left, forwarded));
            }
        }
    }

    /// The first segment has been read; `None` if it is gone.
    pub fn checked(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        segment: Option<&content::Segment>,
    ) {
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return };
        let State::Checking(record, left, forwarded) = &mut exchange.state else { return };
        let (record, left, forwarded) = (Rc::clone(record), *left, forwarded.take());
        if segment.is_some_and(|segment| cx.is_sound(&record, segment)) {
            self.answer(cx, id, &record, left, forwarded.as_deref());
        } else {
            self.lost(cx, id, &record);
        }
    }

    /// The record's content is gone, or too much of it for a repair to pay: treats the record as
    /// never stored.
    fn lost(&mut self, cx: &mut Context, id: ExchangeId, record: &Rc<Record>) {
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        let key = exchange.ask.key;
        if cx.forget_record(key, record.id) {
            self.values.push_back(Value::Forgotten(record.id));
        }
        self.miss(cx, id, None, Forward::UriMiss);
    }

    /// Requests that joined a transfer without a head leave it after a timeout and ask alone.
    pub fn look_after_joined(&mut self, cx: &mut Context, id: FetchId) {
        let Some((mesh, fetch)) = cx.mesh.as_ref().zip(self.misses.get_mut(&id)) else {
            return;
        };
        let gave =
            cx.pursuits.get(&id).and_then(Pursuit::peer).and_then(|peer| mesh.peers.gave(peer));
        let silent = gave.is_none_or(|gave| cx.now - gave > JOINED_TIMEOUT);
        let timeout = if silent { JOINED_TIMEOUT } else { JOINED_MAX };
        let due = |(at, _): &(_, _)| cx.now - *at > timeout;
        let count = fetch.joined.iter().take_while(|it| due(it)).count();
        let overdue: Vec<ExchangeId> = fetch.joined.drain(..count).map(|(_, id)| id).collect();
        fetch.waiters.retain(|waiter| !overdue.contains(waiter));
        let old = fetch.old.clone();
        for waiter in overdue {
            let Some(exchange) = cx.exchanges.get_mut(&waiter) else { continue };
            if matches!(exchange.state, State::Waiting(fetch) if fetch == id) {
                exchange.ask.alone = true;
                exchange.ask.peer_hops.to_gateway = true;
                let old = old.clone().filter(|old| selects(old, &exchange.ask.headers));
                self.miss(cx, waiter, old, Forward::UriMiss);
            }
        }
    }

    /// Sends a request of its own for each of these exchanges, which cannot share another's
    /// response.
    pub fn ask_alone(&mut self, cx: &mut Context, ids: &[ExchangeId]) {
        for id in ids {
            if let Some(exchange) = cx.exchanges.get_mut(id) {
                exchange.ask.alone = true;
                // The exchange must not end with the request that it waited for until now.
                exchange.state = State::Looking;
                self.miss(cx, *id, None, Forward::UriMiss);
            }
        }
    }
}
