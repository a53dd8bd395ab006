//! The two-hop heuristic (WINE, section 3.3): circular areas, whose interlay nodes are at most two hops from the
//! centre. It needs no interference matrix.

use std::collections::BTreeSet;

use crate::Mesh;

/// The radius of an area, in hops.
const RADIUS: u32 = 2;

/// Areas around routers, each connected, with the links in order. The next centre is the router around which most
/// links are without an area; of equal ones, the first.
pub fn areas(mesh: &Mesh) -> Vec<Vec<usize>> {
    let circles: Vec<_> = (0..mesh.names().len()).map(|centre| circle(mesh, centre)).collect();
    let mut left: BTreeSet<_> = (0..mesh.links().len()).collect();
    let mut areas = Vec::new();
    while !left.is_empty() {
        let free = circles.iter().map(|circle| circle & &left);
        let parts = free.flat_map(|links| mesh.parts(&links));
        // Of equal ones, `max_by_key` gives the last.
        let all: Vec<_> = parts.collect();
        let area = all.into_iter().rev().max_by_key(BTreeSet::len).expect("a link has a router");
        left = &left - &area;
        areas.push(area.into_iter().collect());
    }
    areas.sort_unstable();
    areas
}

/// The links between routers that are at most two hops from this one.
fn circle(mesh: &Mesh, centre: usize) -> BTreeSet<usize> {
    let is_near: Vec<_> =
        mesh.hops(centre).iter().map(|hops| hops.is_some_and(|it| it <= RADIUS)).collect();
    let links = mesh.links().iter().enumerate();
    links.filter(|(_, (a, b))| is_near[*a] && is_near[*b]).map(|(link, _)| link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chain, grid};

    #[test]
    fn a_chain_is_cut_every_four_hops() {
        assert_eq!(areas(&chain(8)), [[0, 1, 2, 3], [4, 5, 6, 7]]);
        assert_eq!(areas(&chain(0)), Vec::<Vec<usize>>::new());
    }

    /// As figure 3.1 shows it: each area lies within two hops of a centre, and all of them cover the grid.
    #[test]
    fn a_grid_is_cut_into_circles() {
        let mesh = grid(7, 7);
        let areas = areas(&mesh);
        let circles: Vec<_> = (0..49).map(|centre| circle(&mesh, centre)).collect();
        for area in &areas {
            let area: BTreeSet<_> = area.iter().copied().collect();
            assert!(circles.iter().any(|circle| area.is_subset(circle)), "{area:?}");
            assert_eq!(mesh.parts(&area).len(), 1);
        }
        let mut links: Vec<_> = areas.concat();
        links.sort_unstable();
        assert!(links.into_iter().eq(0..mesh.links().len()));
        // A whole circle has four links at the centre, and twelve between its neighbours and theirs.
        assert_eq!(areas.iter().map(Vec::len).max(), Some(16));
    }
}
