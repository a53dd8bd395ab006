//! The results of runs as a page: head, figures, a map of the mesh, the distribution of throughputs, every
//! transfer. The same results give the same bytes.
//!
//! Start at [`html()`] and [`compare`].

use std::collections::BTreeMap;
use std::slice;

use maud::{Markup, PreEscaped, html};
use report::page::{document, keys, tile};
use report::stats::median;
use report::{Ground, cdf, map, text};

use super::source::ServedBy;
use super::stats::{self, Scheme};
use super::{RunResult, pair, saving, sources, tables};

/// One run as a page.
pub fn html(result: &RunResult, ground: &Ground) -> String {
    compare(slice::from_ref(result), ground)
}

/// A page of several runs of one scenario. Seeds of a scheme are pooled; schemes stand side by side, from the
/// one without caches to the one with most.
pub fn compare(results: &[RunResult], ground: &Ground) -> String {
    let schemes = stats::by_scheme(results);
    let title = title(results);
    let main = html! {
        (head(&title, results, &schemes, ground))
        (warnings(results))
        (figures(results, &schemes))
        (pictures(&schemes, ground))
        (tables::by_hops(&schemes))
        (transfers(results, &schemes))
        (keys(&ground.keys))
    };
    document(&title, &main)
}

/// The scenario's name; all names if they differ.
fn title(results: &[RunResult]) -> String {
    let names = distinct(results.iter().map(|run| run.scenario.as_str()));
    if names.is_empty() { "No runs".to_owned() } else { text::clean(&names.join(" + ")) }
}

/// Each text once, in the order of first appearance.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for text in texts {
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen
}

