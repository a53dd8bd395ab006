//! Bytes heard of a stream or a chunk, as ordered blocks with gaps between them.
//!
//! *Who calls it:* flows, for bytes that no head has claimed yet, and versions of chunks. *What it never does:* replace
//! a byte that it has, except in `overwrite`.

use smallvec::SmallVec;
use std::ops::Range;

/// One block of consecutive bytes.
#[derive(Clone, Debug)]
pub struct Run {
    /// The position of its first byte.
    pub at: u64,
    /// Its bytes; at least one.
    pub bytes: Vec<u8>,
}

impl Run {
    /// The position behind its last byte.
    pub fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// The part of it that lies in a range: position and bytes.
    pub fn part(&self, range: &Range<u64>) -> (u64, &[u8]) {
        let (from, to) = (range.start.max(self.at), range.end.min(self.end()));
        let inner = from.saturating_sub(self.at) as usize..to.saturating_sub(self.at) as usize;
        (from, self.bytes.get(inner).unwrap_or_default())
    }
}

/// A block may reserve at most this many times its length, and no more than the bytes that may follow. The rest of a
/// chunk usually arrives in order, and then nothing is moved. The factor is bounded because a sender could otherwise
/// make us reserve much with heads alone: for a chunk that is hardly begun ([`super::shelf::HARDLY`]), less than the
/// whole is reserved.
const AHEAD: usize = super::shelf::HARDLY;
/// The allocator's overhead for one allocation, in bytes.
const ALLOCATION: usize = 16;

/// The heap memory of a vector, in bytes; zero while its item is stored inline.
pub fn spilled<T>(items: &SmallVec<[T; 1]>) -> usize {
    if items.spilled() { items.capacity() * size_of::<T>() + ALLOCATION } else { 0 }
}

/// Ordered blocks, no two adjacent. The first is stored inline: if a thousand flows alternate, each pointer to follow
/// is one more cache miss.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    runs: SmallVec<[Run; 1]>,
    bytes: usize,
}

