//! What the engine remembers of chunks by name, before they are assembled and afterwards.
//!
//! It remembers which chunks were complete a moment ago, so that the next hop's transmission of the same chunk is
//! ignored; which chunks are wanted, though nothing was heard of them yet; and which chunks follow each other. All
//! hops send chunks in the same order, and with the same distances. So a head that was missed on one hop can be
//! inferred from the order on another hop, even if the heads beside it were missed there. A manifest tells the same
//! order.

use super::flows::HEAD;
use super::table::Table;
use smallvec::{SmallVec, smallvec};
use std::time::Duration;
use wire::{ChunkId, Instant};

/// A chunk that was complete is not assembled again for this long. Afterwards the store may have evicted it.
const HERE: Duration = Duration::from_secs(10);

/// The most pairs of chunks that are noted to merge the order shown by one head into the known order.
const STEPS_MAX: usize = 16;

/// Where the order that was heard differs from the listed one, the listed order of this many chunks on either side is
/// ignored.
const DIFFERS_NEAR: usize = 4;

/// Ranks of names, the least important first: only the order is known, the chunk was complete, it is wanted.
const RANKS: usize = 3;
const WEIGHTS: [u64; RANKS] = [4, 2, 1];

/// A chunk, with its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Named {
    /// Its name.
    pub name: ChunkId,
    /// Its length in bytes.
    pub total: u32,
}

/// Whether a chunk is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was complete, or the node had it, a moment ago: it is not needed.
    Here,
    /// A request waits for it.
    Wanted,
    /// Neither of the two.
    Other,
}

/// The table of names.
#[derive(Debug)]
pub struct Names {
    table: Table<ChunkId, Known, RANKS>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    here_until: Option<Instant>,
    wanted: bool,
    before: Option<Step>,
    after: Option<Step>,
}

/// A step from one chunk to the next known chunk before or behind it, in a flow or a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// How many bytes lie between the two chunks: between the last byte of the first and the head of the second.
    pub gap: u64,
    /// The chunk to which the step leads.
    pub named: Named,
    /// Whether a manifest lists the two chunks side by side.
    pub listed: bool,
}

impl Step {
    /// Given that chunk `to` lies `gap` bytes from this step's origin: the bytes between this step's chunk and `to`, if
    /// `to` is the farther one.
    fn rest(&self, gap: u64, to: Named) -> Option<u64> {
        let rest = gap.checked_sub(self.gap + HEAD + u64::from(self.named.total));
        // The same chunk at two distances: the two orders belong to different flows.
        rest.filter(|_| to != self.named)
    }

    /// Replaces another step and returns that one. If both are equal, the new step keeps the mark that a manifest lists
    /// it.
    fn replace(mut self, there: &mut Option<Self>) -> Option<Self> {
        self.listed |=
            there.is_some_and(|it| Self { listed: self.listed, ..it } == self && it.listed);
        there.replace(self)
    }
}

impl Names {
    /// A table for this many names.
    pub fn new(names_max: usize, seed: &[u8; 32]) -> Self {
        Self { table: Table::new(names_max, seed) }
    }

    /// The memory of a table for this many names, in bytes.
    pub fn cost(names_max: usize) -> usize {
        Table::<ChunkId, Known, RANKS>::cost(names_max)
    }

    /// A chunk is complete, or the node has it.
    pub fn arrived(&mut self, now: Instant, name: ChunkId) {
        self.note(now, name, |known| {
            known.here_until = Some(now + HERE);
            known.wanted = false;
        });
    }

    /// The node could not keep a chunk that was complete.
    pub fn lost(&mut self, now: Instant, name: ChunkId) {
        if self.known(&name).is_some() {
            self.note(now, name, |known| known.here_until = None);
        }
    }

    /// Whether a chunk was complete recently; if not, whether a request waits for it.
    pub fn state(&self, now: Instant, name: &ChunkId) -> State {
        match self.known(name) {
            Some(known) if known.here_until.is_some_and(|until| now < until) => State::Here,
            Some(known) if known.wanted => State::Wanted,
            _ => State::Other,
        }
    }

