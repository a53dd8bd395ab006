//! Streams of bytes cut into chunks of several sizes whose boundaries nest, down to 32 bytes.
//!
//! *What this is:* [`Nested`], the chunker of Wanax's multi-resolution chunks. Bytes go in as they come; whenever a
//! largest chunk, a root, is complete, the caller gets it with the boundaries of all levels. *Who calls it:* the
//! uplink's published schemes, and the lab's analysis. *What it never does:* cut what the mesh stores; [`Cutter`] does.
//! *Source:* Wanax §3.2: one pass of fingerprints, in which larger chunks match more bits of the same value.
//!
//! [`Cutter`]: crate::Cutter

use crate::rolling::{WINDOW, roll, roll_over};

/// A chunk of a level ends at this many times its average, whatever its bytes are.
pub const LONGEST: u32 = 4;

/// A largest chunk, and the ends of the chunks of each level in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Root {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// For each level, the largest first, the ends of its chunks, ascending. The last is the root's length. Each end of
    /// a level is also one of the next.
    pub ends: Vec<Vec<u32>>,
    /// The rolling hash at each end of the last level; without it, nothing.
    pub fingerprints: Vec<u64>,
}

impl Root {
    /// Becomes empty, with this many levels.
    pub fn clear(&mut self, levels: usize) {
        self.bytes.clear();
        self.ends.resize(levels, Vec::new());
        self.ends.iter_mut().for_each(Vec::clear);
        self.fingerprints.clear();
    }
}

/// Boundaries by the highest bits of the product's rolling hash over 64 bytes: a chunk of 2ⁿ bytes on average ends
/// where n of them are zero. There is no least length; a window may begin before its chunk, as the paper's may.
#[derive(Clone, Debug)]
pub struct Nested {
    /// For each level, the largest first, the number of bits that are zero at a boundary.
    bits: Vec<u32>,
    /// The starts of the current chunks in the root.
    starts: Vec<u32>,
    /// Where the next chunk reaches its greatest length.
    forced: u32,
    hash: u64,
    /// The root in hand is complete, and was given out.
    is_done: bool,
}

impl Nested {
    /// Chunks of these average lengths, powers of two, the largest first.
    pub fn new(averages: &[u32]) -> Self {
        let bits: Vec<_> = averages.iter().map(|it| it.ilog2()).collect();
        let starts = vec![0; bits.len()];
        let forced = averages.iter().min().map_or(1, |it| it * LONGEST);
        Self { bits, starts, forced, hash: 0, is_done: true }
    }

    /// Takes bytes up to the end of the root, and returns how many. `false`: the root goes on.
    pub fn take(&mut self, input: &[u8], root: &mut Root) -> (usize, bool) {
        self.begin(root);
        let before = root.bytes.len();
        let finest = self.bits.last().copied().unwrap_or(0);
        for (at, &byte) in input.iter().enumerate() {
            self.hash = roll(self.hash, byte);
            let zeros = self.hash.leading_zeros();
            let end = (before + at + 1) as u32;
            if zeros >= finest || end == self.forced {
                let from = self.ending(end, zeros);
                if from.is_some_and(|from| self.cut(end, from, root)) {
                    root.bytes.extend_from_slice(&input[..=at]);
                    self.is_done = true;
                    return (at + 1, true);
                }
            }
        }
        root.bytes.extend_from_slice(input);
        (input.len(), false)
    }

    /// Takes a chunk that is known already, without looking for boundaries in it: it ends a chunk of the finest level
    /// at least. `fingerprint` is the hash at its end, if that is known; it is of use from 64 bytes on. `true`: the
    /// root ends with it.
    pub fn skip(&mut self, chunk: &[u8], fingerprint: Option<u64>, root: &mut Root) -> bool {
        self.begin(root);
        self.hash = match fingerprint {
            Some(hash) if chunk.len() >= WINDOW => hash,
            _ => roll_over(self.hash, &chunk[chunk.len().saturating_sub(WINDOW)..]),
        };
        root.bytes.extend_from_slice(chunk);
        let end = root.bytes.len() as u32;
        let finest = self.bits.len().saturating_sub(1);
        let from = self.ending(end, self.hash.leading_zeros()).unwrap_or(finest);
        self.is_done = self.cut(end, from, root);
        self.is_done
    }

    /// Ends the stream. `false`: no bytes were left over.
    pub fn finish(&mut self, root: &mut Root) -> bool {
        self.begin(root);
        let length = root.bytes.len() as u32;
        if root.ends.last().is_some_and(|ends| ends.last() != Some(&length)) && length > 0 {
            root.fingerprints.push(self.hash);
        }
        self.restart();
        self.is_done = true;
        for ends in root.ends.iter_mut().filter(|ends| ends.last() != Some(&length)) {
            ends.push(length);
        }
        length > 0
    }

