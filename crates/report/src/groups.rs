//! Bars in groups, each with its confidence interval, and a mark at the value of the paper.

use maud::{Markup, html};

use crate::axis::Axis;
use crate::labels::Area;
use crate::legend::{self, Entry, Room};
use crate::mean::Mean;
use crate::{picture, text};
use picture::px;

const WIDTH: f64 = 520.0;
const PLOT: Area = Area { left: 68.0, top: 32.0, right: 502.0, bottom: 290.0 };
/// The share of a group's width that its bars take.
const BARS_SHARE: f64 = 0.78;
const TEXT_SIZE: f64 = 12.5;
/// Half of the widest line at the end of an interval.
const CAP: f64 = 5.0;

/// A picture of bars.
#[derive(Clone, Debug)]
pub struct Bars {
    /// The description for readers who cannot see the picture.
    pub label: String,
    /// The title above the vertical axis, with its unit.
    pub y: String,
    /// The title below the names of the groups; may be empty.
    pub x: String,
    /// The names of the bars of a group, in their order.
    pub series: Vec<String>,
    /// The groups from left to right.
    pub groups: Vec<Group>,
}

/// Bars that stand together.
#[derive(Clone, Debug)]
pub struct Group {
    /// The name below the group.
    pub name: String,
    /// Our value of each bar, and the paper's if it has one.
    pub bars: Vec<(Mean, Option<f64>)>,
}

impl Bars {
    /// The picture as a file of its own.
    pub fn svg(&self) -> String {
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let ends = bars().flat_map(|(ours, paper)| [ours.high(), paper.unwrap_or(0.0)]);
        let axis = Axis::from_zero(ends.filter(|it| it.is_finite()).fold(0.0, f64::max));
        let width = (PLOT.right - PLOT.left) / self.groups.len().max(1) as f64;
        let has_paper = bars().any(|(_, paper)| paper.is_some());
        let room = Room { left: 8.0, top: PLOT.bottom + foot(&self.x), width: WIDTH - 16.0 };
        let (legend, legend_height) = legend::legend(&entries(&self.series, has_paper), room);
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
                    (picture::fit(&group.name, TEXT_SIZE, width - 4.0))
                }
            }
            text class="mid" x=(px((PLOT.left + PLOT.right) / 2.0)) y=(PLOT.bottom + 40.0) {
                (picture::fit(&self.x, TEXT_SIZE, WIDTH - 16.0))
            }
            (legend)
        };
        picture::svg(WIDTH, room.top + legend_height + 4.0, &self.label, &body)
    }
}

/// From the bars to the legend: names stand there, and the title of the axis if it has one.
fn foot(title: &str) -> f64 {
    if title.is_empty() { 32.0 } else { 50.0 }
}

fn y_of(axis: &Axis, value: f64) -> f64 {
    px(PLOT.bottom - axis.share(value) * (PLOT.bottom - PLOT.top))
}

fn bars_of(group: &Group, left: f64, width: f64, axis: &Axis) -> Markup {
    let bar = width * BARS_SHARE / group.bars.len().max(1) as f64;
    // Narrow bars are nearer to each other.
    let gap = (0.1 * bar).min(2.0);
    let cap = CAP.min(bar / 3.0);
    let left = left + width * (1.0 - BARS_SHARE) / 2.0;
    html! {
        @for (at, (ours, paper)) in group.bars.iter().enumerate().filter(|(_, it)| it.0.mean.is_finite()) {
            @let (x, top) = (px(left + bar * at as f64), y_of(axis, ours.mean));
            @let middle = px(x + bar / 2.0);
            rect class=(picture::fill(at)) x=(px(x + gap)) y=(top) width=(px(bar - 2.0 * gap))
                height=(px(PLOT.bottom - top)) {}
            @if let Some(ends) = ours.interval {
                @let [low, high] = ends.map(|it| y_of(axis, it.max(0.0)));
                path class="bar" d=(format!(
                    "M{middle} {low}V{high}M{} {low}h{w}M{} {high}h{w}",
                    px(middle - cap), px(middle - cap), w = px(2.0 * cap)
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

fn entries(series: &[String], has_paper: bool) -> Vec<Entry> {
    let entry = |(at, name): (usize, &String)| Entry {
        mark: html! { rect class=(picture::fill(at)) x="0" y="-6" width="14" height="12" {} },
        width: 14.0,
        meaning: name.clone(),
    };
    let paper = || Entry {
        mark: html! {
            path class="gateway" d="M0 0h18" {}
            path class="point f8" d="M18 -5l5 5l-5 5l-5 -5z" {}
        },
        width: 24.0,
        meaning: "paper".to_owned(),
    };
    series.iter().enumerate().map(entry).chain(has_paper.then(paper)).collect()
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
            x: "sets".to_owned(),
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
