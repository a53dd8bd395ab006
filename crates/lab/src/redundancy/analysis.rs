//! Counting what crosses, for each scheme, over streams in the order in which they come.
//!
//! Each root chunk is cut and named once at all levels, and all schemes of a division share the table: what has crossed
//! does not depend on the scheme, since each keeps all that it was sent.

use content::nested::{Nested, Root};

use super::counts::Counts;
use super::division::{Division, Ours};
use super::names::{Full, Names};
use super::scheme::{Kind, LARGEST, Scheme};

/// The schemes, their tables, and what was counted since the last [`Analysis::end_input`].
#[derive(Debug)]
pub struct Analysis {
    /// The paper's schemes, and ours.
    lanes: [Lane; 2],
}

/// A stream under way. It holds a root chunk for each division: at most 256 KiB each.
#[derive(Debug)]
pub struct Stream {
    parts: [(Division, Root); 2],
}

impl Analysis {
    /// Empty tables, of at most `memory` bytes together. `smallest` is a power of two from 32 bytes to 64 KiB.
    pub fn new(smallest: u32, memory: u64) -> Self {
        let averages: Vec<_> = std::iter::successors(Some(LARGEST), |it| Some(it / 2))
            .take_while(|&average| average >= smallest)
            .collect();
        let schemes = Scheme::of_paper(&averages);
        let our_scheme = vec![Scheme::ours(&Ours::averages())];
        Self {
            lanes: [
                Lane::new(Division::Nested(Nested::new(&averages)), schemes, memory),
                Lane::new(Division::Ours(Box::new(Ours::new())), our_scheme, memory),
            ],
        }
    }

    /// The schemes, in the order of the counts.
    pub fn schemes(&self) -> impl Iterator<Item = &Scheme> {
        self.lanes.iter().flat_map(|lane| &lane.schemes)
    }

    /// A stream at its start.
    pub fn stream(&self) -> Stream {
        Stream { parts: self.lanes.each_ref().map(|lane| (lane.division.clone(), Root::default())) }
    }

    /// Continues a stream.
    pub fn feed(&mut self, stream: &mut Stream, bytes: &[u8]) -> Result<(), Full> {
        for (at, (division, root)) in stream.parts.iter_mut().enumerate() {
            let mut rest = bytes;
            while !rest.is_empty() {
                let (taken, is_whole) = division.take(rest, root);
                rest = &rest[taken..];
                if is_whole {
                    self.cross(at, root)?;
                }
            }
        }
        Ok(())
    }

    /// Ends a stream.
    pub fn finish(&mut self, mut stream: Stream) -> Result<(), Full> {
        for (at, (division, root)) in stream.parts.iter_mut().enumerate() {
            if division.finish(root) {
                self.cross(at, root)?;
            }
        }
        Ok(())
    }

    /// Sends a root chunk of one lane. The limit of memory is for both tables together.
    fn cross(&mut self, at: usize, root: &Root) -> Result<(), Full> {
        let others = self.memory() - self.lanes[at].names.memory();
        self.lanes[at].cross(root, others)
    }

    /// Ends an input: the counts of each scheme since the last one. The tables stay.
    pub fn end_input(&mut self) -> Vec<Counts> {
        let end = |lane: &mut Lane| {
            let zeros = vec![Counts::default(); lane.schemes.len()];
            std::mem::replace(&mut lane.counts, zeros)
        };
        self.lanes.iter_mut().flat_map(end).collect()
    }

    /// Begins to count used entries anew.
    pub fn forget_uses(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.names.forget_uses());
    }

    /// The bytes of the tables.
    pub fn memory(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.names.memory()).sum()
    }
}

/// A division, and the schemes that use it.
#[derive(Debug)]
struct Lane {
    /// At the start of a stream.
    division: Division,
    schemes: Vec<Scheme>,
    names: Names,
    /// In the order of the schemes.
    counts: Vec<Counts>,
    /// The chunks of the current root, by level.
    chunks: Vec<Vec<Chunk>>,
}

/// A chunk of the current root.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    start: u32,
    end: u32,
    key: u64,
    /// The levels at which it had crossed before this root.
    levels: u16,
}

impl Lane {
    fn new(division: Division, schemes: Vec<Scheme>, memory: u64) -> Self {
        let counts = vec![Counts::default(); schemes.len()];
        Self { division, schemes, names: Names::new(memory), counts, chunks: Vec::new() }
    }

    /// Sends a root chunk by each scheme, and stores its chunks. Other tables have `others` bytes of the limit.
    fn cross(&mut self, root: &Root, others: u64) -> Result<(), Full> {
        self.name(root);
        for at in 0..self.schemes.len() {
            self.counts[at].bytes += root.bytes.len() as u64;
            if self.schemes[at].kind != Kind::Src {
                self.send(at);
            }
        }
        self.store(others)
    }

