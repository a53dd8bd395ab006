//! Assembles one chunk from the bytes of many flows.
//!
//! A sender may send false bytes, or bytes may be assigned to the wrong chunk, and only the whole chunk can be
//! verified. So bytes that contradict each other are kept in different *versions*. Without a contradiction there is
//! one version. If a flow contradicts a version, another version is opened: there the flow's own bytes win, and the
//! other flows' bytes fill its gaps. A version that proves false is split into one version for each flow, and the
//! flows that were joined in it are not joined again. If one flow has sent all of a false version, only the last piece
//! is dropped, since an attacker may have inserted it into the flow. The numbers of versions and flows are bounded: an
//! attacker with enough flows can keep a chunk from being assembled, but an attacker that merely comes first cannot.
//!
//! *Who calls it:* `shelf.rs`. *What it never does:* give out a byte that was not verified, except in
//! [`Chunk::into_fullest`].

use super::runs::{Runs, spilled};
use super::table::Id;
use smallvec::SmallVec;
use std::ops::Range;
use wire::ChunkId;
use wire::peer::Want;

/// The most blocks of a version: the gaps between them, and at both ends, fit into one [`Want`].
const RUNS_MAX: usize = Want::RANGES_MAX - 1;
/// The most versions of a chunk.
pub const VERSIONS_MAX: usize = 4;
/// The most ranges for which a version records which flow sent them.
const SAID_MAX: usize = 64;
/// The most flows that a version records as excluded.
const APART_MAX: usize = 8;
/// After this many false versions of a chunk, the bytes of different flows are no longer joined.
const FALSE_MAX: u8 = 16;

/// The flow that sends some bytes.
#[derive(Clone, Copy, Debug)]
pub struct Speaker {
    /// The flow's entry in the table.
    pub flow: Id,
    /// Whether its bytes may be joined to those of other flows.
    pub trusted: bool,
}

/// A chunk that is being assembled.
#[derive(Debug, Default)]
pub struct Chunk {
    versions: SmallVec<[Version; 1]>,
    /// How many bytes were kept so far, in all versions together.
    pub kept: u64,
    /// The node waits for it.
    pub wanted: bool,
    falsehoods: u8,
    /// How often bytes of it were heard: a clock for `Version::grown`.
    count: u64,
}

/// Bytes that may belong together.
#[derive(Clone, Debug, Default)]
struct Version {
    runs: Runs,
    said: SmallVec<[Said; 1]>,
    /// Flows that may not add bytes.
    apart: Vec<Id>,
    /// The flow that opened this version by contradicting another one: its bytes replace those of other flows.
    right: Option<Id>,
    /// Whether only the flow that opened it may add bytes, because that flow is not trusted.
    alone: bool,
    /// The chunk's `count` when the version last grew.
    grown: u64,
}

/// A range that a flow has sent; other flows may have sent the same bytes.
#[derive(Clone, Debug)]
struct Said {
    range: Range<u64>,
    by: Id,
}

impl Said {
    fn overlaps(&self, range: &Range<u64>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }
}

/// Other bytes are present in the range.
struct Contradiction;

/// The result of verifying a chunk.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No version is complete, or all complete ones were false and others remain.
    Open,
    /// The bytes of the version that matches the name.
    True(Vec<u8>),
    /// All versions were false, and no bytes remain.
    GivenUp,
}

/// What the verification of a version shows about a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The flow sent bytes of the version that matches the name.
    Helped,
    /// The flow and others sent a false version, or the flow sent bytes only of versions other than the true one.
    Suspect,
    /// The flow alone sent a false version.
    False,
}

impl Chunk {
    /// A chunk without any bytes yet.
    pub fn new(wanted: bool) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// How many bytes the fullest version has.
    pub fn heard(&self) -> usize {
        self.versions.iter().map(|version| version.runs.bytes()).max().unwrap_or(0)
    }

    /// The last byte of its newest version. Only for loading it into a cache.
    pub fn tail(&self) -> Option<u8> {
        self.versions.last()?.runs.tail()
    }

    /// Its memory, in bytes.
    pub fn cost(&self) -> usize {
        let versions: usize = self.versions.iter().map(Version::cost).sum();
        versions + spilled(&self.versions)
    }

    /// How many of these bytes the fullest version has; `None` if it has other bytes in that range.
    pub fn agreeing(&self, at: u64, bytes: &[u8]) -> Option<usize> {
        let Some(runs) = self.fullest().map(|version| &version.runs) else { return Some(0) };
        let there = runs.within(at..at + bytes.len() as u64).map(|(_, bytes)| bytes.len()).sum();
        runs.agrees(at, bytes).then_some(there)
    }

    fn fullest(&self) -> Option<&Version> {
        self.versions.iter().max_by_key(|version| version.runs.bytes())
    }

