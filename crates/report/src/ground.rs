//! A mesh, as the map shows it.

/// What the runs have in common: the scenario's mesh and its keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ground {
    /// What the scenario is about, in a sentence or two; may be empty.
    pub description: String,
    /// All routers; the other fields name them by their index here.
    pub routers: Vec<Place>,
    /// Which router has the uplink.
    pub gateway: usize,
    /// Who hears whom. Told in both directions, the worse one counts.
    pub links: Vec<Line>,
    /// The hops that traffic takes to and from the gateway.
    pub routes: Vec<Line>,
    /// How far frames are received, in metres; 0 if there is no such limit.
    pub range_m: f64,
    /// The scenario's keys: name, value, meaning.
    pub keys: Vec<(String, String, String)>,
}

/// Where a router stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Receivers are known by it.
    pub name: String,
    /// Towards the east, in metres.
    pub x_m: f64,
    /// Towards the north, in metres.
    pub y_m: f64,
}

/// A link or a hop between two routers.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Index of a router.
    pub from: usize,
    /// Index of another.
    pub to: usize,
    /// The share of frames that are lost, from 0 to 1.
    pub loss: f64,
}
