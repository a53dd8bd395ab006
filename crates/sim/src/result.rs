//! The result of a run: the JSON that simulator and lab write, and that pages are made from.

use std::collections::BTreeMap;

use node::uplink::PairReport;
use report::stats::median;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod fixtures;
pub mod page;
pub mod pair;
mod saving;
pub mod source;
mod sources;
mod stats;
mod tables;

use source::ServedBy;

/// Name of the schema of a result with its provenance: `docs/schema/run-1.json`.
pub const SCHEMA: &str = "hearsay/run/1";

/// The result of one run of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// The scheme, which says which routers intercept and cache: `end-to-end`, `default`, `thcp`, `ph-thcp`,
    /// `ditto`.
    pub scheme: String,
    /// The seed of losses, back-off, the order of requests, and content.
    pub seed: u64,
    /// `lab` (real time, real daemons) or `sim` (virtual time).
    pub mode: String,
    /// Whether the medium kept up with the clock; always true in virtual time.
    pub valid: bool,
    /// When the first request could go out, in seconds since 1970. Captured frames before that belong to
    /// routers meeting their peers.
    #[serde(default)]
    pub began_unix_s: f64,
    /// All transfers, in the order in which they began.
    pub transfers: Vec<Transfer>,
    /// The share of the transfers that each source served, without failed transfers.
    pub share_by_source: BTreeMap<ServedBy, f64>,
    /// What passed through the gateway.
    pub gateway: Gateway,
    /// What was sent over the air.
    pub radio: Radio,
    /// Duration of the run with its set-up, in seconds of wall-clock time.
    pub wall_seconds: f64,
}

impl RunResult {
    /// The median of the transfers' throughputs, in kbit/s; 0 without transfers.
    pub fn median_kbps(&self) -> f64 {
        median(self.transfers.iter().map(|transfer| transfer.kbps)).unwrap_or(0.0)
    }

    /// The median throughput in kbit/s by the client's number of hops from the gateway.
    pub fn median_kbps_by_hops(&self) -> BTreeMap<usize, f64> {
        stats::by_hops(&self.transfers)
            .into_iter()
            .filter_map(|(hops, transfers)| {
                Some((hops, median(transfers.iter().map(|it| it.kbps))?))
            })
            .collect()
    }

    /// The share of transfers served without the gateway.
    pub fn hit_share(&self) -> f64 {
        source::hits(&self.share_by_source)
    }
}

/// One download by a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// The access router that the client is wired to.
    pub client: String,
    /// Number of hops from that router to the gateway.
    pub hops: usize,
    /// The requested URL.
    pub url: String,
    /// Bytes of the body that arrived.
    pub bytes: u64,
    /// Seconds from the start to the first byte of the response.
    pub ttfb_s: f64,
    /// Seconds from the start to the last byte.
    pub seconds: f64,
    /// `bytes` over `seconds`, in kbit/s.
    pub kbps: f64,
    /// Who served it; `None` for a failed transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ServedBy>,
    /// Bytes by source: `local`, `ph-local`, `remote`, `gateway`, `origin`, `overheard`, `repaired` (the
    /// overheard part of units whose rest a peer sent).
    pub bytes_by_source: BTreeMap<String, u64>,
    /// Whether the body equals the origin's file.
    pub sha256_ok: bool,
    /// Why it failed, if it did. A failed transfer has an incomplete body, not a wrong one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What passed through the gateway during the transfers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gateway {
    /// Bytes of IP packets that came from the origin over the uplink.
    pub bytes_from_origin: u64,
    /// Bytes of IP packets that went the other way, if the uplink has a far end: acknowledgements and requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_to_origin: Option<u64>,
    /// Bytes of the 802.11 frames that the gateway sent, including retransmissions and acknowledgements.
    pub bytes_over_air: u64,
    /// Number of units that it cut from the origin's responses.
    #[serde(default)]
    pub units_cut: u64,
    /// What its end of the uplink's pair has counted since it began, if the uplink has a far end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairReport>,
}

/// What was sent over the air during the transfers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Radio {
    /// What holds an idle receiver, `lock` or `nolock`, as the scenario's key `receiver` says. Figures of the
    /// two are not comparable.
    #[serde(default)]
    pub receiver: String,
    /// What decides whether a frame is received, `capture` or `bit-error`.
    #[serde(default)]
    pub reception: String,
    /// 802.11 data frames, including retransmissions.
    pub data_frames: u64,
    /// 802.11 control frames: acknowledgements.
    pub control_frames: u64,
    /// Sum of the durations of all frames, in seconds.
    pub airtime_seconds: f64,
    /// Network load: IP packets sent at all hops, including TCP acknowledgements, per transfer.
    pub packets_per_file: f64,
    /// Packets that stations lost above their MACs, which had acknowledged them. `None` if the key
    /// `loss_above_mac` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_above_mac: Option<u64>,
    /// Packets of the routing protocol that were sent. `packets_per_file` does not include them.
    pub routing_packets: u64,
    /// How late the medium acted: the 99th percentile in milliseconds; 0 in virtual time.
    pub late_ms_p99: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rates: &[f64]) -> RunResult {
        let transfer = |kbps: &f64| Transfer {
            client: "1".to_owned(),
            hops: 1,
            url: String::new(),
            bytes: 0,
            ttfb_s: 0.0,
            seconds: 0.0,
            kbps: *kbps,
            source: Some(ServedBy::Remote),
            bytes_by_source: BTreeMap::new(),
            sha256_ok: true,
            error: None,
        };
        RunResult {
            scenario: "chain".to_owned(),
            scheme: "default".to_owned(),
            seed: 1,
            mode: "lab".to_owned(),
            valid: true,
            began_unix_s: 0.0,
            transfers: rates.iter().map(transfer).collect(),
            share_by_source: BTreeMap::from([(ServedBy::Remote, 1.0)]),
            gateway: Gateway::default(),
            radio: Radio::default(),
            wall_seconds: 0.0,
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        for (rates, median) in
            [(&[][..], 0.0), (&[3.0], 3.0), (&[9.0, 1.0], 5.0), (&[9.0, 1.0, 2.0], 2.0)]
        {
            assert_eq!(run(rates).median_kbps(), median);
        }
    }

    #[test]
    fn medians_are_told_apart_by_hops() {
        let mut result = run(&[9.0, 1.0, 2.0]);
        result.transfers[0].hops = 2;
        assert_eq!(result.median_kbps_by_hops(), BTreeMap::from([(1, 1.5), (2, 9.0)]));
    }

    #[test]
    fn results_read_back_what_was_written() {
        let mut result = run(&[1.5]);
        let text = serde_json::to_string(&result).unwrap();
        assert!(!text.contains("error"), "only failed transfers have one");
        assert_eq!(serde_json::from_str::<RunResult>(&text).unwrap(), result);
        result.transfers[0].error = Some("slow".to_owned());
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<RunResult>(&text).unwrap(), result);
    }
}
