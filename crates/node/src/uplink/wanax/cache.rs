//! What the worker's thread keeps for a published scheme: S's hints, and R's index and log.

use super::assemble::Parts;
use super::hints::Hints;
use super::index::{Index, Place};
use super::prune::list;
use super::{ChunkName, Counts, Done, Job, Kind, Listing, Published, name_of};
use bytes::Bytes;
use std::sync::Arc;
use store::Ring;
use wire::Instant;

/// The tables and the log of one end. It begins empty with each process.
pub struct Cache {
    scheme: Option<Published>,
    hints: Hints,
    pub(super) index: Index,
    pub(super) ring: Ring,
    pub(super) counts: Counts,
    entries_max: usize,
}

impl Cache {
    /// An empty cache that stores chunks in this log. Its index and its hints have at most this many entries each;
    /// both take about 130 bytes for an entry.
    pub fn new(ring: Ring, entries_max: usize) -> Self {
        Self {
            scheme: None,
            hints: Hints::new(entries_max),
            index: Index::new(entries_max),
            ring,
            counts: Counts::default(),
            entries_max,
        }
    }

    /// Does a job.
    pub fn work(&mut self, job: Job) -> Done {
        match job {
            Job::Begin(scheme) => {
                if self.scheme.is_some_and(|before| before != scheme) {
                    self.lose();
                }
                self.scheme = Some(scheme);
                Done::Begun
            }
            Job::List { now, root, ends } => {
                let (listing, payload) = self.list(now, &root, &ends);
                Done::Listed(Arc::new(listing), payload)
            }
            Job::Assemble(parts) => match self.scheme {
                Some(scheme) => self.assemble(scheme, &parts),
                None => Done::False,
            },
        }
    }

    fn list(&mut self, now: Instant, root: &[u8], ends: &[Vec<u32>]) -> (Listing, Bytes) {
        let kind = self.scheme.map_or(Kind::Mrc, Published::kind);
        let listing = list(kind, &mut self.hints, now, root, ends);
        let mut payload = Vec::new();
        listing.encode(&mut payload);
        for (entry, (_, place)) in listing.entries.iter().zip(listing.places()) {
            if entry.is_missing {
                payload.extend_from_slice(&root[place]);
            }
        }
        (listing, payload.into())
    }

    fn assemble(&mut self, scheme: Published, parts: &Parts) -> Done {
        let pieces = match self.collect(parts) {
            Ok(pieces) => pieces,
            Err(done) => return done,
        };
        let content = super::assemble::joined(&pieces);
        // Of several that were stored, a larger one that they make up may not be.
        if pieces.len() > 1 || pieces.iter().any(|piece| piece.is_new) {
            self.keep(scheme, &pieces, &content);
        }
        self.counts.entries = self.index.len() as u64;
        Done::Assembled(content, self.counts)
    }

    /// Reads a chunk and checks it against its name; forgets it if it is another, or cannot be read.
    pub(super) fn read(&mut self, name: &ChunkName, place: Place) -> Option<Bytes> {
        self.counts.reads += 1;
        let read = self.ring.read(place.position, place.skipped, place.length);
        let read = read.filter(|bytes| name_of(bytes) == *name);
        if read.is_none() {
            self.index.forget(name);
        }
        read
    }

    /// Writes chunks together. They are not kept if the disk fails.
    pub(super) fn write(&mut self, chunks: &[Bytes]) -> Option<u64> {
        self.counts.writes += 1;
        let result = self.ring.append(chunks);
        self.index.evict(self.ring.first());
        self.counts.written += chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
        result.ok()
    }

    /// Forgets all.
    pub fn lose(&mut self) {
        self.hints = Hints::new(self.entries_max);
        self.index = Index::new(self.entries_max);
    }
}
