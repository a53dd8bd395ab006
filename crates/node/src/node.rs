//! The engine: joins requests, rows, manifests, chunks and fetches. The only place that moves
//! values between them; each part of its work has a file of its own below.

mod answer;
mod ask;
mod charge;
mod claims;
mod fill;
mod flow;
mod follow;
mod forwards;
mod grants;
mod grow;
mod hear;
mod hints;
mod keep;
mod keeping;
mod linger;
mod listing;
mod named;
mod onward;
mod origin;
mod overheard;
mod put;
mod reach;
mod repair;
mod serve;
mod supply;
mod turns;
mod unseal;
mod unsigned;
mod want;

use crate::budget::Budget;
use crate::chunks::Chunks;
use crate::clock::Clock;
use crate::dice::Dice;
use crate::exchange::Exchange;
use crate::fetch::Fetch;
use crate::hasher::Map;
use crate::input::{
    ClientInput, Config, ExchangeId, FetchId, Input, OriginInput, Settings, StoreInput,
};
use crate::manifests::Manifests;
use crate::mesh::{Mesh, PeerInfo};
use crate::names::Names;
use crate::output::{OriginOutput, Output, StoreOutput};
use crate::published::{LIST, Published};
use crate::report::Report;
use crate::rows::Rows;
use crate::segments::Segments;
use crate::tickets::Tickets;
use crate::turns::Turns;
use content::Sealer;
use keep::Trust;
use overheard::Ear;
use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use store::Index;
use unseal::Opener;
use wire::{Date, Instant, NodeId, ObjectKey, PublicKey, RecordId};

pub use put::PublishedInfo;

/// What is written becomes durable at most this long afterwards (protocol: Durable).
const SYNC_AFTER: Duration = Duration::from_secs(5);
/// A store that failed is tried again after this long.
const STORE_RETRY: Duration = Duration::from_secs(30);
/// An origin may be ahead of the fastest reader by this many bytes.
const AHEAD: u64 = 256 * 1024;
/// However little memory there is, so many bytes may be on their way.
const AHEAD_MIN: u64 = 16 * 1024;
/// For so many bytes of the memory one key is remembered that has opened a unit: for twice as many units as
/// can be hot, some 100 bytes each.
const OPENED_SHARE: u64 = 16 * 1024;
/// Transfers that nobody waits for have so long …
const ORPHAN_PATIENCE: Duration = Duration::from_secs(60);
/// … and are so many, at most.
const ORPHANS_MAX: usize = 32;
/// An abandoned transfer goes on if at most this many bytes remain.
const ABANDONED_MAX: u64 = 1024 * 1024;
/// Units that peers wait for are listed so soon after they were cut, however few they are.
const LIST_AFTER: Duration = Duration::from_millis(20);
/// While something is asked of peers, the engine looks this often whether it comes on.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Everything one mesh node decides.
///
/// Drive it so: give one input, drain [`poll_output`](Self::poll_output) until it is empty, and at
/// [`poll_timeout`](Self::poll_timeout) give [`Input::Tick`].
pub struct Node {
    config: Config,
    /// What we put into `Via`: the name, which others may bear too, and a comment that is ours alone.
    via: String,
    now: Instant,
    clock: Clock,
    dice: Dice,
    tickets: Tickets,
    exchanges: Map<ExchangeId, Exchange>,
    fetches: Map<FetchId, Fetch>,
    /// Transfers by the requests for the rest of their bodies.
    lines: Map<FetchId, FetchId>,
    /// Which fetch of an object others may join.
    joinable: Map<ObjectKey, FetchId>,
    /// Segments of manifests that the catalogue does not have yet.
    segments: Segments,
    names: Names,
    rows: Rows,
    /// Records that are in no row any more, and are read.
    lingering: BTreeSet<RecordId>,
    manifests: Manifests,
    chunks: Chunks,
    /// What peers make us hold.
    budget: Budget,
    /// Seals what is cut here and opens what clients get, where there is a mesh key.
    sealer: Option<Sealer>,
    opener: Opener,
    /// What it has because of its mesh, if it is in one.
    mesh: Option<Mesh>,
    /// What it has because it listens to its neighbours, if it does.
    ear: Option<Ear>,
    /// When to look whether what peers were asked for comes on.
    look_at: Option<Instant>,
    /// Who is to go on before this input is done with.
    turns: Turns,
    /// Transfers that peers read, and when each counts as pausing.
    pauses: BTreeSet<(Instant, FetchId)>,
    /// The request of a peer that last had its turn to be sent units.
    last_turn: ExchangeId,
    /// Transfers whose open segment of the manifest is to be closed for peers, and when.
    to_list: VecDeque<(Instant, FetchId)>,
    /// Transfers may be waiting for memory.
    ungranted: bool,
    /// Transfers that nobody waited for when this was noted, and until when they may go on.
    orphans: VecDeque<(Instant, FetchId)>,
    /// When to ask for what is written to be made durable.
    sync_at: Option<Instant>,
    /// It was asked, and is not done yet.
    syncing: bool,
    trust: Trust,
    /// What is published here.
    published: Published,
    report: Report,
    out: VecDeque<Output>,
}

