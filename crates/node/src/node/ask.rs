//! From a client's request to the decision where its answer comes from.

use super::Node;
use crate::access::{Access, Caller, Forbidden, may_use};
use crate::client::exchange::{Exchange, State};
use crate::http::{self, Audience, CacheControl, Record, Reuse, Row, Target};
use crate::input::{Config, Entrance, ExchangeId, FetchError, FetchId, Request};
use crate::named;
use crate::object::fetch::{self, Fetch};
use crate::output::{ClientOutput, Dial, Output};
use crate::request::COVER;
use crate::request::{Ask, Asker, Trail};
use crate::source::{Goal, Pursuit, Quest};
use ::http::uri::Authority;
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// A request is passed on so many times, at most: a mesh that is wider has no use for a cache.
const HOPS_MAX: u8 = wire::peer::Ask::VISITED_MAX as u8;

const NOT_LOCAL: &str = "this proxy serves local clients only, and those that its operator names in \
                         `allow`; a private address behind the uplink is not local";

impl Node {
    /// A client asks.
    pub(super) fn ask(&mut self, id: ExchangeId, mut request: Request) {
        let Request { client, behind_uplink, entrance, .. } = request;
        if entrance == Entrance::Explicit && !may_use(client, behind_uplink, &self.cx.config.allow)
        {
            return self.refuse(id, StatusCode::FORBIDDEN, NOT_LOCAL);
        }
        if http::passed(&request.headers, &self.cx.via) {
            return self.refuse(id, StatusCode::LOOP_DETECTED, "this request was here before");
        }
        if self.ends_here(id, &mut request) {
            return;
        }
        if request.method == Method::CONNECT {
            return self.tunnel(id, &request);
        }
        match understand(request, &self.cx.via, &self.cx.config) {
            Err(why) => {
                self.refuse(id, StatusCode::BAD_REQUEST, why);
            }
            Ok(ask) => match named::understand(ask, &self.cx.config.secret) {
                Err((status, why)) => self.refuse(id, status, why),
                Ok(ask) => match self.forbids(&ask) {
                    Some(why) => self.respond_forbidden(id, why),
                    None => {
                        let exchange = Exchange { ask, credit: 0, state: State::Looking };
                        self.client.exchanges.insert(id, exchange);
                        self.admit(id);
                    }
                },
            },
        }
    }

    fn tunnel(&mut self, id: ExchangeId, request: &Request) {
        let target = request.uri.authority().and_then(|authority| {
            Some((authority.host().to_owned(), authority.port_u16().filter(|port| *port != 0)?))
        });
        match (target, request.entrance) {
            (Some((host, port)), Entrance::Explicit) => {
                let caller = if request.at_home { Caller::ThisMachine } else { Caller::Tunnel };
                if let Err(why) = self.cx.config.access.check_port(caller, port) {
                    return self.respond_forbidden(id, why);
                }
                self.cx.report.requests.tunnel += 1;
                let dial = Dial::Name(host, port);
                let output = ClientOutput::Tunnel(id, dial, request.client, caller);
                self.cx.out.push_back(Output::Client(output));
            }
            _ => {
                self.refuse(id, StatusCode::BAD_REQUEST, "CONNECT wants HOST:PORT of a proxy");
            }
        }
    }

    /// What forbids a client's request whatever the routes and the addresses of its host are: then it is not even
    /// given what is stored. A peer is given that, and is refused only what this node would have to dial.
    fn forbids(&self, ask: &Ask) -> Option<Forbidden> {
        if ask.named.is_some() {
            // It has no origin.
            return None;
        }
        let (access, caller, port) = (&self.cx.config.access, ask.caller(), ask.target.port());
        match ask.target.address() {
            // An intercepted client has dialled, whatever it says.
            Some(address) if caller != Caller::Intercepted => {
                access.check(caller, (address, port).into()).err()
            }
            _ => access.check_port(caller, port).err(),
        }
    }

    /// Learns the addresses of a request's host, where they decide what becomes of it.
    fn admit(&mut self, id: ExchangeId) {
        let ask = &self.client.exchanges[&id].ask;
        let matters = match ask.caller() {
            Caller::Intercepted => true,
            // They tell whether the answer is for everyone.
            Caller::Explicit => ask.named.is_none() && !self.cx.config.access.private.is_empty(),
            Caller::ThisMachine | Caller::Tunnel | Caller::Peer => false,
        };
        if matters && self.cx.names.of(&ask.target, self.cx.now).is_none() {
            self.cx.names.resolve(ask.target.host(), ask.client, id, &mut self.cx.out);
            self.client.put_state(id, State::Resolving);
        } else {
            self.look(id);
        }
    }

