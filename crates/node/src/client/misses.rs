//! All requests that nothing stored answers: which others may join, how each begins and ends.

use super::classified::judge;
use super::miss::{Forward, Miss, Pass, Stage};
use super::peer_head::selecting;
use super::{Value, Values};
use crate::context::Context;
use crate::events::Event;
use crate::exchanges::exchange::State;
use crate::hasher::Map;
use crate::http::{Asked, Audience, NotStored, Record, RecordSignature, bodiless, content_length};
use crate::input::{ExchangeId, FetchId};
use crate::output::{ClientOutput, Output};
use crate::pursuits::{Goal, Quest};
use crate::request::{Ask, MANIFEST_CREDIT};
use crate::transfers::check::Check;
use crate::transfers::cutting::Cutting;
use crate::transfers::incoming::{Incoming, Label};
use crate::transfers::rest::rest_end;
use crate::transfers::transfer::{Listing, Transfer};
use crate::{http, named};
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use classes::{IndexReader, Keep};
use content::Root;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use wire::peer::Head;
use wire::{ObjectKey, Oid, RecordId};

/// All misses; see the module.
#[derive(Default)]
pub struct Misses {
    /// All of them by number.
    all: Map<FetchId, Miss>,
    /// The requests that others may join, by the object's key.
    pub joinable: Map<ObjectKey, FetchId>,
}

/// Whether the part of an object goes on with a response.
pub enum GoesOn {
    /// It does.
    Yes,
    /// The response is one to a request for the whole object.
    No,
    /// It does not, and the whole object has to be asked for.
    Anew,
}

/// There is nothing after the part (RFC 9110 §15.5.17): the object has become shorter.
const UNSATISFIABLE: StatusCode = StatusCode::RANGE_NOT_SATISFIABLE;

impl Deref for Misses {
    type Target = Map<FetchId, Miss>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl DerefMut for Misses {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.all
    }
}

impl Misses {
    /// Begins a request whose response may be stored.
    pub fn fetch(
        &mut self,
        cx: &mut Context,
        ask: Ask,
        old: Option<Rc<Record>>,
        why: Forward,
        waiters: Vec<ExchangeId>,
        values: &mut Values,
    ) -> FetchId {
        let mut headers = ask.headers.clone();
        // If the request has a range and the object has changed, the response is passed on, not
        // fetched whole.
        let ranged = headers.contains_key(header::RANGE);
        // A conditional request is of use only if the stored response has a validator.
        let confirms = old.as_ref().is_some_and(|old| {
            let mut asked = headers.clone();
            let can = http::make_conditional(&mut asked, old);
            if can {
                headers = asked;
            }
            can
        });
        // One that only a certain router may answer may end without an answer.
        let merges = ask.peer_hops.towards.is_none()
            && !ask.goes_alone()
            && (ask.is_plain() || waiters.is_empty());
        let key = ask.key;
        let miss = Miss {
            old,
            confirms,
            unstorable: ranged.then_some(NotStored::Range),
            ..Miss::new(Rc::new(ask), cx.date(), why, waiters)
        };
        let id = self.start(cx, miss, headers, Goal::Head, values);
        // Later requests for the same object wait for this one.
        if merges {
            self.joinable.insert(key, id);
        }
        id
    }

    /// Revalidates a record beside: nobody waits for that. None if a request is under way that serves as well.
    pub fn revalidate_beside(
        &mut self,
        cx: &mut Context,
        ask: Ask,
        record: &Rc<Record>,
        values: &mut Values,
    ) -> Option<&mut Miss> {
        if self.joinable.contains_key(&ask.key) {
            return None;
        }
        let (ask, old) = (ask.in_background(), Some(Rc::clone(record)));
        let id = self.fetch(cx, ask, old, Forward::Stale, Vec::new(), values);
        // Without readers it would be cancelled.
        values.push_back(Value::Orphan(id));
        self.all.get_mut(&id)
    }

