//! The distribution of throughputs: a curve of steps for each scheme, with a mark at its median.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::labels::{self, Area, Name, Point, Segment};
use crate::picture::{self, px};
use crate::{coincide, stats, text, ticks};

const WIDTH: f64 = 440.0;
const PLOT: Area = Area { left: 44.0, top: 30.0, right: 420.0, bottom: 308.0 };
/// From the plot to the foot of the axis title.
const AXIS_HEIGHT: f64 = 46.0;
const LEGEND_ROW: f64 = 19.0;
const TEXT_SIZE: f64 = 12.0;
/// Bold text is a little wider.
const STRONG_SIZE: f64 = 1.08 * TEXT_SIZE;

/// The curve of one scheme.
#[derive(Clone, Debug)]
pub struct Curve {
    name: String,
    /// The throughputs, ascending.
    values: Vec<f64>,
    /// The throughputs of hits among them, ascending.
    hits: Vec<f64>,
    median: Option<f64>,
}

/// The picture as a file of its own.
pub fn svg(curves: &[Curve]) -> String {
    let all = stats::sorted(curves.iter().flat_map(|curve| curve.values.iter().copied()));
    let axis = Axis::over(&all);
    let rows = if curves.len() > 1 { curves.len() } else { 0 };
    let foot = PLOT.bottom + AXIS_HEIGHT + LEGEND_ROW * rows as f64 + 2.0;
    let notes = coincide::notes(&places(curves, &axis));
    let height = foot + coincide::ROW * notes.len() as f64;
    let zeros = axis.log && all.first() == Some(&0.0);
    let body = html! {
        (shares(curves.iter().any(|curve| !curve.hits.is_empty())))
        (throughputs(&axis, zeros))
        @for (at, curve) in curves.iter().enumerate() { (steps(at, curve, &axis)) }
        (medians(curves, &axis))
        @if rows > 0 { (legend(curves)) }
        (coincide::rows(&notes, (PLOT.left, foot), WIDTH - PLOT.left))
        @if all.is_empty() {
            text class="mid" x=(px((PLOT.left + PLOT.right) / 2.0)) y="150" { "no transfers" }
        }
    };
    picture::svg(WIDTH, height, "Distribution of throughput over the transfers", &body)
}

impl Curve {
    /// The throughputs of a scheme in kbit/s, and those of its hits among them, in any order.
    pub fn new(
        name: &str,
        values: impl IntoIterator<Item = f64>,
        hits: impl IntoIterator<Item = f64>,
    ) -> Self {
        let (values, hits) = (stats::sorted(values), stats::sorted(hits));
        let median = stats::median(values.iter().copied());
        Self { name: text::clean(&text::short(name, 24)), values, hits, median }
    }
}

/// The corners of each curve.
fn places<'a>(curves: &'a [Curve], axis: &Axis) -> Vec<(&'a str, Vec<Point>)> {
    let point = |(value, share)| (x_of(axis, value), y_of(share));
    let points = |curve: &Curve| stats::cdf(&curve.values).into_iter().map(point).collect();
    curves.iter().map(|curve| (curve.name.as_str(), points(curve))).collect()
}

fn x_of(axis: &Axis, value: f64) -> f64 {
    px(PLOT.left + axis.share(value) * (PLOT.right - PLOT.left))
}

fn y_of(share: f64) -> f64 {
    px(PLOT.bottom - share * (PLOT.bottom - PLOT.top))
}

/// The vertical axis, and the meaning of dots on curves.
fn shares(dots: bool) -> Markup {
    html! {
        text x="8" y="15" { "share of transfers at or below" }
        @if dots { text class="end" x=(PLOT.right) y="15" { "dots: hits in the mesh" } }
        @for quarter in [0.0, 0.25, 0.5, 0.75, 1.0] {
            @let y = y_of(quarter);
            path class=(if quarter == 0.0 { "axis" } else { "grid" })
                d=(format!("M{} {y}H{}", PLOT.left, PLOT.right)) {}
            text class="end" x=(PLOT.left - 6.0) y=(px(y + 4.0)) { (100.0 * quarter) "%" }
        }
    }
}

