//! The *shelf*: all chunks that are being assembled. It finds chunks, gives out verified ones, and evicts others.
//!
//! *Who calls it:* `hearing.rs`, with bytes of chunks; the engine, when the node wants a chunk, has it or takes it.
//! *What it never does:* exceed its memory.

use super::assemble::{Chunk, Judgement, Speaker, Verdict};
use super::counters::Counters;
use super::limits::Meter;
use super::names::{Named, Names, State};
use super::table::{Id, Table};
use super::{Heard, Output};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use wire::Instant;

/// Ranks of chunks, the least important first: hardly begun, begun, at least half heard, wanted.
const RANKS: usize = 4;
/// The weight of an entry's age, by rank. A chunk that is at least half heard stays longer, but not for ever: a sender
/// that completes no chunk could otherwise fill the table. Wanted chunks are evicted last.
const WEIGHTS: [u64; RANKS] = [64, 4, 1, 0];
/// A chunk is hardly begun if less than one part in this many was heard. Any usual packet brings more, so a chunk with
/// a head and almost no bytes behind it is evicted first.
pub const HARDLY: usize = 32;

/// The shelf.
#[derive(Debug)]
pub struct Shelf {
    chunks: Table<Named, Chunk, RANKS>,
    /// The table of names.
    pub names: Names,
    /// Memory of chunks outside the table, in bytes.
    pub bytes: Meter,
    /// Bytes of overheard parts that the node has taken and not joined yet. They count against `bytes_max` too.
    pub aside: Meter,
    bytes_max: usize,
    /// Outputs for the node.
    pub outputs: VecDeque<Output>,
    /// Judgements of flows that the engine has not applied yet.
    pub judgements: Vec<(Id, Judgement)>,
}

/// To which chunk bytes belong, and where in it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The chunk.
    pub named: Named,
    /// The offset of the first byte in the chunk.
    pub at: u64,
    /// The offset at which the bytes' frame ends.
    pub end: u64,
}

impl Shelf {
    /// A shelf for this many chunks, and this many bytes of them.
    pub fn new(chunks_max: usize, bytes_max: usize, seed: &[u8; 32]) -> Self {
        Self {
            chunks: Table::new(chunks_max, seed),
            names: Names::new(chunks_max, seed),
            bytes: Meter::default(),
            aside: Meter::default(),
            bytes_max,
            outputs: VecDeque::new(),
            judgements: Vec::new(),
        }
    }

    /// Whether the engine has a chunk's bytes or knows its successor. `|` evaluates both sides, so that both are loaded
    /// into a cache.
    pub fn knows(&self, named: &Named) -> bool {
        let chunk = self.chunks.find(named).and_then(|id| self.chunks.touched(id));
        let follows = self.names.after(&named.name);
        chunk.is_some() | follows.is_some()
    }

    /// The last byte of a chunk's newest version.
    pub fn tail(&self, id: Id) -> Option<u8> {
        self.chunks.get(id)?.tail()
    }

    /// The memory of a table for this many chunks, in bytes.
    pub fn cost(chunks_max: usize) -> usize {
        Table::<Named, Chunk, RANKS>::cost(chunks_max)
    }

    /// Begins to assemble a chunk, unless it has begun already. `None` if the chunk is not needed.
    pub fn begin(&mut self, now: Instant, named: Named, counters: &mut Counters) -> Option<Id> {
        let state = self.names.state(now, &named.name);
        if state == State::Here {
            return None;
        }
        if let Some(id) = self.chunks.find(&named) {
            return Some(id);
        }
        if self.chunks.is_full() {
            self.evict(now, counters);
        }
        let chunk = Chunk::new(state == State::Wanted);
        let rank = rank(&chunk, 0, named);
        let id = self.chunks.insert(now, named, chunk, rank);
        self.outputs.push_back(Output::Begun { name: named.name, total: named.total });
        id
    }

