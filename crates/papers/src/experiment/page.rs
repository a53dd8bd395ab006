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

#[cfg(test)]
mod tests {
    use super::super::estimate::Intervals;
    use super::super::tests::SMALL;
    use super::super::{Chosen, Expectation, Key, Row, Standing};
    use super::*;

    fn estimate(mean: f64, half: f64) -> Estimate {
        let wide = [mean - half, mean + half];
        Estimate { mean, sure: Some(Intervals { wide, narrow: wide }), runs: 5 }
    }

    fn findings() -> Findings {
        let row = |what, ours, unit, expected, standing| Comparison {
            standing,
            ..Comparison::predicted("rates", what, ours, unit, expected)
        };
        let predicted = Standing::Predicted;
        let (more, nothing) = (Expectation::More, Expectation::Nothing);
        let rows = vec![
            row("a ratio", estimate(2.0, 0.5), "", Expectation::Ratio(2.0), predicted),
            row("a rate", estimate(50.0, 1.0), "kbit/s", Expectation::Figure(100.0), predicted),
            row("a lean", estimate(1.5, 1.0), "", more, predicted),
            row("one run", Estimate::of(&[3.0]), "", more, predicted),
            row("uncompared", estimate(7.0, 1.0), "", nothing, predicted),
            row("fitted", estimate(3.0, 1.0), "", more, Standing::Set("the loss was")),
            row("implied", estimate(0.5, 0.1), "", more, Standing::Given("it follows")),
        ];
        let value = "64".to_owned();
        let parameters =
            vec![Parameter { name: "store", value, chosen: Chosen::Once, why: "its size" }];
        let medium = "ideal".to_owned();
        Findings { rows, parameters, medium, ..Findings::default() }
    }

    fn html(findings: &Findings, extent: Extent, clock: Clock) -> String {
        let key = Key { panel: "", series: "", x: 0.0, rank: 0 };
        let row = |seed| Row { key: key.clone(), seed, figures: vec![1.0] };
        let samples = Samples::new(&["kbps"], vec![row(1), row(2)], clock);
        page(&SMALL, &samples, findings, (extent, clock))
    }

    /// The cells of the row with this name.
    fn cells(html: &str, name: &str) -> String {
        let begin = format!("<th scope=\"row\">{name}</th>");
        let (row, _) = html.split_once(&begin).expect(name).1.split_once("</tr>").unwrap();
        row.replace("</td>", "").replace("<td class=\"n\">", "|").replace("<td class=", "|")
    }

    #[test]
    fn a_row_has_our_figure_the_papers_and_a_verdict_if_it_is_evidence() {
        let html = html(&findings(), Extent::Full, Clock::Virtual);
        for (name, expected) in [
            ("a ratio", "|2.000|1.500 … 2.500|2.000|1.00|\"good\">holds"),
            ("a rate", "|50.0 kbit/s|49.0 … 51.0|100|0.50|\"bad\">does not hold"),
            ("a lean", "|1.500|0.500 … 2.500|&gt; 1|–|\"\">holds in the mean"),
            ("one run", "|3.000|–|&gt; 1|–|\"\">open: one run"),
            ("uncompared", "|7.000|6.000 … 8.000||–|\"\">"),
            ("fitted", "|3.000|2.000 … 4.000|&gt; 1|–|\"\">met; set: the loss was"),
            ("implied", "|0.500|0.400 … 0.600|&gt; 1|–|\"\">not met; given: it follows"),
        ] {
            assert_eq!(cells(&html, name), expected, "{name}");
        }
        let (told, apart) = html.split_once("<h2>Set or given</h2>").unwrap();
        for name in ["a ratio", "a rate", "a lean", "one run", "uncompared"] {
            assert!(told.contains(&format!(">{name}<")), "{name}");
        }
        assert!(apart.contains(">fitted<") && apart.contains(">implied<"));
        assert_eq!(html.matches("<h3>Rates</h3>").count(), 2);
    }

    #[test]
    fn tiles_count_rows_by_verdict_and_standing() {
        let html = html(&findings(), Extent::Full, Clock::Virtual);
        for (name, value, note) in [
            ("as the paper says", "1 of 4", "predicted rows, with 95 % confidence"),
            ("in the mean", "1", "more; 1 do not hold, 1 are open: one run"),
            ("set or given", "2", "rows, which count for nothing: 1 set, 1 given"),
            ("runs", "2", "up to 2 of each point; 3 were decided on before"),
        ] {
            let tile = tile(name, value, note).into_string();
            assert!(html.contains(&tile), "{name}");
        }
        let mut findings = findings();
        findings.rows.retain(|it| it.what != "one run");
        assert_eq!(rest(&findings), "more; 1 do not hold");
    }

    #[test]
    fn a_page_says_how_it_was_run_and_by_which_parameters() {
        let mut findings = findings();
        let text = html(&findings, Extent::Full, Clock::Virtual);
        assert!(text.contains("By the simulator, in virtual time. Medium: ideal."));
        assert!(!text.contains("A short run") && !text.contains("Measured beside"));
        let parameter = "<td>64</td><td>once, before</td><td class=\"meaning\">its size</td>";
        assert!(text.contains(&format!("<th scope=\"row\">store</th>{parameter}")));
        findings.notes = vec!["it was late".to_owned()];
        let text = html(&findings, Extent::Quick, Clock::Real);
        assert!(
            text.contains("By real daemons on an emulated radio, in real time. Medium: ideal.")
        );
        assert!(text.contains("A short run of something smaller"));
        assert!(text.contains("<h2>Measured beside</h2><ul><li>it was late.</li></ul>"));
    }
}
