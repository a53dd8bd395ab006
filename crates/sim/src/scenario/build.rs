//! Builds a scenario from a file and settings, and refuses contradictions.

use std::time::Duration;

use radio::Links;

use super::changes::{Changes, Ways};
use super::choice::{Choice as _, mbps, rates};
use super::file::{File, Route};
use super::flows::{self, ListedFlow};
use super::key::{Layout, Settings};
use super::problem::{ScenarioError, advice, quote};
use super::signals::Signals;
use super::tree::{self, Tree};
use super::{
    Browsing, Load, Request, Router, Scenario, Traffic, Uplink, Workload, random, uplink as wired,
};

/// Largest number of flows; each takes a port of its own.
const FLOWS_MAX: u64 = 10_000;

/// Largest number of requests; a run with more would take too long.
const REQUESTS_MAX: usize = 100_000;

/// Largest total size of the origin's files, in bytes: the lab keeps them in memory.
const CONTENT_BYTES_MAX: u64 = 1_000_000_000;

/// Rate of a UDP flow if none is given, as a share of the bit rate: more than one hop can carry. At 11 Mbit/s
/// it is 8 Mbit/s, as in the studies with ns-3.
const OFFERED_SHARE: f64 = 8.0 / 11.0;
const OFFERED_MBPS_MIN: f64 = 8.0;

/// The scenario that a file and settings describe. `place` is the file's name; `seed` places routers that
/// stand at random.
pub(super) fn build(
    name: &str,
    place: &str,
    file: File,
    seed: u64,
) -> Result<Scenario, ScenarioError> {
    Builder::new(place, file, seed)?.scenario(name)
}

struct Builder<'a> {
    /// The file's name.
    place: &'a str,
    file: File,
    seed: u64,
    routers: Vec<Router>,
    gateway: usize,
    signals: Signals,
    links: Links,
}

impl<'a> Builder<'a> {
    fn new(place: &'a str, mut file: File, seed: u64) -> Result<Self, ScenarioError> {
        check_rates(place, &file.settings)?;
        file.settings.check_paper().map_err(|text| ScenarioError::one(place, &text))?;
        let signals = Signals::new(&file.settings, seed);
        let routers = match file.layout {
            Layout::Chain => chain(&file.settings),
            Layout::Placed => std::mem::take(&mut file.routers),
            Layout::Random => random(place, &file.settings, &signals, seed)?,
        };
        let gateway = match (file.layout, &file.settings.gateway) {
            (Layout::Chain, _) => 0,
            (_, Some(name)) => find(&routers, name)
                .map_err(|text| ScenarioError::one(place, &format!("the gateway is an {text}")))?,
            (Layout::Random, None) => random::nearest(&routers, file.settings.gateway_place_m()),
            (Layout::Placed, None) => {
                let text = "names no gateway: say which router has the uplink, gateway = \"…\"";
                return Err(ScenarioError::one(place, text));
            }
        };
        let links = signals.links(&places_m(&routers));
        file.settings.gateway = Some(routers[gateway].name.clone());
        Ok(Self { place, file, seed, routers, gateway, signals, links })
    }

