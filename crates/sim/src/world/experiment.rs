//! Runs flows or fetches, of a scenario or of a setup given directly, from beginning to end.

use std::net::SocketAddrV4;
use std::time::Duration;

use radio::Links;
use wire::Instant;

use super::fetches::{self, Client, Fetcher, Server};
use super::flow_outcome::{FlowOutcome, kbps};
use super::flows::{self, Flow, Kind};
use super::outcome::{Fetches, LinkPlane, Outcome};
use super::times::Times;
use super::{Program, Routes, Tap, World, address};
use crate::losses::AboveMac;
use crate::net::tcp::{self, End};
use crate::net::{self, Host};
use crate::scenario::{self, Changes, FlowKind, ListedFlow, Load, Plane, Scenario, Traffic};

/// Numbers of the streams that derive the seeds of hosts and clients from a run's seed.
const HOSTS: u16 = 1;
const CLIENTS: u16 = 2;
const FLOWS: u16 = 3;

/// Largest number of hops of a packet (the TTL of [`net::Config`]).
pub const HOPS_MAX: usize = 64;
/// A flow without any data has failed if it lasted this long or for the whole run.
const FLOW_MIN: Duration = Duration::from_secs(1);
/// A client's first fetch has failed once nothing has arrived for this long,
const TIMEOUT: Duration = Duration::from_secs(5);
/// and a later fetch after this long: under contention, TCP's back-off alone can take ten seconds.
const STALL_TIMEOUT: Duration = Duration::from_secs(20);

/// The machines and links of a run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The stations' rates and queues.
    pub radio: radio::Config,
    /// Which stations hear each other.
    pub links: Links,
    /// How links and routes change, if they do.
    pub changes: Option<Changes>,
    /// The routes between any two stations, at the beginning.
    pub routes: Routes,
    /// The engines under IP.
    pub plane: Plane,
    /// The probability that a station loses a packet above its MAC.
    pub loss_above_mac: f64,
    /// TCP settings of the machines.
    pub tcp: tcp::Config,
    /// The machines' names for error messages.
    pub names: Vec<String>,
    /// Duration of the run.
    pub lasts: Duration,
}

impl Setup {
    /// The setup of a scenario, with its routes.
    pub fn of(scenario: &Scenario) -> Self {
        Self {
            radio: scenario.radio.clone(),
            links: scenario.links.clone(),
            changes: scenario.changes.clone(),
            routes: Routes::of(scenario),
            plane: scenario.plane.clone(),
            loss_above_mac: scenario.loss_above_mac,
            tcp: scenario.tcp,
            names: scenario.routers.iter().map(|router| router.name.clone()).collect(),
            lasts: scenario.load.lasts,
        }
    }

    /// A world of these machines, all stations, that run these programs.
    pub fn world<P: Program>(&self, seed: u64, programs: Vec<P>) -> World<P> {
        let config = net::Config { tcp: self.tcp, ..net::Config::default() };
        let host =
            |machine| Host::new(config, &[address(machine)], scenario::seed(seed, machine, HOSTS));
        let machines = programs.into_iter().enumerate().map(|(it, program)| (host(it), program));
        let (radio, links, routes) = (self.radio.clone(), self.links.clone(), self.routes.clone());
        let mut world = World::new(radio, links, routes, seed, machines.collect());
        world.set_link_planes(&self.plane);
        world.lose_above_mac(AboveMac::new(self.loss_above_mac, self.links.stations(), seed));
        if let Some(changes) = &self.changes {
            world.change(changes.clone(), self.links.clone(), seed);
        }
        world
    }

    /// Runs flows.
    pub fn run_flows(&self, flows: &[Flow], seed: u64, watch: Option<Box<dyn Tap>>) -> Outcome {
        let moved = flows::out_of_step(flows, scenario::seed(seed, 0, FLOWS));
        let endpoints = flows::endpoints(self.links.stations(), &moved, seed);
        let mut world = self.world(seed, endpoints);
        watch.into_iter().for_each(|it| world.watch(it));
        world.run(Instant::ZERO + self.lasts);
        let mut outcome = self.common(&world, seed);
        outcome.flows = self.flow_outcomes(flows, &world);
        outcome.flow_kbps = outcome.flows.iter().map(|it| kbps(it.bytes, self.lasts)).collect();
        outcome.goodput_kbps = outcome.flow_kbps.iter().sum();
        let (mut variation, mut variations) = (Duration::ZERO, 0);
        for sink in world.programs().flat_map(flows::Endpoint::sinks) {
            variation += sink.arrivals.variations().sum();
            variations += sink.arrivals.variations().count();
        }
        outcome.delay_variation_ms = Some(variation.as_secs_f64() * 1e3 / variations.max(1) as f64);
        let mut ended = vec![None; flows.len()];
        for (number, end) in world.programs().flat_map(flows::Endpoint::ended) {
            ended[number] = Some(end);
        }
        let mut routes = world.routes().clone();
        // A flow that has just begun is not expected to have delivered data yet.
        let enough = FLOW_MIN.min(self.lasts);
        for (number, flow) in flows.iter().enumerate() {
            let had = flow.lasted(world.now());
            let silent = outcome.flow_kbps[number] == 0.0;
            let why = match ended[number] {
                // A flow with an end closes its connection there.
                Some(End::Done) if flow.ends.is_some() && !silent => continue,
                Some(end) => words(end),
                None if had == Duration::ZERO => "it never began, as the run was over",
                None if silent && had >= enough => "nothing arrived",
                // No route is left, although the flow may have delivered data before.
                None if is_apart(&mut routes, flow.from, flow.to) => "it was cut off",
                None => continue,
            };
            let (from, to) = (&self.names[flow.from], &self.names[flow.to]);
            let cause = cause(&mut routes, flow.from, flow.to);
            outcome.failed.push(format!("flow {} from {from} to {to}: {why}{cause}", number + 1));
        }
        outcome
    }