    /// Adds bytes of a chunk. Returns the chunk's entry; `None` if nothing more of it is needed.
    pub fn hear(
        &mut self,
        now: Instant,
        by: Speaker,
        id: Id,
        place: &Place,
        bytes: &[u8],
        counters: &mut Counters,
    ) -> Option<Id> {
        // The entry may have been evicted since the frame was claimed; then the chunk begins again.
        let is_there = self.chunks.get(id).is_some();
        let id = if is_there { Some(id) } else { self.begin(now, place.named, counters) };
        let Some((id, chunk)) = id.and_then(|id| Some((id, self.chunks.get_mut(id)?))) else {
            counters.duplicate_bytes += bytes.len() as u64;
            return None;
        };
        // The fast path uses only reserved memory, so the chunk's cost stays the same.
        let kept = if chunk.go_on(by, place.at, bytes) {
            bytes.len()
        } else {
            let before = chunk.cost();
            let kept = chunk.hear(by, place.at, bytes, place.end);
            self.bytes.change(before, chunk.cost());
            kept
        };
        counters.kept_bytes += kept as u64;
        counters.duplicate_bytes += (bytes.len() - kept) as u64;
        if kept == 0 {
            return Some(id);
        }
        let heard = chunk.heard();
        // The more of a chunk is heard, the later it is evicted.
        let rank = rank(chunk, heard, place.named);
        self.chunks.touch(now, id, rank);
        let is_complete = heard == place.named.total as usize;
        // The last piece, to be dropped first if a complete version is false.
        let last = place.at..place.at + bytes.len() as u64;
        if is_complete && self.verify(now, id, place.named, &last, counters) {
            return None;
        }
        // Only now: the bytes just added may have completed the chunk, which needs no room then.
        self.make_room(now, counters);
        Some(id)
    }

    /// Sets how many bytes of overheard parts the node has taken and not joined yet.
    pub fn set_aside(&mut self, now: Instant, bytes: usize, counters: &mut Counters) {
        self.aside.set(bytes);
        self.make_room(now, counters);
    }

    /// Whether the node may take this many more bytes: half of the memory is kept for chunks on the shelf.
    pub fn may_give(&self, bytes: usize) -> bool {
        self.aside.now + bytes <= self.bytes_max / 2
    }

    fn make_room(&mut self, now: Instant, counters: &mut Counters) {
        while self.bytes.now + self.aside.now > self.bytes_max && self.evict(now, counters) {}
    }

    /// Verifies a chunk with a complete version. Returns whether the chunk was removed.
    fn verify(
        &mut self,
        now: Instant,
        id: Id,
        named: Named,
        last: &Range<u64>,
        counters: &mut Counters,
    ) -> bool {
        let Some(chunk) = self.chunks.get_mut(id) else { return true };
        let (before, falsehoods) = (chunk.cost(), chunk.falsehoods());
        let judgements = &mut self.judgements;
        let total = u64::from(named.total);
        let verdict =
            chunk.verify(&named.name, total, last, |by, what| judgements.push((by, what)));
        let (after, kept) = (chunk.cost(), chunk.kept);
        counters.falsehoods += u64::from(chunk.falsehoods().wrapping_sub(falsehoods));
        // No version is complete and true, but one may still become so.
        if verdict == Verdict::Open {
            self.bytes.change(before, after);
            return false;
        }
        self.bytes.change(before, 0);
        self.chunks.remove(id);
        match verdict {
            Verdict::True(mut bytes) => {
                counters.chunks += 1;
                counters.used_bytes += total;
                counters.false_bytes += kept.saturating_sub(total);
                self.names.arrived(now, named.name);
                // Reserved memory would stay allocated with the output.
                bytes.shrink_to_fit();
                self.outputs.push_back(Output::Chunk { name: named.name, bytes: bytes.into() });
            }
            _ => counters.false_bytes += kept,
        }
        true
    }

