//! What takes processor time or the disk: packing literals, unpacking them, and reading old units.
//!
//! *What it is:* [`Worker`], which does one [`Job`] after the other. It owns the two histories of a pair,
//! behind [`Units`]. *Who calls it:* a thread of the daemon's, so that neither compression nor a slow disk
//! holds up clients; the simulator, at once. *What it never does:* decide; jobs are done in the order in
//! which the engine gave them, and a job may count on the earlier ones.

use super::messages::Coding;
use super::{BATCH_MAX, DICTIONARY_MAX, Digest, Span, UNIT_MAX, digest_of, name_of, wanax};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use store::{HistoryState, Mark};

/// One direction of a pair, as one end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What this end sends.
    Out,
    /// What this end receives.
    In,
}

/// Where the units of one direction are kept. Failures of the disk are the implementation's to report: what
/// cannot be read is not held.
pub trait Units {
    /// What is held.
    fn held(&self) -> HistoryState;

    /// The oldest position that is held and lasts for a while: until some MiB more, or a quarter of all, are appended.
    /// What is below must not be named any more, since it may be gone before what names it arrives.
    fn lasting(&self) -> u64;

    /// The units of a span, appended to `out`; false, with `out` as it was, if one of them is not held.
    fn read(&mut self, span: Span, out: &mut Vec<(Mark, Bytes)>) -> bool;

    /// Keeps units at the end.
    fn append(&mut self, units: &[(Mark, Bytes)]);

    /// Forgets the units from this position on.
    fn truncate(&mut self, end: u64);

    /// Forgets everything: a new epoch begins at position 0.
    fn reset(&mut self, epoch: [u8; 16]);
}

/// One thing to do. Its result has the same number.
#[derive(Clone, Debug)]
pub enum Job {
    /// Keep new units of what is sent, and compress them → [`Done::Packed`].
    Pack {
        /// The first one's position.
        first: u64,
        /// What crosses.
        units: Vec<(Mark, Bytes)>,
        /// Old units that may be referred to.
        dictionary: Vec<Span>,
        /// The level of zstd.
        level: i32,
    },
    /// Decompress new units of what is received, and keep them → [`Done::Unpacked`].
    Unpack {
        /// The first one's position.
        first: u64,
        /// The length of each.
        lengths: Vec<u32>,
        /// Old units that the payload refers to.
        dictionary: Vec<Span>,
        /// How the payload is encoded.
        coding: Coding,
        /// The payload.
        payload: Bytes,
    },
    /// Read units of what was received, and check them against this → [`Done::Read`].
    Read(Vec<Span>, Digest),
    /// Read a unit of what was sent → [`Done::Supplied`].
    Supply(u64),
    /// Hold a unit of what was received, which was lost → [`Done::Nothing`].
    Refill(u64, Bytes),
    /// Say what the histories hold, once all earlier jobs are done → [`Done::Looked`].
    Look,
    /// A connection begins: forget what the other side lacks, all in an epoch of its own if it says so →
    /// [`Done::Agreed`].
    Agree {
        /// Which history.
        direction: Direction,
        /// Forget from here on …
        end: u64,
        /// … or everything.
        fresh: Option<[u8; 16]>,
    },
    /// Something for the tables of a published scheme → [`Done::Published`].
    Published(wanax::Job),
}

/// What a job led to.
#[derive(Clone, Debug)]
pub enum Done {
    /// The payload, how it is encoded, and the oldest position of what is sent that lasts.
    Packed(Bytes, Coding, u64),
    /// The new units are held; the oldest position of what is received that lasts.
    Unpacked(u64),
    /// The content of a batch, checked, unit by unit.
    Read(Vec<Bytes>),
    /// These units are not held; nothing was done.
    Lacks(Vec<u64>),
    /// What the other end said is not true.
    False,
    /// A unit of what was sent, if it is held.
    Supplied(u64, Option<Bytes>),
    /// What the histories of what is sent and of what is received hold, from the oldest positions on that last.
    Looked(HistoryState, HistoryState),
    /// The histories agree now.
    Agreed(Direction, HistoryState),
    /// There is nothing to tell.
    Nothing,
    /// What the tables of a published scheme say.
    Published(wanax::Done),
}

/// Refilled units that are kept at most.
const REFILLED_MAX: usize = 256;
/// Bytes of new units that are kept in memory at most, since they are read at once …
const RECENT_MAX: usize = 512 * 1024;
/// … and how many of them: they are searched one by one.
const RECENT_UNITS_MAX: usize = 256;
/// Units that are read before their bytes are counted.
const STEP: u32 = 64;
/// A raw dictionary must not begin like one of zstd's own format (RFC 8878 §5).
const DICTIONARY_MAGIC: [u8; 4] = 0xec30_a437u32.to_le_bytes();
/// What every zstd frame begins with (RFC 8878 §3.1.1), and ours leave out.
const FRAME_MAGIC: [u8; 4] = 0xfd2f_b528u32.to_le_bytes();