    fn scenario(mut self, name: &str) -> Result<Scenario, ScenarioError> {
        let trace = self.trace()?;
        let flows = self.flows()?;
        let receivers = match self.file.settings.traffic {
            Traffic::Flows => once_each(flows.iter().map(|it| it.to)),
            _ => self.receivers(&trace)?,
        };
        self.check_gateway(&receivers)?;
        let tree = self.tree()?;
        let senders = flows.iter().map(|it| it.from);
        self.check_reach(&tree, &once_each(receivers.iter().copied().chain(senders)))?;
        let changes = self.changes(&tree)?;
        let workload = workload(&self.file.settings, trace);
        let place = self.place;
        let wrong = |text: String| ScenarioError::one(place, &text);
        let uplink = Uplink::of(&self.file.settings.uplink).map_err(wrong)?;
        let published = wired::published(&self.file.settings.uplink).map_err(wrong)?;
        let http = self.file.settings.uplink.http().map_err(wrong)?;
        self.check_load(&workload, receivers.len())?;
        // Reports show the receivers by name, even if the file does not give them.
        let names = receivers.iter().map(|it| self.routers[*it].name.clone());
        self.file.settings.receivers = Some(names.collect());
        let routers = self.routers.len();
        let plane = self.file.settings.plane.plane(routers, |name| find(&self.routers, name));
        let plane = plane.map_err(wrong)?;
        let settings = &self.file.settings;
        let share = settings.liars * (self.routers.len() - 1) as f64;
        let liars =
            random::liars(self.routers.len(), self.gateway, share.round() as usize, self.seed);
        Ok(Scenario {
            name: name.to_owned(),
            description: self.file.description,
            radio: stations(settings),
            range_m: settings.range_m,
            loss_above_mac: settings.loss_above_mac,
            gateway: self.gateway,
            receivers,
            changes,
            routing: settings.routing,
            congestion: settings.congestion,
            variant: settings.variant,
            liars,
            plane,
            uplink,
            far: settings.uplink.far,
            published,
            http,
            traffic: settings.traffic,
            workload,
            changed: settings.changed,
            load: load(settings),
            flows,
            browsing: browsing(settings),
            tcp: settings.tcp.config(),
            keys: settings.keys(self.file.layout),
            metric: settings.metric,
            links: self.links,
            routers: self.routers,
            tree,
        })
    }

    fn check_load(&self, workload: &Workload, receivers: usize) -> Result<(), ScenarioError> {
        let wrong = |text: &str| Err(ScenarioError::one(self.place, text));
        let flows = receivers as u64 * self.file.settings.load.flows;
        match self.file.settings.traffic {
            Traffic::Files => {}
            Traffic::Pages if self.file.settings.bytes_min > self.file.settings.bytes_max => {
                return wrong("`bytes_min` is above `bytes_max`: lower it");
            }
            Traffic::Flows | Traffic::Fetches | Traffic::Pages => return Ok(()),
            Traffic::Tcp | Traffic::Udp if flows > FLOWS_MAX => {
                return wrong(&format!(
                    "{receivers} receivers and `flows` make {flows} flows, more than {FLOWS_MAX}: \
                     take fewer"
                ));
            }
            Traffic::Tcp | Traffic::Udp => return Ok(()),
        }
        let round = match workload.trace.len() {
            0 => receivers * workload.files,
            requests => requests,
        };
        let requests = round * workload.rounds;
        if requests > REQUESTS_MAX {
            return wrong(&format!(
                "{receivers} receivers, `files` and `rounds` make {requests} requests, more than \
                 {REQUESTS_MAX}: take fewer"
            ));
        }
        if workload.files as u64 * workload.bytes > CONTENT_BYTES_MAX {
            return wrong(&format!(
                "`files` and `bytes` make more than {CONTENT_BYTES_MAX} bytes, which the lab keeps \
                 in memory: take less"
            ));
        }
        Ok(())
    }

    /// The trace that `requests` gives.
    fn trace(&self) -> Result<Vec<Request>, ScenarioError> {
        let mut wrong = ScenarioError::default();
        let mut trace = Vec::new();
        let files = self.file.settings.files;
        for wish in &self.file.settings.requests {
            match find(&self.routers, &wish.router) {
                Ok(_) if wish.file > files => {
                    let text = format!("`requests` has {wish}, and `files` is {files}: raise it");
                    wrong.add(self.place, &text);
                }
                Ok(receiver) => trace.push(Request { receiver, file: wish.file as usize - 1 }),
                Err(text) => wrong.add(self.place, &format!("`requests` names an {text}")),
            }
        }
        wrong.unless(trace)
    }

    /// The flows that `between` lists, if that is the traffic.
    fn flows(&self) -> Result<Vec<ListedFlow>, ScenarioError> {
        let settings = &self.file.settings;
        if settings.traffic != Traffic::Flows {
            return Ok(Vec::new());
        }
        let mut wrong = ScenarioError::default();
        if !(1..=FLOWS_MAX as usize).contains(&settings.load.between.len()) {
            let text = format!(
                "`traffic` \"flows\" is of 1 to {FLOWS_MAX} flows, and `between` lists {}: list them, \
                 like between = {}",
                settings.load.between.len(),
                flows::EXAMPLE
            );
            wrong.add(self.place, &text);
        }
        let mut listed = Vec::new();
        for wish in &settings.load.between {
            match wish.flow(|name| find(&self.routers, name)) {
                Ok(flow) => listed.push(flow),
                Err(text) => wrong.add(self.place, &text),
            }
        }
        wrong.unless(listed)
    }

