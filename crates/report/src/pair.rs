//! The same mesh without Hearsay and with it. The width of the uplink shows its bytes; the colours of a router show
//! the sources of its clients' bytes.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use maud::{Markup, PreEscaped, html};

use crate::labels::Point;
use crate::legend::{self, Entry, Room};
use crate::map::{self, Frame, Screen};
use crate::picture::{self, px};
use crate::{Ground, text};

/// The width of one half, with room for the internet beside the mesh.
const HALF: f64 = 440.0;
const HEAD: f64 = 34.0;
/// The widest uplink.
const UPLINK_MAX: f64 = 22.0;
const UPLINK_MIN: f64 = 1.5;
const INTERNET: (f64, f64) = (68.0, 28.0);
const RADIUS: f64 = 13.0;
/// A row of figures with its bar.
const ROW: f64 = 24.0;
const BAR_LEFT: f64 = 172.0;
const BAR_RIGHT: f64 = 350.0;
const EDGE: f64 = 12.0;

/// Where bytes come from, from the farthest source to the nearest, each with its colour.
const SOURCES: [(&str, usize); 5] = [
    ("over the uplink", 1),
    ("stored by the gateway", 3),
    ("stored by another router", 6),
    ("stored by the router itself", 0),
    ("overheard by the router", 2),
];

/// Bytes by source, from the farthest source to the nearest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bytes {
    /// From the origin, over the uplink.
    pub origin: u64,
    /// From the store of the gateway.
    pub gateway: u64,
    /// From the store of another router.
    pub remote: u64,
    /// From the store of the router that the client is connected to.
    pub local: u64,
    /// From what that router overheard.
    pub overheard: u64,
}

/// One of the two meshes.
#[derive(Clone, Debug, Default)]
pub struct Half<'a> {
    /// The heading.
    pub title: String,
    /// Bytes that crossed the uplink.
    pub uplink_bytes: u64,
    /// Bytes that the gateway sent into the air.
    pub air_bytes: u64,
    /// The number of downloads.
    pub downloads: usize,
    /// The mean duration of a download, in seconds.
    pub seconds: f64,
    /// What the clients of each router received, by the router's name.
    pub received: BTreeMap<&'a str, Bytes>,
}

