use proptest::prelude::*;
use radio::Rate;
use sim::scenario::Scenario;

use super::*;
use crate::testing::{chain, grid, meshes, values};
use crate::two_flow;

/// WINE's chain of section 5.1: 802.11b at 11 Mbit/s, basic rate 2 Mbit/s, 240 m from router to router, reception
/// up to 250 m, interference up to 550 m.
fn wine(rts: Option<u32>) -> (Mesh, Matrix) {
    let keys = [("hops", "8"), ("spacing_m", "240"), ("basic_mbps", "2"), ("rts", "true")];
    let keys = &keys[..3 + usize::from(rts.is_some())];
    let keys: Vec<_> =
        keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let scenario = Scenario::load("bulk", &keys).unwrap();
    assert_eq!((scenario.radio.basic_rate, scenario.radio.rts_threshold), (Rate::Mbps2, rts));
    let mesh = Mesh::of(&scenario);
    let matrix = two_flow::matrix(&mesh, &scenario.radio, &scenario.links);
    (mesh, matrix)
}

#[test]
fn the_papers_chain_is_paced_by_the_papers_nodes() {
    for rts in [None, Some(0)] {
        let (mesh, matrix) = wine(rts);
        let plan = place(&mesh, &matrix);
        assert_eq!(plan.method, Method::Exact);
        assert_eq!(plan.areas, [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7]], "{rts:?}");
        assert_eq!(plan.nodes, [0, 3, 6, 8]);
    }
}

/// Links 3 and 4 of the chain are equally bad at first. A search that only goes on from link 3 ends at other nodes,
/// with a lesser least capacity.
#[test]
fn of_equal_links_each_is_tried() {
    let (mesh, matrix) = wine(None);
    let returns = RETURNS_MAX;
    let mut search =
        Search { mesh: &mesh, matrix: &matrix, returns, seen: BTreeSet::new(), best: None };
    search.go_on((0..8).map(|link| vec![link]).collect(), vec![]);
    let end = search.best.unwrap();
    assert_eq!(nodes(&mesh, &end.areas), [0, 4, 7, 8]);
    assert!(least(&capacities(&matrix, &end.areas)) < least_of(&matrix, &[0, 3, 6]));
}

/// The least capacity of areas that are given by the links at which they begin.
fn least_of(matrix: &Matrix, begins: &[usize]) -> f64 {
    let ends = begins.iter().copied().skip(1).chain([matrix.links()]);
    let areas: Vec<Vec<_>> =
        begins.iter().zip(ends).map(|(from, to)| (*from..to).collect()).collect();
    least(&capacities(matrix, &areas))
}

/// Algorithm 1 climbs; it does not try all partitions. Of these, the one at 0, 4 and 8 has a greater least capacity.
#[test]
fn the_papers_nodes_are_not_the_best_of_all() {
    let (_, matrix) = wine(None);
    let all = (0..1_u32 << 7).map(|cuts| {
        let begins: Vec<_> = (0..8).filter(|at| *at == 0 || cuts >> (at - 1) & 1 == 1).collect();
        (least_of(&matrix, &begins), begins)
    });
    let best = all.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    assert_eq!(best.1, [0, 4]);
    assert!(best.0 > least_of(&matrix, &[0, 3, 6]));
}

#[test]
fn links_that_disturb_nobody_stay_alone() {
    let mesh = chain(3);
    let plan = place(&mesh, &Matrix::new(3));
    assert_eq!((plan.areas, plan.least), (vec![vec![0], vec![1], vec![2]], vec![1.0]));
    assert_eq!(plan.nodes, [0, 1, 2, 3]);
    let none = Mesh::new(vec!["a".to_owned()], [], [0]);
    assert_eq!(place(&none, &Matrix::new(0)).nodes, Vec::<usize>::new());
}

/// By hand: two links that let each other pass with 0.4 have a capacity of 0.4 each. Together they have a half.
#[test]
fn two_links_share_an_area_if_each_would_get_less_than_a_half() {
    let mesh = chain(2);
    for (value, areas, nodes, least) in [
        (0.4, vec![vec![0, 1]], vec![0, 2], vec![0.4, 0.5]),
        (0.6, vec![vec![0], vec![1]], vec![0, 1, 2], vec![0.6]),
    ] {
        let plan = place(&mesh, &Matrix::two_hop(&mesh, value));
        assert_eq!((plan.areas, plan.nodes, plan.least), (areas, nodes, least));
    }
}

/// Two equal parts out of each other's range: improving one does not raise the least capacity of all, and both
/// are improved.
#[test]
fn equal_parts_are_all_improved() {
    let names = (0..6).map(|it| it.to_string()).collect();
    let mesh = Mesh::new(names, [(0, 1), (1, 2), (3, 4), (4, 5)], []);
    let plan = place(&mesh, &Matrix::two_hop(&mesh, 0.3));
    assert_eq!((plan.areas, plan.nodes), (vec![vec![0, 1], vec![2, 3]], vec![]));
    assert_eq!(plan.least, [0.3, 0.3, 0.5]);
}