    /// Begins a request whose response is passed on and not stored.
    pub fn pass(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        why: Forward,
        reason: NotStored,
        values: &mut Values,
    ) {
        let Some(exchange) = cx.exchanges.get(&id) else { return };
        let ask = exchange.ask.clone();
        let headers = ask.headers.clone();
        let miss = Miss {
            unstorable: Some(reason),
            stage: Stage::Passing(Pass::new(id, reason, 0)),
            ..Miss::new(Rc::new(ask), cx.date(), why, vec![id])
        };
        let fetch_id = self.start(cx, miss, headers, Goal::Pass, values);
        cx.events.emit(|| Event::Pass { exchange: id, fetch: fetch_id, why: reason });
        cx.exchanges.put_state(id, State::Waiting(fetch_id));
    }

    /// Registers a request of this node. `source` sends it, with these fields, at its turn.
    fn start(
        &mut self,
        cx: &mut Context,
        miss: Miss,
        headers: HeaderMap,
        goal: Goal,
        values: &mut Values,
    ) -> FetchId {
        let id = cx.ids.fetch();
        let sends = miss.ask.has_body || miss.ask.upgrade;
        let quest = Quest {
            ask: Rc::clone(&miss.ask),
            headers,
            have: miss.old.as_ref().filter(|_| miss.confirms).map(|old| old.id),
            content: miss.starter.filter(|_| sends),
            goal,
        };
        values.push_back(Value::Seek(id, quest));
        self.all.insert(id, miss);
        id
    }

    /// No request may join from now on; returns those that wait.
    pub fn retire(&mut self, id: FetchId) -> Vec<ExchangeId> {
        let Some(miss) = self.all.get_mut(&id) else { return Vec::new() };
        let key = miss.ask.key;
        let waiters = std::mem::take(&mut miss.waiters);
        miss.joined.clear();
        if self.joinable.get(&key) == Some(&id) {
            self.joinable.remove(&key);
        }
        waiters
    }

    /// Whether no head has arrived yet.
    pub fn is_asking(&self, id: FetchId) -> bool {
        self.all.get(&id).is_some_and(|miss| matches!(miss.stage, Stage::Asking))
    }

    /// Whether no exchange waits for the response or reads it as it arrives.
    pub fn is_unwanted(&self, cx: &Context, id: FetchId) -> bool {
        self.all.get(&id).is_some_and(|miss| match &miss.stage {
            Stage::Asking => miss.waiters.is_empty(),
            Stage::Passing(pass) => !cx.exchanges.contains_key(&pass.client),
            Stage::Object => false,
        })
    }

    /// An index of packages shows that its host is an archive. Then the tables say more of this very request, too.
    pub fn learn(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        headers: &HeaderMap,
    ) {
        let Some(miss) = self.all.get_mut(&id).filter(|it| it.ask.verified) else { return };
        // A page for people that stands for any path, as that of a captive portal, is no index.
        let is_page = headers.get(header::CONTENT_TYPE).is_some_and(|it| {
            it.to_str()
                .is_ok_and(|it| it.trim_start().to_ascii_lowercase().starts_with("text/html"))
        });
        if is_page || !matches!(status, StatusCode::OK | StatusCode::NOT_MODIFIED) {
            return;
        }
        if let Some(proof) = cx.config.reach.classes.proves(miss.ask.target.url()) {
            cx.proven.learn(proof);
            let verdict = judge(cx, &miss.ask.target);
            Rc::make_mut(&mut miss.ask).verdict = verdict;
        }
    }

