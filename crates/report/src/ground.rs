//! The mesh that runs took place on, for the map.

/// The mesh of a scenario and its keys, which all runs have in common.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ground {
    /// What the scenario shows, in one or two sentences; may be empty.
    pub description: String,
    /// All routers. Other fields refer to a router by its index here.
    pub routers: Vec<Place>,
    /// The router that has the uplink.
    pub gateway: usize,
    /// Which routers hear each other. If both directions are given, the worse one counts.
    pub links: Vec<Line>,
    /// The hops that traffic takes to and from the gateway.
    pub routes: Vec<Line>,
    /// The radio range in metres; 0 if it has no limit.
    pub range_m: f64,
    /// The keys of the scenario: name, value and meaning.
    pub keys: Vec<(String, String, String)>,
}

/// The place of a router.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The name of the router. Receivers are found by it.
    pub name: String,
    /// The distance to the east, in metres.
    pub x_m: f64,
    /// The distance to the north, in metres.
    pub y_m: f64,
}

/// A link or a hop between two routers.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The index of a router.
    pub from: usize,
    /// The index of another router.
    pub to: usize,
    /// The share of frames that are lost, from 0 to 1.
    pub loss: f64,
}
