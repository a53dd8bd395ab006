//! Clients that read pages for an hour or so under one of the schemes, as in MeshCache's section 6.2.
//!
//! *Who calls it:* [`run`](super::run::run), and experiments. *Where to start:* [`browse`].

use std::collections::{BTreeMap, BTreeSet};

use wire::Scheme;

use super::mesh::{Member, Mesh, Options, RunError, Watchers};
use super::run::{result, transfer};
use super::waits::{Waited, Waits};
use super::{Report, StoreSize};
use crate::hosts::Got;
use crate::net::Host;
use crate::result::{RunResult, Transfer};
use crate::scenario::{Request, Scenario};

/// The result of a run whose clients read pages.
#[derive(Clone, Debug)]
pub struct Browsed {
    /// As in other runs; transfers are in the order in which they began.
    pub result: RunResult,
    /// For each transfer, the number of the client behind its router.
    pub readers: Vec<usize>,
    /// What its requests waited for before a peer was asked.
    pub waited: Waited,
    /// What routers were told and asked off the way to the gateway.
    pub found: Found,
    /// Datagrams that routers sent each other, counted at each hop.
    pub datagrams: u64,
    /// Bytes of content that the gateway gave to clients and peers; 0 if it has no engine.
    pub gateway_bytes: u64,
}

impl Browsed {
    /// Average aggregate throughput in kbit/s (MeshCache, section 5): each client's bytes over the time of
    /// its transfers, averaged over clients that got data.
    pub fn aat_kbps(&self) -> f64 {
        let mut clients = BTreeMap::new();
        for (transfer, reader) in self.result.transfers.iter().zip(&self.readers) {
            let (bytes, seconds) =
                clients.entry((&transfer.client, reader)).or_insert((0_u64, 0.0_f64));
            *bytes += transfer.bytes;
            *seconds += transfer.seconds;
        }
        let rates: Vec<_> = clients
            .values()
            .filter(|(_, seconds)| *seconds > 0.0)
            .map(|(bytes, seconds)| *bytes as f64 * 8.0 / seconds / 1e3)
            .collect();
        rates.iter().sum::<f64>() / rates.len().max(1) as f64
    }
}

/// What all routers counted of copies off the way to the gateway, from the beginning of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Messages about copies, counted at each hop.
    pub told: u64,
    /// Ends that name other routers.
    pub redirects: u64,
    /// Requests to routers that were found or named.
    pub located: u64,
    /// Of these, those that did not help.
    pub in_vain: u64,
}

/// Lets a scenario's clients read pages. The scenario decides store size and freshness.
///
/// # Errors
///
/// Errors of a router's store; a store in memory has none.
pub fn browse(
    scenario: &Scenario,
    scheme: Scheme,
    seed: u64,
    options: Options,
    watchers: Watchers,
    ended: &mut impl FnMut(&Transfer),
) -> Result<Browsed, RunError> {
    let browsing = &scenario.browsing;
    let (store, max_age_s) = (StoreSize::lru(browsing.store_bytes), browsing.max_age_s);
    let mut mesh = Mesh::build(scenario, scheme, seed, Options { store, max_age_s, ..options })?;
    let waits = Waits::default();
    mesh.watch(Watchers { events: Some(waits.sink(watchers.events)), ..watchers });
    mesh.meet(scheme);
    waits.take();
    let datagrams = mesh.world.counters().datagrams_sent;
    let (before, given) = (mesh.snapshot(), mesh.given_by_gateway());
    let got = mesh.read();
    let after = mesh.snapshot();
    let gateway_bytes = mesh.given_by_gateway() - given;
    let (mut asked, mut transfers, mut readers) = (BTreeSet::new(), Vec::new(), Vec::new());
    for (receiver, got) in got {
        let request = Request { receiver, file: got.ask.file };
        let is_known = !asked.insert((receiver, got.ask.file));
        readers.push(got.ask.number);
        let transfer = transfer(scenario, request, is_known, got);
        ended(&transfer);
        transfers.push(transfer);
    }
    let result = result(scenario, scheme, seed, transfers, [&before, &after]);
    let (waited, datagrams) = (waits.take(), mesh.world.counters().datagrams_sent - datagrams);
    Ok(Browsed { result, readers, waited, found: mesh.found(), datagrams, gateway_bytes })
}

impl Mesh<'_> {
    /// All transfers, with their routers, in the order of the requests.
    fn read(&mut self) -> Vec<(usize, Got)> {
        let lasts = self.scenario.browsing.lasts;
        let clients: Vec<_> = self.clients.iter().map(|(it, machine)| (*it, *machine)).collect();
        for (_, machine) in &clients {
            self.world.act(*machine, |now, _, member| {
                if let Member::Browser(browser) = member {
                    browser.begin(now, lasts);
                }
            });
        }
        self.world.run(self.world.now() + lasts);
        let is_busy = |mesh: &Self, machine| match mesh.world.program(machine) {
            Member::Browser(browser) => browser.is_busy(),
            _ => false,
        };
        // Transfers in progress run to their end; one that stalls ends when its client gives up.
        for (_, machine) in &clients {
            while is_busy(self, *machine) && self.world.step().is_some() {}
        }
        let mut all = Vec::new();
        for (receiver, machine) in clients {
            let poll = |_, _: &mut Host, member: &mut Member| match member {
                Member::Browser(browser) => browser.poll_done(),
                _ => None,
            };
            while let Some(got) = self.world.act(machine, poll) {
                all.push((receiver, got));
            }
        }
        all.sort_by_key(|(receiver, got)| (got.began, *receiver, got.ask.number));
        all
    }

    fn found(&self) -> Found {
        let mut found = Found::default();
        for router in 0..self.scenario.routers.len() {
            if let Member::Router(it) = self.world.program(router) {
                let report = it.report();
                found.told += report.copies_told;
                found.redirects += report.redirects;
                found.located += report.searches_located;
                found.in_vain += report.searches_in_vain;
            }
        }
        found
    }

    /// Bytes that the gateway's engine has given to clients and peers.
    pub(super) fn given_by_gateway(&self) -> u64 {
        let Report {
            served_local_bytes,
            served_origin_bytes,
            peer_units_out_bytes,
            relayed_opaque_bytes,
            ..
        } = self.report_of_gateway();
        served_local_bytes + served_origin_bytes + peer_units_out_bytes + relayed_opaque_bytes
    }

    /// The counters of the gateway's engine; all zero if it has none.
    pub(super) fn report_of_gateway(&self) -> Report {
        match self.world.program(self.scenario.gateway) {
            Member::Router(gateway) => gateway.report(),
            _ => Report::default(),
        }
    }
}