    /// Begins an object from an origin's response: its body is cut into units.
    pub fn begin_storing(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        mut headers: HeaderMap,
        values: &mut Values,
    ) {
        self.renew_companions(cx, id, &headers, values);
        let (now, right) = (cx.date(), cx.clock_right());
        let Some(fetch) = self.all.get_mut(&id) else { return };
        // A HEAD or a 204 has no content, whatever its fields say.
        let announced =
            if bodiless(&Method::GET, status) { Some(0) } else { content_length(&headers) };
        // The record knows its length, and each response sets the field itself.
        headers.remove(header::CONTENT_LENGTH);
        let cookies = http::take_cookies(&mut headers);
        if let Some(starter) = fetch.starter.and_then(|starter| cx.exchanges.get_mut(&starter)) {
            starter.ask.cookies = cookies;
        }
        // RFC 9110 §6.6.1: a recipient with a clock adds a missing `Date` before it stores a
        // response.
        if right && !headers.contains_key(header::DATE) {
            headers.insert(header::DATE, http::format_date(now));
        }
        let mut cutting = Cutting::new(cx.config.profile, cx.sealer.clone());
        // The digest is of the file, not of a coded form.
        let is_file = status == StatusCode::OK && !headers.contains_key(header::CONTENT_ENCODING);
        cutting.check = fetch.ask.expected.filter(|_| is_file).map(Check::new);
        let inflow = Transfer::Cutting(Box::new(cutting));
        let mut incoming =
            Incoming::new(RecordId(cx.record_ids.draw()), status, headers, (now, right), inflow);
        incoming.announced = announced;
        incoming.bytes_max = fetch.ask.bytes_max(&cx.config);
        if let Some(format) = fetch.ask.verdict.index.filter(|_| is_file) {
            let reader = IndexReader::new(format, fetch.ask.target.url());
            // Of the others one at a time.
            let small = |it: &IndexReader| it.is_small();
            let is_first = || cx.transfers.values().all(|it| it.index.as_deref().is_none_or(small));
            incoming.index = reader.filter(|it| it.is_small() || is_first()).map(Box::new);
        }
        let mut names = http::vary(&incoming.headers).unwrap_or_default();
        if fetch.ask.verdict.negotiated && !names.contains(&header::ACCEPT) {
            names.insert(0, header::ACCEPT);
        }
        incoming.selecting = http::selecting(names, &fetch.ask.headers);
        self.begin(cx, id, incoming, values);
        cx.turns.dirty(id);
    }

    /// The rest of an object was asked for, of which a part is here: the part goes on if this is its rest.
    pub fn go_on(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        headers: &HeaderMap,
        values: &mut Values,
    ) -> GoesOn {
        let Some(miss) = self.all.get_mut(&id) else { return GoesOn::No };
        // An error says nothing of the part.
        if status.is_server_error() || status.is_client_error() && status != UNSATISFIABLE {
            return GoesOn::No;
        }
        let Some(mut part) = cx.parts.take(&miss.ask.key) else { return GoesOn::Anew };
        let (now, right) = (cx.date(), cx.clock_right());
        let fresh = http::freshened(&part.so_far(), headers, miss.requested, now, right);
        let expected = part.cutting().and_then(|it| it.check.as_ref()).map(Check::expected);
        let end = rest_end(&part, part.received_bytes, status, headers)
            .filter(|_| expected == miss.ask.expected && cx.store_works())
            .filter(|_| miss.judge(cx, part.status, &fresh.headers).is_ok());
        let Some(end) = end else {
            cx.parts.reject(&part);
            let is_rest = matches!(status, StatusCode::PARTIAL_CONTENT | UNSATISFIABLE);
            return if is_rest { GoesOn::Anew } else { GoesOn::No };
        };
        part.headers = fresh.headers;
        (part.requested, part.received, part.clocked) = (miss.requested, now, right);
        part.announced = Some(end);
        part.granted = part.received_bytes;
        miss.stage = Stage::Object;
        if let Some(pursuit) = cx.pursuits.get_mut(&id) {
            pursuit.goes_on_to(id, end, cx.now);
        }
        values.push_back(Value::Begin(id, Box::new(part)));
        cx.turns.dirty(id);
        GoesOn::Yes
    }

