//! The engine: joins requests, rows, manifests, chunks and fetches. The only place that moves
//! values between them; each part of its work has a file of its own below.

mod answer;
mod ask;
mod asked;
mod charge;
mod claims;
mod flow;
mod follow;
mod forwards;
mod grants;
mod grow;
mod hear;
mod heard;
mod holes;
mod keep;
mod linger;
mod listing;
mod named;
mod onward;
mod origin;
mod put;
mod serve;
mod supply;
mod turns;
mod unsigned;
mod want;

use crate::catalogue::{LIST, PublishedInfo};
use crate::client::Client;
use crate::context::Context;
use crate::input::{ClientInput, Config, Input, OriginInput, PutError, Settings, StoreInput};
use crate::object::Objects;
use crate::output::{OriginOutput, Output};
use crate::overhear::Listener;
use crate::peers::PeerInfo;
use crate::publish::Publish;
use crate::report::Report;
use crate::source::Source;
use crate::source::select::{self, Select};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use store::Index;
use wire::{Instant, NodeId, ObjectKey, PublicKey, Selection};

/// An origin may be ahead of the fastest reader by this many bytes.
const AHEAD: u64 = 256 * 1024;
/// However little memory there is, so many bytes may be on their way.
const AHEAD_MIN: u64 = 16 * 1024;
/// An abandoned transfer goes on if at most this many bytes remain.
const ABANDONED_MAX: u64 = 1024 * 1024;
/// Units that peers wait for are listed so soon after they were cut, however few they are.
const LIST_AFTER: Duration = Duration::from_millis(20);

/// Everything one mesh node decides.
///
/// Drive it so: give one input, drain [`poll_output`](Self::poll_output) until it is empty, and at
/// [`poll_timeout`](Self::poll_timeout) give [`Input::Tick`].
pub struct Node {
    /// What all of it may use.
    cx: Context,
    /// Who asks.
    client: Client,
    /// What comes.
    object: Objects,
    /// What is asked of others.
    source: Source,
    /// What is published here.
    publish: Publish,
}

impl Node {
    /// A node that holds what the index says.
    pub fn new(config: Config, index: Index) -> Self {
        let selection = config.mesh.as_ref().map_or(Selection::PhThcp, |mesh| mesh.selection);
        Self::with_select(config, index, select::of(selection))
    }

    /// The same, with a scheme of one's own instead of the one that the configuration names.
    pub fn with_select(config: Config, index: Index, select: Box<dyn Select>) -> Self {
        Self {
            client: Client::new(config.memory_bytes),
            cx: Context::new(config, index),
            object: Objects::default(),
            source: Source::new(select),
            publish: Publish::default(),
        }
    }