impl Node {
    /// A node that holds what the index says.
    pub fn new(config: Config, index: Index) -> Self {
        let memory = config.memory_bytes;
        let mesh = config.mesh.clone().map(|mesh| {
            let seed = blake3::derive_key("hearsay 2026-11 chance of peers", &config.seed);
            Mesh::new(mesh, config.name.clone(), config.profile.id, seed, memory)
        });
        Self {
            ear: Ear::new(&config),
            mesh,
            sealer: (config.secret != crate::http::OPEN_KEY).then(|| Sealer::new(&config.secret)),
            opener: Opener::new((memory / OPENED_SHARE) as usize),
            look_at: None,
            turns: Turns::default(),
            pauses: BTreeSet::new(),
            last_turn: ExchangeId(0),
            to_list: VecDeque::new(),
            via: via(&config),
            now: Instant::ZERO,
            clock: Clock::new(config.built),
            dice: Dice::new(config.seed),
            tickets: Tickets::default(),
            exchanges: Map::default(),
            fetches: Map::default(),
            lines: Map::default(),
            joinable: Map::default(),
            segments: Segments::default(),
            names: Names::new(),
            rows: Rows::new(memory / 8),
            lingering: BTreeSet::new(),
            manifests: Manifests::new(memory / 8),
            chunks: Chunks::new(index, memory / 4),
            budget: Budget::new(memory),
            ungranted: false,
            orphans: VecDeque::new(),
            sync_at: None,
            syncing: false,
            trust: Trust::Works,
            published: Published::default(),
            report: Report { store_works: true, ..Report::default() },
            out: VecDeque::new(),
            config,
        }
    }

    /// Takes in one thing that happened.
    pub fn handle_input(&mut self, now: Instant, input: Input) {
        debug_assert!(self.out.is_empty(), "drain the outputs of one input before the next");
        self.now = self.now.max(now);
        match input {
            Input::Clock(date) => self.set_clock(date),
            Input::Tick => self.tick(),
            Input::Settings(settings) => self.set(settings),
            Input::Routes(routes) => self.routes(routes),
            Input::Overheard(segments) => self.overheard(&segments),
            Input::Client(input) => self.client(input),
            Input::Origin(input) => self.origin(input),
            Input::Link(input) => self.link(input),
            Input::Store(input) => self.store(input),
            Input::Name(host, addresses) => self.name(host, addresses),
            // Nobody here asks by datagram yet: it is nothing that we waited for.
            Input::Datagram(..) => {}
        }
        self.load_published();
        self.grant_others();
        self.take_turns();
        self.talk();
    }