    /// The routers that requests name; else the `receivers` key; else the last router of a chain, or all
    /// routers but the gateway, or the gateway if there is no other.
    fn receivers(&self, trace: &[Request]) -> Result<Vec<usize>, ScenarioError> {
        if !trace.is_empty() {
            return Ok(once_each(trace.iter().map(|it| it.receiver)));
        }
        let Some(names) = &self.file.settings.receivers else {
            return Ok(match self.file.layout {
                Layout::Chain => vec![self.routers.len() - 1],
                Layout::Placed if self.routers.len() == 1 => vec![self.gateway],
                Layout::Placed => {
                    (0..self.routers.len()).filter(|it| *it != self.gateway).collect()
                }
                Layout::Random => {
                    let clients = self.file.settings.clients as usize;
                    random::receivers(self.routers.len(), self.gateway, clients, self.seed)
                }
            });
        };
        let mut wrong = ScenarioError::default();
        let mut receivers = Vec::new();
        for name in names {
            match find(&self.routers, name) {
                Ok(router) if receivers.contains(&router) => {
                    wrong.add(self.place, &format!("`receivers` names router {name} twice"));
                }
                Ok(router) => receivers.push(router),
                Err(text) => wrong.add(self.place, &format!("`receivers` names an {text}")),
            }
        }
        wrong.unless(receivers)
    }

    /// Flows and fetches come from the gateway unless they are listed, so it cannot receive them.
    fn check_gateway(&self, receivers: &[usize]) -> Result<(), ScenarioError> {
        let traffic = self.file.settings.traffic;
        if traffic.is_of_origin() || traffic == Traffic::Flows || !receivers.contains(&self.gateway)
        {
            return Ok(());
        }
        let (name, word) = (&self.routers[self.gateway].name, traffic.word());
        let text = format!(
            "the gateway {name} cannot be among the `receivers`: it is the sender of `traffic` \"{word}\""
        );
        Err(ScenarioError::one(self.place, &text))
    }

    /// Only the first wrong route is reported: the same mistake is usually behind the others.
    fn tree(&self) -> Result<Tree, ScenarioError> {
        let mut tree = Tree::new(self.routers.len(), self.gateway);
        match (self.file.layout, &self.file.routes) {
            // A chain's route passes every router, even where a shorter one exists.
            (Layout::Chain, _) => {
                let route: Vec<_> = (0..self.routers.len()).collect();
                self.join(&mut tree, &route)
                    .map_err(|text| ScenarioError::one(self.place, &format!("the chain {text}")))?;
            }
            (_, Some(routes)) => {
                for route in routes {
                    let outcome = self.route(route).and_then(|it| self.join(&mut tree, &it));
                    outcome.map_err(|text| {
                        let text = format!("route \"{}\" {text}", quote(&route.text));
                        ScenarioError::one(&route.place, &text)
                    })?;
                }
            }
            (_, None) => {
                let settings = &self.file.settings;
                let scope = settings.loss_scope();
                tree = Tree::shortest(&self.links, scope, self.gateway, settings.metric);
            }
        }
        Ok(tree)
    }

    /// Fixed routes stay, except for hops that are cut; others are computed again.
    fn changes(&self, tree: &Tree) -> Result<Option<Changes>, ScenarioError> {
        let settings = &self.file.settings;
        let ways = match (self.file.layout, &self.file.routes) {
            (Layout::Chain, _) | (_, Some(_)) => Ways::Given(tree.hops()),
            (_, None) => Ways::Shortest { gateway: self.gateway },
        };
        let places_m = places_m(&self.routers);
        let changes = Changes::new(settings, self.file.layout, places_m, &self.signals, ways);
        let find = |name: &str| find(&self.routers, name);
        changes
            .and_then(|it| it.who(&settings.changing, self.gateway, find))
            .map_err(|text| ScenarioError::one(self.place, &text))
    }

