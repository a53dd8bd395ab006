//! What is counted for a scheme.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use super::scheme::Kind;

/// Bytes of a chunk's name: SHA-1 (Wanax §4.1).
pub const NAME_LEN: u64 = 20;

/// Bytes of an entry of the index: a name, a place on the disk, a length (Wanax §3.2, note 2).
const ENTRY_LEN: u64 = NAME_LEN + 8 + 4;

/// Chunks of about one length that are read from the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// The number of chunks.
    pub chunks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Disk operations for them.
    pub operations: u64,
}

/// Counts of a scheme over one or several inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of content.
    pub bytes: u64,
    /// Chunks that crossed as a name.
    pub hits: u64,
    /// Chunks that crossed as bytes: the largest that have no known part.
    pub misses: u64,
    /// Entries of the index that hits have used, each once.
    pub entries: u64,
    /// Those of them whose chunks are below the largest level.
    pub inner_entries: u64,
    /// Chunks that were stored, and have an entry.
    pub stored_chunks: u64,
    /// Their bytes on the disk.
    pub stored_bytes: u64,
    /// Bytes of hits by level, in the order of the scheme's levels.
    pub saved_by_level: Vec<u64>,
    /// Hits by their length, rounded down to five significant bits.
    pub reads: BTreeMap<u32, Reads>,
}

impl Counts {
    /// Notes a hit of a level, which is read in `operations` operations.
    pub(super) fn hit(&mut self, level: usize, length: u32, operations: u64) {
        self.hits += 1;
        if self.saved_by_level.len() <= level {
            self.saved_by_level.resize(level + 1, 0);
        }
        self.saved_by_level[level] += u64::from(length);
        let reads = self.reads.entry(rounded(length)).or_default();
        reads.chunks += 1;
        reads.bytes += u64::from(length);
        reads.operations += operations;
    }

    /// Bytes of all hits.
    pub fn hit_bytes(&self) -> u64 {
        self.saved_by_level.iter().sum()
    }

    /// Disk operations of all hits.
    pub fn disk_operations(&self) -> u64 {
        self.reads.values().map(|it| it.operations).sum()
    }

    /// Bytes that cross: chunks that were not known, and a name for each hit and each miss.
    pub fn sent_bytes(&self) -> u64 {
        self.bytes - self.hit_bytes() + NAME_LEN * (self.hits + self.misses)
    }

    /// Memory of the used entries, in bytes. MRC-Large adds the parent's name to each entry of a smaller chunk.
    pub fn index_bytes(&self, kind: Kind) -> u64 {
        let pointers = if kind == Kind::MrcLarge { self.inner_entries } else { 0 };
        ENTRY_LEN * self.entries + NAME_LEN * pointers
    }

    /// Share of the bytes that are hits; `None` without bytes.
    pub fn ideal_savings(&self) -> Option<f64> {
        self.share(self.hit_bytes() as f64)
    }

    /// The ideal savings less the names of hits and misses; negative if names outweigh hits.
    pub fn real_savings(&self) -> Option<f64> {
        self.share(self.bytes as f64 - self.sent_bytes() as f64)
    }

    /// The ideal savings less the names of hits only: if a miss crosses without a name.
    pub fn savings_without_names_of_misses(&self) -> Option<f64> {
        self.share(self.hit_bytes() as f64 - (NAME_LEN * self.hits) as f64)
    }

    fn share(&self, bytes: f64) -> Option<f64> {
        (self.bytes > 0).then(|| bytes / self.bytes as f64)
    }
}

impl AddAssign<&Self> for Counts {
    fn add_assign(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.hits += other.hits;
        self.misses += other.misses;
        self.entries += other.entries;
        self.inner_entries += other.inner_entries;
        self.stored_chunks += other.stored_chunks;
        self.stored_bytes += other.stored_bytes;
        let levels = self.saved_by_level.len().max(other.saved_by_level.len());
        self.saved_by_level.resize(levels, 0);
        self.saved_by_level.iter_mut().zip(&other.saved_by_level).for_each(|(sum, it)| *sum += it);
        for (&length, it) in &other.reads {
            let reads = self.reads.entry(length).or_default();
            reads.chunks += it.chunks;
            reads.bytes += it.bytes;
            reads.operations += it.operations;
        }
    }
}

/// A length with only its five highest bits.
fn rounded(length: u32) -> u32 {
    let shift = length.checked_ilog2().unwrap_or(0).saturating_sub(4);
    length >> shift << shift
}