/// Figure 3.1 and the text beside it: on a grid, the algorithm gives an arrangement like that of the heuristic, circles
/// whose routers are at most two hops from a centre. This grid is narrow enough for the algorithm, and has more
/// than one area.
#[test]
fn a_grids_areas_are_circles_as_those_of_the_heuristic() {
    let mesh = grid(6, 2);
    let matrix = Matrix::two_hop(&mesh, 0.5);
    let plan = place(&mesh, &matrix);
    assert_eq!(plan.method, Method::Exact);
    is_sound(&mesh, &plan);
    for area in &plan.areas {
        let routers: Vec<_> =
            area.iter().flat_map(|link| <[usize; 2]>::from(mesh.links()[*link])).collect();
        let is_centre = |hops: Vec<Option<u32>>| {
            routers.iter().all(|it| hops[*it].is_some_and(|hops| hops <= 2))
        };
        assert!((0..12).any(|centre| is_centre(mesh.hops(centre))), "{area:?}");
    }
    let by_hops = heuristic::areas(&mesh);
    assert!(plan.areas.len() > 1 && plan.areas.len().abs_diff(by_hops.len()) <= 1, "{by_hops:?}");
    let last = *plan.least.last().unwrap();
    assert!(last >= least(&capacities(&matrix, &by_hops)) && last > 10.0 * plan.least[0]);
}

/// In a large grid each link has 22 others within range, and the plan says that the heuristic made it.
#[test]
fn a_large_grid_is_planned_by_hops() {
    let mesh = grid(7, 7);
    let plan = place(&mesh, &Matrix::two_hop(&mesh, 0.5));
    let Method::TwoHop { local, .. } = plan.method else { panic!("{plan:?}") };
    assert_eq!(local, 22);
    assert!(plan.least[1] > 1000.0 * plan.least[0], "{:?}", plan.least);
    assert!(plan.nodes.len() < 49);
    is_sound(&mesh, &plan);
}

/// Links that have no router in common; the first is disturbed by each other one, which it disturbs not.
fn disturbed_by(others: usize) -> (Mesh, Matrix) {
    let names = (0..2 * others + 2).map(|it| it.to_string()).collect();
    let mesh = Mesh::new(names, (0..=others).map(|link| (2 * link, 2 * link + 1)), []);
    let mut matrix = Matrix::new(others + 1);
    (1..=others).for_each(|other| matrix.set(0, other, 0.5));
    (mesh, matrix)
}

/// Algorithm 1 tries each subset of the links within range (WINE, section 3.2), here 2¹⁶ and not more.
#[test]
fn sixteen_links_within_range_are_planned_exactly_and_seventeen_by_hops() {
    let (mesh, matrix) = disturbed_by(16);
    let plan = place(&mesh, &matrix);
    assert_eq!(plan.method, Method::Exact);
    // Links without a common router cannot share an area.
    assert_eq!((plan.areas.len(), plan.least), (17, vec![libm::exp2(-16.0)]));
    let (mesh, matrix) = disturbed_by(17);
    assert_eq!(place(&mesh, &matrix).method, Method::TwoHop { link: 0, local: 17 });
}

/// Areas are a partition into connected sets, and a path from one into another crosses an interlay node.
#[track_caller]
fn is_sound(mesh: &Mesh, plan: &Plan) {
    let mut links = plan.areas.concat();
    links.sort_unstable();
    assert!(links.into_iter().eq(0..mesh.links().len()), "each link once: {plan:?}");
    let of = area_of(&plan.areas, mesh.links().len());
    for area in &plan.areas {
        assert_eq!(mesh.parts(&area.iter().copied().collect()).len(), 1, "{plan:?}");
    }
    for link in 0..of.len() {
        for other in mesh.adjacent(link).filter(|other| of[*other] != of[link]) {
            let ((a, b), (c, d)) = (mesh.links()[link], mesh.links()[other]);
            let common = if a == c || a == d { a } else { b };
            assert!(plan.nodes.contains(&common), "{common}: {plan:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn plans_are_sound_and_the_least_capacity_never_falls(
        (mesh, matrix) in meshes().prop_flat_map(|mesh| {
            let values = values(mesh.links().len());
            (Just(mesh), values)
        }),
    ) {
        let plan = place(&mesh, &matrix);
        is_sound(&mesh, &plan);
        prop_assert!(plan.least.is_sorted_by(|a, b| *a <= b * (1.0 + 1e-8)), "{:?}", plan.least);
        let last = least(&capacities(&matrix, &plan.areas));
        prop_assert!((last - plan.least.last().unwrap()).abs() < 1e-12);
    }
}
