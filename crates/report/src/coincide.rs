//! Curves that lie on each other: the picture says which.

use maud::{Markup, html};

use crate::labels::Point;
use crate::picture::{self, px};
use crate::text;

/// Curves that stay within this distance at all points look like one, in pixels.
const NEAR: f64 = 2.0;

const TEXT_SIZE: f64 = 12.0;

/// The height of a note.
pub(crate) const ROW: f64 = 17.0;

/// A note for each curve that others lie on.
pub(crate) fn notes(curves: &[(&str, Vec<Point>)]) -> Vec<String> {
    let hidden_by = |at: usize| (0..at).find(|&first| is_near(&curves[first].1, &curves[at].1));
    let first: Vec<_> = (0..curves.len()).map(hidden_by).collect();
    let note = |at: usize| {
        let names = (0..curves.len()).filter(|&it| first[it] == Some(at)).map(|it| curves[it].0);
        let names: Vec<_> = names.map(text::clean).collect();
        let verb = if names.len() == 1 { "coincides" } else { "coincide" };
        let on = text::clean(curves[at].0);
        (!names.is_empty()).then(|| format!("{} {verb} with {on}", names.join(" and ")))
    };
    (0..curves.len()).filter(|at| first[*at].is_none()).filter_map(note).collect()
}

/// The notes below each other.
pub(crate) fn rows(notes: &[String], (left, top): Point, width: f64) -> Markup {
    html! {
        @for (at, note) in notes.iter().enumerate() {
            text x=(px(left)) y=(px(top + ROW * (at as f64 + 0.8))) {
                (picture::fit(note, TEXT_SIZE, width))
            }
        }
    }
}

fn is_near(a: &[Point], b: &[Point]) -> bool {
    let near = |(a, b): (&Point, &Point)| (a.0 - b.0).abs() <= NEAR && (a.1 - b.1).abs() <= NEAR;
    !a.is_empty() && a.len() == b.len() && a.iter().zip(b).all(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_on_each_other_are_named() {
        let curve = |y: f64| vec![(0.0, 10.0), (50.0, y)];
        let curves = [
            ("a", curve(20.0)),
            ("b", curve(21.0)),
            ("c", curve(40.0)),
            ("d", curve(20.5)),
            ("none", vec![]),
            ("none too", vec![]),
        ];
        assert_eq!(notes(&curves), ["b and d coincide with a"]);
        assert_eq!(notes(&curves[..2]), ["b coincides with a"]);
        assert!(notes(&curves[1..3]).is_empty());
    }
}