/// The picture as a file of its own, the halves beside each other.
pub fn svg(ground: &Ground, halves: &[Half<'_>; 2]) -> String {
    drawn(ground, halves, Screen::Any)
}

/// The picture as a figure of a page. For a phone the halves stand below each other.
pub fn figure(caption: &str, ground: &Ground, halves: &[Half<'_>; 2]) -> Markup {
    let picture = |screen| PreEscaped(drawn(ground, halves, screen));
    html! {
        figure class="wide" {
            figcaption { (text::clean(caption)) }
            div class="on-screens" { (picture(Screen::Any)) }
            div class="on-phones" { (picture(Screen::Phone)) }
        }
    }
}

fn drawn(ground: &Ground, halves: &[Half<'_>; 2], screen: Screen) -> String {
    let frame = Frame::over(ground, Screen::Phone);
    let height = HEAD + frame.height + 3.0 * ROW + 16.0;
    let [across, down] = match screen {
        Screen::Any => [HALF, 0.0],
        Screen::Phone => [0.0, height],
    };
    let (width, foot) = (HALF + across, height + down);
    let room = Room { left: EDGE, top: foot, width: width - 2.0 * EDGE };
    let (legend, legend_height) = legend::legend(&entries(halves), room);
    let body = html! {
        @for (at, half) in halves.iter().enumerate() {
            g transform=(format!("translate({} {})", px(across * at as f64), px(down * at as f64))) {
                text class="title" x=(EDGE) y="24" { (text::clean(&half.title)) }
                (mesh(ground, &frame, half, halves))
                g transform=(format!("translate(0 {})", px(HEAD + frame.height))) { (rows(half, halves)) }
            }
        }
        (legend)
    };
    picture::svg(width, foot + legend_height + 10.0, "A mesh without Hearsay and with it", &body)
}

/// The mesh with its uplink. The internet stands at the side that is nearer to the gateway.
fn mesh(ground: &Ground, frame: &Frame, half: &Half<'_>, halves: &[Half<'_>; 2]) -> Markup {
    let gateway = frame.dots.get(ground.gateway).copied();
    let is_left = gateway.is_none_or(|it| it.0 <= frame.width / 2.0);
    let aside = if is_left { HALF - frame.width } else { 0.0 };
    let middle = INTERNET.0 / 2.0 + EDGE;
    let internet = if is_left { middle - aside } else { HALF - middle };
    let most = halves.iter().map(|it| it.uplink_bytes).max().unwrap_or(0);
    let receives = |at: usize| half.received.get(ground.routers[at].name.as_str());
    html! {
        g transform=(format!("translate({} {HEAD})", px(aside))) {
            (map::links(ground, frame))
            (map::routes(ground, frame))
            @if let Some(gateway) = gateway {
                (uplink(gateway, internet, share(half.uplink_bytes, most)))
            }
            @for (at, dot) in frame.dots.iter().enumerate() {
                @if at == ground.gateway {
                    (map::square(dot.0, dot.1, 10.0))
                    text class="name halo mid" x=(px(dot.0)) y=(px(dot.1 + 23.0)) { "gateway" }
                } @else {
                    (pie(*dot, receives(at)))
                }
            }
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A line from the internet to the gateway: its width is the share of the larger uplink's bytes.
fn uplink((x, y): Point, internet: f64, share: f64) -> Markup {
    let stroke = (UPLINK_MAX * share).max(UPLINK_MIN);
    let (width, height) = INTERNET;
    html! {
        path class="uplink c1" stroke-width=(px(stroke)) d=(format!("M{} {}H{}", px(internet), px(y), px(x))) {}
        rect class="box" x=(px(internet - width / 2.0)) y=(px(y - height / 2.0)) width=(width)
            height=(height) rx="6" {}
        text class="strong mid" x=(px(internet)) y=(px(y + 4.0)) { "internet" }
    }
}

/// A router: a slice for each source of its clients' bytes, a small empty circle if it has no clients.
fn pie((x, y): Point, received: Option<&Bytes>) -> Markup {
    let parts = received.map(Bytes::parts).unwrap_or_default();
    let whole: u64 = parts.iter().sum();
    let radius = if whole == 0 { RADIUS / 2.0 } else { RADIUS };
    let before = |at: usize| parts[..at].iter().sum::<u64>();
    html! {
        circle class="dot" cx=(px(x)) cy=(px(y)) r=(px(radius)) {}
        @for (at, (_, hue)) in SOURCES.into_iter().enumerate().filter(|(at, _)| parts[*at] > 0) {
            @if parts[at] == whole {
                circle class=(picture::fill(hue)) cx=(px(x)) cy=(px(y)) r=(RADIUS) {}
            } @else {
                @let [from, until] = [before(at), before(at + 1)].map(|it| share(it, whole));
                path class={ "slice " (picture::fill(hue)) } d=(slice((x, y), from, until)) {}
            }
        }
    }
}

/// From one share of a turn to another, clockwise from the top.
fn slice((x, y): Point, from: f64, until: f64) -> String {
    let at = |turn: f64| {
        let (sin, cos) = (libm::sin(TAU * turn), libm::cos(TAU * turn));
        format!("{} {}", px(x + RADIUS * sin), px(y - RADIUS * cos))
    };
    let is_large = u8::from(until - from > 0.5);
    format!("M{} {}L{}A{RADIUS} {RADIUS} 0 {is_large} 1 {}Z", px(x), px(y), at(from), at(until))
}

impl Bytes {
    /// In the order of the legend.
    fn parts(&self) -> [u64; 5] {
        [self.origin, self.gateway, self.remote, self.local, self.overheard]
    }
}

/// The figures of a half, each with a bar to the scale of both halves.
fn rows(half: &Half<'_>, halves: &[Half<'_>; 2]) -> Markup {
    let longest = |of: fn(&Half<'_>) -> f64| halves.iter().map(of).fold(0.0, f64::max);
    let row = |name: String, of: fn(&Half<'_>) -> f64, value: String| {
        (name, if longest(of) > 0.0 { of(half) / longest(of) } else { 0.0 }, value)
    };
    let rows = [
        row(
            "over the uplink".to_owned(),
            |it| it.uplink_bytes as f64,
            text::bytes(half.uplink_bytes),
        ),
        row(
            "sent by the gateway".to_owned(),
            |it| it.air_bytes as f64,
            text::bytes(half.air_bytes),
        ),
        row(
            format!("mean of {}", text::plural(half.downloads, "download")),
            |it| it.seconds,
            text::seconds(Some(half.seconds)),
        ),
    ];
    html! {
        @for (at, (name, share, value)) in rows.into_iter().enumerate() {
            @let y = ROW * (at as f64 + 0.5);
            @let width = px(share * (BAR_RIGHT - BAR_LEFT));
            text class="end" x=(BAR_LEFT - 8.0) y=(px(y + 4.0)) { (name) }
            rect class=(picture::fill(8)) x=(BAR_LEFT) y=(px(y - 6.0)) width=(width) height="12" {}
            text class="strong" x=(px(BAR_LEFT + width + 8.0)) y=(px(y + 4.0)) { (value) }
        }
    }
}

/// The sources that occur.
fn entries(halves: &[Half<'_>; 2]) -> Vec<Entry> {
    let received = || halves.iter().flat_map(|half| half.received.values());
    let entry = |(meaning, hue): (&str, usize)| Entry {
        mark: html! { circle class=(picture::fill(hue)) cx="6" cy="0" r="6" {} },
        width: 12.0,
        meaning: meaning.to_owned(),
    };
    let occurs = |at: usize| received().any(|it| it.parts()[at] > 0);
    let occurring = (0..SOURCES.len()).filter(|at| occurs(*at)).map(|at| entry(SOURCES[at]));
    let head =
        Entry { mark: html! {}, width: 0.0, meaning: "What clients received was:".to_owned() };
    [head].into_iter().chain(occurring).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_well_formed, chain};

    fn halves() -> [Half<'static>; 2] {
        let half = |title: &str, uplink_bytes, received| Half {
            title: title.to_owned(),
            uplink_bytes,
            air_bytes: 2 * uplink_bytes,
            downloads: 3,
            seconds: 1.5,
            received: BTreeMap::from([("r2", received)]),
        };
        let all = Bytes { origin: 400, ..Bytes::default() };
        let parts = Bytes { origin: 100, overheard: 300, ..Bytes::default() };
        [half("Without <it>", 2_000_000, all), half("With it", 500_000, parts)]
    }

    #[test]
    fn each_half_has_its_uplink_its_slices_and_its_figures() {
        let svg = svg(&chain(3), &halves());
        assert_well_formed(&svg);
        assert!(!svg.contains("NaN") && svg.contains("Without &lt;it&gt;"));
        // A quarter of the bytes is a quarter of the width.
        assert!(
            svg.contains("stroke-width=\"22\"") && svg.contains("stroke-width=\"5.5\""),
            "{svg}"
        );
        assert_eq!(svg.matches("class=\"slice").count(), 2);
        for text in [
            "2.00\u{a0}MB",
            "500\u{a0}kB",
            "1.50\u{a0}s",
            "mean of 3\u{a0}downloads",
            "overheard by",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("stored by"), "no such bytes");
        assert!(svg.len() < 40_000);
    }

    #[test]
    fn slices_are_shares_of_a_turn() {
        // From the top to the right.
        let path = slice((100.0, 100.0), 0.0, 0.25);
        assert_eq!(path, "M100 100L100 87A13 13 0 0 1 113 100Z");
        assert!(slice((0.0, 0.0), 0.25, 1.0).contains(" 0 1 1 "));
    }

    #[test]
    fn halves_stand_below_each_other_on_phones() {
        let page = figure("a & b", &chain(3), &halves()).into_string();
        assert_well_formed(&page);
        let (wide, phone) = page.split_once("on-phones").unwrap();
        assert!(wide.contains("viewBox=\"0 0 880 ") && phone.contains("viewBox=\"0 0 440 "));
    }

    #[test]
    fn odd_meshes_have_a_picture() {
        let empty = [Half::default(), Half::default()];
        let mut mirrored = chain(3);
        mirrored.gateway = 2;
        for ground in [chain(0), chain(1), mirrored, Ground { gateway: 7, ..chain(2) }] {
            let svg = svg(&ground, &empty);
            assert_well_formed(&svg);
            assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }
}
