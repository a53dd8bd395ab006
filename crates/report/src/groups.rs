//! Bars in groups, each with its confidence interval, and a mark where the paper's is.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::labels::Area;
use crate::mean::Mean;
use crate::{picture, text};
use picture::px;

const WIDTH: f64 = 520.0;
const PLOT: Area = Area { left: 68.0, top: 32.0, right: 502.0, bottom: 290.0 };
const FOOT: f64 = 58.0;
/// Of a group's width, what its bars take.
const BARS_SHARE: f64 = 0.78;
/// Half of the bar at an interval's end.
const CAP: f64 = 5.0;

/// A picture of bars.
#[derive(Clone, Debug)]
pub struct Bars {
    /// For those who cannot see it.
    pub label: String,
    /// Above the axis, with its unit.
    pub y: String,
    /// What the bars of a group are, in their order.
    pub series: Vec<String>,
    /// From left to right.
    pub groups: Vec<Group>,
}

/// Bars that stand together.
#[derive(Clone, Debug)]
pub struct Group {
    /// Below it.
    pub name: String,
    /// Ours, and the paper's if it has one.
    pub bars: Vec<(Mean, Option<f64>)>,
}

impl Bars {
    /// As a file of its own.
    pub fn svg(&self) -> String {
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let ends = bars().flat_map(|(ours, paper)| [ours.high(), paper.unwrap_or(0.0)]);
        let axis = Axis::from_zero(ends.filter(|it| it.is_finite()).fold(0.0, f64::max));
        let width = (PLOT.right - PLOT.left) / self.groups.len().max(1) as f64;
        let body = html! {
            text x="8" y="16" { (text::clean(&self.y)) }
            @for (at, &tick) in axis.ticks.iter().enumerate() {
                @let y = y_of(&axis, tick);
                path class=(if at == 0 { "axis" } else { "grid" })
                    d=(format!("M{} {y}H{}", PLOT.left, PLOT.right)) {}
                text class="end" x=(PLOT.left - 7.0) y=(px(y + 4.0)) { (text::tick(tick)) }
            }
            @for (at, group) in self.groups.iter().enumerate() {
                @let left = PLOT.left + width * at as f64;
                (bars_of(group, left, width, &axis))
                text class="mid strong" x=(px(left + width / 2.0)) y=(PLOT.bottom + 20.0) {
                    (text::clean(&group.name))
                }
            }
            (legend(&self.series))
        };
        picture::svg(WIDTH, PLOT.bottom + FOOT, &self.label, &body)
    }
}

fn y_of(axis: &Axis, value: f64) -> f64 {
    px(PLOT.bottom - axis.share(value) * (PLOT.bottom - PLOT.top))
}

fn bars_of(group: &Group, left: f64, width: f64, axis: &Axis) -> Markup {
    let bar = width * BARS_SHARE / group.bars.len().max(1) as f64;
    let left = left + width * (1.0 - BARS_SHARE) / 2.0;
    html! {
        @for (at, (ours, paper)) in group.bars.iter().enumerate().filter(|(_, it)| it.0.mean.is_finite()) {
            @let (x, top) = (px(left + bar * at as f64), y_of(axis, ours.mean));
            @let middle = px(x + bar / 2.0);
            rect class=(picture::fill(at)) x=(px(x + 2.0)) y=(top) width=(px(bar - 4.0))
                height=(px(PLOT.bottom - top)) {}
            @if let Some(ends) = ours.interval {
                @let [low, high] = ends.map(|it| y_of(axis, it.max(0.0)));
                path class="bar" d=(format!(
                    "M{middle} {low}V{high}M{} {low}h{w}M{} {high}h{w}",
                    middle - CAP, middle - CAP, w = 2.0 * CAP
                )) {}
            }
            @if let Some(paper) = paper {
                @let y = y_of(axis, *paper);
                path class="gateway" d=(format!("M{x} {y}h{}", px(bar))) {
                    title { "paper: " (text::number(*paper)) }
                }
                path class="point f8" d=(format!("M{} {}l5 5l-5 5l-5 -5z", px(x + bar), px(y - 5.0))) {}
            }
        }
    }
}

fn legend(series: &[String]) -> Markup {
    let y = PLOT.bottom + FOOT - 10.0;
    let column = (PLOT.right - PLOT.left) / (series.len() + 1) as f64;
    html! {
        @for (at, name) in series.iter().enumerate() {
            @let x = px(PLOT.left + column * at as f64);
            rect class=(picture::fill(at)) x=(x) y=(y - 10.0) width="14" height="12" {}
            text x=(x + 20.0) y=(y) { (text::clean(&text::short(name, 14))) }
        }
        @let x = px(PLOT.left + column * series.len() as f64);
        path class="gateway" d=(format!("M{x} {}h18", y - 4.0)) {}
        path class="point f8" d=(format!("M{} {}l5 5l-5 5l-5 -5z", x + 18.0, y - 9.0)) {}
        text x=(x + 28.0) y=(y) { "paper" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bar_has_its_interval_and_the_papers_mark() {
        let bar = |mean, paper| (Mean { mean, interval: Some([mean - 1.0, mean + 1.0]) }, paper);
        let bars = Bars {
            label: "load".to_owned(),
            y: "KB".to_owned(),
            series: vec!["a<b".to_owned(), "c".to_owned()],
            groups: vec![Group {
                name: "S1".to_owned(),
                bars: vec![bar(3.0, Some(4.0)), bar(5.0, None)],
            }],
        };
        let svg = bars.svg();
        // Two bars, two entries of the legend, the paper below all.
        assert_eq!(svg.matches("<rect").count(), 2 + 2 + 1);
        assert_eq!(svg.matches("class=\"bar\"").count(), 2);
        assert!(svg.contains("paper: 4") && svg.contains("a&lt;b") && !svg.contains("NaN"));
    }
}
