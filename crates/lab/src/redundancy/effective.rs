//! Effective bandwidth over the speed of a link: Wanax's intelligent load shedding (§3.4) as a model of times.
//!
//! The disk and the link work at the same time, so content takes as long as the slower of them. If that is the disk, the
//! smallest hits cross as bytes instead, until both take equally long (algorithm 1). All content is one batch, whose
//! round trip does not count. Names cross before the receiver decides, so a chunk that is shed crosses with its name; the
//! paper's figure 10, where all schemes come down to the link's speed and not below, does not count such names.

use super::counts::{Counts, NAME_LEN};

/// A disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// Seconds of an operation before its first byte.
    pub seek_seconds: f64,
    /// Bytes a second from there.
    pub bytes_a_second: f64,
}

/// What is done while the disk is slower than the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shedding {
    /// Nothing: all hits are read.
    None,
    /// The smallest hits cross as bytes.
    Chunks,
    /// The same, and neither a miss nor what is shed has a name on the link.
    ChunksAndNames,
}

/// Effective bandwidth as a multiple of the link's, which is in bits a second, for content with these counts. `None` without
/// content.
pub fn improvement(
    counts: &Counts,
    link_bits_a_second: f64,
    disk: Disk,
    shedding: Shedding,
) -> Option<f64> {
    let a_byte = 8.0 / link_bits_a_second;
    let name = if shedding == Shedding::ChunksAndNames { NAME_LEN } else { 0 };
    let mut link = (counts.sent_bytes() - name * counts.misses) as f64 * a_byte;
    let time = |operations: u64, bytes: u64| {
        operations as f64 * disk.seek_seconds + bytes as f64 / disk.bytes_a_second
    };
    let mut reading: f64 = counts.reads.values().map(|it| time(it.operations, it.bytes)).sum();
    for it in counts.reads.values().take_while(|_| shedding != Shedding::None) {
        if reading <= link {
            break;
        }
        let saved = time(it.operations, it.bytes);
        // Negative where chunks are shorter than their names.
        let cost = (it.bytes as f64 - (name * it.chunks) as f64) * a_byte;
        // The share of these chunks after which both take equally long.
        let share = ((reading - link) / (saved + cost)).min(1.0);
        reading -= share * saved;
        link += share * cost;
    }
    let bare = counts.bytes as f64 * a_byte;
    (counts.bytes > 0).then(|| bare / link.max(reading))
}
