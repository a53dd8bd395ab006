//! A plan as text.

use std::fmt::Write as _;

use plan::{LOCAL_LINKS_MAX, Method, Plan};

use super::Given;
use crate::console::count;

/// The plan: where the matrix is from, how areas were found, what they bring, and the line for a configuration.
pub fn page(given: &Given, plan: &Plan) -> String {
    let mesh = &given.mesh;
    let mut page = String::new();
    let matrix = match given.source {
        "file" => "read from the file",
        "simulate" => "simulated pair by pair",
        _ => "by the two-flow model",
    };
    let links = count(mesh.links().len(), "link");
    let routers = count(mesh.names().len(), "router");
    let rows = [
        ("mesh", format!("{routers}, {links}")),
        ("matrix", matrix.to_owned()),
        ("method", method(given, plan)),
        ("least capacity", least(plan)),
    ];
    for (name, text) in rows {
        let _ = writeln!(page, "{name:<15} {text}");
    }
    for (at, area) in plan.areas.iter().enumerate() {
        let links: Vec<_> = area.iter().map(|link| mesh.shown(*link)).collect();
        let _ = writeln!(page, "{:<15} {}", format!("area {}", at + 1), links.join(" "));
    }
    let names: Vec<_> = nodes(given, plan).map(|name| format!("\"{name}\"")).collect();
    let _ = writeln!(page, "\ninterlay = [{}]", names.join(", "));
    if plan.nodes.is_empty() {
        page += "no router is between areas, or has one link only: nothing is paced\n";
    }
    page
}

/// The names of the interlay nodes.
pub fn nodes<'a>(given: &'a Given, plan: &'a Plan) -> impl Iterator<Item = &'a str> {
    plan.nodes.iter().map(|node| given.mesh.names()[*node].as_str())
}

fn method(given: &Given, plan: &Plan) -> String {
    match plan.method {
        Method::Exact => {
            "algorithm 1, with all subsets of links within interference range".to_owned()
        }
        Method::TwoHop { link, local } => format!(
            "the two-hop heuristic, which does not use the matrix: {local} links are within interference range of \
             {}, and algorithm 1 tries the subsets of at most {LOCAL_LINKS_MAX}",
            given.mesh.shown(link)
        ),
    }
}

fn least(plan: &Plan) -> String {
    let [first, last] =
        [plan.least.first(), plan.least.last()].map(|it| shown(*it.expect("at least one")));
    let steps = count(plan.least.len() - 1, "step");
    match plan.method {
        _ if plan.least.len() == 1 => format!("{first}, with an area for each link"),
        Method::Exact => {
            format!("{first} with an area for each link, {last} with these, after {steps}")
        }
        Method::TwoHop { .. } => format!("{first} with an area for each link, {last} with these"),
    }
}

/// Three digits; the capacity of a link among hundreds is very small.
fn shown(capacity: f64) -> String {
    match capacity {
        it if it == 0.0 || it >= 0.001 => format!("{it:.3}"),
        it => format!("{it:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_capacities_keep_their_digits() {
        let texts = [0.0, 0.5, 0.001, 0.000_123_4].map(shown);
        assert_eq!(texts, ["0.000", "0.500", "0.001", "1.23e-4"]);
    }
}