/// The horizontal axis.
fn throughputs(axis: &Axis, zeros: bool) -> Markup {
    let title = match (axis.log, zeros) {
        (false, _) => "throughput, kbit/s",
        (true, false) => "throughput, kbit/s (logarithmic)",
        (true, true) => "throughput, kbit/s (logarithmic; zero at the left edge)",
    };
    let ticks: Vec<_> = axis.ticks.iter().map(|it| (x_of(axis, *it), text::tick(*it))).collect();
    html! {
        @for (x, _) in &ticks { path class="axis" d=(format!("M{x} {}v5", PLOT.bottom)) {} }
        (ticks::below(&ticks, PLOT.bottom + 19.0, WIDTH))
        text class="mid" x=(px((PLOT.left + PLOT.right) / 2.0)) y=(PLOT.bottom + 38.0) { (title) }
    }
}

/// A curve from the lower left to the upper right that rises at each value.
fn steps(at: usize, curve: &Curve, axis: &Axis) -> Markup {
    let step = |(value, share)| format!("H{}V{}", x_of(axis, value), y_of(share));
    let steps: String = stats::cdf(&curve.values).into_iter().map(step).collect();
    let path = format!("M{} {}{steps}H{}", PLOT.left, y_of(0.0), PLOT.right);
    html! {
        @if !curve.values.is_empty() {
            path class={ "curve " (picture::stroke(at)) } stroke-dasharray=[picture::dashes(at)]
                d=(path) { title { (curve.name) } }
            @for (value, share) in hits(curve) {
                circle class=(picture::fill(at)) cx=(x_of(axis, value)) cy=(y_of(share)) r="2.5" {}
            }
        }
    }
}

/// The points of the curve that have a hit, each value once.
fn hits(curve: &Curve) -> impl Iterator<Item = (f64, f64)> {
    let is_hit = |value: &f64| curve.hits.binary_search_by(|it| it.total_cmp(value)).is_ok();
    stats::cdf(&curve.values).into_iter().filter(move |(value, _)| is_hit(value))
}

/// A mark at each median, and its value beside it if there is room. The legend has all values.
fn medians(curves: &[Curve], axis: &Axis) -> Markup {
    let known = |(at, curve): (usize, &Curve)| Some((at, curve.median?));
    let medians: Vec<_> = curves.iter().enumerate().filter_map(known).collect();
    let dots: Vec<_> = medians.iter().map(|it| (x_of(axis, it.1), y_of(0.5))).collect();
    let values: Vec<_> = medians.iter().map(|it| median_text(it.1, curves.len() == 1)).collect();
    let areas = value_areas(&values, &dots, &lines(curves, axis));
    html! {
        @for ((at, _), (x, y)) in medians.iter().zip(&dots) { (picture::marker(*at, *x, *y)) }
        @for (value, area) in values.iter().zip(areas) {
            @if let Some(area) = area {
                text class="strong halo mid" x=(px((area.left + area.right) / 2.0))
                    y=(px(area.bottom - 4.0)) { (value) }
            }
        }
    }
}

/// Where values stand: in the plot, and away from marks, from each other and, if it can be, from curves.
fn value_areas(values: &[String], dots: &[Point], lines: &[(Segment, u32)]) -> Vec<Option<Area>> {
    let name = |(dot, value): (usize, &String)| {
        let width = picture::text_width(value, STRONG_SIZE);
        Name { dot, width, height: TEXT_SIZE + 3.0 }
    };
    let names: Vec<_> = values.iter().enumerate().map(name).collect();
    let bounds = Area { right: WIDTH - 2.0, ..PLOT };
    labels::place(&names, &labels::Room { bounds, dots, radius: 6.0, lines })
}

