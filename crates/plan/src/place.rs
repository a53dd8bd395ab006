//! Placement: areas of links, and the routers between them (WINE, section 3.2).
//!
//! Algorithm 1 leaves open which of several links with the least capacity comes first, and the order of the subsets
//! of links. Here it goes on from each of those links, and takes the subset that helps most; of all ends that it
//! reaches, the one with the greatest least capacity counts. As a subset can make some other link the worst,
//! a step is taken only if the sorted capacities increase: the least one, or with equal ones the next. So the least
//! capacity never falls.

use std::collections::{BTreeMap, BTreeSet};

use crate::capacity::{capacities, gains, least};
use crate::{Matrix, Mesh, heuristic};

/// Most links within interference range of one for which algorithm 1 is run: it tries all their connected subsets,
/// at most 65,536.
pub const LOCAL_LINKS_MAX: usize = 16;

/// Most times that the search goes back to another of several links with the least capacity.
const RETURNS_MAX: usize = 64;

/// How areas were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By algorithm 1.
    Exact,
    /// By the two-hop heuristic of section 3.3, because a link has too many others within interference range.
    TwoHop {
        /// The link.
        link: usize,
        /// The number of the others.
        local: usize,
    },
}

/// Where to pace.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// How it was found.
    pub method: Method,
    /// The areas: connected links, each in one area; areas and links in order.
    pub areas: Vec<Vec<usize>>,
    /// The routers that become interlay nodes, in order: those whose links are in several areas, and those where
    /// traffic enters or leaves.
    pub nodes: Vec<usize>,
    /// The least capacity of all links (equation 3.1): first with an area for each link, then after each step.
    pub least: Vec<f64>,
}

/// Finds areas for which the least capacity is great, and the routers between them.
///
/// # Panics
///
/// If the matrix is of another number of links than the mesh.
pub fn place(mesh: &Mesh, matrix: &Matrix) -> Plan {
    assert_eq!(mesh.links().len(), matrix.links(), "the matrix of this mesh");
    let alone: Areas = (0..matrix.links()).map(|link| vec![link]).collect();
    let first = least(&capacities(matrix, &alone));
    let dense = matrix.densest().filter(|(local, _)| *local > LOCAL_LINKS_MAX);
    let (method, areas, least) = match dense {
        Some((local, link)) => {
            let areas = heuristic::areas(mesh);
            let after = least(&capacities(matrix, &areas));
            (Method::TwoHop { link, local }, areas, vec![first, after])
        }
        None => {
            let mut search = Search { mesh, matrix, returns: 0, seen: BTreeSet::new(), best: None };
            search.go_on(alone, vec![first]);
            let best = search.best.expect("the search ends");
            (Method::Exact, best.areas, best.least)
        }
    };
    Plan { method, nodes: nodes(mesh, &areas), areas, least }
}

/// Areas in order, each with its links in order.
type Areas = Vec<Vec<usize>>;

fn nodes(mesh: &Mesh, areas: &[Vec<usize>]) -> Vec<usize> {
    let area = area_of(areas, mesh.links().len());
    let is_node = |router: &usize| {
        let areas: BTreeSet<_> = mesh.links_of(*router).iter().map(|link| area[*link]).collect();
        areas.len() > 1 || (mesh.ends().contains(router) && !areas.is_empty())
    };
    (0..mesh.names().len()).filter(is_node).collect()
}

/// The index of each link's area.
pub(crate) fn area_of(areas: &[Vec<usize>], links: usize) -> Vec<usize> {
    let mut of = vec![0; links];
    for (at, area) in areas.iter().enumerate() {
        area.iter().for_each(|link| of[*link] = at);
    }
    of
}

/// Sorted capacities, as whole numbers that differences in rounding do not change. Of two, the greater one is better.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Score(Vec<i64>);

/// Parts of a natural logarithm that count as equal.
const PARTS: f64 = 1e9;

/// Links whose capacity is at most a tenth above the least one count as equally bad: measured matrices have no equal
/// values.
const NEARLY: i64 = (0.095_310_179_8 * PARTS) as i64;

fn level(capacity: f64) -> i64 {
    // The logarithm of zero becomes the least number.
    (libm::log(capacity) * PARTS).round() as i64
}

/// An end that the search has reached.
struct End {
    score: Score,
    areas: Areas,
    least: Vec<f64>,
}

/// Algorithm 1.
struct Search<'a> {
    mesh: &'a Mesh,
    matrix: &'a Matrix,
    /// How often it has gone back.
    returns: usize,
    seen: BTreeSet<Areas>,
    best: Option<End>,
}

