//! Names: which bytes, in 32 bytes.
//!
//! *What this is:* [`name()`] for one chunk, [`names`] for many small ones at once, [`parent_name`] for a
//! run of units. *Who calls it:* whoever cuts, and `node::chunks` for every unit that enters. *What it
//! never does:* shorten names (an authenticated pair may; see `node::wan`). *Where to start:* [`name()`].
//! *Source:* BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn, 2020).

mod lanes;

use wire::ChunkId;

/// The name of a chunk: BLAKE3 of its stored bytes.
pub fn name(bytes: &[u8]) -> ChunkId {
    ChunkId(*blake3::hash(bytes).as_bytes())
}

/// Appends the names of `pieces` to `out`, in their order; each is what [`name()`] would answer.
pub fn names(pieces: &[&[u8]], out: &mut Vec<ChunkId>) {
    lanes::hash_all(pieces, out);
}

/// The name of a parent: BLAKE3 over the names of its units, under a key of its own, so that no unit's
/// bytes can be made to bear a parent's name.
///
/// A parent is the list of its units; naming it this way costs 32 bytes of hashing per unit.
pub fn parent_name(units: &[ChunkId]) -> ChunkId {
    let mut hasher = blake3::Hasher::new_derive_key("hearsay 2026-11-20 a parent's list of units");
    for unit in units {
        hasher.update(unit.as_bytes());
    }
    ChunkId(*hasher.finalize().as_bytes())
}
