//! A mesh of routers with clients behind them, and the origin behind its gateway, with a far end between the two
//! if the scenario has one.
//!
//! *Who calls it:* [`run`](super::run), and workloads of their own, which make clients ask through
//! [`World::act`] and let time pass through [`World::step`]. *Where to start:* [`Mesh::build`].

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use node::Listening;
pub use node::{Locating, SearchConfig, SearchTimeout};
use store::Policy;
use wire::{Date, Instant, Scheme, Selection};

use super::far::Far;
use super::outside::Outside;
use super::{EventSink, HTTP_PORT, Router, Settings, StoreSize, way};
use crate::hosts::content::Source;
use crate::hosts::{BEGIN, Browser, Client, Files, Origin};
use crate::losses::AboveMac;
use crate::net::{self, Host, Interface, Packet};
use crate::scenario::{self, Intercepts, Scenario, Traffic};
use crate::world::{AIR, Program, Routes, Tap, Wire, World, address};

/// Peers have this long to meet before the first client asks, …
const MEET_TIMEOUT: Duration = Duration::from_secs(60);
/// … and this is how often the loop checks.
const MEET_EVERY: Duration = Duration::from_millis(10);
/// After routers have met they open connections for units. A lost SYN is sent again within this time.
const UNITS_AFTER: Duration = Duration::from_secs(2);
/// Linux's minimum and usual delay of an acknowledgement.
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// Memory of a router for what it has overheard in part.
const OVERHEAR_BYTES: usize = 8 << 20;
/// The side of a square of the map, for schemes that hash names within one's own. The paper names none: a square
/// kilometre has four.
pub const SQUARE_M: f64 = 500.0;
/// When the origin's files were last modified: a year before a world begins.
const CHANGED: Date = Date::from_unix(BEGIN.as_unix() - 31_536_000);
/// Stream numbers that derive the seeds of hosts and routers from a run's seed.
const HOSTS: u16 = 1;
const ROUTERS: u16 = 3;

/// Settings that scenarios do not have, or that a run has otherwise. The defaults are the lab's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The store of each router.
    pub store: StoreSize,
    /// The memory budget of each engine, in bytes.
    pub memory_bytes: u64,
    /// How routers search, under the schemes that do; `None`: as the scenario says.
    pub search: Option<SearchConfig>,
    /// How long files stay fresh, in seconds.
    pub max_age_s: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            store: StoreSize { bytes: 1 << 30, policy: Policy::S3Fifo },
            memory_bytes: 16 << 20,
            search: None,
            max_age_s: 86_400,
        }
    }
}

/// The observers of a run; none by default.
#[derive(Default)]
pub struct Watchers {
    /// Is shown each frame.
    pub frames: Option<Box<dyn Tap>>,
    /// Is given what the engines do.
    pub events: Option<EventSink>,
}

/// Why a scenario could not be run.
pub type RunError = store::Error;

/// The program of a machine.
#[derive(Debug)]
pub enum Member {
    /// A router with an engine.
    Router(Box<Router>),
    /// A router that only forwards.
    Plain,
    /// A client wired to a router.
    Client(Client),
    /// Clients wired to a router that read pages.
    Browser(Box<Browser>),
    /// The far end of the uplink, wired to the gateway.
    Far(Box<Far>),
    /// The origin, wired to the gateway or to the far end.
    Origin(Origin),
}

/// A world of routers, clients and the origin.
#[derive(Debug)]
pub struct Mesh<'a> {
    /// All machines and the medium.
    pub world: World<Member>,
    pub(super) scenario: &'a Scenario,
    /// The machine of each router's client, by router.
    pub(super) clients: BTreeMap<usize, usize>,
    /// The machine at the outer end of the uplink.
    pub(super) outer: usize,
    /// Bytes that the gateway had given when the latest request began.
    pub(super) given_before: u64,
}

