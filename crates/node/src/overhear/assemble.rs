//! Assembles one chunk from many streams.
//!
//! A sender may lie, or may have been misheard, and only the whole chunk can be verified. So bytes that contradict
//! each other are kept in different *versions*. Without a contradiction there is one version. A flow that
//! contradicts a version opens another, in which its own bytes win and other flows' bytes fill its gaps. A version
//! that proves false is split into the bytes of each flow, and flows that were together in it are not joined again.
//! If one flow has sent all of a false version, the last piece is dropped, since another sender may have inserted
//! it. All of this is bounded. A liar with enough flows can therefore keep a chunk from being assembled; a liar
//! that merely comes first cannot.
//!
//! *Who calls it:* `shelf.rs`. *What it never does:* give out a byte that was not verified, except in `heard`.

use super::runs::{Runs, spilled};
use super::table::Id;
use smallvec::SmallVec;
use std::ops::Range;
use wire::ChunkId;
use wire::peer::Want;

/// The most blocks of a version: what is missing between them fits into one [`Want`].
const RUNS_MAX: usize = Want::RANGES_MAX - 1;
/// The most versions of a chunk.
pub const VERSIONS_MAX: usize = 4;
/// The most parts that a version remembers the speakers of.
const SAID_MAX: usize = 64;
/// The most flows that are kept apart from a version.
const APART_MAX: usize = 8;
/// After this many false versions of a chunk, the bytes of different flows are no longer joined.
const FALSE_MAX: u8 = 16;

/// The flow that sends some bytes.
#[derive(Clone, Copy, Debug)]
pub struct Speaker {
    /// Which flow it is.
    pub flow: Id,
    /// Whether what it says may be joined to what others say.
    pub trusted: bool,
}

/// A chunk that is being heard.
#[derive(Debug, Default)]
pub struct Chunk {
    versions: SmallVec<[Version; 1]>,
    /// How many bytes were kept, of all versions.
    pub kept: u64,
    /// The node waits for it.
    pub wanted: bool,
    falsehoods: u8,
    /// How often something was heard of it.
    count: u64,
}

/// Bytes that may belong together.
#[derive(Clone, Debug, Default)]
struct Version {
    runs: Runs,
    said: SmallVec<[Said; 1]>,
    /// Flows whose bytes do not belong here.
    apart: Vec<Id>,
    /// Whoever opened it, where it contradicted: it is right in all it says.
    right: Option<Id>,
    /// Only the flow that opened it adds to it; that flow is not trusted.
    alone: bool,
    /// When it last grew, as its chunk counts.
    grown: u64,
}

/// What a flow has said, whether or not others have said the same.
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

/// Something else is there already.
struct Contradiction;

/// What came of a chunk whose bytes may be all there.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Bytes are missing.
    Open,
    /// This is it.
    True(Vec<u8>),
    /// There is no use in going on.
    GivenUp,
}

/// What a verdict says of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It has helped to make a chunk.
    Helped,
    /// It was in a version that was false, with others.
    Suspect,
    /// It alone has made a version that was false.
    False,
}

impl Chunk {
    /// A chunk of which nothing was heard.
    pub fn new(wanted: bool) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// How many bytes the fullest version has.
    pub fn heard(&self) -> usize {
        self.versions.iter().map(|version| version.runs.bytes()).max().unwrap_or(0)
    }

    /// The last byte that was heard of it, in some version.
    pub fn tail(&self) -> Option<u8> {
        self.versions.last()?.runs.tail()
    }

    /// Its memory, in bytes.
    pub fn cost(&self) -> usize {
        let versions: usize = self.versions.iter().map(Version::cost).sum();
        versions + spilled(&self.versions)
    }

    /// How many of these bytes the fullest version has; `None` if it has others there.
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
        let trusted = by.trusted && self.falsehoods < FALSE_MAX;
        let by = Speaker { trusted, ..by };
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

    /// Opens a version: one in which this is right where it contradicts another, or an empty one.
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

    /// Adds a version; the one that has not grown for longest makes room.
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

    /// Verifies what is complete, after the bytes of a range were heard; tells `judge` what to think of
    /// the flows.
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
                let others = self.versions.iter().flat_map(Version::speakers);
                let others: Vec<_> = others.filter(|by| !helpers.contains(by)).collect();
                others.into_iter().for_each(|by| judge(by, Judgement::Suspect));
                return Verdict::True(bytes);
            }
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

    /// Makes a version of what each flow has said of one that was false.
    fn fall_apart(&mut self, said: &[Said], speakers: &[Id], bytes: &[u8], last: &Range<u64>) {
        // Those who spoke last may have more to say.
        for by in speakers.iter().skip(speakers.len().saturating_sub(VERSIONS_MAX)) {
            let mut version = Version::default();
            for it in said.iter().filter(|it| it.by == *by) {
                let part = bytes.get(it.range.start as usize..it.range.end as usize);
                let _ = version.add(*by, it.range.start, part.unwrap_or_default(), 0);
            }
            if version.runs.bytes() >= bytes.len() {
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

    /// Which ranges of the fullest version are missing, if there is one.
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

    /// The flows that sent some of it, each once.
    fn speakers(&self) -> Vec<Id> {
        let mut speakers: Vec<Id> = Vec::new();
        for said in &self.said {
            if !speakers.contains(&said.by) {
                speakers.push(said.by);
            }
        }
        speakers
    }

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

    fn go_on(&mut self, by: Id, at: u64, bytes: &[u8]) -> bool {
        let last = self.said.last_mut().filter(|it| it.by == by && it.range.end == at);
        let Some(last) = last.filter(|_| self.runs.append(at, bytes)) else { return false };
        last.range.end += bytes.len() as u64;
        true
    }

    /// Removes a flow that contradicts others from this version. A flow that contradicts itself may continue: either
    /// its first or its last bytes are true, and there is a version for each.
    fn set_apart(&mut self, by: Id, range: &Range<u64>) {
        if self.said.iter().any(|said| said.by == by && said.overlaps(range)) {
            return;
        }
        if self.apart.len() >= APART_MAX {
            self.apart.remove(0);
        }
        self.apart.push(by);
    }

    /// Remembers who said it; false if there is no room to.
    fn note(&mut self, by: Id, range: Range<u64>) -> bool {
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

    /// Nobody else has said this.
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
