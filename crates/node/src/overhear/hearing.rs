//! Assigns a segment's bytes: to a chunk if a known head claims them, else to the strays, and from there to a chunk
//! once a head is found.
//!
//! A head is found by its marker, if the fields behind it are valid. It may be heard before its chunk's bytes or after
//! them, in one segment or across two. A head that was missed is inferred (a *guess*) from the order in which another
//! flow or a manifest has the chunks: if those chunks fill the gap between two frames exactly, or if their bytes agree
//! with the strays. A head that is heard at the same position replaces the guess.

use super::Options;
use super::assemble::Speaker;
use super::counters::Counters;
use super::flows::{FRAMES_MIN, Flow, Frame, HEAD, Place};
use super::names::Named;
use super::runs::Run;
use super::shelf::{self, Shelf};
use super::table::Id;
use memchr::memmem;
use wire::Instant;
use wire::peer::ChunkHead;

const MARKER: &[u8] = b"HSCH";
/// The most strays of one flow, in bytes: half of a large object, until its manifest tells to which chunks they
/// belong …
const STRAYS_MAX: usize = 512 << 10;
/// … and the number that is always allowed: a head and a few bytes more.
const STRAYS_MIN: usize = 128;
/// The most blocks of strays in a flow.
const STRAY_RUNS_MAX: usize = 256;
/// The most chunks that are inferred in one gap from either side.
const GUESSED_MAX: usize = 16;
/// The order of two chunks is noted only if no more bytes than this are between them.
const GAP_MAX: u64 = 128 << 10;
/// If this many strays equal the bytes of a guessed chunk, it is not by chance.
const AGREEING_MIN: usize = 16;

/// A flow, and the state of the engine that its bytes change.
pub struct Hearing<'a> {
    /// The time.
    pub now: Instant,
    /// The flow's entry in the table.
    pub id: Id,
    /// The flow.
    pub flow: &'a mut Flow,
    /// The chunks that are being assembled.
    pub shelf: &'a mut Shelf,
    /// The engine's counters.
    pub counters: &'a mut Counters,
    /// The free memory for flows, in bytes.
    pub room: usize,
    /// The engine's options.
    pub options: Options,
}