impl<'a> Mesh<'a> {
    /// All machines, at the beginning of time.
    ///
    /// # Errors
    ///
    /// Errors of a router's store; a store in memory has none.
    pub fn build(
        scenario: &'a Scenario,
        scheme: Scheme,
        seed: u64,
        options: Options,
    ) -> Result<Self, RunError> {
        let count = scenario.routers.len();
        let variant = scenario.variant;
        let listening = Listening { memory_bytes: OVERHEAR_BYTES, options: variant.overhear() };
        let outside = Outside::of(scenario);
        let own_seed = |machine| scenario::seed(seed, machine, ROUTERS);
        let far = outside.far_place(own_seed);
        let mut routes = Routes::of(scenario);
        let squares = Arc::new(squares(scenario));
        let all = scheme.selection().is_some_and(Selection::leaves_the_way);
        let routers = (0..count).map(|router| {
            let intercepts = intercepts(scenario, scheme, router);
            if scheme.selection().is_none() && intercepts.is_empty() {
                // A router that neither intercepts nor has peers has nothing for an engine to do.
                return Ok(Member::Plain);
            }
            let settings = Settings {
                name: name(scenario, router),
                seed: own_seed(router),
                selection: scheme.selection(),
                search: options.search.unwrap_or(variant.search()),
                squares: Arc::clone(&squares),
                table: way::table(&mut routes, router, scenario.gateway, all),
                gateway: scenario.gateway,
                intercepts,
                overhear: scheme.overhears().then_some(listening),
                store: options.store,
                memory_bytes: options.memory_bytes,
                profile: variant.profile(),
                names: outside.names(),
                far: far.filter(|_| router == scenario.gateway),
                http: scenario.http,
            };
            Router::new(settings).map(|router| Member::Router(Box::new(router)))
        });
        let host = |machine: usize| {
            let address = outside.address_of(machine);
            Host::new(config(scenario), &[address], scenario::seed(seed, machine, HOSTS))
        };
        let stations = routers.enumerate().map(|(router, member)| Ok((host(router), member?)));
        let (radio, links) = (scenario.radio.clone(), scenario.links.clone());
        let stations = stations.collect::<Result<_, RunError>>()?;
        let mut world = World::new(radio, links, routes, seed, stations);
        world.set_link_planes(&scenario.plane);
        world.lose_above_mac(AboveMac::new(scenario.loss_above_mac, count, seed));
        lie(&mut world, &scenario.liars);
        if let Some(changes) = &scenario.changes {
            world.change(changes.clone(), scenario.links.clone(), seed);
        }
        if scheme.overhears() {
            world.listen();
        }
        let sizes: Arc<[u64]> = sizes(scenario, seed).into();
        let source = Source::from(seed).with_changed(scenario.changed);
        let server = server(source, &sizes, options);
        outside.attach(&mut world, seed, own_seed, host, server);
        let mut clients = BTreeMap::new();
        for (place, receiver) in scenario.receivers.iter().enumerate() {
            let client = Client::new(scenario.far.origin_name(), outside.server(), source);
            let (wire, client) = match scenario.traffic {
                Traffic::Pages => readers(scenario, client, *receiver, seed, &sizes),
                _ => (Wire::LAN, Member::Client(client)),
            };
            let machine = world.attach(*receiver, wire, host(outside.end() + place), client);
            clients.insert(*receiver, machine);
        }
        Ok(Self { world, scenario, clients, outer: outside.outer(), given_before: 0 })
    }

    /// Shows a run to those who watch it; to be called before anything has happened.
    pub fn watch(&mut self, watchers: Watchers) {
        watchers.frames.into_iter().for_each(|it| self.world.watch(it));
        let Some(events) = watchers.events else { return };
        for (router, member) in self.world.programs_mut().enumerate() {
            if let Member::Router(it) = member {
                it.watch(router, Rc::clone(&events));
            }
        }
    }

    /// Lets time pass until each router is connected to the peer that it will ask, and the gateway to its far
    /// end, or the timeout ends.
    pub fn meet(&mut self, scheme: Scheme) {
        let until = self.world.now() + MEET_TIMEOUT;
        while !self.has_met(scheme) && self.world.now() < until {
            self.world.run(self.world.now() + MEET_EVERY);
        }
        self.world.run(self.world.now() + UNITS_AFTER);
    }

    fn has_met(&mut self, scheme: Scheme) -> bool {
        let Scenario { gateway, .. } = *self.scenario;
        (0..self.scenario.routers.len()).all(|router| {
            // A router without a route asks no peer.
            let next_hop = self.world.routes().next_hop(router, gateway);
            let asked = match scheme.selection() {
                None => None,
                Some(selection) if selection.is_per_hop() => next_hop,
                Some(_) => next_hop.map(|_| gateway),
            };
            match (self.world.program(router), asked) {
                (Member::Router(it), _) if !it.has_far_end() => false,
                (Member::Router(it), Some(asked)) => it.knows(IpAddr::V4(address(asked))),
                // A router without an engine, or without a peer to ask, has nothing to wait for.
                _ => true,
            }
        })
    }
}

/// Makes these routers lie, each in favour of all.
fn lie(world: &mut World<Member>, liars: &[usize]) {
    let at = |router| IpAddr::V4(address(router));
    let named = |router: &usize| match world.program(*router) {
        Member::Router(it) => it.named(at(*router)),
        _ => None,
    };
    let named: Vec<_> = liars.iter().filter_map(named).collect();
    for (router, member) in world.programs_mut().enumerate() {
        if let Member::Router(it) = member
            && liars.contains(&router)
        {
            it.lie(at(router), named.clone());
        }
    }
}

