//! The engine: hands each input to the machine that it is for, then gives a turn to all that can go
//! on.
//!
//! *Below:* `links.rs`, messages of peers; `values.rs`, values between machines; `turns.rs`, the
//! loop at the end of each input. *What it never does:* decide.

mod links;
mod turns;
mod values;
mod way;

use crate::account::Account;
use crate::catalogue::{LIST, PublishedInfo};
use crate::client::Client;
use crate::context::Context;
use crate::dns::VERIFIED;
use crate::events::{Event, Events, RequestEnd, Stale};
use crate::input::{
    ClientInput, Config, FetchError, FetchId, Input, OriginInput, PutError, StoreInput,
};
use crate::object::Objects;
use crate::output::{OriginOutput, Output};
use crate::overhear::Listener;
use crate::peers::{PeerInfo, Tamper};
use crate::publish::Publish;
use crate::pursuits::Upstream;
use crate::report::Report;
use crate::source::detour::Turn;
use crate::source::select::Select;
use crate::source::{LOOK_EVERY, Source, select};
use crate::timer::{self, Timer};
use crate::{hints, http};
use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use classes::Proven;
use store::Index;
use wire::{ChunkId, Instant, NodeId, PublicKey};

/// Everything one mesh node decides.
///
/// To drive it, give one input, drain [`poll_output`](Self::poll_output) until it is empty, and
/// give [`Input::Tick`] at [`poll_timeout`](Self::poll_timeout).
pub struct Node {
    /// The services that all machines use.
    cx: Context,
    /// Requests of clients and peers, and their responses.
    client: Client,
    /// Objects under way.
    object: Objects,
    /// Requests to peers and origins.
    source: Source,
    /// Published objects.
    publish: Publish,
}

/// What a node knows by class.
pub struct ByClass<'a> {
    /// Content bytes.
    pub account: &'a mut Account,
    /// The archives that were found by their indexes.
    pub proven: &'a Proven,
}

impl Node {
    /// A node whose store holds what the index lists.
    pub fn new(config: Config, index: Index) -> Self {
        let select = config.mesh.as_ref().map(|mesh| select::of(mesh, &config.seed));
        Self::with_select(config, index, select.unwrap_or_else(select::none))
    }

    /// The same, with this scheme instead of the configured one.
    pub fn with_select(config: Config, index: Index, select: Box<dyn Select>) -> Self {
        Self {
            client: Client::new(config.memory_bytes),
            cx: Context::new(config, index),
            object: Objects::default(),
            source: Source::new(select),
            publish: Publish::default(),
        }
    }

