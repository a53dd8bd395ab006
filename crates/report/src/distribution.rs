//! A distribution as papers draw it: for each series a curve of steps, and what the paper prints of its
//! own as crosses.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::labels::Area;
use crate::picture::{self, px};
use crate::stats;
use crate::text;

const WIDTH: f64 = 520.0;
const PLOT: Area = Area { left: 52.0, top: 32.0, right: 502.0, bottom: 300.0 };
/// From the plot to the foot of the axis title.
const AXIS_HEIGHT: f64 = 46.0;
const LEGEND_ROW: f64 = 19.0;
/// Entries of the legend in a row.
const LEGEND_COLUMNS: usize = 2;
/// Half of a cross.
const CROSS: f64 = 5.0;

/// A picture of distributions.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// For those who cannot see it.
    pub label: String,
    /// Below the axis, with its unit.
    pub x: String,
    /// Where the axis ends, from 0 on; `None`: where values say, logarithmic if they are far apart.
    pub until: Option<f64>,
    /// What the shares are of.
    pub of: String,
    /// In the order of the legend.
    pub series: Vec<Series>,
}

/// One series.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// In any order; what is not finite is left out.
    pub values: Vec<f64>,
    /// What the paper prints: a value, and the share at or below it.
    pub paper: Vec<(f64, f64)>,
}

impl Distribution {
    /// As a file of its own.
    pub fn svg(&self) -> String {
        let values = self.series.iter().flat_map(|it| it.values.iter().copied());
        let paper = self.series.iter().flat_map(|it| it.paper.iter().map(|(value, _)| *value));
        let axis = match self.until {
            Some(high) => Axis::from_zero(high),
            None => Axis::over(&stats::sorted(values.chain(paper))),
        };
        let rows = self.series.len().div_ceil(LEGEND_COLUMNS);
        let height = PLOT.bottom + AXIS_HEIGHT + LEGEND_ROW * rows as f64 + 4.0;
        let body = html! {
            (upright(&self.of, self.series.iter().any(|it| !it.paper.is_empty())))
            (flat(&axis, &self.x))
            @for (at, series) in self.series.iter().enumerate() { (steps(at, series, &axis)) }
            @for (at, series) in self.series.iter().enumerate() {
                @for (value, share) in &series.paper { (cross(at, *value, *share, &axis)) }
            }
            (legend(&self.series))
        };
        picture::svg(WIDTH, height, &self.label, &body)
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
    html! {
        @for &tick in &axis.ticks {
            @let x = x_of(axis, tick);
            path class="axis" d=(format!("M{x} {}v5", PLOT.bottom)) {}
            text class="mid" x=(x) y=(PLOT.bottom + 19.0) { (text::tick(tick)) }
        }
        text class="mid" x=(px((PLOT.left + PLOT.right) / 2.0)) y=(PLOT.bottom + 38.0) {
            (text::clean(title)) @if axis.log { " (logarithmic)" }
        }
    }
}

fn steps(at: usize, series: &Series, axis: &Axis) -> Markup {
    let values = stats::sorted(series.values.iter().copied());
    let step = |(value, share)| format!("H{}V{}", x_of(axis, value), y_of(share));
    let steps: String = stats::cdf(&values).into_iter().map(step).collect();
    let path = format!("M{} {}{steps}H{}", PLOT.left, y_of(0.0), PLOT.right);
    html! {
        @if !values.is_empty() {
            path class={ "curve " (picture::stroke(at)) } stroke-dasharray=[picture::dashes(at)]
                d=(path) { title { (text::clean(&series.name)) } }
        }
    }
}

fn cross(at: usize, value: f64, share: f64, axis: &Axis) -> Markup {
    let (x, y) = (x_of(axis, value), y_of(share));
    html! {
        path class={ "curve " (picture::stroke(at)) } d=(format!(
            "M{} {}l{w} {w}m0 -{w}l-{w} {w}", px(x - CROSS), px(y - CROSS), w = 2.0 * CROSS
        )) {}
    }
}

fn legend(series: &[Series]) -> Markup {
    let column = (PLOT.right - PLOT.left) / LEGEND_COLUMNS as f64;
    html! {
        @for (at, series) in series.iter().enumerate() {
            @let x = px(PLOT.left + column * (at % LEGEND_COLUMNS) as f64);
            @let y = PLOT.bottom + AXIS_HEIGHT + LEGEND_ROW * (at / LEGEND_COLUMNS) as f64 + 10.0;
            path class={ "curve " (picture::stroke(at)) } stroke-dasharray=[picture::dashes(at)]
                d=(format!("M{x} {}h24", y - 4.0)) {}
            text x=(x + 31.0) y=(y) { (text::clean(&text::short(&series.name, 32))) }
        }
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
    }
}