    /// The routers of a route as written.
    fn route(&self, route: &Route) -> Result<Vec<usize>, String> {
        let mut routers = Vec::new();
        for name in route.text.split_whitespace() {
            let router = find(&self.routers, name).map_err(|text| format!("names an {text}"))?;
            if routers.contains(&router) {
                return Err(format!("passes router {name} twice"));
            }
            routers.push(router);
        }
        let gateway = &self.routers[self.gateway].name;
        match routers.first() {
            Some(first) if *first != self.gateway => {
                Err(format!("must begin with the gateway, {gateway}"))
            }
            _ if routers.len() < 2 => {
                Err(format!("must lead from the gateway {gateway} to a router"))
            }
            _ => Ok(routers),
        }
    }

    /// Joins a route to the tree of the others.
    fn join(&self, tree: &mut Tree, route: &[usize]) -> Result<(), String> {
        let name = |router: usize| &self.routers[router].name;
        for hop in route.windows(2) {
            let (parent, router) = (hop[0], hop[1]);
            if tree::loss(&self.links, parent, router).is_none() {
                let distance_m = distance_m(&self.routers[parent], &self.routers[router]);
                let cause = too_weak(&self.file.settings, distance_m);
                return Err(format!(
                    "passes link {}-{}, which is {distance_m:.1} m long{cause}",
                    name(parent),
                    name(router)
                ));
            }
            tree.join(router, parent).map_err(|other| {
                format!(
                    "goes from {} to {}, and another from {} to it: let both go the same way",
                    name(parent),
                    name(router),
                    name(other)
                )
            })?;
        }
        Ok(())
    }

    fn check_reach(&self, tree: &Tree, receivers: &[usize]) -> Result<(), ScenarioError> {
        let mut wrong = ScenarioError::default();
        let gateway = &self.routers[self.gateway].name;
        let cure = match &self.file.routes {
            Some(_) => "name it in a route of `routes`".to_owned(),
            None => format!(
                "bring it within {} m of one that has, or raise `range_m`",
                self.file.settings.range_m
            ),
        };
        let mut cut_off = receivers.iter().filter(|it| !tree.connects(**it));
        if let Some(first) = cut_off.next() {
            let name = &self.routers[*first].name;
            let others = match cut_off.count() {
                0 => String::new(),
                others => format!(" (nor have {others} others)"),
            };
            let list = match self.file.settings.traffic {
                Traffic::Flows => "between",
                _ => "receivers",
            };
            let text = format!(
                "router {name} has no route to the gateway {gateway}{others}: {cure}, or leave it \
                 out of `{list}`"
            );
            wrong.add(self.place, &text);
        }
        wrong.unless(())
    }
}

/// Routers in their order, each only where it is named first.
fn once_each(routers: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut seen = Vec::new();
    for router in routers {
        if !seen.contains(&router) {
            seen.push(router);
        }
    }
    seen
}

fn check_rates(place: &str, settings: &Settings) -> Result<(), ScenarioError> {
    let mut wrong = ScenarioError::default();
    let (range, sense) = (settings.range_m, settings.carrier_sense_m);
    if sense < range {
        let text = format!(
            "`carrier_sense_m` is {sense}, less than `range_m`, {range}: what can be received is \
             sensed, so raise the one or lower the other"
        );
        wrong.add(place, &text);
    }
    if settings.basic > settings.data {
        let text = format!(
            "`basic_mbps` is {}, more than `data_mbps`, {}: frames are acknowledged no faster than \
             they were sent, so lower it",
            mbps(settings.basic),
            mbps(settings.data)
        );
        wrong.add(place, &text);
    }
    for (name, rate) in [("data_mbps", settings.data), ("basic_mbps", settings.basic)] {
        if !settings.phy.has(rate) {
            let text = format!(
                "`{name}` is {}, which 802.11{} does not have: it has {}",
                mbps(rate),
                settings.phy.word(),
                rates(|rate| settings.phy.has(rate))
            );
            wrong.add(place, &text);
        }
    }
    wrong.unless(())
}

fn chain(settings: &Settings) -> Vec<Router> {
    let places = (0..=settings.hops).map(|it| (it, it as f64 * settings.spacing_m));
    places.map(|(number, x_m)| Router { name: number.to_string(), x_m, y_m: 0.0 }).collect()
}

