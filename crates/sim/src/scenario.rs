//! A scenario: routers, who hears whom, the uplink, and what clients request.
//!
//! *What this is:* [`Scenario`], read from TOML and valid once it is read. *Who calls it:* the simulator and
//! the lab; one file drives both. *What it never does:* draw random numbers, except from a given seed; or
//! read any file but the user's own. *Where to start:* [`Scenario::load`], then `scenarios/chain.toml`, then
//! `scenario/key.rs`, which lists every key.

use std::collections::BTreeMap;

use radio::Links;
use report::provenance::Setting;
use wire::{Paper, Scheme};

use crate::net::tcp;

mod build;
mod changes;
mod choice;
mod clients;
mod file;
mod flows;
mod intercepts;
mod key;
mod keys;
mod metric;
mod paper;
mod plane;
mod problem;
mod random;
mod signals;
#[cfg(test)]
mod tests;
mod traffic;
mod transport;
mod tree;
mod uplink;
mod variant;
mod workload;

pub use crate::seeds::seed;
pub use changes::{Changes, Cut};
use choice::Choice;
pub use clients::{Browsing, Reader};
use file::{File, Source};
pub use flows::{FlowKind, ListedFlow};
pub use intercepts::Intercepts;
pub(crate) use metric::HOP;
pub use metric::Metric;
pub use plane::Plane;
pub use problem::ScenarioError;
use problem::{advice, quote};
pub use traffic::{Load, Traffic};
use tree::Tree;
pub use uplink::{FarEnd, Http, Uplink};
pub use variant::{Cancel, Halves, Heads, Streams, Units, Variant};
pub use workload::{Order, Request, Workload};

/// The scenarios that are part of the program.
const BUILT_IN: [(&str, &str); 13] = [
    ("chain", include_str!("../../../scenarios/chain.toml")),
    ("emulab8", include_str!("../../../scenarios/emulab8.toml")),
    ("map21", include_str!("../../../scenarios/map21.toml")),
    ("bulk", include_str!("../../../scenarios/bulk.toml")),
    ("mesh50", include_str!("../../../scenarios/mesh50.toml")),
    ("meshcache-s1", include_str!("../../../scenarios/meshcache-s1.toml")),
    ("meshcache-s2", include_str!("../../../scenarios/meshcache-s2.toml")),
    ("meshcache-s3", include_str!("../../../scenarios/meshcache-s3.toml")),
    ("uplink", include_str!("../../../scenarios/uplink.toml")),
    ("ring8", include_str!("../../../scenarios/ring8.toml")),
    ("wine-chain", include_str!("../../../scenarios/wine-chain.toml")),
    ("wine-cross", include_str!("../../../scenarios/wine-cross.toml")),
    ("inpcm-grid", include_str!("../../../scenarios/inpcm-grid.toml")),
];

