//! Maps of ordinary meshes, and of meshes with odd values.

use super::*;
use crate::Place;
use crate::testing::{assert_well_formed, chain};

fn drawn(ground: &Ground, receivers: &[(&str, f64)]) -> String {
    let receiver = |&(name, kbps)| (name, Receiver { kbps, ..Receiver::default() });
    let svg = svg(ground, &receivers.iter().map(receiver).collect());
    assert_well_formed(&svg);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    svg
}

fn grid(routers: usize, spacing_m: f64) -> Ground {
    let place = |at: usize| Place {
        name: format!("r{at}"),
        x_m: (at % 20) as f64 * spacing_m,
        y_m: (at / 20) as f64 * spacing_m,
    };
    Ground { routers: (0..routers).map(place).collect(), ..chain(0) }
}

#[test]
fn a_chain_is_flat_and_wide() {
    let ground = chain(5);
    assert!(is_wide(&ground));
    let frame = Frame::over(&ground, Screen::Any);
    assert!(frame.height < frame.width / 4.0);
    assert_eq!(frame.dots[0].1, frame.dots[4].1);
    assert_eq!(frame.dots[4].0 - frame.dots[0].0, frame.width - 68.0);
    let svg = drawn(&ground, &[("r4", 800.0)]);
    assert_eq!(svg.matches("<circle").count(), 4 + 1, "four dots and the legend's");
}

#[test]
fn a_wide_mesh_is_drawn_for_phones_too() {
    let page = figure("<mesh>", &chain(9), &BTreeMap::new()).into_string();
    assert_well_formed(&page);
    assert!(page.contains("&lt;mesh&gt;"));
    let (wide, phone) = page.split_once("class=\"on-phones\"").unwrap();
    assert!(wide.contains("class=\"on-screens\"") && wide.contains("viewBox=\"0 0 680 "), "{wide}");
    // All routers are there, with their names.
    assert!(phone.contains("viewBox=\"0 0 360 "), "{phone}");
    assert_eq!(phone.matches("class=\"name").count(), 9);
    for dot in Frame::over(&chain(9), Screen::Phone).dots {
        assert!((0.0..=360.0).contains(&dot.0));
    }
    let mut upright = chain(6);
    upright.routers.iter_mut().for_each(|place| (place.x_m, place.y_m) = (0.0, place.x_m));
    assert!(!figure("", &upright, &BTreeMap::new()).into_string().contains("on-phones"));
}

#[test]
fn hits_are_rings() {
    let sources = vec![("local", 1), ("remote", 1), ("origin", 2)];
    let receivers = BTreeMap::from([("r2", Receiver { kbps: 5.0, hit_share: 0.5, sources })]);
    let svg = svg(&chain(3), &receivers);
    assert_well_formed(&svg);
    assert!(svg.contains("stroke-dasharray=\"50 100\""), "{svg}");
    assert!(svg.contains("; local 1; remote 1; origin 2") && svg.contains("share of hits"));
    assert!(!drawn(&chain(3), &[("r2", 5.0)]).contains("share of hits"));
}

#[test]
fn a_link_past_a_third_router_is_an_arc() {
    let frame = Frame::over(&chain(3), Screen::Any);
    assert!(frame.path(0, 1).contains('L'));
    assert!(frame.path(0, 2).contains('Q'));
}

#[test]
fn north_is_up() {
    let mut ground = chain(2);
    ground.routers[1].y_m = 500.0;
    let frame = Frame::over(&ground, Screen::Any);
    assert!(frame.dots[1].1 < frame.dots[0].1);
}

#[test]
fn degenerate_meshes_have_a_picture() {
    assert!(drawn(&chain(0), &[]).contains("no routers"));
    drawn(&chain(1), &[("r0", 1.0)]);
    drawn(&grid(200, 50.0), &[("r7", 10.0), ("r8", 4000.0)]);
    let mut upright = chain(6);
    upright.routers.iter_mut().for_each(|place| (place.x_m, place.y_m) = (0.0, place.x_m));
    assert!(!is_wide(&upright));
    drawn(&upright, &[]);
    let mut lost = chain(3);
    lost.routers[1].x_m = f64::NAN;
    lost.gateway = 9;
    lost.links.push(Line { from: 0, to: 77, loss: f64::NAN });
    lost.links.push(Line { from: 2, to: 0, loss: f64::NAN });
    drawn(&lost, &[]);
}

#[test]
fn routers_in_one_place_have_no_scale() {
    let svg = drawn(&grid(4, 0.0), &[("r0", 5.0), ("r1", 5.0)]);
    assert!(svg.contains("all routers stand in one place"));
}

#[test]
fn names_are_escaped_and_cut() {
    let mut ground = chain(2);
    ground.routers[1].name = "<&\"\u{1}, quite a long name".to_owned();
    let svg = drawn(&ground, &[]);
    assert!(svg.contains("&lt;&amp;&quot;\u{fffd}, quite a l…"), "{svg}");
}

#[test]
fn shades_divide_the_throughputs() {
    let shades = Shades::over([0.0, 40.0, 100.0].into_iter());
    assert_eq!(
        [0.0, 19.0, 20.0, 99.0, 100.0].map(|v| shades.of(v)),
        ["q0", "q0", "q1", "q4", "q4"]
    );
    let equal = Shades::over([7.0, 7.0].into_iter());
    assert_eq!(equal.of(7.0), "q2");
    assert!(Shades::over([].into_iter()).edges.is_empty());
}

#[test]
fn the_worse_direction_decides_a_link() {
    let line = |from, to, loss| Line { from, to, loss };
    let lines = [line(0, 1, 0.25), line(1, 0, 0.5), line(1, 1, 0.0), line(0, 5, 0.0)];
    assert_eq!(pairs(&lines, 2), BTreeMap::from([((0, 1), 0.5)]));
}
