//! Distributions as papers draw them: a curve of steps for each series, and a cross for each value that the paper
//! prints.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::labels::{Area, Point};
use crate::legend::{self, Room};
use crate::picture::{self, px};
use crate::{coincide, stats, text, ticks};

const WIDTH: f64 = 520.0;
const PLOT: Area = Area { left: 52.0, top: 32.0, right: 502.0, bottom: 300.0 };
/// From the plot to the foot of the axis title.
const AXIS_HEIGHT: f64 = 46.0;
/// Half of the width of a cross.
const CROSS: f64 = 5.0;
/// Two curves are compared at this number of shares.
const COMPARED: usize = 20;

/// A picture of distributions.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// The description for readers who cannot see the picture.
    pub label: String,
    /// The title below the axis, with its unit.
    pub x: String,
    /// The end of an axis that begins at 0. With `None` the values decide, and the axis is logarithmic if they are
    /// far apart.
    pub until: Option<f64>,
    /// What is counted: the shares are shares of it.
    pub of: String,
    /// The series in the order of the legend.
    pub series: Vec<Series>,
}

/// The values of one curve.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The values in any order. Those that are not finite are left out.
    pub values: Vec<f64>,
    /// What the paper prints: values, each with the share at or below it.
    pub paper: Vec<(f64, f64)>,
}

impl Distribution {
    /// The picture as a file of its own.
    pub fn svg(&self) -> String {
        let values = self.series.iter().flat_map(|it| it.values.iter().copied());
        let paper = self.series.iter().flat_map(|it| it.paper.iter().map(|(value, _)| *value));
        let axis = match self.until {
            Some(high) => Axis::from_zero(high),
            None => Axis::over(&stats::sorted(values.chain(paper))),
        };
        let entry = |(at, it): (usize, &Series)| legend::curve(at, &it.name);
        let entries: Vec<_> = self.series.iter().enumerate().map(entry).collect();
        let room = Room { left: 8.0, top: PLOT.bottom + AXIS_HEIGHT, width: WIDTH - 16.0 };
        let (legend, legend_height) = legend::legend(&entries, room);
        let foot = room.top + legend_height;
        let notes = coincide::notes(&self.places(&axis));
        let body = html! {
            (upright(&self.of, self.series.iter().any(|it| !it.paper.is_empty())))
            (flat(&axis, &self.x))
            @for (at, series) in self.series.iter().enumerate() { (steps(at, series, &axis)) }
            @for (at, series) in self.series.iter().enumerate() {
                @for (value, share) in &series.paper { (cross(at, *value, *share, &axis)) }
            }
            (legend)
            (coincide::rows(&notes, (8.0, foot), WIDTH - 16.0))
        };
        let height = foot + coincide::ROW * notes.len() as f64 + 4.0;
        picture::svg(WIDTH, height, &self.label, &body)
    }

    /// For each series the points of its curve at equal steps of the share.
    fn places(&self, axis: &Axis) -> Vec<(&str, Vec<Point>)> {
        let shares = (1..=COMPARED).map(|at| at as f64 / COMPARED as f64);
        let points = |it: &Series| quantiles(&it.values, shares.clone(), axis);
        self.series.iter().map(|it| (it.name.as_str(), points(it))).collect()
    }
}

fn x_of(axis: &Axis, value: f64) -> f64 {
    px(PLOT.left + axis.share(value) * (PLOT.right - PLOT.left))
}

fn y_of(share: f64) -> f64 {
    px(PLOT.bottom - share * (PLOT.bottom - PLOT.top))
}

fn upright(of: &str, has_paper: bool) -> Markup {
    html! {
        text x="8" y="16" { "share of " (text::clean(of)) " at or below" }
        @if has_paper { text class="end" x=(PLOT.right) y="16" { "crosses: the paper" } }
        @for quarter in [0.0, 0.25, 0.5, 0.75, 1.0] {
            @let y = y_of(quarter);
            path class=(if quarter == 0.0 { "axis" } else { "grid" })
                d=(format!("M{} {y}H{}", PLOT.left, PLOT.right)) {}
            text class="end" x=(PLOT.left - 7.0) y=(px(y + 4.0)) { (100.0 * quarter) "%" }
        }
    }
}

