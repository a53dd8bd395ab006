//! A simple, slow chunker as a reference for the fast one: at every position it computes the hash
//! of the window anew, from its definition. The two share only the table and the figures of the
//! profile.

use crate::profile::{Level, Profile};
use crate::rolling::{GEAR, WINDOW};

/// One chunk: its end, the hash there, and whether the chunk of the next coarser level ends there
/// too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) end: usize,
    pub(crate) hash: u64,
    pub(crate) parent_end: bool,
}

/// The sum of the words of the last 64 bytes, each shifted left by one bit for every byte after it.
fn window_hash(bytes: &[u8]) -> u64 {
    let window = &bytes[bytes.len() - WINDOW..];
    let words = window.iter().rev().enumerate();
    words.fold(0, |hash, (age, &byte)| hash.wrapping_add(GEAR[byte as usize] << age))
}

/// Cuts all bytes; their end ends the last chunk and its parent.
pub(crate) fn cut(bytes: &[u8], level: Level, parent: Level) -> Vec<Chunk> {
    let (mut chunks, mut start, mut parent_start) = (Vec::new(), 0, 0);
    for end in 1..=bytes.len() {
        let length = end - start;
        if length < level.minimum as usize && end < bytes.len() {
            continue;
        }
        let hash = if length < WINDOW { u64::MAX } else { window_hash(&bytes[..end]) };
        let matches = length >= level.minimum as usize && hash < level.limit();
        if !matches && length < level.maximum as usize && end < bytes.len() {
            continue;
        }
        let parent_length = end - parent_start;
        let parent_matches =
            matches && hash < parent.limit() && parent_length >= parent.minimum as usize;
        let no_room = parent_length + level.maximum as usize > parent.maximum as usize;
        let parent_end = parent_matches || no_room || end == bytes.len();
        chunks.push(Chunk { end, hash, parent_end });
        start = end;
        if parent_end {
            parent_start = end;
        }
    }
    chunks
}

/// The units of an object.
pub(crate) fn units(object: &[u8]) -> Vec<Chunk> {
    cut(object, Profile::DEFAULT.unit, Profile::DEFAULT.parent)
}

/// The grains of a unit; their parents are the pieces.
pub(crate) fn grains(unit: &[u8]) -> Vec<Chunk> {
    cut(unit, Profile::DEFAULT.grain, Profile::DEFAULT.piece)
}
