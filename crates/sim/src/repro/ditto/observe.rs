//! Reconstruction, section 6.2: one transfer at a time with empty caches, and all routers but its ends
//! listen.

use content::Profile;

use super::super::{Key, Point};
use super::{Testbed, row};
use crate::observers::{Listening, Made, Observers};
use crate::router::mesh::{Member, Mesh, Options};
use crate::router::scheme::Scheme;
use crate::scenario::Scenario;
use crate::world;

/// Says which streams of a seed transfers to one receiver have.
const TRANSFERS: u16 = 9;

/// How the file travels while others listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// On the page, and in CSV.
    pub series: &'static str,
    /// Hop by hop, or in one connection.
    pub scheme: Scheme,
    /// How long chunks are.
    pub profile: &'static Profile,
}

/// Ditto's way; and one connection from the gateway to the receiver, chunks and all: with empty caches,
/// a router's store has no part in it.
pub(super) const WAYS: [Way; 3] = [
    Way { series: DITTO, scheme: Scheme::PhThcp, profile: Profile::DEFAULT },
    Way { series: COARSE, scheme: Scheme::PhThcp, profile: Profile::COARSE },
    Way { series: END_TO_END, scheme: Scheme::Thcp, profile: Profile::DEFAULT },
];

/// Chunks of 8 KiB.
pub(super) const DITTO: &str = "ditto";
/// Chunks of 32 KiB.
pub(super) const COARSE: &str = "ditto 32 KiB";
pub(super) const END_TO_END: &str = "end-to-end";

impl Way {
    /// A point for each receiver of a testbed, with other values of keys where `settings` says so.
    pub fn points(
        self,
        testbed: &Testbed,
        panel: &'static str,
        settings: &[(&'static str, String)],
        rank: usize,
    ) -> Vec<Point> {
        let point = |receiver: &&'static str| {
            let (name, receiver) = (testbed.scenario, (*receiver).to_owned());
            let x = receiver.parse().unwrap_or(f64::NAN);
            let key = Key { panel, series: self.series, x, rank };
            let keys = settings.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
            let one = ("receivers".to_owned(), receiver);
            let settings: Vec<_> = keys.chain([one]).collect();
            Point { key, run: Box::new(move |seed| self.observe(name, &settings, seed)) }
        };
        testbed.receivers.iter().map(point).collect()
    }

    /// Each observer of one transfer.
    fn observe(
        self,
        name: &str,
        settings: &[(String, String)],
        seed: u64,
    ) -> Result<Vec<Vec<f64>>, String> {
        let scenario =
            Scenario::load_seeded(name, settings, seed).map_err(|error| error.to_string())?;
        self.watch(&scenario, seed)
    }

    /// Each observer of the transfer to a scenario's first receiver.
    pub fn watch(self, scenario: &Scenario, seed: u64) -> Result<Vec<Vec<f64>>, String> {
        let receiver = scenario.receivers[0];
        let seed = world::seed(seed, receiver, TRANSFERS);
        let options = Options { profile: self.profile, ..Options::default() };
        let mut mesh =
            Mesh::build(scenario, self.scheme, seed, options).map_err(|error| error.to_string())?;
        mesh.meet(self.scheme);
        let observers = Observers::new(scenario.routers.len());
        mesh.world.watch(observers.tap());
        let transfers = mesh.transfer(seed, &mut |_| {});
        let cut = match mesh.world.program(scenario.gateway) {
            Member::Router(gateway) => gateway.report().units_cut,
            _ => 0,
        };
        let path = scenario.path(receiver);
        let all = 0..scenario.routers.len();
        let listeners = all.filter(|it| *it != receiver && *it != scenario.gateway);
        let observer = |observer: usize| {
            let [whole, first, alone] = Listening::ALL.map(|it| observers.made(observer, it));
            let efficiency = |made: Made| percent(made.chunks as u64, cut);
            let overhead = |made: Made| percent(made.unused_bytes, made.payload_bytes);
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
                ("kbps", transfers[0].kbps),
                ("whole", f64::from(u8::from(transfers[0].sha256_ok))),
            ])
        };
        Ok(listeners.map(observer).collect())
    }
}

/// A part in per cent; of nothing, none.
fn percent(part: u64, whole: u64) -> f64 {
    if whole > 0 { 100.0 * part as f64 / whole as f64 } else { 0.0 }
}