    /// Handles one event.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        debug_assert!(self.cx.out.is_empty(), "drain the outputs of one input before the next");
        // A clock that goes back must not start timers anew.
        self.cx.now = self.cx.now.max(now);
        match input {
            Input::Clock(date) => self.cx.set_clock(date),
            Input::Tick => self.tick(),
            Input::Settings(settings) => self.cx.set(settings),
            Input::Routes(routes) => {
                self.cx.set_routes(routes);
                // Requests that had no route may have one now.
                self.look_after();
            }
            Input::Overheard(segments) => self.object.handle_overheard(&mut self.cx, &segments),
            Input::Client(input) => self.client(input),
            Input::Origin(input) => self.origin(input),
            Input::Link(input) => self.cx.handle_link(input),
            Input::Store(input) => self.store(input),
            Input::Probed(reached) => {
                self.cx.outside.probed(reached, self.cx.now, &mut self.cx.out);
            }
            Input::OutwardChanged => {
                self.cx.outside.outward_changed(self.cx.now, &mut self.cx.out);
            }
            Input::Name(host, looked) => {
                for id in self.cx.dns.handle_looked(self.cx.now, host, looked) {
                    self.client.look(&mut self.cx, id);
                }
            }
            Input::Purge(keys) => {
                for id in self.client.misses.purge(&mut self.cx, keys) {
                    self.object.fail_storing(&mut self.cx, id, &[]);
                }
            }
            Input::Datagram(from, bytes) => {
                self.source.handle_datagram(&mut self.cx, from, &bytes);
            }
        }
        // What is deferred is done once an input, whatever it was: machines only mark it.
        self.publish.load(&mut self.cx);
        self.object.grant_others(&mut self.cx);
        self.take_turns();
        // After the turns, which may have published or withdrawn something.
        hints::tell(&mut self.cx);
        let (date, works) = (self.cx.date(), self.cx.store_works());
        let chunks = &self.cx.chunks;
        if let Some(mesh) = &mut self.cx.mesh {
            let holds = |unit: &ChunkId| works && chunks.holds(unit);
            let told = hints::tell_copies(mesh, (self.cx.now, date), holds);
            self.cx.report.copies_told += told as u64;
        }
        self.cx.talk();
    }

    /// Takes the next output; call until `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.cx.out.pop_front()
    }

    /// When it needs an [`Input::Tick`] if nothing happens before, and for which timer.
    pub fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        let mesh = self.cx.mesh.as_ref();
        let services = timer::earliest([
            (Timer::Sync, self.cx.sync_at),
            (Timer::StoreRetry, self.cx.trust.tried_at()),
            (Timer::PublishedList, self.publish.poll_timeout()),
            (Timer::Copies, mesh.and_then(|mesh| mesh.copies.tell_at)),
            (Timer::Outside, self.cx.outside.poll_timeout()),
            (Timer::Verified, self.cx.dns.verified.write_at),
            (Timer::Part, self.cx.parts.poll_timeout()),
            (Timer::Meet, mesh.and_then(|mesh| mesh.routes.meet_at)),
            (Timer::Peers, mesh.and_then(|mesh| mesh.peers.poll_timeout())),
        ]);
        let listener = self.cx.ear.as_ref().and_then(Listener::poll_timeout);
        let others = [self.object.poll_timeout(), self.source.poll_timeout(), listener];
        others.into_iter().chain([services]).flatten().min()
    }

    /// What it did, for people who watch it. A driver that turns this on drains it after the outputs of each input.
    pub fn events(&mut self) -> &mut Events {
        &mut self.cx.events
    }

    /// What is known by class. The driver reads the account now and then, and decides whether hosts are counted.
    pub fn by_class(&mut self) -> ByClass<'_> {
        ByClass { account: &mut self.cx.account, proven: &self.cx.proven }
    }

    /// All peers, ordered by id.
    pub fn peers(&self) -> Vec<PeerInfo> {
        self.cx.mesh.as_ref().map_or_else(Vec::new, |mesh| mesh.peers.list(self.cx.now))
    }

    /// Its id and public key, if it is in a mesh.
    pub fn identity(&self) -> Option<(NodeId, PublicKey)> {
        self.cx.mesh.as_ref().map(|mesh| (mesh.peers.own_id(), mesh.peers.own_key()))
    }

    /// Makes it lie to its peers, for simulations and tests.
    pub fn tamper(&mut self, by: Box<dyn Tamper>) {
        if let Some(mesh) = &mut self.cx.mesh {
            mesh.peers.tamper = Some(by);
        }
    }

    /// All objects that this node publishes, by name.
    ///
    /// # Errors
    /// [`PutError::Unlisted`] if the list of them cannot be read.
    pub fn published(&self) -> Result<Vec<PublishedInfo>, PutError> {
        self.publish.list(&self.cx)
    }

    /// All counters, and what is held now.
    pub fn report(&self) -> Report {
        let counts = self.cx.chunks.counts();
        let unknown = self.cx.mesh.as_ref().map(|mesh| mesh.peers.unknown).unwrap_or_default();
        let searched = self.source.select.counts();
        Report {
            peers: self.cx.mesh.as_ref().map_or(0, |mesh| mesh.peers.count() as u64),
            peers_displaced: self.cx.mesh.as_ref().map_or(0, |mesh| mesh.peers.displaced()),
            peers_refused: self
                .cx
                .mesh
                .as_ref()
                .map(|mesh| mesh.peers.refused.clone())
                .unwrap_or_default(),
            refusals: self
                .cx
                .mesh
                .as_ref()
                .map(|mesh| mesh.refusals.of_late(self.cx.now))
                .unwrap_or_default(),
            messages_unknown: unknown.messages,
            parts_unknown: unknown.parts,
            asks_unknown: self.cx.report.asks_unknown + unknown.requests,
            asked_bytes: self.client.peer_readers.budget.used(),
            backlog_bytes: self.cx.mesh.as_ref().map_or(0, |mesh| mesh.peers.backlogs() as u64),
            units_on_their_way: self.cx.in_flight.len() as u64,
            early_bytes: self.cx.in_flight.unsolicited.bytes,
            early_dropped: self.cx.in_flight.unsolicited.dropped,
            hints: self.cx.mesh.as_ref().map_or(0, |mesh| mesh.holders.len() as u64),
            hints_evicted: self.cx.mesh.as_ref().map_or(0, |mesh| mesh.holders.evicted),
            searches: searched.searches,
            copies: self.cx.mesh.as_ref().map_or(0, |mesh| mesh.copies.len() as u64),
            searches_located: searched.located,
            searches_in_vain: searched.in_vain,
            locates_passed_on: searched.passed_on,
            locates_spared: searched.spared,
            locates_answered: searched.answered,
            datagrams_refused: searched.refused,
            published: self.cx.published.objects.len() as u64,
            published_foreign: self.cx.published.foreign() as u64,
            published_unread: self.publish.is_unread(),
            published_bytes: self.publish.bytes(&self.cx),
            units_cut: counts.cut,
            units_known: counts.known,
            known_bytes: counts.known_bytes,
            units_bad: counts.bad,
            pinned_bytes: self.cx.chunks.pinned_bytes(),
            hot_bytes: self.cx.chunks.hot_bytes(),
            row_bytes: self.cx.rows.bytes(),
            manifest_bytes: self.cx.manifests.bytes(),
            lingering: self.cx.lingering.len() as u64,
            exchanges: self.cx.exchanges.len() as u64,
            fetches: (self.cx.pursuits.len() + self.publish.coming()) as u64,
            stale_inputs: self.cx.events.stale_inputs().clone(),
            store_works: self.cx.store_works(),
            parts: self.cx.parts.len() as u64,
            parts_evicted: self.cx.parts.evicted,
            uplink_up: !self.cx.outside.is_down(),
            uplink_down_seconds: self.cx.outside.down_for(self.cx.now).map_or(0, |it| it.as_secs()),
            unsynced: self.cx.is_unsynced(),
            index: self.cx.chunks.index().report(),
            overheard: self.cx.ear.as_ref().map(Listener::report).unwrap_or_default(),
            ..self.cx.report.clone()
        }
    }

    fn client(&mut self, input: ClientInput) {
        match input {
            ClientInput::Request(id, request) => self.client.ask(&mut self.cx, id, *request),
            ClientInput::Credit(id, bytes) => self.client.credit(&mut self.cx, id, bytes),
            ClientInput::Gone(id) => {
                self.publish.handle_gone(id);
                self.client.leave(&mut self.cx, id, RequestEnd::Left);
            }
            ClientInput::Put(id, length) => self.publish.handle_put(&mut self.cx, id, length),
            ClientInput::Withdraw(id, name) => {
                self.publish.handle_withdraw(&mut self.cx, id, name);
            }
        }
    }

    fn origin(&mut self, input: OriginInput) {
        match input {
            OriginInput::Interim(fetch, status, headers) => {
                // Those to a second request of the transfer are not for the client.
                if self.source.transfer_of(&self.cx, fetch) == Some(fetch) {
                    self.client.misses.interim(&mut self.cx, fetch, status, headers);
                }
            }
            OriginInput::Head(fetch, status, headers) => {
                match self.source.transfer_of(&self.cx, fetch) {
                    // A fetch may be a second request of a transfer, for the rest of its body.
                    Some(id) => self.head(id, status, headers),
                    None => self.cx.events.stale(Stale::OriginHead),
                }
            }
            OriginInput::Body(fetch, bytes) => match self.source.transfer_of(&self.cx, fetch) {
                Some(id) => self.body(id, bytes),
                // The request has ended: its remaining content is not wanted.
                None => {
                    self.cx.events.stale(Stale::OriginBody);
                    self.cx.out.push_back(Output::Origin(OriginOutput::Cancel(fetch)));
                }
            },
            OriginInput::Crossed(fetch, crossed) => {
                let id = self.source.transfer_of(&self.cx, fetch);
                if let Some(pursuit) = id.and_then(|id| self.cx.pursuits.get_mut(&id)) {
                    pursuit.far.comes(crossed);
                }
            }
            OriginInput::Silent(fetch) => {
                if self.source.transfer_of(&self.cx, fetch) == Some(fetch) {
                    self.client.overdue(&mut self.cx, fetch);
                }
            }
            OriginInput::End(fetch, result) => {
                let Some(id) = self.source.transfer_of(&self.cx, fetch) else {
                    return self.cx.events.stale(Stale::OriginEnd);
                };
                let pursuit = self.cx.pursuits.get(&id).filter(|it| it.awaits_head());
                if let Some((pursuit, error)) = pursuit.zip(result.err()) {
                    let (ask, now) = (&pursuit.quest.ask, self.cx.now);
                    self.cx.outside.failed(ask, error, now, &mut self.cx.out);
                }
                match self.source.detours.ended(&mut self.cx, id, result.is_ok()) {
                    Turn::Arrived => {}
                    Turn::OnTheWay => return,
                    Turn::Astray => return self.ends(id, Err(FetchError::Astray)),
                }
                if let Some(result) = self.source.origin_ends(&mut self.cx, id, result) {
                    self.ends(id, result);
                }
            }
        }
    }

    /// An origin has answered.
    fn head(&mut self, id: FetchId, status: StatusCode, mut headers: HeaderMap) {
        if let Some(pursuit) = self.cx.pursuits.get(&id) {
            self.cx.outside.heard(&pursuit.quest.ask, self.cx.now, &mut self.cx.out);
        }
        // The origin may have been asked beside a peer: from now on only the origin counts.
        self.source.forget_previous(&mut self.cx, id);
        if status != StatusCode::SWITCHING_PROTOCOLS {
            http::strip_hop_by_hop(&mut headers);
        }
        match self.source.detours.head(&mut self.cx, id, status, &headers) {
            Turn::Arrived => {}
            Turn::OnTheWay => return,
            Turn::Astray => return self.ends(id, Err(FetchError::Astray)),
        }
        if !self.source.rest_head(&mut self.cx, id, status, &headers)
            && !self.object.repair_head(&mut self.cx, id, status, &headers)
        {
            self.client.head(&mut self.cx, id, status, headers);
        }
    }

    /// Content of an origin's response, or of a file being published, has arrived.
    fn body(&mut self, id: FetchId, bytes: Bytes) {
        if self.publish.has(id) {
            way::enter("publish: a file");
            self.publish.handle_bytes(id, &bytes);
        }
        self.cx.pursuits.came(id, self.cx.now);
        match self.source.detours.body(&mut self.cx, id, &bytes) {
            Turn::Arrived => {}
            Turn::OnTheWay => return,
            Turn::Astray => return self.ends(id, Err(FetchError::Astray)),
        }
        let pursuit = self.cx.pursuits.get_mut(&id);
        if let Some(pursuit) = pursuit.filter(|it| it.via == Upstream::Origin) {
            let (length, ask) = (bytes.len() as u64, &pursuit.quest.ask);
            self.cx.report.origin_bytes += length;
            self.cx.account.fetched(ask, length, pursuit.far.fetched(length));
        }
        way::enter("object: a body");
        if !self.object.handle_body(&mut self.cx, id, &bytes) {
            way::enter("client: a body");
            self.client.handle_body(&mut self.cx, id, bytes);
        }
    }

    fn store(&mut self, input: StoreInput) {
        match input {
            StoreInput::Row(LIST, bytes) => {
                self.publish.handle_list(&mut self.cx, bytes.as_deref());
            }
            StoreInput::Row(VERIFIED, bytes) => {
                bytes.iter().for_each(|row| self.cx.dns.verified.handle_row(row));
            }
            StoreInput::Row(key, bytes) => {
                // A walk over published objects and requests may wait for the same row.
                self.publish.handle_row(&mut self.cx, key, bytes.as_deref());
                self.client.handle_row(&mut self.cx, key, bytes.as_deref());
            }
            StoreInput::RowUnread(LIST) => self.publish.handle_list_unread(&mut self.cx),
            StoreInput::RowUnread(VERIFIED) => {}
            // A row that cannot be read counts as absent: its object is fetched again.
            StoreInput::RowUnread(key) => {
                self.publish.handle_row(&mut self.cx, key, None);
                self.client.handle_row(&mut self.cx, key, None);
            }
            StoreInput::Segment(record, number, bytes) => {
                let at = (record, number);
                self.publish.handle_segment(&mut self.cx, at, bytes.as_deref());
                self.client.segment_read(&mut self.cx, record, number, bytes);
            }
            StoreInput::Changed(ticket, done) => {
                if !done {
                    self.cx.store_failed();
                }
                // A ticket is of one of the three; each recognises its own.
                if !self.object.handle_changed(&mut self.cx, ticket, done)
                    && !self.publish.handle_changed(&mut self.cx, ticket, done)
                {
                    self.cx.rows.handle_changed(ticket);
                }
            }
            StoreInput::Synced(done) => {
                let sync = self.cx.handle_synced(done);
                self.publish.handle_synced(&mut self.cx, sync, done);
            }
            StoreInput::Units(ticket, units) => self.client.units_read(&mut self.cx, ticket, units),
            StoreInput::Appended(ticket, places) => {
                self.object.appended(&mut self.cx, ticket, places)
            }
            StoreInput::Entries(segment, entries) => {
                self.cx.chunks.handle_entries(segment, entries, &mut self.cx.out);
            }
            StoreInput::Rewritten(segment, moved) => {
                // Moved units are durable only after a sync.
                self.cx.dirty();
                self.cx.chunks.handle_rewritten(segment, moved, &mut self.cx.out);
            }
        }
    }

    fn tick(&mut self) {
        if let Some((_, timer)) = self.poll_timeout().filter(|(at, _)| *at <= self.cx.now) {
            self.cx.events.emit(|| Event::Timer { timer });
        }
        self.cx.handle_timeout();
        self.publish.handle_timeout(&mut self.cx);
        self.object.handle_timeout(&mut self.cx);
        self.source.handle_timeout(&mut self.cx);
        if self.source.look_at.is_some_and(|at| at <= self.cx.now) {
            self.source.look_at = None;
            self.look_after();
        }
        if let Some(ear) = &mut self.cx.ear {
            ear.handle_timeout(self.cx.now);
            self.object.hand_on_heard(&mut self.cx);
            self.cx.take_back();
        }
        if let Some(mesh) = &mut self.cx.mesh {
            mesh.peers.handle_timeout(self.cx.now);
            if mesh.routes.meet_at.is_some_and(|at| at <= self.cx.now) {
                mesh.meet(self.cx.now);
            }
        }
    }

    /// Checks the progress of all requests to peers and origins.
    fn look_after(&mut self) {
        let ids = self.source.at_peers(&self.cx);
        for id in &ids {
            self.client.look_after_joined(&mut self.cx, *id);
            let open = self.cx.transfers.get(id).is_some_and(|incoming| {
                !self.cx.in_flight.has(*id) && !incoming.is_ended() && !incoming.is_loose()
            });
            let begun = self.cx.transfers.get(id).and_then(|incoming| incoming.goes_on_from());
            let owes = open && begun.is_some_and(|(resume, _)| resume.segment == 0);
            self.source.look_after(&mut self.cx, *id, open, owes);
        }
        self.client.end_idle(&mut self.cx);
        self.object.grant_anew(&mut self.cx);
        let bodies = self.source.look_after_bodies(&mut self.cx);
        let peer_readers = !self.client.peer_readers.requests.is_empty();
        if !ids.is_empty() || peer_readers || bodies {
            self.source.look_by(self.cx.now + LOOK_EVERY);
        }
    }
}
