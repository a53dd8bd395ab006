//! The page of figures beside their references, with a picture and a table for each group.

use maud::{Markup, PreEscaped, html};
use report::page::document;
use report::{bars, text};

use super::{Case, Checked, Report, Verdict};

/// The page.
pub fn page(report: &Report) -> String {
    let main = html! {
        (head(report))
        (failed(report))
        @for (group, cases) in report.groups() {
            section {
                h2 { (group.name) }
                p {
                    (group.about)
                    @if !group.standing.why().is_empty() {
                        " " (text::capital(group.standing.word())) ": " (group.standing.why()) "."
                    }
                }
                p class="note" {
                    @for medium in report.media(group) { (text::clean(medium)) ". " }
                }
                div class="pictures" {
                    figure class="wide" {
                        figcaption { (caption(cases)) }
                        div class="scroll" { (PreEscaped(bars::svg(&bars(cases)))) }
                    }
                }
                details {
                    summary { "Figures, and others that are only told" }
                    (table(cases))
                }
            }
        }
    };
    document("Validation", &main)
}

fn head(report: &Report) -> Markup {
    let count = |verdict| report.count(verdict);
    let cost = &report.cost;
    let [predicted, near] = report.near_enough("predicted");
    let apart = ["set", "given"].map(|word| (word, report.near_enough(word)));
    html! {
        header {
            h1 { "The simulator beside ns-3 and theory" }
            p class="facts" {
                span class="fact good" { "✓ " (near) " of " (predicted) " predicted figures near enough" }
                @for (word, [judged, near]) in apart {
                    span class="fact" { (near) " of " (judged) " that were " (word) }
                }
                @if count(Verdict::Open) > 0 {
                    span class="fact" { (count(Verdict::Open)) " open" }
                }
                @if count(Verdict::Known) > 0 {
                    span class="fact" { (count(Verdict::Known)) " known to be off" }
                }
                @if count(Verdict::Failed) > 0 {
                    span class="fact bad" { "✗ " (count(Verdict::Failed)) " too far off" }
                }
                span class="fact" { span class="of" { "seeds " } b { (report.seeds) } }
                span class="fact" {
                    span class="of" { "simulated " } b { (text::with_unit(Some(cost.simulated_seconds), "s")) }
                    span class="of" { " in " } b { (text::with_unit(Some(cost.wall_seconds), "s")) }
                }
            }
            p class="about" {
                "Means and standard deviations over seeds, beside those of ns-3 3.37 or what a formula says. \
                 Only what was predicted is evidence: what was set or given shows that the program still does \
                 what it was made to do. \
                 Open: farther off than allowed, but within two standard errors of a reference that is of \
                 few runs and spreads widely. Known: farther off, for a reason that docs/simulator.md tells."
            }
        }
    }
}

fn failed(report: &Report) -> Markup {
    let failed: Vec<_> =
        report.figures().filter(|(_, it)| it.verdict() == Verdict::Failed).collect();
    html! {
        @if !failed.is_empty() {
            div class="warning" role="note" {
                p { b { "Too far off." } }
                ul {
                    @for (case, checked) in failed {
                        li {
                            (case.group.name) ", " (text::clean(&case.name)) ": " (checked.figure.name)
                            " × " b { (text::maybe(checked.ratio())) }
                        }
                    }
                }
            }
        }
    }
}

/// The picture's figure, and its largest allowed error.
fn caption(cases: &[(Case, Vec<Checked>)]) -> String {
    let first = cases.first().and_then(|(_, figures)| figures.first());
    let Some(figure) = first.map(|it| &it.figure) else { return String::new() };
    match figure.allowed {
        Some(allowed) => format!("{}, allowed: ± {}", figure.name, text::percent(allowed)),
        None => figure.name.to_owned(),
    }
}

