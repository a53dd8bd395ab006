//! Routes between stations: a tree to the gateway, and shortest paths over the current links.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use radio::{Links, LossScope};

use crate::scenario::{HOP, Metric, Scenario};

/// No station.
const NONE: u16 = u16::MAX;

/// Next hops between any two stations, computed when a destination is first used.
#[derive(Clone, Debug)]
pub struct Routes {
    /// For each station, the stations with a hop to it in order of their numbers, and the hops' costs.
    neighbours: Vec<Vec<(u16, u64)>>,
    /// Each station's next hop in the tree.
    parents: Vec<u16>,
    /// For each destination, every station's path to it; empty until the destination is used.
    towards: Vec<Paths>,
}

/// The paths of all stations to one destination.
#[derive(Clone, Debug, Default)]
struct Paths {
    next: Vec<u16>,
    /// See [`Routes::other_hop`]; empty until one is asked for.
    other: Vec<u16>,
    costs: Vec<u64>,
}

/// A path between two stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The station after the first.
    pub next_hop: usize,
    /// The cost by the scenario's metric, in the unit of [`HOP`].
    pub cost: u64,
    /// The number of hops; one between neighbours.
    pub hops: u32,
}

impl Routes {
    /// The static routes of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        let Scenario { links, metric, radio, .. } = scenario;
        Self::beside(&scenario.tree_hops(), links, *metric, radio.loss_scope)
    }

    /// Shortest paths over links that work in both directions. Of equal paths, the one over earlier stations
    /// wins.
    pub fn shortest(links: &Links, metric: Metric, scope: LossScope) -> Self {
        Self::between(links, metric, scope, |_, _| true)
    }

    /// Along a tree between a station and those on its way to the root, shortest paths between all others of the
    /// tree. `hops` lead from a station to the next towards the root. Between two trees there are no routes.
    pub fn beside(
        hops: &[(usize, usize)],
        links: &Links,
        metric: Metric,
        scope: LossScope,
    ) -> Self {
        let mut tree = Self::new(links.stations());
        for (station, parent) in hops {
            tree.parents[*station] = *parent as u16;
        }
        let roots: Vec<_> = (0..links.stations()).map(|at| tree.root(at)).collect();
        let between = Self::between(links, metric, scope, |a, b| roots[a] == roots[b]);
        Self { parents: tree.parents, ..between }
    }

    fn between(
        links: &Links,
        metric: Metric,
        scope: LossScope,
        may: impl Fn(usize, usize) -> bool,
    ) -> Self {
        let mut routes = Self::new(links.stations());
        for (to, neighbours) in routes.neighbours.iter_mut().enumerate() {
            let others = (0..links.stations()).filter(|from| *from != to && may(*from, to));
            neighbours.extend(others.filter_map(|from| {
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
        Self {
            neighbours: vec![Vec::new(); stations],
            parents: vec![NONE; stations],
            towards: vec![Paths::default(); stations],
        }
    }

    /// The number of stations.
    pub fn stations(&self) -> usize {
        self.parents.len()
    }

    /// The next hop from `from` to `to`; `None` if there is no route, or they are the same.
    pub fn next_hop(&mut self, from: usize, to: usize) -> Option<usize> {
        if self.towards[to].next.is_empty() {
            self.towards[to] = self.search(to);
        }
        let next = self.towards[to].next[from];
        (next != NONE).then_some(usize::from(next))
    }

    /// Another neighbour of `from` that is nearer to `to` than `from` is, so that packets cannot come back (RFC 5286,
    /// section 3.1): the one with the least cost after [`next_hop`](Self::next_hop).
    pub fn other_hop(&mut self, from: usize, to: usize) -> Option<usize> {
        self.next_hop(from, to)?;
        if self.towards[to].other.is_empty() {
            let Paths { next, costs, .. } = &self.towards[to];
            let other = (0..next.len()).map(|from| self.other(from, next[from], costs)).collect();
            self.towards[to].other = other;
        }
        let other = self.towards[to].other[from];
        (other != NONE).then_some(usize::from(other))
    }

    /// The path from `from` to `to`; `None` if there is no route, or they are the same.
    pub fn path(&mut self, from: usize, to: usize) -> Option<Path> {
        let next_hop = self.next_hop(from, to)?;
        let hops = std::iter::successors(Some(from), |at| self.next_hop(*at, to)).count() - 1;
        Some(Path { next_hop, cost: self.towards[to].costs[from], hops: hops as u32 })
    }

    /// Dijkstra's algorithm, starting at the destination and at the stations that the tree leads there.
    fn search(&self, to: usize) -> Paths {
        let mut next = self.by_tree(to);
        let mut costs: Vec<_> = (0..next.len()).map(|at| self.cost_along(&next, at, to)).collect();
        let fixed = next.clone();
        let is_open = |place: usize| place != to && fixed[place] == NONE;
        let known = (0..next.len()).filter(|at| !is_open(*at));
        let mut nearest: BinaryHeap<_> = known.map(|at| Reverse((costs[at], at as u16))).collect();
        while let Some(Reverse((cost, at))) = nearest.pop() {
            if cost > costs[usize::from(at)] {
                continue;
            }
            for (neighbour, hop) in &self.neighbours[usize::from(at)] {
                let (place, sum) = (usize::from(*neighbour), cost + hop);
                if !is_open(place) {
                    continue;
                }
                if sum < costs[place] {
                    (costs[place], next[place]) = (sum, at);
                    nearest.push(Reverse((sum, *neighbour)));
                } else if sum == costs[place] {
                    next[place] = next[place].min(at);
                }
            }
        }
        Paths { next, other: Vec::new(), costs }
    }

    /// The nearest neighbour of a station that is nearer to the destination, but for its next hop.
    fn other(&self, from: usize, next: u16, costs: &[u64]) -> u16 {
        let cost = |at: u16| costs[usize::from(at)];
        let nearer = |(at, _): &&(u16, u64)| *at != next && cost(*at) < costs[from];
        let others = self.neighbours[from].iter().filter(nearer);
        others.min_by_key(|(at, hop)| (cost(*at).saturating_add(*hop), *at)).map_or(NONE, |it| it.0)
    }

    /// The next hops of the stations that the tree leads to a destination: those above it and those below it.
    fn by_tree(&self, to: usize) -> Vec<u16> {
        let mut next = vec![NONE; self.parents.len()];
        let mut at = to;
        while let Some(parent) = self.parent(at) {
            next[parent] = at as u16;
            at = parent;
        }
        for (station, next) in next.iter_mut().enumerate() {
            let mut above = std::iter::successors(self.parent(station), |at| self.parent(*at));
            if above.any(|it| it == to) {
                *next = self.parents[station];
            }
        }
        next
    }

    /// What these next hops cost from a station to a destination; without a next hop, no cost is as high.
    fn cost_along(&self, next: &[u16], from: usize, to: usize) -> u64 {
        let (mut at, mut sum) = (from, 0);
        while at != to {
            if next[at] == NONE {
                return u64::MAX;
            }
            let place = usize::from(next[at]);
            let hop = self.neighbours[place].iter().find(|it| usize::from(it.0) == at);
            // The tree may have a hop over a link that is down now.
            sum += hop.map_or(HOP, |it| it.1);
            at = place;
        }
        sum
    }

    fn root(&self, station: usize) -> usize {
        std::iter::successors(Some(station), |at| self.parent(*at)).last().unwrap_or(station)
    }

    fn parent(&self, station: usize) -> Option<usize> {
        let parent = self.parents[station];
        (parent != NONE).then_some(usize::from(parent))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;
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

    proptest! {
        /// Taking the other hop wherever there is one leads there, and to no station twice.
        #[test]
        fn other_hops_lead_on(places in prop::collection::vec((0.0..700.0, 0.0..700.0), 2..20)) {
            let links = links(&places, |m| m / 600.0);
            let mut routes = Routes::shortest(&links, Metric::Etx, LossScope::Data);
            for (from, to) in [(0, places.len() - 1), (places.len() - 1, 0)] {
                let (mut at, mut been) = (from, vec![from]);
                while let Some(next) = routes.other_hop(at, to).or(routes.next_hop(at, to)) {
                    prop_assert!(!been.contains(&next), "{:?} {}", been, next);
                    been.push(next);
                    at = next;
                }
                prop_assert_eq!(at == to, routes.next_hop(from, to).is_some());
            }
        }
    }

    #[test]
    fn the_other_hop_is_the_next_best_of_those_that_are_nearer() {
        // From 0 to 4: over 1 or 2, both beside 4, but not over 3, which is as far from 4 as 0 is.
        let places = [(0.0, 0.0), (150.0, 50.0), (150.0, -50.0), (0.0, 100.0), (300.0, 0.0)];
        let links = links(&places, |_| 0.0);
        let mut routes = Routes::shortest(&links, Metric::Hops, LossScope::Data);
        assert_eq!((routes.next_hop(0, 4), routes.other_hop(0, 4)), (Some(1), Some(2)));
        assert_eq!((routes.other_hop(1, 4), routes.other_hop(4, 4)), (None, None));
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

    /// 0 is the gateway of 1 and 2, side by side; 3 is behind 1, 4 behind 2, and 5 hears nobody.
    const PLACES: [(f64, f64); 6] = [
        (0.0, 0.0),
        (200.0, 100.0),
        (200.0, -100.0),
        (400.0, 100.0),
        (400.0, -100.0),
        (9000.0, 0.0),
    ];

    #[test]
    fn neighbours_on_other_branches_are_reached_directly_and_the_gateway_by_the_tree() {
        let links = links(&PLACES, |_| 0.0);
        let hops = [(1, 0), (2, 0), (3, 1), (4, 2)];
        let mut routes = Routes::beside(&hops, &links, Metric::Hops, LossScope::Data);
        for (from, to) in [(1, 2), (3, 4)] {
            assert_eq!(path(&mut routes, from, to), [from, to]);
            assert_eq!(path(&mut routes, to, from), [to, from]);
        }
        assert_eq!(path(&mut routes, 3, 2), [3, 1, 2]);
        assert_eq!(path(&mut routes, 0, 3), [0, 1, 3]);
        assert_eq!(path(&mut routes, 4, 0), [4, 2, 0]);
        assert_eq!((routes.next_hop(5, 0), routes.next_hop(0, 5)), (None, None));
        // A branch that is cut off stays so.
        let mut routes =
            Routes::beside(&[(1, 0), (2, 0), (4, 3)], &links, Metric::Hops, LossScope::Data);
        assert_eq!((routes.next_hop(3, 0), routes.next_hop(3, 4)), (None, Some(4)));
        // The tree counts even where a shorter path exists.
        let chain = [(1, 0), (2, 1), (4, 2), (3, 4)];
        let mut routes = Routes::beside(&chain, &links, Metric::Hops, LossScope::Data);
        assert_eq!(path(&mut routes, 0, 3), [0, 1, 2, 4, 3]);
        assert_eq!(path(&mut routes, 2, 0), [2, 1, 0]);
        assert_eq!(path(&mut routes, 3, 1), [3, 4, 2, 1]);
    }

    #[test]
    fn where_only_the_trees_links_exist_next_hops_lead_along_it() {
        // 0 - 1 - 2, 1 - 3, 0 - 4; 5 is not connected.
        let places =
            [(0.0, 0.0), (200.0, 0.0), (400.0, 0.0), (200.0, 200.0), (-200.0, 0.0), (9000.0, 0.0)];
        let tree = [(1, 0), (2, 1), (3, 1), (4, 0)];
        let mut routes =
            Routes::beside(&tree, &links(&places, |_| 0.0), Metric::Hops, LossScope::Data);
        let hops = [(2, 3, 1), (1, 3, 3), (3, 4, 1), (0, 2, 1), (1, 4, 0), (4, 2, 0), (0, 4, 4)];
        for (from, to, hop) in hops {
            assert_eq!(routes.next_hop(from, to), Some(hop), "{from} to {to}");
        }
        for (from, to) in [(0, 5), (5, 0), (2, 2)] {
            assert_eq!(routes.next_hop(from, to), None, "{from} to {to}");
        }
    }

    /// A tree over links that exist: a station's parent is one with a lower number, chosen by `choices`.
    fn any_tree(links: &Links, choices: &[Index]) -> Vec<(usize, usize)> {
        let station = |at: usize| Station(at as u16);
        let hop = |(at, choice): (usize, &Index)| {
            let hears =
                |to: &usize| links.get(station(at), station(*to)).is_some_and(|it| it.decodable);
            let parents: Vec<_> = (0..at).filter(hears).collect();
            (!parents.is_empty()).then(|| (at, parents[choice.index(parents.len())]))
        };
        choices.iter().enumerate().filter_map(hop).collect()
    }

    proptest! {
        #[test]
        fn no_tree_and_shortest_paths_make_a_circle(
            places in prop::collection::vec((0.0..600.0, 0.0..600.0), 12),
            choices in prop::collection::vec(any::<Index>(), 12),
        ) {
            let links = links(&places, |m| m / 300.0);
            let hops = any_tree(&links, &choices);
            for metric in [Metric::Hops, Metric::Etx] {
                let mut routes = Routes::beside(&hops, &links, metric, LossScope::All);
                for (from, to) in (0..12).flat_map(|from| (0..12).map(move |to| (from, to))) {
                    let mut at = from;
                    for _ in 0..12 {
                        at = routes.next_hop(at, to).unwrap_or(at);
                    }
                    prop_assert!(at == to || routes.next_hop(from, to).is_none(), "{from} to {to}");
                }
            }
        }
    }
}
