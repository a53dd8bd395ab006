//! The page of an experiment that was run again: pictures, ours beside the paper's, parameters.

use maud::{Markup, PreEscaped, html};
use report::page::{document, tile};
use report::text;

use super::{Clock, Comparison, Estimate, Experiment, Findings, Parameter, Samples, Verdict};

/// The page.
pub(super) fn page(
    experiment: &Experiment,
    samples: &Samples,
    findings: &Findings,
    clock: Clock,
) -> String {
    let main = html! {
        header {
            h1 { (experiment.title) }
            p class="about" { (experiment.about) "." }
            (tiles(samples, findings))
            p class="note" { (by(clock)) "Medium: " (findings.medium) "." }
        }
        div class="pictures" {
            @for picture in &findings.pictures {
                figure {
                    figcaption { (text::clean(&picture.caption)) }
                    div class="scroll" { (PreEscaped(&picture.svg)) }
                }
            }
        }
        p class="note" { "Bars: 95 % confidence intervals of the means over the seeds." }
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

fn tiles(samples: &Samples, findings: &Findings) -> Markup {
    let judged = findings.rows.len() - findings.count(Verdict::None);
    html! {
        div class="tiles" {
            (tile(
                "as the paper says",
                &format!("{} of {judged}", findings.count(Verdict::Holds)),
                "rows, with 95 % confidence",
            ))
            (tile(
                "in the mean",
                &findings.count(Verdict::Leans).to_string(),
                &format!("more; {} do not hold", findings.count(Verdict::Fails)),
            ))
            (tile(
                "runs",
                &text::grouped(samples.len() as u64),
                &format!("up to {} of each point", samples.seeds()),
            ))
        }
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

fn comparisons(rows: &[Comparison]) -> Markup {
    let headings = rows.chunk_by(|a, b| a.heading == b.heading);
    html! {
        section {
            h2 { "Ours beside the paper's" }
            @for rows in headings {
                h3 { (capital(&rows[0].heading)) }
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
}

fn comparison(row: &Comparison) -> Markup {
    let number = |value| match row.unit {
        "" => format!("{value:.3}"),
        _ => text::number(value),
    };
    let verdict = row.verdict();
    let class = match verdict {
        Verdict::Holds => "good",
        Verdict::Fails => "bad",
        Verdict::Leans | Verdict::None => "",
    };
    html! {
        tr {
            th scope="row" { (text::clean(&row.what)) }
            td class="n" { (number(row.ours.mean)) @if !row.unit.is_empty() { " " (row.unit) } }
            td class="n" { (interval(&row.ours, number)) }
            td class="n" { (row.expected.text()) }
            td class="n" { (row.ratio().map_or(text::NONE.to_owned(), |it| format!("{it:.2}"))) }
            td class=(class) { (verdict.text()) }
        }
    }
}

fn interval(estimate: &Estimate, number: impl Fn(f64) -> String) -> String {
    let [low, high] = estimate.interval();
    match estimate.half {
        Some(_) => format!("{} … {}", number(low), number(high)),
        None => text::NONE.to_owned(),
    }
}

fn parameters(parameters: &[Parameter]) -> Markup {
    html! {
        section {
            h2 { "What the paper leaves out" }
            p class="note" { "Chosen once, for all schemes alike." }
            div class="scroll" {
                table class="keys" {
                    thead { tr {
                        th scope="col" { "parameter" }
                        th scope="col" { "ours" }
                        th scope="col" { "why" }
                    } }
                    tbody {
                        @for parameter in parameters {
                            tr {
                                th scope="row" { (parameter.name) }
                                td { (text::clean(&parameter.value)) }
                                td class="meaning" { (parameter.why) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
