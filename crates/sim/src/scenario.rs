//! What a run takes place in: routers, who hears whom, the uplink, and what is asked for.
//!
//! *What this is:* [`Scenario`], read from TOML, which cannot be wrong any more. *Who calls it:* the
//! simulator and the lab; one file drives both. *What it never does:* draw by chance, except in
//! [`Scenario::requests`] from a seed that is given; or read anything but the user's own file.
//! *Where to start:* [`Scenario::load`], then `scenarios/chain.toml`, then `scenario/key.rs`, which
//! lists every key.

use std::collections::BTreeMap;
use std::time::Duration;

use radio::Links;
use report::provenance::Setting;
use wire::{Paper, Scheme};

use crate::net::tcp;

mod build;
mod changes;
mod choice;
mod clients;
mod file;
mod key;
mod keys;
mod metric;
mod problem;
mod random;
mod signals;
#[cfg(test)]
mod tests;
mod traffic;
mod tree;
mod variant;
mod workload;

pub use changes::{Changes, Cut};
use choice::Choice;
pub use clients::{Browsing, Reader};
use file::{File, Source};
pub(crate) use metric::HOP;
pub use metric::Metric;
pub use problem::ScenarioError;
use problem::{advice, quote};
pub use random::seed;
pub use traffic::{Load, Traffic};
use tree::Tree;
pub use variant::{Cancel, Halves, Heads, Streams, Units, Variant};
pub use workload::{Order, Request, Workload};

/// Those that are there wherever the program is.
const BUILT_IN: [(&str, &str); 8] = [
    ("chain", include_str!("../../../scenarios/chain.toml")),
    ("emulab8", include_str!("../../../scenarios/emulab8.toml")),
    ("map21", include_str!("../../../scenarios/map21.toml")),
    ("bulk", include_str!("../../../scenarios/bulk.toml")),
    ("mesh50", include_str!("../../../scenarios/mesh50.toml")),
    ("meshcache-s1", include_str!("../../../scenarios/meshcache-s1.toml")),
    ("meshcache-s2", include_str!("../../../scenarios/meshcache-s2.toml")),
    ("meshcache-s3", include_str!("../../../scenarios/meshcache-s3.toml")),
];

/// A mesh, its uplink, and what its clients do.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Of a built-in one its name, else that of the file without its ending.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// The stations' rates and queues.
    pub radio: radio::Config,
    /// Who hears whom; a station's number is its router's place in `routers`.
    pub links: Links,
    /// Frames can be received up to here, in metres.
    pub range_m: f64,
    /// In the order of the file.
    pub routers: Vec<Router>,
    /// Which of the routers has the uplink.
    pub gateway: usize,
    /// Routers whose clients ask for files, in their order; never the gateway, none twice.
    pub receivers: Vec<usize>,
    /// How links change while it runs, if they do.
    pub changes: Option<Changes>,
    /// Where the lab's routers get their routes from.
    pub routing: Routing,
    /// How TCP of the lab's machines avoids congestion.
    pub congestion: Congestion,
    /// What routers do otherwise than by default.
    pub variant: Variant,
    /// Between the gateway and the origin.
    pub uplink: Uplink,
    /// What moves through the mesh.
    pub traffic: Traffic,
    /// What the clients do, where they ask for files.
    pub workload: Workload,
    /// How much there is of traffic that goes on until the time is over.
    pub load: Load,
    /// What clients do that read pages.
    pub browsing: Browsing,
    /// The machines' TCP, where the simulator is their stack.
    pub tcp: tcp::Config,
    /// Every key that applies, with its value now, for reports.
    pub keys: Vec<Key>,
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

/// Who decides on routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// The scenario, once and for all.
    Static,
    /// babeld, while it runs.
    Babel,
}

/// An algorithm of Linux, by which TCP avoids congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// As the papers' and the simulator's; each kernel has it, and allows it to everybody.
    Reno,
    /// What Linux takes unless told otherwise.
    Cubic,
    /// Sends by timers, at the rate that it has measured.
    Bbr,
}

/// A wire with the same rate and delay both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uplink {
    /// Rate each way.
    pub bits_per_second: u64,
    /// Delay one way.
    pub delay: Duration,
}

/// What may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// As it is written, with its unit.
    pub name: &'static str,
    /// As [`Scenario::load`] takes it.
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
    /// As Linux calls it.
    pub fn name(self) -> &'static str {
        self.word()
    }
}

