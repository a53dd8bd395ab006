//! Shares of a whole, stacked: a bar for each row, a part for each source.

use maud::{Markup, html};

use crate::legend::{self, Entry, Room};
use crate::picture::{self, px};
use crate::text;

const WIDTH: f64 = 520.0;
const LEFT: f64 = 118.0;
const RIGHT: f64 = 502.0;
const TOP: f64 = 28.0;
const ROW: f64 = 22.0;
const BAR: f64 = 15.0;
/// A part of this width has its share written in it.
const PERCENT_WIDTH: f64 = 42.0;
/// From the bars to the legend: the names of the axis stand there.
const FOOT: f64 = 30.0;
const TEXT_SIZE: f64 = 12.0;

/// A picture of shares.
#[derive(Clone, Debug)]
pub struct Shares {
    /// The description for readers who cannot see the picture.
    pub label: String,
    /// What the bars are shares of.
    pub of: String,
    /// The sources in the order of the parts: the name and the number of the colour.
    pub sources: Vec<(String, usize)>,
    /// From top to bottom.
    pub rows: Vec<Row>,
}

/// A bar.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name at the left end.
    pub name: String,
    /// The amount of each source, in any unit. What is negative or not finite counts as 0.
    pub amounts: Vec<f64>,
}

impl Row {
    /// For each source that has a share: its place, its share of the row, and the shares before it.
    fn parts(&self) -> Vec<(usize, f64, f64)> {
        let amounts =
            || self.amounts.iter().map(|it| if it.is_finite() { it.max(0.0) } else { 0.0 });
        let whole: f64 = amounts().sum();
        let mut before = 0.0;
        let mut part = |(at, amount): (usize, f64)| {
            let share = amount / whole;
            before += share;
            (at, share, before - share)
        };
        amounts().enumerate().filter(|(_, it)| *it > 0.0).map(&mut part).collect()
    }
}

impl Shares {
    /// The picture as a file of its own.
    pub fn svg(&self) -> String {
        let foot = TOP + ROW * self.rows.len() as f64;
        let room = Room { left: 8.0, top: foot + FOOT, width: WIDTH - 16.0 };
        let (legend, height) = legend::legend(&self.entries(), room);
        let body = html! {
            text x="8" y="16" { "share of " (text::clean(&self.of)) }
            @for (at, row) in self.rows.iter().enumerate() { (self.bar(row, TOP + ROW * at as f64)) }
            @for quarter in [0.0, 0.25, 0.5, 0.75, 1.0] {
                @let x = x_of(quarter);
                path class="axis" d=(format!("M{x} {}v5", px(foot))) {}
                text class="mid" x=(x) y=(px(foot + 19.0)) { (100.0 * quarter) "%" }
            }
            (legend)
        };
        picture::svg(WIDTH, foot + FOOT + height + 4.0, &self.label, &body)
    }

    fn bar(&self, row: &Row, top: f64) -> Markup {
        let (y, text_y) = (px(top + (ROW - BAR) / 2.0), px(top + ROW / 2.0 + 4.0));
        html! {
            text class="end" x=(LEFT - 8.0) y=(text_y) { (picture::fit(&row.name, TEXT_SIZE, LEFT - 12.0)) }
            @for (at, share, before) in row.parts() {
                @let hue = self.sources.get(at).map_or(at, |it| it.1);
                @let (left, right) = (x_of(before), x_of(before + share));
                rect class={ "slice " (picture::fill(hue)) } x=(left) y=(y) width=(px(right - left)) height=(BAR) {
                    title { (text::percent(share)) }
                }
                @if right - left >= PERCENT_WIDTH {
                    text class="inside mid" x=(px((left + right) / 2.0)) y=(text_y) { (text::percent(share)) }
                }
            }
        }
    }

    /// The sources that any row has.
    fn entries(&self) -> Vec<Entry> {
        let occurs =
            |at: usize| self.rows.iter().any(|row| row.parts().iter().any(|it| it.0 == at));
        let named = self.sources.iter().enumerate().filter(|(at, _)| occurs(*at));
        let entry = |(_, (name, hue)): (usize, &(String, usize))| Entry {
            mark: html! { rect class=(picture::fill(*hue)) x="0" y="-6" width="14" height="12" {} },
            width: 14.0,
            meaning: name.clone(),
        };
        named.map(entry).collect()
    }
}

fn x_of(share: f64) -> f64 {
    px(LEFT + share * (RIGHT - LEFT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_well_formed;

    fn drawn(rows: Vec<Row>) -> String {
        let sources =
            [("a<b", 4), ("b", 0), ("c", 1)].map(|(name, hue)| (name.to_owned(), hue)).into();
        let svg = Shares { label: String::new(), of: "bytes".to_owned(), sources, rows }.svg();
        assert_well_formed(&svg);
        assert!(!svg.contains("NaN"), "{svg}");
        svg
    }

    #[test]
    fn parts_are_stacked_from_left_to_right() {
        let row = Row { name: "r<1".to_owned(), amounts: vec![1.0, 0.0, 3.0] };
        assert_eq!(row.parts(), [(0, 0.25, 0.0), (2, 0.75, 0.25)]);
        let svg = drawn(vec![row]);
        // A quarter of the bar's 384 px, and the rest of them.
        assert!(svg.contains("x=\"118\" y=\"31.5\" width=\"96\""), "{svg}");
        assert!(svg.contains("x=\"214\" y=\"31.5\" width=\"288\""), "{svg}");
        assert!(svg.contains("a&lt;b") && svg.contains("r&lt;1"));
        assert!(!svg.contains(">b<"), "a source without a share has no entry");
    }

    #[test]
    fn rows_without_amounts_have_no_parts() {
        let row = |amounts: &[f64]| Row { name: "r".to_owned(), amounts: amounts.to_vec() };
        let svg = drawn(vec![row(&[]), row(&[0.0, 0.0]), row(&[f64::NAN, -1.0, f64::INFINITY])]);
        assert!(!svg.contains("class=\"slice"));
        drawn(vec![]);
    }
}
