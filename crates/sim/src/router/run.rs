//! A scenario's files, fetched by its clients under one of the schemes: what the lab does in real time.
//!
//! *Who calls it:* the lab's program, and experiments. *Where to start:* [`run`].

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddrV4};
use std::time::Duration;

use node::{Interface, Route, RouteSource, RouteTable, Uplink};
use radio::{Report, Station};
use store::Policy;
use wire::{Date, Instant};

use super::scheme::Scheme;
use super::{BEGIN, HTTP_PORT, Router, Settings, StoreSize};
use crate::hosts::{Ask, Client, Files, Got, Origin};
use crate::net::{self, Event, Host};
use crate::result::{Gateway, Radio, RunResult, Transfer};
use crate::scenario::{Request, Scenario};
use crate::source::{self, Source};
use crate::world::{self, Program, Routes, Tap, Wire, World, address};

/// The origin's name.
pub const ORIGIN: &str = "origin";
/// Packets that may wait at an end of the uplink, as in the lab.
const UPLINK_PACKETS_MAX: usize = 1000;
/// Peers have so long to meet before the first client asks …
const MEET_PATIENCE: Duration = Duration::from_secs(60);
/// … which is looked at so often.
const MEET_EVERY: Duration = Duration::from_millis(10);
/// Linux holds an acknowledgement back for so long at least, and mostly.
const DELAYED_ACK: Duration = Duration::from_millis(40);
/// The origin's files were last changed a year before a world begins.
const CHANGED: Date = Date::from_unix(BEGIN.as_unix() - 31_536_000);
/// Says which seed of a machine is whose.
const HOSTS: u16 = 1;
const ROUTERS: u16 = 3;

/// What is not in scenarios. The default is what the lab has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Of each router.
    pub store: StoreSize,
    /// Of each engine's memory, in bytes.
    pub memory_bytes: u64,
    /// For so many seconds files stay fresh.
    pub max_age_s: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            store: StoreSize { bytes: 1 << 30, policy: Policy::S3Fifo },
            memory_bytes: 16 << 20,
            max_age_s: 86_400,
        }
    }
}

/// Why a scenario could not be run.
pub type RunError = store::Error;

/// Runs a scenario's requests. `watch` may have frames shown; `ended` is told each transfer as it ends.
/// The wall's seconds in the result are left at 0, since here is no clock.
///
/// # Errors
/// Those that a router's store has, which has none in memory.
pub fn run(
    scenario: &Scenario,
    scheme: Scheme,
    seed: u64,
    options: Options,
    watch: Option<Box<dyn Tap>>,
    mut ended: impl FnMut(&Transfer),
) -> Result<RunResult, RunError> {
    let mut mesh = Mesh::build(scenario, scheme, seed, options)?;
    watch.into_iter().for_each(|it| mesh.world.watch(it));
    mesh.meet(scheme);
    let before = mesh.snapshot();
    let transfers = mesh.transfer(seed, &mut ended);
    let after = mesh.snapshot();
    Ok(result(scenario, scheme, seed, transfers, [&before, &after]))
}

/// What runs on a machine.
#[derive(Debug)]
pub enum Member {
    /// A router with an engine.
    Router(Box<Router>),
    /// A router that only forwards.
    Plain,
    /// Wired to a router.
    Client(Client),
    /// Wired to the gateway.
    Origin(Origin),
}

/// A world of routers, clients and the origin.
#[derive(Debug)]
pub struct Mesh<'a> {
    /// All of it.
    pub world: World<Member>,
    scenario: &'a Scenario,
    /// Each router's client, where it has one.
    clients: BTreeMap<usize, usize>,
    origin: usize,
}

impl<'a> Mesh<'a> {
    /// All machines, before anything has happened.
    ///
    /// # Errors
    /// Those that a router's store has, which has none in memory.
    pub fn build(
        scenario: &'a Scenario,
        scheme: Scheme,
        seed: u64,
        options: Options,
    ) -> Result<Self, RunError> {
        let count = scenario.routers.len();
        // Stations come first, then the origin, then clients.
        let origin = address(count);
        let routers = (0..count).map(|router| {
            let intercepts = scheme.intercepts(scenario, router);
            if scheme.peers().is_none() && intercepts.is_empty() {
                return Ok(Member::Plain);
            }
            let settings = Settings {
                name: name(scenario, router),
                seed: world::seed(seed, router, ROUTERS),
                scheme: scheme.peers(),
                table: table(scenario, router),
                intercepts,
                store: options.store,
                memory_bytes: options.memory_bytes,
                names: BTreeMap::from([(ORIGIN.to_owned(), IpAddr::V4(origin))]),
            };
            Router::new(settings).map(|router| Member::Router(Box::new(router)))
        });
        let host = |machine: usize| {
            Host::new(config(scenario), &[address(machine)], world::seed(seed, machine, HOSTS))
        };
        let stations = routers.enumerate().map(|(router, member)| Ok((host(router), member?)));
        let routes = Routes::over(count, scenario.tree_hops());
        let (radio, links) = (scenario.radio.clone(), scenario.links.clone());
        let stations = stations.collect::<Result<_, RunError>>()?;
        let mut world = World::new(radio, links, routes, seed, stations);
        let files = Files {
            seed,
            sizes: vec![scenario.workload.bytes; scenario.workload.files],
            max_age_s: options.max_age_s,
            changed: CHANGED,
        };
        let wire = Wire {
            bits_per_second: scenario.uplink.bits_per_second,
            delay: scenario.uplink.delay,
            packets_max: UPLINK_PACKETS_MAX,
        };
        let server = Member::Origin(Origin::new(files, HTTP_PORT));
        let origin = world.attach(scenario.gateway, wire, host(count), server);
        let mut clients = BTreeMap::new();
        for (place, receiver) in scenario.receivers.iter().enumerate() {
            let to = SocketAddrV4::new(address(origin), HTTP_PORT);
            let client = Member::Client(Client::new(ORIGIN, to, seed));
            let machine = world.attach(*receiver, Wire::LAN, host(origin + 1 + place), client);
            clients.insert(*receiver, machine);
        }
        Ok(Self { world, scenario, clients, origin })
    }