    /// What an explicit client reads where no other client may go is for the site alone.
    fn keep_in_site(&mut self, id: ExchangeId) {
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return };
        let ask = &mut exchange.ask;
        if ask.caller() != Caller::Explicit || ask.named.is_some() {
            return;
        }
        let within = |address: &IpAddr| self.cx.config.access.is_of_site(*address);
        let addresses = self.cx.names.of(&ask.target, self.cx.now);
        if addresses.is_some_and(|addresses| addresses.iter().any(within)) {
            ask.audience = Audience::Site;
            ask.key = ask.target.key(&self.cx.config.secret, ask.audience);
        }
    }

    /// What a client on this machine asked for was not dialled as for others: it asks with its exemption, if
    /// it did not. After any other error an origin was dialled, and the exemption changes nothing.
    pub(super) fn turn_home(&mut self, id: ExchangeId, error: Option<FetchError>) -> bool {
        let helps = matches!(error, Some(FetchError::Forbidden(_) | FetchError::Unresolved));
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return false };
        if !helps || !std::mem::take(&mut exchange.ask.may_turn_home) {
            return false;
        }
        exchange.ask.audience = Audience::ThisMachine;
        exchange.ask.key = exchange.ask.target.key(&self.cx.config.secret, exchange.ask.audience);
        self.look(id);
        true
    }

    /// The host's addresses are known: sorts out what the request alone says cannot be cached, and
    /// goes on to the catalogue.
    pub(super) fn look(&mut self, id: ExchangeId) {
        self.keep_in_site(id);
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return };
        exchange.state = State::Looking;
        if let Entrance::Intercepted(dialled) = exchange.ask.entrance {
            let target = &exchange.ask.target;
            let addresses = self.cx.names.of(target, self.cx.now);
            let meant =
                addresses.is_some_and(|addresses| addresses.contains(&dialled.ip().to_canonical()));
            if !meant || target.port() != dialled.port() {
                return self.pass(id, "bypass", "host-mismatch");
            }
            exchange.ask.verified = true;
        }
        let ask = &exchange.ask;
        if let Some(reason) = ask.bypass() {
            let why = if reason == "method" { "method" } else { "bypass" };
            return self.pass(id, why, reason);
        }
        let key = ask.key;
        match self.cx.rows.get(&key) {
            Some(row) => self.decide(id, &row),
            None => self.cx.rows.look_up(key, id, &mut self.cx.out),
        }
    }

    /// The row is known: decides.
    pub(super) fn decide(&mut self, id: ExchangeId, row: &Row) {
        let (now, clock_right) = (self.cx.date(), self.cx.clock_right());
        let Some(exchange) = self.client.exchanges.get(&id) else { return };
        let ask = &exchange.ask;
        if let Some(resume) = ask.trail.resume {
            return self.take_up(id, resume, row);
        }
        if let Some(name) = ask.named {
            return self.decide_named(id, &name, row);
        }
        match http::decide(row, &ask.headers, now, clock_right) {
            Reuse::Hit(record, left) => self.check(id, record, left, None),
            Reuse::WhileRevalidating(record, left) => {
                let ask = ask.clone().in_background();
                self.check(id, Rc::clone(&record), left, None);
                if !self.object.joinable.contains_key(&ask.key) {
                    let id = self.fetch(ask, Some(record), "stale", Vec::new());
                    self.object.orphan(&mut self.cx, id);
                }
            }
            Reuse::Revalidate(record) => self.miss(id, Some(record), "stale"),
            Reuse::Miss(true) => self.miss(id, None, "vary-miss"),
            Reuse::Miss(false) => self.miss(id, None, "uri-miss"),
        }
    }

    /// Nothing stored will do: joins a transfer, or begins one.
    pub(super) fn miss(&mut self, id: ExchangeId, old: Option<Rc<Record>>, why: &'static str) {
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return };
        if exchange.ask.named.is_some() {
            Self::whole_of_named(&mut exchange.ask);
        }
        let ask = exchange.ask.clone();
        if CacheControl::of_request(&ask.headers).only_if_cached {
            return self.refuse(id, StatusCode::GATEWAY_TIMEOUT, "not cached, as was asked for");
        }
        let ask = match ask.method {
            Method::HEAD if ask.named.is_some() => Self::head_alone(ask),
            Method::HEAD if old.is_none() => return self.pass(id, why, "head"),
            _ => ask,
        };
        if old.is_none() && ask.headers.contains_key(header::RANGE) {
            return self.pass(id, "partial", "range");
        }
        let joins = ask.is_plain() && !ask.is_insistent() && !ask.alone;
        if joins && self.join(id) {
            return;
        }
        let why = if ask.is_insistent() { "request" } else { why };
        let fetch = self.fetch(ask, old, why, vec![id]);
        self.client.put_state(id, State::Waiting(fetch));
    }

    /// Joins the transfer of the same object, if there is one that will do.
    fn join(&mut self, id: ExchangeId) -> bool {
        let ask = &self.client.exchanges[&id].ask;
        let Some(fetch_id) = self.object.joinable.get(&ask.key).copied() else { return false };
        let (now, right) = (self.cx.date(), self.cx.clock_right());
        let crowded = self.cx.chunks.pinned_bytes() > self.cx.pinned_max();
        let Some(fetch) = self.object.fetches.get_mut(&fetch_id) else { return false };
        // What waits for us is not waited for (protocol: No loops).
        let asked = self.source.get(fetch_id).and_then(Pursuit::peer);
        if asked.is_some_and(|peer| ask.trail.visited.contains(&peer)) {
            return false;
        }
        match &fetch.state {
            fetch::State::Asking => {
                fetch.waiters.push(id);
                fetch.joined.push((self.cx.now, id));
                self.client.put_state(id, State::Waiting(fetch_id));
            }
            fetch::State::Storing(storing) => {
                let record = storing.so_far(fetch.requested);
                let fits = record.clocked == right && http::may_join(&record, &ask.headers, now);
                if !fits || storing.failed || storing.is_hollow() || crowded {
                    return false;
                }
                self.cx.report.requests.collapsed += 1;
                self.serve_growing(id, fetch_id, true);
            }
            fetch::State::Passing(..) | fetch::State::Repairing(_) => return false,
        }
        true
    }

    /// Notes a transfer whose response may be stored.
    pub(super) fn fetch(
        &mut self,
        ask: Ask,
        old: Option<Rc<Record>>,
        why: &'static str,
        waiters: Vec<ExchangeId>,
    ) -> FetchId {
        let mut headers = ask.headers.clone();
        // With a range asked for, a changed object is given on, not fetched whole.
        let ranged = headers.contains_key(header::RANGE);
        let confirms = old.as_ref().is_some_and(|old| {
            let mut asked = headers.clone();
            let can = http::make_conditional(&mut asked, old);
            if can {
                headers = asked;
            }
            can
        });
        let (key, merges) = (ask.key, ask.is_plain() || waiters.is_empty());
        let fetch = Fetch {
            old,
            confirms,
            unstorable: ranged.then_some("range"),
            ..Fetch::new(Rc::new(ask), self.cx.date(), why, waiters)
        };
        let id = self.start(fetch, headers, Goal::Head);
        if merges {
            self.object.joinable.insert(key, id);
        }
        id
    }

    /// Gives a request on to its origin, and the answer back, unstored.
    pub(super) fn pass(&mut self, id: ExchangeId, why: &'static str, reason: &'static str) {
        let Some(exchange) = self.client.exchanges.get(&id) else { return };
        let ask = exchange.ask.clone();
        let headers = ask.headers.clone();
        let fetch = Fetch {
            unstorable: Some(reason),
            state: fetch::State::Passing(id, reason),
            ..Fetch::new(Rc::new(ask), self.cx.date(), why, vec![id])
        };
        let fetch_id = self.start(fetch, headers, Goal::Pass);
        self.client.put_state(id, State::Waiting(fetch_id));
        self.source.dial_origin(&mut self.cx, fetch_id);
    }

    /// Notes a request of ours: it is asked of others, with these fields, when it has its turn.
    pub(super) fn start(&mut self, fetch: Fetch, headers: HeaderMap, goal: Goal) -> FetchId {
        let id = self.cx.tickets.fetch();
        let sends = fetch.ask.has_body || fetch.ask.upgrade;
        let quest = Quest {
            ask: Rc::clone(&fetch.ask),
            headers,
            have: fetch.old.as_ref().filter(|_| fetch.confirms).map(|old| old.id),
            content: fetch.starter.filter(|_| sends),
            goal,
        };
        self.source.begin(&mut self.cx, id, quest);
        self.object.fetches.insert(id, fetch);
        id
    }

    /// A stored response will do: sees first whether its units are still there.
    pub(super) fn check(
        &mut self,
        id: ExchangeId,
        record: Rc<Record>,
        left: i64,
        forwarded: Option<String>,
    ) {
        let Some(exchange) = self.client.exchanges.get(&id) else { return };
        let known = match exchange.peer() {
            Some(_) => exchange.ask.trail.have == Some(record.id),
            None => http::not_modified(&exchange.ask.headers, &record),
        };
        let needs_content = exchange.ask.method == Method::GET && record.length > 0 && !known;
        if !needs_content {
            return self.answer(id, &record, left, forwarded.as_deref());
        }
        match self.cx.manifests.get(record.id, 0) {
            Some(segment) if self.cx.is_sound(&record, &segment) => {
                self.answer(id, &record, left, forwarded.as_deref());
            }
            Some(_) => self.lost(id, &record),
            None => {
                self.cx.manifests.read((record.id, 0), id, &mut self.cx.out);
                self.client.put_state(id, State::Checking(record, left, forwarded));
            }
        }
    }

    /// The first segment has come, or is gone.
    pub(super) fn checked(&mut self, id: ExchangeId, segment: Option<&content::Segment>) {
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return };
        let State::Checking(record, left, forwarded) = &mut exchange.state else { return };
        let (record, left, forwarded) = (Rc::clone(record), *left, forwarded.take());
        if segment.is_some_and(|segment| self.cx.is_sound(&record, segment)) {
            self.answer(id, &record, left, forwarded.as_deref());
        } else {
            self.lost(id, &record);
        }
    }

    /// The content of a record is gone, or so much of it that mending would not pay: as if it had
    /// never been stored.
    fn lost(&mut self, id: ExchangeId, record: &Rc<Record>) {
        let Some(exchange) = self.client.exchanges.get(&id) else { return };
        self.forget_record(exchange.ask.key, record);
        self.miss(id, None, "uri-miss");
    }
}