impl Hearing<'_> {
    /// Handles a segment's bytes.
    pub fn segment(&mut self, mut at: u64, mut bytes: &[u8]) {
        let heads = self.counters.heads;
        while !bytes.is_empty() {
            let used = match self.flow.place(at) {
                Place::Frame(i) if self.is_wrong(i, at, bytes) => {
                    self.flow.frames.remove(i);
                    0
                }
                Place::Frame(i) => self.framed(i, at, bytes),
                Place::Unknown(until) => self.unknown(at, first(bytes, until - at)),
            };
            at += used as u64;
            bytes = bytes.get(used..).unwrap_or_default();
        }
        // A new head bounds a gap. Only the latest frames are tried, to bound the work for one segment.
        if self.counters.heads > heads && self.flow.strays.bytes() > 0 {
            self.guess(FRAMES_MIN);
        }
    }

    /// Whether a guess is disproved: another head is heard inside the guessed frame.
    fn is_wrong(&self, i: usize, at: u64, bytes: &[u8]) -> bool {
        let Some(frame) = self.flow.frames.get(i).filter(|it| it.guessed) else { return false };
        heads(first(bytes, frame.end - at)).any(|(found, _)| at + found as u64 > frame.begin)
    }

    /// Handles bytes that begin within a frame; returns how many were handled.
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
        // The frame may carry only a part of its chunk: positions in the flow become offsets in the chunk.
        let shift = u64::from(frame.offset);
        let place = shelf::Place {
            named: frame.named,
            at: at - frame.body + shift,
            end: frame.end - frame.body + shift,
        };
        // A flow that has sent false bytes may not add to what others sent.
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

    /// Handles bytes at the position of a frame's head; returns how many were handled. If the frame was guessed, the
    /// head that is heard confirms it or replaces it.
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

    /// Handles bytes that lie in no known frame; returns how many were handled.
    fn unknown(&mut self, at: u64, bytes: &[u8]) -> usize {
        // The usual case: the next head follows right behind a frame.
        if let Some(head) = decode(bytes)
            && self.claim(Frame::new(at, &head))
        {
            self.counters.head_bytes += HEAD;
            return ChunkHead::LENGTH;
        }
        let mut length = bytes.len();
        // Bytes before the next head are handled first: they may complete an earlier head, and what looks like a head
        // here may then lie inside its chunk.
        if let Some((found, _)) = heads(bytes).find(|(found, _)| *found > 0) {
            length = found;
        }
        self.stray(at, first(bytes, length as u64));
        // A head may lie across the border to the segment before or behind, which may have been heard earlier.
        self.across(at, at);
        let end = at + length as u64;
        self.across(end, end - 1);
        let strays_max = if self.flow.is_foreign() { 0 } else { self.strays_max() };
        let excess = self.flow.strays.bytes().saturating_sub(strays_max);
        self.counters.unclaimed_bytes += self.flow.strays.drop_first(excess) as u64;
        length
    }

    /// The most strays that this flow may hold, in bytes: half of the memory that is free for all flows. These are the
    /// dynamic thresholds of shared buffers (Choudhury and Hahne, 1998): flows that would need more all get equal
    /// shares, and some memory stays free for other flows.
    fn strays_max(&self) -> usize {
        (self.room / 2).clamp(STRAYS_MIN, STRAYS_MAX)
    }

    /// Looks for heads that lie across a border between two segments, in the block of strays that contains the position
    /// `byte`.
    fn across(&mut self, border: u64, byte: u64) {
        let around = border - HEAD..border + HEAD;
        let Some((start, window)) = self.flow.strays.at(byte).map(|run| run.part(&around)) else {
            return;
        };
        for (found, head) in heads(window).collect::<Vec<_>>() {
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
        // Nothing is reserved for strays: it is not known how many follow.
        let new = strays.insert(at, bytes, 0, usize::MAX);
        self.counters.duplicate_bytes += (bytes.len() - new) as u64;
    }

    /// Adds a frame, and moves the strays in it to its chunk. False if the flow does not take the frame: it overlaps
    /// another one, for instance.
    fn claim(&mut self, frame: Frame) -> bool {
        let (begin, body, end, named) = (frame.begin, frame.body, frame.end, frame.named);
        let guessed = frame.guessed;
        let Some(i) = self.flow.claim(frame, self.room) else { return false };
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

    /// Handles former strays that lie in known frames now.
    fn claimed(&mut self, mut at: u64, mut bytes: &[u8]) {
        while let Place::Frame(i) = self.flow.place(at)
            && !bytes.is_empty()
        {
            let used = self.framed(i, at, bytes);
            at += used as u64;
            bytes = bytes.get(used..).unwrap_or_default();
        }
    }

    /// Notes which chunks are before and behind a heard frame, and how many bytes are between.
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

    /// Infers the chunks of strays, because their heads were missed. It tries the gaps behind each of the `latest` last
    /// frames: see `fill`. Before the first frame, strays belong to the chunks that precede its chunk elsewhere, in
    /// another flow or in a manifest.
    pub fn guess(&mut self, latest: usize) {
        if !self.options.goes_by_places() {
            return;
        }
        let mut i = self.flow.frames.len().saturating_sub(latest);
        while let Some(frame) = self.flow.frames.get(i) {
            let before = Border { at: frame.end, named: frame.named };
            let next = self.flow.frames.get(i + 1);
            // A frame that stands for several is named after its last chunk, so what precedes its first is not known.
            let is_named = next.is_none_or(|next| !next.several);
            let behind = next.map(|next| Border { at: next.begin, named: next.named });
            let gap = before.at..behind.map_or(u64::MAX, |it| it.at);
            if is_named && !gap.is_empty() && self.flow.strays.within(gap).next().is_some() {
                self.fill(before, behind);
            }
            i += 1;
        }
        for _ in 0..GUESSED_MAX {
            let Some(first) = self.flow.frames.front().filter(|it| it.is_whole()) else { break };
            let first = Border { at: first.begin, named: first.named };
            let Some((guess, _)) = self.back(first, 0) else { break };
            if !self.has_strays(&guess) || !self.claim(guess) {
                break;
            }
        }
    }

    /// Fills the gap between two frames with the chunks that follow the first, or precede the second, elsewhere: with
    /// all of them if they fill it exactly, else only with those that agree with enough strays. Behind the last frame,
    /// it also uses chunks that a manifest lists, unless their bytes contradict the strays.
    fn fill(&mut self, before: Border, behind: Option<Border>) {
        let (there, is_filled) = self.walk(before, behind);
        if is_filled {
            return there.into_iter().for_each(|guess| _ = self.claim(guess.frame));
        }
        let (back, is_filled) = self.walk_back(before, behind);
        if is_filled {
            return back.into_iter().for_each(|guess| _ = self.claim(guess.frame));
        }
        // Neither side alone fills the gap, but both together may meet inside it.
        let met = there.last().zip(back.last());
        let is_met = met.is_some_and(|(there, back)| there.frame.end == back.frame.begin);
        for guess in there.into_iter().chain(back) {
            let agreeing = self.agreeing(&guess.frame);
            let is_there = agreeing.is_some_and(|bytes| bytes >= AGREEING_MIN);
            let is_listed = guess.listed && behind.is_none() && self.has_strays(&guess.frame);
            if is_met || is_there || (is_listed && agreeing.is_some()) {
                self.claim(guess.frame);
            }
        }
    }

    /// The chunks that follow `before` elsewhere, as far as they fit in the gap, and whether they fill it exactly.
    fn walk(&self, before: Border, behind: Option<Border>) -> (Vec<Guess>, bool) {
        let until = behind.map_or(u64::MAX, |it| it.at);
        let (mut guesses, mut from) = (Vec::new(), before);
        let mut listed = self.shelf.names.before(&before.named.name).is_none_or(|it| it.listed);
        while guesses.len() < GUESSED_MAX
            && let Some(step) = self.shelf.names.after(&from.named.name)
        {
            let begin = Border { at: from.at + step.gap, named: step.named };
            if behind == Some(begin) {
                return (guesses, true);
            }
            let frame = Frame::guess(begin.at, step.named);
            if frame.end > until {
                return (guesses, false);
            }
            from = Border { at: frame.end, named: step.named };
            listed &= step.listed;
            guesses.push(Guess { frame, listed });
        }
        (guesses, from.at == until)
    }

    /// The chunks that precede `behind` elsewhere, the nearest first, as far as they fit in the gap, and whether they
    /// fill it exactly.
    fn walk_back(&self, before: Border, behind: Option<Border>) -> (Vec<Guess>, bool) {
        let mut guesses = Vec::new();
        let Some(mut to) = behind else { return (guesses, false) };
        while guesses.len() < GUESSED_MAX
            && let Some((frame, begin)) = self.back(to, before.at)
        {
            guesses.push(Guess { frame, listed: false });
            to = begin;
        }
        (guesses, to.at == before.at)
    }

    /// The chunk that precedes `to` elsewhere, and the border before it; `None` if it would begin before `from`.
    fn back(&self, to: Border, from: u64) -> Option<(Frame, Border)> {
        let step = self.shelf.names.before(&to.named.name)?;
        let begin = to.at.checked_sub(step.gap + HEAD + u64::from(step.named.total))?;
        let frame = Frame::guess(begin, step.named);
        (begin >= from).then_some((frame, Border { at: begin, named: step.named }))
    }

    /// Whether a guessed frame would claim any strays.
    fn has_strays(&self, guess: &Frame) -> bool {
        self.flow.strays.within(guess.begin..guess.end).next().is_some()
    }

    /// How many of the strays in a guessed frame equal bytes of its chunk that were heard elsewhere; `None` if any
    /// stray contradicts them.
    fn agreeing(&self, guess: &Frame) -> Option<usize> {
        let strays = self.flow.strays.within(guess.body..guess.end);
        strays.map(|(at, bytes)| self.shelf.agreeing(guess.named, at - guess.body, bytes)).sum()
    }
}

/// One end of a gap between frames: its position, and the chunk of the frame there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Border {
    at: u64,
    named: Named,
}

/// A frame that is inferred, but not claimed yet.
#[derive(Debug)]
struct Guess {
    frame: Frame,
    /// Whether a manifest lists every step of the order from the frame before the gap to this one, and the step to that
    /// frame.
    listed: bool,
}

/// At most the first `length_max` bytes.
fn first(bytes: &[u8], length_max: u64) -> &[u8] {
    bytes.get(..length_max.min(bytes.len() as u64) as usize).unwrap_or_default()
}

/// The heads in these bytes, and the offsets at which they begin.
fn heads(bytes: &[u8]) -> impl Iterator<Item = (usize, ChunkHead)> {
    let found = memmem::find_iter(bytes, MARKER);
    found.filter_map(|found| Some((found, bytes.get(found..).and_then(decode)?)))
}

/// The head at the beginning of these bytes, if there is one.
pub fn decode(bytes: &[u8]) -> Option<ChunkHead> {
    ChunkHead::decode(bytes.first_chunk()?).ok()
}
