//! Routes to the gateway: a tree, fixed or computed.

use radio::{Links, LossScope, Station};

use super::metric::Metric;

/// Each router's next hop towards the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    gateway: usize,
    /// `None` for the gateway, and for a router without a route.
    parents: Vec<Option<usize>>,
}

impl Tree {
    /// A tree without routes.
    pub fn new(routers: usize, gateway: usize) -> Self {
        Self { gateway, parents: vec![None; routers] }
    }

    /// The shortest routes over links that work in both directions. Of equal routes, the one with the lowest
    /// sum of losses wins, then the one over routers listed first.
    pub fn shortest(links: &Links, scope: LossScope, gateway: usize, metric: Metric) -> Self {
        let mut tree = Self::new(links.stations(), gateway);
        // For each router, the cost and loss of the best route so far.
        let mut best = vec![(u64::MAX, f64::INFINITY); links.stations()];
        best[gateway] = (0, 0.0);
        let mut open: Vec<_> = (0..links.stations()).collect();
        let cheaper = |a: &(u64, f64), b: &(u64, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
        while let Some(place) =
            (0..open.len()).min_by(|a, b| cheaper(&best[open[*a]], &best[open[*b]]))
        {
            let parent = open.remove(place);
            if best[parent].0 == u64::MAX {
                break;
            }
            for router in &open {
                let Some(cost) = metric.cost(links, scope, parent, *router) else { continue };
                let lost = loss(links, parent, *router).unwrap_or(0.0);
                let sum = (best[parent].0 + cost, best[parent].1 + lost);
                let found = cheaper(&sum, &best[*router]);
                if found.is_lt() || found.is_eq() && tree.parents[*router] > Some(parent) {
                    best[*router] = sum;
                    tree.parents[*router] = Some(parent);
                }
            }
        }
        tree
    }

    /// Adds the hop from `router` to `parent`. Returns an existing other parent as an error.
    pub fn join(&mut self, router: usize, parent: usize) -> Result<(), usize> {
        match self.parents[router].replace(parent) {
            Some(other) if other != parent => Err(other),
            _ => Ok(()),
        }
    }

    /// Whether this router is the gateway or has a route to it.
    pub fn connects(&self, router: usize) -> bool {
        router == self.gateway || self.parent(router).is_some()
    }

    /// All hops, each once, from a router to the next towards the gateway.
    pub fn hops(&self) -> Vec<(usize, usize)> {
        (0..self.parents.len()).filter_map(|it| Some((it, self.parent(it)?))).collect()
    }

    /// The route from the gateway to a router, both included; empty if there is none.
    pub fn path(&self, to: usize) -> Vec<usize> {
        let steps = self.connects(to).then_some(to);
        let mut path: Vec<_> = std::iter::successors(steps, |it| self.parent(*it)).collect();
        path.reverse();
        path
    }

    fn parent(&self, router: usize) -> Option<usize> {
        self.parents.get(router).copied().flatten()
    }
}

/// The loss of a link, averaged over both directions; `None` if frames cannot be received in both.
pub(super) fn loss(links: &Links, a: usize, b: usize) -> Option<f64> {
    let one_way = |from: usize, to: usize| {
        let station = |index| u16::try_from(index).ok().map(Station);
        let link = links.get(station(from)?, station(to)?)?;
        link.decodable.then_some(link.loss)
    };
    Some((one_way(a, b)? + one_way(b, a)?) / 2.0)
}

#[cfg(test)]
mod tests {
    use radio::Ranges;

    use super::*;

    fn shortest(positions_m: &[(f64, f64)]) -> Tree {
        let links = Links::by_distance(positions_m, Ranges::default(), |m| m / 1000.0);
        Tree::shortest(&links, LossScope::Data, 0, Metric::Hops)
    }

    #[test]
    fn paths_lead_along_the_tree() {
        // 0 - 1 - 2, 1 - 3, 0 - 4; 5 is not connected.
        let mut tree = Tree::new(6, 0);
        for (router, parent) in [(1, 0), (2, 1), (3, 1), (4, 0), (2, 1)] {
            assert_eq!(tree.join(router, parent), Ok(()));
        }
        assert_eq!(tree.path(2), [0, 1, 2]);
        assert_eq!(tree.path(0), [0]);
        assert!(tree.path(5).is_empty() && tree.path(9).is_empty());
        assert_eq!(tree.join(2, 4), Err(1));
    }

    #[test]
    fn the_shortest_has_fewest_hops_then_least_loss_then_the_first() {
        // Router 3 is reached over 1 or 2; 2 is nearer to the straight line.
        let tree = shortest(&[(0.0, 0.0), (200.0, 90.0), (200.0, 10.0), (400.0, 0.0)]);
        assert_eq!(tree.path(3), [0, 2, 3]);
        let tree = shortest(&[(0.0, 0.0), (200.0, 10.0), (200.0, -10.0), (400.0, 0.0)]);
        assert_eq!(tree.path(3), [0, 1, 3]);
        // One long hop is shorter than two short ones.
        assert_eq!(shortest(&[(0.0, 0.0), (240.0, 0.0), (120.0, 0.0)]).path(1), [0, 1]);
        assert!(!shortest(&[(0.0, 0.0), (251.0, 0.0)]).connects(1));
    }
}
