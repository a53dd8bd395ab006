//! A picture of a plan: the mesh with its areas, and the interlay nodes.

use std::collections::BTreeSet;

use report::{Ground, Line, Place, areas};

use crate::place::area_of;
use crate::{Mesh, Plan};

/// From a router to the next in the picture of a mesh whose places are not known, in metres.
const STEP_M: f64 = 100.0;

/// The map of a mesh whose places are not known: to the right by hops from the first router, and downwards in order.
/// What that router does not reach begins a row of its own.
pub fn ground(mesh: &Mesh) -> Ground {
    let routers = mesh.names().len();
    let mut places = vec![None; routers];
    let mut top = 0;
    for first in 0..routers {
        if places[first].is_some() {
            continue;
        }
        let mut rows = Vec::new();
        for (at, hops) in mesh.hops(first).iter().enumerate() {
            let Some(hops) = hops.map(|it| it as usize) else { continue };
            rows.resize(rows.len().max(hops + 1), 0);
            places[at] = Some((hops as f64 * STEP_M, -f64::from(top + rows[hops]) * STEP_M));
            rows[hops] += 1;
        }
        top += rows.into_iter().max().unwrap_or(0);
    }
    let place = |(name, at): (&String, Option<(f64, f64)>)| {
        let (x_m, y_m) = at.unwrap_or_default();
        Place { name: name.clone(), x_m, y_m }
    };
    Ground { routers: mesh.names().iter().zip(places).map(place).collect(), ..Ground::default() }
}

/// The picture on a map of the mesh's routers.
pub fn svg(mesh: &Mesh, plan: &Plan, ground: &Ground) -> String {
    let area = area_of(&plan.areas, mesh.links().len());
    let line = |&(from, to): &(usize, usize)| Line { from, to, loss: 0.0 };
    let links: Vec<_> = mesh.links().iter().map(line).zip(area).collect();
    areas::svg(ground, &links, &BTreeSet::from_iter(plan.nodes.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::chain;
    use crate::{Matrix, place};

    #[test]
    fn a_chain_lies_in_a_row_and_parts_lie_below_each_other() {
        let ground = ground(&chain(3));
        let places: Vec<_> = ground.routers.iter().map(|it| (it.x_m, it.y_m)).collect();
        assert_eq!(places, [(0.0, 0.0), (100.0, 0.0), (200.0, 0.0), (300.0, 0.0)]);
        let names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let apart = super::ground(&Mesh::new(names, [(0, 2), (1, 3)], []));
        let places: Vec<_> = apart.routers.iter().map(|it| (it.x_m, it.y_m)).collect();
        assert_eq!(places, [(0.0, 0.0), (0.0, -100.0), (100.0, 0.0), (100.0, -100.0)]);
    }

    #[test]
    fn each_area_and_each_node_is_drawn() {
        let mesh = chain(8);
        let plan = place(&mesh, &Matrix::two_hop(&mesh, 0.5));
        let svg = svg(&mesh, &plan, &ground(&mesh));
        for at in 0..plan.areas.len() {
            assert!(svg.contains(&format!("area c{at}")), "no area {at}");
        }
        // One of them is the legend's.
        assert_eq!(svg.matches("class=\"interlay\"").count(), plan.nodes.len() + 1);
    }
}
