//! Overhearing: from TCP segments that were sent to other routers to verified chunks.
//!
//! *What this is:* an engine of its own, after Ditto's sniffer (Dogar et al., MobiCom 2008, §4.3 and §5.2). A flow is
//! identified by its addresses and ports, a chunk by its name. Several hops may send the same chunk, each on its own
//! connection and with other segment boundaries; the engine hears parts of each, in any order and more than once.
//! Two things go beyond the paper. A chunk that was heard in part is kept as byte ranges, so that a request names
//! only the missing ranges. A chunk whose head was missed is identified by its position between other chunks, if
//! another flow or a manifest has the same order.
//! *Who calls it:* `listener.rs` for the node, the simulator's observers, and the analysis of captures: they call
//! [`Overhear::handle_segment`] for each segment, or [`Overhear::handle_segments`] for a few, then
//! [`Overhear::poll_output`] until it returns `None`. The node also tells the engine which chunks it waits for and
//! which it has.
//! *What it never does:* give out a chunk that does not match its name, hold more than its budget, read a
//! clock, send anything. *Where to start:* `hearing.rs`, which follows a segment; then `assemble.rs`. `listener.rs`
//! is the node's use of the engine.
//!
//! # Memory
//!
//! One budget bounds all memory, per-entry costs and allocations included. The tables of flows, chunks and names are
//! allocated at the start (7 to 10 % of the budget). Of the rest, a sixth is for flows, mainly for bytes that wait
//! for a head, and five sixths are for chunks. Payload behind a known head is copied once, into its chunk's buffer;
//! this buffer becomes the output, and a capture's buffers are never kept. When the node takes the overheard part of
//! a chunk, the part counts until the node has joined it to the rest; such parts use at most half of the memory for
//! chunks.
//!
//! # Eviction
//!
//! An entry is evicted by its age, multiplied by a weight: the highest product leaves first. A chunk has weight 64 if
//! almost nothing of it was heard, 4 if less than half was heard or a version of it was false, else 1; chunks that
//! the node waits for are evicted last. A flow has weight 64 if its end was heard, 16 if no head was heard, 4 if it
//! has completed no chunk, else 1.
#![deny(clippy::indexing_slicing, clippy::unwrap_used)]

mod ahead;
mod assemble;
mod counters;
mod flows;
mod hearing;
mod index;
mod keyed;
mod limits;
mod listener;
mod names;
mod runs;
mod shelf;
mod table;

pub use crate::heard::SEGMENTS_AT_ONCE;
pub use crate::input::Options;
pub use counters::{Counters, Overhearing};
pub(crate) use listener::{Here, Listener};

use assemble::Judgement;
use bytes::Bytes;
use flows::{Flow, Key};
use hearing::Hearing;
use limits::{Limits, Meter};
use names::{Named, Names};
use shelf::Shelf;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;
use table::{Id, Table};
use wire::capture::Segment;
use wire::{ChunkId, Instant};

/// What the engine found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The first bytes of a chunk were heard. A node that has the chunk calls [`Overhear::cancel`], and the engine
    /// collects no more of it.
    Begun {
        /// The name in its head.
        name: ChunkId,
        /// Its length in bytes.
        total: u32,
    },
    /// A chunk is complete, and its content matches its name.
    Chunk {
        /// Its name.
        name: ChunkId,
        /// All its bytes.
        bytes: Bytes,
    },
}

/// The part of a chunk that was heard. It is not verified: only a whole chunk can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The chunk's length in bytes.
    pub total: u32,
    /// Blocks of bytes with their offsets, in order; no two are adjacent.
    pub parts: Vec<(u32, Bytes)>,
}

/// Ranks of flows, the least important first: the end was heard, no head was heard, a head was heard, and the flow
/// has helped to complete a chunk.
const RANKS: usize = 4;
const CLOSING: usize = 0;
const WEIGHTS: [u64; RANKS] = [64, 16, 4, 1];
/// For each rank, how long a flow stays without a segment. An ended flow stays for retransmissions after its end; a
/// flow with heads stays longer, because a manifest that arrives later may tell to which chunks its bytes without a
/// head belong.
const IDLE_MAX: [Duration; RANKS] = [
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(600),
    Duration::from_secs(600),
];
/// Strikes for a flow that alone sent all bytes of a version that does not match the chunk's name.
const STRIKES_FALSE: u8 = 4;

