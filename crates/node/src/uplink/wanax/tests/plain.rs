//! The paper's rules, worked out plainly: every hash from its window, every tree from the top down.

use crate::uplink::wanax::{ChunkName, Kind, Published};
use std::collections::HashSet;

/// What crosses, in bytes.
#[derive(Debug, Default)]
pub struct Crossing {
    pub names: u64,
    pub content: u64,
}

/// What has crossed so far.
pub struct Plain {
    scheme: Published,
    averages: Vec<u32>,
    pub known: HashSet<ChunkName>,
    /// Chunks that R reads, and bytes that it stores.
    pub reads: u64,
    pub stored: u64,
    /// The hash at the end of each byte of what is looked at.
    hashes: Vec<u64>,
}

/// A chunk that crosses: its length, and whether its content does.
type Crossed = (usize, bool);

impl Plain {
    pub fn new(scheme: Published) -> Self {
        let (mut averages, smallest) = (vec![65_536], scheme.smallest());
        match scheme.degree() {
            Some(degree) => {
                while averages.last().unwrap() / degree >= smallest {
                    averages.push(averages.last().unwrap() / degree);
                }
            }
            None if smallest < 65_536 => averages.push(smallest),
            None => {}
        }
        Self { scheme, averages, known: HashSet::new(), reads: 0, stored: 0, hashes: Vec::new() }
    }

    /// A flow with this content crosses.
    pub fn cross(&mut self, content: &[u8]) -> Crossing {
        let mut crossing = Crossing::default();
        let mut rest = content;
        while !rest.is_empty() {
            self.hashes = (1..=rest.len().min(4 * 65_536)).map(|end| hash(&rest[..end])).collect();
            let (root, others) = rest.split_at(self.first(rest.len(), 0, 0));
            rest = others;
            let mut seen = Vec::new();
            let crossed = match self.scheme.kind() {
                Kind::Src => {
                    let leaves = self.parts(0..root.len(), self.averages.len() - 1);
                    let mut one = |it: std::ops::Range<usize>| {
                        seen.push(it.clone());
                        (it.len(), !self.known.contains(&name(&root[it])))
                    };
                    leaves.into_iter().map(&mut one).collect()
                }
                Kind::Mrc | Kind::MrcLarge => self.walk(root, 0..root.len(), 0, &mut seen).0,
            };
            for (length, is_missing) in &crossed {
                let number = (length << 1) as u64;
                crossing.names += 20 + u64::from(number.ilog2()) / 7 + 1;
                crossing.content += if *is_missing { *length as u64 } else { 0 };
                self.reads += u64::from(!is_missing);
            }
            let mut is_news = false;
            for range in seen {
                let is_new = self.known.insert(name(&root[range.clone()]));
                is_news |= is_new;
                let by_itself = is_new && self.scheme.kind() != Kind::MrcLarge;
                self.stored += if by_itself { range.len() as u64 } else { 0 };
            }
            if is_news && self.scheme.kind() == Kind::MrcLarge {
                self.stored += root.len() as u64;
            }
        }
        crossing
    }

    /// What crosses of a chunk of a level, and whether R has any of it. `seen`: what S looks at.
    fn walk(
        &self,
        root: &[u8],
        range: std::ops::Range<usize>,
        level: usize,
        seen: &mut Vec<std::ops::Range<usize>>,
    ) -> (Vec<Crossed>, bool) {
        seen.push(range.clone());
        if self.known.contains(&name(&root[range.clone()])) {
            return (vec![(range.len(), false)], true);
        }
        let (mut crossed, mut has_any) = (Vec::new(), false);
        if level + 1 < self.averages.len() {
            for part in self.parts(range.clone(), level + 1) {
                let (below, has) = self.walk(root, part, level + 1, seen);
                crossed.extend(below);
                has_any |= has;
            }
        }
        if has_any { (crossed, true) } else { (vec![(range.len(), true)], false) }
    }

    /// A chunk's parts of a level.
    fn parts(&self, range: std::ops::Range<usize>, level: usize) -> Vec<std::ops::Range<usize>> {
        let (mut parts, mut start) = (Vec::new(), range.start);
        while start < range.end {
            let end = self.first(range.end, start, level);
            parts.push(start..end);
            start = end;
        }
        parts
    }

    /// Where the chunk of a level ends that begins at `start`, in a larger one that ends at `end`.
    fn first(&self, end: usize, start: usize, level: usize) -> usize {
        let average = self.averages[level] as usize;
        let longest = end.min(start + 4 * average);
        let is_end = |end: &usize| self.hashes[end - 1] < (1 << 63) / average as u64 * 2;
        (start + 1..longest).find(is_end).unwrap_or(longest)
    }
}

/// The rolling hash at the end of these bytes, from its definition.
fn hash(bytes: &[u8]) -> u64 {
    let window = &bytes[bytes.len().saturating_sub(64)..];
    window
        .iter()
        .rev()
        .enumerate()
        .fold(0u64, |sum, (age, byte)| sum.wrapping_add(content::roll(0, *byte) << age))
}

fn name(bytes: &[u8]) -> ChunkName {
    blake3::hash(bytes).as_bytes()[..20].try_into().unwrap()
}
