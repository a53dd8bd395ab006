//! The tables of schemes, transfers and keys. On narrow screens rows become cards, and the cells'
//! `data-label` replaces the table's head.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use report::{chip, text};

use super::source::{self, ServedBy};
use super::stats::{self, Scheme};
use super::{RunResult, Transfer};

/// Bytes of all bodies that reached clients.
pub(super) fn delivered(run: &RunResult) -> u64 {
    run.transfers.iter().fold(0, |sum, transfer| sum.saturating_add(transfer.bytes))
}

/// The schemes with their medians; all are compared with the first.
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

/// A scheme's name in the colour of its curve, marked if some of its runs are invalid.
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
    let seeds: Vec<_> = scheme.runs.iter().map(|run| run.seed.to_string()).collect();
    let ratio = median.zip(first).filter(|(_, first)| *first > 0.0);
    let first_byte = report::stats::median(scheme.transfers().map(|transfer| transfer.ttfb_s));
    let bytes =
        |value: Option<f64>| value.map_or(text::NONE.into(), |value| text::bytes(value as u64));
    [
        seeds.join(", "),
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

/// Who served clients, and the throughput by number of hops; empty without transfers.
pub(super) fn shares(schemes: &[Scheme<'_>]) -> Markup {
    let hops: BTreeSet<_> =
        schemes.iter().flat_map(Scheme::transfers).map(|transfer| transfer.hops).collect();
    let medians = hops.iter().flat_map(|&hops| {
        let hops = text::plural(hops, "hop");
        [format!("{hops}, kbit/s"), format!("{hops}, first byte")]
    });
    let heads: Vec<_> =
        ServedBy::ALL.map(|it| it.name().to_owned()).into_iter().chain(medians).collect();
    html! {
        @if !hops.is_empty() {
            section {
                h2 { "Sources, and medians by hops" }
                div class="scroll" {
                    table class="cards" {
                        thead { tr {
                            th scope="col" { "scheme" }
                            @for head in &heads { th class="n" scope="col" { (head) } }
                        } }
                        tbody {
                            @for (at, scheme) in schemes.iter().enumerate() {
                                tr {
                                    (scheme_name(at, scheme))
                                    @for (head, value) in heads.iter().zip(share_cells(scheme, &hops)) {
                                        td class="n" data-label=(head) { (value) }
                                    }
                                }
                            }
                        }
                    }
                }
                p class="note" {
                    "Shares of the transfers whose file was held by the access router because its own \
                     clients had asked for it (local), or because it had relayed it for others \
                     (ph-local), by a router on the way (remote), by the gateway, by nobody in the mesh. \
                     The first three are hits."
                }
            }
        }
    }
}

fn share_cells(scheme: &Scheme<'_>, hops: &BTreeSet<usize>) -> Vec<String> {
    let shares = source::shares(scheme.transfers());
    let by_hops = stats::by_hops(scheme.transfers());
    let medians = hops.iter().flat_map(|hops| {
        let transfers = by_hops.get(hops).map_or(&[][..], Vec::as_slice);
        let throughput = report::stats::median(transfers.iter().map(|it| it.kbps));
        let first_byte = report::stats::median(transfers.iter().map(|it| it.ttfb_s));
        [text::maybe(throughput), text::seconds(first_byte)]
    });
    let shares =
        ServedBy::ALL.map(|it| shares.get(&it).map_or(text::NONE.into(), |it| text::percent(*it)));
    shares.into_iter().chain(medians).collect()
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
