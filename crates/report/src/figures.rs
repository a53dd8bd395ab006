//! A page of figures over seeds, for runs that have no transfers.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::{Ground, map, page, text};

/// The largest number of figures side by side: so many fit on a page.
const COLUMNS_MAX: usize = 12;

/// The figures of runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The scenario's name.
    pub title: String,
    /// The mean and the standard deviation of each figure over the seeds, by its name.
    pub over_seeds: Vec<(&'static str, [f64; 2])>,
    /// For each run its name, and its figures in the same order.
    pub runs: Vec<(String, Vec<f64>)>,
    /// Figures of parts of the runs, if they have parts.
    pub tables: Vec<Rows>,
    /// A line for each failure.
    pub failed: Vec<String>,
}

/// A table of figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// What the rows are.
    pub title: &'static str,
    /// The figures' names.
    pub columns: Vec<&'static str>,
    /// For each row its name, and its figures in the order of the columns; `None` where there is none.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

/// The page: figures over all seeds, the map, the figures of each run.
pub fn figures(figures: &Figures, ground: &Ground) -> String {
    let title = text::clean(&figures.title);
    let main = html! {
        header {
            h1 { (title) }
            p class="about" { (text::clean(&ground.description)) }
        }
        (failed(&figures.failed))
        (over_seeds(&figures.over_seeds))
        @for table in &figures.tables { (rows(table)) }
        div class="pictures" { (map::figure("The mesh", ground, &BTreeMap::new())) }
        (runs(figures))
        (page::keys(&ground.keys))
    };
    page::document(&title, &main)
}

fn failed(failed: &[String]) -> Markup {
    html! {
        @if !failed.is_empty() {
            div class="warning" role="note" {
                p { b { "Something failed." } }
                ul { @for what in failed { li { (text::clean(what)) } } }
            }
        }
    }
}

fn over_seeds(stats: &[(&'static str, [f64; 2])]) -> Markup {
    html! {
        section {
            h2 { "Over the seeds" }
            div class="scroll" {
                table {
                    thead { tr {
                        th scope="col" { "figure" }
                        th class="n" scope="col" { "mean" }
                        th class="n" scope="col" { "deviation" }
                    } }
                    tbody {
                        @for (name, [mean, deviation]) in stats {
                            tr {
                                th scope="row" { code { (name) } }
                                td class="n" { (text::number(*mean)) }
                                td class="n" { (text::number(*deviation)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn rows(table: &Rows) -> Markup {
    html! {
        section {
            h2 { (table.title) }
            div class="scroll" {
                table {
                    thead { tr {
                        th scope="col" { "name" }
                        @for name in &table.columns { th class="n" scope="col" { (breakable(name)) } }
                    } }
                    tbody {
                        @for (name, values) in &table.rows {
                            tr {
                                th scope="row" { (text::clean(name)) }
                                @for value in values { td class="n" { (text::maybe(*value)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The figures of each run; of many figures several tables, side by side they would be too wide.
fn runs(figures: &Figures) -> Markup {
    let count = figures.over_seeds.len().max(1);
    let columns = count.div_ceil(count.div_ceil(COLUMNS_MAX));
    html! {
        section {
            h2 { "Runs" }
            @for (at, part) in figures.over_seeds.chunks(columns).enumerate() {
                div class="scroll" {
                    table {
                        thead { tr {
                            th scope="col" { "run" }
                            @for (name, _) in part { th class="n" scope="col" { (breakable(name)) } }
                        } }
                        tbody {
                            @for (name, values) in &figures.runs {
                                tr {
                                    th scope="row" { (text::clean(name)) }
                                    @for value in values.iter().skip(at * columns).take(columns) {
                                        td class="n" { (text::number(*value)) }
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

/// A name in code that may break after each underscore: tables of many columns stay narrow.
fn breakable(name: &str) -> Markup {
    html! { code { @for part in name.split_inclusive('_') { (part) wbr; } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_figures_of_a_run_are_several_tables_with_each_figure_once() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"];
        let figures = Figures {
            over_seeds: names.map(|name| (name, [0.0, 0.0])).to_vec(),
            runs: vec![("seed 1".to_owned(), (101..115).map(f64::from).collect())],
            ..Figures::default()
        };
        let runs = runs(&figures).into_string();
        assert_eq!(runs.matches("<table>").count(), 2);
        let (first, second) = runs.split_at(runs.rfind("<table>").expect("two tables"));
        for (half, names, values) in
            [(first, &names[..7], 101..108), (second, &names[7..], 108..115)]
        {
            let heads = names.iter().map(|name| format!("<code>{name}<wbr></code>"));
            let cells = values.map(|it| format!(">{it}</td>"));
            for part in heads.chain(cells) {
                assert_eq!(
                    (half.matches(&part).count(), runs.matches(&part).count()),
                    (1, 1),
                    "{part}"
                );
            }
        }
    }

    #[test]
    fn a_page_has_the_figures_and_what_failed_and_no_markup_of_others() {
        let figures = Figures {
            title: "<b>".to_owned(),
            over_seeds: vec![("goodput_kbps", [12.0, 3.0])],
            runs: vec![("seed 1".to_owned(), vec![9.0])],
            tables: vec![Rows {
                title: "Flows",
                columns: vec!["delay_p95"],
                rows: vec![
                    ("a:<b>:tcp".to_owned(), vec![Some(7654.0)]),
                    ("b:a".to_owned(), vec![None]),
                ],
            }],
            failed: vec!["flow 1 from a to b: nothing arrived".to_owned()],
        };
        let page = super::figures(&figures, &Ground::default());
        for part in [
            "goodput_kbps",
            "goodput_<wbr>kbps",
            "seed 1",
            "flow 1 from a to b",
            "&lt;b&gt;",
            "delay_<wbr>p95",
            "a:&lt;b&gt;:tcp",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("<b></title>"));
    }
}
