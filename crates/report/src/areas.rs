//! The links of a mesh in areas, each in its colour, and the routers between areas.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::legend::{self, Entry, Room};
use crate::map::{self, Frame, Screen};
use crate::picture::{self, px};
use crate::{Ground, Line, text};

const EDGE: f64 = 8.0;
/// The width of a mark in the legend.
const MARK: f64 = 18.0;
const MARK_RADIUS: f64 = 5.5;

/// The picture as a file of its own: the routers of the ground, links with the numbers of their areas, and the
/// interlay nodes, filled. The ground's own links and routes are not drawn.
pub fn svg(ground: &Ground, links: &[(Line, usize)], nodes: &BTreeSet<usize>) -> String {
    let lines = links.iter().map(|(line, _)| line.clone()).collect();
    let ground = Ground { links: lines, routes: Vec::new(), ..ground.clone() };
    let frame = Frame::over(&ground, Screen::Any);
    let room = Room { left: EDGE, top: frame.height, width: frame.width - 2.0 * EDGE };
    let (legend, legend_height) = legend::legend(&entries(), room);
    let exists = |line: &Line| line.from != line.to && line.from.max(line.to) < frame.dots.len();
    let body = html! {
        @for (line, area) in links.iter().filter(|(line, _)| exists(line)) {
            path class={ "area " (picture::stroke(*area)) } stroke-dasharray=[picture::dashes(*area)]
                d=(frame.path(line.from, line.to)) {
                title { "area " (area + 1) }
            }
        }
        @for (at, place) in ground.routers.iter().enumerate() {
            @let (x, y) = frame.dots[at];
            circle class=(class(nodes.contains(&at))) cx=(px(x)) cy=(px(y)) r=(px(frame.radius)) {
                title { (text::clean(&place.name)) @if nodes.contains(&at) { ", interlay node" } }
            }
        }
        (map::names(&ground, &frame, &Default::default()))
        (legend)
    };
    picture::svg(frame.width, frame.height + legend_height + EDGE, "Areas of the mesh", &body)
}

fn class(is_node: bool) -> &'static str {
    if is_node { "interlay" } else { "dot" }
}

fn entries() -> Vec<Entry> {
    let entry = |mark, meaning: &str| Entry { mark, width: MARK, meaning: meaning.to_owned() };
    let dot = |is_node| -> Markup {
        html! { circle class=(class(is_node)) cx=(px(MARK / 2.0)) cy="0" r=(px(MARK_RADIUS)) {} }
    };
    let line = html! { path class={ "area " (picture::stroke(0)) } d=(format!("M0 0H{MARK}")) {} };
    vec![
        entry(dot(true), "interlay node"),
        entry(dot(false), "router"),
        entry(line, "links of one area have one colour"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    fn chain(routers: usize) -> Ground {
        let place = |at: usize| Place { name: format!("r{at}"), x_m: 240.0 * at as f64, y_m: 0.0 };
        Ground { routers: (0..routers).map(place).collect(), ..Ground::default() }
    }

    #[test]
    fn areas_and_nodes_are_told_apart() {
        let line = |from, area| (Line { from, to: from + 1, loss: 0.0 }, area);
        let links = [line(0, 0), line(1, 0), line(2, 1)];
        let svg = svg(&chain(4), &links, &BTreeSet::from([0, 2, 3]));
        assert_eq!(svg.matches("area c0\"").count(), 3, "two links and the legend's");
        assert_eq!(svg.matches("area c1\"").count(), 1);
        assert_eq!(svg.matches("class=\"interlay\"").count(), 4);
        assert_eq!(svg.matches("class=\"dot\"").count(), 2);
        assert!(svg.contains("r2, interlay node") && svg.contains(">r1<"));
    }

    #[test]
    fn links_without_two_routers_are_left_out() {
        let line = |from, to| (Line { from, to, loss: 0.0 }, 7);
        let svg = svg(&chain(2), &[line(0, 9), line(1, 1)], &BTreeSet::from([5]));
        assert!(!svg.contains("area c7"));
        assert!(super::svg(&Ground::default(), &[], &BTreeSet::new()).contains("<svg"));
    }
}
