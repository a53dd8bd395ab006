//! What one flow of a run achieved.

use std::time::Duration;

use serde::Serialize;
use wire::Instant;

use super::flows::{Flow, Kind, Sink, Source};
use super::times::Times;
use crate::net::tcp::{Counters, PhaseTimes};

/// What one flow of a run achieved. What was not measured, because the flow's kind has none of it or because too
/// little arrived, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowOutcome {
    /// The sending router's name.
    pub from: String,
    /// The receiving router's name.
    pub to: String,
    /// `tcp`, `cbr@MBITS`, `vbr@MBITS` or `ssh`.
    pub kind: String,
    /// When it began, in seconds.
    pub starts_s: f64,
    /// When it ended, at the latest with the run, in seconds.
    pub ends_s: f64,
    /// Bytes of payload that arrived; for `ssh`, at both ends.
    pub bytes: u64,
    /// Bytes that arrived before its end, over its own duration, in kbit/s.
    pub kbps: f64,
    /// Number of UDP packets sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_sent: Option<u64>,
    /// Number of UDP packets received. Those that were on their way when the run ended count as lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets_received: Option<u64>,
    /// One-way delays of UDP packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<Spread>,
    /// |(t1 - t2) - (t2 - t3)| over the arrival times of three consecutive packets (WINE, equation 5.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_variation_ms: Option<Spread>,
    /// The sender of a flow over TCP, once its connection has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Sending>,
    /// The exchange of an `ssh` flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh: Option<Typing>,
}

/// What the sender's end of a flow's TCP connection did until the connection ended, at the latest with the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sending {
    /// Bytes of payload up to the largest acknowledgement number received.
    pub acked_bytes: u64,
    /// Time in slow start, in seconds.
    pub slow_start_s: f64,
    /// Time in congestion avoidance, with fast recovery, in seconds.
    pub congestion_avoidance_s: f64,
    /// How often the retransmission timer expired.
    pub timeouts: u64,
    /// How often a fast recovery began.
    pub recoveries: u64,
}

impl Sending {
    /// The figures of a connection.
    pub(super) fn of(counters: Counters, times: PhaseTimes) -> Self {
        Self {
            acked_bytes: counters.acknowledged,
            slow_start_s: times.slow_start.as_secs_f64(),
            congestion_avoidance_s: times.congestion_avoidance.as_secs_f64(),
            timeouts: counters.timeouts,
            recoveries: counters.recoveries,
        }
    }
}

/// Key strokes and their echoes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Typing {
    /// Number of key strokes sent.
    pub keys: u64,
    /// Number of echoes received.
    pub echoes: u64,
    /// Times from key strokes to their echoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echo_ms: Option<Spread>,
}

/// The distribution of times, in milliseconds. The mean is exact, quantiles are to 0.4 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

impl Spread {
    /// The distribution of these times; `None` if there are none.
    pub fn of(times: &Times) -> Option<Self> {
        let quantile = |share| times.quantile_s(share) * 1e3;
        (times.count() > 0).then(|| Self {
            mean: times.mean_s() * 1e3,
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
        })
    }
}

impl FlowOutcome {
    /// Of a flow between routers of these names, whose run lasted until `over`; `tcp` is what its source's
    /// connection did.
    pub(super) fn of(
        flow: &Flow,
        [from, to]: [&str; 2],
        source: &Source,
        sink: &Sink,
        tcp: Option<Sending>,
        over: Instant,
    ) -> Self {
        let is_udp = !matches!(flow.kind, Kind::Tcp | Kind::Ssh);
        let typist = source.typist();
        // What has come back is at the source; its echoes end with the run, and not with the flow.
        let back = typist.map_or(0, |it| it.bytes);
        let seconds = |at: Instant| (at - Instant::ZERO).as_secs_f64();
        Self {
            from: from.to_owned(),
            to: to.to_owned(),
            kind: flow.kind.to_string(),
            starts_s: seconds(flow.starts),
            ends_s: seconds(flow.ended_at(over)),
            bytes: sink.bytes + back,
            kbps: kbps(sink.bytes_in_time + back, flow.lasted(over)),
            packets_sent: is_udp.then_some(source.sent),
            packets_received: is_udp.then_some(sink.packets),
            delay_ms: Spread::of(&sink.delays),
            delay_variation_ms: Spread::of(sink.arrivals.variations()),
            tcp,
            ssh: typist.map(|it| Typing {
                keys: it.keys,
                echoes: it.echoes,
                echo_ms: Spread::of(&it.delays),
            }),
        }
    }
}

/// A rate in kbit/s; 0 over no time.
pub(super) fn kbps(bytes: u64, lasts: Duration) -> f64 {
    if lasts.is_zero() { 0.0 } else { bytes as f64 * 8.0 / lasts.as_secs_f64() / 1e3 }
}