    /// Gives out one thing to do; drain it until `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// When it wants an [`Input::Tick`], if nothing else happens.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let orphan = self.orphans.front().map(|(until, _)| *until);
        let list = self.to_list.front().map(|(at, _)| *at);
        let peers = self.mesh.as_ref().and_then(|mesh| mesh.peers.poll_timeout());
        let meet = self.mesh.as_ref().and_then(|mesh| mesh.meet_at);
        let pause = self.pauses.first().map(|(at, _)| *at);
        let ear = self.ear.as_ref().and_then(Ear::poll_timeout);
        let own = [self.sync_at, self.trust.tried_at(), orphan, self.look_at, list, pause];
        let others = [self.published.read_again_at, meet, peers, ear];
        own.into_iter().chain(others).flatten().min()
    }

    /// All peers, by id.
    pub fn peers(&self) -> Vec<PeerInfo> {
        self.mesh.as_ref().map_or_else(Vec::new, |mesh| mesh.peers.list(self.now))
    }

    /// Who it is to its peers, if it is in a mesh.
    pub fn identity(&self) -> Option<(NodeId, PublicKey)> {
        self.mesh.as_ref().map(|mesh| (mesh.peers.own_id(), mesh.peers.own_key()))
    }

    /// What was counted, and what is held now.
    pub fn report(&self) -> Report {
        let counts = self.chunks.counts();
        Report {
            peers: self.mesh.as_ref().map_or(0, |mesh| mesh.peers.count() as u64),
            peers_displaced: self.mesh.as_ref().map_or(0, |mesh| mesh.peers.displaced()),
            asked_bytes: self.budget.used(),
            backlog_bytes: self.mesh.as_ref().map_or(0, |mesh| mesh.peers.backlogs() as u64),
            units_on_their_way: self.mesh.as_ref().map_or(0, |mesh| mesh.flights.len() as u64),
            early_bytes: self.mesh.as_ref().map_or(0, |mesh| mesh.flights.early.bytes),
            early_dropped: self.mesh.as_ref().map_or(0, |mesh| mesh.flights.early.dropped),
            hints: self.mesh.as_ref().map_or(0, |mesh| mesh.holders.len() as u64),
            hints_evicted: self.mesh.as_ref().map_or(0, |mesh| mesh.holders.evicted),
            published: self.published.objects.len() as u64,
            published_foreign: self.published.foreign() as u64,
            published_unread: self.published.unread,
            published_bytes: self.published.bytes(),
            units_cut: counts.cut,
            units_known: counts.known,
            known_bytes: counts.known_bytes,
            units_bad: counts.bad,
            pinned_bytes: self.chunks.pinned_bytes(),
            hot_bytes: self.chunks.hot_bytes(),
            row_bytes: self.rows.bytes(),
            manifest_bytes: self.manifests.bytes(),
            lingering: self.lingering.len() as u64,
            exchanges: self.exchanges.len() as u64,
            fetches: self.fetches.len() as u64,
            store_works: self.store_works(),
            unsynced: self.syncing || self.sync_at.is_some(),
            index: self.chunks.index().report(),
            overheard: self.ear.as_ref().map(Ear::report).unwrap_or_default(),
            ..self.report.clone()
        }
    }

    fn client(&mut self, input: ClientInput) {
        match input {
            ClientInput::Request(id, request) => self.ask(id, *request),
            ClientInput::Credit(id, bytes) => self.credit(id, bytes),
            ClientInput::Gone(id) => {
                self.put_left(id);
                self.leave(id);
            }
            ClientInput::Put(id, length) => self.put(id, length),
            ClientInput::Withdraw(id, name) => self.withdraw(id, name),
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
                None => self.out.push_back(Output::Origin(OriginOutput::Cancel(line))),
            },
            OriginInput::End(line, result) => self.line_ends(line, result),
        }
    }

    fn store(&mut self, input: StoreInput) {
        match input {
            StoreInput::Row(key, bytes) => self.row(key, bytes.as_deref()),
            StoreInput::RowUnread(LIST) => self.list_unread(),
            StoreInput::RowUnread(key) => self.row(key, None),
            StoreInput::Segment(record, number, bytes) => {
                self.walk_read(record, number, bytes.as_deref());
                self.segment_read(record, number, bytes);
            }
            StoreInput::Changed(ticket, done) => self.changed(ticket, done),
            StoreInput::Synced(done) => self.synced(done),
            StoreInput::Units(ticket, units) => self.units_read(ticket, units),
            StoreInput::Appended(ticket, places) => self.appended(ticket, places),
            StoreInput::Entries(segment, entries) => {
                self.chunks.handle_entries(segment, entries, &mut self.out);
            }
            StoreInput::Rewritten(segment, moved) => {
                self.dirty();
                self.chunks.handle_rewritten(segment, moved, &mut self.out);
            }
        }
    }

    fn name(&mut self, host: String, addresses: Option<Vec<IpAddr>>) {
        for id in self.names.handle_resolved(self.now, host, addresses) {
            self.look(id);
        }
    }

    fn row(&mut self, key: ObjectKey, bytes: Option<&[u8]>) {
        if self.published_row(key, bytes) {
            return;
        }
        let (waiters, row) = self.rows.handle_row(key, bytes);
        row.records.iter().filter(|r| r.clocked).for_each(|r| self.clock.seen(r.received));
        for id in waiters {
            self.decide(id, &Rc::clone(&row));
        }
    }

    fn set_clock(&mut self, date: Date) {
        let jump = self.clock.date(self.now).as_unix().abs_diff(date.as_unix());
        self.clock.set(self.now, date);
        if jump > 1 {
            // Rows made by a clock that was wrong say so on disk.
            self.rows.forget();
        }
    }

    fn set(&mut self, settings: Settings) {
        self.config.allow = settings.allow;
        self.config.access = settings.access;
        if let Some(mesh) = &mut self.mesh {
            mesh.config.gateways = settings.gateways;
        }
    }

    fn date(&self) -> Date {
        self.clock.date(self.now)
    }

    fn clock_right(&self) -> bool {
        self.clock.right(self.now)
    }

    fn tick(&mut self) {
        if self.sync_at.is_some_and(|at| at <= self.now) {
            self.sync_at = None;
            self.sync_for(Vec::new());
        }
        if self.trust.tried_at().is_some_and(|at| at <= self.now) {
            self.try_store();
        }
        if self.published.read_again_at.is_some_and(|at| at <= self.now) {
            self.published.read_again_at = None;
            self.out.push_back(Output::Store(StoreOutput::Lookup(LIST)));
        }
        while self.orphans.front().is_some_and(|(until, _)| *until <= self.now) {
            self.orphans.pop_front().into_iter().for_each(|(_, id)| self.end_orphan(id));
        }
        while self.to_list.front().is_some_and(|(at, _)| *at <= self.now) {
            self.to_list.pop_front().into_iter().for_each(|(_, id)| self.list_open(id));
        }
        while self.pauses.first().is_some_and(|(at, _)| *at <= self.now) {
            self.pauses.pop_first().into_iter().for_each(|(_, id)| self.paused(id));
        }
        if self.look_at.is_some_and(|at| at <= self.now) {
            self.look_at = None;
            self.look_after();
        }
        self.listen();
        if let Some(mesh) = &mut self.mesh {
            mesh.peers.handle_timeout(self.now);
            if mesh.meet_at.is_some_and(|at| at <= self.now) {
                mesh.meet(self.now);
            }
        }
    }
}

fn via(config: &Config) -> String {
    let hash = blake3::derive_key("hearsay 2026-11 instance in Via", &config.seed);
    let instance = u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]);
    format!("{} (hearsay {instance:08x})", config.name)
}