    /// What each flow has achieved so far.
    fn flow_outcomes(&self, flows: &[Flow], world: &World<flows::Endpoint>) -> Vec<FlowOutcome> {
        let (mut sources, mut sinks) = (vec![None; flows.len()], vec![None; flows.len()]);
        for endpoint in world.programs() {
            endpoint.sources().iter().for_each(|it| sources[it.number] = Some(it));
            endpoint.sinks().iter().for_each(|it| sinks[it.number] = Some(it));
        }
        let ends = sources.into_iter().zip(sinks).map(|(source, sink)| source.zip(sink));
        let each = flows.iter().zip(ends.flatten());
        let names = |flow: &Flow| [flow.from, flow.to].map(|it| self.names[it].as_str());
        each.map(|(flow, (source, sink))| {
            let tcp = source.sending(world.now(), world.host(flow.from));
            FlowOutcome::of(flow, names(flow), source, sink, tcp, world.now())
        })
        .collect()
    }

    /// Runs fetches of some machines from a server.
    pub fn run_fetches(
        &self,
        fetching: &Fetching,
        seed: u64,
        watch: Option<Box<dyn Tap>>,
    ) -> Outcome {
        let server = SocketAddrV4::new(address(fetching.server), fetches::PORT);
        let program = |machine: usize| {
            if machine == fetching.server {
                Fetcher::Server(Server::new(fetching.bytes))
            } else if fetching.clients.contains(&machine) {
                let seed = scenario::seed(seed, machine, CLIENTS);
                let client = Client::new(server, fetching.bytes, fetching.think, seed);
                Fetcher::Client(Box::new(client))
            } else {
                Fetcher::Idle
            }
        };
        let programs = (0..self.links.stations()).map(program).collect();
        let mut world = self.world(seed, programs);
        watch.into_iter().for_each(|it| world.watch(it));
        world.run(Instant::ZERO + self.lasts);
        let mut outcome = self.common(&world, seed);
        let mut routes = world.routes().clone();
        let (mut times, mut got) = (Times::default(), 0);
        for (machine, program) in world.programs().enumerate() {
            let Fetcher::Client(client) = program else { continue };
            got += client.bytes();
            times.add(client.times());
            let is_apart = is_apart(&mut routes, fetching.server, machine);
            for what in failed(client, &self.names[machine], world.now(), is_apart) {
                outcome.failed.push(what + cause(&mut routes, fetching.server, machine));
            }
        }
        // In a short run no client may have waited long enough to count as failed.
        if got == 0 && outcome.failed.is_empty() {
            let clients = fetching.clients.len();
            outcome.failed.push(format!("none of {clients} clients got anything"));
        }
        outcome.goodput_kbps = kbps(got, self.lasts);
        outcome.fetches = Some(Fetches::of(&times));
        outcome
    }

    /// The part of the outcome that does not depend on the kind of traffic.
    fn common<P: Program>(&self, world: &World<P>, seed: u64) -> Outcome {
        let (counters, total) = (world.counters(), world.medium().total());
        let drops = counters.drops;
        let planes: Vec<_> = world.link_planes().map(|(_, counters)| counters).collect();
        let deviation = world.farthest_deviation();
        Outcome {
            seed,
            link_plane: (!planes.is_empty()).then(|| LinkPlane::of(&planes, deviation)),
            retry_drops: drops.retries,
            queue_drops: drops.queue_source + drops.queue_relays,
            queue_drops_source: drops.queue_source,
            queue_drops_relays: drops.queue_relays,
            above_mac_drops: (self.loss_above_mac > 0.0).then_some(drops.above_mac),
            expired: world.expired(),
            data_frames: total.data_frames,
            data_fail_share: total.data_frames_failed as f64 / total.data_frames.max(1) as f64,
            simulated_seconds: self.lasts.as_secs_f64(),
            events: counters.events,
            ..Outcome::default()
        }
    }
}

/// Whether there is no route from one to the other.
fn is_apart(routes: &mut Routes, from: usize, to: usize) -> bool {
    from != to && routes.next_hop(from, to).is_none()
}

