//! The names of chunks: 32-byte hashes.
//!
//! *What this is:* [`name()`] for one chunk, [`names`] for many small ones at once, [`parent_name`]
//! for a run of units. *Who calls it:* code that cuts objects, and `node::chunks` for every unit
//! that enters the store. *What it never does:* shorten names. *Where to start:* [`name()`].
//! *Source:* BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020).

mod lanes;

use wire::ChunkId;

/// The name of a chunk: BLAKE3 of its stored bytes.
pub fn name(bytes: &[u8]) -> ChunkId {
    ChunkId(*blake3::hash(bytes).as_bytes())
}

/// Appends the names of `pieces` to `out`, in order; each is equal to the result of [`name()`].
pub fn names(pieces: &[&[u8]], out: &mut Vec<ChunkId>) {
    lanes::hash_all(pieces, out);
}

/// The name of a parent: BLAKE3 over the names of its units. It uses its own key, so no unit can be
/// crafted to have a parent's name.
///
/// A parent is a list of units, so its name costs only the hashing of 32 bytes per unit.
pub fn parent_name(units: &[ChunkId]) -> ChunkId {
    let mut hasher = blake3::Hasher::new_derive_key("hearsay 2026-11-20 a parent's list of units");
    for unit in units {
        hasher.update(unit.as_bytes());
    }
    ChunkId(*hasher.finalize().as_bytes())
}
