//! Curves over a number, each point with its confidence interval.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::labels::{Area, Point};
use crate::legend::{self, Room};
use crate::mean::Mean;
use crate::{coincide, picture, stats, text, ticks};
use picture::px;

const WIDTH: f64 = 520.0;
const PLOT: Area = Area { left: 62.0, top: 32.0, right: 502.0, bottom: 300.0 };
/// From the plot to the foot of the axis title.
const AXIS_HEIGHT: f64 = 46.0;
/// From the ends of the axis to the first and the last point.
const MARGIN: f64 = 16.0;
/// Half of the bar at an interval's end.
const CAP: f64 = 3.5;
/// Curves are moved apart by this distance, so that their intervals do not cover each other.
const APART: f64 = 3.0;

/// A picture of curves.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The description for readers who cannot see the picture.
    pub label: String,
    /// The title below the horizontal axis, with its unit.
    pub x: String,
    /// The title above the vertical axis, with its unit.
    pub y: String,
    /// In the order of the legend.
    pub curves: Vec<Curve>,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, Mean)>,
}

impl Chart {
    /// The picture as a file of its own.
    pub fn svg(&self) -> String {
        // From zero, so that heights can be compared.
        let high = self.points().map(|(_, it)| it.high()).fold(0.0, f64::max);
        self.over(&Axis::from_zero(high))
    }

    /// The same with a logarithmic vertical axis, if the values are far apart.
    pub fn wide_svg(&self) -> String {
        let means = self.points().map(|(_, it)| it.mean).filter(|it| it.is_finite());
        self.over(&Axis::over(&stats::sorted(means)))
    }

    fn points(&self) -> impl Iterator<Item = &(f64, Mean)> {
        self.curves.iter().flat_map(|curve| &curve.points)
    }

    fn over(&self, y: &Axis) -> String {
        let x = Places::of(&stats::sorted(self.points().map(|(x, _)| *x)));
        let entry = |(at, it): (usize, &Curve)| legend::curve(at, &it.name);
        let entries: Vec<_> = self.curves.iter().enumerate().map(entry).collect();
        let room = Room { left: 8.0, top: PLOT.bottom + AXIS_HEIGHT, width: WIDTH - 16.0 };
        let (legend, legend_height) = legend::legend(&entries, room);
        let foot = room.top + legend_height;
        let notes = coincide::notes(&self.places(&x, y));
        let body = html! {
            (upright(y, &self.y))
            (flat(&x, &self.x))
            @for (at, curve) in self.curves.iter().enumerate() {
                (line(at, self.shift(at), curve, &x, y))
            }
            (legend)
            (coincide::rows(&notes, (8.0, foot), WIDTH - 16.0))
        };
        let height = foot + coincide::ROW * notes.len() as f64 + 4.0;
        picture::svg(WIDTH, height, &self.label, &body)
    }

    /// How far a curve is moved. Without intervals there is nothing to keep apart.
    fn shift(&self, at: usize) -> f64 {
        let has_intervals = self.points().any(|(_, it)| it.interval.is_some());
        let from_the_middle = at as f64 - (self.curves.len() as f64 - 1.0) / 2.0;
        if has_intervals { from_the_middle * APART } else { 0.0 }
    }

    /// The points of each curve, before curves are moved apart.
    fn places(&self, places: &Places, axis: &Axis) -> Vec<(&str, Vec<Point>)> {
        let point = |(x, it): &(f64, Mean)| (places.x(*x), y_of(axis, it.mean));
        let known = |curve: &Curve| {
            curve.points.iter().filter(|(_, it)| it.mean.is_finite()).map(point).collect()
        };
        self.curves.iter().map(|curve| (curve.name.as_str(), known(curve))).collect()
    }
}

/// The places of values on the horizontal axis: to scale, or at equal distances if they are very uneven.
struct Places {
    values: Vec<f64>,
    is_even: bool,
}

impl Places {
    fn of(sorted: &[f64]) -> Self {
        let mut values = sorted.to_vec();
        values.dedup();
        let is_wide = matches!(values.as_slice(), [first, .., last] if *last > 20.0 * first);
        Self { is_even: !is_wide, values }
    }

    fn x(&self, value: f64) -> f64 {
        let (left, right) = (PLOT.left + MARGIN, PLOT.right - MARGIN);
        let place = |value| self.values.iter().position(|it| *it == value).unwrap_or(0) as f64;
        let [first, last] = match self.values.as_slice() {
            [] | [_] => return px((left + right) / 2.0),
            [first, .., last] if self.is_even => [*first, *last],
            [first, .., last] => [place(*first), place(*last)],
        };
        let value = if self.is_even { value } else { place(value) };
        left + (value - first) / (last - first) * (right - left)
    }
}

fn y_of(axis: &Axis, value: f64) -> f64 {
    px(PLOT.bottom - axis.share(value) * (PLOT.bottom - PLOT.top))
}

fn upright(axis: &Axis, title: &str) -> Markup {
    html! {
        text x="8" y="16" { (text::clean(title)) }
        // A logarithmic axis need not begin with a tick.
        path class="axis" d=(format!("M{} {}H{}", PLOT.left, PLOT.bottom, PLOT.right)) {}
        @for &tick in &axis.ticks {
            @let y = y_of(axis, tick);
            @if y < PLOT.bottom {
                path class="grid" d=(format!("M{} {y}H{}", PLOT.left, PLOT.right)) {}
            }
            text class="end" x=(PLOT.left - 7.0) y=(px(y + 4.0)) { (text::tick(tick)) }
        }
    }
}

