//! How links change during a run: routers move, and links are cut.
//!
//! *Who calls it:* `build.rs` makes it from keys; the world acts on it (`world/motion.rs`).

use std::fmt;
use std::time::Duration;

use radio::propagation::Field;
use radio::waypoint::Walks;
use radio::{Link, Links, LossScope};

use super::choice::Choice;
use super::key::{Layout, Settings};
use super::metric::Metric;
use super::signals::{Signals, distance_m};
use super::tree::{self, Tree};

/// Latest time of a cut: one day.
const CUT_S_MAX: f64 = 86_400.0;
/// Largest number of cuts; each change of a link searches all of them.
const CUTS_MAX: usize = 1_000;

/// How routers move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mobility {
    None,
    Waypoint,
}

impl Choice for Mobility {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::None, "none"), (Self::Waypoint, "waypoint")];
}

/// The values of the keys about changes.
#[derive(Clone, Debug)]
pub(super) struct Changing {
    pub mobility: Mobility,
    pub movers: Vec<String>,
    pub walk_m: f64,
    pub speed_min_m_s: f64,
    pub speed_max_m_s: f64,
    pub pause_s: f64,
    pub cuts: Vec<CutWish>,
    pub routes_every_s: f64,
}

impl Default for Changing {
    fn default() -> Self {
        Self {
            mobility: Mobility::None,
            movers: Vec::new(),
            walk_m: 0.0,
            speed_min_m_s: 1.0,
            speed_max_m_s: 2.0,
            pause_s: 10.0,
            cuts: Vec::new(),
            routes_every_s: 1.0,
        }
    }
}

/// A cut as written: a router, or the two routers of a link, and the time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CutWish {
    router: String,
    other: Option<String>,
    at_s: f64,
}

impl CutWish {
    /// Parses `ROUTER@SECONDS` or `ROUTER:ROUTER@SECONDS`.
    pub fn read(text: &str) -> Option<Self> {
        let (what, at_s) = text.split_once('@')?;
        let at_s = at_s.parse().ok().filter(|it| (0.0..=CUT_S_MAX).contains(it))?;
        let (router, other) = match what.split_once(':') {
            Some((router, other)) => (router, Some(other.to_owned())),
            None => (what, None),
        };
        let has_names = !router.is_empty() && other.as_deref() != Some("");
        has_names.then(|| Self { router: router.to_owned(), other, at_s })
    }
}

impl fmt::Display for CutWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { router, other, at_s } = self;
        match other {
            Some(other) => write!(f, "{router}:{other}@{at_s}"),
            None => write!(f, "{router}@{at_s}"),
        }
    }
}

/// From a moment on, cuts all links of a router, or the link between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The router whose links are cut.
    pub router: usize,
    /// If given, only the link with this router is cut.
    pub other: Option<usize>,
    /// The time since the beginning of the run.
    pub at: Duration,
}

impl Cut {
    /// Whether it cuts the link between these two.
    pub fn is_between(&self, a: usize, b: usize) -> bool {
        match self.other {
            None => self.router == a || self.router == b,
            Some(other) => [(a, b), (b, a)].contains(&(self.router, other)),
        }
    }
}

/// How routes are found after links have changed.
#[derive(Clone, Debug)]
pub(super) enum Ways {
    /// Over these hops, as far as their links still exist.
    Given(Vec<(usize, usize)>),
    /// By the shortest path to the gateway.
    Shortest { gateway: usize },
}

/// How links change during a run.
#[derive(Clone, Debug)]
pub struct Changes {
    /// How routers walk.
    pub walks: Walks,
    /// The routers that move.
    pub movers: Vec<usize>,
    /// Cuts in the order of time.
    pub cuts: Vec<Cut>,
    /// How often routes are computed again.
    pub routes_every: Duration,
    /// The metric of routes that are not fixed.
    pub metric: Metric,
    /// Which frames are lost.
    pub scope: LossScope,
    places_m: Vec<(f64, f64)>,
    signals: Signals,
    ways: Ways,
}