/// The engine.
#[derive(Debug)]
pub struct Overhear {
    flows: Table<Key, Flow, RANKS>,
    /// Memory of flows outside the table, in bytes.
    flows_bytes: Meter,
    shelf: Shelf,
    limits: Limits,
    options: Options,
    counters: Counters,
}

impl Overhear {
    /// The smallest budget, in bytes.
    pub const BUDGET_MIN: usize = 1 << 20;

    /// An engine that holds no more than `budget_bytes`, or [`Overhear::BUDGET_MIN`] if that is more.
    /// The seed keys the hashes of the tables; keep it secret.
    #[must_use]
    pub fn new(budget_bytes: usize, seed: &[u8; 32]) -> Self {
        Self::with_options(budget_bytes, seed, Options::default())
    }

    /// An engine with other options.
    #[must_use]
    pub fn with_options(budget_bytes: usize, seed: &[u8; 32], options: Options) -> Self {
        let budget = budget_bytes.max(Self::BUDGET_MIN);
        let limits = Limits::new(budget, Table::<Key, Flow, RANKS>::cost, Shelf::cost, Names::cost);
        let mut this = Self {
            flows: Table::new(limits.flows, seed),
            flows_bytes: Meter::default(),
            shelf: Shelf::new(limits.chunks, limits.chunks_bytes, seed),
            limits,
            options,
            counters: Counters::default(),
        };
        this.weigh();
        this
    }