    /// Lets peers meet: until each router is connected with whom it will ask, but not for ever.
    pub fn meet(&mut self, scheme: Scheme) {
        let until = self.world.now() + MEET_PATIENCE;
        while !self.has_met(scheme) && self.world.now() < until {
            self.world.run(self.world.now() + MEET_EVERY);
        }
    }

    fn has_met(&self, scheme: Scheme) -> bool {
        let Scenario { gateway, .. } = *self.scenario;
        (0..self.scenario.routers.len()).all(|router| {
            let asked = match scheme.peers() {
                None => None,
                Some(node::Scheme::Thcp) => (router != gateway).then_some(gateway),
                Some(node::Scheme::PhThcp) => self.scenario.next_hop(router, gateway),
            };
            let is_there = !self.scenario.path(router).is_empty();
            match (self.world.program(router), asked.filter(|_| is_there)) {
                (Member::Router(it), Some(asked)) => it.knows(IpAddr::V4(address(asked))),
                _ => true,
            }
        })
    }

    /// Sends all requests, and gives their transfers in the order in which they began.
    pub fn transfer(&mut self, seed: u64, ended: &mut impl FnMut(&Transfer)) -> Vec<Transfer> {
        let requests = self.scenario.requests(seed);
        let began = self.world.now();
        let mut transfers = BTreeMap::new();
        for (number, request) in requests.iter().enumerate() {
            if let Some(stagger) = self.scenario.workload.stagger {
                let due = began + stagger.saturating_mul(number as u32);
                self.world.run(due);
            }
            let client = self.clients[&request.receiver];
            let ask = Ask { number, file: request.file, size: self.scenario.workload.bytes };
            self.world.act(client, |now, host, member| {
                if let Member::Client(client) = member {
                    client.ask(now, host, ask);
                }
            });
            if self.scenario.workload.stagger.is_none() {
                self.wait(client);
            }
            self.collect(&requests, &mut transfers, ended);
        }
        for client in self.clients.clone().into_values() {
            self.wait(client);
        }
        self.collect(&requests, &mut transfers, ended);
        transfers.into_values().collect()
    }

    /// Lets time pass until a client has all that it asked for, or has given up.
    fn wait(&mut self, client: usize) {
        let is_busy = |world: &World<Member>| match world.program(client) {
            Member::Client(client) => client.is_busy(),
            _ => false,
        };
        while is_busy(&self.world) && self.world.step().is_some() {}
    }

    fn collect(
        &mut self,
        requests: &[Request],
        transfers: &mut BTreeMap<usize, Transfer>,
        ended: &mut impl FnMut(&Transfer),
    ) {
        for machine in self.clients.values() {
            let poll = |_, _: &mut Host, member: &mut Member| match member {
                Member::Client(client) => client.poll_done(),
                _ => None,
            };
            while let Some(got) = self.world.act(*machine, poll) {
                let number = got.ask.number;
                let transfer = transfer(self.scenario, requests, got);
                ended(&transfer);
                transfers.insert(number, transfer);
            }
        }
    }

    fn snapshot(&self) -> Snapshot {
        let medium = self.world.medium();
        let stations = (0..self.scenario.routers.len()).map(|it| Station(it as u16));
        Snapshot {
            stations: stations.map(|it| medium.report(it).clone()).collect(),
            from_origin: self.world.carried(self.origin)[0],
            ip_packets: self.world.counters().packets_sent,
        }
    }
}

/// What has been counted up to a moment.
struct Snapshot {
    stations: Vec<Report>,
    from_origin: u64,
    ip_packets: u64,
}

