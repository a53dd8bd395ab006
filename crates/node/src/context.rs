//! The services that every machine of a node may use. They answer at once, and call no machine.

use crate::account::Account;
use crate::catalogue::{Manifests, Published, Rows, Segments, Signed};
use crate::chance::Chance;
use crate::chunks::{Chunks, InFlight, Opener, is_sealed_as};
use crate::clock::Clock;
use crate::dns::DnsCache;
use crate::events::{Events, Stale};
use crate::exchanges::Exchanges;
use crate::heard::Heard;
use crate::http::{OPEN_KEY, Record};
use crate::ids::Ids;
use crate::input::{Config, ExchangeId, FetchId, LinkInput, Settings};
use crate::mesh::Mesh;
use crate::misbehaviour::Misbehaviour;
use crate::output::{LinkOutput, Output, StoreOutput};
use crate::outside::Outside;
use crate::overhear::{Here, Listener};
use crate::pursuits::Pursuits;
use crate::report::Report;
use crate::routes::RouteTable;
use crate::transfers::Transfers;
use crate::transfers::parts::Parts;
use crate::trust::Trust;
use crate::turns::Turns;
use ::http::StatusCode;
use bytes::Bytes;
use classes::{Promises, Proven};
use content::{Sealer, Segment};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;
use store::{Change, Index, Provenance, unit_log_bytes};
use wire::peer::Message;
use wire::{ChunkId, Date, Instant, NodeId, RecordId};

/// Writes become durable at most this long afterwards.
pub const SYNC_AFTER: Duration = Duration::from_secs(5);
/// A failed store is tried again after this time.
pub const STORE_RETRY: Duration = Duration::from_secs(30);
/// One recently used key of a unit is remembered for this many bytes of memory: twice as many keys
/// as units fit in memory, at some 100 bytes each.
const OPENED_SHARE: u64 = 16 * 1024;
/// Units that arrive before they are wanted take at most the memory divided by this.
const UNSOLICITED_SHARE: u64 = 32;

/// In a window, overheard bytes of a unit count this many times less than missing ones. So a reader
/// that lacks little requests all of it at once.
pub const OVERHEARD_PART: u32 = 4;

/// The services; see the module.
pub struct Context {
    pub config: Config,
    /// This node's member of `Via`: its name, which other nodes may share, and a comment that is
    /// unique.
    pub via: String,
    pub now: Instant,
    pub clock: Clock,
    pub record_ids: Chance,
    pub ids: Ids,
    /// Segments of manifests that are not in the catalogue yet.
    pub segments: Segments,
    pub dns: DnsCache,
    /// Whether any origin is reached.
    pub outside: Outside,
    /// Hosts that are archives, as their indexes have shown.
    pub proven: Proven,
    /// Digests of files that indexes have promised.
    pub promises: Promises,
    pub rows: Rows,
    /// Records that are in no row any more but are still read.
    pub lingering: BTreeSet<RecordId>,
    pub manifests: Manifests,
    /// What is published here. Only the machine `publish` writes it.
    pub published: Published,
    pub chunks: Chunks,
    /// Units in flight: requested from peers and not here yet.
    pub in_flight: InFlight,
    /// Seals what is cut here, and opens what clients get, if there is a mesh key.
    pub sealer: Option<Sealer>,
    pub opener: Opener,
    /// Peers and routes, if the node is in a mesh.
    pub mesh: Option<Mesh>,
    /// The engine for overhearing, if it is on.
    pub ear: Option<Listener>,
    /// Readers and transfers to be given a turn before this input ends.
    pub turns: Turns,
    /// When to ask for a sync.
    pub sync_at: Option<Instant>,
    /// Syncs requested so far, and of these how many were answered, in order.
    syncs: u64,
    synced: u64,
    pub trust: Trust,
    /// Requests being answered. `client` writes them, and `node/values.rs` with what `object` says.
    pub exchanges: Exchanges,
    /// Requests to peers and origins. Only `source` writes them.
    pub pursuits: Pursuits,
    /// Objects under way. Only `object` writes them.
    pub transfers: Transfers,
    /// The beginnings of objects that nobody reads any more. `object` puts them there, and `client` takes them out.
    pub parts: Parts,
    pub report: Report,
    /// Content bytes by class.
    pub account: Account,
    /// What is done, for people who watch it.
    pub events: Events,
    pub out: VecDeque<Output>,
}