/// A mesh, its uplink, and what its clients do.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name of a built-in scenario, else the file's name without its ending.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// The stations' rates and queues.
    pub radio: radio::Config,
    /// Which stations hear each other. A station's number is its router's index in `routers`.
    pub links: Links,
    /// The farthest distance at which frames can be received, in metres.
    pub range_m: f64,
    /// The probability that a station loses a packet above its MAC
    /// ([`AboveMac`](crate::losses::AboveMac)).
    pub loss_above_mac: f64,
    /// All routers, in the order of the file.
    pub routers: Vec<Router>,
    /// The router with the uplink.
    pub gateway: usize,
    /// Routers whose clients request files, in order, none twice; the gateway only if it has clients of its own.
    /// If flows are listed, the routers that receive some.
    pub receivers: Vec<usize>,
    /// How links change during a run, if they do.
    pub changes: Option<Changes>,
    /// Where the lab's routers get their routes from.
    pub routing: Routing,
    /// The congestion control of the lab's machines.
    pub congestion: Congestion,
    /// Settings in which routers differ from the daemon's defaults.
    pub variant: Variant,
    /// Routers that lie off the way to the gateway, in order.
    pub liars: Vec<usize>,
    /// The engines under IP.
    pub plane: Plane,
    /// The link between the gateway and the origin, or the far end before it.
    pub uplink: Uplink,
    /// What stands at that link's outer end.
    pub far: FarEnd,
    /// By which published scheme content crosses the pair; `None`: by its history.
    pub published: Option<node::uplink::Published>,
    /// What becomes of intercepted HTTP.
    pub http: Http,
    /// The kind of traffic.
    pub traffic: Traffic,
    /// What clients request, if the traffic is files.
    pub workload: Workload,
    /// The share of each file's pieces of 64 bytes that differ from the file before.
    pub changed: f64,
    /// The flows, if the traffic is flows that last until the run ends.
    pub load: Load,
    /// The flows between routers, if they are listed one by one.
    pub flows: Vec<ListedFlow>,
    /// What clients do, if they read pages.
    pub browsing: Browsing,
    /// TCP settings of the simulator's machines.
    pub tcp: tcp::Config,
    /// Every key that applies, with its current value, for reports.
    pub keys: Vec<Key>,
    /// The metric of routes that the scenario does not fix.
    pub metric: Metric,
    tree: Tree,
}

/// A node of the mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Router {
    /// At most 16 letters, digits, `-` and `_`.
    pub name: String,
    /// Where it stands, in metres.
    pub x_m: f64,
    /// Where it stands, in metres.
    pub y_m: f64,
}

/// What decides on routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// The scenario: routes are fixed.
    Static,
    /// babeld, during the run.
    Babel,
}

/// An algorithm of Linux's TCP for congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Reno, like the papers and the simulator. Every kernel has it and permits it to all users.
    Reno,
    /// Cubic, Linux's default.
    Cubic,
    /// BBR, which sends at the rate that it has measured, by timers.
    Bbr,
}

/// A key of scenarios, and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name as it is written, with its unit.
    pub name: &'static str,
    /// The value as [`Scenario::load`] takes it.
    pub value: String,
    /// What it means.
    pub meaning: &'static str,
}

impl Choice for Routing {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Static, "static"), (Self::Babel, "babel")];
}

impl Choice for Congestion {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::Reno, "reno"), (Self::Cubic, "cubic"), (Self::Bbr, "bbr")];
}

impl Congestion {
    /// The name that Linux uses.
    pub fn name(self) -> &'static str {
        self.word()
    }
}

impl Scenario {
    /// Loads the built-in scenario of this name, or the scenario in this file (a name with a `/`, or that
    /// ends in `.toml`), and changes keys as `settings` says. The last setting of a key counts.
    ///
    /// A setting's value is read as TOML if it is valid TOML, else as a string.
    ///
    /// Routers at random places are placed by seed 1.
    pub fn load(name_or_path: &str, settings: &[(String, String)]) -> Result<Self, ScenarioError> {
        Self::load_seeded(name_or_path, settings, 1)
    }

