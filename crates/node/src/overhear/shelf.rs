//! Chunks that are being assembled: finds them, gives out the complete ones, and evicts.
//!
//! *Who calls it:* `hearing.rs`, with bytes of chunks; the engine, with what the node knows of them. *What it never
//! does:* exceed its memory.

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

/// Least important first: hardly begun, begun, almost complete, wanted.
const RANKS: usize = 4;
/// Weights by rank. A chunk that is nearly complete may stay longer, but not for ever: a sender that completes none
/// could otherwise fill the table. Wanted chunks leave last.
const WEIGHTS: [u64; RANKS] = [64, 4, 1, 0];
/// A chunk is hardly begun if less than one part in this many was heard. Any usual packet brings more, so heads
/// with hardly a byte behind them are evicted first.
pub const HARDLY: usize = 32;

/// The shelf.
#[derive(Debug)]
pub struct Shelf {
    chunks: Table<Named, Chunk, RANKS>,
    /// What is remembered of names.
    pub names: Names,
    /// What chunks take beside the table, in bytes.
    pub bytes: Meter,
    /// Bytes that were given out and that the node has not joined yet. They count against the same memory.
    pub aside: Meter,
    bytes_max: usize,
    /// Outputs for the node.
    pub outputs: VecDeque<Output>,
    /// What was found of flows.
    pub judgements: Vec<(Id, Judgement)>,
}

/// Where in a chunk bytes belong.
#[derive(Clone, Debug)]
pub struct Place {
    /// Of which chunk.
    pub named: Named,
    /// Where they begin.
    pub at: u64,
    /// Up to where the same frame has bytes.
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

    /// Whether anything is known of a chunk.
    pub fn knows(&self, named: &Named) -> bool {
        let chunk = self.chunks.find(named).and_then(|id| self.chunks.touched(id));
        let follows = self.names.after(&named.name);
        chunk.is_some() | follows.is_some()
    }

    /// The last byte that was heard of a chunk, if it is there.
    pub fn tail(&self, id: Id) -> Option<u8> {
        self.chunks.get(id)?.tail()
    }

    /// The memory of a table for this many chunks, in bytes.
    pub fn cost(chunks_max: usize) -> usize {
        Table::<Named, Chunk, RANKS>::cost(chunks_max)
    }

    /// Bytes of this chunk are coming; `None` if it is here already.
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

    /// Adds bytes of a chunk. Returns where the chunk is, unless it has left.
    pub fn hear(
        &mut self,
        now: Instant,
        by: Speaker,
        id: Id,
        place: &Place,
        bytes: &[u8],
        counters: &mut Counters,
    ) -> Option<Id> {
        let is_there = self.chunks.get(id).is_some();
        let id = if is_there { Some(id) } else { self.begin(now, place.named, counters) };
        let Some((id, chunk)) = id.and_then(|id| Some((id, self.chunks.get_mut(id)?))) else {
            counters.duplicate_bytes += bytes.len() as u64;
            return None;
        };
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
        let rank = rank(chunk, heard, place.named);
        self.chunks.touch(now, id, rank);
        let is_complete = heard == place.named.total as usize;
        let last = place.at..place.at + bytes.len() as u64;
        if is_complete && self.verify(now, id, place.named, &last, counters) {
            return None;
        }
        self.make_room(now, counters);
        Some(id)
    }

    /// Sets how many bytes were given out and are not joined yet.
    pub fn set_aside(&mut self, now: Instant, bytes: usize, counters: &mut Counters) {
        self.aside.set(bytes);
        self.make_room(now, counters);
    }

    /// Whether this many more bytes may be given out: half of the memory is kept for chunks that are still heard.
    pub fn may_give(&self, bytes: usize) -> bool {
        self.aside.now + bytes <= self.bytes_max / 2
    }

    fn make_room(&mut self, now: Instant, counters: &mut Counters) {
        while self.bytes.now + self.aside.now > self.bytes_max && self.evict(now, counters) {}
    }

    /// Verifies a chunk with a complete version. Returns whether the chunk has left.
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
                bytes.shrink_to_fit();
                self.outputs.push_back(Output::Chunk { name: named.name, bytes: bytes.into() });
            }
            _ => counters.false_bytes += kept,
        }
        true
    }

    /// Makes room; false if there is nothing to drop.
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

    /// Somebody waits for a chunk, or does not any more.
    pub fn want(&mut self, now: Instant, named: Named, wanted: bool) {
        self.names.want(now, named.name, wanted);
        let Some(id) = self.chunks.find(&named) else { return };
        let Some(chunk) = self.chunks.get_mut(id) else { return };
        chunk.wanted = wanted;
        let rank = rank(chunk, chunk.heard(), named);
        self.chunks.touch(now, id, rank);
    }

    /// A chunk arrived from another source.
    pub fn cancel(&mut self, now: Instant, named: Named, counters: &mut Counters) {
        self.names.arrived(now, named.name);
        let Some(chunk) = self.chunks.find(&named).and_then(|id| self.remove(id)) else { return };
        counters.chunks_cancelled += 1;
        counters.chunks_cancelled_bytes += chunk.kept;
    }

    /// Chunks that are not complete, and what is missing of each.
    pub fn unfinished(&self) -> impl Iterator<Item = (Named, Vec<Range<u32>>)> {
        self.chunks.iter().map(|(named, _)| {
            let all = || std::iter::once(0..named.total).collect();
            (*named, self.missing(*named).unwrap_or_else(all))
        })
    }

    /// The missing ranges of a chunk of which something was heard.
    pub fn missing(&self, named: Named) -> Option<Vec<Range<u32>>> {
        let chunk = self.chunks.get(self.chunks.find(&named)?)?;
        if chunk.heard() == 0 || chunk.falsehoods() > 0 {
            return None;
        }
        let missing = chunk.missing(named.total.into()).into_iter();
        Some(missing.map(|range| range.start as u32..range.end as u32).collect())
    }

    /// How many of these bytes were heard of a chunk before, and are the same; `None` if others were.
    pub fn agreeing(&self, named: Named, at: u64, bytes: &[u8]) -> Option<usize> {
        let chunk = self.chunks.find(&named).and_then(|id| self.chunks.get(id));
        chunk.map_or(Some(0), |chunk| chunk.agreeing(at, bytes))
    }

    /// Gives out the bytes heard of a chunk, and listens to no more of it.
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
            // Room that was kept for more of it would stay with the bytes.
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