    /// Forgets the bytes before: what follows is cut as at the start of a stream.
    pub fn restart(&mut self) {
        self.hash = 0;
    }

    /// The largest level whose chunk ends here, at a hash with this many zeros.
    fn ending(&self, end: u32, zeros: u32) -> Option<usize> {
        let ends = |(&bits, &start): (&u32, &u32)| zeros >= bits || end - start == LONGEST << bits;
        self.bits.iter().zip(&self.starts).position(ends)
    }

    /// Ends the chunks of this level and of all smaller ones, and says whether the root is one of them.
    fn cut(&mut self, end: u32, from: usize, root: &mut Root) -> bool {
        for level in from..self.bits.len() {
            root.ends[level].push(end);
            self.starts[level] = end;
        }
        root.fingerprints.push(self.hash);
        let limits =
            self.bits.iter().zip(&self.starts).map(|(bits, start)| start + (LONGEST << bits));
        self.forced = limits.min().unwrap_or(u32::MAX);
        from == 0
    }

    fn begin(&mut self, root: &mut Root) {
        if self.is_done {
            root.clear(self.bits.len());
            self.starts.fill(0);
            self.forced = self.bits.last().map_or(u32::MAX, |bits| LONGEST << bits);
            self.is_done = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
        bytes
    }

    /// Several contents: noise, lines that repeat, a long run.
    fn contents() -> [Vec<u8>; 3] {
        let lines = (0..8000).flat_map(|it| format!("row {}\n", it / 5).into_bytes()).collect();
        [noise(1, 400_000), lines, [&noise(2, 500)[..], &[0; 300_000], &noise(3, 70)].concat()]
    }

    #[test]
    fn known_chunks_leave_the_boundaries_of_the_larger_ones_as_they_are() {
        let averages = [65536, 16384, 2048, 256, 32];
        for content in contents() {
            let (mut cutter, mut root) = (Nested::new(&averages), Root::default());
            let mut rest = &content[..];
            while !rest.is_empty() {
                let (taken, is_whole) = cutter.take(rest, &mut root);
                rest = &rest[taken..];
                if !is_whole {
                    assert!(cutter.finish(&mut root));
                }
                cutter.restart();
                (0..averages.len()).for_each(|known| check(&averages, &root, known));
            }
        }
    }

    /// Cuts a root again, of which every other chunk of one level is known.
    fn check(averages: &[u32], root: &Root, known: usize) {
        let (mut again, mut same) = (Nested::new(averages), Root::default());
        let (mut start, mut is_whole) = (0, false);
        let mut expected = vec![Vec::new(); averages.len()];
        for (number, &end) in root.ends[known].iter().enumerate() {
            let chunk = &root.bytes[start as usize..end as usize];
            is_whole = match number % 2 {
                0 => again.take(chunk, &mut same).1,
                _ => {
                    let at = root.ends.last().unwrap().binary_search(&end).unwrap();
                    again.skip(chunk, Some(root.fingerprints[at]), &mut same)
                }
            };
            for (expected, ends) in expected.iter_mut().zip(&root.ends) {
                let inside = ends.iter().filter(|it| (start + 1..=end).contains(it));
                // Of a known chunk only its end is seen.
                expected.extend(inside.filter(|it| number % 2 == 0 || **it == end));
            }
            start = end;
        }
        if !is_whole {
            assert!(again.finish(&mut same));
        }
        assert!(same.ends == expected && same.bytes == root.bytes, "level {known}");
        for (end, print) in same.ends.last().unwrap().iter().zip(&same.fingerprints) {
            let at = root.ends.last().unwrap().binary_search(end).unwrap();
            assert_eq!(root.fingerprints[at], *print);
        }
    }

    #[test]
    fn after_a_restart_a_root_depends_on_nothing_before_it() {
        let averages = [4096, 512, 32];
        let (before, content) = (noise(4, 100), noise(5, 20_000));
        let mut cutter = Nested::new(&averages);
        cutter.take(&before, &mut Root::default());
        cutter.finish(&mut Root::default());
        let (mut root, mut fresh) = (Root::default(), Root::default());
        assert_eq!(
            cutter.take(&content, &mut root),
            Nested::new(&averages).take(&content, &mut fresh)
        );
        assert!(root == fresh && root.ends[2].len() > 1);
    }
}
