//! What all observers of a testbed have reconstructed, seed by seed.

use crate::experiment::{Estimate, Samples};
use report::stats;

/// Observers of one testbed while the file travels in one way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard<'a> {
    samples: &'a Samples,
    panel: &'a str,
    series: &'a str,
}

impl<'a> Heard<'a> {
    pub fn new(samples: &'a Samples, panel: &'a str, series: &'a str) -> Self {
        Self { samples, panel, series }
    }

    /// A figure of every observer of every transfer, by seeds.
    fn by_seed(&self, column: &str) -> Vec<Vec<f64>> {
        self.samples.by_seed(self.panel, self.series, column)
    }

    /// A figure of each observer, the mean over the seeds, as the paper's averages over runs.
    pub fn means(&self, column: &str) -> Vec<f64> {
        let seeds = self.by_seed(column);
        let observers = seeds.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |at| seeds.iter().map(|it| it[at]).sum::<f64>() / seeds.len() as f64;
        (0..observers).map(mean).collect()
    }

    /// The share of observers, in per cent, whose figure is above this.
    pub fn above(&self, column: &str, least: f64) -> Estimate {
        let share = |all: Vec<f64>| {
            100.0 * all.iter().filter(|it| **it > least).count() as f64 / all.len().max(1) as f64
        };
        Estimate::of(&self.by_seed(column).into_iter().map(share).collect::<Vec<_>>())
    }

    /// What this share of observers is at or below.
    pub fn quantile(&self, column: &str, share: f64) -> Estimate {
        quantile(self.by_seed(column).into_iter(), share)
    }

    /// The same among those that heard anything.
    pub fn quantile_of_hearers(&self, column: &str, share: f64) -> Estimate {
        let seeds = self.by_seed(column).into_iter().zip(self.by_seed("heard_kb"));
        let hearers = seeds.map(|(figures, heard)| {
            let heard = figures.into_iter().zip(heard).filter(|(_, heard)| *heard > 0.0);
            heard.map(|(figure, _)| figure).collect()
        });
        quantile(hearers, share)
    }

    /// The mean over all observers of one figure over that of another.
    pub fn ratio(&self, over: &str, under: (&Self, &str)) -> Estimate {
        Estimate::ratio(&self.totals(over), &under.0.totals(under.1))
    }

    fn totals(&self, column: &str) -> Vec<f64> {
        let mean = |all: &Vec<f64>| all.iter().sum::<f64>() / all.len().max(1) as f64;
        self.by_seed(column).iter().map(mean).collect()
    }

    /// The mean of a figure.
    pub fn mean(&self, column: &str) -> Estimate {
        Estimate::of(&self.totals(column))
    }

    /// A figure of one router over all transfers that it observed, mean over the seeds.
    pub fn of_node(&self, node: f64, column: &str) -> Vec<f64> {
        let nodes = self.means("node");
        let figures = self.means(column);
        nodes.iter().zip(figures).filter(|(it, _)| **it == node).map(|(_, it)| it).collect()
    }

    /// The routers that observed something, ascending.
    pub fn nodes(&self) -> Vec<f64> {
        let mut nodes = stats::sorted(self.means("node"));
        nodes.dedup();
        nodes
    }
}

/// The mean over the seeds of what this share of their figures is at or below.
fn quantile(seeds: impl Iterator<Item = Vec<f64>>, share: f64) -> Estimate {
    let of = |all: Vec<f64>| {
        let sorted = stats::sorted(all);
        let place = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    };
    Estimate::of(&seeds.map(of).collect::<Vec<_>>())
}
