//! A scenario's flows or fetches, from beginning to end.

use std::net::SocketAddrV4;
use std::time::Duration;

use wire::Instant;

use super::fetches::{self, Client, Fetcher, Server};
use super::flows::{self, Flow, Kind};
use super::outcome::{Fetches, Outcome};
use super::{Program, Routes, World, address};
use crate::net::tcp::End;
use crate::net::{self, Host};
use crate::scenario::{Scenario, Traffic};

/// Says which seed of a machine is whose.
const HOSTS: u16 = 1;
const CLIENTS: u16 = 2;

/// Runs a scenario's flows or fetches; `None` if it has neither, but files of an origin. `watch` may
/// have frames shown.
pub fn run(scenario: &Scenario, seed: u64, watch: Option<Box<dyn super::Tap>>) -> Option<Outcome> {
    match scenario.traffic {
        Traffic::Files => None,
        Traffic::Tcp | Traffic::Udp => Some(run_flows(scenario, seed, watch)),
        Traffic::Fetches => Some(run_fetches(scenario, seed, watch)),
    }
}

/// A world of a scenario's routers, without clients or origin, over its static routes.
pub fn world<P: Program>(scenario: &Scenario, seed: u64, programs: Vec<P>) -> World<P> {
    let config = net::Config { tcp: scenario.tcp, ..net::Config::default() };
    let host =
        |machine: usize| Host::new(config, &[address(machine)], super::seed(seed, machine, HOSTS));
    let machines = programs.into_iter().enumerate().map(|(it, program)| (host(it), program));
    let routes = Routes::over(scenario.routers.len(), scenario.tree_hops());
    let (radio, links) = (scenario.radio.clone(), scenario.links.clone());
    World::new(radio, links, routes, seed, machines.collect())
}

fn run_flows(scenario: &Scenario, seed: u64, watch: Option<Box<dyn super::Tap>>) -> Outcome {
    let flows = flows_of(scenario);
    let mut world = world(scenario, seed, flows::endpoints(scenario.routers.len(), &flows));
    watch.into_iter().for_each(|it| world.watch(it));
    world.run(Instant::ZERO + scenario.load.lasts);
    let mut outcome = common(&world, scenario.load.lasts, seed);
    outcome.flow_kbps = vec![0.0; flows.len()];
    let (mut variation, mut variations) = (Duration::ZERO, 0);
    for sink in world.programs().flat_map(flows::Endpoint::sinks) {
        outcome.flow_kbps[sink.number] = kbps(sink.bytes, scenario.load.lasts);
        let (sum, count) = sink.arrivals.variation();
        variation += sum;
        variations += count;
    }
    outcome.goodput_kbps = outcome.flow_kbps.iter().sum();
    outcome.delay_variation_ms = variation.as_secs_f64() * 1e3 / f64::from(variations.max(1));
    let mut why = vec![None; flows.len()];
    for (number, end) in world.programs().flat_map(flows::Endpoint::ended) {
        why[number] = Some(end);
    }
    for (number, flow) in flows.iter().enumerate() {
        let silent = outcome.flow_kbps[number] == 0.0 && flow.starts < world.now();
        let why = why[number].map(words).or(silent.then_some("nothing arrived"));
        if let Some(why) = why {
            let name = |router: usize| &scenario.routers[router].name;
            let (from, to) = (name(flow.from), name(flow.to));
            outcome.failed.push(format!("flow {} from {from} to {to}: {why}", number + 1));
        }
    }
    outcome
}

/// From the gateway to each receiver, one starting after the other.
fn flows_of(scenario: &Scenario) -> Vec<Flow> {
    let load = &scenario.load;
    let kind = match scenario.traffic {
        Traffic::Udp => Kind::Udp { bits_per_second: load.offered_bps },
        _ => Kind::Tcp,
    };
    let receivers = (0..load.flows).flat_map(|_| scenario.receivers.iter().copied());
    let flow = |(number, to): (usize, usize)| {
        let starts = Instant::ZERO + load.stagger.saturating_mul(number as u32);
        Flow { from: scenario.gateway, to, starts, kind }
    };
    receivers.enumerate().map(flow).collect()
}

fn run_fetches(scenario: &Scenario, seed: u64, watch: Option<Box<dyn super::Tap>>) -> Outcome {
    let bytes = scenario.workload.bytes;
    let server = SocketAddrV4::new(address(scenario.gateway), fetches::PORT);
    let program = |machine: usize| {
        if machine == scenario.gateway {
            Fetcher::Server(Server::new(bytes))
        } else if scenario.receivers.contains(&machine) {
            let seed = super::seed(seed, machine, CLIENTS);
            Fetcher::Client(Box::new(Client::new(server, bytes, scenario.load.think, seed)))
        } else {
            Fetcher::Idle
        }
    };
    let mut world = world(scenario, seed, (0..scenario.routers.len()).map(program).collect());
    watch.into_iter().for_each(|it| world.watch(it));
    world.run(Instant::ZERO + scenario.load.lasts);
    let mut outcome = common(&world, scenario.load.lasts, seed);
    let (mut times, mut got) = (Vec::new(), 0);
    for (machine, program) in world.programs().enumerate() {
        let Fetcher::Client(client) = program else { continue };
        got += client.bytes();
        let name = &scenario.routers[machine].name;
        for (number, fetch) in client.fetches().iter().enumerate() {
            match fetch.failed {
                None => times.push(fetch.lasted.as_secs_f64()),
                Some(end) => {
                    let text = format!("fetch {} of {name}: {}", number + 1, words(end));
                    outcome.failed.push(text);
                }
            }
        }
        if client.fetches().is_empty() && client.fetching().is_some() {
            outcome.failed.push(format!("fetch 1 of {name}: did not end"));
        }
    }
    outcome.goodput_kbps = kbps(got, scenario.load.lasts);
    outcome.fetches = Some(summary(times));
    outcome
}

/// What does not depend on the traffic.
fn common<P: Program>(world: &World<P>, lasts: Duration, seed: u64) -> Outcome {
    let (counters, total) = (world.counters(), world.medium().total());
    let drops = counters.drops;
    Outcome {
        seed,
        retry_drops: drops.retries,
        queue_drops: drops.queue_source + drops.queue_relays,
        queue_drops_source: drops.queue_source,
        queue_drops_relays: drops.queue_relays,
        data_frames: total.data_frames,
        data_fail_share: total.data_frames_failed as f64 / total.data_frames.max(1) as f64,
        simulated_seconds: lasts.as_secs_f64(),
        events: counters.events,
        ..Outcome::default()
    }
}

fn summary(mut times: Vec<f64>) -> Fetches {
    times.sort_by(f64::total_cmp);
    let quantile = |share: f64| {
        let place = (share * times.len() as f64).ceil() as usize;
        times.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
    };
    Fetches {
        count: times.len() as u64,
        mean_s: times.iter().sum::<f64>() / times.len().max(1) as f64,
        p50_s: quantile(0.5),
        p95_s: quantile(0.95),
    }
}

fn kbps(bytes: u64, lasts: Duration) -> f64 {
    bytes as f64 * 8.0 / lasts.as_secs_f64() / 1e3
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
