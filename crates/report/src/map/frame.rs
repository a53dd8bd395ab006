//! From metres to pixels: one scale for both directions, north at the top.

use super::px;
use crate::labels::{Point, Segment};
use crate::{Ground, stats};

/// The widths of a picture: a column of the page, the whole page, a phone.
const COLUMN: f64 = 440.0;
const PAGE: f64 = 680.0;
const PHONE: f64 = 360.0;

/// The distance from the outermost dots to the edge: their names stand there.
const MARGIN: f64 = 34.0;

/// Limits of the height that the dots take.
const HEIGHT_MIN: f64 = 20.0;
const HEIGHT_MAX: f64 = 430.0;

/// A mesh that is wider than its height by this factor gets the width of the page.
const WIDE_RATIO: f64 = 2.2;

/// A mesh of more routers than this gets the width of the page too.
const ROUTERS_MANY: usize = 60;

/// An extent below this many metres counts as none.
const EXTENT_MIN_M: f64 = 1e-6;

const RADIUS_MAX: f64 = 7.0;
const RADIUS_MIN: f64 = 2.5;

/// Which screens a picture is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    /// As wide as the mesh needs.
    Any,
    /// Narrow enough for a phone.
    Phone,
}

/// The places of routers in the picture, in pixels.
pub(crate) struct Frame {
    pub(crate) width: f64,
    /// The height without the legend.
    pub(crate) height: f64,
    /// Whether the mesh needs the width of the page.
    pub(crate) is_wide: bool,
    /// Pixels in a metre; `None` if all routers stand in one place.
    pub(crate) scale: Option<f64>,
    /// The centres of the routers' dots.
    pub(crate) dots: Vec<Point>,
    /// The radius of a dot.
    pub(crate) radius: f64,
}

impl Frame {
    pub(crate) fn over(ground: &Ground, screen: Screen) -> Self {
        let places: Vec<_> =
            ground.routers.iter().map(|place| (metres(place.x_m), metres(place.y_m))).collect();
        let (west, east) = range(places.iter().map(|place| place.0));
        let (south, north) = range(places.iter().map(|place| place.1));
        let (across, along) = (east - west, north - south);
        let is_wide = across > WIDE_RATIO * along.max(EXTENT_MIN_M) || places.len() > ROUTERS_MANY;
        let width = match (screen, is_wide) {
            (Screen::Any, true) => PAGE,
            (Screen::Any, false) => COLUMN,
            (Screen::Phone, _) => PHONE,
        };
        let inner = width - 2.0 * MARGIN;
        let scale =
            (across.max(along) > EXTENT_MIN_M).then(|| (inner / across).min(HEIGHT_MAX / along));
        let by = scale.unwrap_or(1.0);
        let height = (along * by).max(HEIGHT_MIN) + 2.0 * MARGIN;
        let (middle_x, middle_y) = (west + across / 2.0, south + along / 2.0);
        let pixel = |(x, y): (f64, f64)| {
            (width / 2.0 + (x - middle_x) * by, height / 2.0 - (y - middle_y) * by)
        };
        let dots: Vec<_> = places.into_iter().map(pixel).collect();
        let radius = radius(&dots);
        Self { width, height, is_wide, scale, dots, radius }
    }

    /// The path between two routers: a line, or an arc if a third router stands on the line.
    pub(crate) fn path(&self, from: usize, to: usize) -> String {
        let ((ax, ay), (bx, by)) = (self.dots[from], self.dots[to]);
        let start = format!("M{} {}", px(ax), px(ay));
        if !self.is_blocked(from, to) {
            return format!("{start}L{} {}", px(bx), px(by));
        }
        let (dx, dy) = (bx - ax, by - ay);
        let length = (dx * dx + dy * dy).sqrt();
        // The control point is twice as far from the line as the arc's top.
        let bulge = (0.24 * length).min(2.0 * (MARGIN + HEIGHT_MIN / 2.0 - 6.0)) / length;
        let (x, y) = ((ax + bx) / 2.0 + dy * bulge, (ay + by) / 2.0 - dx * bulge);
        format!("{start}Q{} {} {} {}", px(x), px(y), px(bx), px(by))
    }

    fn is_blocked(&self, from: usize, to: usize) -> bool {
        let ends = (self.dots[from], self.dots[to]);
        let mut others = (0..self.dots.len()).filter(|&at| at != from && at != to);
        others.any(|at| between(self.dots[at], ends, self.radius))
    }
}

/// Whether a point is near a line but not near its ends.
fn between(point: Point, (a, b): Segment, near: f64) -> bool {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (px, py) = (point.0 - a.0, point.1 - a.1);
    let length = (dx * dx + dy * dy).sqrt();
    let along = (px * dx + py * dy) / length;
    let aside = (px * dy - py * dx).abs() / length;
    aside < near && along > near && along < length - near
}

/// A share of the median distance to the nearest dot, so that neighbours stay apart.
fn radius(dots: &[Point]) -> f64 {
    let square = |a: Point, b: Point| (a.0 - b.0) * (a.0 - b.0) + (a.1 - b.1) * (a.1 - b.1);
    let nearest = |&dot: &Point| {
        let others =
            dots.iter().map(|&other| square(dot, other)).filter(|&distance| distance > 0.0);
        others.reduce(f64::min).map(f64::sqrt)
    };
    let typical = stats::median(dots.iter().filter_map(nearest));
    typical.map_or(RADIUS_MAX, |distance| (0.28 * distance).clamp(RADIUS_MIN, RADIUS_MAX))
}

fn metres(value: f64) -> f64 {
    if value.is_finite() { value } else { 0.0 }
}

fn range(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().reduce(f64::min);
    (low.unwrap_or(0.0), values.reduce(f64::max).unwrap_or(0.0))
}