impl Context {
    /// The services of a node whose store holds what the index lists.
    pub fn new(config: Config, index: Index) -> Self {
        let memory = config.memory_bytes;
        let mesh = config.mesh.clone().map(|mesh| {
            // A seed of its own: what peers see must not reveal the numbers of records.
            let seed = blake3::derive_key("hearsay 2026-11 chance of peers", &config.seed);
            Mesh::new(mesh, &config, seed)
        });
        Self {
            ear: Listener::new(&config),
            mesh,
            // Without a mesh key the secret is the public one, by which sealing would hide nothing.
            sealer: (config.secret != OPEN_KEY).then(|| Sealer::new(&config.secret)),
            opener: Opener::new((memory / OPENED_SHARE) as usize),
            via: via(&config),
            now: Instant::ZERO,
            clock: Clock::new(config.built),
            record_ids: Chance::new(config.seed),
            ids: Ids::default(),
            segments: Segments::default(),
            dns: DnsCache::new(&config.secret),
            outside: Outside::default(),
            proven: Proven::default(),
            promises: Promises::default(),
            // Shares of the memory: an eighth each for rows and manifests, a quarter for units.
            rows: Rows::new(memory / 8),
            lingering: BTreeSet::new(),
            manifests: Manifests::new(memory / 8),
            published: Published::default(),
            chunks: Chunks::new(index, memory / 4),
            in_flight: InFlight::new(memory / UNSOLICITED_SHARE),
            turns: Turns::default(),
            sync_at: None,
            syncs: 0,
            synced: 0,
            trust: Trust::Works,
            // Until a write fails, the store counts as working.
            report: Report { store_works: true, ..Report::default() },
            account: Account::new(std::sync::Arc::clone(&config.reach.classes)),
            exchanges: Exchanges::default(),
            pursuits: Pursuits::default(),
            transfers: Transfers::default(),
            parts: Parts::default(),
            events: Events::default(),
            out: VecDeque::new(),
            config,
        }
    }

    /// Whether the units of a first segment are stored. If holes can be repaired, half of them
    /// suffices. A record sealed otherwise than this mesh does now, from before a key was set or
    /// changed to none, is not sound.
    pub fn is_sound(&self, record: &Record, segment: &Segment) -> bool {
        if !is_sealed_as(segment, self.sealer.is_some()) {
            return false;
        }
        let held = segment.entries.iter().filter(|entry| self.chunks.holds(&entry.id)).count();
        let mendable = record.status == StatusCode::OK;
        held == segment.entries.len() || (mendable && held * 2 >= segment.entries.len())
    }

    /// Whether a record's first units are stored, as far as memory knows.
    pub fn begins_here(&mut self, record: &Record) -> bool {
        let first = self.manifests.get(record.id, 0);
        record.length == 0 || first.is_none_or(|first| self.is_sound(record, &first))
    }

    /// The limit in bytes for units in memory that are not on disk.
    pub fn pinned_max(&self) -> u64 {
        self.config.memory_bytes / 4
    }

    /// Whether too many units are in memory, and waiting for the disk will help.
    pub fn is_crowded(&self) -> bool {
        self.chunks.pinned_bytes() > self.pinned_max() && self.chunks.is_writing()
    }

    /// Tells the operator something.
    pub fn notice(&mut self, line: String) {
        self.out.push_back(Output::Notice(line));
    }

    /// Disconnects a peer that has broken the protocol.
    pub fn expel(&mut self, peer: NodeId, why: Misbehaviour) {
        if let Some(mesh) = &mut self.mesh {
            mesh.holders.failed(peer);
            mesh.peers.expel(self.now, peer, why);
        }
    }

    /// The operator has changed settings.
    pub fn set(&mut self, settings: Settings) {
        self.config.allow = settings.allow;
        self.config.access = settings.access;
        self.config.reach.allow = settings.mirror;
        if let Some(mesh) = &mut self.mesh {
            mesh.config.gateways = settings.gateways;
        }
    }

    /// The routes have changed.
    pub fn set_routes(&mut self, routes: RouteTable) {
        if let Some(mesh) = &mut self.mesh {
            mesh.set_routes(self.now, routes);
            mesh.meet(self.now);
        }
    }

    /// A connection with a peer has changed.
    pub fn handle_link(&mut self, input: LinkInput) {
        if let LinkInput::Received(_, bytes) = &input {
            self.report.peer_in_bytes += bytes.len() as u64;
        }
        if let Some(mesh) = &mut self.mesh
            && !mesh.peers.handle(self.now, input)
        {
            self.events.stale(Stale::Link);
        }
    }

    /// Passes on what the peers' engine has to send.
    pub fn talk(&mut self) {
        let Some(mesh) = &mut self.mesh else { return };
        while let Some(output) = mesh.peers.poll_output() {
            if let LinkOutput::Write(_, bytes) = &output {
                self.report.peer_out_bytes += bytes.len() as u64;
            }
            self.out.push_back(Output::Link(output));
        }
    }

