//! One segment's bytes on their way to where they belong: to a chunk if a head is known to claim them,
//! else to the strays, and from there to a chunk once a head is found.
//!
//! A head is found where its marker is and what follows makes sense. It may have been heard before its
//! chunk's bytes or after, in one segment or across several; or not at all, if the flow's frames before
//! and behind leave room for just those chunks that follow each other elsewhere.

use super::Options;
use super::assemble::Speaker;
use super::counters::Counters;
use super::flows::{Flow, Frame, HEAD, Place};
use super::names::Named;
use super::runs::Run;
use super::shelf::{self, Shelf};
use super::table::Id;
use memchr::memmem;
use wire::Instant;
use wire::peer::ChunkHead;

const MARKER: &[u8] = b"HSCH";
/// The most blocks of bytes that wait in a flow.
const STRAY_RUNS_MAX: usize = 32;
/// The most chunks whose heads are guessed in one gap.
const GUESSED_MAX: usize = 8;
/// Chunks further apart than this do not tell of each other.
const GAP_MAX: u64 = 128 << 10;
/// So many bytes that are the same are no accident.
const AGREEING_MIN: usize = 16;

/// What is at hand while a flow is listened to.
pub struct Hearing<'a> {
    /// The time.
    pub now: Instant,
    /// Which flow it is.
    pub id: Id,
    /// The flow.
    pub flow: &'a mut Flow,
    /// Where chunks are.
    pub shelf: &'a mut Shelf,
    /// What is counted.
    pub counters: &'a mut Counters,
    /// How many bytes may wait for a head.
    pub strays_max: usize,
    /// How to listen.
    pub options: Options,
}

