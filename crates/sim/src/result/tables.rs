//! The tables of schemes, hops and transfers. On narrow screens rows become cards, in which the `data-label` of a
//! cell stands for the head of its column.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use report::{chip, text};

use super::source;
use super::stats::{self, Scheme};
use super::{RunResult, Transfer};

/// Bytes of all bodies that reached clients.
pub(super) fn delivered(run: &RunResult) -> u64 {
    run.transfers.iter().fold(0, |sum, transfer| sum.saturating_add(transfer.bytes))
}

/// The schemes with their medians. The others are compared with the first.
pub(super) fn schemes(schemes: &[Scheme<'_>]) -> Markup {
    let medians: Vec<_> =
        schemes.iter().map(|scheme| report::stats::median(scheme.throughputs())).collect();
    let first = medians.first().copied().flatten();
    let heads = [
        "seeds",
        "transfers",
        "kbit/s",
        "vs first",
        "first byte",
        "hits",
        "from origin",
        "gateway to air",
        "delivered",
        "packets per file",
        "airtime",
    ];
    html! {
        div class="scroll" {
            table class="cards" {
                thead { tr {
                    th scope="col" { "scheme" }
                    @for head in heads { th class="n" scope="col" { (head) } }
                } }
                tbody {
                    @for (at, (scheme, &median)) in schemes.iter().zip(&medians).enumerate() {
                        tr {
                            (scheme_name(at, scheme))
                            @for (head, value) in heads.into_iter().zip(scheme_cells(scheme, median, first)) {
                                td class="n" data-label=(head) { (value) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The name of a scheme with the colour of its curve, and a mark if not all its runs are valid.
fn scheme_name(at: usize, scheme: &Scheme<'_>) -> Markup {
    let invalid = scheme.runs.iter().filter(|run| !run.valid).count();
    html! {
        th class="key" scope="row" {
            (chip(at))
            " " (text::clean(scheme.name))
            @if invalid > 0 { " " span class="bad" { "✗ " (invalid) " not valid" } }
        }
    }
}

fn scheme_cells(scheme: &Scheme<'_>, median: Option<f64>, first: Option<f64>) -> [String; 11] {
    let seeds: BTreeSet<_> = scheme.runs.iter().map(|run| run.seed).collect();
    let ratio = median.zip(first).filter(|(_, first)| *first > 0.0);
    let first_byte = report::stats::median(scheme.transfers().map(|transfer| transfer.ttfb_s));
    let bytes =
        |value: Option<f64>| value.map_or(text::NONE.into(), |value| text::bytes(value as u64));
    [
        text::ranges(&seeds.into_iter().collect::<Vec<_>>()),
        text::grouped(scheme.transfers().count() as u64),
        text::maybe(median),
        ratio.map_or(text::NONE.into(), |(median, first)| {
            format!("× {}", text::number(median / first))
        }),
        text::seconds(first_byte),
        text::percent(source::hits(&source::shares(scheme.transfers()))),
        bytes(scheme.median_of(|run| run.gateway.bytes_from_origin as f64)),
        bytes(scheme.median_of(|run| run.gateway.bytes_over_air as f64)),
        bytes(scheme.median_of(|run| delivered(run) as f64)),
        text::maybe(scheme.median_of(|run| run.radio.packets_per_file)),
        text::with_unit(scheme.median_of(|run| run.radio.airtime_seconds), "s"),
    ]
}

/// Medians by the distance of clients from the gateway: a row for each scheme at each distance, so that the table
/// stays narrow on long chains.
pub(super) fn by_hops(schemes: &[Scheme<'_>]) -> Markup {
    let each: Vec<_> = schemes.iter().map(|it| stats::by_hops(it.transfers())).collect();
    let hops: BTreeSet<_> = each.iter().flat_map(BTreeMap::keys).collect();
    html! {
        @if !hops.is_empty() {
            section {
                h2 { "Medians by hops from the gateway" }
                div class="scroll" {
                    table class="cards" {
                        thead { tr {
                            th scope="col" { "scheme" }
                            @for head in HOPS_HEADS { th class="n" scope="col" { (head) } }
                        } }
                        tbody {
                            @for hops in hops {
                                @for (at, (scheme, by_hops)) in schemes.iter().zip(&each).enumerate() {
                                    @if let Some(transfers) = by_hops.get(hops) {
                                        (hops_row(at, scheme, *hops, transfers))
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

const HOPS_HEADS: [&str; 4] = ["hops", "transfers", "kbit/s", "first byte"];

fn hops_row(at: usize, scheme: &Scheme<'_>, hops: usize, transfers: &[&Transfer]) -> Markup {
    let median =
        |of: fn(&Transfer) -> f64| report::stats::median(transfers.iter().map(|it| of(it)));
    let cells = [
        hops.to_string(),
        text::grouped(transfers.len() as u64),
        text::maybe(median(|it| it.kbps)),
        text::seconds(median(|it| it.ttfb_s)),
    ];
    html! {
        tr {
            (scheme_name(at, scheme))
            @for (head, value) in HOPS_HEADS.into_iter().zip(cells) {
                td class="n" data-label=(head) { (value) }
            }
        }
    }
}

/// Every transfer, in the order in which they began.
pub(super) fn transfers(transfers: &[Transfer]) -> Markup {
    if transfers.is_empty() {
        return html! { p class="note" { "No transfers." } };
    }
    html! {
        div class="scroll" {
            table class="cards" {
                thead { tr {
                    th scope="col" { "client" }
                    th scope="col" { "URL" }
                    @for head in ["hops", "bytes", "first byte", "took", "kbit/s"] { th class="n" scope="col" { (head) } }
                    th scope="col" { "bytes came from" }
                    th scope="col" { "sha256" }
                } }
                tbody { @for transfer in transfers { (row(transfer)) } }
            }
        }
    }
}

fn row(transfer: &Transfer) -> Markup {
    html! {
        tr class=[(!transfer.sha256_ok).then_some("wrong")] {
            th class="key" scope="row" { (text::clean(&transfer.client)) }
            td class="url" { (text::clean(&transfer.url)) }
            td class="n" data-label="hops" { (transfer.hops) }
            td class="n" data-label="bytes" { (text::grouped(transfer.bytes)) }
            td class="n" data-label="first byte" { (text::seconds(Some(transfer.ttfb_s))) }
            td class="n" data-label="took" { (text::seconds(Some(transfer.seconds))) }
            td class="n" data-label="kbit/s" { (text::number(transfer.kbps)) }
            td data-label="from" { (sources(&transfer.bytes_by_source)) }
            td data-label="sha256" {
                @if let Some(error) = &transfer.error {
                    span class="bad" { "✗ failed: " (text::clean(error)) }
                } @else if transfer.sha256_ok {
                    span class="good" { "ok" }
                } @else {
                    span class="bad" { "✗ WRONG" }
                }
            }
        }
    }
}

/// The sources of a transfer, the largest first.
fn sources(bytes_by_source: &BTreeMap<String, u64>) -> String {
    let mut sources: Vec<_> = bytes_by_source.iter().filter(|(_, bytes)| **bytes > 0).collect();
    sources.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
    let part = |(source, &bytes): (&String, &u64)| {
        format!("{} {}", text::clean(source), text::bytes(bytes))
    };
    match sources.as_slice() {
        [] => text::NONE.to_owned(),
        [(source, _)] => text::clean(source),
        _ => sources.into_iter().map(part).collect::<Vec<_>>().join(", "),
    }
}