    /// A peer may have told a new gateway: updates ours, and tells the other peers.
    pub fn introduce(&mut self) {
        if let Some(mesh) = &mut self.mesh {
            mesh.introduce(self.now);
        }
    }

    /// A peer has disconnected: its announcements are forgotten.
    pub fn forget_holder(&mut self, peer: NodeId) {
        if let Some(mesh) = &mut self.mesh {
            mesh.holders.gone(peer);
            mesh.copies.gone(peer);
        }
    }

    /// Whether the store is used now.
    pub fn store_works(&self) -> bool {
        matches!(self.trust, Trust::Works | Trust::Doubted)
    }

    /// Something was written that is not durable yet.
    pub fn dirty(&mut self) {
        self.sync_at.get_or_insert(self.now + SYNC_AFTER);
    }

    /// Requests a sync of all writes; returns its number.
    pub fn sync(&mut self) -> u64 {
        self.syncs += 1;
        self.segments.write(&mut self.ids, &mut self.out);
        self.out.push_back(Output::Store(StoreOutput::Sync));
        self.syncs
    }

    /// The oldest sync has been done or has failed; returns its number.
    pub fn handle_synced(&mut self, done: bool) -> u64 {
        self.synced = self.syncs.min(self.synced + 1);
        if !done {
            self.store_failed();
        } else if self.trust == Trust::Tried {
            self.trust.turn(Trust::Doubted, &mut self.events);
        }
        self.synced
    }

    /// Whether a sync is due or under way.
    pub fn is_unsynced(&self) -> bool {
        self.synced < self.syncs || self.sync_at.is_some()
    }

    /// Handles timers: requests a sync that is due, and tries a failed store again.
    pub fn handle_timeout(&mut self) {
        self.outside.handle_timeout(self.now, &mut self.out);
        let nonce = || self.record_ids.draw();
        if let Some(changes) = self.dns.verified.write(self.now, nonce) {
            self.out.push_back(Output::Store(StoreOutput::Change(self.ids.draw(), changes)));
            self.dirty();
        }
        if self.sync_at.take_if(|at| *at <= self.now).is_some() {
            self.sync();
        }
        if self.trust.tried_at().is_some_and(|at| at <= self.now) {
            self.trust.turn(Trust::Tried, &mut self.events);
            self.sync();
        }
    }

    /// Whether a peer reads an object under way.
    pub fn is_read_by_peers(&self, id: FetchId) -> bool {
        match self.transfers.get(&id) {
            // This is called for every piece of every body: without a mesh, readers need not be
            // searched.
            Some(incoming) if self.mesh.is_some() => {
                incoming.readers.iter().any(|reader| self.exchanges.is_peer(reader.id))
            }
            _ => false,
        }
    }

    /// Writes a segment of a manifest. The transfer keeps it until the catalogue has it.
    pub fn write_segment(&mut self, id: FetchId, signed: Signed) {
        let Some(incoming) = self.transfers.get_mut(&id) else { return };
        let (number, last) = (signed.segment.number as u32, signed.segment.closing.is_some());
        let record = incoming.record;
        let bytes = signed.encode();
        self.manifests.put(record, Rc::new(signed));
        if incoming.memory_only {
            return;
        }
        let change = Change::PutSegment { record, number, bytes };
        self.segments.put((id, number), change, last, &mut self.ids, &mut self.out);
        self.dirty();
    }

    /// Writes units next to each other, for a transfer or, if overheard, for none.
    pub fn append(&mut self, of: Option<FetchId>, mut group: Vec<(ChunkId, Bytes)>) {
        // The store reserves room for one of its segments. A larger group could wait for ever.
        let bytes_max = self.chunks.index().segment_bytes() / 2;
        let lasts = of.and_then(|id| self.transfers.get(&id)).is_some_and(|it| it.is_lasting);
        while !group.is_empty() {
            let mut sum = 0;
            let fits = group.iter().take_while(|(_, bytes)| {
                sum += unit_log_bytes(bytes.len() as u32);
                sum <= bytes_max
            });
            let rest = group.split_off(fits.count().max(1));
            self.dirty();
            let spared = self.chunks.append(of, lasts, group, &mut self.ids, &mut self.out);
            if of.is_none() {
                self.overheard_written(spared, &[]);
            }
            group = rest;
        }
    }

    /// The store has failed: it is not used for a while.
    pub fn store_failed(&mut self) {
        self.report.store_failures += 1;
        self.trust.turn(Trust::Failed(self.now + STORE_RETRY), &mut self.events);
    }

