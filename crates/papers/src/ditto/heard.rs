//! What the observers of a testbed have reconstructed.

use crate::ditto::figure;
use crate::experiment::resample::Series;
use crate::experiment::{Estimate, Samples};
use report::stats;

/// The observers of one testbed while the file is sent in one way.
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

    /// A figure of every observer of every transfer, by seed.
    fn by_seed(&self, column: &str) -> Vec<Vec<f64>> {
        self.samples.by_seed(self.panel, self.series, column)
    }

    /// A figure of each observer, averaged over seeds, as the paper averages over runs.
    pub fn means(&self, column: &str) -> Vec<f64> {
        let seeds = self.by_seed(column);
        let observers = seeds.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |at| seeds.iter().map(|it| it[at]).sum::<f64>() / seeds.len() as f64;
        (0..observers).map(mean).collect()
    }

    /// The series for resampling, by transfer and seed. Observers are part of a transfer.
    fn drawn(&self) -> Series<'a> {
        self.samples.series([self.panel, self.series], None, None)
    }

    /// The share of observers, in per cent, whose figure is above `least`.
    pub fn above(&self, column: &str, least: f64) -> Estimate {
        let share = |all: &[&[f64]]| {
            let above = all.iter().filter(|row| figure(row, column) > least).count();
            100.0 * above as f64 / all.len().max(1) as f64
        };
        self.drawn().mean(share)
    }

    /// A quantile of a figure over all observers.
    pub fn quantile(&self, column: &str, share: f64) -> Estimate {
        self.drawn().mean(|all: &[&[f64]]| quantile(all.iter().map(|it| figure(it, column)), share))
    }

    /// The same, over those observers that heard anything.
    pub fn quantile_of_hearers(&self, column: &str, share: f64) -> Estimate {
        let of = |all: &[&[f64]]| {
            let hearers = all.iter().filter(|row| figure(row, "heard_kb") > 0.0);
            quantile(hearers.map(|row| figure(row, column)), share)
        };
        self.drawn().mean(of)
    }

    /// The mean of one figure over all observers, divided by the mean of another.
    pub fn ratio(&self, over: &str, under: (&Self, &str)) -> Estimate {
        let (above, below) = (self.drawn(), under.0.drawn());
        let below = if self.series == under.0.series { &above } else { &below };
        above.ratio(|all: &[&[f64]]| mean(all, over), below, |all: &[&[f64]]| mean(all, under.1))
    }

    /// The mean of a figure over all observers.
    pub fn mean(&self, column: &str) -> Estimate {
        self.drawn().mean(|all: &[&[f64]]| mean(all, column))
    }

    /// A figure of one router over all transfers that it observed, averaged over seeds.
    pub fn of_node(&self, node: f64, column: &str) -> Vec<f64> {
        let nodes = self.means("node");
        let figures = self.means(column);
        nodes.iter().zip(figures).filter(|(it, _)| **it == node).map(|(_, it)| it).collect()
    }

    /// The routers that observed anything, ascending.
    pub fn nodes(&self) -> Vec<f64> {
        let mut nodes = stats::sorted(self.means("node"));
        nodes.dedup();
        nodes
    }
}

fn mean(rows: &[&[f64]], column: &str) -> f64 {
    rows.iter().map(|row| figure(row, column)).sum::<f64>() / rows.len().max(1) as f64
}

/// A quantile of some figures.
fn quantile(figures: impl Iterator<Item = f64>, share: f64) -> f64 {
    let sorted = stats::sorted(figures);
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}
