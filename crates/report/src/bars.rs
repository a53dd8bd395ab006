//! Values beside references: a row for each value, with a bar, and a mark at the reference.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::picture::{self, px};
use crate::{stats, text, ticks};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 256.0;
const RIGHT: f64 = 690.0;
const TOP: f64 = 34.0;
const ROW: f64 = 19.0;
const BAR: f64 = 11.0;
const FOOT: f64 = 26.0;
const TEXT_SIZE: f64 = 12.0;

/// A row. Each pair is a mean and its standard deviation.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The name at the left end.
    pub name: String,
    /// The length of the bar.
    pub ours: (f64, f64),
    /// The place of the mark.
    pub reference: Option<(f64, f64)>,
    /// The text at the right end.
    pub note: String,
    /// Whether it has the colour of failures.
    pub is_bad: bool,
}

/// The picture as a file of its own.
pub fn svg(bars: &[Bar]) -> String {
    let reach = |(mean, sd): (f64, f64)| mean + sd;
    let ends = bars.iter().flat_map(|bar| {
        [Some(0.0), Some(reach(bar.ours)), bar.reference.map(reach)].into_iter().flatten()
    });
    let ends = stats::sorted(ends);
    let axis = Axis::from_zero(ends.last().copied().unwrap_or(0.0));
    let foot = TOP + ROW * bars.len() as f64;
    let names: Vec<_> = axis.ticks.iter().map(|it| (x_of(&axis, *it), text::tick(*it))).collect();
    let body = html! {
        (legend())
        @for &tick in &axis.ticks {
            @let x = x_of(&axis, tick);
            path class=(if tick == 0.0 { "axis" } else { "grid" }) d=(format!("M{x} {TOP}V{foot}")) {}
        }
        (ticks::below(&names, foot + 17.0, WIDTH))
        @for (at, bar) in bars.iter().enumerate() { (row(bar, TOP + ROW * at as f64, &axis)) }
    };
    picture::svg(WIDTH, foot + FOOT, "Values beside their references", &body)
}

fn x_of(axis: &Axis, value: f64) -> f64 {
    px(LEFT + axis.share(value) * (RIGHT - LEFT))
}

fn legend() -> Markup {
    html! {
        rect class=(picture::fill(0)) x=(LEFT) y="9" width="22" height=(BAR) {}
        text x=(LEFT + 28.0) y="19" { "ours" }
        path class="bar" d=(format!("M{} 7v15", LEFT + 82.0)) {}
        text x=(LEFT + 90.0) y="19" { "reference; thin lines: deviation" }
    }
}

fn row(bar: &Bar, top: f64, axis: &Axis) -> Markup {
    let (middle, end) = (px(top + ROW / 2.0), x_of(axis, bar.ours.0));
    let whisker = |(mean, sd): (f64, f64), y: f64| {
        let (from, to) = (x_of(axis, (mean - sd).max(0.0)), x_of(axis, mean + sd));
        format!("M{from} {}H{to}", px(y))
    };
    let class = if bar.is_bad { picture::fill(7) } else { picture::fill(0) };
    html! {
        text class="end" x=(LEFT - 8.0) y=(px(middle + 4.0)) {
            (picture::fit(&bar.name, TEXT_SIZE, LEFT - 12.0))
        }
        rect class=(class) x=(LEFT) y=(px(middle - BAR / 2.0)) width=(px(end - LEFT)) height=(BAR) {}
        path class="axis" d=(whisker(bar.ours, middle + 2.5)) {}
        @if let Some(reference) = bar.reference {
            path class="bar" d=(format!("M{} {}v{}", x_of(axis, reference.0), px(top + 1.5), ROW - 3.0)) {}
            path class="axis" d=(whisker(reference, middle - 2.5)) {}
        }
        text x=(RIGHT + 10.0) y=(px(middle + 4.0)) { (bar.note) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_ends_where_its_mark_stands_if_both_are_equal() {
        let bar = |ours: f64| Bar {
            name: "<a>".to_owned(),
            ours: (ours, 0.0),
            reference: Some((50.0, 5.0)),
            note: "× 1".to_owned(),
            is_bad: false,
        };
        let picture = svg(&[bar(50.0), bar(100.0)]);
        // Half of the axis from 0 to 100.
        let middle = (LEFT + RIGHT) / 2.0;
        assert!(picture.contains(&format!("width=\"{}\"", middle - LEFT)), "{picture}");
        assert!(picture.contains(&format!("M{middle} ")), "{picture}");
        assert!(picture.contains("&lt;a&gt;") && !picture.contains("NaN"));
        assert!(!svg(&[]).contains("NaN"));
    }
}