    /// Takes the next result of overhearing.
    pub fn poll_heard(&mut self) -> Option<Heard> {
        let pinned_max = if self.store_works() { self.pinned_max() } else { 0 };
        let (chunks, in_flight) = (&mut self.chunks, &mut self.in_flight);
        let mut here = Here { chunks, in_flight, pinned_max, events: &mut self.events };
        self.ear.as_mut()?.poll(self.now, &mut here)
    }

    /// Tells peers which wanted units they need not send, because they were overheard.
    pub fn take_back(&mut self) {
        let Some(ear) = &mut self.ear else { return };
        for ((peer, request), names) in ear.taken_back() {
            for names in names.chunks(Message::WANTS_MAX) {
                self.say(peer, Message::CancelWant(request, names.to_vec()));
            }
        }
    }

    /// Overheard units have been written, or the store has refused them.
    pub fn overheard_written(&mut self, bytes: u64, refused: &[ChunkId]) {
        if let Some(ear) = &mut self.ear {
            ear.written(bytes);
        }
        // A transfer may have come to use them meanwhile.
        for name in refused {
            self.chunks.release(name);
        }
    }

    /// Whether the unit at a position of an object is known to have been overheard.
    pub fn is_overheard_at(
        &mut self,
        record: RecordId,
        (number, segment): (u32, Option<Rc<Segment>>),
        position: u64,
    ) -> bool {
        if self.ear.is_none() {
            return false;
        }
        let Some(segment) = segment.or_else(|| self.manifests.get(record, number)) else {
            return false;
        };
        let mut end = segment.first_offset;
        let covers = segment.entries.iter().find(|entry| {
            end += u64::from(entry.length);
            position < end
        });
        let from = covers.and_then(|entry| self.chunks.provenance(&entry.id));
        from == Some(Provenance::Overheard)
    }

    /// Sends a message to a peer; false if it could not be sent.
    pub fn say(&mut self, peer: NodeId, message: Message) -> bool {
        self.mesh.as_mut().is_some_and(|mesh| mesh.peers.send(self.now, peer, &message))
    }

    /// Whether a unit is neither held nor in flight.
    pub fn is_missing(&self, name: &ChunkId) -> bool {
        !self.in_flight.contains(name) && !self.chunks.holds(name)
    }

    /// A unit's weight in a window, in bytes: its missing bytes, and a quarter of its overheard
    /// ones, which wait in memory.
    pub fn weight(&self, name: &ChunkId, length: u32) -> u64 {
        let lacks = self.ear.as_ref().map_or(length, |ear| ear.lacks(name, length).min(length));
        u64::from(lacks + (length - lacks) / OVERHEARD_PART)
    }

    /// Wakes `waiter` when a unit in flight arrives. False if it is not in flight, or is on disk by
    /// now.
    pub fn comes_by_flight(&mut self, name: &ChunkId, waiter: ExchangeId) -> bool {
        self.in_flight.contains(name)
            && !self.chunks.holds(name)
            && self.in_flight.wait_for(name, waiter)
    }

    /// The date has been set.
    pub fn set_clock(&mut self, date: Date) {
        let jump = self.clock.date(self.now).as_unix().abs_diff(date.as_unix());
        self.clock.set(self.now, date);
        if jump > 1 {
            // Cached rows were decoded with the wrong clock; on disk they note that.
            self.rows.forget();
        }
    }

    /// The date, as far as it is known.
    pub fn date(&self) -> Date {
        self.clock.date(self.now)
    }

    /// Whether the clock can be trusted.
    pub fn clock_right(&self) -> bool {
        self.clock.right(self.now)
    }
}

fn via(config: &Config) -> String {
    let hash = blake3::derive_key("hearsay 2026-11 instance in Via", &config.seed);
    let instance = u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]);
    format!("{} (hearsay {instance:08x})", config.name)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::access::Access;
    use crate::http::OPEN_KEY;
    use classes::Reach;
    use store::Policy;

    /// The services of a node that is in no mesh and has nothing stored.
    pub(crate) fn context() -> Context {
        let config = Config {
            name: "n".into(),
            secret: OPEN_KEY,
            seed: [0; 32],
            memory_bytes: 8 << 20,
            profile: content::Profile::DEFAULT,
            object_bytes_max: u64::MAX,
            undecided_bytes_max: u64::MAX,
            allow: Vec::new(),
            access: Access::default(),
            built: Date::from_unix(1000),
            mesh: None,
            reach: Reach::default(),
        };
        Context::new(config, Index::new(64 << 20, Policy::Lru))
    }
}