    /// Evicts a chunk; false if there is none.
    fn evict(&mut self, now: Instant, counters: &mut Counters) -> bool {
        let worst = self.chunks.worst(now, &WEIGHTS);
        let Some(chunk) = worst.and_then(|id| self.remove(id)) else { return false };
        counters.chunks_evicted += 1;
        counters.evicted_bytes += chunk.kept;
        true
    }

    fn remove(&mut self, id: Id) -> Option<Chunk> {
        let chunk = self.chunks.remove(id)?;
        self.bytes.change(chunk.cost(), 0);
        Some(chunk)
    }

    /// Notes whether a request of the node waits for a chunk.
    pub fn want(&mut self, now: Instant, named: Named, wanted: bool) {
        self.names.want(now, named.name, wanted);
        let Some(id) = self.chunks.find(&named) else { return };
        let Some(chunk) = self.chunks.get_mut(id) else { return };
        chunk.wanted = wanted;
        let rank = rank(chunk, chunk.heard(), named);
        self.chunks.touch(now, id, rank);
    }

    /// Drops a chunk because the node has it.
    pub fn cancel(&mut self, now: Instant, named: Named, counters: &mut Counters) {
        self.names.arrived(now, named.name);
        let Some(chunk) = self.chunks.find(&named).and_then(|id| self.remove(id)) else { return };
        counters.chunks_cancelled += 1;
        counters.chunks_cancelled_bytes += chunk.kept;
    }

    /// The chunks on the shelf, and the missing ranges of each.
    pub fn unfinished(&self) -> impl Iterator<Item = (Named, Vec<Range<u32>>)> {
        self.chunks.iter().map(|(named, _)| {
            let all = || std::iter::once(0..named.total).collect();
            (*named, self.missing(*named).unwrap_or_else(all))
        })
    }

    /// The missing ranges of a chunk; `None` if none of its bytes were heard, or if a version of it was false.
    pub fn missing(&self, named: Named) -> Option<Vec<Range<u32>>> {
        let chunk = self.chunks.get(self.chunks.find(&named)?)?;
        if chunk.heard() == 0 || chunk.falsehoods() > 0 {
            return None;
        }
        let missing = chunk.missing(named.total.into()).into_iter();
        Some(missing.map(|range| range.start as u32..range.end as u32).collect())
    }

    /// How many of these bytes equal bytes of the chunk that were heard before; `None` if any contradict them.
    pub fn agreeing(&self, named: Named, at: u64, bytes: &[u8]) -> Option<usize> {
        let chunk = self.chunks.find(&named).and_then(|id| self.chunks.get(id));
        chunk.map_or(Some(0), |chunk| chunk.agreeing(at, bytes))
    }

    /// Removes a chunk from the shelf and returns the bytes heard of it. No more of it is collected for a while.
    pub fn take(&mut self, now: Instant, named: Named, counters: &mut Counters) -> Option<Heard> {
        let id = self.chunks.find(&named)?;
        let chunk = self.remove(id)?;
        let heard = chunk.heard() as u64;
        counters.chunks_taken += 1;
        counters.taken_bytes += heard;
        counters.false_bytes += chunk.kept.saturating_sub(heard);
        self.names.arrived(now, named.name);
        let blocks = chunk.into_fullest().into_runs();
        let parts = blocks.map(|mut run| {
            // Reserved memory for more bytes would stay allocated with these.
            run.bytes.shrink_to_fit();
            (run.at as u32, Bytes::from(run.bytes))
        });
        let parts = parts.collect();
        Some(Heard { total: named.total, parts })
    }
}

fn rank(chunk: &Chunk, heard: usize, named: Named) -> usize {
    let total = named.total as usize;
    match () {
        () if chunk.wanted => 3,
        () if heard * 2 >= total && chunk.falsehoods() == 0 => 2,
        () if heard * HARDLY >= total => 1,
        () => 0,
    }
}
