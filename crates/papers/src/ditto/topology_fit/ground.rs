//! The constraints on places: links have the lengths of figure 10, and its routes are the best ones.

use sim::scenario::Router;

/// The gateway.
const GATEWAY: u8 = 11;
/// The range of frames: the scenario's key `range_m`.
pub(super) const RANGE_M: f64 = 80.0;
/// Smallest distance of two routers.
const APART_M: f64 = 10.0;

/// A link of figure 10 and our length for it. The length decides its loss, and does not change.
struct Link {
    from: u8,
    to: u8,
    metres: f64,
}

const fn link(from: u8, to: u8, metres: f64) -> Link {
    Link { from, to, metres }
}

/// Parents come before their children. Routers are in the scenario's order.
const LINKS: [Link; 21] = [
    link(11, 5, 31.76),
    link(11, 14, 39.05),
    link(11, 22, 58.31),
    link(22, 15, 65.00),
    link(11, 34, 50.99),
    link(34, 27, 65.76),
    link(11, 30, 72.80),
    link(30, 3, 56.57),
    link(30, 28, 63.25),
    link(28, 18, 65.00),
    link(30, 29, 71.06),
    link(29, 7, 61.03),
    link(30, 13, 64.50),
    link(13, 1, 58.52),
    link(1, 25, 55.23),
    link(13, 16, 58.14),
    link(16, 38, 55.01),
    link(11, 37, 70.18),
    link(37, 2, 67.27),
    link(37, 4, 61.03),
    link(4, 19, 63.25),
];

/// Number of routers.
pub(super) const ROUTERS: usize = LINKS.len() + 1;

/// Coordinates in metres, in the order of [`Ground::names`].
pub(super) type Places = [(f64, f64); ROUTERS];

/// The tree of figure 10. Routers are numbered by their place in it, the gateway first.
#[derive(Debug)]
pub(super) struct Ground {
    /// The paper's numbers of the routers.
    pub names: [u8; ROUTERS],
    /// The path from the gateway to each router, both included.
    pub paths: Vec<Vec<usize>>,
    /// The length of each router's link towards the gateway, in metres.
    lengths_m: [f64; ROUTERS],
    /// The loss of each route up to a factor: losses grow with the square of the length.
    lost: [f64; ROUTERS],
}

impl Ground {
    pub fn new() -> Self {
        let mut it = Self {
            names: [GATEWAY; ROUTERS],
            paths: vec![vec![0]],
            lengths_m: [0.0; ROUTERS],
            lost: [0.0; ROUTERS],
        };
        for (Link { from, to, metres }, place) in LINKS.iter().zip(1..) {
            let parent = it.find(*from);
            it.names[place] = *to;
            it.lengths_m[place] = *metres;
            it.lost[place] = it.lost[parent] + metres * metres;
            let path = it.paths[parent].iter().copied().chain([place]).collect();
            it.paths.push(path);
        }
        it
    }

    /// The index of a router in the tree; the gateway's for an unknown one.
    pub fn find(&self, name: u8) -> usize {
        self.names.iter().position(|it| *it == name).unwrap_or(0)
    }

    /// The next router towards the gateway; the gateway itself for the gateway.
    pub fn parent(&self, router: usize) -> usize {
        let path = &self.paths[router];
        path[path.len().saturating_sub(2)]
    }

    /// The length of its link towards the gateway, in metres.
    #[cfg(test)]
    pub fn length_m(&self, router: usize) -> f64 {
        self.lengths_m[router]
    }

    /// Its number of hops from the gateway.
    pub fn hops(&self, router: usize) -> usize {
        self.paths[router].len() - 1
    }

    /// The place of a router whose link points in this direction, rounded to the decimetre.
    pub fn place(&self, router: usize, places: &Places, angle: f64) -> (f64, f64) {
        let (x_m, y_m) = places[self.parent(router)];
        let decimetres = |m: f64| (10.0 * m).round() / 10.0;
        let m = self.lengths_m[router];
        (decimetres(x_m + m * libm::cos(angle)), decimetres(y_m + m * libm::sin(angle)))
    }

    /// Whether a router's place is valid with respect to all routers before it.
    pub fn stands(&self, router: usize, places: &Places) -> bool {
        (0..router).all(|other| self.bear(other, router, places))
    }

    /// Whether all places are valid.
    pub fn all_stand(&self, places: &Places) -> bool {
        (1..ROUTERS).all(|it| self.stands(it, places))
    }

    /// Whether two places are valid together: neither router offers the other a better route, and they are
    /// not too near.
    fn bear(&self, one: usize, other: usize, places: &Places) -> bool {
        let m = distance_m(places[one], places[other]);
        if self.parent(one) == other || self.parent(other) == one {
            return m <= RANGE_M;
        }
        let (near, far) =
            if self.hops(one) <= self.hops(other) { (one, other) } else { (other, one) };
        let is_worse = match self.hops(far) - self.hops(near) {
            0 => true,
            1 => self.lost[near] + m * m > self.lost[far],
            _ => false,
        };
        m >= APART_M && (m > RANGE_M || is_worse)
    }

    /// The routers as a scenario has them.
    pub fn routers(&self, places: &Places) -> Vec<Router> {
        let each = self.names.iter().zip(places);
        each.map(|(name, (x_m, y_m))| Router { name: name.to_string(), x_m: *x_m, y_m: *y_m })
            .collect()
    }
}

/// A distance in metres.
pub(super) fn distance_m(a: (f64, f64), b: (f64, f64)) -> f64 {
    let (dx, dy) = (a.0 - b.0, a.1 - b.1);
    (dx * dx + dy * dy).sqrt()
}