/// Reads a request's target, from its first line or from `Host` (RFC 9112 §3.3).
fn understand(request: Request, via: &str, config: &Config) -> Result<Ask, &'static str> {
    let Request { method, uri, version, mut headers, has_body, client, at_home, entrance, .. } =
        request;
    let target = target(&uri, headers.get(header::HOST), entrance)?;
    let dial = match entrance {
        Entrance::Intercepted(dialled) => Dial::Address(dialled),
        Entrance::Explicit => Dial::Name(target.host().to_owned(), target.port()),
    };
    let upgrade = http::wants_upgrade(&headers);
    let upgrades = headers.get(header::UPGRADE).cloned().filter(|_| upgrade);
    http::strip_hop_by_hop(&mut headers);
    headers.remove(header::HOST);
    // The body is sent as soon as it comes: nobody waits for a 100.
    headers.remove(header::EXPECT);
    if let Some(upgrades) = upgrades {
        headers.insert(header::UPGRADE, upgrades);
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
    http::add_via(&mut headers, version, via);
    // Content and a connection for an upgrade are given to the first attempt: there is no second one.
    let repeatable = !has_body && !upgrade;
    let may_turn_home = at_home && repeatable && may_be_shared(&target, &config.access);
    let exempt = at_home && !may_turn_home;
    let audience = if exempt { Audience::ThisMachine } else { Audience::Everyone };
    let key = target.key(&config.secret, audience);
    Ok(Ask {
        asker: Asker::Client,
        trail: Trail { hops: HOPS_MAX, cover: COVER, ..Trail::default() },
        method,
        target,
        key,
        named: None,
        headers,
        client,
        audience,
        may_turn_home,
        entrance,
        dial,
        has_body,
        upgrade,
        alone: false,
        cookies: HeaderMap::new(),
        verified: entrance == Entrance::Explicit,
    })
}