/// The origin.
fn server(source: Source, sizes: &[u64], options: Options) -> Member {
    let files =
        Files { source, sizes: sizes.to_vec(), max_age_s: options.max_age_s, changed: CHANGED };
    Member::Origin(Origin::new(files, HTTP_PORT))
}

/// In which square of the map each router is, by its address.
fn squares(scenario: &Scenario) -> BTreeMap<IpAddr, [u32; 2]> {
    let routers = scenario.routers.iter().enumerate();
    routers.map(|(router, it)| (IpAddr::V4(address(router)), square(it))).collect()
}

/// The square of the map in which a router is: its column and row.
pub fn square(router: &scenario::Router) -> [u32; 2] {
    [router.x_m, router.y_m].map(|at| (at.max(0.0) / SQUARE_M) as u32)
}

/// The interfaces on which a router intercepts connections.
fn intercepts(scenario: &Scenario, scheme: Scheme, router: usize) -> Vec<Interface> {
    // The gateway's first wire leads to the origin or the far end.
    let lan = Interface(if router == scenario.gateway { 2 } else { 1 });
    let Intercepts { mesh, clients } = scenario.intercepts(scheme, router);
    [(mesh, AIR), (clients, lan)].into_iter().filter(|it| it.0).map(|it| it.1).collect()
}

/// Sizes of the origin's files, in bytes.
fn sizes(scenario: &Scenario, seed: u64) -> Vec<u64> {
    match scenario.traffic {
        Traffic::Pages => scenario.browsing.sizes(seed),
        _ => vec![scenario.workload.bytes; scenario.workload.files],
    }
}

/// A router's clients that read pages, and their wire.
fn readers(
    scenario: &Scenario,
    client: Client,
    router: usize,
    seed: u64,
    sizes: &Arc<[u64]>,
) -> (Wire, Member) {
    let browsing = &scenario.browsing;
    let place = &scenario.routers[router];
    let reader = |client| browsing.reader(place, router, client, seed);
    let readers = (0..browsing.clients).map(reader).collect();
    let wire = Wire { bits_per_second: browsing.access_bps, ..Wire::LAN };
    (wire, Member::Browser(Box::new(Browser::new(client, readers, sizes.clone()))))
}

/// The settings of all machines' network stacks. Two of them are Linux's, for which the daemon is made,
/// even if the scenario differs: acknowledgements are delayed by 40 ms at most, and small segments wait for
/// earlier ones to leave the machine. With ns-3's delay of 200 ms, each single segment of the origin would
/// look like an origin that pauses.
fn config(scenario: &Scenario) -> net::Config {
    let delayed_ack_timeout = scenario.tcp.delayed_ack_timeout.min(DELAYED_ACK);
    let tcp = net::tcp::Config { delayed_ack_timeout, cork: true, ..scenario.tcp };
    net::Config { tcp, ..net::Config::default() }
}

/// A router's name in `Cache-Status`, as in the lab.
pub(super) fn name(scenario: &Scenario, router: usize) -> String {
    format!("router-{}", scenario.routers[router].name)
}

impl Program for Member {
    fn start(&mut self, now: Instant, host: &mut Host) {
        match self {
            Self::Router(router) => router.start(now, host),
            Self::Client(client) => client.start(now, host),
            Self::Browser(browser) => browser.start(now, host),
            Self::Far(far) => far.start(now, host),
            Self::Origin(origin) => origin.start(now, host),
            Self::Plain => {}
        }
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: net::Event) {
        match self {
            Self::Router(router) => router.handle_event(now, host, event),
            Self::Client(client) => client.handle_event(now, host, event),
            Self::Browser(browser) => browser.handle_event(now, host, event),
            Self::Far(far) => far.handle_event(now, host, event),
            Self::Origin(origin) => origin.handle_event(now, host, event),
            Self::Plain => {}
        }
    }

    fn overhear(&mut self, now: Instant, host: &mut Host, packet: &Packet) {
        if let Self::Router(router) = self {
            router.overhear(now, host, packet);
        }
    }

    fn rerouted(&mut self, now: Instant, host: &mut Host, routes: &mut Routes) {
        if let Self::Router(router) = self {
            router.rerouted(now, host, routes);
        }
    }

    fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        match self {
            Self::Router(router) => router.handle_timeout(now, host),
            Self::Client(client) => client.handle_timeout(now, host),
            Self::Browser(browser) => browser.handle_timeout(now, host),
            Self::Far(far) => far.handle_timeout(now, host),
            Self::Origin(origin) => origin.handle_timeout(now, host),
            Self::Plain => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Router(router) => router.poll_timeout(),
            Self::Client(client) => client.poll_timeout(),
            Self::Browser(browser) => browser.poll_timeout(),
            Self::Far(far) => far.poll_timeout(),
            Self::Origin(origin) => origin.poll_timeout(),
            Self::Plain => None,
        }
    }
}
