//! R's work on a root: the candidate list, the content, and what of it is stored (Wanax §3.2, §5).

use super::cache::Cache;
use super::index::Place;
use super::{ChunkName, Done, Kind, Listing, Published, names_of};
use crate::hasher::Set;
use bytes::{Bytes, BytesMut};
use content::nested::{Nested, Root};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a root is put together from.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Its chunks.
    pub listing: Arc<Listing>,
    /// The content of those that S believed to be missing, in order.
    pub contents: Bytes,
    /// The content of others that were asked for.
    pub supplied: BTreeMap<ChunkName, Bytes>,
}

/// A chunk of the candidate list, with its content.
pub struct Piece {
    name: ChunkName,
    bytes: Bytes,
    /// It was not stored.
    pub is_new: bool,
    /// The rolling hash at its end, of one that was stored.
    fingerprint: Option<u64>,
}

/// A chunk that may have to be stored.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    start: u32,
    end: u32,
    fingerprint: u64,
}

/// The content of these pieces.
pub fn joined(pieces: &[Piece]) -> Bytes {
    if let [piece] = pieces {
        return piece.bytes.clone();
    }
    let mut joined = BytesMut::new();
    pieces.iter().for_each(|piece| joined.extend_from_slice(&piece.bytes));
    joined.freeze()
}

impl Cache {
    /// Gets the content of all chunks, each checked against its name.
    ///
    /// # Errors
    /// The result of the job, if some are not stored, or what was sent is not what its name says.
    pub(super) fn collect(&mut self, parts: &Parts) -> Result<Vec<Piece>, Done> {
        self.look(parts)?;
        let (mut pieces, mut lacks) = (Vec::new(), BTreeSet::new());
        let mut start = 0;
        for entry in &parts.listing.entries {
            let name = entry.name;
            let sent = match entry.is_missing {
                true => {
                    let end = start + entry.length as usize;
                    // The engine has held the lengths against each other.
                    let bytes = parts.contents.get(start..end).ok_or(Done::False)?;
                    start = end;
                    Some(parts.contents.slice_ref(bytes))
                }
                false => parts.supplied.get(&name).cloned(),
            };
            let is_new = sent.is_some();
            let place = self.index.place(&name);
            let bytes = match (sent, place) {
                (Some(bytes), _) => Some(bytes),
                (None, Some(place)) => self.read(&name, place),
                (None, None) => None,
            };
            match bytes {
                Some(bytes) if bytes.len() != entry.length as usize => return Err(Done::False),
                Some(bytes) => {
                    let fingerprint = place.filter(|_| !is_new).map(|place| place.fingerprint);
                    pieces.push(Piece { name, bytes, is_new, fingerprint });
                }
                None => _ = lacks.insert(name),
            }
        }
        let new: Vec<_> = pieces.iter().filter(|piece| piece.is_new).collect();
        let bytes: Vec<_> = new.iter().map(|piece| &piece.bytes[..]).collect();
        let is_true = names_of(&bytes).iter().zip(&new).all(|(name, piece)| *name == piece.name);
        match (is_true, lacks.is_empty()) {
            (false, _) => Err(Done::False),
            (true, false) => Err(Done::Lacking(lacks.into_iter().collect())),
            (true, true) => Ok(pieces),
        }
    }

    /// Which chunks are not there, before any is read: for that the index is enough.
    fn look(&self, parts: &Parts) -> Result<(), Done> {
        // The other end chooses these names.
        let mut seen = BTreeSet::new();
        let is_lacking = |name: &ChunkName| {
            !parts.supplied.contains_key(name) && self.index.place(name).is_none()
        };
        let names = parts.listing.entries.iter().filter(|it| !it.is_missing).map(|it| it.name);
        let lacks: Vec<_> = names.filter(|it| is_lacking(it) && seen.insert(*it)).collect();
        if lacks.is_empty() { Ok(()) } else { Err(Done::Lacking(lacks)) }
    }

    /// Stores each chunk that is not stored.
    pub(super) fn keep(&mut self, scheme: Published, pieces: &[Piece], content: &Bytes) {
        let chunks = match scheme.kind() {
            // Each piece is one, and parents are no chunks.
            Kind::Src => single(pieces),
            Kind::Mrc | Kind::MrcLarge => nested(scheme, pieces),
        };
        let slice = |chunk: &Chunk| content.slice(chunk.start as usize..chunk.end as usize);
        let bytes: Vec<_> = chunks.iter().map(slice).collect();
        let borrowed: Vec<_> = bytes.iter().map(|bytes| &bytes[..]).collect();
        let names = names_of(&borrowed);
        let mut seen = Set::default();
        let new: Vec<_> = (0..chunks.len())
            .filter(|at| self.index.place(&names[*at]).is_none() && seen.insert(names[*at]))
            .collect();
        if new.is_empty() {
            return;
        }
        let is_large = scheme.kind() == Kind::MrcLarge;
        let written: Vec<_> = match is_large {
            true => vec![content.clone()],
            false => new.iter().map(|at| bytes[*at].clone()).collect(),
        };
        let Some(mut position) = self.write(&written) else { return };
        for at in new {
            let Chunk { start, end, fingerprint } = chunks[at];
            let skipped = if is_large { start } else { 0 };
            let place = Place { position, skipped, length: end - start, fingerprint };
            self.index.add(names[at], place);
            position += if is_large { 0 } else { u64::from(end - start) };
        }
    }
}

/// The new ones of chunks of one size.
fn single(pieces: &[Piece]) -> Vec<Chunk> {
    let mut end = 0;
    let mut chunks = Vec::new();
    for piece in pieces {
        let start = end;
        end += piece.bytes.len() as u32;
        if piece.is_new {
            // What was sent is not cut again.
            chunks.push(Chunk { start, end, fingerprint: 0 });
        }
    }
    chunks
}

/// The chunks of all levels that are not among the pieces that were stored, the largest first. Only what is new is
/// looked at byte by byte: for the others their fingerprints tell which larger chunks end with them (§5).
fn nested(scheme: Published, pieces: &[Piece]) -> Vec<Chunk> {
    let (mut cutter, mut root) = (Nested::new(&scheme.averages()), Root::default());
    let (mut seen, mut end, mut is_whole) = (Set::default(), 0, false);
    for piece in pieces {
        // S ends a root where the chunker does, or earlier; otherwise the rest is passed on and not stored.
        if is_whole {
            break;
        }
        let start = end;
        end += piece.bytes.len() as u32;
        if piece.is_new {
            is_whole = cutter.take(&piece.bytes, &mut root).1;
        } else {
            seen.insert((start, end));
            is_whole = cutter.skip(&piece.bytes, piece.fingerprint, &mut root);
        }
    }
    if !is_whole {
        cutter.finish(&mut root);
    }
    let mut chunks = Vec::new();
    let finest = root.ends.last().map_or(&[][..], |ends| ends);
    for ends in &root.ends {
        let mut start = 0;
        for &end in ends {
            let at = finest.partition_point(|it| *it < end);
            let fingerprint = root.fingerprints.get(at).copied().unwrap_or_default();
            // A chunk may be one of several levels.
            if seen.insert((start, end)) {
                chunks.push(Chunk { start, end, fingerprint });
            }
            start = end;
        }
    }
    chunks
}
