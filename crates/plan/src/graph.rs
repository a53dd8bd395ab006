//! The connectivity graph: routers, and the links between those that hear each other (WINE, section 3.1).

use std::collections::{BTreeSet, VecDeque};

use radio::Station;
use sim::scenario::{Scenario, Traffic};

/// Most links of a mesh: the matrix has a number for each two of them.
pub const LINKS_MAX: usize = 2000;

/// Routers and links. A link has no direction: an area contains both directions or none, since the paper counts
/// each two neighbours of its grid once (the 23 of section 3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mesh {
    names: Vec<String>,
    links: Vec<(usize, usize)>,
    ends: BTreeSet<usize>,
    /// For each router, the links that it has.
    of_router: Vec<Vec<usize>>,
}

impl Mesh {
    /// Routers with these names, and links between them; `ends` are the routers at which traffic enters or leaves.
    /// The order and direction of links do not matter, and each counts once.
    ///
    /// # Panics
    ///
    /// If a link or an end names a router that does not exist, or a link leads to its own router.
    pub fn new(
        names: Vec<String>,
        links: impl IntoIterator<Item = (usize, usize)>,
        ends: impl IntoIterator<Item = usize>,
    ) -> Self {
        let links: BTreeSet<_> = links.into_iter().map(|(a, b)| (a.min(b), a.max(b))).collect();
        let (links, ends) = (Vec::from_iter(links), BTreeSet::from_iter(ends));
        let mut of_router = vec![Vec::new(); names.len()];
        for (link, &(a, b)) in links.iter().enumerate() {
            assert!(a != b, "a link leads to another router");
            of_router[a].push(link);
            of_router[b].push(link);
        }
        assert!(ends.iter().all(|end| *end < names.len()), "an end is a router");
        Self { names, links, ends, of_router }
    }

    /// The mesh of a scenario: each two routers that can receive each other's frames. Traffic enters and leaves at
    /// the gateway, and at the receivers behind which no route goes on; or where listed flows begin and end.
    pub fn of(scenario: &Scenario) -> Self {
        let arrives = |from: usize, to: usize| {
            let link = scenario.links.get(Station(from as u16), Station(to as u16));
            link.is_some_and(|it| it.decodable)
        };
        let routers = scenario.routers.len();
        let pairs = (0..routers).flat_map(|a| (a + 1..routers).map(move |b| (a, b)));
        let links = pairs.filter(|&(a, b)| arrives(a, b) && arrives(b, a));
        let between: BTreeSet<_> = scenario
            .receivers
            .iter()
            .flat_map(|to| scenario.path(*to).into_iter().rev().skip(1))
            .collect();
        let last = scenario.receivers.iter().copied().filter(|it| !between.contains(it));
        let names = scenario.routers.iter().map(|it| it.name.clone()).collect();
        if scenario.traffic == Traffic::Flows {
            return Self::new(names, links, scenario.flows.iter().flat_map(|it| [it.from, it.to]));
        }
        Self::new(names, links, last.chain([scenario.gateway]))
    }

    /// The routers' names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The two routers of each link, the one with the lower number first; the links are in order.
    pub fn links(&self) -> &[(usize, usize)] {
        &self.links
    }

    /// The routers at which traffic enters or leaves.
    pub fn ends(&self) -> &BTreeSet<usize> {
        &self.ends
    }

    /// The links of a router, in order.
    pub fn links_of(&self, router: usize) -> &[usize] {
        &self.of_router[router]
    }

    /// The number of the link between two routers.
    pub fn link(&self, a: usize, b: usize) -> Option<usize> {
        self.links.binary_search(&(a.min(b), a.max(b))).ok()
    }

    /// A link as texts show it: `a>b`.
    pub fn shown(&self, link: usize) -> String {
        let (a, b) = self.links[link];
        format!("{}>{}", self.names[a], self.names[b])
    }

    /// The links that have a router in common with this one, in order.
    pub fn adjacent(&self, link: usize) -> impl Iterator<Item = usize> {
        let (a, b) = self.links[link];
        self.of_router[a].iter().chain(&self.of_router[b]).copied().filter(move |it| *it != link)
    }

    /// The connected parts of a set of links.
    pub fn parts(&self, links: &BTreeSet<usize>) -> Vec<BTreeSet<usize>> {
        let (mut left, mut parts) = (links.clone(), Vec::new());
        while let Some(first) = left.pop_first() {
            let (mut part, mut next) = (BTreeSet::from([first]), vec![first]);
            while let Some(at) = next.pop() {
                for neighbour in self.adjacent(at).filter(|it| left.remove(it)) {
                    part.insert(neighbour);
                    next.push(neighbour);
                }
            }
            parts.push(part);
        }
        parts
    }

    /// The number of hops from a router to each router; `None` where no path leads.
    pub fn hops(&self, from: usize) -> Vec<Option<u32>> {
        let mut hops = vec![None; self.names.len()];
        hops[from] = Some(0);
        let mut next = VecDeque::from([from]);
        while let Some(at) = next.pop_front() {
            for &link in &self.of_router[at] {
                let (a, b) = self.links[link];
                let other = if a == at { b } else { a };
                if hops[other].is_none() {
                    hops[other] = hops[at].map(|it| it + 1);
                    next.push_back(other);
                }
            }
        }
        hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chain, grid};

    #[test]
    fn a_scenarios_links_and_ends() {
        let keys = [("hops", "4"), ("spacing_m", "240")];
        let keys = keys.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mesh = Mesh::of(&Scenario::load("bulk", &keys).unwrap());
        assert_eq!(mesh.links(), chain(4).links());
        assert_eq!(*mesh.ends(), BTreeSet::from([0, 4]));
        // In a ring, 2 and 6 only pass on.
        let ring = Mesh::of(&Scenario::load("ring8", &[]).unwrap());
        assert_eq!(ring.links().len(), 8);
        assert_eq!(*ring.ends(), BTreeSet::from([0, 4, 5]));
    }

    #[test]
    fn parts_and_hops() {
        let mesh = chain(5);
        let parts = mesh.parts(&BTreeSet::from([0, 1, 3]));
        assert_eq!(parts, [BTreeSet::from([0, 1]), BTreeSet::from([3])]);
        assert_eq!(mesh.hops(1), [1, 0, 1, 2, 3, 4].map(Some));
        let apart = Mesh::new(vec![String::new(); 3], [(2, 1)], []);
        assert_eq!((apart.hops(0), apart.links()), (vec![Some(0), None, None], &[(1, 2)][..]));
    }

    /// WINE's example, section 3.3: a link in the middle of a grid, its 6 neighbours and their 16 neighbours are 23.
    #[test]
    fn a_grid_has_the_papers_number_of_neighbours() {
        let mesh = grid(6, 6);
        let middle = mesh.link(14, 15).unwrap();
        let near: BTreeSet<_> = mesh.adjacent(middle).collect();
        let far: BTreeSet<_> = near.iter().flat_map(|it| mesh.adjacent(*it)).collect();
        assert_eq!((near.len(), far.union(&near).count()), (6, 23));
    }
}
