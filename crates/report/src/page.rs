//! The frame of a page, and what pages have in common.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::text;

const STYLE: &str = include_str!("page.css");

/// A whole page around what it says.
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

/// A figure by itself: what it is, its value, and what one must know of it.
pub fn tile(name: &str, value: &str, note: &str) -> Markup {
    html! {
        div class="tile" {
            div class="of" { (name) }
            div class="value" { (value) }
            div class="note" { (note) }
        }
    }
}

/// A scenario's keys: name, value, meaning; nothing without any.
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
