//! Throughput, section 6.4: leaves fetch one file, each after another leaf's transfer, with what earlier
//! transfers have left in the routers' stores.

use super::observe::COARSE;
use super::row;
use crate::experiment::{Key, Outcome, Point, Trial};
use sim::result::Transfer;
use sim::scenario::Scenario;
use wire::Scheme;

/// A scheme under which receivers are served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// Its name in the paper.
    pub series: &'static str,
    /// Our scheme.
    pub scheme: Scheme,
    /// Keys in which routers differ from the defaults.
    pub keys: &'static [(&'static str, &'static str)],
}

pub(super) const ON_PATH: &str = "on-path";
/// Ditto as its paper describes it, which is compared with the paper's figures. Our own variant is "ditto".
pub(super) const PUBLISHED: &str = "ditto-paper";
/// Units overheard in part are dropped.
pub(super) const WITHOUT_REPAIR: &str = "ditto without repair";
/// The paper's "without inter-stream reassembly".
pub(super) const WITHOUT_JOINING: &str = "ditto without joining";
pub(super) const ON_PATH_COARSE: &str = "on-path 32 KiB";

/// All schemes that are compared, from no caching to all features.
pub(super) const SERVED: [Served; 8] = [
    Served { series: "end-to-end", scheme: Scheme::EndToEnd, keys: &[] },
    Served { series: ON_PATH, scheme: Scheme::PhThcp, keys: &[] },
    Served { series: PUBLISHED, scheme: Scheme::Ditto, keys: &[("paper", "ditto")] },
    Served { series: WITHOUT_REPAIR, scheme: Scheme::Ditto, keys: &[("halves", "dropped")] },
    Served { series: WITHOUT_JOINING, scheme: Scheme::Ditto, keys: &[("streams", "alone")] },
    Served { series: "ditto", scheme: Scheme::Ditto, keys: &[] },
    Served { series: ON_PATH_COARSE, scheme: Scheme::PhThcp, keys: &[("units", "32KiB")] },
    Served { series: COARSE, scheme: Scheme::Ditto, keys: &[("units", "32KiB")] },
];

/// Leaves that request the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaves {
    /// The scenario.
    pub scenario: &'static str,
    /// The leaves, as the scenario's key `receivers` takes them.
    pub receivers: &'static str,
}

/// The leaves of figure 17 in its order, as far as our testbed has them.
pub(super) const EMULAB: Leaves = Leaves { scenario: "emulab8", receivers: "1 2 3 5 7" };
/// The paper's leaves.
pub(super) const MAP: Leaves =
    Leaves { scenario: "map21", receivers: "2 3 5 7 14 15 18 19 25 27 38" };

/// When leaves begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Each begins when the one before has its file.
    Sequential,
    /// Each begins this many seconds after the one before.
    Staggered(u32),
}

/// The runs of one picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetching {
    /// Its name.
    pub panel: &'static str,
    /// The leaves that fetch.
    pub leaves: Leaves,
    /// When they begin.
    pub when: When,
    /// Their orders: 0 is the listed order, other numbers are seeds of shuffles.
    pub orders: &'static [u64],
}

impl Fetching {
    /// A point for each order and scheme.
    pub fn points(self, rank: usize) -> Vec<Point> {
        let served = SERVED.into_iter().enumerate();
        let points = served.flat_map(|(place, served)| {
            self.orders.iter().map(move |order| {
                let order = *order;
                let key = Key {
                    panel: self.panel,
                    series: served.series,
                    x: order as f64,
                    rank: rank + place,
                };
                Point::tried(key, move |seed| self.trial(served, &[], order, seed), receivers)
            })
        });
        points.collect()
    }

    /// A trial in one order, with `keys` set in addition.
    pub fn trial(
        self,
        served: Served,
        keys: &[(&str, &str)],
        order: u64,
        seed: u64,
    ) -> Result<Trial, String> {
        let mut settings = self.settings(order)?;
        settings.extend(served.keys.iter().chain(keys).map(|it| setting(*it)));
        let (scenario, scheme) = (self.leaves.scenario, served.scheme);
        Ok(Trial { scenario, settings, scheme, seed, is_observed: false })
    }

    /// The scenario's settings for that. Receivers ask in the order in which they are listed.
    pub fn settings(self, order: u64) -> Result<Vec<(String, String)>, String> {
        let stagger_s = match self.when {
            When::Sequential => 0,
            When::Staggered(seconds) => seconds,
        };
        let mut receivers = self.leaves.receivers.to_owned();
        if order > 0 {
            let keys = settings(&[("receivers", &receivers), ("order", "random")]);
            let shuffled = Scenario::load(self.leaves.scenario, &keys);
            let shuffled = shuffled.map_err(|error| error.to_string())?;
            let requests = shuffled.requests(order).into_iter();
            let names = requests.map(|it| shuffled.routers[it.receiver].name.clone());
            receivers = names.collect::<Vec<_>>().join(" ");
        }
        Ok(settings(&[("receivers", &receivers), ("stagger_s", &stagger_s.to_string())]))
    }
}

fn settings(keys: &[(&str, &str)]) -> Vec<(String, String)> {
    keys.iter().map(|it| setting(*it)).collect()
}

fn setting((key, value): (&str, &str)) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// A row for each transfer of a run.
pub(super) fn receivers(_: &Scenario, outcome: &Outcome) -> Vec<Vec<f64>> {
    let rows = outcome.result.transfers.iter().enumerate();
    rows.map(|(place, transfer)| figures(place, transfer)).collect()
}

/// The figures of one receiver: throughput, and its bytes by source.
fn figures(place: usize, transfer: &Transfer) -> Vec<f64> {
    let share = |source: &str| {
        let bytes = transfer.bytes_by_source.get(source).copied().unwrap_or(0);
        100.0 * bytes as f64 / transfer.bytes.max(1) as f64
    };
    row(&[
        ("node", transfer.client.parse().unwrap_or(f64::NAN)),
        ("place", place as f64 + 1.0),
        ("hops", transfer.hops as f64),
        ("kbps", transfer.kbps),
        ("whole", f64::from(u8::from(transfer.sha256_ok))),
        ("overheard", share("overheard")),
        ("repaired", share("repaired")),
        ("held", share("local") + share("ph-local")),
        ("peers", share("remote")),
        ("gateway", share("gateway")),
        ("origin", share("origin")),
    ])
}