/// A bar for the first figure of each case.
fn bars(cases: &[(Case, Vec<Checked>)]) -> Vec<bars::Bar> {
    let bar = |(case, figures): &(Case, Vec<Checked>)| {
        let checked = figures.first()?;
        let reference = checked.figure.reference;
        Some(bars::Bar {
            name: case.name.clone(),
            ours: (checked.ours.mean, checked.ours.sd),
            reference: reference.map(|it| (it.mean, it.spread.map_or(0.0, |(sd, _)| sd))),
            note: checked.ratio().map(|ratio| format!("× {ratio:.3}")).unwrap_or_default(),
            is_bad: checked.verdict() == Verdict::Failed,
        })
    };
    cases.iter().filter_map(bar).collect()
}

fn table(cases: &[(Case, Vec<Checked>)]) -> Markup {
    let heads = ["ours", "reference", "ratio", "allowed"];
    html! {
        div class="scroll" {
            table class="cards" {
                thead { tr {
                    th scope="col" { "case" }
                    th scope="col" { "figure" }
                    @for head in heads { th class="n" scope="col" { (head) } }
                    th scope="col" { "verdict" }
                } }
                tbody {
                    @for (case, figures) in cases {
                        @for (place, checked) in figures.iter().enumerate() {
                            tr class=[(checked.verdict() == Verdict::Failed).then_some("wrong")] {
                                th class="key" scope="row" {
                                    @if place == 0 { (text::clean(&case.name)) }
                                }
                                td data-label="figure" { code { (checked.figure.name) } }
                                @for (head, value) in heads.into_iter().zip(cells(checked)) {
                                    td class="n" data-label=(head) { (value) }
                                }
                                td data-label="verdict" { (verdict(checked.verdict())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cells(checked: &Checked) -> [String; 4] {
    let spread = |mean, sd| format!("{} ± {}", amount(mean), amount(sd));
    let reference = checked.figure.reference.map(|it| match it.spread {
        Some((sd, _)) => spread(it.mean, sd),
        None => amount(it.mean),
    });
    let none = || text::NONE.to_owned();
    [
        spread(checked.ours.mean, checked.ours.sd),
        reference.unwrap_or_else(none),
        checked.ratio().map_or_else(none, |ratio| format!("{ratio:.3}")),
        checked.figure.allowed.map_or_else(none, text::percent),
    ]
}

/// Shares below 1 have more digits than other numbers.
fn amount(value: f64) -> String {
    if value > 0.0 && value < 1.0 { format!("{value:.4}") } else { text::number(value) }
}

fn verdict(verdict: Verdict) -> Markup {
    let class = match verdict {
        Verdict::Passed => "good",
        Verdict::Failed => "bad",
        Verdict::Open | Verdict::Known | Verdict::Uncompared => "of",
    };
    html! { span class=(class) { (verdict.word()) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::{Cost, Effort, cases};

    #[test]
    fn the_page_has_every_case_and_says_what_the_medium_was() {
        let checked = |case: &Case| {
            let figures = case.figures.iter();
            let values = |it: &Checked| it.ours.mean;
            let exact = |figure| {
                let reference = Checked::of(figure, [1.0].into_iter());
                let mean = reference.figure.reference.map_or(values(&reference), |it| it.mean);
                Checked::of(figure, [mean].into_iter())
            };
            figures.map(exact).collect::<Vec<_>>()
        };
        let cases = cases(Effort::Quick, &[]).unwrap();
        let cases = cases.into_iter().map(|case| (case.clone(), checked(&case))).collect();
        let mut report = Report { seeds: 1, cases, cost: Cost::default() };
        let fine = page(&report);
        for part in
            ["receiver nolock", "reception bit-error", "dcf ns3", "8 hops, UDP, RTS", "<svg"]
        {
            assert!(fine.contains(part), "{part}");
        }
        assert!(!fine.contains("too far off"));
        report.cases[0].1[0].ours.mean *= 1.2;
        assert!(page(&report).contains("1 too far off"));
    }
}