fn head(title: &str, results: &[RunResult], schemes: &[Scheme<'_>], ground: &Ground) -> Markup {
    let names: Vec<_> = schemes.iter().map(|scheme| scheme.name).collect();
    let modes = distinct(results.iter().map(|run| run.mode.as_str()));
    html! {
        header {
            h1 { (title) }
            @if let Some(sentence) = saving::sentence(schemes) { p class="lead" { (sentence) } }
            p class="facts" {
                @if let [run] = results {
                    (fact("scheme", &run.scheme))
                    (fact("seed", &run.seed.to_string()))
                } @else if !results.is_empty() {
                    (fact("schemes", &names.join(", ")))
                    (fact("runs", &text::grouped(results.len() as u64)))
                }
                @if !modes.is_empty() { (fact("mode", &modes.join(", "))) }
                (validity(results))
            }
            @if !ground.description.is_empty() {
                p class="about" { (text::clean(&ground.description)) }
            }
        }
    }
}

fn fact(name: &str, value: &str) -> Markup {
    html! { span class="fact" { span class="of" { (name) } " " b { (text::clean(value)) } } " " }
}

fn validity(results: &[RunResult]) -> Markup {
    let invalid = results.iter().filter(|run| !run.valid).count();
    html! {
        @if invalid > 0 && results.len() > 1 {
            span class="fact bad" { "✗ " (invalid) " of " (text::plural(results.len(), "run")) " not valid" }
        } @else if invalid > 0 {
            span class="fact bad" { "✗ not valid" }
        } @else if !results.is_empty() {
            span class="fact good" { "✓ valid" }
        }
    }
}

/// Warnings, before the figures that they make doubtful.
fn warnings(results: &[RunResult]) -> Markup {
    let transfers = |count: usize, run: &RunResult| {
        format!("{count} of {}", text::plural(run.transfers.len(), "transfer"))
    };
    html! {
        (warning(
            results,
            |run| !run.valid,
            "Not valid: the medium was late.",
            "It did not keep up with the clock, so these figures tell of the machine, not of the \
             scheme. Run it again on a machine with less to do, or in the simulator.",
            |run| format!("p99 {}", text::with_unit(Some(run.radio.late_ms_p99), "ms")),
        ))
        (warning(
            results,
            |run| failed(run) > 0,
            "Transfers failed.",
            "Their reasons are in the table of transfers; their figures are of what arrived.",
            |run| transfers(failed(run), run),
        ))
        (warning(
            results,
            |run| wrong(run) > 0,
            "Wrong bytes.",
            "Bodies arrived that are not what the origin has: this must never happen.",
            |run| transfers(wrong(run), run),
        ))
    }
}

/// One warning, with a line for each run that it concerns; empty if it concerns none.
fn warning(
    results: &[RunResult],
    strikes: impl Fn(&RunResult) -> bool,
    head: &str,
    meaning: &str,
    what: impl Fn(&RunResult) -> String,
) -> Markup {
    let struck: Vec<_> = results.iter().filter(|run| strikes(run)).collect();
    html! {
        @if !struck.is_empty() {
            div class="warning" role="note" {
                p { b { (head) " " } (meaning) }
                (by_run(&struck, what))
            }
        }
    }
}

/// Number of a run's transfers whose body differs from the origin's.
fn wrong(run: &RunResult) -> usize {
    run.transfers.iter().filter(|it| !it.sha256_ok && it.error.is_none()).count()
}

/// Number of a run's transfers that failed.
fn failed(run: &RunResult) -> usize {
    run.transfers.iter().filter(|it| it.error.is_some()).count()
}

fn by_run(runs: &[&RunResult], what: impl Fn(&RunResult) -> String) -> Markup {
    html! {
        ul {
            @for run in runs {
                li { (text::clean(&run.scheme)) ", seed " (run.seed) ": " b { (what(run)) } }
            }
        }
    }
}

/// Tiles for one run, a table for several.
fn figures(results: &[RunResult], schemes: &[Scheme<'_>]) -> Markup {
    html! {
        @match results {
            [] => p { "There are no runs to report." },
            [run] => {
                section class="tiles" aria-label="Summary" { (tiles(run)) }
            },
            _ => {
                section {
                    h2 { "Schemes" }
                    (tables::schemes(schemes))
                    p class="note" {
                        "Throughput and time to first byte: medians over all transfers of a scheme. \
                         Hits: transfers whose file a router other than the gateway had stored. \
                         The rest: medians over its runs."
                    }
                }
            },
        }
    }
}

fn tiles(run: &RunResult) -> Markup {
    let throughput = median(run.transfers.iter().map(|transfer| transfer.kbps));
    let first_byte = median(run.transfers.iter().map(|transfer| transfer.ttfb_s));
    let transfers = text::plural(run.transfers.len(), "transfer");
    let (radio, origin) = (&run.radio, run.gateway.bytes_from_origin);
    let frames = format!(
        "{} data, {} control frames",
        text::grouped(radio.data_frames),
        text::grouped(radio.control_frames)
    );
    html! {
        (tile("Median throughput", &text::with_unit(throughput, "kbit/s"), &format!("over {transfers}")))
        (tile("Median time to first byte", &text::seconds(first_byte), &format!("over {transfers}")))
        (tile("From the origin", &text::bytes(origin), &delivered(run)))
        (tile("From the gateway into the air", &text::bytes(run.gateway.bytes_over_air), "frames, repetitions counted"))
        (tile("Hits", &text::percent(run.hit_share()), "of the transfers, by routers that are not the gateway"))
        (tile("Network load", &text::number(radio.packets_per_file), "packets per file, at all hops"))
        (tile("Airtime", &text::with_unit(Some(radio.airtime_seconds), "s"), &frames))
        @if let Some(lost) = radio.lost_above_mac {
            (tile("Lost above the MAC", &text::grouped(lost), "packets, after they were acknowledged"))
        }
        (tile("The run took", &text::with_unit(Some(run.wall_seconds), "s"), &lateness(run)))
    }
}

fn delivered(run: &RunResult) -> String {
    let delivered = tables::delivered(run);
    let share = run.gateway.bytes_from_origin as f64 / delivered as f64;
    match delivered {
        0 => "nothing was delivered".to_owned(),
        _ => format!("{} delivered, ratio {}", text::bytes(delivered), text::number(share)),
    }
}

fn lateness(run: &RunResult) -> String {
    match run.radio.late_ms_p99 {
        0.0 => "of wall time; medium never late".to_owned(),
        late => format!("of wall time; medium late p99 {}", text::with_unit(Some(late), "ms")),
    }
}

fn pictures(schemes: &[Scheme<'_>], ground: &Ground) -> Markup {
    let Some(last) = schemes.last() else { return html! {} };
    let bare = ground.routers.is_empty();
    // Map and distribution stand beside each other, unless the map takes a row of its own.
    let is_alone = !bare && !map::is_wide(ground);
    let coloured =
        if schemes.len() > 1 { format!(", coloured by {}", last.name) } else { String::new() };
    html! {
        div class="pictures" {
            @if let Some(halves) = pair::halves(schemes).filter(|_| !bare) {
                (report::pair::figure("Where the bytes came from, by the client's router", ground, &halves))
            }
            @if !bare { (map::figure(&format!("The mesh{coloured}"), ground, &receivers(last))) }
            figure {
                figcaption { "Throughput over the transfers" }
                div class="scroll" { (PreEscaped(cdf::svg(&throughputs(schemes)))) }
            }
            (sources::figure(schemes, is_alone))
        }
    }
}

/// What the map shows of a scheme's receivers, by name.
fn receivers<'a>(scheme: &Scheme<'a>) -> BTreeMap<&'a str, map::Receiver> {
    let shown = |(name, it): (&'a str, stats::Receiver)| {
        let sources = it.sources.iter().map(|(source, count)| (source.name(), *count)).collect();
        (name, map::Receiver { kbps: it.kbps, hit_share: it.hit_share(), sources })
    };
    scheme.receivers().into_iter().map(shown).collect()
}

/// A curve for each scheme.
fn throughputs(schemes: &[Scheme<'_>]) -> Vec<cdf::Curve> {
    let curve = |scheme: &Scheme<'_>| {
        let hits = scheme.transfers().filter(|it| it.source.is_some_and(ServedBy::is_hit));
        cdf::Curve::new(scheme.name, scheme.throughputs(), hits.map(|it| it.kbps))
    };
    schemes.iter().map(curve).collect()
}

/// One table for each run; folded where there are several.
fn transfers(results: &[RunResult], schemes: &[Scheme<'_>]) -> Markup {
    html! {
        @if !results.is_empty() {
            section {
                h2 { "Transfers" }
                @if let [run] = results {
                    (tables::transfers(&run.transfers))
                } @else {
                    @for run in schemes.iter().flat_map(|scheme| &scheme.runs) {
                        details {
                            summary {
                                (text::clean(&run.scheme)) ", seed " (run.seed) ": "
                                (text::plural(run.transfers.len(), "transfer"))
                            }
                            (tables::transfers(&run.transfers))
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
