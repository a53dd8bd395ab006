//! A plan as JSON.

use plan::{Method, Plan};
use report::provenance::Provenance;
use serde::Serialize;

use super::{Given, words};

/// Name of the schema of this JSON.
const SCHEMA: &str = "hearsay/interlay/1";

#[derive(Serialize)]
struct Document<'a> {
    /// Where the matrix is from: file, model or simulate.
    matrix: &'static str,
    /// How areas were found: exact or two-hop.
    method: &'static str,
    /// The least capacity: with an area for each link, then after each step.
    least_capacity: &'a [f64],
    /// The names of the interlay nodes.
    interlay: Vec<&'a str>,
    /// The links of each area.
    areas: Vec<Vec<[&'a str; 2]>>,
    /// What is less than 1 in the matrix.
    interference: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    link: [&'a str; 2],
    with: [&'a str; 2],
    passes: f64,
}

/// The JSON of a plan and its matrix.
pub fn text(given: &Given, plan: &Plan, provenance: Provenance) -> String {
    let mesh = &given.mesh;
    let link = |at: usize| {
        let (a, b) = mesh.links()[at];
        [a, b].map(|it| mesh.names()[it].as_str())
    };
    let all = 0..mesh.links().len();
    let pairs = all.clone().flat_map(|one| all.clone().map(move |with| (one, with)));
    let entry = |(one, with): (usize, usize)| {
        let passes = given.matrix.get(one, with);
        (passes < 1.0).then(|| Entry { link: link(one), with: link(with), passes })
    };
    let document = Document {
        matrix: given.source,
        method: match plan.method {
            Method::Exact => "exact",
            Method::TwoHop { .. } => "two-hop",
        },
        least_capacity: &plan.least,
        interlay: words::nodes(given, plan).collect(),
        areas: plan.areas.iter().map(|area| area.iter().copied().map(link).collect()).collect(),
        interference: pairs.filter_map(entry).collect(),
    };
    let text = serde_json::to_string_pretty(&provenance.on(SCHEMA, document));
    text.expect("numbers and texts have a JSON form") + "\n"
}