    /// Notes whether a request of the node waits for a chunk.
    pub fn want(&mut self, now: Instant, name: ChunkId, wanted: bool) {
        if wanted || self.known(&name).is_some() {
            self.note(now, name, |known| {
                known.wanted = wanted;
                known.here_until = known.here_until.filter(|_| !wanted);
            });
        }
    }

    /// Notes that one chunk follows another in some flow, `gap` bytes behind it.
    pub fn follows(&mut self, now: Instant, first: Named, gap: u64, second: Named) {
        self.order(now, (first, gap, second), false);
    }

    /// Notes the chunks that a manifest lists, each right behind the one before. This order is ignored near a chunk
    /// that was heard right beside a third one: the sender uses another order, or alternates between objects.
    pub fn list(&mut self, now: Instant, chunks: &[Named]) {
        let pairs: Vec<_> = chunks.iter().zip(chunks.iter().skip(1)).collect();
        let differ: Vec<_> = pairs.iter().map(|(one, next)| self.differs(**one, **next)).collect();
        for (i, (first, second)) in pairs.into_iter().enumerate() {
            let near = i.saturating_sub(DIFFERS_NEAR)..differ.len().min(i + DIFFERS_NEAR + 1);
            if !differ.get(near).unwrap_or_default().contains(&true) {
                self.order(now, (*first, 0, *second), true);
            }
        }
    }

    /// Whether something else was heard right between two chunks.
    fn differs(&self, first: Named, second: Named) -> bool {
        let differs = |step: Option<Step>, named: Named| {
            step.is_some_and(|it| it.gap == 0 && !it.listed && it.named != named)
        };
        differs(self.after(&first.name), second) || differs(self.before(&second.name), first)
    }

    /// Merges a pair of chunks, `told`, and the gap between them into the known order. Each chunk has at most one step
    /// in each direction. So if a known chunk lies between the two, the shorter pair takes the place of `told`; and if
    /// a known step led beyond one of them, the rest of that step is merged as a pair too.
    fn order(&mut self, now: Instant, told: (Named, u64, Named), mut listed: bool) {
        let mut found = smallvec![told] as SmallVec<[_; 2]>;
        for _ in 0..STEPS_MAX {
            let Some((first, gap, second)) = found.pop() else { break };
            if gap > 0
                && let Some(between) = self.between(first, gap, second)
            {
                found.push(between);
                continue;
            }
            let there = Step { gap, named: second, listed };
            let back = Step { gap, named: first, listed: std::mem::take(&mut listed) };
            let (mut after, mut before) = (None, None);
            self.note(now, first.name, |known| after = there.replace(&mut known.after));
            self.note(now, second.name, |known| before = back.replace(&mut known.before));
            // A step that was replaced may have led beyond this pair; its rest is the next pair to merge.
            let beyond = |known: Option<Step>, step: &Step| {
                let known = known?;
                Some((known.named, step.rest(known.gap, known.named)?))
            };
            found.extend(beyond(after, &there).map(|(last, rest)| (second, rest, last)));
            found.extend(beyond(before, &back).map(|(ahead, rest)| (ahead, rest, first)));
        }
    }

    /// If a known chunk lies between two, the remaining pair: from that chunk to the second, or from the first to it.
    fn between(&self, first: Named, gap: u64, second: Named) -> Option<(Named, u64, Named)> {
        let (after, before) = (self.after(&first.name), || self.before(&second.name));
        let ahead = after.and_then(|it| Some((it.named, it.rest(gap, second)?, second)));
        ahead.or_else(|| before().and_then(|it| Some((first, it.rest(gap, first)?, it.named))))
    }

    /// The next known chunk behind a chunk.
    pub fn after(&self, name: &ChunkId) -> Option<Step> {
        self.known(name)?.after
    }