impl Hearing<'_> {
    /// Takes in a segment's bytes.
    pub fn segment(&mut self, mut at: u64, mut bytes: &[u8]) {
        let heads = self.counters.heads;
        while !bytes.is_empty() {
            let used = match self.flow.place(at) {
                Place::Frame(i) => self.framed(i, at, bytes),
                Place::Unknown(until) => self.unknown(at, first(bytes, until - at)),
            };
            at += used as u64;
            bytes = bytes.get(used..).unwrap_or_default();
        }
        if self.counters.heads > heads && self.flow.strays.bytes() > 0 {
            self.guess();
        }
    }

    /// Bytes within a frame; answers how many were dealt with.
    fn framed(&mut self, i: usize, at: u64, bytes: &[u8]) -> usize {
        let Some(frame) = self.flow.frames.get(i) else { return bytes.len() };
        if at < frame.body && !frame.several {
            return self.head_again(i, at, bytes);
        }
        let bytes = first(bytes, frame.end - at);
        let Some(chunk) = frame.chunk else {
            self.counters.duplicate_bytes += bytes.len() as u64;
            return bytes.len();
        };
        let shift = u64::from(frame.offset);
        let place = shelf::Place {
            named: frame.named,
            at: at - frame.body + shift,
            end: frame.end - frame.body + shift,
        };
        let trusted = self.options.joins_streams && self.flow.is_trusted();
        let by = Speaker { flow: self.id, trusted };
        match self.shelf.hear(self.now, by, chunk, &place, bytes, self.counters) {
            Some(id) => {
                if let Some(frame) = self.flow.frames.get_mut(i) {
                    frame.chunk = Some(id);
                }
            }
            None => self.flow.is_over(i),
        }
        bytes.len()
    }

    /// Bytes where the head of a frame stands, or should: a guess yields to what is heard.
    fn head_again(&mut self, i: usize, at: u64, bytes: &[u8]) -> usize {
        let Some(frame) = self.flow.frames.get_mut(i) else { return bytes.len() };
        let length = first(bytes, frame.body - at).len();
        if !frame.guessed {
            self.counters.duplicate_bytes += length as u64;
            return length;
        }
        if let Some(head) = decode(bytes).filter(|_| at == frame.begin) {
            if head.name != frame.named.name {
                self.flow.frames.remove(i);
                return 0;
            }
            frame.guessed = false;
        }
        self.counters.head_bytes += length as u64;
        length
    }

    /// Bytes that no frame is known to have; answers how many were dealt with.
    fn unknown(&mut self, at: u64, bytes: &[u8]) -> usize {
        // As a rule, a head follows a frame.
        if let Some(head) = decode(bytes)
            && self.claim(Frame::new(at, &head))
        {
            self.counters.head_bytes += HEAD;
            return ChunkHead::LENGTH;
        }
        let mut length = bytes.len();
        for found in memmem::find_iter(bytes, MARKER) {
            // What is before it comes first: a head that claims this one may end there.
            if found > 0 && bytes.get(found..).and_then(decode).is_some() {
                length = found;
                break;
            }
        }
        self.stray(at, first(bytes, length as u64));
        self.across(at, at);
        let end = at + length as u64;
        self.across(end, end - 1);
        let strays_max = if self.flow.is_foreign() { 0 } else { self.strays_max };
        let excess = self.flow.strays.bytes().saturating_sub(strays_max);
        self.counters.unclaimed_bytes += self.flow.strays.drop_first(excess) as u64;
        length
    }

    /// Looks for a head across the border between two segments, in the block of strays with a byte.
    fn across(&mut self, border: u64, byte: u64) {
        let around = border - HEAD..border + HEAD;
        let Some((start, window)) = self.flow.strays.at(byte).map(|run| run.part(&around)) else {
            return;
        };
        let heads: Vec<_> = memmem::find_iter(window, MARKER)
            .filter_map(|found| Some((found, window.get(found..).and_then(decode)?)))
            .collect();
        for (found, head) in heads {
            self.claim(Frame::new(start + found as u64, &head));
        }
    }

    /// Keeps bytes until a head claims them.
    fn stray(&mut self, at: u64, bytes: &[u8]) {
        self.flow.has_stray(bytes.len());
        if self.flow.is_foreign() {
            self.counters.unclaimed_bytes += bytes.len() as u64;
            return;
        }
        let strays = &mut self.flow.strays;
        if strays.len() >= STRAY_RUNS_MAX {
            self.counters.unclaimed_bytes += strays.drop_first(1) as u64;
        }
        let new = strays.insert(at, bytes, 0, usize::MAX);
        self.counters.duplicate_bytes += (bytes.len() - new) as u64;
    }

    /// A frame is known: what waited for it goes to its chunk. False if another frame is there.
    fn claim(&mut self, frame: Frame) -> bool {
        let (begin, body, end, named) = (frame.begin, frame.body, frame.end, frame.named);
        let guessed = frame.guessed;
        let Some(i) = self.flow.claim(frame) else { return false };
        self.counters.heads += 1;
        self.counters.heads_guessed += u64::from(guessed);
        self.flow.has_head();
        self.learn(i);
        let chunk = self.shelf.begin(self.now, named, self.counters);
        match self.flow.frames.get_mut(i) {
            Some(frame) if chunk.is_some() => frame.chunk = chunk,
            _ => self.flow.is_over(i),
        }
        for Run { at, bytes } in self.flow.strays.take(begin..end) {
            let of_head = first(&bytes, body.saturating_sub(at)).len();
            self.counters.head_bytes += of_head as u64;
            self.claimed(at + of_head as u64, bytes.get(of_head..).unwrap_or_default());
        }
        true
    }

    /// Strays that are in a frame now.
    fn claimed(&mut self, mut at: u64, mut bytes: &[u8]) {
        while let Place::Frame(i) = self.flow.place(at)
            && !bytes.is_empty()
        {
            let used = self.framed(i, at, bytes);
            at += used as u64;
            bytes = bytes.get(used..).unwrap_or_default();
        }
    }

    /// Remembers which chunks follow each other here, and how far apart.
    fn learn(&mut self, i: usize) {
        let frames = &self.flow.frames;
        let Some(frame) = frames.get(i).filter(|it| it.is_whole() && !it.guessed) else { return };
        let mut follows = |first: &Frame, second: &Frame| {
            let gap = second.begin - first.end;
            if gap <= GAP_MAX {
                self.shelf.names.follows(self.now, first.named, gap, second.named);
            }
        };
        if let Some(before) = i.checked_sub(1).and_then(|i| frames.get(i)) {
            follows(before, frame);
        }
        if let Some(behind) = frames.get(i + 1).filter(|it| it.is_whole()) {
            follows(frame, behind);
        }
    }

    /// Gives names to strays whose heads were missed: between two frames, chunks that lie just so between
    /// them elsewhere; before the first frame, what precedes it elsewhere. And everywhere, chunks that are
    /// where they should be seen from one side, of which the same bytes were heard here and there.
    pub fn guess(&mut self) {
        if !(self.options.joins_streams && self.options.guesses_heads) {
            return;
        }
        let mut i = 0;
        while let Some(frame) = self.flow.frames.get(i) {
            let (named, from) = (frame.named, frame.end);
            let next = self.flow.frames.get(i + 1).map(|next| (next.begin, next.named));
            let until = next.map_or(u64::MAX, |(begin, _)| begin);
            if from < until && self.flow.strays.within(from..until).next().is_some() {
                self.fill(named, from, next);
            }
            i += 1;
        }
        for _ in 0..GUESSED_MAX {
            let Some(first) = self.flow.frames.front().filter(|it| it.is_whole()) else { break };
            let Some(before) = self.shelf.names.before(&first.named.name) else { break };
            let end = first.begin - before.gap;
            let begin = end - HEAD - u64::from(before.named.total);
            if self.flow.strays.within(begin..end).next().is_none() {
                break;
            }
            if !self.claim(Frame::guess(begin, before.named)) {
                break;
            }
        }
    }

    /// Fills the gap behind a chunk with those that follow it elsewhere: all if they lead to the next
    /// frame, else those of which bytes agree; and from the next frame backwards.
    fn fill(&mut self, named: Named, from: u64, next: Option<(u64, Named)>) {
        let until = next.map_or(u64::MAX, |(begin, _)| begin);
        let (guesses, leads_there) = self.walk(named, from, next);
        for (begin, named) in guesses {
            if leads_there || self.is_there(begin, named) {
                self.claim(Frame::guess(begin, named));
            }
        }
        if leads_there {
            return;
        }
        let Some((mut begin, mut named)) = next else { return };
        for _ in 0..GUESSED_MAX {
            let Some(before) = self.shelf.names.before(&named.name) else { return };
            let length = before.gap + HEAD + u64::from(before.named.total);
            if length > until - from || begin - length < from {
                return;
            }
            (begin, named) = (begin - length, before.named);
            if self.is_there(begin, named) {
                self.claim(Frame::guess(begin, named));
            }
        }
    }

    /// Where chunks should be that follow one elsewhere, and whether they lead to the next frame.
    fn walk(
        &self,
        mut named: Named,
        from: u64,
        next: Option<(u64, Named)>,
    ) -> (Vec<(u64, Named)>, bool) {
        let until = next.map_or(u64::MAX, |(begin, _)| begin);
        let (mut guesses, mut at) = (Vec::new(), from);
        while guesses.len() < GUESSED_MAX
            && let Some(step) = self.shelf.names.after(&named.name)
        {
            let begin = at + step.gap;
            if next == Some((begin, step.named)) {
                return (guesses, true);
            }
            at = begin + HEAD + u64::from(step.named.total);
            if at > until {
                break;
            }
            guesses.push((begin, step.named));
            named = step.named;
        }
        (guesses, at == until)
    }

    /// Whether strays are those of a chunk whose head should be there: enough bytes were heard of both,
    /// and they are the same.
    fn is_there(&self, begin: u64, named: Named) -> bool {
        let body = begin + HEAD;
        let strays = self.flow.strays.within(body..body + u64::from(named.total));
        let agree = strays.map(|(at, bytes)| self.shelf.agreeing(named, at - body, bytes));
        agree.sum::<Option<usize>>().is_some_and(|bytes| bytes >= AGREEING_MIN)
    }
}

/// At most so many of the first bytes.
fn first(bytes: &[u8], length_max: u64) -> &[u8] {
    bytes.get(..length_max.min(bytes.len() as u64) as usize).unwrap_or_default()
}

/// The head with which bytes begin.
pub fn decode(bytes: &[u8]) -> Option<ChunkHead> {
    ChunkHead::decode(bytes.first_chunk()?).ok()
}