fn flat(places: &Places, title: &str) -> Markup {
    let ticks: Vec<_> = places.values.iter().map(|it| (places.x(*it), text::tick(*it))).collect();
    html! {
        @for (x, _) in &ticks { path class="axis" d=(format!("M{} {}v5", px(*x), PLOT.bottom)) {} }
        (ticks::below(&ticks, PLOT.bottom + 19.0, WIDTH))
        text class="mid" x=(px((PLOT.left + PLOT.right) / 2.0)) y=(PLOT.bottom + 38.0) {
            (text::clean(title))
        }
    }
}

fn line(at: usize, shift: f64, curve: &Curve, places: &Places, axis: &Axis) -> Markup {
    let known = || curve.points.iter().filter(|(_, it)| it.mean.is_finite());
    let place = |(x, it): &(f64, Mean)| (px(places.x(*x) + shift), y_of(axis, it.mean));
    let path: Vec<_> = known().map(place).map(|(x, y)| format!("{x} {y}")).collect();
    html! {
        @if !path.is_empty() {
            path class={ "curve " (picture::stroke(at)) } stroke-dasharray=[picture::dashes(at)]
                d=(format!("M{}", path.join("L"))) { title { (text::clean(&curve.name)) } }
        }
        @for point in known() {
            @let (x, y) = place(point);
            @if let Some(ends) = point.1.interval {
                @let [low, high] = ends.map(|it| y_of(axis, it.max(0.0)));
                path class={ "curve " (picture::stroke(at)) } d=(format!(
                    "M{x} {low}V{high}M{} {low}h{w}M{} {high}h{w}", x - CAP, x - CAP, w = 2.0 * CAP
                )) {}
            }
            (picture::marker(at, x, y))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_each_curve_its_intervals_and_no_markup_of_others() {
        let point = |mean| Mean { mean, interval: Some([mean - 1.0, mean + 1.0]) };
        let curve = |name: &str, mean| Curve {
            name: name.to_owned(),
            points: vec![(1.0, point(mean)), (2.0, point(f64::NAN)), (3.0, point(2.0 * mean))],
        };
        let chart = Chart {
            label: "<speed>".to_owned(),
            x: "hops".to_owned(),
            y: "kbit/s".to_owned(),
            curves: vec![curve("a<b", 10.0), curve("c", 5.0)],
        };
        let svg = chart.svg();
        // Two known points and an entry of the legend for each curve, each curve with a shape of its own.
        assert_eq!(svg.matches("<circle class=\"point").count(), 3);
        assert_eq!(svg.matches("<path class=\"point").count(), 3);
        assert!(!svg.contains("coincide"));
        let twins = Chart { curves: vec![curve("a", 10.0), curve("b", 10.0)], ..chart.clone() };
        assert!(twins.svg().contains("b coincides with a"));
        assert!(svg.contains("a&lt;b") && !svg.contains("a<b") && !svg.contains("NaN"));
        assert!(svg.contains(">25<") || svg.contains(">20<"), "the axis reaches the values");
        assert!(Chart { curves: Vec::new(), ..chart }.svg().contains("hops"));
    }

    #[test]
    fn curves_without_intervals_stand_where_their_values_are() {
        let curve = |mean| Curve {
            name: format!("{mean}"),
            points: [1.0, 2.0].map(|x| (x, Mean { mean, interval: None })).into(),
        };
        let chart = Chart {
            label: "times".to_owned(),
            x: "link".to_owned(),
            y: "times".to_owned(),
            curves: [0.1, 1.0, 10.0].map(curve).into(),
        };
        // Only curves have lines from point to point; the heights of the three at their left ends.
        let heights = |svg: &str| -> Vec<f64> {
            let paths = svg.split(" d=\"M").filter_map(|it| it.split('"').next()?.split_once('L'));
            let starts = paths.filter_map(|(start, _)| start.split_once(' '));
            let left = px(PLOT.left + MARGIN).to_string();
            starts.filter(|(x, _)| *x == left).filter_map(|(_, y)| y.parse().ok()).collect()
        };
        let [wide, linear] = [chart.wide_svg(), chart.svg()].map(|it| heights(&it));
        let apart = |it: &[f64]| [it[0] - it[1], it[1] - it[2]];
        assert_eq!((wide.len(), linear.len()), (3, 3));
        let [low, high] = apart(&wide);
        assert!((low - high).abs() < 0.3 && low > 50.0, "{wide:?}");
        let [low, high] = apart(&linear);
        assert!((high - 10.0 * low).abs() < 2.0, "{linear:?}");
    }

    #[test]
    fn uneven_places_stand_at_equal_distances() {
        let even = Places::of(&[1.0, 2.0, 3.0]);
        assert_eq!(even.x(2.0) - even.x(1.0), even.x(3.0) - even.x(2.0));
        let wide = Places::of(&[1.0, 2.0, 2.0, 100.0]);
        assert_eq!(wide.x(2.0) - wide.x(1.0), wide.x(100.0) - wide.x(2.0));
    }
}