/// The steps of all curves.
fn lines(curves: &[Curve], axis: &Axis) -> Vec<(Segment, u32)> {
    let of = |curve: &Curve| {
        let mut at = (PLOT.left, y_of(0.0));
        let mut lines = Vec::new();
        for (value, share) in stats::cdf(&curve.values) {
            let corner = (x_of(axis, value), at.1);
            let top = (corner.0, y_of(share));
            lines.extend([((at, corner), 1), ((corner, top), 1)]);
            at = top;
        }
        lines
    };
    curves.iter().flat_map(of).collect()
}

fn median_text(median: f64, alone: bool) -> String {
    let value = text::number(median);
    if alone { format!("median {value} kbit/s") } else { value }
}

/// A row for each scheme, with its line, its name and its median.
fn legend(curves: &[Curve]) -> Markup {
    html! {
        @for (at, curve) in curves.iter().enumerate() {
            @let y = px(PLOT.bottom + AXIS_HEIGHT + LEGEND_ROW * (at as f64 + 0.5));
            path class={ "curve " (picture::stroke(at)) } stroke-dasharray=[picture::dashes(at)]
                d=(format!("M{} {}h34", PLOT.left, y)) {}
            (picture::marker(at, PLOT.left + 17.0, y))
            text class="strong" x=(PLOT.left + 44.0) y=(px(y + 4.0)) { (curve.name) }
            text class="end" x=(PLOT.right) y=(px(y + 4.0)) {
                "median " (text::with_unit(curve.median, "kbit/s"))
                ", " (text::plural(curve.values.len(), "transfer"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_well_formed;

    fn picture(curves: &[Curve]) -> String {
        let svg = svg(curves);
        assert_well_formed(&svg);
        svg
    }

    fn curve(name: &str, values: &[f64]) -> Curve {
        Curve::new(name, values.iter().copied(), [])
    }

    #[test]
    fn a_curve_rises_where_values_are() {
        let svg = picture(&[curve("ditto", &[100.0, 200.0, 200.0, 500.0])]);
        // The scale runs from 0 to 500, hence 75.2 px for each 100.
        assert!(svg.contains("M44 308H119.2V238.5H194.4V99.5H420V30H420"), "{svg}");
        assert!(svg.contains("median 200 kbit/s"));
        assert!(!svg.contains("logarithmic"));
    }

    #[test]
    fn hits_are_marked_on_the_curve() {
        let svg = picture(&[Curve::new("thcp", [100.0, 500.0, 500.0, 200.0], [500.0, 500.0])]);
        assert!(svg.contains("dots: hits in the mesh"));
        assert_eq!(svg.matches("r=\"2.5\"").count(), 1, "{svg}");
        assert!(svg.contains("cx=\"420\" cy=\"30\" r=\"2.5\""), "{svg}");
    }

    #[test]
    fn wide_spans_are_logarithmic_and_say_so() {
        let svg = picture(&[curve("ditto", &[0.0, 1.0, 100.0])]);
        assert!(svg.contains("logarithmic; zero at the left edge"));
        assert!(svg.contains("H44V215.3H44V122.7H420V30H420"), "{svg}");
    }

    #[test]
    fn degenerate_runs_have_a_picture() {
        assert!(picture(&[]).contains("no transfers"));
        assert!(picture(&[curve("a", &[])]).contains("no transfers"));
        assert!(picture(&[curve("a", &[f64::NAN])]).contains("no transfers"));
        for kbps in [0.0, 7.0, 1e300, 1e-300] {
            let svg = picture(&[curve("a<&\">", &[kbps; 3])]);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn each_scheme_has_a_row_with_its_median() {
        let svg = picture(&[curve("default", &[100.0]), curve("dit<to", &[300.0])]);
        assert!(svg.contains("dit&lt;to"));
        assert_eq!(svg.matches("class=\"curve").count(), 4);
        assert!(svg.contains("median 300\u{a0}kbit/s"));
    }
}
