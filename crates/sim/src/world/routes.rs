//! Routes between stations: shortest paths over the current links.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use radio::{Links, LossScope};

use crate::scenario::{HOP, Metric};

/// No station.
const NONE: u16 = u16::MAX;

/// Next hops between any two stations, computed when a destination is first used.
#[derive(Clone, Debug)]
pub struct Routes {
    /// For each station, the stations with a hop to it in order of their numbers, and the hops' costs.
    neighbours: Vec<Vec<(u16, u64)>>,
    /// For each destination, every station's next hop; empty until the destination is used.
    towards: Vec<Vec<u16>>,
}

impl Routes {
    /// Shortest paths over links that work in both directions. Of equal paths, the one over earlier stations
    /// wins.
    pub fn shortest(links: &Links, metric: Metric, scope: LossScope) -> Self {
        let mut routes = Self::new(links.stations());
        for (to, neighbours) in routes.neighbours.iter_mut().enumerate() {
            let stations = (0..links.stations()).filter(|from| *from != to);
            neighbours.extend(stations.filter_map(|from| {
                metric.cost(links, scope, from, to).map(|cost| (from as u16, cost))
            }));
        }
        routes
    }

    /// Routes over these hops only, each in both directions.
    pub fn over(stations: usize, hops: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut routes = Self::new(stations);
        for (a, b) in hops {
            routes.neighbours[a].push((b as u16, HOP));
            routes.neighbours[b].push((a as u16, HOP));
        }
        routes
    }

    fn new(stations: usize) -> Self {
        Self { neighbours: vec![Vec::new(); stations], towards: vec![Vec::new(); stations] }
    }

    /// The next hop from `from` to `to`; `None` if there is no route, or they are the same.
    pub fn next_hop(&mut self, from: usize, to: usize) -> Option<usize> {
        if self.towards[to].is_empty() {
            self.towards[to] = self.search(to);
        }
        let next = self.towards[to][from];
        (next != NONE).then_some(usize::from(next))
    }

    /// Dijkstra's algorithm, starting at the destination.
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
    use radio::{Link, Ranges, Station};

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
        // Station 0 reaches 3 at 240 m directly, or over 1 and 2, 80 m each.
        let places = [(0.0, 0.0), (80.0, 0.0), (160.0, 0.0), (240.0, 0.0), (900.0, 0.0)];
        let links = links(&places, |m| if m > 200.0 { 0.6 } else { 0.0 });
        let mut routes = Routes::shortest(&links, Metric::Hops, LossScope::Data);
        assert_eq!(path(&mut routes, 0, 3), [0, 3]);
        let mut routes = Routes::shortest(&links, Metric::Etx, LossScope::Data);
        assert_eq!(path(&mut routes, 0, 3), [0, 1, 3]);
        assert_eq!((routes.next_hop(0, 4), routes.next_hop(4, 0)), (None, None));
        assert_eq!(routes.next_hop(2, 2), None);
    }

    #[test]
    fn acknowledgements_count_if_they_are_lost_too() {
        // Directly 0.55 of the frames arrive, and over 1 all.
        let places = [(0.0, 0.0), (120.0, 0.0), (240.0, 0.0)];
        let mut links = links(&places, |m| if m > 200.0 { 0.45 } else { 0.0 });
        let cost = |links: &Links, scope| Metric::Etx.cost(links, scope, 0, 2).unwrap() as f64;
        assert!((cost(&links, LossScope::Data) * 0.55 / HOP as f64 - 1.0).abs() < 1e-5);
        assert!((cost(&links, LossScope::All) * 0.55 * 0.55 / HOP as f64 - 1.0).abs() < 1e-5);
        // Directly it takes 1.8 transmissions, fewer than 2. With lost acknowledgements it takes 3.3.
        let path_of = |links: &Links, scope, from, to| {
            path(&mut Routes::shortest(links, Metric::Etx, scope), from, to)
        };
        assert_eq!(path_of(&links, LossScope::Data, 0, 2), [0, 2]);
        assert_eq!(path_of(&links, LossScope::All, 0, 2), [0, 1, 2]);
        // The loss of the way back matters only for acknowledgements.
        let link = *links.get(Station(2), Station(0)).unwrap();
        links.set(Station(2), Station(0), Link { loss: 0.9, ..link });
        assert_eq!(path_of(&links, LossScope::Data, 0, 2), [0, 2]);
        assert_eq!(path_of(&links, LossScope::Data, 2, 0), [2, 1, 0]);
        assert_eq!(path_of(&links, LossScope::All, 0, 2), [0, 1, 2]);
    }

    #[test]
    fn of_equal_paths_the_first_is_taken() {
        let diamond = [(0.0, 0.0), (200.0, 10.0), (200.0, -10.0), (400.0, 0.0)];
        let mut routes = Routes::shortest(&links(&diamond, |_| 0.0), Metric::Hops, LossScope::Data);
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
