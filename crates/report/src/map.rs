//! The mesh from above: routers at their places, links, routes, and receivers coloured by throughput.

mod frame;
mod legend;

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};

use crate::labels::{self, Area, Name, Segment};
use crate::picture::{self, px};
use crate::{Ground, Line, axis, text};
pub(crate) use frame::{Frame, Screen};

const NAME_SIZE: f64 = 11.0;
const NAME_CHARS_MAX: usize = 16;

/// The number of colours that the style has for throughputs.
const SHADES: usize = 5;

/// From the edge of a dot to the ring around it that shows hits.
const RING_GAP: f64 = 2.2;

/// The number of steps of opacity of links.
const QUALITIES: u32 = 10;

/// What the clients of one router received.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Receiver {
    /// The median throughput, in kbit/s.
    pub kbps: f64,
    /// The share of its transfers that were hits.
    pub hit_share: f64,
    /// The number of transfers by their source.
    pub sources: Vec<(&'static str, usize)>,
}

/// The colours that throughputs have on the map.
struct Shades {
    /// The borders between colours, ascending: one more than there are colours. Empty without throughputs.
    edges: Vec<f64>,
}

impl Shades {
    fn over(values: impl Iterator<Item = f64> + Clone) -> Self {
        let low = values.clone().reduce(f64::min);
        let high = values.reduce(f64::max);
        let edges = match (low, high) {
            (Some(low), Some(high)) if low < high => axis::steps(low, high, SHADES),
            (Some(low), _) => vec![low, low],
            _ => vec![],
        };
        Self { edges }
    }

    /// The class of the colour of a step.
    fn class(&self, at: usize) -> String {
        let only = self.edges.len() == 2;
        format!("q{}", if only { SHADES / 2 } else { at })
    }

    fn of(&self, value: f64) -> String {
        let inner = self.edges.iter().skip(1).take(self.edges.len().saturating_sub(2));
        self.class(inner.filter(|&&edge| value >= edge).count())
    }
}

/// The map as a figure of a page. A wide mesh is drawn twice: over the whole page, and once more for a phone,
/// where the wide picture would be too small to read. The style of the page shows one of the two.
pub fn figure(caption: &str, ground: &Ground, receivers: &BTreeMap<&str, Receiver>) -> Markup {
    let picture = |screen| PreEscaped(drawn(ground, receivers, screen));
    let is_wide = is_wide(ground);
    html! {
        figure class=[is_wide.then_some("wide")] {
            figcaption { (text::clean(caption)) }
            @if is_wide {
                div class="on-screens" { (picture(Screen::Any)) }
                div class="on-phones" { (picture(Screen::Phone)) }
            } @else {
                (picture(Screen::Any))
            }
        }
    }
}

/// Whether the figure takes the whole width of the page.
pub fn is_wide(ground: &Ground) -> bool {
    Frame::over(ground, Screen::Any).is_wide
}

/// The picture as a file of its own; `receivers` by router name.
pub fn svg(ground: &Ground, receivers: &BTreeMap<&str, Receiver>) -> String {
    drawn(ground, receivers, Screen::Any)
}

fn drawn(ground: &Ground, receivers: &BTreeMap<&str, Receiver>, screen: Screen) -> String {
    let frame = Frame::over(ground, screen);
    let of_places = ground.routers.iter().filter_map(|place| receivers.get(place.name.as_str()));
    let shades = Shades::over(of_places.clone().map(|it| it.kbps));
    let hits = of_places.clone().any(|it| it.hit_share > 0.0);
    let (legend, legend_height) = legend::legend(ground, &frame, &shades, hits);
    let body = html! {
        (links(ground, &frame))
        (routes(ground, &frame))
        @for at in 0..ground.routers.len() { (dot(ground, at, &frame, &shades, receivers)) }
        (names(ground, &frame, receivers))
        @if ground.routers.is_empty() {
            text class="mid" x=(px(frame.width / 2.0)) y=(px(frame.height / 2.0)) { "no routers" }
        }
        (legend)
    };
    picture::svg(frame.width, frame.height + legend_height, "Map of the mesh", &body)
}

/// The two routers of each line with its quality from 0 to 1, each pair once. Lines without two routers are left
/// out.
fn pairs(lines: &[Line], routers: usize) -> BTreeMap<(usize, usize), f64> {
    let mut pairs = BTreeMap::new();
    for line in lines {
        if line.from.max(line.to) >= routers || line.from == line.to {
            continue;
        }
        let quality = if line.loss.is_nan() { 0.0 } else { (1.0 - line.loss).clamp(0.0, 1.0) };
        let ends = (line.from.min(line.to), line.from.max(line.to));
        // A frame and its acknowledgement use both directions, so the worse one decides.
        let known = pairs.entry(ends).or_insert(1.0);
        *known = quality.min(*known);
    }
    pairs
}

/// One path for all links of about the same quality.
pub(crate) fn links(ground: &Ground, frame: &Frame) -> Markup {
    let mut paths = BTreeMap::<u32, String>::new();
    for ((from, to), quality) in pairs(&ground.links, ground.routers.len()) {
        let step = (quality * f64::from(QUALITIES)).round() as u32;
        paths.entry(step).or_default().push_str(&frame.path(from, to));
    }
    html! {
        @for (step, path) in paths {
            path class="link" stroke-opacity=(opacity(step)) d=(path) {}
        }
    }
}