    /// Adds bytes; returns how many of them are new. The speaker's frame extends to `end`.
    pub fn hear(&mut self, by: Speaker, at: u64, bytes: &[u8], end: u64) -> usize {
        let (mut kept, mut heard) = (0, false);
        let mut contradicted = None;
        self.count += 1;
        // After too many false versions, no flow is trusted for this chunk.
        let trusted = by.trusted && self.falsehoods < FALSE_MAX;
        let by = Speaker { trusted, ..by };
        // Every version that the bytes do not contradict gets them.
        for (i, version) in self.versions.iter_mut().enumerate() {
            if !version.admits(by) {
                continue;
            }
            match version.add(by.flow, at, bytes, end) {
                Ok(new) => {
                    kept = kept.max(new);
                    heard = true;
                    version.grown = if new > 0 { self.count } else { version.grown };
                }
                Err(Contradiction) => contradicted = Some(i),
            }
        }
        if !heard {
            kept = self.open(contradicted, by, at, bytes, end);
        }
        self.kept += kept as u64;
        kept
    }

    /// The fast path, for most segments: adds bytes that continue where the last ones stopped. It returns false unless
    /// the same flow sent those, there is only one version, and memory for the bytes is reserved. Its effect is that of
    /// [`Chunk::hear`], at a third of the cost.
    pub fn go_on(&mut self, by: Speaker, at: u64, bytes: &[u8]) -> bool {
        let [version] = self.versions.as_mut_slice() else { return false };
        let by = Speaker { trusted: by.trusted && self.falsehoods < FALSE_MAX, ..by };
        if !(version.admits(by) && version.go_on(by.flow, at, bytes)) {
            return false;
        }
        self.count += 1;
        version.grown = self.count;
        self.kept += bytes.len() as u64;
        true
    }

    /// Opens a version for bytes that no version took: a copy of the version `from` that they contradict, in which they
    /// win, or an empty one. Returns how many bytes count as new.
    fn open(&mut self, from: Option<usize>, by: Speaker, at: u64, bytes: &[u8], end: u64) -> usize {
        let mut version = match from.and_then(|i| self.versions.get(i)).cloned() {
            Some(base) => Version { right: Some(by.flow), ..base },
            None => Version::default(),
        };
        version.apart.retain(|it| *it != by.flow);
        version.alone = !by.trusted;
        let new = version.add(by.flow, at, bytes, end).unwrap_or(0);
        self.push(version);
        if from.is_some() { bytes.len() } else { new }
    }

    /// Adds a version. If there are too many, it replaces the one that has not grown for the longest time.
    fn push(&mut self, mut version: Version) {
        version.grown = self.count;
        let oldest = self.versions.iter().enumerate().min_by_key(|(_, version)| version.grown);
        if let Some((i, _)) = oldest.filter(|_| self.versions.len() >= VERSIONS_MAX) {
            self.versions.remove(i);
        }
        self.versions.reserve_exact(1);
        self.versions.push(version);
    }

    /// How many versions of it proved to be false.
    pub fn falsehoods(&self) -> u8 {
        self.falsehoods
    }

    /// Verifies the complete versions. `last` is the range that was heard last; `judge` is called for each flow.
    pub fn verify(
        &mut self,
        name: &ChunkId,
        total: u64,
        last: &Range<u64>,
        mut judge: impl FnMut(Id, Judgement),
    ) -> Verdict {
        while let Some(i) = self.versions.iter().position(|it| it.runs.bytes() as u64 == total) {
            let version = self.versions.remove(i);
            let helpers = version.speakers();
            let bytes = version.runs.into_only();
            if content::name(&bytes) == *name {
                helpers.iter().for_each(|by| judge(*by, Judgement::Helped));
                // A flow with no part in the true version may have sent false bytes.
                let others = self.versions.iter().flat_map(Version::speakers);
                let others: Vec<_> = others.filter(|by| !helpers.contains(by)).collect();
                others.into_iter().for_each(|by| judge(by, Judgement::Suspect));
                return Verdict::True(bytes);
            }
            // One flow alone must have lied; of several, any may have.
            let what = if helpers.len() == 1 { Judgement::False } else { Judgement::Suspect };
            helpers.iter().for_each(|by| judge(*by, what));
            self.falsehoods = self.falsehoods.saturating_add(1);
            self.fall_apart(&version.said, &helpers, &bytes, last);
        }
        if self.falsehoods > 0 && self.versions.is_empty() {
            Verdict::GivenUp
        } else {
            Verdict::Open
        }
    }