    /// Like [`Self::load`], with random places drawn by this seed.
    pub fn load_seeded(
        name_or_path: &str,
        settings: &[(String, String)],
        seed: u64,
    ) -> Result<Self, ScenarioError> {
        if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            let path = std::path::Path::new(name_or_path);
            let refuse =
                |why: &str| ScenarioError::one(name_or_path, &format!("cannot be read: {why}"));
            // The file is read more than once, which a pipe does not allow.
            if std::fs::metadata(path).is_ok_and(|it| !it.is_file()) {
                return Err(refuse("it is not a regular file"));
            }
            let text = std::fs::read_to_string(path).map_err(|error| refuse(&error.to_string()))?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            return from_text(&name, Source { name: name_or_path, text: &text }, settings, seed);
        }
        let text = built_in(name_or_path)?;
        let source = Source { name: &format!("{name_or_path}.toml"), text };
        from_text(name_or_path, source, settings, seed)
    }

    /// Loads a built-in scenario with these routers in place of its own.
    pub fn load_placed(
        name: &str,
        settings: &[(String, String)],
        routers: Vec<Router>,
    ) -> Result<Self, ScenarioError> {
        let source = Source { name: &format!("{name}.toml"), text: built_in(name)? };
        let file = File { routers, ..file::read(source)? };
        from_file(name, source.name, file, settings, 1)
    }

    /// The scheme of a run: the one asked for, else the paper's whose variant the routers are, else that of routers
    /// that are told nothing else.
    pub fn scheme(&self, asked: Option<Scheme>) -> Result<Scheme, ScenarioError> {
        let theirs = self.variant.paper.and_then(Paper::scheme);
        match (asked, theirs) {
            (Some(asked), Some(theirs)) if asked != theirs => {
                let paper = self.key("paper");
                let text =
                    format!("`paper` is \"{paper}\", whose scheme is \"{theirs}\": leave it out");
                Err(ScenarioError::one(&format!("--scheme {asked}"), &text))
            }
            _ => Ok(asked.or(theirs).unwrap_or(Scheme::Auto)),
        }
    }

    /// A key's current value; empty if the key does not apply.
    pub fn key(&self, name: &str) -> &str {
        self.keys.iter().find(|key| key.name == name).map_or("", |key| &key.value)
    }

    /// Every key that applies, with its current value.
    pub fn values(&self) -> BTreeMap<String, String> {
        self.keys.iter().map(|key| (key.name.to_owned(), key.value.clone())).collect()
    }

    /// The scenario's name, scheme and values, for provenance.
    pub fn setting(&self, scheme: Option<Scheme>) -> Setting {
        let scheme = scheme.map(|it| it.name().to_owned());
        Setting { scenario: self.name.clone(), scheme, keys: self.values() }
    }

    /// The names of the built-in scenarios, always in the same order.
    pub fn built_in() -> impl Iterator<Item = &'static str> + Clone {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The static route to a router, from the gateway to the router; empty if it has none.
    pub fn path(&self, to: usize) -> Vec<usize> {
        self.tree.path(to)
    }

    /// All hops of the static routes, each once, from a router to the next towards the gateway.
    pub fn tree_hops(&self) -> Vec<(usize, usize)> {
        self.tree.hops()
    }

    /// Number of hops of the static route to a router; 0 for the gateway, and without a route.
    pub fn hops(&self, router: usize) -> usize {
        self.path(router).len().saturating_sub(1)
    }

    /// All requests in the order in which they begin; the same for the same seed.
    pub fn requests(&self, seed: u64) -> Vec<Request> {
        self.workload.requests(&self.receivers, seed)
    }
}

/// The text of the built-in scenario of this name.
fn built_in(name: &str) -> Result<&'static str, ScenarioError> {
    let found = BUILT_IN.iter().find(|(it, _)| *it == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let text = format!(
            "unknown scenario: {} (a file of yours needs a path, like ./mine.toml)",
            advice(name, Scenario::built_in())
        );
        ScenarioError::one(&quote(name), &text)
    })
}

fn from_text(
    name: &str,
    source: Source<'_>,
    settings: &[(String, String)],
    seed: u64,
) -> Result<Scenario, ScenarioError> {
    from_file(name, source.name, file::read(source)?, settings, seed)
}

fn from_file(
    name: &str,
    place: &str,
    mut file: File,
    settings: &[(String, String)],
    seed: u64,
) -> Result<Scenario, ScenarioError> {
    let mut wrong = ScenarioError::default();
    let mut settings: Vec<_> = settings.iter().collect();
    settings.sort_by_key(|(key, _)| file::rank(key));
    for (key, value) in settings {
        let outcome = file::set(&mut file, key, value);
        wrong.lines.extend(outcome.err().into_iter().flat_map(|it| it.lines));
    }
    wrong.unless(())?;
    build::build(name, place, file, seed)
}