/// Why packets between two machines do not arrive, if routes show it.
fn cause(routes: &mut Routes, from: usize, to: usize) -> &'static str {
    if is_apart(routes, from, to) {
        return ": at the end there was no route";
    }
    let mut next = |at: usize| routes.next_hop(at, to).filter(|_| at != to);
    let ways = std::iter::successors(Some(from), |at| next(*at));
    if ways.take(HOPS_MAX + 2).count() > HOPS_MAX + 1 {
        ": more than 64 hops, after which packets expire"
    } else {
        ""
    }
}

/// A client's failed fetches, and its current one if that has stalled. If the client has no route any more, a
/// fetch without data at the end of the run counts as stalled.
fn failed(client: &Client, name: &str, now: Instant, is_apart: bool) -> Vec<String> {
    let mut failed: Vec<_> = client
        .failed()
        .iter()
        .map(|(number, end)| format!("fetch {number} of {name}: {}", words(*end)))
        .collect();
    let others = client.failures() - failed.len() as u64;
    if others > 0 {
        failed.push(format!("{others} more fetches of {name}"));
    }
    let waits = client.waiting().map_or(Duration::ZERO, |since| now - since);
    let timeout = match client.bytes() {
        _ if is_apart => Duration::ZERO,
        0 => TIMEOUT,
        _ => STALL_TIMEOUT,
    };
    if waits > timeout {
        let (number, seconds) = (client.ended() + 1, waits.as_secs_f64());
        failed.push(format!("fetch {number} of {name}: nothing arrived for {seconds:.1} s"));
    }
    failed
}

/// The fetches of a run.
#[derive(Clone, Debug)]
pub struct Fetching {
    /// The server's machine.
    pub server: usize,
    /// The clients' machines.
    pub clients: Vec<usize>,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Mean think time from the end of a fetch to the next.
    pub think: Duration,
}

/// A world of a scenario's routers and its static routes, without clients or origin.
pub fn world<P: Program>(scenario: &Scenario, seed: u64, programs: Vec<P>) -> World<P> {
    Setup::of(scenario).world(seed, programs)
}

/// Runs a scenario's flows or fetches. `None` if its traffic is files of an origin. `watch` sees all frames.
pub fn run(scenario: &Scenario, seed: u64, watch: Option<Box<dyn Tap>>) -> Option<Outcome> {
    let setup = Setup::of(scenario);
    match scenario.traffic {
        Traffic::Files | Traffic::Pages => None,
        Traffic::Tcp | Traffic::Udp => {
            // Flows that differ only in their receivers, and may be thousands, are not listed.
            let outcome = setup.run_flows(&flows_of(scenario), seed, watch);
            Some(Outcome { flows: Vec::new(), ..outcome })
        }
        Traffic::Flows => Some(setup.run_flows(&flows_of(scenario), seed, watch)),
        Traffic::Fetches => {
            let fetching = Fetching {
                server: scenario.gateway,
                clients: scenario.receivers.clone(),
                bytes: scenario.workload.bytes,
                think: scenario.load.think,
            };
            Some(setup.run_fetches(&fetching, seed, watch))
        }
    }
}

/// A scenario's flows: those that it lists; else from the gateway to each receiver, started one after the other.
pub fn flows_of(scenario: &Scenario) -> Vec<Flow> {
    let load = &scenario.load;
    let kind = match scenario.traffic {
        Traffic::Flows => return scenario.flows.iter().map(|it| listed(it, load)).collect(),
        Traffic::Udp => Kind::Udp { bits_per_second: load.offered_bps },
        _ => Kind::Tcp,
    };
    let receivers = (0..load.flows).flat_map(|_| scenario.receivers.iter().copied());
    let flow = |(number, to): (usize, usize)| {
        let starts = Instant::ZERO + load.stagger.saturating_mul(number as u32);
        Flow { from: scenario.gateway, to, starts, ends: None, kind }
    };
    receivers.enumerate().map(flow).collect()
}

/// A flow that a scenario lists.
fn listed(flow: &ListedFlow, load: &Load) -> Flow {
    let bytes = load.datagram_bytes;
    let kind = match flow.kind {
        FlowKind::Tcp => Kind::Tcp,
        FlowKind::Cbr { bits_per_second } => Kind::Cbr { bits_per_second, bytes },
        FlowKind::Vbr { bits_per_second } => Kind::Vbr { bits_per_second, bytes },
        FlowKind::Ssh => Kind::Ssh,
    };
    let at = |after: Duration| Instant::ZERO + after;
    let (starts, ends) = (at(flow.starts), flow.ends.map(at));
    Flow { from: flow.from, to: flow.to, starts, ends, kind }
}

fn words(end: End) -> &'static str {
    match end {
        End::Done => "it was closed",
        End::Refused => "it was refused",
        End::Reset => "it was reset",
        End::TimedOut => "no answer came for too long",
        End::Aborted => "it could not begin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_go_as_far_as_their_ttl_says() {
        assert_eq!(HOPS_MAX, usize::from(net::Config::default().ttl));
    }
}