    /// Begins an object from a peer's manifest; returns the requests that waited and cannot share
    /// it.
    pub fn follow(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        head: &Head,
        status: StatusCode,
        headers: HeaderMap,
        values: &mut Values,
    ) -> Vec<ExchangeId> {
        self.renew_companions(cx, id, &headers, values);
        let (now, right) = (cx.date(), cx.clock_right());
        let Some(fetch) = self.all.get_mut(&id) else { return Vec::new() };
        let next = fetch.ask.peer_hops.resume.map_or(0, |resume| resume.segment);
        let manifest_credit = fetch.ask.peer_hops.manifest_credit.max(MANIFEST_CREDIT);
        let inflow = Listing::from(next, manifest_credit);
        let mut incoming = Incoming::new(head.record, status, headers, (now, right), inflow);
        incoming.announced = head.length;
        incoming.carried = u64::from(head.age);
        incoming.record_signature =
            Some(RecordSignature { signer: head.signer, signature: head.signature });
        incoming.selecting = selecting(&head.selecting);
        // The request named the digest, and the router that dialled has looked: it is believed, as of all else.
        incoming.verified = fetch.ask.expected;
        // The peer sent a variant that this request does not select (RFC 9111 §4.1).
        if !http::selects(&incoming.so_far(), &fetch.ask.headers) {
            values.push_back(Value::Disregard(id));
            return Vec::new();
        }
        cx.pursuits.is_answering(id);
        self.learn(cx, id, status, &incoming.headers);
        let Some(fetch) = self.all.get_mut(&id) else { return Vec::new() };
        let asked = Asked {
            method: &fetch.ask.method,
            headers: &fetch.ask.headers,
            verdict: &fetch.ask.verdict,
        };
        let judged = http::judge(&asked, status, &incoming.headers, now);
        let large = head.length.is_some_and(|bytes| bytes > fetch.ask.bytes_max(&cx.config));
        // A response that may not be stored still reaches its readers, from memory.
        incoming.memory_only = judged.is_err() || large || !cx.store_works();
        let mut others = Vec::new();
        if judged.is_err() {
            // The peer may have stored it, but by this node's rules only the request that began it
            // may have it.
            others = self.retire(id);
            let Some(fetch) = self.all.get_mut(&id) else { return Vec::new() };
            let starter = others.iter().position(|waiter| Some(*waiter) == fetch.starter);
            fetch.waiters.extend(starter.map(|at| others.remove(at)));
        }
        self.begin(cx, id, incoming, values);
        others
    }

    /// Begins a named object from a peer's manifest. The name certifies its head; the peer adds
    /// only `Cache-Status`.
    pub fn follow_named(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        name: &Oid,
        root: Root,
        head: &Head,
        values: &mut Values,
    ) {
        let came = (cx.date(), cx.clock_right());
        let works = cx.store_works();
        let asking = |miss: &&mut Miss| matches!(miss.stage, Stage::Asking);
        let Some(fetch) = self.all.get_mut(&id).filter(asking) else { return };
        fetch.status_line.clone_from(&head.status_line);
        let next = fetch.ask.peer_hops.resume.map_or(0, |resume| resume.segment);
        let manifest_credit = fetch.ask.peer_hops.manifest_credit.max(MANIFEST_CREDIT);
        let (inflow, headers) =
            (Listing::from(next, manifest_credit), named::headers(name, &root.encode()));
        let mut incoming = Incoming::new(head.record, StatusCode::OK, headers, came, inflow);
        incoming.announced = Some(root.length);
        // The name certifies the record: no signer has to.
        incoming.record_signature = Some(named::VOUCHER);
        incoming.memory_only = root.length > cx.config.object_bytes_max || !works;
        incoming.root = Some(Rc::new(root));
        cx.pursuits.is_answering(id);
        self.begin(cx, id, incoming, values);
    }