/// Does jobs with the two histories of a pair.
pub struct Worker<U> {
    out: U,
    within: U,
    /// Units that arrived before others with lower positions.
    early: BTreeMap<u64, (Mark, Bytes)>,
    refilled: BTreeMap<u64, (Mark, Bytes)>,
    /// Their positions, in the order in which they came.
    refills: VecDeque<u64>,
    /// The newest units of what was received, whose bytes are checked already.
    recent: VecDeque<(u64, Mark, Bytes)>,
    recent_bytes: usize,
    packer: zstd_safe::CCtx<'static>,
    unpacker: zstd_safe::DCtx<'static>,
    /// For published schemes.
    cache: Option<wanax::Cache>,
}

impl<U: Units> Worker<U> {
    /// A worker with the histories of what is sent and of what is received.
    pub fn new(out: U, within: U) -> Self {
        Self {
            out,
            within,
            early: BTreeMap::new(),
            refilled: BTreeMap::new(),
            refills: VecDeque::new(),
            recent: VecDeque::new(),
            recent_bytes: 0,
            packer: zstd_safe::CCtx::create(),
            unpacker: zstd_safe::DCtx::create(),
            cache: None,
        }
    }

    /// With a cache for published schemes, in which chunks rest in this log; its tables have at most this many entries
    /// each, of some 130 bytes together. Without one, connections that use such a scheme end at once.
    pub fn with_cache(mut self, ring: store::Ring, entries_max: usize) -> Self {
        self.cache = Some(wanax::Cache::new(ring, entries_max));
        self
    }

    /// What the histories hold: of what is sent, and of what is received.
    pub fn held(&self) -> (HistoryState, HistoryState) {
        (self.out.held(), self.within.held())
    }

    /// The histories of what is sent and of what is received.
    pub fn units(&mut self) -> (&mut U, &mut U) {
        (&mut self.out, &mut self.within)
    }

    /// Does a job.
    pub fn work(&mut self, job: Job) -> Done {
        match job {
            Job::Pack { first, units, dictionary, level } => {
                self.pack(first, &units, &dictionary, level)
            }
            Job::Unpack { first, lengths, dictionary, coding, payload } => {
                self.unpack(first, &lengths, &dictionary, coding, &payload)
            }
            Job::Read(spans, digest) => self.read(&spans, digest),
            Job::Supply(position) => {
                let mut found = Vec::new();
                self.out.read(Span { first: position, count: 1 }, &mut found);
                Done::Supplied(position, found.pop().map(|(_, bytes)| bytes))
            }
            Job::Refill(position, bytes) => {
                self.refill(position, bytes);
                Done::Nothing
            }
            Job::Look => Done::Looked(lasting(&self.out), lasting(&self.within)),
            Job::Agree { direction, end, fresh } => self.agree(direction, end, fresh),
            Job::Published(job) => Done::Published(match &mut self.cache {
                Some(cache) => cache.work(job),
                None => wanax::Done::False,
            }),
        }
    }

    fn refill(&mut self, position: u64, bytes: Bytes) {
        if self.refilled.insert(position, (mark_of(&bytes), bytes)).is_none() {
            self.refills.push_back(position);
        }
        while self.refills.len() > REFILLED_MAX
            && let Some(oldest) = self.refills.pop_front()
        {
            self.refilled.remove(&oldest);
        }
    }

    fn pack(&mut self, first: u64, units: &[(Mark, Bytes)], old: &[Span], level: i32) -> Done {
        let mut dictionary = Vec::new();
        for span in old {
            // The engine has not heard yet that this is gone: its receiver must not use it either.
            if !self.out.read(*span, &mut dictionary) {
                dictionary.clear();
                break;
            }
        }
        let is_whole = old.is_empty() || !dictionary.is_empty();
        let plain = joined(units.iter().map(|(_, bytes)| bytes));
        if first == self.out.held().end {
            self.out.append(units);
        }
        let lasts_from = self.out.lasting();
        if !is_whole {
            return Done::Packed(plain.into(), Coding::Plain, lasts_from);
        }
        let dictionary = prefix(&dictionary);
        let mut packed = Vec::with_capacity(zstd_safe::compress_bound(plain.len()));
        let result = self.packer.compress_using_dict(&mut packed, &plain, &dictionary, level);
        match result {
            Ok(_) if packed.len() < plain.len() && packed.starts_with(&FRAME_MAGIC) => {
                let payload = Bytes::from(packed).slice(FRAME_MAGIC.len()..);
                Done::Packed(payload, Coding::Zstd, lasts_from)
            }
            _ => Done::Packed(plain.into(), Coding::Plain, lasts_from),
        }
    }