    /// The next known chunk before a chunk.
    pub fn before(&self, name: &ChunkId) -> Option<Step> {
        self.known(name)?.before
    }

    fn known(&self, name: &ChunkId) -> Option<&Known> {
        self.table.get(self.table.find(name)?)
    }

    fn note(&mut self, now: Instant, name: ChunkId, change: impl FnOnce(&mut Known)) {
        let id = self.table.find(&name).or_else(|| {
            if self.table.is_full() {
                let worst = self.table.worst(now, &WEIGHTS)?;
                self.table.remove(worst);
            }
            self.table.insert(now, name, Known::default(), 0)
        });
        let Some(id) = id else { return };
        let Some(known) = self.table.get_mut(id) else { return };
        change(known);
        let rank = if known.wanted { 2 } else { usize::from(known.here_until.is_some()) };
        self.table.touch(now, id, rank);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LENGTH: u64 = 100;

    fn named(number: u8) -> Named {
        Named { name: ChunkId([number; 32]), total: LENGTH as u32 }
    }

    /// The chunks behind one, each with the gap before it.
    fn order(names: &Names, first: u8) -> Vec<(u64, u8)> {
        let mut order = Vec::new();
        let mut at = named(first).name;
        while let Some(step) = names.after(&at) {
            assert_eq!(names.before(&step.named.name).unwrap().named.name, at);
            assert_eq!(names.before(&step.named.name).unwrap().gap, step.gap);
            at = step.named.name;
            order.push((step.gap, at.0[0]));
        }
        order
    }

    #[test]
    fn what_several_flows_tell_comes_into_one_order() {
        // Chunks 0 to 4 back to back: which of them follow which, in any order of telling.
        let gap = |chunks: u64| chunks * (HEAD + LENGTH);
        let told = [(0, gap(1), 2), (1, gap(1), 3), (0, gap(3), 4), (0, 0, 1), (2, gap(1), 4)];
        for begin in 0..told.len() {
            let mut names = Names::new(8, &[1; 32]);
            for (first, gap, second) in told.iter().cycle().skip(begin).take(told.len()) {
                names.follows(Instant::ZERO, named(*first), *gap, named(*second));
            }
            assert_eq!(order(&names, 0), [(0, 1), (0, 2), (0, 3), (0, 4)], "from {begin} on");
        }
    }

    #[test]
    fn what_a_manifest_says_stays_said() {
        let mut names = Names::new(8, &[1; 32]);
        names.follows(Instant::ZERO, named(0), HEAD + LENGTH, named(2));
        names.list(Instant::ZERO, &[named(0), named(1)]);
        assert_eq!(order(&names, 0), [(0, 1), (0, 2)]);
        let listed = |names: &Names, number| names.after(&named(number).name).unwrap().listed;
        names.follows(Instant::ZERO, named(0), 0, named(1));
        assert!(listed(&names, 0) && !listed(&names, 1));
        // A different order that is heard replaces the listed one, and a later list does not replace it.
        names.follows(Instant::ZERO, named(0), 0, named(3));
        assert!(!listed(&names, 0));
        names.list(Instant::ZERO, &[named(0), named(1), named(4)]);
        assert_eq!((order(&names, 0), order(&names, 1)), (vec![(0, 3)], vec![(0, 2)]));
    }

    #[test]
    fn two_streams_with_the_same_chunks_do_not_make_a_third() {
        for gaps in [[0, 1000], [1000, 0]] {
            let mut names = Names::new(8, &[1; 32]);
            for gap in gaps {
                names.follows(Instant::ZERO, named(0), gap, named(1));
            }
            assert_eq!(order(&names, 0), [(gaps[1], 1)]);
        }
    }

    #[test]
    fn what_follows_itself_comes_to_an_end() {
        let mut names = Names::new(8, &[1; 32]);
        for gap in [0, 1000, 0, 90_000, 7] {
            names.follows(Instant::ZERO, named(1), gap, named(1));
        }
        assert_eq!(names.after(&named(1).name).unwrap().named, named(1));
    }
}