impl Runs {
    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The blocks.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter()
    }

    /// The last byte.
    pub fn tail(&self) -> Option<u8> {
        self.runs.last()?.bytes.last().copied()
    }

    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Their memory, in bytes.
    pub fn cost(&self) -> usize {
        let blocks: usize = self.runs.iter().map(|run| run.bytes.capacity() + ALLOCATION).sum();
        blocks + spilled(&self.runs)
    }

    /// The block with this byte.
    pub fn at(&self, at: u64) -> Option<&Run> {
        let i = self.runs.partition_point(|run| run.end() <= at);
        self.runs.get(i).filter(|run| run.at <= at)
    }

    /// The blocks and parts of blocks that lie in a range: positions and bytes.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &[u8])> {
        let i = self.runs.partition_point(|run| run.end() <= range.start);
        let from = self.runs.get(i..).unwrap_or_default().iter();
        let (start, end) = (range.start, range.end);
        from.take_while(move |run| run.at < end).map(move |run| run.part(&(start..end)))
    }

    /// Whether `bytes` equal the present bytes wherever both exist.
    pub fn agrees(&self, at: u64, bytes: &[u8]) -> bool {
        self.within(at..at + bytes.len() as u64).all(|(from, ours)| {
            let skipped = (from - at) as usize;
            bytes.get(skipped..skipped + ours.len()) == Some(ours)
        })
    }

    /// Adds those of `bytes` that are not present; returns their number. More bytes may follow up to `end`, so a block
    /// may reserve memory for them. If there would be more than `runs_max` blocks, the remaining bytes are dropped.
    pub fn insert(&mut self, mut at: u64, mut bytes: &[u8], end: u64, runs_max: usize) -> usize {
        let before = self.bytes;
        while !bytes.is_empty() {
            // A block that ends exactly at `at` counts as present here: the new bytes extend it.
            let i = self.runs.partition_point(|run| run.end() < at);
            let there = self.runs.get(i).filter(|run| run.at <= at).map(Run::end);
            if let Some(there) = there {
                let known = (there - at).min(bytes.len() as u64) as usize;
                bytes = bytes.get(known..).unwrap_or_default();
                at = there;
            }
            // Bytes up to the next block are new; those behind its begin may be present.
            let next = self.runs.get(i + usize::from(there.is_some())).map(|run| run.at);
            let room = next.map_or(u64::MAX, |next| next - at);
            let (new, rest) = bytes.split_at(room.min(bytes.len() as u64) as usize);
            if new.is_empty() {
                break;
            }
            // Before another block nothing is reserved, since only the last block is likely to continue.
            let ahead = if next.is_some() { 0 } else { end.saturating_sub(at) as usize };
            if there.is_some() {
                self.extend(i, new, ahead, end > at);
            // A block that closes the gap to the next is joined to it, so it does not count.
            } else if self.runs.len() < runs_max || next == Some(at + new.len() as u64) {
                self.open(i, at, new, ahead);
            } else {
                break;
            }
            self.bytes += new.len();
            self.close_gap(i);
            at += new.len() as u64;
            bytes = rest;
        }
        self.bytes - before
    }

    /// Adds bytes to the last block, if it ends at `at` and has memory reserved for them; false if not.
    pub fn append(&mut self, at: u64, bytes: &[u8]) -> bool {
        let Some(last) = self.runs.last_mut().filter(|last| last.end() == at) else { return false };
        if last.bytes.capacity() - last.bytes.len() < bytes.len() {
            return false;
        }
        last.bytes.extend_from_slice(bytes);
        self.bytes += bytes.len();
        true
    }

    /// Replaces the present bytes in the range of `bytes` by these. Bytes that are not present are not added.
    pub fn overwrite(&mut self, at: u64, bytes: &[u8]) {
        let range = at..at + bytes.len() as u64;
        let i = self.runs.partition_point(|run| run.end() <= range.start);
        for run in self.runs.iter_mut().skip(i).take_while(|run| run.at < range.end) {
            let (from, to) = (range.start.max(run.at), range.end.min(run.end()));
            let theirs = bytes.get((from - at) as usize..(to - at) as usize);
            let ours = run.bytes.get_mut((from - run.at) as usize..(to - run.at) as usize);
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                ours.copy_from_slice(theirs);
            }
        }
    }

    /// Removes and returns the bytes in a range.
    pub fn take(&mut self, range: Range<u64>) -> Vec<Run> {
        let mut taken = Vec::new();
        let mut i = self.runs.partition_point(|run| run.end() <= range.start);
        while let Some(run) = self.runs.get_mut(i).filter(|run| run.at < range.end) {
            let behind = (range.end < run.end()).then(|| {
                let bytes = run.bytes.split_off((range.end - run.at) as usize);
                Run { at: range.end, bytes }
            });
            let before = range.start.saturating_sub(run.at) as usize;
            let middle = Run { at: run.at + before as u64, bytes: run.bytes.split_off(before) };
            self.bytes -= middle.bytes.len();
            taken.push(middle);
            if run.bytes.is_empty() {
                self.runs.remove(i);
            } else {
                // The rest of the block must not keep the memory of the bytes that were taken.
                run.bytes.shrink_to_fit();
                i += 1;
            }
            if let Some(behind) = behind {
                self.runs.insert(i, behind);
                break;
            }
        }
        taken
    }

    /// Drops whole blocks, from the first, until at least `bytes_min` bytes are dropped. Returns the number dropped.
    pub fn drop_first(&mut self, bytes_min: usize) -> usize {
        let before = self.bytes;
        while before - self.bytes < bytes_min && !self.runs.is_empty() {
            self.bytes -= self.runs.remove(0).bytes.len();
        }
        before - self.bytes
    }

    /// The bytes of the only block.
    pub fn into_only(self) -> Vec<u8> {
        self.runs.into_iter().next().map(|run| run.bytes).unwrap_or_default()
    }

    /// Its blocks in order.
    pub fn into_runs(self) -> impl Iterator<Item = Run> {
        self.runs.into_iter()
    }

    /// The gaps in the first `total` bytes.
    pub fn missing(&self, total: u64) -> Vec<Range<u64>> {
        let (mut missing, mut at) = (Vec::new(), 0);
        for run in &self.runs {
            if run.at > at {
                missing.push(at..run.at);
            }
            at = run.end();
        }
        if at < total {
            missing.push(at..total);
        }
        missing
    }

    /// Inserts a new block at index `i`; up to `ahead` bytes may follow, counted from its first byte.
    fn open(&mut self, i: usize, at: u64, bytes: &[u8], ahead: usize) {
        // A gap follows the block before it, so that block needs no reserve.
        if let Some(before) = i.checked_sub(1).and_then(|i| self.runs.get_mut(i)) {
            before.bytes.shrink_to_fit();
        }
        let mut block = Vec::with_capacity(bytes.len().max(ahead.min(bytes.len() * AHEAD)));
        block.extend_from_slice(bytes);
        self.runs.insert(i, Run { at, bytes: block });
    }

    /// Appends to a block. If the most that may follow is known, the block reserves no more than that; otherwise it
    /// grows by doubling.
    fn extend(&mut self, i: usize, bytes: &[u8], ahead: usize, is_bounded: bool) {
        let Some(Run { bytes: block, .. }) = self.runs.get_mut(i) else { return };
        if block.capacity() - block.len() < bytes.len() && is_bounded {
            block.reserve_exact(bytes.len().max(ahead.min((block.len() + bytes.len()) * AHEAD)));
        }
        block.extend_from_slice(bytes);
    }

    /// Joins a block and the next one if they are adjacent.
    fn close_gap(&mut self, i: usize) {
        let Some([run, next]) = self.runs.get_mut(i..i + 2) else { return };
        if run.end() == next.at {
            run.bytes.reserve_exact(next.bytes.len());
            run.bytes.append(&mut next.bytes);
            self.runs.remove(i + 1);
        }
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// All present bytes with their positions.
    fn told(runs: &Runs) -> Vec<(u64, u8)> {
        let bytes = |run: &Run| {
            let at = run.at;
            run.bytes.clone().into_iter().enumerate().map(move |(i, byte)| (at + i as u64, byte))
        };
        runs.iter().flat_map(bytes).collect()
    }

    fn check(runs: &Runs, model: &[Option<u8>]) {
        let there = model.iter().enumerate().filter_map(|(i, byte)| Some((i as u64, (*byte)?)));
        assert_eq!(told(runs), there.collect::<Vec<_>>());
        assert_eq!(runs.bytes(), model.iter().flatten().count());
        assert!(runs.runs.windows(2).all(|pair| pair[0].end() < pair[1].at), "blocks touch");
    }

    #[test]
    fn what_is_left_keeps_no_room_for_what_was_taken() {
        let mut runs = Runs::default();
        runs.insert(0, &[7; 60_000], 0, usize::MAX);
        let before = runs.cost();
        for begin in (1..60_000).step_by(4000).collect::<Vec<_>>().into_iter().rev() {
            runs.take(begin..begin + 3999);
            assert!(runs.cost() <= before + 4096, "{} of {before}", runs.cost());
        }
        assert!(runs.bytes() < 100 && runs.cost() < 4096, "{}", runs.cost());
    }

    proptest! {
        #[test]
        fn blocks_hold_what_a_plain_array_holds(
            steps in vec((0..4_u8, 0..60_usize, 1..20_usize, any::<u8>()), 0..40),
        ) {
            let (mut runs, mut model) = (Runs::default(), [None; 80]);
            for (what, at, length, fill) in steps {
                let range = at..at + length;
                let bytes = vec![fill; length];
                match what {
                    0 | 1 => {
                        let agree = model[range.clone()].iter().all(|it| it.is_none_or(|it| it == fill));
                        prop_assert_eq!(runs.agrees(at as u64, &bytes), agree);
                        let new = model[range.clone()].iter().filter(|it| it.is_none()).count();
                        prop_assert_eq!(runs.insert(at as u64, &bytes, 80, usize::MAX), new);
                        model[range].iter_mut().for_each(|it| *it = it.or(Some(fill)));
                    }
                    2 => {
                        runs.overwrite(at as u64, &bytes);
                        model[range].iter_mut().for_each(|it| *it = it.map(|_| fill));
                    }
                    _ => {
                        let taken = runs.take(at as u64..(at + length) as u64);
                        let taken: Vec<_> = taken.into_iter().flat_map(|run| run.bytes).collect();
                        let there: Vec<_> = model[range.clone()].iter().flatten().copied().collect();
                        prop_assert_eq!(taken, there);
                        model[range].fill(None);
                    }
                }
                check(&runs, &model);
                let missing: Vec<_> = runs.missing(80).into_iter().flatten().collect();
                let gaps: Vec<_> = (0..80_u64).filter(|i| model[*i as usize].is_none()).collect();
                prop_assert_eq!(missing, gaps);
            }
        }

        #[test]
        fn blocks_are_no_more_than_allowed(pieces in vec((0..200_u64, 1..9_usize), 0..60)) {
            let mut runs = Runs::default();
            for (at, length) in pieces {
                runs.insert(at, &vec![1; length], 200, 5);
                prop_assert!(runs.len() <= 5);
            }
        }
    }

    #[test]
    fn memory_is_a_small_multiple_of_what_was_heard() {
        let mut runs = Runs::default();
        runs.insert(0, &[0; 10], 32 << 10, 31);
        assert!(runs.cost() <= AHEAD * 10 + 2 * ALLOCATION + size_of::<Run>(), "{}", runs.cost());
    }
}