    /// Takes in one thing that happened.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        debug_assert!(self.cx.out.is_empty(), "drain the outputs of one input before the next");
        self.cx.now = self.cx.now.max(now);
        match input {
            Input::Clock(date) => self.cx.set_clock(date),
            Input::Tick => self.tick(),
            Input::Settings(settings) => self.set(settings),
            Input::Routes(routes) => self.routes(routes),
            Input::Overheard(segments) => self.overheard(&segments),
            Input::Client(input) => self.client(input),
            Input::Origin(input) => self.origin(input),
            Input::Link(input) => self.link(input),
            Input::Store(input) => self.store(input),
            Input::Name(host, addresses) => self.name(host, addresses),
            Input::Datagram(from, bytes) => {
                self.source.handle_datagram(&mut self.cx, from, &bytes);
            }
        }
        self.publish.load(&mut self.cx);
        self.grant_others();
        self.take_turns();
        self.talk();
    }

    /// Gives out one thing to do; drain it until `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.cx.out.pop_front()
    }

    /// When it wants an [`Input::Tick`], if nothing else happens.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let orphan = self.object.orphans.front().map(|(until, _)| *until);
        let list = self.object.to_list.front().map(|(at, _)| *at);
        let peers = self.cx.mesh.as_ref().and_then(|mesh| mesh.peers.poll_timeout());
        let meet = self.cx.mesh.as_ref().and_then(|mesh| mesh.routes.meet_at);
        let pause = self.object.pauses.first().map(|(at, _)| *at);
        let ear = self.cx.ear.as_ref().and_then(Listener::poll_timeout);
        let own = [
            self.cx.sync_at,
            self.cx.trust.tried_at(),
            orphan,
            self.source.poll_timeout(),
            list,
            pause,
        ];
        let others = [self.publish.poll_timeout(), meet, peers, ear];
        own.into_iter().chain(others).flatten().min()
    }

    /// All peers, by id.
    pub fn peers(&self) -> Vec<PeerInfo> {
        self.cx.mesh.as_ref().map_or_else(Vec::new, |mesh| mesh.peers.list(self.cx.now))
    }

    /// Who it is to its peers, if it is in a mesh.
    pub fn identity(&self) -> Option<(NodeId, PublicKey)> {
        self.cx.mesh.as_ref().map(|mesh| (mesh.peers.own_id(), mesh.peers.own_key()))
    }

    /// All objects that this node publishes, by name.
    ///
    /// # Errors
    /// [`PutError::Unlisted`] if the list of them cannot be read.
    pub fn published(&self) -> Result<Vec<PublishedInfo>, PutError> {
        self.publish.list(&self.cx)
    }

    /// What was counted, and what is held now.
    pub fn report(&self) -> Report {
        let counts = self.cx.chunks.counts();
        Report {
            peers: self.cx.mesh.as_ref().map_or(0, |mesh| mesh.peers.count() as u64),
            peers_displaced: self.cx.mesh.as_ref().map_or(0, |mesh| mesh.peers.displaced()),
            asked_bytes: self.client.budget.used(),
            backlog_bytes: self.cx.mesh.as_ref().map_or(0, |mesh| mesh.peers.backlogs() as u64),
            units_on_their_way: self.cx.flights.len() as u64,
            early_bytes: self.cx.flights.early.bytes,
            early_dropped: self.cx.flights.early.dropped,
            hints: self.cx.mesh.as_ref().map_or(0, |mesh| mesh.holders.len() as u64),
            hints_evicted: self.cx.mesh.as_ref().map_or(0, |mesh| mesh.holders.evicted),
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
            exchanges: self.client.exchanges.len() as u64,
            fetches: self.object.fetches.len() as u64,
            store_works: self.cx.store_works(),
            unsynced: self.cx.is_unsynced(),
            index: self.cx.chunks.index().report(),
            overheard: self.cx.ear.as_ref().map(Listener::report).unwrap_or_default(),
            ..self.cx.report.clone()
        }
    }

    fn client(&mut self, input: ClientInput) {
        match input {
            ClientInput::Request(id, request) => self.ask(id, *request),
            ClientInput::Credit(id, bytes) => self.credit(id, bytes),
            ClientInput::Gone(id) => {
                self.publish.handle_gone(id);
                self.leave(id);
            }
            ClientInput::Put(id, length) => self.publish.handle_put(&mut self.cx, id, length),
            ClientInput::Withdraw(id, name) => {
                self.publish.handle_withdraw(&mut self.cx, id, name);
            }
        }
    }

    fn origin(&mut self, input: OriginInput) {
        match input {
            OriginInput::Head(line, status, headers) => {
                if let Some(id) = self.carried(line) {
                    self.head(id, status, headers);
                }
            }
            OriginInput::Body(line, bytes) => match self.carried(line) {
                Some(id) => self.body(id, bytes),
                // More than was asked for, of what is done with.
                None => self.cx.out.push_back(Output::Origin(OriginOutput::Cancel(line))),
            },
            OriginInput::End(line, result) => self.line_ends(line, result),
        }
    }

    fn store(&mut self, input: StoreInput) {
        match input {
            StoreInput::Row(LIST, bytes) => {
                self.publish.handle_list(&mut self.cx, bytes.as_deref());
            }
            StoreInput::Row(key, bytes) => self.row(key, bytes.as_deref()),
            StoreInput::RowUnread(LIST) => self.publish.handle_list_unread(&mut self.cx),
            StoreInput::RowUnread(key) => self.row(key, None),
            StoreInput::Segment(record, number, bytes) => {
                let at = (record, number);
                self.publish.handle_segment(&mut self.cx, at, bytes.as_deref());
                self.segment_read(record, number, bytes);
            }
            StoreInput::Changed(ticket, done) => self.changed(ticket, done),
            StoreInput::Synced(done) => {
                let sync = self.cx.handle_synced(done);
                self.publish.handle_synced(&mut self.cx, sync, done);
            }
            StoreInput::Units(ticket, units) => self.units_read(ticket, units),
            StoreInput::Appended(ticket, places) => self.appended(ticket, places),
            StoreInput::Entries(segment, entries) => {
                self.cx.chunks.handle_entries(segment, entries, &mut self.cx.out);
            }
            StoreInput::Rewritten(segment, moved) => {
                self.cx.dirty();
                self.cx.chunks.handle_rewritten(segment, moved, &mut self.cx.out);
            }
        }
    }

    fn name(&mut self, host: String, addresses: Option<Vec<IpAddr>>) {
        for id in self.cx.names.handle_resolved(self.cx.now, host, addresses) {
            self.look(id);
        }
    }

    fn row(&mut self, key: ObjectKey, bytes: Option<&[u8]>) {
        self.publish.handle_row(&mut self.cx, key, bytes);
        let (waiters, row) = self.cx.rows.handle_row(key, bytes);
        row.records.iter().filter(|r| r.clocked).for_each(|r| self.cx.clock.seen(r.received));
        for id in waiters {
            self.decide(id, &Rc::clone(&row));
        }
    }

    fn set(&mut self, settings: Settings) {
        self.cx.config.allow = settings.allow;
        self.cx.config.access = settings.access;
        if let Some(mesh) = &mut self.cx.mesh {
            mesh.config.gateways = settings.gateways;
        }
    }

    fn tick(&mut self) {
        self.cx.handle_timeout();
        self.publish.handle_timeout(&mut self.cx);
        while self.object.orphans.front().is_some_and(|(until, _)| *until <= self.cx.now) {
            self.object
                .orphans
                .pop_front()
                .into_iter()
                .for_each(|(_, id)| self.object.end_orphan(&mut self.cx, id));
        }
        while self.object.to_list.front().is_some_and(|(at, _)| *at <= self.cx.now) {
            self.object.to_list.pop_front().into_iter().for_each(|(_, id)| self.list_open(id));
        }
        while self.object.pauses.first().is_some_and(|(at, _)| *at <= self.cx.now) {
            self.object.pauses.pop_first().into_iter().for_each(|(_, id)| self.paused(id));
        }
        self.source.handle_timeout(&mut self.cx);
        if self.source.look_at.is_some_and(|at| at <= self.cx.now) {
            self.source.look_at = None;
            self.look_after();
        }
        if let Some(ear) = &mut self.cx.ear {
            ear.handle_timeout(self.cx.now);
            self.hand_on_heard();
            self.cx.take_back();
        }
        if let Some(mesh) = &mut self.cx.mesh {
            mesh.peers.handle_timeout(self.cx.now);
            if mesh.routes.meet_at.is_some_and(|at| at <= self.cx.now) {
                mesh.meet(self.cx.now);
            }
        }
    }
}
