//! The page of an experiment that was run again: pictures, ours beside the paper's, parameters.

use maud::{Markup, PreEscaped, html};
use report::page::{document, tile};
use report::text;

use super::{
    Clock, Comparison, Estimate, Experiment, Extent, Findings, Parameter, Samples, Short, Verdict,
};

/// The page.
pub(super) fn page(
    experiment: &Experiment,
    samples: &Samples,
    findings: &Findings,
    (extent, clock): (Extent, Clock),
) -> String {
    let main = html! {
        header {
            h1 { (experiment.title) }
            p class="about" { (experiment.about) "." }
            (tiles(samples, findings, experiment.usual(extent, clock)))
            p class="note" { (by(clock)) "Medium: " (findings.medium) "." }
            @if (extent, experiment.short) == (Extent::Quick, Short::Smaller) {
                p class="note" { "A short run of something smaller: the paper's figures say nothing of it." }
            }
        }
        div class="pictures" {
            @for picture in &findings.pictures {
                figure {
                    figcaption { (text::clean(&picture.caption)) }
                    div class="scroll" { (PreEscaped(&picture.svg)) }
                }
            }
        }
        p class="note" {
            "Intervals: 95 %, by Student's t over runs of different seeds; where orders or receivers differ too, by \
             drawing orders, receivers and seeds anew together. One run has none."
        }
        (notes(&findings.notes))
        (comparisons(&findings.rows))
        (parameters(&findings.parameters))
    };
    document(experiment.title, &main)
}

fn by(clock: Clock) -> &'static str {
    match clock {
        Clock::Virtual => "By the simulator, in virtual time. ",
        Clock::Real => "By real daemons on an emulated radio, in real time. ",
    }
}

fn tiles(samples: &Samples, findings: &Findings, usual: u64) -> Markup {
    let [set, given] = findings.set_and_given();
    html! {
        div class="tiles" {
            (tile(
                "as the paper says",
                &format!("{} of {}", findings.count(Verdict::Holds), findings.predicted()),
                "predicted rows, with 95 % confidence",
            ))
            (tile(
                "in the mean",
                &findings.count(Verdict::Leans).to_string(),
                &rest(findings),
            ))
            (tile(
                "set or given",
                &(set + given).to_string(),
                &format!("rows, which count for nothing: {set} set, {given} given"),
            ))
            (tile(
                "runs",
                &text::grouped(samples.len() as u64),
                &format!("up to {} of each point; {usual} were decided on before", samples.seeds()),
            ))
        }
    }
}

fn rest(findings: &Findings) -> String {
    let fail = format!("more; {} do not hold", findings.count(Verdict::Fails));
    match findings.count(Verdict::Open) {
        0 => fail,
        open => format!("{fail}, {open} are open: one run"),
    }
}

fn notes(notes: &[String]) -> Markup {
    html! {
        @if !notes.is_empty() {
            section {
                h2 { "Measured beside" }
                ul { @for note in notes { li { (text::clean(note)) "." } } }
            }
        }
    }
}

/// What was predicted, and what the paper says nothing of; apart from it, what was set or is given.
fn comparisons(rows: &[Comparison]) -> Markup {
    let (apart, told): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| row.is_compared() && !row.is_evidence());
    html! {
        section {
            h2 { "Ours beside the paper's" }
            p class="note" { "Rows with a verdict were predicted: nothing was set or chosen by them." }
            (tables(&told))
        }
        @if !apart.is_empty() {
            section {
                h2 { "Set or given" }
                p class="note" {
                    "Set: the model was set by this figure, or chosen after it had been looked at. Given: it \
                     cannot come out otherwise, or follows from other rows. Neither is a finding."
                }
                (tables(&apart))
            }
        }
    }
}

fn tables(rows: &[&Comparison]) -> Markup {
    html! {
        @for rows in rows.chunk_by(|a, b| a.heading == b.heading) {
            h3 { (text::capital(&rows[0].heading)) }
            div class="scroll" {
                table {
                    thead { tr {
                        th scope="col" {}
                        th class="n" scope="col" { "ours" }
                        th class="n" scope="col" { "95 % interval" }
                        th class="n" scope="col" { "paper" }
                        th class="n" scope="col" { "ours / paper" }
                        th scope="col" { "verdict" }
                    } }
                    tbody { @for row in rows { (comparison(row)) } }
                }
            }
        }
    }
}

fn comparison(row: &Comparison) -> Markup {
    let number = |value| match row.unit {
        "" => format!("{value:.3}"),
        _ => text::number(value),
    };
    let class = match row.verdict() {
        Verdict::Holds if row.is_evidence() => "good",
        Verdict::Fails if row.is_evidence() => "bad",
        _ => "",
    };
    html! {
        tr {
            th scope="row" { (text::clean(&row.what)) }
            td class="n" { (number(row.ours.mean)) @if !row.unit.is_empty() { " " (row.unit) } }
            td class="n" { (interval(&row.ours, number)) }
            td class="n" { (row.expected.text()) }
            td class="n" { (row.ratio().map_or(text::NONE.to_owned(), |it| format!("{it:.2}"))) }
            td class=(class) {
                @if row.is_compared() && !row.is_evidence() {
                    (row.word()) "; " (row.standing.word()) ": " (row.standing.why())
                } @else {
                    (row.word())
                }
            }
        }
    }
}

fn interval(estimate: &Estimate, number: impl Fn(f64) -> String) -> String {
    let told = |[low, high]: [f64; 2]| format!("{} … {}", number(low), number(high));
    estimate.interval().map_or(text::NONE.to_owned(), told)
}

fn parameters(parameters: &[Parameter]) -> Markup {
    html! {
        section {
            h2 { "What the paper leaves out" }
            p class="note" {
                "The same for all schemes. \"Once, before\": before anything was compared, and not changed since."
            }
            div class="scroll" {
                table class="keys" {
                    thead { tr {
                        th scope="col" { "parameter" }
                        th scope="col" { "ours" }
                        th scope="col" { "chosen" }
                        th scope="col" { "why" }
                    } }
                    tbody {
                        @for parameter in parameters {
                            tr {
                                th scope="row" { (parameter.name) }
                                td { (text::clean(&parameter.value)) }
                                td { (parameter.chosen.text()) }
                                td class="meaning" { (text::clean(parameter.why)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
