//! One run: a chain or a cross, its flows, and who paces.

use report::provenance::Setting;
use sim::scenario::Scenario;
use sim::world::{FlowOutcome, Outcome, Setup, flows_of};

use super::COLUMNS;
use crate::experiment::{Key, Point};

/// What paces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Series {
    /// Its name in tables.
    pub name: &'static str,
    /// The value of the key `pace`.
    pub pace: &'static str,
    /// Whether ACKs are thinned, where `pace` allows it.
    pub thins: bool,
}

/// Nothing paces.
pub(super) const BASIC: Series = Series { name: "basic", pace: "off", thins: false };
/// The thesis's pacing.
pub(super) const WINE: Series = Series { name: "wine", pace: "wine", thins: false };
/// Ours, without thinning.
pub(super) const OURS: Series = Series { name: "ours", pace: "on", thins: false };
/// Ours, whole.
pub(super) const THINNED: Series = Series { name: "ours, ACKs thinned", pace: "on", thins: true };

/// A place where the experiments run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ground {
    pub scenario: &'static str,
    /// The interlay nodes, as the key `interlay` has them; empty: all.
    pub interlay: &'static str,
}

/// The chain, with the nodes of figure 5.1.
pub(super) const CHAIN: Ground = Ground { scenario: "wine-chain", interlay: "0 3 6 8" };

/// A run but for its seed.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub ground: Ground,
    pub series: Series,
    /// The flows, as the key `between` has them.
    pub between: String,
    /// How long it runs, in seconds.
    pub seconds: u32,
    /// More keys.
    pub keys: &'static [(&'static str, &'static str)],
}

impl Case {
    /// The point of this case.
    pub fn point(self, panel: &'static str, x: f64, rank: usize) -> Point {
        let key = Key { panel, series: self.series.name, x, rank };
        let case = self.clone();
        Point::single(key, move |seed| self.run(seed)).within(move |seed| case.setting(seed))
    }

    /// Its scenario.
    pub fn scenario(&self, seed: u64) -> Result<Scenario, String> {
        let seconds = self.seconds.to_string();
        let mut settings =
            vec![("between", &self.between[..]), ("seconds", &seconds), ("pace", self.series.pace)];
        if self.series.pace != "off" && !self.ground.interlay.is_empty() {
            settings.push(("interlay", self.ground.interlay));
        }
        settings.extend(self.keys);
        let settings: Vec<_> =
            settings.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Scenario::load_seeded(self.ground.scenario, &settings, seed).map_err(|it| it.to_string())
    }

    fn setting(&self, seed: u64) -> Result<Setting, String> {
        let mut setting = self.scenario(seed)?.setting(None);
        setting.keys.insert("ACKs are thinned".to_owned(), self.series.thins.to_string());
        Ok(setting)
    }

    fn run(&self, seed: u64) -> Result<Vec<f64>, String> {
        let scenario = self.scenario(seed)?;
        let mut setup = Setup::of(&scenario);
        if let Some(pace) = &mut setup.plane.pace {
            pace.thin_acks &= self.series.thins;
        }
        Ok(figures(&setup.run_flows(&flows_of(&scenario), seed, None)))
    }
}

/// The figures of a run, in the order of the columns. What the flows do not have is NaN.
fn figures(outcome: &Outcome) -> Vec<f64> {
    let bytes: u64 = outcome.flows.iter().map(|it| it.bytes).sum();
    let paced = outcome.link_plane.clone().unwrap_or_default();
    let of_first = |each: fn(&FlowOutcome) -> Option<f64>| {
        outcome.flows.iter().find_map(each).unwrap_or(f64::NAN)
    };
    let figures = vec![
        bytes as f64 / 1e6,
        (outcome.retry_drops + outcome.queue_drops_relays) as f64,
        (outcome.queue_drops_source + paced.queue_drops) as f64,
        of_first(|it| it.delay_variation_ms.map(|it| it.mean)),
        of_first(|it| it.delay_variation_ms.map(|it| it.p95)),
        of_first(|it| it.ssh.as_ref().map(|it| lost(it.keys, it.echoes))),
        of_first(|it| it.ssh.as_ref().map(|_| it.kbps)),
        of_first(|it| it.ssh.as_ref()?.echo_ms.map(|it| it.p95)),
    ];
    debug_assert_eq!(figures.len(), COLUMNS.len());
    figures
}

/// What part of the key strokes had no echo when the run ended, in per cent.
fn lost(keys: u64, echoes: u64) -> f64 {
    100.0 * keys.saturating_sub(echoes) as f64 / keys.max(1) as f64
}