/// The opacity of a step. The worst link is visible too.
fn opacity(step: u32) -> f64 {
    f64::from(12 + 68 * step / QUALITIES) / 100.0
}

pub(crate) fn routes(ground: &Ground, frame: &Frame) -> Markup {
    let pairs = pairs(&ground.routes, ground.routers.len());
    let path: String = pairs.keys().map(|&(from, to)| frame.path(from, to)).collect();
    html! { @if !path.is_empty() { path class="route" d=(path) {} } }
}

fn dot(
    ground: &Ground,
    at: usize,
    frame: &Frame,
    shades: &Shades,
    receivers: &BTreeMap<&str, Receiver>,
) -> Markup {
    let ((x, y), radius) = (frame.dots[at], frame.radius);
    let name = ground.routers[at].name.as_str();
    let receiver = receivers.get(name);
    let shade = receiver.map(|it| shades.of(it.kbps)).unwrap_or_default();
    let is_gateway = at == ground.gateway;
    html! {
        g {
            title {
                (text::clean(name))
                @if is_gateway { ", gateway" }
                @if let Some(it) = receiver { ": " (text::number(it.kbps)) " kbit/s" (sources(it)) }
            }
            @if is_gateway { (square(x, y, radius)) }
            @if !is_gateway || receiver.is_some() {
                @let radius = if is_gateway { radius * 0.6 } else { radius };
                circle class={ "dot " (shade) } cx=(px(x)) cy=(px(y)) r=(px(radius)) {}
            }
            @if let Some(share) = receiver.map(|it| it.hit_share).filter(|it| *it > 0.0) {
                (ring(x, y, radius + RING_GAP, share))
            }
        }
    }
}

/// The number of transfers by their source, shown when a reader points at a router.
fn sources(receiver: &Receiver) -> String {
    let part = |(source, count): &(&str, usize)| format!("; {source} {count}");
    receiver.sources.iter().map(part).collect()
}

/// An arc, clockwise from the right. It is the share of a circle that hits are of all transfers.
fn ring(x: f64, y: f64, radius: f64, share: f64) -> Markup {
    html! {
        circle class="hits" cx=(px(x)) cy=(px(y)) r=(px(radius))
            pathLength="100" stroke-dasharray=(format!("{} 100", px(100.0 * share))) {}
    }
}

/// The mark of the gateway, about as large as a dot.
pub(crate) fn square(x: f64, y: f64, radius: f64) -> Markup {
    let side = px(1.8 * radius);
    html! {
        rect class="gateway" x=(px(x - side / 2.0)) y=(px(y - side / 2.0)) rx="1.5"
            width=(side) height=(side) {}
    }
}

/// Names of routers: first that of the gateway, then those of receivers, then others if there is room.
pub(crate) fn names(
    ground: &Ground,
    frame: &Frame,
    receivers: &BTreeMap<&str, Receiver>,
) -> Markup {
    let rank = |at: &usize| match ground.routers[*at].name.as_str() {
        _ if *at == ground.gateway => 0,
        name if receivers.contains_key(name) => 1,
        _ => 2,
    };
    let mut order: Vec<_> = (0..ground.routers.len()).collect();
    order.sort_by_key(rank);
    let texts = order.iter().map(|&at| text::short(&ground.routers[at].name, NAME_CHARS_MAX));
    let texts: Vec<_> = texts.map(|name| text::clean(&name)).collect();
    let size = |text: &str| (picture::text_width(text, NAME_SIZE), NAME_SIZE + 2.0);
    let name = |(&dot, text): (&usize, &String)| {
        let (width, height) = size(text);
        Name { dot, width, height }
    };
    let wanted: Vec<_> = order.iter().zip(&texts).map(name).collect();
    let areas = labels::place(&wanted, &keep_clear(ground, frame, &lines(ground, frame)));
    html! {
        @for (area, text) in areas.into_iter().zip(&texts) {
            @if let Some(area) = area {
                text class="name halo mid" x=(px((area.left + area.right) / 2.0))
                    y=(px(area.bottom - 3.5)) { (text) }
            }
        }
    }
}

fn keep_clear<'a>(
    ground: &Ground,
    frame: &'a Frame,
    lines: &'a [(Segment, u32)],
) -> labels::Room<'a> {
    debug_assert_eq!(frame.dots.len(), ground.routers.len());
    let bounds = Area { left: 2.0, top: 2.0, right: frame.width - 2.0, bottom: frame.height };
    labels::Room { bounds, dots: &frame.dots, radius: frame.radius + 0.6, lines }
}

/// The lines that names should not cover: routes matter most, then links that lose few frames.
fn lines(ground: &Ground, frame: &Frame) -> Vec<(Segment, u32)> {
    let routers = ground.routers.len();
    let routes = pairs(&ground.routes, routers).into_keys().map(|ends| (ends, 3));
    let good = pairs(&ground.links, routers).into_iter().filter(|(_, quality)| *quality > 0.5);
    let lines = routes.chain(good.map(|(ends, _)| (ends, 1)));
    lines.map(|((from, to), weight)| ((frame.dots[from], frame.dots[to]), weight)).collect()
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