impl Scenario {
    /// The built-in scenario of this name, or the one in this file (whatever has a `/` or ends in
    /// `.toml`), with keys changed as `settings` says; of two settings of a key the last counts.
    ///
    /// A setting's value is read as TOML if it is TOML, else as a text.
    ///
    /// Where routers stand at random, they stand as seed 1 says.
    pub fn load(name_or_path: &str, settings: &[(String, String)]) -> Result<Self, ScenarioError> {
        Self::load_seeded(name_or_path, settings, 1)
    }

    /// The same, with places of routers by this seed, if they stand at random.
    pub fn load_seeded(
        name_or_path: &str,
        settings: &[(String, String)],
        seed: u64,
    ) -> Result<Self, ScenarioError> {
        if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            let path = std::path::Path::new(name_or_path);
            let refuse =
                |why: &str| ScenarioError::one(name_or_path, &format!("cannot be read: {why}"));
            // It is read more than once, which a pipe cannot be.
            if std::fs::metadata(path).is_ok_and(|it| !it.is_file()) {
                return Err(refuse("it is no regular file"));
            }
            let text = std::fs::read_to_string(path).map_err(|error| refuse(&error.to_string()))?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            return from_text(&name, Source { name: name_or_path, text: &text }, settings, seed);
        }
        let text = built_in(name_or_path)?;
        let source = Source { name: &format!("{name_or_path}.toml"), text };
        from_text(name_or_path, source, settings, seed)
    }

    /// The built-in scenario of this name with these routers in place of its own.
    pub fn load_placed(
        name: &str,
        settings: &[(String, String)],
        routers: Vec<Router>,
    ) -> Result<Self, ScenarioError> {
        let source = Source { name: &format!("{name}.toml"), text: built_in(name)? };
        let file = File { routers, ..file::read(source)? };
        from_file(name, source.name, file, settings, 1)
    }

    /// Who intercepts and caches: as asked for, or as the paper has it that routers are of; else the gateway
    /// alone.
    pub fn scheme(&self, asked: Option<Scheme>) -> Result<Scheme, ScenarioError> {
        let theirs = self.variant.paper.map(Paper::scheme);
        match (asked, theirs) {
            (Some(asked), Some(theirs)) if asked != theirs => {
                let paper = self.key("paper");
                let text =
                    format!("`paper` is \"{paper}\", whose scheme is \"{theirs}\": leave it out");
                Err(ScenarioError::one(&format!("--scheme {asked}"), &text))
            }
            _ => Ok(asked.or(theirs).unwrap_or(Scheme::Default)),
        }
    }

    /// A key's value now; empty if it does not apply.
    pub fn key(&self, name: &str) -> &str {
        self.keys.iter().find(|key| key.name == name).map_or("", |key| &key.value)
    }

    /// Every key that applies, and its value now.
    pub fn values(&self) -> BTreeMap<String, String> {
        self.keys.iter().map(|key| (key.name.to_owned(), key.value.clone())).collect()
    }

    /// The same, and what it is of, for those who want to run it again.
    pub fn setting(&self, scheme: Option<Scheme>) -> Setting {
        let scheme = scheme.map(|it| it.name().to_owned());
        Setting { scenario: self.name.clone(), scheme, keys: self.values() }
    }

    /// The names of those that need no file, always in the same order.
    pub fn built_in() -> impl Iterator<Item = &'static str> + Clone {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Where router `from` sends what is for router `to`, along the static routes; `None` if they
    /// are one, or one of them has no route.
    pub fn next_hop(&self, from: usize, to: usize) -> Option<usize> {
        self.tree.next_hop(from, to)
    }

    /// The static route to a router, the gateway first and the router last; empty if it has none.
    pub fn path(&self, to: usize) -> Vec<usize> {
        self.tree.path(to)
    }

    /// All hops of the static routes, each once: from a router to the next towards the gateway.
    pub fn tree_hops(&self) -> Vec<(usize, usize)> {
        self.tree.hops()
    }

    /// How many links the static route to a router has; 0 for the gateway, and without a route.
    pub fn hops(&self, router: usize) -> usize {
        self.path(router).len().saturating_sub(1)
    }

    /// What is asked for, in the order in which the requests begin; the same for the same seed.
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