    /// Names the chunks of all levels.
    fn name(&mut self, root: &Root) {
        self.chunks.resize(root.ends.len(), Vec::new());
        for level in 0..root.ends.len() {
            let mut chunks = std::mem::take(&mut self.chunks[level]);
            chunks.clear();
            let mut larger = level.checked_sub(1).map_or(&[][..], |it| &self.chunks[it]);
            let mut start = 0;
            for &end in &root.ends[level] {
                // Where this chunk is as long as the one above it, it has the same name.
                larger = &larger[larger.partition_point(|it| it.end <= start)..];
                let same = larger.first().filter(|it| (it.start, it.end) == (start, end));
                let key = same.map_or_else(
                    || Names::key(&root.bytes[start as usize..end as usize]),
                    |it| it.key,
                );
                chunks.push(Chunk { start, end, key, levels: self.names.levels(key) });
                start = end;
            }
            self.chunks[level] = chunks;
        }
    }

    /// Sends the root by a scheme of several levels.
    fn send(&mut self, at: usize) {
        let Self { chunks, schemes, names, counts, .. } = self;
        let (scheme, counts) = (&schemes[at], &mut counts[at]);
        let mut sending = Sending { chunks, scheme, at, names, counts };
        let Some(&root) = sending.chunks[scheme.levels[0]].first() else { return };
        if !sending.any_hit(0, root) {
            sending.counts.misses += 1;
        }
    }

    /// Stores all chunks, and counts what SRC sends: it knows a chunk as soon as the one before has crossed.
    fn store(&mut self, others: u64) -> Result<(), Full> {
        for level in 0..self.chunks.len() {
            for &chunk in &self.chunks[level] {
                let before = self.names.add(chunk.key, level, others)?;
                for (at, scheme) in self.schemes.iter().enumerate() {
                    if scheme.mask >> level & 1 == 0 {
                        continue;
                    }
                    let counts = &mut self.counts[at];
                    let is_new = before & scheme.mask == 0;
                    if is_new {
                        counts.stored_chunks += 1;
                    }
                    counts.stored_bytes += stored(scheme, level, chunk, is_new);
                    if scheme.kind == Kind::Src && is_new {
                        counts.misses += 1;
                    } else if scheme.kind == Kind::Src {
                        counts.hit(0, chunk.end - chunk.start, 1);
                        counts.entries += u64::from(self.names.mark(chunk.key, at));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The bytes of a chunk of a level that a scheme writes.
fn stored(scheme: &Scheme, level: usize, chunk: Chunk, is_new: bool) -> u64 {
    let is_kept = match scheme.kind {
        Kind::Src | Kind::Mrc | Kind::Ours => true,
        Kind::MrcSmall => scheme.levels.last() == Some(&level),
        Kind::MrcLarge => scheme.levels.first() == Some(&level),
    };
    if is_kept && is_new { u64::from(chunk.end - chunk.start) } else { 0 }
}

/// A root chunk on its way by one scheme.
struct Sending<'a> {
    chunks: &'a [Vec<Chunk>],
    scheme: &'a Scheme,
    /// The scheme's place among the schemes.
    at: usize,
    names: &'a mut Names,
    counts: &'a mut Counts,
}

impl Sending<'_> {
    /// Sends what is known of a chunk, at the scheme's `depth`th level, by the largest names. `false`: nothing is
    /// known of it, and the caller sends its bytes, alone or as part of a larger chunk.
    fn any_hit(&mut self, depth: usize, chunk: Chunk) -> bool {
        if chunk.levels & self.scheme.mask != 0 {
            self.read(depth, chunk);
            return true;
        }
        let chunks = self.chunks;
        let mut misses = 0;
        let mut any = false;
        for &child in self.inside(chunks, depth + 1, chunk) {
            if self.any_hit(depth + 1, child) {
                any = true;
            } else {
                misses += 1;
            }
        }
        if any {
            self.counts.misses += misses;
        }
        any
    }

    /// The chunks of a depth that are parts of a chunk.
    fn inside<'c>(&self, chunks: &'c [Vec<Chunk>], depth: usize, chunk: Chunk) -> &'c [Chunk] {
        let Some(&level) = self.scheme.levels.get(depth) else { return &[] };
        let level = &chunks[level];
        let from = level.partition_point(|it| it.start < chunk.start);
        let to = level.partition_point(|it| it.end <= chunk.end);
        &level[from..to.max(from)]
    }

    /// Notes a hit, and what the receiver reads for it.
    fn read(&mut self, depth: usize, chunk: Chunk) {
        let mut operations = 1;
        self.use_entry(depth, chunk);
        if self.scheme.kind == Kind::MrcSmall {
            let deepest = self.scheme.levels.len() - 1;
            let chunks = self.chunks;
            for depth in depth + 1..=deepest {
                let parts = self.inside(chunks, depth, chunk);
                operations = parts.len() as u64;
                parts.iter().for_each(|&part| self.use_entry(depth, part));
            }
        }
        self.counts.hit(depth, chunk.end - chunk.start, operations);
    }

    fn use_entry(&mut self, depth: usize, chunk: Chunk) {
        if self.names.mark(chunk.key, self.at) {
            self.counts.entries += 1;
            self.counts.inner_entries += u64::from(depth > 0);
        }
    }
}