    /// Takes an overheard segment.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment<'_>) {
        self.handle(now, None, segment);
    }

    /// Takes overheard segments in this order, as [`Overhear::handle_segment`] does one by one, but faster if there
    /// are many flows. More than [`SEGMENTS_AT_ONCE`] gain nothing, and delay the outputs.
    pub fn handle_segments(&mut self, now: Instant, segments: &[Segment<'_>]) {
        for some in segments.chunks(SEGMENTS_AT_ONCE) {
            let flows = self.look_ahead(some);
            some.iter().zip(flows).for_each(|(segment, flow)| self.handle(now, flow, segment));
        }
    }

    /// Takes a segment; `flow` is its flow if it is known.
    fn handle(&mut self, now: Instant, flow: Option<Id>, segment: &Segment<'_>) {
        self.counters.segments += 1;
        self.counters.payload_bytes += segment.payload.len() as u64;
        let first = segment.seq.wrapping_add(u32::from(segment.syn));
        // A flow enters the table with its first payload, so half-open connections use no memory.
        let key = Key::new(segment.from, segment.to);
        let known = flow.filter(|id| self.flows.get(*id).is_some());
        let id = match known.or_else(|| self.flows.find(&key)) {
            Some(id) => id,
            None if segment.payload.is_empty() => return,
            None => match self.begin(now, key, first) {
                Some(id) => id,
                None => return self.counters.unclaimed_bytes += segment.payload.len() as u64,
            },
        };
        self.hear(now, id, first, segment);
        self.judge();
        self.settle(now, id);
        self.weigh();
    }

    /// Returns the next output; call it until it returns `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.shelf.outputs.pop_front()
    }

    /// When to call [`Overhear::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.flows.next_idle(&IDLE_MAX)
    }

    /// Ends flows that have been silent too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(id) = self.flows.idle(now, &IDLE_MAX) {
            self.last_look(id);
            self.end(id);
        }
        self.judge();
        self.weigh();
    }

    /// The node waits for a chunk: its overheard part is evicted last.
    pub fn want(&mut self, now: Instant, name: ChunkId, total: u32) {
        self.shelf.want(now, Named { name, total }, true);
    }

    /// The node does not wait for the chunk any more, and does not have it.
    pub fn unwant(&mut self, now: Instant, name: ChunkId, total: u32) {
        self.shelf.want(now, Named { name, total }, false);
    }

    /// Takes the names and lengths of an object's chunks in order. A sender sends them in this order, so bytes after a
    /// missed head can be assigned to a chunk by their position.
    pub fn list(&mut self, now: Instant, chunks: &[(ChunkId, u32)]) {
        // A chunk that an object contains twice is sent once.
        let mut seen = BTreeSet::new();
        let once = chunks.iter().filter(|(name, _)| seen.insert(*name));
        let chunks: Vec<_> =
            once.map(|(name, total)| Named { name: *name, total: *total }).collect();
        // The list is noted in parts that fit the table of names. Each part repeats the last chunk of the part before,
        // so that the step between the two parts is noted. Strays are assigned after each part, since the next part
        // may evict the names of this one.
        let part_max = self.limits.chunks / 2;
        for begin in (0..chunks.len().saturating_sub(1)).step_by(part_max) {
            let part = chunks.get(begin..chunks.len().min(begin + part_max + 1));
            self.shelf.names.list(now, part.unwrap_or_default());
            for id in self.flows.ids(|flow| flow.strays.bytes() > 0) {
                self.look(now, id);
                self.make_room(now);
            }
        }
        self.judge();
        self.weigh();
    }

    /// The node has a chunk: the engine collects no more of it for a while.
    pub fn cancel(&mut self, now: Instant, name: ChunkId, total: u32) {
        self.shelf.cancel(now, Named { name, total }, &mut self.counters);
        self.weigh();
    }

    /// The node could not store a chunk: the engine collects it again when it is next sent.
    pub fn lost(&mut self, now: Instant, name: ChunkId) {
        self.shelf.names.lost(now, name);
    }

    /// The ranges of a chunk that were not heard, in order, at most the number that a request may name. `None` if
    /// nothing was heard of it, if its bytes were false, or if the engine does not repair.
    #[must_use]
    pub fn missing(&self, name: ChunkId, total: u32) -> Option<Vec<Range<u32>>> {
        self.options.repairs.then(|| self.shelf.missing(Named { name, total })).flatten()
    }

    /// Incomplete chunks whose head was heard, in any order: name, length, and missing ranges. The whole chunk is
    /// missing if nothing was heard of it, or if its bytes were false.
    pub fn unfinished(&self) -> impl Iterator<Item = (ChunkId, u32, Vec<Range<u32>>)> {
        self.shelf.unfinished().map(|(named, missing)| (named.name, named.total, missing))
    }

    /// Removes and returns the overheard part of a chunk, for the node to join to the part that it fetches; the engine
    /// collects no more of it for a while. If the joined chunk does not match its name, the overheard part was false:
    /// the node calls [`Overhear::want`], and the engine collects the chunk again.
    pub fn take(&mut self, now: Instant, name: ChunkId, total: u32) -> Option<Heard> {
        if !self.options.repairs {
            return None;
        }
        let heard = self.shelf.take(now, Named { name, total }, &mut self.counters);
        self.weigh();
        heard
    }

    /// Sets how many bytes of the budget the node holds in parts that it has not joined yet. The node calls it after
    /// it took a part, and before it hands over segments.
    pub fn set_aside(&mut self, now: Instant, bytes: usize) {
        self.shelf.set_aside(now, bytes, &mut self.counters);
        self.weigh();
    }

    /// Whether the budget lets the node take a part of this many bytes.
    #[must_use]
    pub fn may_give(&self, bytes: usize) -> bool {
        self.shelf.may_give(bytes)
    }

    /// Counters, and the memory in use.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many flows are known.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    fn begin(&mut self, now: Instant, key: Key, sequence: u32) -> Option<Id> {
        if self.flows.is_full() {
            let worst = self.flows.worst(now, &WEIGHTS)?;
            self.evict(worst);
        }
        self.counters.flows += 1;
        self.flows.insert(now, key, Flow::new(sequence), 1)
    }

    fn hear(&mut self, now: Instant, id: Id, first: u32, segment: &Segment<'_>) {
        let room = self.limits.flows_bytes.saturating_sub(self.flows_bytes.now);
        let Some(flow) = self.flows.get_mut(id) else { return };
        let length = segment.payload.len();
        if segment.syn {
            // A new connection with the same addresses and ports: its sequence numbers have no relation to the old.
            flow.closing = false;
            flow.restart(first, 0);
        }
        flow.closing |= segment.fin || segment.rst;
        if length == 0 {
            return;
        }
        let Some(at) = flow.locate(first, length) else {
            self.counters.unclaimed_bytes += length as u64;
            return;
        };
        let (shelf, counters) = (&mut self.shelf, &mut self.counters);
        let options = self.options;
        let mut hearing = Hearing { now, id, flow, shelf, counters, room, options };
        hearing.segment(at, segment.payload);
    }

    /// Assigns a silent flow's strays before its removal: the order of their chunks may be known by now. The time
    /// used is that of the flow's last segment, so that a chunk that was complete then is not begun again.
    fn last_look(&mut self, id: Id) {
        if let Some(now) = self.flows.touched(id) {
            self.look(now, id);
        }
    }

    /// Tries again to assign all strays of a flow, which are its bytes that no head has claimed.
    fn look(&mut self, now: Instant, id: Id) {
        let room = self.limits.flows_bytes.saturating_sub(self.flows_bytes.now);
        let Some(flow) = self.flows.get_mut(id) else { return };
        let (shelf, counters) = (&mut self.shelf, &mut self.counters);
        if flow.strays.bytes() > 0 {
            let options = self.options;
            Hearing { now, id, flow, shelf, counters, room, options }.guess(usize::MAX);
            flow.charge(&mut self.flows_bytes);
        }
    }

    /// Updates the strikes of the flows that sent a chunk's bytes, after the chunk was verified.
    fn judge(&mut self) {
        while let Some((id, what)) = self.shelf.judgements.pop() {
            let Some(flow) = self.flows.get_mut(id) else { continue };
            match what {
                Judgement::Helped => {
                    flow.strikes = flow.strikes.saturating_sub(1);
                    flow.proven = true;
                }
                Judgement::Suspect => flow.strikes = flow.strikes.saturating_add(1),
                Judgement::False => flow.strikes = flow.strikes.saturating_add(STRIKES_FALSE),
            }
        }
    }

    /// Updates a flow's rank and the memory that it uses, and evicts flows if all together use too much.
    fn settle(&mut self, now: Instant, id: Id) {
        let Some(flow) = self.flows.get_mut(id) else { return };
        let rank = match () {
            () if flow.closing => CLOSING,
            () => 1 + usize::from(flow.headed) + usize::from(flow.proven),
        };
        flow.charge(&mut self.flows_bytes);
        self.flows.touch(now, id, rank);
        self.make_room(now);
    }

    /// Evicts flows until the others fit in the flows' part of the budget.
    fn make_room(&mut self, now: Instant) {
        while self.flows_bytes.now > self.limits.flows_bytes {
            let Some(worst) = self.flows.worst(now, &WEIGHTS) else { break };
            self.evict(worst);
        }
    }

    fn evict(&mut self, id: Id) {
        self.end(id);
        self.counters.flows_evicted += 1;
    }

    fn end(&mut self, id: Id) {
        let Some(flow) = self.flows.remove(id) else { return };
        self.flows_bytes.change(flow.charged, 0);
        self.counters.unclaimed_bytes += flow.strays.bytes() as u64;
    }

    /// Counts the entries and bytes in the tables.
    fn weigh(&mut self) {
        let tables = self.limits.tables_bytes;
        let it = &mut self.counters;
        let Shelf { bytes, aside, .. } = &self.shelf;
        it.memory_bytes = (tables + self.flows_bytes.now + bytes.now + aside.now) as u64;
        it.memory_peak_bytes = (tables + self.flows_bytes.peak + bytes.peak + aside.peak) as u64;
        it.headless_bytes = it.payload_bytes
            - it.head_bytes
            - it.kept_bytes
            - it.duplicate_bytes
            - it.unclaimed_bytes;
        let over = it.used_bytes
            + it.false_bytes
            + it.evicted_bytes
            + it.chunks_cancelled_bytes
            + it.taken_bytes;
        it.assembling_bytes = it.kept_bytes - over;
    }
}
