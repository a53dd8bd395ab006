//! Throughput, section 6.4: the leaves fetch one file after another's transfer, with what earlier
//! transfers have left in the routers' stores.

use super::super::{Key, Point};
use super::row;
use crate::result::Transfer;
use crate::router::run::{self, Options};
use crate::router::scheme::Scheme;
use crate::scenario::Scenario;

/// Who is served how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    /// As the paper calls it.
    pub series: &'static str,
    /// As we do.
    pub scheme: Scheme,
    /// Half-heard chunks are used.
    pub repair: bool,
}

/// Chunks that were half heard are dropped.
pub(super) const WITHOUT_REPAIR: &str = "ditto without repair";

/// All that are compared, from nothing to everything.
pub(super) const SERVED: [Served; 4] = [
    Served { series: "end-to-end", scheme: Scheme::EndToEnd, repair: false },
    Served { series: "on-path", scheme: Scheme::PhThcp, repair: false },
    Served { series: WITHOUT_REPAIR, scheme: Scheme::Ditto, repair: false },
    Served { series: "ditto", scheme: Scheme::Ditto, repair: true },
];

/// Leaves that ask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaves {
    /// Of ours.
    pub scenario: &'static str,
    /// As the scenario's key `receivers` takes them.
    pub receivers: &'static str,
}

/// In the order in which figure 17 has them, as far as our testbed has such leaves.
pub(super) const EMULAB: Leaves = Leaves { scenario: "emulab8", receivers: "1 2 3 5 7" };
/// The paper's.
pub(super) const MAP: Leaves =
    Leaves { scenario: "map21", receivers: "2 3 5 7 14 15 18 19 25 27 38" };

/// When they ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// One when the other has its file.
    Sequential,
    /// One so many seconds after the other, whatever it has by then.
    Staggered(u32),
}

/// A picture's worth of runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetching {
    /// Its name.
    pub panel: &'static str,
    /// Who asks.
    pub leaves: Leaves,
    /// When.
    pub when: When,
    /// In which orders: 0 as listed, others shuffled by this number.
    pub orders: &'static [u64],
}

impl Fetching {
    /// Each order with each scheme.
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
                Point { key, run: Box::new(move |seed| self.run(served, order, seed)) }
            })
        });
        points.collect()
    }

    fn run(self, served: Served, order: u64, seed: u64) -> Result<Vec<Vec<f64>>, String> {
        let scenario = Scenario::load(self.leaves.scenario, &self.settings(order)?);
        served.run(&scenario.map_err(|error| error.to_string())?, seed)
    }

    /// What the scenario's keys are for that; receivers ask in the order in which they are listed.
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
    keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

impl Served {
    /// What each transfer of a scenario brings.
    pub fn run(self, scenario: &Scenario, seed: u64) -> Result<Vec<Vec<f64>>, String> {
        let options = Options { repair: self.repair, ..Options::default() };
        let result = run::run(scenario, self.scheme, seed, options, None, |_| {})
            .map_err(|error| error.to_string())?;
        let rows = result.transfers.iter().enumerate();
        Ok(rows.map(|(place, transfer)| figures(place, transfer)).collect())
    }
}

/// What a receiver got, and from where.
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
