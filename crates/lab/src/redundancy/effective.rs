//! Effective bandwidth over the speed of a link: Wanax's intelligent load shedding (§3.4) as a model of times.
//!
//! The disk and the link work at the same time, so content takes as long as the slower of them. If that is the disk, the
//! smallest hits cross as bytes instead, until both take equally long (algorithm 1). All content is one batch, whose
//! round trip does not count; a chunk that is shed crosses with its name.

use super::counts::Counts;

/// A disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// Seconds of an operation before its first byte.
    pub seek_seconds: f64,
    /// Bytes a second from there.
    pub bytes_a_second: f64,
}

/// Effective bandwidth as a multiple of the link's, which is in bits a second, for content with these counts. `sheds`: with
/// load shedding. `None` without content.
pub fn improvement(
    counts: &Counts,
    link_bits_a_second: f64,
    disk: Disk,
    sheds: bool,
) -> Option<f64> {
    let a_byte = 8.0 / link_bits_a_second;
    let mut link = counts.sent_bytes() as f64 * a_byte;
    let time = |operations: u64, bytes: u64| {
        operations as f64 * disk.seek_seconds + bytes as f64 / disk.bytes_a_second
    };
    let mut reading: f64 = counts.reads.values().map(|it| time(it.operations, it.bytes)).sum();
    for it in counts.reads.values().take_while(|_| sheds) {
        if reading <= link {
            break;
        }
        let (saved, cost) = (time(it.operations, it.bytes), it.bytes as f64 * a_byte);
        // The share of these chunks after which both take equally long.
        let share = ((reading - link) / (saved + cost)).min(1.0);
        reading -= share * saved;
        link += share * cost;
    }
    let bare = counts.bytes as f64 * a_byte;
    (counts.bytes > 0).then(|| bare / link.max(reading))
}
