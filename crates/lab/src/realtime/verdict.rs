//! The result of a run, from its transfers and the medium's counters before and after them.

use std::time::{Duration, SystemTime};

use radio::Report;
use sim::result::source;
use sim::result::{Gateway, Radio, RunResult, Transfer};
use sim::scenario::{FarEnd, Scenario};
use wire::Scheme;

use super::air::Snapshot;
use super::routers::Counted;
use crate::cli::Run;
use crate::failure::Failure;

/// Largest lateness at the 99th percentile of a medium that still behaves as the scenario says: a third of
/// the airtime of a full frame and its acknowledgement at 11 Mbit/s.
const LATE_MAX: Duration = Duration::from_micros(500);

/// Longest pause: more, and TCP takes packets for lost.
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// The result that is written as JSON.
pub fn result(
    args: &Run,
    scheme: Scheme,
    scenario: &Scenario,
    transfers: Vec<Transfer>,
    [before, after]: [&Snapshot; 2],
    counted: Counted,
    wall: Duration,
) -> RunResult {
    // The counters also cover the time before the transfers, which does not count.
    let late = after.late.since(&before.late);
    let (late, longest) = (late.quantile(0.99), late.quantile(1.0));
    let sum = |count: fn(&Report) -> u64| {
        let total = |snapshot: &Snapshot| snapshot.stations.iter().map(count).sum::<u64>();
        total(after) - total(before)
    };
    let of_gateway = |snapshot: &Snapshot| snapshot.stations[scenario.gateway].mac_bytes_sent;
    let packets = after.ip_packets - before.ip_packets;
    RunResult {
        scenario: scenario.name.clone(),
        scheme: scheme.name().to_owned(),
        seed: args.seed,
        mode: "lab".to_owned(),
        valid: late <= LATE_MAX && longest <= PAUSE_MAX && after.uncaptured == 0,
        began_unix_s: unix_seconds(before.date),
        gateway: Gateway {
            bytes_from_origin: after.from_origin - before.from_origin,
            bytes_to_origin: (scenario.far == FarEnd::Pair)
                .then(|| after.to_origin - before.to_origin),
            bytes_over_air: of_gateway(after) - of_gateway(before),
            units_cut: counted.units_cut,
            pair: counted.pair,
        },
        radio: Radio {
            receiver: scenario.key("receiver").to_owned(),
            reception: scenario.key("reception").to_owned(),
            data_frames: sum(|report| report.data_frames),
            control_frames: sum(|report| report.control_frames),
            airtime_seconds: sum(|report| report.airtime.as_nanos() as u64) as f64 / 1e9,
            packets_per_file: packets as f64 / transfers.len().max(1) as f64,
            lost_above_mac: (scenario.loss_above_mac > 0.0)
                .then(|| after.lost_above_mac - before.lost_above_mac),
            routing_packets: after.routing_packets - before.routing_packets,
            late_ms_p99: late.as_secs_f64() * 1e3,
        },
        share_by_source: source::shares(&transfers),
        transfers,
        wall_seconds: wall.as_secs_f64(),
    }
}

fn unix_seconds(date: SystemTime) -> f64 {
    date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Fails if transfers failed; wrong bytes are the worse failure.
pub fn judge(result: &RunResult) -> Result<(), Failure> {
    let all = result.transfers.len();
    let failed = result.transfers.iter().filter(|it| it.error.is_some()).count();
    let wrong = result.transfers.iter().filter(|it| it.error.is_none() && !it.sha256_ok).count();
    if wrong > 0 {
        Err(Failure::wrong_bytes(format!("{wrong} of {all} transfers have wrong bytes")))
    } else if failed > 0 {
        Err(Failure::failed(format!("{failed} of {all} transfers failed")))
    } else {
        Ok(())
    }
}

/// The share of a processor that the medium used between two snapshots.
pub fn busy_share([before, after]: [&Snapshot; 2]) -> f64 {
    let busy = after.busy.saturating_sub(before.busy).as_secs_f64();
    busy / (after.at - before.at).as_secs_f64().max(1e-9)
}

/// How well the medium kept up between two snapshots.
pub fn medium(snapshots: [&Snapshot; 2]) -> String {
    let [before, after] = snapshots;
    format!(
        "{:.3} ms late (p99), {:.1} % of a processor{}",
        after.late.since(&before.late).quantile(0.99).as_secs_f64() * 1e3,
        busy_share(snapshots) * 100.0,
        if after.realtime { ", SCHED_FIFO" } else { ", without SCHED_FIFO" }
    )
}

/// Why a run does not count.
pub fn late(result: &RunResult) -> String {
    format!(
        "this run is NOT VALID: the medium was late by {:.2} ms (p99), or stood still for a while, or frames \
         were not captured. Let less run here, or run as root, where SCHED_FIFO is allowed",
        result.radio.late_ms_p99
    )
}
