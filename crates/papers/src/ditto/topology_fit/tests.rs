//! Places: their constraints, the objective, and the search.

use super::expect;
use super::ground::{Ground, Places, RANGE_M, ROUTERS, distance_m};
use super::objective::{FIGURES, Observed, Table, figures, objective, paper, shares_off};
use super::pick::{COLUMNS, own};
use super::search::{out_of_hearing_m, search};
use sim::scenario::Scenario;

/// A table in which every observer of every transfer has reconstructed the same.
fn all(it: Observed) -> Table {
    let mut table: Table = [[None; ROUTERS]; ROUTERS];
    for (receiver, observers) in table.iter_mut().enumerate().skip(1) {
        for (_, made) in
            observers.iter_mut().enumerate().filter(|(at, _)| ![0, receiver].contains(at))
        {
            *made = Some(it);
        }
    }
    table
}

#[test]
fn the_tree_is_figure_tens() {
    let ground = Ground::new();
    let path = |name: u8| {
        let path = ground.paths[ground.find(name)].iter().map(|it| ground.names[*it]);
        path.collect::<Vec<_>>()
    };
    assert_eq!(path(25), [11, 30, 13, 1, 25]);
    assert_eq!((path(7), path(5)), (vec![11, 30, 29, 7], vec![11, 5]));
    assert_eq!((ground.hops(ground.find(38)), ground.parent(0)), (4, 0));
}

/// The scenario's places satisfy the constraints, to the decimetre to which they are written.
#[test]
fn the_scenario_keeps_to_the_rule() {
    let ground = Ground::new();
    let places = own(&ground).unwrap();
    assert!(ground.all_stand(&places));
    for router in 1..ROUTERS {
        let ours = distance_m(places[router], places[ground.parent(router)]);
        let link = ground.length_m(router);
        assert!((ours - link).abs() < 0.08, "{}: {ours} {link}", ground.names[router]);
    }
    let scenario = Scenario::load("map21", &[]).unwrap();
    let key = |name| scenario.key(name).parse::<f64>().unwrap();
    assert_eq!(out_of_hearing_m(&ground, &places, key("overhear_m")), 0.0);
    assert_eq!((key("range_m"), key("loss")), (RANGE_M, expect::LINK_LOSS));
}

#[test]
fn nobody_stands_where_a_better_way_is() {
    let ground = Ground::new();
    let places = search(&ground, 1, 0).places;
    let with = |name: u8, place: (f64, f64)| {
        let mut changed: Places = places;
        changed[ground.find(name)] = place;
        ground.all_stand(&changed)
    };
    let of = |name: u8| places[ground.find(name)];
    assert!(ground.all_stand(&places));
    // At the same place; too far from the next router; and three hops away but beside the gateway.
    assert!(!with(14, of(5)));
    assert!(!with(19, (of(4).0 + 81.0, of(4).1)));
    assert!(!with(19, (20.0, 20.0)));
}

/// By hand: 120 + 300 observers, which are all alike, and so is the best fifth.
#[test]
fn figures_of_observers_who_are_all_alike() {
    let ground = Ground::new();
    let it = Observed { efficiency: [0.4, 0.2], alone: 0.3, overhead: [0.5, 0.9], has_heard: true };
    let ours = figures(&ground, &all(it));
    let expected = [100.0, 0.0, 40.0, 20.0, 50.0, 90.0, 10.0, 10.0, 40.0, 0.0];
    assert!(ours.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{ours:?}");
    assert_eq!(shares_off(&ours), 85.0);
    // 2 × (60 + 25 + 0) + 40 + 40 + 15 + 20 + 10 + 40.
    assert!((objective(&ours) - 335.0).abs() < 1e-9);
    assert_eq!(figures(&ground, &all(Observed::default()))[9], 100.0);
    assert_eq!(objective(&paper()), 0.0);
}

/// On a link without losses a frame is sent once, and heard or not.
#[test]
fn what_is_expected_where_it_can_be_told_by_hand() {
    let hear = |from_m: f64, to_m: f64, observer_m: f64| {
        let mut places = [(0.0, 0.0); ROUTERS];
        places[0] = (from_m, 0.0);
        places[1] = (to_m, 0.0);
        places[2] = (observer_m, 0.0);
        expect::heard(&places, [0, 1, 2], 90.0)
    };
    assert!((hear(0.0, 0.0, 45.0) - 7.0 / 8.0).abs() < 1e-12);
    assert_eq!((hear(0.0, 0.0, 90.0), hear(0.0, 70.0, 91.0)), (0.0, 0.0));
    // Retransmitted packets are heard more often.
    assert!(hear(0.0, 70.0, 45.0) > 7.0 / 8.0);
    assert!((expect::joined(&[0.5], 4.0) - 0.5_f64.powi(4)).abs() < 1e-12);
    assert!((expect::alone(&[0.5, 0.5], 1.0) - 0.75).abs() < 1e-12);
    assert!(expect::joined(&[0.7, 0.7], 6.0) > expect::alone(&[0.7, 0.7], 6.0));
    assert!((expect::joined(&[1.0, 0.2], 6.0) - 1.0).abs() < 1e-12);
}

#[test]
fn rows_have_the_figures_in_their_order() {
    let after_them = COLUMNS.len() - 1;
    assert_eq!(COLUMNS[after_them - FIGURES.len()..after_them], FIGURES);
}

#[test]
fn a_draw_is_the_same_again_and_turns_better_it() {
    let ground = Ground::new();
    let spots = |turns| (1..=6).map(|seed| search(&ground, seed, turns)).collect::<Vec<_>>();
    let (drawn, better, again) = (spots(0), spots(30), spots(30));
    assert!(better.iter().zip(&again).all(|(one, other)| one.places == other.places));
    assert_ne!(drawn[0].places, drawn[1].places);
    assert!(better.iter().all(|it| ground.all_stand(&it.places)));
    assert!(better.iter().zip(&drawn).any(|(turned, drawn)| turned.objective < drawn.objective));
}