    /// Splits a false version into a version for each flow, with the bytes that this flow sent.
    fn fall_apart(&mut self, said: &[Said], speakers: &[Id], bytes: &[u8], last: &Range<u64>) {
        // The last flows are kept if there are too many: they are the most likely to send more.
        for by in speakers.iter().skip(speakers.len().saturating_sub(VERSIONS_MAX)) {
            let mut version = Version::default();
            for it in said.iter().filter(|it| it.by == *by) {
                let part = bytes.get(it.range.start as usize..it.range.end as usize);
                let _ = version.add(*by, it.range.start, part.unwrap_or_default(), 0);
            }
            if version.runs.bytes() >= bytes.len() {
                // This flow alone sent every byte. Only the last piece is dropped, or all of it if too many versions
                // were false.
                if self.falsehoods > FALSE_MAX {
                    continue;
                }
                version.runs.take(last.clone());
                version.unsay(last, None);
            }
            let others = speakers.iter().filter(|it| *it != by);
            version.apart = others.take(APART_MAX).copied().collect();
            if version.runs.bytes() > 0 {
                self.push(version);
            }
        }
    }

    /// The ranges that the fullest version lacks; none if there is no version.
    pub fn missing(&self, total: u64) -> Vec<Range<u64>> {
        self.fullest().map(|version| version.runs.missing(total)).unwrap_or_default()
    }

    /// The blocks of the fullest version, not verified.
    pub fn into_fullest(self) -> Runs {
        let fullest = self.versions.into_iter().max_by_key(|version| version.runs.bytes());
        fullest.map(|version| version.runs).unwrap_or_default()
    }
}

impl Version {
    fn cost(&self) -> usize {
        self.runs.cost() + spilled(&self.said) + self.apart.capacity() * size_of::<Id>()
    }

    /// The flows that sent bytes of it, each once.
    fn speakers(&self) -> Vec<Id> {
        let mut speakers: Vec<Id> = Vec::new();
        for said in &self.said {
            if !speakers.contains(&said.by) {
                speakers.push(said.by);
            }
        }
        speakers
    }

    /// Whether a flow may add bytes. An untrusted flow adds only to versions without bytes of other flows.
    fn admits(&self, by: Speaker) -> bool {
        let only_own = || self.said.iter().all(|said| said.by == by.flow);
        if by.trusted && !self.alone { !self.apart.contains(&by.flow) } else { only_own() }
    }

    /// Adds bytes; returns how many of them are new. An error if they contradict bytes that are present, and this is
    /// not the version in which the speaker is right.
    fn add(&mut self, by: Id, at: u64, bytes: &[u8], end: u64) -> Result<usize, Contradiction> {
        let range = at..at + bytes.len() as u64;
        if !self.runs.agrees(at, bytes) {
            if self.right == Some(by) {
                self.runs.overwrite(at, bytes);
                self.unsay(&range, Some(by));
            } else {
                self.set_apart(by, &range);
                return Err(Contradiction);
            }
        }
        if !self.note(by, range) {
            return Ok(0);
        }
        Ok(self.runs.insert(at, bytes, end, RUNS_MAX))
    }

    /// See [`Chunk::go_on`].
    fn go_on(&mut self, by: Id, at: u64, bytes: &[u8]) -> bool {
        let last = self.said.last_mut().filter(|it| it.by == by && it.range.end == at);
        let Some(last) = last.filter(|_| self.runs.append(at, bytes)) else { return false };
        last.range.end += bytes.len() as u64;
        true
    }

    /// Excludes a flow that contradicts other flows from this version. A flow that contradicts its own bytes is not
    /// excluded: either its earlier or its later bytes are true, and there is a version for each.
    fn set_apart(&mut self, by: Id, range: &Range<u64>) {
        if self.said.iter().any(|said| said.by == by && said.overlaps(range)) {
            return;
        }
        if self.apart.len() >= APART_MAX {
            self.apart.remove(0);
        }
        self.apart.push(by);
    }

    /// Records which flow sent a range; false if there are too many ranges.
    fn note(&mut self, by: Id, range: Range<u64>) -> bool {
        // Overlapping and adjacent ranges of the same flow become one.
        let mine =
            self.said.iter_mut().rev().find(|it| {
                it.by == by && it.range.start <= range.end && range.start <= it.range.end
            });
        if let Some(said) = mine {
            said.range = said.range.start.min(range.start)..said.range.end.max(range.end);
            return true;
        }
        if self.said.len() >= SAID_MAX {
            return false;
        }
        self.said.push(Said { range, by });
        true
    }

    /// Removes a range from the records of all flows, except those of `except`.
    fn unsay(&mut self, range: &Range<u64>, except: Option<Id>) {
        let mut rest = SmallVec::new();
        for said in self.said.drain(..) {
            if Some(said.by) == except || !said.overlaps(range) {
                rest.push(said);
                continue;
            }
            let before = said.range.start..range.start;
            let behind = range.end..said.range.end;
            let parts = [before, behind].into_iter().filter(|part| part.start < part.end);
            rest.extend(parts.map(|range| Said { range, by: said.by }));
        }
        rest.truncate(SAID_MAX);
        self.said = rest;
    }
}
