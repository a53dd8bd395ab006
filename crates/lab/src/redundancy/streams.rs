//! TCP segments of a capture, in any order and repeated, joined to streams, each direction of a connection by itself.
//!
//! *What it never does:* guess bytes. Where bytes were not captured, the stream ends and another begins behind the gap.
//! *Bounded:* [`LIVE_MAX`] streams under way, [`FLOWS_MAX`] connections that are remembered, [`AHEAD_MAX`] bytes of memory
//! for what waits behind a gap of one of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use wire::capture::Segment;

use super::analysis::{Analysis, Stream};
use super::names::Full;

/// Streams under way at a time; beyond that, the one that has been silent for longest ends.
const LIVE_MAX: usize = 256;

/// Directions of connections that are remembered, so that repeated segments count once.
const FLOWS_MAX: usize = 1 << 16;

/// Memory of a flow's segments that wait for those before them; beyond that, those before are taken as not captured.
const AHEAD_MAX: usize = 256 << 10;

/// What a segment that waits takes besides its bytes, so that many short ones do not take more than a few long ones.
const SEGMENT_COST: usize = 96;

/// A sequence number further than this from the expected one belongs to another connection.
const NEAR: i64 = 16 << 20;

/// Bytes that may have been captured before the SYN before them: with fast open, a first window.
const EARLY_MAX: u32 = 64 << 10;

/// The sender and the receiver.
type Key = (SocketAddr, SocketAddr);

/// Streams of a capture.
#[derive(Debug, Default)]
pub struct Streams {
    flows: BTreeMap<Key, Flow>,
    /// The flows by the number of their last segment; and of these, those whose stream is under way.
    by_age: BTreeMap<u64, Key>,
    live: BTreeMap<u64, Key>,
    /// Segments so far.
    segments: u64,
    counts: StreamCounts,
}

/// What became of a capture's segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Streams with at least one byte.
    pub streams: u64,
    /// Bytes between captured ones that were not captured.
    pub missing_bytes: u64,
}

/// A direction of a connection.
#[derive(Debug, Default)]
struct Flow {
    /// The sequence number of the next byte, and its position: bytes since the first one, and a large number.
    sequence: u32,
    position: u64,
    /// The sequence number of the first byte that was captured, or after a SYN of the first that was sent.
    first: u32,
    /// Whether a SYN was captured.
    syn: bool,
    /// Whether a FIN or RST was captured.
    closed: bool,
    /// Segments behind a gap, by position.
    ahead: BTreeMap<u64, Vec<u8>>,
    /// The memory of these.
    ahead_cost: usize,
    stream: Option<Stream>,
    /// The number of the last segment.
    age: u64,
}

impl Streams {
    /// Takes a segment, and gives the analysis what follows in its stream.
    pub fn handle_segment(
        &mut self,
        analysis: &mut Analysis,
        segment: &Segment<'_>,
    ) -> Result<(), Full> {
        if segment.payload.is_empty()
            && segment.missing == 0
            && !segment.syn
            && !segment.fin
            && !segment.rst
        {
            return Ok(());
        }
        self.segments += 1;
        let key = (segment.from, segment.to);
        let first = segment.seq.wrapping_add(u32::from(segment.syn));
        if self.flows.get(&key).is_some_and(|it| !it.continues(segment, first)) {
            self.forget(analysis, key)?;
            // The other direction's first numbers may be the same again.
            if segment.syn {
                self.forget(analysis, (segment.to, segment.from))?;
            }
        }
        let flow = self.flows.entry(key).or_insert_with(|| Flow::at(first));
        flow.note(segment, first);
        flow.take(analysis, segment, first, &mut self.counts)?;
        if segment.rst || segment.fin && flow.ahead.is_empty() {
            flow.finish(analysis)?;
        }
        self.note_age(key);
        self.make_room(analysis)
    }

    /// Ends all streams, the one that has been silent for longest first.
    pub fn finish(mut self, analysis: &mut Analysis) -> Result<StreamCounts, Full> {
        for key in self.by_age.values() {
            if let Some(mut flow) = self.flows.remove(key) {
                flow.end(analysis, &mut self.counts)?;
            }
        }
        Ok(self.counts)
    }

    /// Segments that wait behind gaps.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.flows.values().map(|it| it.ahead.len()).sum()
    }

    fn note_age(&mut self, key: Key) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        self.by_age.remove(&flow.age);
        self.live.remove(&flow.age);
        flow.age = self.segments;
        self.by_age.insert(flow.age, key);
        if flow.stream.is_some() || !flow.ahead.is_empty() {
            self.live.insert(flow.age, key);
        }
    }

    fn make_room(&mut self, analysis: &mut Analysis) -> Result<(), Full> {
        while self.live.len() > LIVE_MAX {
            let Some((_, key)) = self.live.pop_first() else { break };
            if let Some(flow) = self.flows.get_mut(&key) {
                flow.end(analysis, &mut self.counts)?;
            }
        }
        while self.by_age.len() > FLOWS_MAX {
            let Some((_, &key)) = self.by_age.first_key_value() else { break };
            self.forget(analysis, key)?;
        }
        debug_assert_eq!(self.flows.len(), self.by_age.len());
        Ok(())
    }

    /// Ends a flow, if there is one, and no longer remembers it.
    fn forget(&mut self, analysis: &mut Analysis, key: Key) -> Result<(), Full> {
        let Some(mut flow) = self.flows.remove(&key) else { return Ok(()) };
        self.by_age.remove(&flow.age);
        self.live.remove(&flow.age);
        flow.end(analysis, &mut self.counts)
    }
}