    fn unpack(
        &mut self,
        first: u64,
        lengths: &[u32],
        old: &[Span],
        coding: Coding,
        payload: &Bytes,
    ) -> Done {
        let length: usize = lengths.iter().map(|length| *length as usize).sum();
        let content = match coding {
            Coding::Plain => payload.clone(),
            Coding::Zstd => {
                let mut dictionary = Vec::new();
                if let Err(done) = self.collect(old, DICTIONARY_MAX, &mut dictionary) {
                    return done;
                }
                let dictionary = prefix(&dictionary);
                let frame = [&FRAME_MAGIC[..], payload].concat();
                let mut content = Vec::with_capacity(length);
                let unpacker = &mut self.unpacker;
                match unpacker.decompress_using_dict(&mut content, &frame, &dictionary) {
                    Ok(_) => content.into(),
                    Err(_) => return Done::False,
                }
            }
        };
        if content.len() != length {
            return Done::False;
        }
        let mut at = 0;
        for (position, length) in (first..).zip(lengths) {
            // A copy of its own: a slice would keep the whole batch in memory.
            let unit = Bytes::copy_from_slice(&content[at..at + *length as usize]);
            at += *length as usize;
            self.arrive(position, mark_of(&unit), unit);
        }
        Done::Unpacked(self.within.lasting())
    }

    /// Keeps a unit that has arrived, and those that have waited for it.
    fn arrive(&mut self, position: u64, mark: Mark, unit: Bytes) {
        self.recent_bytes += unit.len();
        self.recent.push_back((position, mark, unit.clone()));
        while (self.recent_bytes > RECENT_MAX || self.recent.len() > RECENT_UNITS_MAX)
            && let Some((_, _, oldest)) = self.recent.pop_front()
        {
            self.recent_bytes -= oldest.len();
        }
        self.early.insert(position, (mark, unit));
        let mut end = self.within.held().end;
        let mut next = Vec::new();
        while let Some(unit) = self.early.remove(&end) {
            next.push(unit);
            end += 1;
        }
        if !next.is_empty() {
            self.within.append(&next);
        }
    }

    fn read(&mut self, spans: &[Span], digest: Digest) -> Done {
        let mut units = Vec::new();
        if let Err(done) = self.collect(spans, BATCH_MAX + UNIT_MAX, &mut units) {
            return done;
        }
        match digest_of(units.iter().map(|(mark, _)| mark.name)) == digest {
            true => Done::Read(units.into_iter().map(|(_, bytes)| bytes).collect()),
            false => Done::False,
        }
    }

    /// Appends the units of spans, each with the name that its bytes really have.
    ///
    /// # Errors
    /// The result of the job, if some are not held, or they have more than `bytes_max` bytes.
    fn collect(
        &mut self,
        spans: &[Span],
        bytes_max: usize,
        units: &mut Vec<(Mark, Bytes)>,
    ) -> Result<(), Done> {
        let (mut lacks, mut room) = (Vec::new(), bytes_max);
        for span in spans.iter().flat_map(|span| steps(*span)) {
            let before = units.len();
            self.append(span, units, &mut lacks);
            let bytes: usize = units[before..].iter().map(|(_, bytes)| bytes.len()).sum();
            room = room.checked_sub(bytes).ok_or(Done::False)?;
        }
        if lacks.is_empty() { Ok(()) } else { Err(Done::Lacks(lacks)) }
    }

    fn append(&mut self, span: Span, units: &mut Vec<(Mark, Bytes)>, lacks: &mut Vec<u64>) {
        let before = units.len();
        let in_memory = span.positions().any(|position| {
            self.early.contains_key(&position) || self.refilled.contains_key(&position)
        });
        let is_recent = self.recent.front().is_some_and(|(oldest, ..)| *oldest <= span.first);
        if !in_memory && !is_recent && self.within.read(span, units) {
            return self.check(span, units, before, lacks);
        }
        for position in span.positions() {
            match self.one(position) {
                Some(unit) => units.push(unit),
                None => lacks.push(position),
            }
        }
    }

    /// Holds what was read from the disk against its names.
    fn check(&self, span: Span, units: &[(Mark, Bytes)], from: usize, lacks: &mut Vec<u64>) {
        let read = &units[from..];
        let pieces: Vec<_> = read.iter().map(|(_, bytes)| &bytes[..]).collect();
        let mut names = Vec::with_capacity(pieces.len());
        content::names(&pieces, &mut names);
        for ((position, (mark, _)), name) in span.positions().zip(read).zip(names) {
            if super::short(name.as_bytes()) != mark.name {
                lacks.push(position);
            }
        }
    }