/// The stations' rates and queues.
fn stations(settings: &Settings) -> radio::Config {
    radio::Config {
        phy: settings.phy,
        data_rate: settings.data,
        basic_rate: settings.basic,
        queue_frames_max: settings.queue_frames as usize,
        rts_threshold: settings.rts.map(|bytes| bytes as u32),
        loss_scope: settings.loss_scope(),
        broadcast_loss_share: settings.broadcast_loss_share,
        overhear_spell: Duration::from_secs_f64(settings.overhear_spell_ms / 1e3),
        decoding: settings.reception,
        locking: settings.receiver,
        dcf: settings.dcf,
        ..radio::Config::default()
    }
}

fn workload(settings: &Settings, trace: Vec<Request>) -> Workload {
    let is_staggered = settings.load.stagger_s > 0.0;
    Workload {
        bytes: settings.bytes,
        files: settings.files as usize,
        trace,
        rounds: settings.rounds as usize,
        order: settings.order,
        stagger: is_staggered.then(|| Duration::from_secs_f64(settings.load.stagger_s)),
    }
}

fn browsing(settings: &Settings) -> Browsing {
    Browsing {
        clients: settings.readers as u16,
        files: settings.files as usize,
        bytes: [settings.bytes_min, settings.bytes_max],
        theta: settings.zipf,
        square_m: settings.alike_m,
        page_files: settings.page_files,
        think_s: settings.think_mean_s,
        think_sigma: settings.think_sigma,
        lasts: Duration::from_secs_f64(settings.load.seconds),
        max_age_s: settings.max_age_s,
        store_bytes: settings.store_kb * 1024,
        access_bps: (settings.access_mbps * 1e6).round() as u64,
    }
}

fn load(settings: &Settings) -> Load {
    let offered_mbps = match settings.load.offered_mbps {
        0.0 => OFFERED_MBPS_MIN.max(mbps(settings.data) * OFFERED_SHARE),
        mbps => mbps,
    };
    Load {
        lasts: Duration::from_secs_f64(settings.load.seconds),
        flows: settings.load.flows as usize,
        stagger: Duration::from_secs_f64(settings.load.stagger_s),
        offered_bps: (offered_mbps * 1e6).round() as u64,
        datagram_bytes: settings.load.datagram_bytes as usize,
        think: Duration::from_secs_f64(settings.load.think_s),
    }
}

fn random(
    place: &str,
    settings: &Settings,
    signals: &Signals,
    seed: u64,
) -> Result<Vec<Router>, ScenarioError> {
    let (nodes, area_m) = (settings.nodes as usize, settings.area_m);
    let (range_m, propagation) = (settings.range_m, signals.propagation());
    random::routers(nodes, area_m, range_m, propagation, seed).ok_or_else(|| {
        let text = format!(
            "{nodes} `nodes` on a square of {area_m} m with `range_m` {} are rarely all \
             connected: take more nodes, a smaller `area_m`, or a longer range",
            range_m
        );
        ScenarioError::one(place, &text)
    })
}

fn places_m(routers: &[Router]) -> Vec<(f64, f64)> {
    routers.iter().map(|router| (router.x_m, router.y_m)).collect()
}

/// Why frames do not cross a link of this length, and what to change.
fn too_weak(settings: &Settings, distance_m: f64) -> String {
    let (range_m, shadowing_db) = (settings.range_m, settings.shadowing_db);
    if distance_m > range_m {
        return format!(", and `range_m` is {range_m}: bring the two nearer, or raise `range_m`");
    }
    let exponent = settings.path_exponent;
    format!(
        ", within `range_m`, {range_m}, but too weak: by `path_exponent` {exponent} and by chance, \
         `shadowing_db` {shadowing_db}: lower them, bring the two nearer, raise `range_m`, or take \
         another seed"
    )
}

fn distance_m(a: &Router, b: &Router) -> f64 {
    let (dx, dy) = (a.x_m - b.x_m, a.y_m - b.y_m);
    (dx * dx + dy * dy).sqrt()
}

/// The index of the router of this name.
fn find(routers: &[Router], name: &str) -> Result<usize, String> {
    let names = routers.iter().map(|router| router.name.as_str());
    let found = names.clone().position(|it| it == name);
    found.ok_or_else(|| format!("unknown router `{}`: {}", quote(name), advice(name, names)))
}