/// The memory of bytes that wait.
fn cost(bytes: &[u8]) -> usize {
    SEGMENT_COST + bytes.len()
}

impl Flow {
    /// A flow whose next byte has this sequence number.
    fn at(sequence: u32) -> Self {
        // Earlier bytes have a position too.
        Self { sequence, position: 1 << 40, first: sequence, ..Self::default() }
    }

    /// Whether a segment, whose first byte has this sequence number, belongs to this connection, and not to a later one of
    /// the same ports. A SYN does if it is a repetition, or came a little after what follows it.
    fn continues(&self, segment: &Segment<'_>, first: u32) -> bool {
        let offset = i64::from(first.wrapping_sub(self.sequence) as i32);
        let is_known = || match self.syn {
            true => first == self.first,
            false => !self.closed && self.first.wrapping_sub(first) <= EARLY_MAX,
        };
        offset.abs() <= NEAR && (!segment.syn || is_known())
    }

    fn note(&mut self, segment: &Segment<'_>, first: u32) {
        if segment.syn {
            (self.syn, self.first) = (true, first);
        }
        self.closed |= segment.fin || segment.rst;
    }

    fn take(
        &mut self,
        analysis: &mut Analysis,
        segment: &Segment<'_>,
        first: u32,
        counts: &mut StreamCounts,
    ) -> Result<(), Full> {
        let offset = i64::from(first.wrapping_sub(self.sequence) as i32);
        let start = self.position.saturating_add_signed(offset);
        self.put(start, segment.payload);
        self.advance(analysis, counts)?;
        let end = start + segment.payload.len() as u64;
        if segment.missing > 0 && self.position == end {
            self.skip(analysis, end + segment.missing as u64, counts)?;
            self.advance(analysis, counts)?;
        }
        while self.ahead_cost > AHEAD_MAX {
            self.skip_gap(analysis, counts)?;
        }
        debug_assert_eq!(self.ahead_cost, self.ahead.values().map(|it| cost(it)).sum::<usize>());
        Ok(())
    }

    /// Keeps what is new of a segment.
    fn put(&mut self, start: u64, payload: &[u8]) {
        let old = self.position.saturating_sub(start).min(payload.len() as u64);
        let (start, payload) = (start + old, &payload[old as usize..]);
        let is_longer = self.ahead.get(&start).is_none_or(|it| it.len() < payload.len());
        if !payload.is_empty() && is_longer {
            self.ahead_cost += cost(payload);
            let before = self.ahead.insert(start, payload.to_vec());
            self.ahead_cost -= before.map_or(0, |it| cost(&it));
        }
    }

    /// Gives on all that follows without a gap.
    fn advance(&mut self, analysis: &mut Analysis, counts: &mut StreamCounts) -> Result<(), Full> {
        while let Some(entry) = self.ahead.first_entry().filter(|it| *it.key() <= self.position) {
            let (start, bytes) = entry.remove_entry();
            self.ahead_cost -= cost(&bytes);
            let old = (self.position - start).min(bytes.len() as u64);
            let new = &bytes[old as usize..];
            if new.is_empty() {
                continue;
            }
            self.move_on(new.len() as u64);
            if self.stream.is_none() {
                counts.streams += 1;
            }
            analysis.feed(self.stream.get_or_insert_with(|| analysis.stream()), new)?;
        }
        Ok(())
    }

    /// Ends the stream, and goes on at a later position.
    fn skip(
        &mut self,
        analysis: &mut Analysis,
        to: u64,
        counts: &mut StreamCounts,
    ) -> Result<(), Full> {
        counts.missing_bytes += to - self.position;
        self.move_on(to - self.position);
        self.finish(analysis)
    }

    /// Goes on behind the gap.
    fn skip_gap(&mut self, analysis: &mut Analysis, counts: &mut StreamCounts) -> Result<(), Full> {
        if let Some(&to) = self.ahead.keys().next() {
            self.skip(analysis, to, counts)?;
        }
        self.advance(analysis, counts)
    }

    fn move_on(&mut self, bytes: u64) {
        self.position += bytes;
        self.sequence = self.sequence.wrapping_add(bytes as u32);
    }

    /// Ends the stream with what waits behind gaps.
    fn end(&mut self, analysis: &mut Analysis, counts: &mut StreamCounts) -> Result<(), Full> {
        while !self.ahead.is_empty() {
            self.skip_gap(analysis, counts)?;
        }
        self.finish(analysis)
    }

    fn finish(&mut self, analysis: &mut Analysis) -> Result<(), Full> {
        self.stream.take().map_or(Ok(()), |stream| analysis.finish(stream))
    }
}
