//! Sealed units, opened for clients: nothing of a unit leaves the node in clear but through here.

use bytes::Bytes;
use content::{Entry, Sealer, Segment};

/// A unit as clients get it; `None` if it is not what its entry says: of another length, sealed with
/// another key, or sealed where this node's mesh does not seal.
///
/// The key is held against the content each time: it rests in the catalogue, where it can go bad like
/// anything that a disk keeps.
pub(super) fn unseal(sealer: Option<&Sealer>, entry: &Entry, unit: Bytes) -> Option<Bytes> {
    if unit.len() as u64 != u64::from(entry.length) {
        return None;
    }
    match (sealer, entry.key) {
        (None, None) => Some(unit),
        (Some(sealer), Some(key)) => {
            // Memory and peers want it sealed: what is opened is a copy, for as long as a client takes it.
            let mut clear = unit.to_vec();
            sealer.open(&key, &mut clear).ok().map(|()| clear.into())
        }
        _ => None,
    }
}

/// Whether all units of a segment are sealed, or none is.
pub(super) fn is_sealed_as(segment: &Segment, sealed: bool) -> bool {
    segment.entries.iter().all(|entry| entry.key.is_some() == sealed)
}