/// Whether what this machine asks for is what any client of the proxy could get, as far as the target tells:
/// then its answer is for all of them.
fn may_be_shared(target: &Target, access: &Access) -> bool {
    let port = target.port();
    let permitted = match target.address() {
        Some(address) => access.check(Caller::Explicit, (address, port).into()),
        None => access.check_port(Caller::Explicit, port),
    };
    permitted.is_ok()
}

fn target(
    uri: &Uri,
    host: Option<&HeaderValue>,
    entrance: Entrance,
) -> Result<Target, &'static str> {
    match (uri.scheme_str(), entrance) {
        (Some("http"), _) => {
            let authority = uri.authority().ok_or("the target has no host")?;
            Target::new(authority, uri.path_and_query()).ok_or("the target has no host")
        }
        (Some(_), _) => Err("only http:// can be asked of this proxy; use CONNECT for the rest"),
        (None, Entrance::Explicit) => Err("this is a proxy: ask it for http://HOST/PATH"),
        (None, Entrance::Intercepted(dialled)) => {
            let authority = match host {
                Some(host) => {
                    Authority::try_from(host.as_bytes()).map_err(|_| "Host is no host")?
                }
                None => literal(dialled)?,
            };
            Target::new(&authority, uri.path_and_query()).ok_or("Host is no host")
        }
    }
}

fn literal(address: SocketAddr) -> Result<Authority, &'static str> {
    let plain = SocketAddr::new(address.ip().to_canonical(), address.port());
    Authority::try_from(plain.to_string()).map_err(|_| "the address is no host")
}
