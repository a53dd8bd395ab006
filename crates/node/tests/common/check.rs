//! What must hold of a node at every step.

use node::Report;

/// What may be in memory above the share for units to be written: pieces that were under way when
/// it was reached.
const PIECES: u64 = 48 * 1024;
/// And what one reader's mending of a hole may take.
const HOLE: u64 = 256 * 1024;
/// And what a peer was allowed to send before memory was short.
const GRANTED: u64 = 256 * 1024;

/// And what each peer may always have read for it.
const UNIT: u64 = 64 * 1024;
/// And the message after which too much waits.
const MESSAGE: u64 = 64 * 1024;

/// Asserts, and says why only if it has to.
pub fn check(holds: bool, why: impl FnOnce() -> String) {
    assert!(holds, "{}", why());
}

/// Asserts that a node with such a budget keeps to it.
pub fn check_memory(report: &Report, memory_bytes: u64) {
    let share = memory_bytes / 8;
    let pinned_max =
        2 * share + HOLE + PIECES * (report.fetches + 2) + GRANTED * report.peers.min(1);
    check(report.pinned_bytes <= pinned_max, || {
        format!("{} bytes are pinned by {} transfers", report.pinned_bytes, report.fetches)
    });
    check(report.hot_bytes <= 2 * share, || "too many hot units".into());
    check(report.early_bytes <= memory_bytes / 32, || "too many early units".into());
    check(report.manifest_bytes <= share, || "too many manifests".into());
    // However short memory is, each peer may have a unit read for it.
    let asked_max = 2 * share + UNIT * report.peers;
    check(report.asked_bytes <= asked_max, || {
        format!("requests of {} peers take {} bytes", report.peers, report.asked_bytes)
    });
    let backlog_max = share.max(1 << 20) + MESSAGE;
    check(report.backlog_bytes <= backlog_max, || format!("{} bytes wait", report.backlog_bytes));
    // Rows that the catalogue does not have yet come on top.
    check(report.row_bytes <= 2 * share, || format!("{} bytes of rows", report.row_bytes));
}
