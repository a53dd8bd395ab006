//! The HTML document of a page, and the parts that pages have in common.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::text;

const STYLE: &str = include_str!("page.css");

/// A whole HTML document with this title and this content.
pub fn document(title: &str, main: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Hearsay" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (main) }
            }
        }
    };
    markup.into_string()
}

/// One figure with its name, its value and a note.
pub fn tile(name: &str, value: &str, note: &str) -> Markup {
    html! {
        div class="tile" {
            div class="of" { (name) }
            div class="value" { (value) }
            div class="note" { (note) }
        }
    }
}

/// A table of a scenario's keys: name, value and meaning. Empty if there are no keys.
pub fn keys(keys: &[(String, String, String)]) -> Markup {
    html! {
        @if !keys.is_empty() {
            section {
                h2 { "Scenario" }
                div class="scroll" {
                    table class="keys" {
                        thead { tr {
                            @for head in ["key", "value", "meaning"] { th scope="col" { (head) } }
                        } }
                        tbody {
                            @for (name, value, meaning) in keys {
                                tr {
                                    th class="key" scope="row" { code { (text::clean(name)) } }
                                    td { code { (text::clean(value)) } }
                                    td class="meaning" { (text::clean(meaning)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
