//! Names beside dots: they cover no dots, and do not touch each other.

/// From the edge of a dot to its name.
const GAP: f64 = 3.0;

/// The least distance between two names.
const APART: f64 = 2.0;

/// In pixels, y downwards.
pub(crate) type Point = (f64, f64);

/// A line between two points.
pub(crate) type Segment = (Point, Point);

/// A rectangle, y downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Area {
    /// Whether two rectangles share more than an edge.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// The same rectangle, larger by a margin on each side.
    fn grown(&self, by: f64) -> Self {
        Self {
            left: self.left - by,
            top: self.top - by,
            right: self.right + by,
            bottom: self.bottom + by,
        }
    }

    fn holds(&self, other: &Self) -> bool {
        self.left <= other.left
            && self.top <= other.top
            && self.right >= other.right
            && self.bottom >= other.bottom
    }

    /// Whether a line from `a` to `b` crosses the rectangle (the slab method).
    fn crossed_by(&self, a: Point, b: Point) -> bool {
        let x = within(a.0, b.0, self.left, self.right);
        let y = within(a.1, b.1, self.top, self.bottom);
        x.0.max(y.0).max(0.0) < x.1.min(y.1).min(1.0)
    }
}

/// Between which shares of the way from `a` to `b` a point is between two bounds.
fn within(a: f64, b: f64, low: f64, high: f64) -> (f64, f64) {
    if a == b {
        let inside = low < a && a < high;
        return if inside { (f64::NEG_INFINITY, f64::INFINITY) } else { (1.0, 0.0) };
    }
    let (s, t) = ((low - a) / (b - a), (high - a) / (b - a));
    (s.min(t), s.max(t))
}

/// What names must not cover, and what they should not.
pub(crate) struct Room<'a> {
    /// Names stay inside.
    pub(crate) bounds: Area,
    /// The centres of all dots.
    pub(crate) dots: &'a [Point],
    /// The radius of all dots.
    pub(crate) radius: f64,
    /// Lines that names should not cover, each with its weight.
    pub(crate) lines: &'a [(Segment, u32)],
}

/// A name that needs a place.
pub(crate) struct Name {
    /// The index of its dot.
    pub(crate) dot: usize,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// The place of each name, or `None` if there is no room. Names come in the order of their importance.
pub(crate) fn place(names: &[Name], room: &Room<'_>) -> Vec<Option<Area>> {
    let mut taken = Vec::<Area>::new();
    let mut place_one = |name: &Name| {
        let touches = |area: &Area| taken.iter().any(|other| other.grown(APART).overlaps(area));
        let free = |area: &Area| room.is_free(area) && !touches(area);
        let options = candidates(name, room).into_iter().filter(free);
        let area = options.min_by_key(|area| room.lines_under(area))?;
        taken.push(area);
        Some(area)
    };
    names.iter().map(&mut place_one).collect()
}

/// Places around the dot, the most usual first.
fn candidates(name: &Name, room: &Room<'_>) -> [Area; 8] {
    let (x, y) = room.dots[name.dot];
    let (side, diagonal) = (room.radius + GAP, 0.72 * room.radius + GAP - 1.0);
    let (half_width, half_height) = (name.width / 2.0, name.height / 2.0);
    let centre = |dx: f64, dy: f64| Area {
        left: x + dx - half_width,
        right: x + dx + half_width,
        top: y + dy - half_height,
        bottom: y + dy + half_height,
    };
    let (beside, above) = (side + half_width, side + half_height - 1.0);
    let (aslant_x, aslant_y) = (diagonal + half_width, diagonal + half_height - 1.0);
    [
        centre(0.0, above),
        centre(0.0, -above),
        centre(beside, 0.0),
        centre(-beside, 0.0),
        centre(aslant_x, aslant_y),
        centre(aslant_x, -aslant_y),
        centre(-aslant_x, aslant_y),
        centre(-aslant_x, -aslant_y),
    ]
}

impl Room<'_> {
    fn is_free(&self, area: &Area) -> bool {
        let radius = self.radius + 0.5;
        let covers = |&(x, y): &Point| {
            let (dx, dy) = (x - x.clamp(area.left, area.right), y - y.clamp(area.top, area.bottom));
            dx * dx + dy * dy < radius * radius
        };
        self.bounds.holds(area) && !self.dots.iter().any(covers)
    }

    fn lines_under(&self, area: &Area) -> u32 {
        let under = self.lines.iter().filter(|((a, b), _)| area.crossed_by(*a, *b));
        under.map(|(_, weight)| weight).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Area = Area { left: 0.0, top: 0.0, right: 100.0, bottom: 100.0 };

    fn placed(dots: &[Point], lines: &[(Segment, u32)]) -> Vec<Option<Area>> {
        let room = Room { bounds: BOUNDS, dots, radius: 5.0, lines };
        let name = |dot| Name { dot, width: 30.0, height: 10.0 };
        let names: Vec<_> = (0..dots.len()).map(name).collect();
        place(&names, &room)
    }

    #[test]
    fn a_lone_name_stands_below_its_dot() {
        let area = placed(&[(50.0, 50.0)], &[])[0].unwrap();
        assert_eq!((area.left, area.right), (35.0, 65.0));
        assert!(area.top > 55.0);
    }

    #[test]
    fn names_avoid_lines() {
        let area = placed(&[(50.0, 50.0)], &[(((50.0, 50.0), (50.0, 100.0)), 1)])[0].unwrap();
        assert!(area.bottom < 45.0);
    }

    #[test]
    fn names_never_cover_dots_or_each_other() {
        let grid = |at: i32| (f64::from(at % 3) * 40.0 + 10.0, f64::from(at / 3) * 20.0 + 10.0);
        let dots: Vec<_> = (0..15).map(grid).collect();
        let areas: Vec<_> = placed(&dots, &[]).into_iter().flatten().collect();
        assert!(!areas.is_empty());
        for (at, area) in areas.iter().enumerate() {
            assert!(BOUNDS.holds(area));
            assert!(!areas[at + 1..].iter().any(|other| other.grown(APART).overlaps(area)));
            let dot = |&(x, y): &Point| Area {
                left: x - 3.5,
                right: x + 3.5,
                top: y - 3.5,
                bottom: y + 3.5,
            };
            assert!(!dots.iter().map(dot).any(|dot| dot.overlaps(area)));
        }
    }

    #[test]
    fn without_room_there_is_no_name() {
        let room = Room { bounds: BOUNDS, dots: &[(50.0, 50.0)], radius: 5.0, lines: &[] };
        assert_eq!(place(&[Name { dot: 0, width: 200.0, height: 10.0 }], &room), [None]);
    }

    #[test]
    fn lines_cross_areas() {
        let area = Area { left: 10.0, top: 10.0, right: 20.0, bottom: 20.0 };
        assert!(area.crossed_by((0.0, 0.0), (30.0, 30.0)));
        assert!(area.crossed_by((15.0, 0.0), (15.0, 30.0)));
        assert!(!area.crossed_by((0.0, 0.0), (5.0, 5.0)));
        assert!(!area.crossed_by((5.0, 0.0), (5.0, 30.0)));
        assert!(!area.crossed_by((0.0, 15.0), (9.0, 15.0)));
    }
}
