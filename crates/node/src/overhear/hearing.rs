//! Assigns a segment's bytes: to a chunk if a known head claims them, else to the strays, and from there to a chunk
//! once a head is found.
//!
//! A head is found by its marker, if the bytes after it are plausible. It may have been heard before its chunk's
//! bytes or after, in one segment or across several. A head that was not heard is guessed if the flow's frames
//! before and behind leave room for exactly those chunks that follow each other elsewhere, in a flow or a manifest.
//! A head that is heard at the same place replaces the guess.

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
/// The most bytes of one flow that wait for a head: half of a large object, until its manifest says where
/// they belong …
const STRAYS_MAX: usize = 512 << 10;
/// … and the fewest: a head, and a little.
const STRAYS_MIN: usize = 128;
/// The most blocks of bytes that wait in a flow.
const STRAY_RUNS_MAX: usize = 256;
/// The most chunks whose heads are guessed in one gap, from either side.
const GUESSED_MAX: usize = 16;
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
    /// How many bytes more all flows may take.
    pub room: usize,
    /// How to listen.
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
        if self.counters.heads > heads && self.flow.strays.bytes() > 0 {
            self.guess(FRAMES_MIN);
        }
    }

    /// Whether a frame was guessed where another's head is heard now.
    fn is_wrong(&self, i: usize, at: u64, bytes: &[u8]) -> bool {
        let Some(frame) = self.flow.frames.get(i).filter(|it| it.guessed) else { return false };
        heads(first(bytes, frame.end - at)).any(|(found, _)| at + found as u64 > frame.begin)
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
        // What is before it comes first: a head that claims this one may end there.
        if let Some((found, _)) = heads(bytes).find(|(found, _)| *found > 0) {
            length = found;
        }
        self.stray(at, first(bytes, length as u64));
        self.across(at, at);
        let end = at + length as u64;
        self.across(end, end - 1);
        let strays_max = if self.flow.is_foreign() { 0 } else { self.strays_max() };
        let excess = self.flow.strays.bytes().saturating_sub(strays_max);
        self.counters.unclaimed_bytes += self.flow.strays.drop_first(excess) as u64;
        length
    }

    /// How many bytes of this flow may wait for a head: half of what all flows may take yet, so that any
    /// number of flows that want more than their part come to have the same, and leave room for others.
    fn strays_max(&self) -> usize {
        (self.room / 2).clamp(STRAYS_MIN, STRAYS_MAX)
    }

    /// Looks for a head across the border between two segments, in the block of strays with a byte.
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
        let new = strays.insert(at, bytes, 0, usize::MAX);
        self.counters.duplicate_bytes += (bytes.len() - new) as u64;
    }

    /// A frame is known: what waited for it goes to its chunk. False if another frame is there.
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

    /// Guesses the names of strays whose heads were missed, behind the latest `latest` frames. Between two frames,
    /// these are chunks that lie between the same two elsewhere; before the first frame, chunks that precede it
    /// elsewhere. Everywhere, they are chunks at the place that one neighbour implies, if the bytes heard here and
    /// elsewhere agree.
    pub fn guess(&mut self, latest: usize) {
        if !self.options.goes_by_places() {
            return;
        }
        let mut i = self.flow.frames.len().saturating_sub(latest);
        while let Some(frame) = self.flow.frames.get(i) {
            let before = Border { at: frame.end, named: frame.named };
            let next = self.flow.frames.get(i + 1);
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

    /// Fills the gap between two frames with chunks that follow the first, or precede the second, elsewhere: with all
    /// of them if they fill it exactly, else with those whose bytes agree. Behind the last frame, it also uses chunks
    /// that a manifest lists, unless bytes contradict.
    fn fill(&mut self, before: Border, behind: Option<Border>) {
        let (there, is_filled) = self.walk(before, behind);
        if is_filled {
            return there.into_iter().for_each(|guess| _ = self.claim(guess.frame));
        }
        let (back, is_filled) = self.walk_back(before, behind);
        if is_filled {
            return back.into_iter().for_each(|guess| _ = self.claim(guess.frame));
        }
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

    /// Chunks that follow one elsewhere, and whether they are all that is between it and the next frame.
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

    /// Chunks that precede one elsewhere, the nearest first, and whether they fill all that is between it
    /// and the frame before.
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

    /// The chunk that precedes one elsewhere, if it does not begin before `from`, and where it begins.
    fn back(&self, to: Border, from: u64) -> Option<(Frame, Border)> {
        let step = self.shelf.names.before(&to.named.name)?;
        let begin = to.at.checked_sub(step.gap + HEAD + u64::from(step.named.total))?;
        let frame = Frame::guess(begin, step.named);
        (begin >= from).then_some((frame, Border { at: begin, named: step.named }))
    }

    /// Whether any bytes wait that a guessed frame would claim.
    fn has_strays(&self, guess: &Frame) -> bool {
        self.flow.strays.within(guess.begin..guess.end).next().is_some()
    }

    /// How many strays are the same that were heard of a guessed frame's chunk elsewhere; `None` if any
    /// are not.
    fn agreeing(&self, guess: &Frame) -> Option<usize> {
        let strays = self.flow.strays.within(guess.body..guess.end);
        strays.map(|(at, bytes)| self.shelf.agreeing(guess.named, at - guess.body, bytes)).sum()
    }
}

/// Where a gap between frames ends, and the chunk there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Border {
    at: u64,
    named: Named,
}

/// A frame that may be there.
#[derive(Debug)]
struct Guess {
    frame: Frame,
    /// A manifest lists all chunks from the one before the frame before the gap to this one.
    listed: bool,
}

/// At most the first `length_max` bytes.
fn first(bytes: &[u8], length_max: u64) -> &[u8] {
    bytes.get(..length_max.min(bytes.len() as u64) as usize).unwrap_or_default()
}

/// Heads among these bytes, and where they begin.
fn heads(bytes: &[u8]) -> impl Iterator<Item = (usize, ChunkHead)> {
    let found = memmem::find_iter(bytes, MARKER);
    found.filter_map(|found| Some((found, bytes.get(found..).and_then(decode)?)))
}

/// The head with which bytes begin.
pub fn decode(bytes: &[u8]) -> Option<ChunkHead> {
    ChunkHead::decode(bytes.first_chunk()?).ok()
}
