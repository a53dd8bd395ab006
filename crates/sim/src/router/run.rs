//! A scenario's clients fetch its files under one of the schemes: what the lab does in real time.
//!
//! *Who calls it:* the lab's program, and experiments. *Where to start:* [`run`].

use std::collections::BTreeMap;

pub use node::Event;
use node::Recent;
use node::uplink::PairReport;
use radio::{Report, Station};
use wire::{Instant, Scheme};

use super::browse::browse;
use super::mesh::{Member, Mesh, name};
pub use super::mesh::{Options, RunError, Watchers};
use crate::hosts::{Ask, BEGIN, Got};
use crate::net::Host;
use crate::result::source::{self, BytesBySource, ServedBy};
use crate::result::{Gateway, Radio, RunResult, Transfer};
use crate::scenario::{FarEnd, Request, Scenario, Traffic};
use crate::world::World;

/// Runs a scenario's requests. `ended` is called with each transfer as it ends. `wall_seconds` of the result
/// stays 0, since this crate reads no clock.
///
/// # Errors
///
/// Errors of a router's store; a store in memory has none.
pub fn run(
    scenario: &Scenario,
    scheme: Scheme,
    seed: u64,
    options: Options,
    watchers: Watchers,
    mut ended: impl FnMut(&Transfer),
) -> Result<RunResult, RunError> {
    if scenario.traffic == Traffic::Pages {
        let browsed = browse(scenario, scheme, seed, options, watchers, &mut ended)?;
        return Ok(browsed.result);
    }
    let mut mesh = Mesh::build(scenario, scheme, seed, options)?;
    mesh.watch(watchers);
    mesh.meet(scheme);
    Ok(mesh.play(scheme, seed, &mut ended))
}

impl Mesh<'_> {
    /// Runs all requests from now on, and gives the result.
    pub fn play(
        &mut self,
        scheme: Scheme,
        seed: u64,
        ended: &mut impl FnMut(&Transfer),
    ) -> RunResult {
        let before = self.snapshot();
        let transfers = self.transfer(seed, ended);
        let after = self.snapshot();
        result(self.scenario, scheme, seed, transfers, [&before, &after])
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
            self.given_before = self.given_by_gateway();
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

    /// Lets time pass until a client's transfer has ended.
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
                let request = requests[number];
                let asked_before = requests[..number].contains(&request);
                let mut transfer = transfer(self.scenario, request, asked_before, got);
                if let Some(given) = self.given(request) {
                    let head = transfer.source.unwrap_or(ServedBy::Gateway);
                    let (access, gateway) = (request.receiver, self.scenario.gateway);
                    let here = ServedBy::access(access, gateway, asked_before);
                    transfer.bytes_by_source = given.by_source(head, here, transfer.bytes);
                }
                ended(&transfer);
                transfers.insert(number, transfer);
            }
        }
    }

    /// What an overhearing router reports of its client's latest transfer.
    fn given(&self, request: Request) -> Option<BytesBySource> {
        let Member::Router(router) = self.world.program(request.receiver) else { return None };
        let path = crate::hosts::content::path(request.file);
        let report = router.overhears().then(|| router.report())?;
        let recent = report.recent.into_iter().rev().find(|it| it.uri.ends_with(&path))?;
        // While other clients fetch too, the gateway's bytes cannot be told apart.
        let is_alone = self.scenario.workload.stagger.is_none();
        let from_gateway = is_alone.then(|| self.given_by_gateway() - self.given_before);
        let Recent {
            local_bytes, peer_bytes, origin_bytes, overheard_bytes, repaired_bytes, ..
        } = recent;
        Some(BytesBySource {
            local_bytes,
            peer_bytes,
            origin_bytes,
            overheard_bytes,
            repaired_bytes,
            from_gateway,
        })
    }

    fn pair_of_gateway(&self) -> Option<PairReport> {
        match self.world.program(self.scenario.gateway) {
            Member::Router(gateway) => gateway.pair(),
            _ => None,
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let medium = self.world.medium();
        let stations = (0..self.scenario.routers.len()).map(|it| Station(it as u16));
        let [from_origin, to_origin] = self.world.carried(self.outer);
        Snapshot {
            stations: stations.map(|it| medium.report(it).clone()).collect(),
            from_origin,
            to_origin,
            ip_packets: self.world.counters().packets_sent,
            lost_above_mac: self.world.counters().drops.above_mac,
            units_cut: self.report_of_gateway().units_cut,
            pair: self.pair_of_gateway(),
            at: self.world.now(),
        }
    }
}

/// Counters at a moment.
pub(super) struct Snapshot {
    stations: Vec<Report>,
    from_origin: u64,
    to_origin: u64,
    ip_packets: u64,
    lost_above_mac: u64,
    units_cut: u64,
    pair: Option<PairReport>,
    at: Instant,
}

/// The result of a request. `asked_before` says whether clients of its router had requested the same before.
pub(super) fn transfer(
    scenario: &Scenario,
    request: Request,
    asked_before: bool,
    got: Got,
) -> Transfer {
    let router = |giver| (0..scenario.routers.len()).find(|it| name(scenario, *it) == giver);
    let giver = source::giver(&got.cache_status).and_then(router);
    let source = ServedBy::of(giver, request.receiver, scenario.gateway, asked_before);
    let seconds = got.took.as_secs_f64();
    Transfer {
        client: scenario.routers[request.receiver].name.clone(),
        hops: scenario.hops(request.receiver),
        url: format!(
            "http://{}{}",
            scenario.far.origin_name(),
            crate::hosts::content::path(request.file)
        ),
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

pub(super) fn result(
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
        began_unix_s: BEGIN.as_unix() as f64 + before.at.as_nanos() as f64 / 1e9,
        gateway: Gateway {
            bytes_from_origin: after.from_origin - before.from_origin,
            bytes_to_origin: (scenario.far == FarEnd::Pair)
                .then(|| after.to_origin - before.to_origin),
            bytes_over_air: of_gateway(after) - of_gateway(before),
            units_cut: after.units_cut - before.units_cut,
            pair: after.pair,
        },
        radio: Radio {
            receiver: scenario.key("receiver").to_owned(),
            reception: scenario.key("reception").to_owned(),
            data_frames: sum(|report| report.data_frames),
            control_frames: sum(|report| report.control_frames),
            airtime_seconds: sum(|report| report.airtime.as_nanos() as u64) as f64 / 1e9,
            packets_per_file: packets as f64 / transfers.len().max(1) as f64,
            lost_above_mac: (scenario.loss_above_mac > 0.0)
                .then(|| after.lost_above_mac - before.lost_above_mac),
            routing_packets: 0,
            late_ms_p99: 0.0,
        },
        share_by_source: source::shares(&transfers),
        transfers,
        wall_seconds: 0.0,
    }
}