impl Changes {
    /// Changes without moving routers or cuts.
    pub(super) fn new(
        settings: &Settings,
        layout: Layout,
        places_m: Vec<(f64, f64)>,
        signals: &Signals,
        ways: Ways,
    ) -> Result<Self, String> {
        let keys = &settings.changing;
        let (slowest, fastest) = (keys.speed_min_m_s, keys.speed_max_m_s);
        let moves = keys.mobility == Mobility::Waypoint;
        if moves && slowest > fastest {
            return Err(format!(
                "`speed_min_m_s` is {slowest}, above `speed_max_m_s`, {fastest}: lower it"
            ));
        }
        if moves && matches!(ways, Ways::Given(_)) {
            return Err(
                "`mobility` changes the routes, and `routes` gives them: leave one out".to_owned()
            );
        }
        // Random places come with a square; fixed places do not.
        let side_m = match (keys.walk_m, layout) {
            (0.0, Layout::Random) => settings.area_m,
            (0.0, _) if moves => {
                return Err(
                    "`mobility` needs a square to walk on where routers are placed: say its \
                            side, `walk_m`"
                        .to_owned(),
                );
            }
            (side_m, _) => side_m,
        };
        Ok(Self {
            walks: Walks {
                area_m: (side_m, side_m),
                speed_mps: slowest..=fastest,
                rest: Duration::from_secs_f64(keys.pause_s),
            },
            movers: Vec::new(),
            cuts: Vec::new(),
            routes_every: Duration::from_secs_f64(keys.routes_every_s),
            metric: settings.metric,
            scope: settings.loss_scope(),
            places_m,
            signals: signals.clone(),
            ways,
        })
    }

    /// Adds the moving routers and the cuts. `None` if there are neither.
    pub(super) fn who(
        mut self,
        keys: &Changing,
        gateway: usize,
        find: impl Fn(&str) -> Result<usize, String>,
    ) -> Result<Option<Self>, String> {
        for name in &keys.movers {
            let mover = find(name).map_err(|text| format!("`movers` names an {text}"))?;
            if self.movers.contains(&mover) {
                return Err(format!("`movers` names router {name} twice"));
            }
            self.movers.push(mover);
        }
        match keys.mobility {
            Mobility::None if !self.movers.is_empty() => {
                return Err("`movers` do not move: set `mobility`, or leave them out".to_owned());
            }
            // The gateway stays where its uplink is, unless `movers` names it.
            Mobility::Waypoint if self.movers.is_empty() => {
                self.movers = (0..self.places_m.len()).filter(|it| *it != gateway).collect();
            }
            Mobility::None | Mobility::Waypoint => {}
        }
        if keys.cuts.len() > CUTS_MAX {
            return Err(format!("`cuts` has more than {CUTS_MAX}: take fewer"));
        }
        for wish in &keys.cuts {
            self.cuts.push(cut(wish, &find)?);
        }
        self.cuts.sort_by_key(|cut| cut.at);
        let changes = !self.movers.is_empty() || !self.cuts.is_empty();
        Ok(changes.then_some(self))
    }

    /// The places of all routers at the beginning.
    pub(crate) fn field(&self) -> Field {
        Field::new(self.signals.propagation().clone(), &self.places_m)
    }

    /// The loss of a link of this length.
    pub(crate) fn loss(&self, m: f64) -> f64 {
        self.signals.loss(m)
    }

    /// The link between two places, including what it loses of overheard frames.
    pub(crate) fn overheard(&self, link: Link, from_m: (f64, f64), to_m: (f64, f64)) -> Link {
        self.signals.overheard(link, distance_m(from_m, to_m))
    }

    /// The hops of routes over these links, each once, from a router to the next towards the gateway.
    pub(crate) fn hops(&self, links: &Links) -> Vec<(usize, usize)> {
        match &self.ways {
            Ways::Given(hops) => {
                let is_there = |hop: &&(usize, usize)| tree::loss(links, hop.0, hop.1).is_some();
                hops.iter().filter(is_there).copied().collect()
            }
            Ways::Shortest { gateway } => {
                Tree::shortest(links, self.scope, *gateway, self.metric).hops()
            }
        }
    }
}

fn cut(wish: &CutWish, find: impl Fn(&str) -> Result<usize, String>) -> Result<Cut, String> {
    let find = |name: &str| find(name).map_err(|text| format!("`cuts` names an {text}"));
    let router = find(&wish.router)?;
    let other = wish.other.as_deref().map(find).transpose()?;
    if other == Some(router) {
        return Err(format!("`cuts` has {wish}, and a router has no link with itself"));
    }
    Ok(Cut { router, other, at: Duration::from_secs_f64(wish.at_s) })
}
