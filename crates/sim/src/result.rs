//! What a run gave: the JSON that every driver of a scenario writes, and that reports are made of.

use std::collections::BTreeMap;

use report::stats::median;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod fixtures;
pub mod page;
pub mod source;
mod stats;
mod tables;

use source::ServedBy;

/// The schema of a result, with where it comes from beside it: `docs/schema/run-1.json`.
pub const SCHEMA: &str = "hearsay/run/1";

/// One run of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// Who intercepts and caches: `end-to-end`, `default`, `thcp`, `ph-thcp`, `ditto`.
    pub scheme: String,
    /// Losses, back-off, order and content came from here.
    pub seed: u64,
    /// `lab` (real time, real daemons) or `sim` (virtual time).
    pub mode: String,
    /// Whether the medium kept up with the clock; always so in virtual time.
    pub valid: bool,
    /// When the first request could go out, in seconds since 1970: what captures show before is how routers
    /// met.
    #[serde(default)]
    pub began_unix_s: f64,
    /// In the order in which they began.
    pub transfers: Vec<Transfer>,
    /// The share of the transfers that each source had; those that failed are left out.
    pub share_by_source: BTreeMap<ServedBy, f64>,
    /// What the gateway carried.
    pub gateway: Gateway,
    /// What the air carried.
    pub radio: Radio,
    /// How long the run took, with building up.
    pub wall_seconds: f64,
}

impl RunResult {
    /// The median of the transfers' throughputs, in kbit/s; 0 without transfers.
    pub fn median_kbps(&self) -> f64 {
        median(self.transfers.iter().map(|transfer| transfer.kbps)).unwrap_or(0.0)
    }

    /// The same for clients that are so many hops from the gateway.
    pub fn median_kbps_by_hops(&self) -> BTreeMap<usize, f64> {
        stats::by_hops(&self.transfers)
            .into_iter()
            .filter_map(|(hops, transfers)| {
                Some((hops, median(transfers.iter().map(|it| it.kbps))?))
            })
            .collect()
    }

    /// The share of transfers that spared the gateway.
    pub fn hit_share(&self) -> f64 {
        source::hits(&self.share_by_source)
    }
}

/// One client's download.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// The access router that the client is wired to.
    pub client: String,
    /// How many hops that is from the gateway.
    pub hops: usize,
    /// What it asked for.
    pub url: String,
    /// Bytes of the body that arrived.
    pub bytes: u64,
    /// From the start to the first byte of the response.
    pub ttfb_s: f64,
    /// From the start to the last byte.
    pub seconds: f64,
    /// `bytes` over `seconds`, in kbit/s.
    pub kbps: f64,
    /// Who had what it got; not of transfers that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ServedBy>,
    /// Where the bytes came from: `local`, `ph-local`, `remote`, `gateway`, `origin`, `overheard`,
    /// `repaired` (overheard, of units of which a peer sent the rest).
    pub bytes_by_source: BTreeMap<String, u64>,
    /// Whether the body was what the origin has.
    pub sha256_ok: bool,
    /// Why it failed, if it did: then the body is not whole, rather than wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What the gateway carried during the transfers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gateway {
    /// Bytes of IP packets that came from the origin over the uplink.
    pub bytes_from_origin: u64,
    /// Bytes of 802.11 frames that the gateway sent, repetitions and acknowledgements counted.
    pub bytes_over_air: u64,
    /// Units that it cut of what came from the origin.
    #[serde(default)]
    pub units_cut: u64,
}

/// What the air carried during the transfers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Radio {
    /// What holds an idle receiver, `lock` or `nolock`, as the scenario's key says; no figure means
    /// anything without.
    #[serde(default)]
    pub receiver: String,
    /// What decides whether a frame arrives, `capture` or `bit-error`.
    #[serde(default)]
    pub reception: String,
    /// 802.11 data frames, repetitions included.
    pub data_frames: u64,
    /// 802.11 control frames: acknowledgements.
    pub control_frames: u64,
    /// Sum of the durations of all frames.
    pub airtime_seconds: f64,
    /// Network load: IP packets that were sent, at all hops, TCP's acknowledgements counted, over the
    /// number of transfers.
    pub packets_per_file: f64,
    /// Packets of the routing protocol that were sent; they are not in `packets_per_file`.
    pub routing_packets: u64,
    /// How late the medium acted, in milliseconds, at the 99th percentile; 0 in virtual time.
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