impl Search<'_> {
    /// Goes on from these areas, to each end that can be reached from the links with the least capacity.
    fn go_on(&mut self, areas: Areas, trail: Vec<f64>) {
        let capacities = capacities(self.matrix, &areas);
        let score = score(&capacities);
        let worst = score.0.first().map_or(0, |it| it.saturating_add(NEARLY));
        let worst = (0..capacities.len()).filter(|link| level(capacities[*link]) <= worst);
        let mut is_end = true;
        for link in worst {
            if !is_end && self.returns >= RETURNS_MAX {
                break;
            }
            let Some((next, after)) = self.improved(&areas, &score, link) else { continue };
            self.returns += usize::from(!is_end);
            is_end = false;
            if self.seen.insert(next.clone()) {
                let trail = trail.iter().copied().chain([after]).collect();
                self.go_on(next, trail);
            }
        }
        if is_end && self.best.as_ref().is_none_or(|best| best.score < score) {
            self.best = Some(End { score, areas, least: trail });
        }
    }

    /// The areas after the step that helps most, and their least capacity: a new area for one of the connected
    /// subsets within interference range of the link, which should share one by lemma 1.
    fn improved(&self, areas: &Areas, now: &Score, link: usize) -> Option<(Areas, f64)> {
        let area_of = area_of(areas, self.matrix.links());
        let mut best: Option<(Score, usize, Areas, f64)> = None;
        for subset in connected_with(self.mesh, link, &self.matrix.local(link)) {
            if !gains(self.matrix, link, subset.iter().copied().filter(|it| *it != link)) {
                continue;
            }
            let next = self.with_area(areas, &area_of, &subset);
            let capacities = capacities(self.matrix, &next);
            let score = score(&capacities);
            let is_better = best.as_ref().is_none_or(|(best, links, ..)| {
                score > *best || (score == *best && subset.len() < *links)
            });
            if score > *now && is_better {
                best = Some((score, subset.len(), next, least(&capacities)));
            }
        }
        best.map(|(_, _, areas, least)| (areas, least))
    }

    /// The areas with a new one for these links. Links that already share an area with others are compared, one
    /// after the other, in both places: they move if that is better.
    fn with_area(&self, areas: &Areas, area_of: &[usize], subset: &[usize]) -> Areas {
        let (shared, free): (Vec<_>, Vec<_>) =
            subset.iter().copied().partition(|link| areas[area_of[*link]].len() > 1);
        let near: BTreeSet<_> = subset.iter().map(|link| area_of[*link]).collect();
        let far = areas.iter().enumerate().filter(|(at, _)| !near.contains(at));
        let far: Areas = far.map(|(_, area)| area.clone()).collect();
        let members = |at: usize| (at, areas[at].iter().copied().collect::<BTreeSet<_>>());
        let mut old: BTreeMap<_, _> = shared.iter().map(|link| members(area_of[*link])).collect();
        let mut new = BTreeSet::from_iter(free);
        let mut stays = self.joined(&far, &old, &new);
        for link in shared {
            let own = old.get_mut(&area_of[link]).expect("it has this link");
            own.remove(&link);
            new.insert(link);
            let moves = self.joined(&far, &old, &new);
            if self.score(&moves) > self.score(&stays) {
                stays = moves;
            } else {
                old.entry(area_of[link]).or_default().insert(link);
                new.remove(&link);
            }
        }
        stays
    }

    fn score(&self, areas: &Areas) -> Score {
        score(&capacities(self.matrix, areas))
    }

    /// All areas in order. Of the old and the new ones, one that is no longer connected becomes several.
    fn joined(
        &self,
        far: &Areas,
        old: &BTreeMap<usize, BTreeSet<usize>>,
        new: &BTreeSet<usize>,
    ) -> Areas {
        let parts = old.values().chain([new]).flat_map(|area| self.mesh.parts(area));
        let parts = parts.map(|part| part.into_iter().collect());
        let mut areas: Areas = far.iter().cloned().chain(parts).collect();
        areas.sort_unstable();
        areas
    }
}

fn score(capacities: &[f64]) -> Score {
    let mut levels: Vec<_> = capacities.iter().map(|it| level(*it)).collect();
    levels.sort_unstable();
    Score(levels)
}

/// The connected sets of this link with some of the others, each in order.
fn connected_with<'a>(
    mesh: &'a Mesh,
    link: usize,
    others: &[usize],
) -> impl Iterator<Item = Vec<usize>> + use<'a> {
    let all: Vec<_> = std::iter::once(link).chain(others.iter().copied()).collect();
    // Bit n stands for link `all[n]`; bit 0 is the link itself.
    let beside: Vec<u32> = all
        .iter()
        .map(|it| {
            let near: BTreeSet<_> = mesh.adjacent(*it).collect();
            (0..all.len()).filter(|at| near.contains(&all[*at])).map(|at| 1 << at).sum()
        })
        .collect();
    let is_connected = move |set: u32| {
        let (mut reached, mut before) = (1_u32, 0);
        while reached != before {
            before = reached;
            for (at, beside) in beside.iter().enumerate() {
                reached |= if reached >> at & 1 == 1 { beside & set } else { 0 };
            }
        }
        reached == set
    };
    let sets = (1..1_u32 << others.len()).map(|others| others << 1 | 1);
    sets.filter(move |set| is_connected(*set)).map(move |set| {
        let members = (0..all.len()).filter(|at| set >> at & 1 == 1).map(|at| all[at]);
        BTreeSet::from_iter(members).into_iter().collect()
    })
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
