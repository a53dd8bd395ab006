//! Static routes between stations: shortest paths, fixed once and for all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use radio::{Links, Station};

/// What a hop without losses costs; whole numbers, so that sums are the same on every machine.
const HOP: u64 = 1 << 20;
/// Nobody.
const NONE: u16 = u16::MAX;

/// What makes a path short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The number of its hops.
    Hops,
    /// The expected number of transmissions, a frame and its acknowledgement counted as one
    /// (De Couto et al., MobiCom 2003).
    Etx,
}

impl Metric {
    /// What a link costs; `None` if frames cannot be received both ways.
    pub fn cost(self, links: &Links, a: usize, b: usize) -> Option<u64> {
        let arrives = |from: usize, to: usize| {
            let link = links.get(Station(from as u16), Station(to as u16))?;
            link.decodable.then_some(1.0 - link.loss)
        };
        let both = arrives(a, b)? * arrives(b, a)?;
        Some(match self {
            Self::Hops => HOP,
            // A path over the worst links is still a path, and sums stay far below the end of numbers.
            Self::Etx => (HOP as f64 / both.max(1e-6)) as u64,
        })
    }
}

/// Next hops between any two stations. They are found when they are first asked for.
#[derive(Clone, Debug)]
pub struct Routes {
    /// By station, in order of their numbers.
    neighbours: Vec<Vec<(u16, u64)>>,
    /// By destination: each station's next hop; empty if nobody has asked.
    towards: Vec<Vec<u16>>,
}

impl Routes {
    /// Shortest paths over links that can be received both ways; of equals, over the stations that
    /// come first.
    pub fn shortest(links: &Links, metric: Metric) -> Self {
        let mut routes = Self::new(links.stations());
        for a in 0..links.stations() {
            for b in a + 1..links.stations() {
                if let Some(cost) = metric.cost(links, a, b) {
                    routes.join(a, b, cost);
                }
            }
        }
        routes
    }

    /// Over these hops alone, each both ways.
    pub fn over(stations: usize, hops: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut routes = Self::new(stations);
        hops.into_iter().for_each(|(a, b)| routes.join(a, b, HOP));
        routes
    }

    fn new(stations: usize) -> Self {
        Self { neighbours: vec![Vec::new(); stations], towards: vec![Vec::new(); stations] }
    }

    fn join(&mut self, a: usize, b: usize, cost: u64) {
        self.neighbours[a].push((b as u16, cost));
        self.neighbours[b].push((a as u16, cost));
    }

    /// Where `from` sends what is for `to`; `None` if there is no way, or they are one.
    pub fn next_hop(&mut self, from: usize, to: usize) -> Option<usize> {
        if self.towards[to].is_empty() {
            self.towards[to] = self.search(to);
        }
        let next = self.towards[to][from];
        (next != NONE).then_some(usize::from(next))
    }

    /// Dijkstra's algorithm, from the destination outwards.
    fn search(&self, to: usize) -> Vec<u16> {
        let mut next = vec![NONE; self.neighbours.len()];
        let mut costs = vec![u64::MAX; self.neighbours.len()];
        let mut nearest = BinaryHeap::from([Reverse((0, to as u16))]);
        costs[to] = 0;
        while let Some(Reverse((cost, at))) = nearest.pop() {
            if cost > costs[usize::from(at)] {
                continue;
            }
            for (neighbour, hop) in &self.neighbours[usize::from(at)] {
                let (place, sum) = (usize::from(*neighbour), cost + hop);
                if sum < costs[place] {
                    (costs[place], next[place]) = (sum, at);
                    nearest.push(Reverse((sum, *neighbour)));
                } else if sum == costs[place] && place != to {
                    next[place] = next[place].min(at);
                }
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use radio::Ranges;

    use super::*;

    fn links(positions_m: &[(f64, f64)], loss: impl Fn(f64) -> f64) -> Links {
        Links::by_distance(positions_m, Ranges::default(), loss)
    }

    fn path(routes: &mut Routes, from: usize, to: usize) -> Vec<usize> {
        let mut path = vec![from];
        while let Some(next) = routes.next_hop(path[path.len() - 1], to) {
            path.push(next);
        }
        path
    }

    #[test]
    fn hops_count_hops_and_etx_what_they_lose() {
        // 0 reaches 3 at 240 m at once, or over 1 and 2, 80 m each.
        let places = [(0.0, 0.0), (80.0, 0.0), (160.0, 0.0), (240.0, 0.0), (900.0, 0.0)];
        let links = links(&places, |m| if m > 200.0 { 0.6 } else { 0.0 });
        let mut routes = Routes::shortest(&links, Metric::Hops);
        assert_eq!(path(&mut routes, 0, 3), [0, 3]);
        let mut routes = Routes::shortest(&links, Metric::Etx);
        assert_eq!(path(&mut routes, 0, 3), [0, 1, 3]);
        assert_eq!((routes.next_hop(0, 4), routes.next_hop(4, 0)), (None, None));
        assert_eq!(routes.next_hop(2, 2), None);
    }

    #[test]
    fn of_equal_paths_the_first_is_taken() {
        let diamond = [(0.0, 0.0), (200.0, 10.0), (200.0, -10.0), (400.0, 0.0)];
        let mut routes = Routes::shortest(&links(&diamond, |_| 0.0), Metric::Hops);
        assert_eq!(path(&mut routes, 0, 3), [0, 1, 3]);
        assert_eq!(path(&mut routes, 3, 0), [3, 1, 0]);
    }

    #[test]
    fn given_hops_are_the_only_ones() {
        let mut routes = Routes::over(5, [(0, 1), (1, 2), (1, 3)]);
        assert_eq!(path(&mut routes, 2, 3), [2, 1, 3]);
        assert_eq!(routes.next_hop(4, 0), None);
    }
}
