//! Runs and transfers, for tests.

use super::source::{self, ServedBy};
use super::{Gateway, Radio, RunResult, Transfer};

pub(crate) fn transfer(client: &str, kbps: f64) -> Transfer {
    Transfer {
        client: client.to_owned(),
        hops: 2,
        url: "http://origin/file".to_owned(),
        bytes: 1_000_000,
        ttfb_s: 0.25,
        seconds: 8000.0 / kbps,
        kbps,
        source: Some(ServedBy::Gateway),
        bytes_by_source: [("gateway".to_owned(), 1_000_000)].into(),
        sha256_ok: true,
        error: None,
    }
}

pub(crate) fn run(scheme: &str, seed: u64, transfers: Vec<Transfer>) -> RunResult {
    RunResult {
        scenario: "chain".to_owned(),
        scheme: scheme.to_owned(),
        seed,
        mode: "sim".to_owned(),
        valid: true,
        began_unix_s: 0.0,
        share_by_source: source::shares(&transfers),
        transfers,
        gateway: Gateway {
            bytes_from_origin: 1_000_000,
            bytes_over_air: 2_000_000,
            ..Gateway::default()
        },
        radio: Radio { packets_per_file: 1234.0, ..Radio::default() },
        wall_seconds: 3.5,
    }
}
