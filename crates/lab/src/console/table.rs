//! A run's result as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sim::result::source::{OVERHEARD, ServedBy};
use sim::result::{RunResult, Transfer};

/// The most important figures; `medium` is a sentence on the medium.
pub fn page(result: &RunResult, medium: &str) -> String {
    let mut page = format!(
        "{:<8} {:>4} {:<26} {:>10} {:>8} {:>8} {:>8}  {:<8} sha256\n",
        "router", "hops", "url", "bytes", "ttfb s", "seconds", "kbit/s", "source"
    );
    for transfer in &result.transfers {
        let _ = writeln!(page, "{}", line(transfer));
    }
    let radio = &result.radio;
    let lines = [
        ("median", format!("{:.0} kbit/s{}", result.median_kbps(), by_hops(result))),
        ("source", shares(result) + &bytes(result)),
        ("origin", format!("{} bytes over the uplink", result.gateway.bytes_from_origin)),
        ("gateway", format!("{} bytes into the air", result.gateway.bytes_over_air)),
        (
            "air",
            format!(
                "{} data and {} control frames, {:.2} s; {:.0} packets a file{}",
                radio.data_frames,
                radio.control_frames,
                radio.airtime_seconds,
                radio.packets_per_file,
                radio
                    .lost_above_mac
                    .map_or(String::new(), |it| format!(", {it} lost above the MAC"))
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

/// The median throughput by the clients' number of hops, if that differs.
fn by_hops(result: &RunResult) -> String {
    let medians = result.median_kbps_by_hops();
    let part = |(hops, kbps): (&usize, &f64)| {
        format!("; {hops} hop{}: {kbps:.0}", if *hops == 1 { "" } else { "s" })
    };
    if medians.len() > 1 { medians.iter().map(part).collect() } else { String::new() }
}

/// The shares of transfers by source, and the share of hits.
fn shares(result: &RunResult) -> String {
    let part = |(source, share): (&ServedBy, &f64)| format!("{source} {:.0} %", 100.0 * share);
    let parts: Vec<_> = result.share_by_source.iter().map(part).collect();
    format!("{} (hits in the mesh: {:.0} %)", parts.join(", "), 100.0 * result.hit_share())
}

/// The shares of bytes by source, if some were overheard.
fn bytes(result: &RunResult) -> String {
    let mut sums = BTreeMap::<&str, u64>::new();
    for (source, bytes) in result.transfers.iter().flat_map(|it| &it.bytes_by_source) {
        *sums.entry(source).or_default() += bytes;
    }
    let all = sums.values().sum::<u64>().max(1) as f64;
    let part =
        |(source, bytes): (&&str, &u64)| format!("{source} {:.0} %", 100.0 * *bytes as f64 / all);
    match sums.contains_key(OVERHEARD) {
        true => format!("; bytes: {}", sums.iter().map(part).collect::<Vec<_>>().join(", ")),
        false => String::new(),
    }
}

fn line(transfer: &Transfer) -> String {
    format!(
        "{:<8} {:>4} {:<26} {:>10} {:>8.3} {:>8.3} {:>8.0}  {:<8} {}",
        transfer.client,
        transfer.hops,
        transfer.url,
        transfer.bytes,
        transfer.ttfb_s,
        transfer.seconds,
        transfer.kbps,
        transfer.source.map_or("-", ServedBy::name),
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