    /// The response becomes an object.
    pub fn begin(
        &mut self,
        cx: &Context,
        id: FetchId,
        mut incoming: Incoming,
        values: &mut Values,
    ) {
        let Some(miss) = self.all.get_mut(&id) else { return };
        let (key, uri, named) = (miss.ask.key, miss.ask.target.to_string(), miss.ask.named);
        let alias = incoming
            .cutting()
            .and_then(|it| it.check.as_ref())
            .and(miss.ask.alias(&cx.config.secret));
        incoming.label = Some(Label { key, uri, named, alias });
        incoming.requested = miss.requested;
        incoming.is_lasting = miss.ask.verdict.keep == Keep::Always;
        miss.stage = Stage::Object;
        values.push_back(Value::Begin(id, Box::new(incoming)));
    }

    /// Lets the upstream send this many more bytes of a response that is not stored.
    pub fn grant(&mut self, id: FetchId, bytes: u64, values: &mut Values) {
        let Some(pass) = self.all.get_mut(&id).and_then(Miss::pass) else { return };
        let waits = pass.granted <= pass.received;
        if bytes > 0 {
            values.push_back(Value::Grant(id, bytes, waits));
        }
    }

    /// The upstream was granted this many more bytes.
    pub fn handle_granted(&mut self, id: FetchId, bytes: u64) {
        if let Some(pass) = self.all.get_mut(&id).and_then(Miss::pass) {
            pass.granted += bytes;
        }
    }

    /// An interim response has arrived. Only the client whose request the origin answers gets it: another could not
    /// tell which request it is for, and peers have no message for it. It is never stored.
    pub fn interim(
        &self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        mut headers: HeaderMap,
    ) {
        let Some(starter) = self.all.get(&id).and_then(|miss| miss.starter) else { return };
        let takes_it = cx.exchanges.get(&starter).is_some_and(|exchange| {
            let waits = matches!(exchange.state, State::Waiting(fetch) if fetch == id);
            waits && exchange.ask.takes_interim
        });
        if !takes_it {
            return;
        }
        http::strip_hop_by_hop(&mut headers);
        // Without content there is no length of it (RFC 9110 §8.6).
        headers.remove(header::CONTENT_LENGTH);
        http::add_via(&mut headers, Version::HTTP_11, &cx.via);
        cx.out.push_back(Output::Client(ClientOutput::Interim(starter, status, headers)));
    }

    /// A successful unsafe request invalidates what is stored for its target (RFC 9111 §4.4).
    pub fn invalidate(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        headers: &HeaderMap,
    ) {
        let Some(fetch) = self.all.get(&id) else { return };
        // Only a server verified to be the host may invalidate the host's URIs.
        let speaks = fetch.ask.verified && !fetch.ask.method.is_safe();
        if !speaks || !(200..400).contains(&status.as_u16()) {
            return;
        }
        let target = fetch.ask.target.clone();
        let secret = &cx.config.secret;
        // Other audiences may have stored responses of the same origin.
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
            // A response under way was requested before the change.
            self.joinable.remove(&key);
            cx.invalidate(key);
        }
    }

    /// A request of this node has ended.
    pub fn end(&mut self, id: FetchId, values: &mut Values) -> Option<Miss> {
        let miss = self.all.remove(&id)?;
        values.push_back(Value::Over(id));
        Some(miss)
    }

    /// Removes a request that has ended or is not wanted any more.
    pub fn forget(&mut self, id: FetchId) {
        self.retire(id);
        self.all.remove(&id);
    }
}

/// The path that a URI reference names, if it is of the same origin (RFC 9111 §4.4).
fn same_host(value: &HeaderValue, target: &http::Target) -> Option<String> {
    let text = value.to_str().ok()?;
    let uri: ::http::Uri = text.parse().ok()?;
    let same = match uri.authority() {
        None => true,
        Some(_) => http::Target::read(&uri).is_some_and(|other| other.is_same_origin(target)),
    };
    same.then(|| uri.path_and_query().map_or("/".into(), ToString::to_string))
}
