//! What searching costs and spares, beside ideal caches.

use super::caches::Compared;
use crate::experiment::{Comparison, Estimate, Expectation, Samples, Standing};

const PREDICTED: Standing = Standing::Predicted;

/// The network load without the packets of searches.
pub(super) fn without_searches(samples: &Samples, compared: &Compared) -> Vec<Comparison> {
    let load = |panel, scheme| {
        let [all, searches] =
            ["network_load", "datagrams"].map(|it| samples.values(panel, scheme, 0.0, it));
        all.iter().zip(&searches).map(|(all, searches)| all - searches).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    for panel in samples.panels() {
        for [over, under] in compared.pairs.iter().copied() {
            rows.push(Comparison {
                heading: "network load without packets of searches, schemes compared".to_owned(),
                what: format!("{panel}: {over} over {under}"),
                ours: Estimate::ratio(&load(panel, over), &load(panel, under)),
                unit: "",
                expected: compared.expected(panel, [over, under], "network_load"),
                standing: PREDICTED,
            });
        }
    }
    rows
}

/// Packets, delays and handshakes, and the bytes that the gateway is spared.
pub(super) fn rows(samples: &Samples, compared: &Compared) -> Vec<Comparison> {
    let kinds = [
        ("datagrams", "packets of searches a file", ""),
        ("search_ms_median", "delay of a search, median", "ms"),
        ("search_ms_p99", "delay of a search, 99th percentile", "ms"),
        ("dials", "connections to other routers that requests waited for", ""),
        ("dial_ms_median", "such a wait, median", "ms"),
    ];
    let mut rows = Vec::new();
    for panel in samples.panels() {
        for (column, what, unit) in kinds {
            for scheme in compared.series {
                let ours = samples.mean(panel, scheme, 0.0, column);
                if !ours.mean.is_finite() || ours.mean == 0.0 {
                    continue;
                }
                rows.push(Comparison {
                    heading: "what searching costs".to_owned(),
                    what: format!("{panel}: {scheme}, {what}"),
                    ours,
                    unit,
                    expected: Expectation::Nothing,
                    standing: PREDICTED,
                });
            }
        }
        for scheme in compared.series {
            rows.push(spared(samples, panel, scheme, "over_air_kb", "bytes over the air"));
            rows.push(spared(samples, panel, scheme, "given_kb", "bytes of files"));
        }
    }
    rows
}

/// The share of default's bytes that a scheme spares the gateway.
fn spared(samples: &Samples, panel: &str, scheme: &str, column: &str, what: &str) -> Comparison {
    let of = |scheme| samples.values(panel, scheme, 0.0, column);
    let (ours, default) = (of(scheme), of("default"));
    let spared: Vec<_> =
        ours.iter().zip(&default).map(|(ours, default)| 100.0 * (1.0 - ours / default)).collect();
    Comparison {
        heading: "what the gateway is spared".to_owned(),
        what: format!("{panel}: {scheme}, {what}"),
        ours: Estimate::of(&spared),
        unit: "%",
        expected: Expectation::Nothing,
        standing: PREDICTED,
    }
}

/// What ideal caches would spare the gateway for default's requests.
pub(super) fn notes(samples: &Samples, compared: &Compared) -> Vec<String> {
    let mut notes = Vec::new();
    for panel in samples.panels() {
        let mean = |column| samples.mean(panel, "default", 0.0, column).mean;
        let spared = |column| 100.0 * (1.0 - mean(column) / mean("given_kb"));
        notes.push(format!(
            "{panel}: ideal caches of the same size would spare the gateway {:.0} % of its bytes of files if copies are \
             found on the way only, {:.0} % if each miss finds the nearest copy that is no farther than the gateway, and \
             each router on the path keeps it, {:.0} % if only the access router does",
            spared("way_kb"),
            spared("near_kb"),
            spared("near_end_kb"),
        ));
        let failed: f64 =
            compared.series.iter().flat_map(|it| samples.values(panel, it, 0.0, "failed")).sum();
        if failed > 0.0 {
            notes.push(format!("{panel}: {failed} transfers failed"));
        }
    }
    notes
}
