//! Reconstruction, section 6.2: one transfer at a time with empty caches. All routers but the two ends
//! listen.

use super::{Testbed, row};
use crate::experiment::{Key, Outcome, Point, Trial, trial};
use sim::observers::Made;
use sim::scenario::{self, Scenario, Units};
use wire::Scheme;

/// Number of the random stream of transfers to a receiver.
const TRANSFERS: u16 = 9;

/// How the file is sent while routers listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The name on the page and in CSV.
    pub series: &'static str,
    /// Hop by hop, or over one connection from end to end.
    pub scheme: Scheme,
    /// The size of chunks.
    pub units: Units,
}

/// Ditto's way, hop by hop; and the same chunks over one connection from the gateway to the receiver. With
/// empty caches the routers' stores make no difference.
pub(super) const WAYS: [Way; 3] = [
    Way { series: DITTO, scheme: Scheme::PhThcp, units: Units::Fine },
    Way { series: COARSE, scheme: Scheme::PhThcp, units: Units::Coarse },
    Way { series: END_TO_END, scheme: Scheme::Thcp, units: Units::Fine },
];

/// Hop by hop, with chunks of 8 KiB.
pub(super) const DITTO: &str = "ditto";
/// Hop by hop, with chunks of 32 KiB.
pub(super) const COARSE: &str = "ditto 32 KiB";
pub(super) const END_TO_END: &str = "end-to-end";

impl Way {
    /// A point for each receiver of a testbed, with `settings` in addition.
    pub fn points(
        self,
        testbed: &Testbed,
        panel: &'static str,
        settings: &[(&'static str, String)],
        rank: usize,
    ) -> Vec<Point> {
        let point = |receiver: &&'static str| {
            let (scenario, receiver) = (testbed.scenario, *receiver);
            let x = receiver.parse().unwrap_or(f64::NAN);
            let key = Key { panel, series: self.series, x, rank };
            let own = [("receivers", receiver.to_owned()), ("units", self.units.name().to_owned())];
            let keys = settings.iter().cloned().chain(own);
            let settings: Vec<_> = keys.map(|(key, value)| (key.to_owned(), value)).collect();
            let trial = move |seed| self.trial(scenario, settings.clone(), seed);
            Point::tried(key, trial, observers)
        };
        testbed.receivers.iter().map(point).collect()
    }

    fn trial(
        self,
        scenario: &'static str,
        settings: Vec<(String, String)>,
        seed: u64,
    ) -> Result<Trial, String> {
        let mut trial = Trial { scenario, settings, scheme: self.scheme, seed, is_observed: true };
        trial.seed = chance(&trial.scenario()?, seed);
        Ok(trial)
    }

    /// A row for each observer of the transfer to a scenario's first receiver, in virtual time.
    pub fn watch(self, scenario: &Scenario, seed: u64) -> Result<Vec<Vec<f64>>, String> {
        let mut scenario = scenario.clone();
        scenario.variant.units = self.units;
        let seed = chance(&scenario, seed);
        Ok(observers(&scenario, &trial::simulate(&scenario, self.scheme, seed, true)?))
    }
}

/// A seed of its own for each receiver's transfer.
fn chance(scenario: &Scenario, seed: u64) -> u64 {
    scenario::seed(seed, scenario.receivers[0], TRANSFERS)
}

/// A row for each observer of the one transfer.
fn observers(scenario: &Scenario, outcome: &Outcome) -> Vec<Vec<f64>> {
    let receiver = scenario.receivers[0];
    let path = scenario.path(receiver);
    let cut = outcome.result.gateway.units_cut;
    let all = outcome.observers.iter().enumerate();
    let listeners = all.filter(|(it, _)| *it != receiver && *it != scenario.gateway);
    let transfer = &outcome.result.transfers[0];
    let observer = |(observer, [whole, first, alone]): (usize, &[Made; 3])| {
        let efficiency = |made: &Made| percent(made.chunks as u64, cut);
        let overhead = |made: &Made| percent(made.unused_bytes, made.payload_bytes);
        row(&[
            ("node", scenario.routers[observer].name.parse().unwrap_or(f64::NAN)),
            ("relay", f64::from(u8::from(path.contains(&observer)))),
            ("chunks", cut as f64),
            ("heard_kb", whole.payload_bytes as f64 / 1e3),
            ("efficiency", efficiency(whole)),
            ("overhead", overhead(whole)),
            ("efficiency_first", efficiency(first)),
            ("overhead_first", overhead(first)),
            ("efficiency_alone", efficiency(alone)),
            ("overhead_alone", overhead(alone)),
            ("kbps", transfer.kbps),
            ("whole", f64::from(u8::from(transfer.sha256_ok))),
        ])
    };
    listeners.map(observer).collect()
}

/// A part in per cent; 0 of nothing.
fn percent(part: u64, whole: u64) -> f64 {
    if whole > 0 { 100.0 * part as f64 / whole as f64 } else { 0.0 }
}
