//! The legend of the map: the scale in metres, the marks, the colours.

use maud::{Markup, html};

use super::{Frame, Shades};
use crate::axis;
use crate::legend::{self, Entry, Room};
use crate::picture::{px, text_width};
use crate::text;
use crate::{Ground, map::square};

const LEFT: f64 = 8.0;
const TEXT_SIZE: f64 = 12.0;

/// The width of a mark.
const MARK: f64 = 18.0;

/// The width and height of the sample of a colour.
const SWATCH: (f64, f64) = (56.0, 10.0);

/// The legend and its height. It stands under the map.
pub(super) fn legend(ground: &Ground, frame: &Frame, shades: &Shades, hits: bool) -> (Markup, f64) {
    let top = frame.height + 14.0;
    let room = Room { left: LEFT, top: top + 12.0, width: frame.width - LEFT - 4.0 };
    let (marks, marks_height) = legend::legend(&entries(ground, hits), room);
    let shades_top = room.top + marks_height + 12.0;
    let shades_height = if shades.edges.is_empty() { 0.0 } else { 44.0 };
    let markup = html! {
        (scale_bar(ground, frame, top))
        (marks)
        @if shades_height > 0.0 { (ramp(shades, shades_top)) }
    };
    (markup, shades_top + shades_height - frame.height)
}

fn scale_bar(ground: &Ground, frame: &Frame, y: f64) -> Markup {
    let bar_m = frame.scale.map(|scale| axis::round_down(0.3 * frame.width / scale));
    let bar = frame.scale.zip(bar_m).map_or(0.0, |(scale, bar_m)| px(bar_m * scale));
    let range = (ground.range_m > 0.0).then(|| text::tick(ground.range_m));
    html! {
        @if let Some(bar_m) = bar_m {
            path class="bar" d=(format!("M{LEFT} {}v8m0 -4h{bar}m0 -4v8", px(y - 4.0))) {}
            text class="strong" x=(px(LEFT + bar + 8.0)) y=(px(y + 4.0)) { (text::tick(bar_m)) " m" }
        } @else if ground.routers.len() > 1 {
            text x=(LEFT) y=(px(y + 4.0)) { "all routers stand in one place" }
        }
        @if let Some(range) = range {
            text class="end" x=(px(frame.width - LEFT)) y=(px(y + 4.0)) { "radio range " (range) " m" }
        }
    }
}

fn entries(ground: &Ground, hits: bool) -> Vec<Entry> {
    let entry = |mark, meaning: &str| Entry { mark, width: MARK, meaning: meaning.to_owned() };
    let line = |class| html! { path class=(class) d="M0 0H18" {} };
    let dot = html! { circle class="dot" cx="9" cy="0" r="5.5" {} };
    let mut entries = vec![entry(square(9.0, 0.0, 5.5), "gateway"), entry(dot, "router")];
    if !ground.routes.is_empty() {
        entries.push(entry(line("route"), "route"));
    }
    if !ground.links.is_empty() {
        entries.push(entry(line("link"), "link, faint if lossy"));
    }
    if hits {
        entries.push(entry(super::ring(9.0, 0.0, 5.5, 0.5), "share of hits"));
    }
    entries
}

/// The colours from slow to fast, with the throughputs at their borders.
fn ramp(shades: &Shades, top: f64) -> Markup {
    let swatches = shades.edges.len() - 1;
    let x = |at: usize| px(LEFT + SWATCH.0 * at as f64);
    let (bar_y, text_y) = (px(top + 14.0), px(top + 40.0));
    let texts: Vec<_> = shades.edges.iter().map(|edge| text::number(*edge)).collect();
    // The first text begins at its border, the others are centred on theirs.
    let fits = texts.iter().all(|it| 1.5 * text_width(it, TEXT_SIZE) < SWATCH.0);
    html! {
        text x=(LEFT) y=(px(top + 3.0)) { "receiver’s median throughput, kbit/s" }
        @for at in 0..swatches {
            rect class=(shades.class(at)) x=(x(at)) y=(bar_y)
                width=(SWATCH.0 - 2.0) height=(SWATCH.1) rx="2" {}
        }
        @if swatches == 1 {
            text class="mid" x=(px(LEFT + SWATCH.0 / 2.0)) y=(text_y) { (texts[0]) }
        } @else {
            @for (at, value) in texts.iter().enumerate().filter(|(at, _)| fits || at % swatches == 0) {
                text class=(if at == 0 { "start" } else { "mid" }) x=(x(at)) y=(text_y) { (value) }
            }
        }
    }
}