    fn one(&mut self, position: u64) -> Option<(Mark, Bytes)> {
        let kept = self.early.get(&position).or_else(|| self.refilled.get(&position));
        if let Some(unit) = kept {
            return Some(unit.clone());
        }
        let recent = self.recent.iter().rev().find(|(at, ..)| *at == position);
        if let Some((_, mark, bytes)) = recent {
            return Some((*mark, bytes.clone()));
        }
        let mut units = Vec::new();
        let is_read = self.within.read(Span { first: position, count: 1 }, &mut units);
        units.pop().filter(|(mark, bytes)| is_read && name_of(bytes) == mark.name)
    }

    fn agree(&mut self, direction: Direction, end: u64, fresh: Option<[u8; 16]>) -> Done {
        let units = match direction {
            Direction::Out => &mut self.out,
            Direction::In => {
                self.early.clear();
                self.refilled.clear();
                self.refills.clear();
                self.recent.clear();
                self.recent_bytes = 0;
                &mut self.within
            }
        };
        match fresh {
            Some(epoch) => units.reset(epoch),
            None if units.held().end > end => units.truncate(end),
            None => {}
        }
        Done::Agreed(direction, units.held())
    }
}

/// What is held and lasts.
fn lasting(units: &impl Units) -> HistoryState {
    let held = units.held();
    HistoryState { first: units.lasting().clamp(held.first, held.end), ..held }
}

/// A span in parts of at most [`STEP`] units.
fn steps(span: Span) -> impl Iterator<Item = Span> {
    span.positions().step_by(STEP as usize).map(move |first| {
        let count = (span.end() - first).min(STEP.into()) as u32;
        Span { first, count }
    })
}

fn mark_of(bytes: &[u8]) -> Mark {
    Mark { name: name_of(bytes), length: bytes.len() as u32, ..Mark::default() }
}

fn joined<'a>(pieces: impl Iterator<Item = &'a Bytes>) -> Vec<u8> {
    let mut joined = Vec::new();
    pieces.for_each(|piece| joined.extend_from_slice(piece));
    joined
}

/// The bytes of a dictionary, the same at both ends.
fn prefix(units: &[(Mark, Bytes)]) -> Vec<u8> {
    let joined = joined(units.iter().map(|(_, bytes)| bytes));
    match joined.strip_prefix(&DICTIONARY_MAGIC) {
        Some(rest) => rest.to_vec(),
        None => joined,
    }
}

/// A history in memory: in the place of a disk that fails, for tests, and for the simulator. It is bounded by its
/// number of units.
#[derive(Debug, Default)]
pub struct MemoryUnits {
    held: HistoryState,
    units: VecDeque<(Mark, Bytes)>,
    units_max: usize,
}

impl MemoryUnits {
    /// An empty history of at most this many units.
    pub fn new(epoch: [u8; 16], units_max: usize) -> Self {
        Self { held: HistoryState { epoch, first: 0, end: 0 }, units: VecDeque::new(), units_max }
    }

    /// A history of at most this many units that goes on at a position, without what was before.
    pub fn from(position: u64, units_max: usize) -> Self {
        let held = HistoryState { epoch: [0; 16], first: position, end: position };
        Self { held, units: VecDeque::new(), units_max }
    }
}

impl Worker<MemoryUnits> {
    /// The marks of what was sent, from the oldest on.
    pub fn marks(&self) -> Vec<Mark> {
        self.out.units.iter().map(|(mark, _)| *mark).collect()
    }
}

impl Units for MemoryUnits {
    fn held(&self) -> HistoryState {
        self.held
    }

    fn lasting(&self) -> u64 {
        let kept = (self.units_max - self.units_max / 4) as u64;
        self.held.end.saturating_sub(kept).max(self.held.first)
    }

    fn read(&mut self, span: Span, out: &mut Vec<(Mark, Bytes)>) -> bool {
        let is_held = span.first >= self.held.first && span.end() <= self.held.end;
        if is_held {
            let from = (span.first - self.held.first) as usize;
            out.extend(self.units.range(from..from + span.count as usize).cloned());
        }
        is_held
    }

    fn append(&mut self, units: &[(Mark, Bytes)]) {
        self.units.extend(units.iter().cloned());
        self.held.end += units.len() as u64;
        while self.units.len() > self.units_max {
            self.units.pop_front();
            self.held.first += 1;
        }
    }

    fn truncate(&mut self, end: u64) {
        while self.held.end > end.max(self.held.first) {
            self.units.pop_back();
            self.held.end -= 1;
        }
    }

    fn reset(&mut self, epoch: [u8; 16]) {
        self.units.clear();
        self.held = HistoryState { epoch, first: 0, end: 0 };
    }
}
