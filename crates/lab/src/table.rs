//! A run's result as text.

use std::fmt::Write as _;

use sim::result::{RunResult, Transfer};

use crate::air::Snapshot;
use crate::verdict;

/// Everything that a person wants to know first; `medium` is what [`medium`] says.
pub fn page(result: &RunResult, medium: &str) -> String {
    let mut page = format!(
        "{:<8} {:<26} {:>10} {:>8} {:>8} {:>8}  {:<8} sha256\n",
        "router", "url", "bytes", "ttfb s", "seconds", "kbit/s", "source"
    );
    for transfer in &result.transfers {
        let _ = writeln!(page, "{}", line(transfer));
    }
    let radio = &result.radio;
    let lines = [
        ("median", format!("{:.0} kbit/s", result.median_kbps())),
        ("origin", format!("{} bytes over the uplink", result.gateway.bytes_from_origin)),
        ("gateway", format!("{} bytes into the air", result.gateway.bytes_over_air)),
        (
            "air",
            format!(
                "{} data and {} control frames, {:.2} s; {:.0} packets a file",
                radio.data_frames,
                radio.control_frames,
                radio.airtime_seconds,
                radio.packets_per_file
            ),
        ),
        ("medium", medium.to_owned()),
    ];
    page.push('\n');
    for (name, text) in lines {
        let _ = writeln!(page, "{name:<8} {text}");
    }
    page
}

/// How the medium kept up between two snapshots.
pub fn medium(snapshots: [&Snapshot; 2]) -> String {
    let [before, after] = snapshots;
    format!(
        "{:.3} ms late (p99), {:.1} % of a processor{}",
        after.late.since(&before.late).quantile(0.99).as_secs_f64() * 1e3,
        verdict::busy_share(snapshots) * 100.0,
        if after.realtime { ", SCHED_FIFO" } else { ", without SCHED_FIFO" }
    )
}

/// Why a run does not count.
pub fn late(result: &RunResult) -> String {
    format!(
        "this run is NOT VALID: the medium was late by {:.2} ms (p99), or stood still for a while. \
         Let nothing else run here, or run as root, where SCHED_FIFO is allowed",
        result.radio.late_ms_p99
    )
}

fn line(transfer: &Transfer) -> String {
    let sources = transfer.bytes_by_source.keys().cloned().collect::<Vec<_>>().join("+");
    format!(
        "{:<8} {:<26} {:>10} {:>8.3} {:>8.3} {:>8.0}  {:<8} {}",
        transfer.client,
        transfer.url,
        transfer.bytes,
        transfer.ttfb_s,
        transfer.seconds,
        transfer.kbps,
        sources,
        verdict(transfer)
    )
}

fn verdict(transfer: &Transfer) -> String {
    match &transfer.error {
        Some(error) => format!("FAILED: {error}"),
        None if transfer.sha256_ok => "ok".to_owned(),
        None => "WRONG".to_owned(),
    }
}
