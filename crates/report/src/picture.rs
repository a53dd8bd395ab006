//! The parts that all pictures share: the frame, the colours, the marks, and the measures of texts.

use maud::{Markup, PreEscaped, html};

use crate::text;

/// The colours, light and dark. Amounts have shades of blue. Schemes have hues that colour-blind readers can tell
/// apart.
const STYLE: &str = include_str!("picture.css");

/// The number of hues of the style.
const HUES: usize = 9;

/// Neighbours differ by their dashes too, for print without colours.
const DASHES: [Option<&str>; 5] = [None, Some("7 3"), Some("2 2.5"), Some("9 3 2 3"), Some("12 4")];

/// The colour of a stroke by its place among all.
pub(crate) fn stroke(at: usize) -> String {
    format!("c{}", at % HUES)
}

/// The colour of an area by its place among all.
pub(crate) fn fill(at: usize) -> String {
    format!("f{}", at % HUES)
}

/// A dot in the colour of an area, for the name in a table.
pub fn chip(at: usize) -> Markup {
    html! {
        svg class="pic chip" viewBox="0 0 10 10" aria-hidden="true" {
            circle class=(fill(at)) cx="5" cy="5" r="5" {}
        }
    }
}

/// The dashes of a line by its place among all.
pub(crate) fn dashes(at: usize) -> Option<&'static str> {
    DASHES[at % DASHES.len()]
}

/// The mark of a point by the place of its curve among all: five shapes, in the colour of the curve.
pub(crate) fn marker(at: usize, x: f64, y: f64) -> Markup {
    let class = format!("point {}", fill(at));
    let (x, y) = (px(x), px(y));
    let path = |outline: &str| {
        html! { path class=(class) d=(format!("M{x} {y}{outline}")) {} }
    };
    match at % 5 {
        0 => html! { circle class=(class) cx=(x) cy=(y) r="4.5" {} },
        1 => path("m-4.5 -4.5h9v9h-9z"),
        2 => path("m0 -6l5.5 9.5h-11z"),
        3 => path("m0 -6l6 6l-6 6l-6 -6z"),
        _ => path("m0 6l5.5 -9.5h-11z"),
    }
}

/// A complete SVG, for a file of its own or a part of a page.
pub(crate) fn svg(width: f64, height: f64, label: &str, body: &Markup) -> String {
    let (width, height) = (px(width), px(height));
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" class="pic" viewBox=(format!("0 0 {width} {height}"))
            width=(width) height=(height) role="img" aria-label=(text::clean(label)) {
            style { (PreEscaped(STYLE)) }
            rect class="paper" width=(width) height=(height) {}
            (body)
        }
    };
    markup.into_string()
}

/// A length to a tenth of a pixel, never minus zero. A value that is not finite becomes zero.
pub(crate) fn px(value: f64) -> f64 {
    if value.is_finite() { (value * 10.0).round() / 10.0 + 0.0 } else { 0.0 }
}

/// An estimate of the width of a text, rather too wide than too narrow.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | '\'' | '|' | ' ' | '\u{202f}' => 0.36,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 0.96,
        c if c.is_ascii() => 0.64,
        _ => 1.0,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// A text cut to a width in pixels, with an ellipsis if something is missing.
pub(crate) fn fit(text: &str, size: f64, width: f64) -> String {
    let mut kept = text::clean(text);
    if text_width(&kept, size) <= width {
        return kept;
    }
    let ellipsis = text_width("…", size);
    while kept.pop().is_some() && text_width(&kept, size) + ellipsis > width {}
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_short_and_finite() {
        assert_eq!([1.26, -0.01, f64::NAN, f64::INFINITY].map(px), [1.3, 0.0, 0.0, 0.0]);
        assert!(px(-0.01).is_sign_positive());
    }

    #[test]
    fn many_lines_stay_apart() {
        let looks: std::collections::BTreeSet<_> =
            (0..45).map(|at| (stroke(at), dashes(at))).collect();
        assert_eq!(looks.len(), 45);
    }

    #[test]
    fn the_style_needs_no_escaping() {
        assert!(!STYLE.contains(['<', '&', '>']));
    }
}