fn transfer(scenario: &Scenario, requests: &[Request], got: Got) -> Transfer {
    let request = requests[got.ask.number];
    let router = |giver| (0..scenario.routers.len()).find(|it| name(scenario, *it) == giver);
    let giver = source::giver(&got.cache_status).and_then(router);
    let asked_before = requests[..got.ask.number].contains(&request);
    let source = Source::of(giver, request.receiver, scenario.gateway, asked_before);
    let seconds = got.took.as_secs_f64();
    Transfer {
        client: scenario.routers[request.receiver].name.clone(),
        hops: scenario.hops(request.receiver),
        url: format!("http://{ORIGIN}{}", crate::hosts::content::path(request.file)),
        bytes: got.bytes,
        ttfb_s: got.first_byte.unwrap_or_default().as_secs_f64(),
        seconds,
        kbps: if seconds > 0.0 { got.bytes as f64 * 8.0 / seconds / 1000.0 } else { 0.0 },
        source: got.failure.is_none().then_some(source),
        bytes_by_source: BTreeMap::from([(source.name().to_owned(), got.bytes)]),
        sha256_ok: got.is_right,
        error: got.failure,
    }
}

fn result(
    scenario: &Scenario,
    scheme: Scheme,
    seed: u64,
    transfers: Vec<Transfer>,
    [before, after]: [&Snapshot; 2],
) -> RunResult {
    let sum = |count: fn(&Report) -> u64| {
        let total = |snapshot: &Snapshot| snapshot.stations.iter().map(count).sum::<u64>();
        total(after) - total(before)
    };
    let of_gateway = |snapshot: &Snapshot| snapshot.stations[scenario.gateway].mac_bytes_sent;
    let packets = after.ip_packets - before.ip_packets;
    RunResult {
        scenario: scenario.name.clone(),
        scheme: scheme.name().to_owned(),
        seed,
        mode: "sim".to_owned(),
        valid: true,
        gateway: Gateway {
            bytes_from_origin: after.from_origin - before.from_origin,
            bytes_over_air: of_gateway(after) - of_gateway(before),
        },
        radio: Radio {
            receiver: scenario.key("receiver").to_owned(),
            reception: scenario.key("reception").to_owned(),
            data_frames: sum(|report| report.data_frames),
            control_frames: sum(|report| report.control_frames),
            airtime_seconds: sum(|report| report.airtime.as_nanos() as u64) as f64 / 1e9,
            packets_per_file: packets as f64 / transfers.len().max(1) as f64,
            routing_packets: 0,
            late_ms_p99: 0.0,
        },
        share_by_source: source::shares(&transfers),
        transfers,
        wall_seconds: 0.0,
    }
}

/// The network stack of all machines: as the scenario says, but that no acknowledgement waits for longer
/// than with Linux, for which the daemon is made. With a fifth of a second, as in ns-3, each lone segment
/// of the origin would look like an origin that pauses.
fn config(scenario: &Scenario) -> net::Config {
    let delayed_ack_timeout = scenario.tcp.delayed_ack_timeout.min(DELAYED_ACK);
    let tcp = net::tcp::Config { delayed_ack_timeout, ..scenario.tcp };
    net::Config { tcp, ..net::Config::default() }
}

/// A router's name in what caches say of themselves, as in the lab.
fn name(scenario: &Scenario, router: usize) -> String {
    format!("router-{}", scenario.routers[router].name)
}

/// A router's way to the gateway, along the static routes.
fn table(scenario: &Scenario, router: usize) -> RouteTable {
    let interface = |name: &str, index| Interface { name: name.to_owned(), index };
    let gateway = IpAddr::V4(address(scenario.gateway));
    if router == scenario.gateway {
        return RouteTable::Gateway(Uplink {
            address: Some(gateway),
            interface: Some(interface("eth0", 2)),
            source: RouteSource::Kernel,
        });
    }
    let Some(next_hop) = scenario.next_hop(router, scenario.gateway) else {
        return RouteTable::Nowhere;
    };
    RouteTable::Mesh(Route {
        next_hop: IpAddr::V4(address(next_hop)),
        interface: interface("wl0", 3),
        gateway: Some(gateway),
        metric: None,
        hops: u32::try_from(scenario.hops(router)).ok(),
        source: RouteSource::Config,
    })
}

impl Program for Member {
    fn start(&mut self, now: Instant, host: &mut Host) {
        match self {
            Self::Router(router) => router.start(now, host),
            Self::Client(client) => client.start(now, host),
            Self::Origin(origin) => origin.start(now, host),
            Self::Plain => {}
        }
    }

    fn handle_event(&mut self, now: Instant, host: &mut Host, event: Event) {
        match self {
            Self::Router(router) => router.handle_event(now, host, event),
            Self::Client(client) => client.handle_event(now, host, event),
            Self::Origin(origin) => origin.handle_event(now, host, event),
            Self::Plain => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant, host: &mut Host) {
        match self {
            Self::Router(router) => router.handle_timeout(now, host),
            Self::Client(client) => client.handle_timeout(now, host),
            Self::Origin(origin) => origin.handle_timeout(now, host),
            Self::Plain => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Router(router) => router.poll_timeout(),
            Self::Client(client) => client.poll_timeout(),
            Self::Origin(origin) => origin.poll_timeout(),
            Self::Plain => None,
        }
    }
}
