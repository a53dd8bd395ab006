//! A page of figures over seeds, for runs that have no transfers.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::{Ground, map, page, text};

/// The figures of runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The scenario's name.
    pub title: String,
    /// The mean and the standard deviation of each figure over the seeds, by its name.
    pub over_seeds: Vec<(&'static str, [f64; 2])>,
    /// For each run its name, and its figures in the same order.
    pub runs: Vec<(String, Vec<f64>)>,
    /// The figures of each part of the runs, if they have parts.
    pub rows: Option<Rows>,
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
        @if let Some(table) = &figures.rows { (rows(table)) }
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

fn runs(figures: &Figures) -> Markup {
    html! {
        section {
            h2 { "Runs" }
            div class="scroll" {
                table {
                    thead { tr {
                        th scope="col" { "run" }
                        @for (name, _) in &figures.over_seeds { th class="n" scope="col" { (breakable(name)) } }
                    } }
                    tbody {
                        @for (name, values) in &figures.runs {
                            tr {
                                th scope="row" { (text::clean(name)) }
                                @for value in values { td class="n" { (text::number(*value)) } }
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
    fn a_page_has_the_figures_and_what_failed_and_no_markup_of_others() {
        let figures = Figures {
            title: "<b>".to_owned(),
            over_seeds: vec![("goodput_kbps", [12.0, 3.0])],
            runs: vec![("seed 1".to_owned(), vec![9.0])],
            rows: Some(Rows {
                title: "Flows",
                columns: vec!["delay_p95"],
                rows: vec![
                    ("a:<b>:tcp".to_owned(), vec![Some(7654.0)]),
                    ("b:a".to_owned(), vec![None]),
                ],
            }),
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