fn flat(axis: &Axis, title: &str) -> Markup {
    let ticks: Vec<_> = axis.ticks.iter().map(|it| (x_of(axis, *it), text::tick(*it))).collect();
    html! {
        @for (x, _) in &ticks { path class="axis" d=(format!("M{x} {}v5", PLOT.bottom)) {} }
        (ticks::below(&ticks, PLOT.bottom + 19.0, WIDTH))
        text class="mid" x=(px((PLOT.left + PLOT.right) / 2.0)) y=(PLOT.bottom + 38.0) {
            (text::clean(title)) @if axis.log { " (logarithmic)" }
        }
    }
}

fn steps(at: usize, series: &Series, axis: &Axis) -> Markup {
    let values = stats::sorted(series.values.iter().copied());
    let marks = quantiles(&values, [0.25, 0.5, 0.75].into_iter(), axis);
    let step = |(value, share)| format!("H{}V{}", x_of(axis, value), y_of(share));
    let steps: String = stats::cdf(&values).into_iter().map(step).collect();
    let path = format!("M{} {}{steps}H{}", PLOT.left, y_of(0.0), PLOT.right);
    html! {
        @if !values.is_empty() {
            path class={ "curve " (picture::stroke(at)) } stroke-dasharray=[picture::dashes(at)]
                d=(path) { title { (text::clean(&series.name)) } }
            @for (x, y) in marks { (picture::marker(at, x, y)) }
        }
    }
}

/// Where the curve reaches each share; nothing without values.
fn quantiles(values: &[f64], shares: impl Iterator<Item = f64>, axis: &Axis) -> Vec<Point> {
    let values = stats::sorted(values.iter().copied());
    let last = values.len().checked_sub(1);
    let at =
        |share: f64| last.map(|last| ((share * values.len() as f64).ceil() as usize - 1).min(last));
    shares.filter_map(|share| Some((x_of(axis, values[at(share)?]), y_of(share)))).collect()
}

fn cross(at: usize, value: f64, share: f64, axis: &Axis) -> Markup {
    let (x, y) = (x_of(axis, value), y_of(share));
    html! {
        path class={ "curve " (picture::stroke(at)) } d=(format!(
            "M{} {}l{w} {w}m0 -{w}l-{w} {w}", px(x - CROSS), px(y - CROSS), w = 2.0 * CROSS
        )) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_well_formed;

    #[test]
    fn a_step_for_each_value_and_a_cross_for_each_of_the_papers() {
        let series = Series {
            name: "a<b".to_owned(),
            values: vec![30.0, 10.0, f64::NAN],
            paper: vec![(50.0, 0.5)],
        };
        let all = Distribution {
            label: "<shares>".to_owned(),
            x: "chunks, %".to_owned(),
            until: Some(100.0),
            of: "observers".to_owned(),
            series: vec![series, Series::default()],
        };
        let svg = all.svg();
        assert_well_formed(&svg);
        assert!(svg.contains("a&lt;b") && !svg.contains("NaN"));
        // From the lower left corner: up at 10, up at 30, on to the right.
        let curve = svg.split("<path").find(|it| it.contains("<title>")).unwrap();
        assert_eq!((curve.matches('V').count(), curve.matches('H').count()), (2, 3));
        assert_eq!(svg.matches("m0 -10").count(), 1);
        // A mark at each quartile, and in the legend; the other series has no values.
        assert_eq!(svg.matches("<circle class=\"point").count(), 3 + 1);
        let twin = Series { name: "twin".to_owned(), ..all.series[0].clone() };
        let twins = Distribution { series: vec![all.series[0].clone(), twin], ..all };
        assert!(twins.svg().contains("twin coincides with a&lt;b"));
    }
}
