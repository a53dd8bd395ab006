//! What receivers got under one scheme.

use crate::ditto::figure;
use crate::experiment::resample::Series;
use crate::experiment::{Estimate, Samples};
use report::stats;

/// The receivers of one picture under one scheme, in all its orders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served<'a> {
    samples: &'a Samples,
    panel: &'a str,
    series: &'a str,
}

/// The median throughput over receivers and orders.
pub(super) fn median(rows: &[&[f64]]) -> f64 {
    stats::median(rows.iter().map(|row| figure(row, "kbps"))).unwrap_or(f64::NAN)
}

impl<'a> Served<'a> {
    pub fn new(samples: &'a Samples, panel: &'a str, series: &'a str) -> Self {
        Self { samples, panel, series }
    }

    fn drawn(&self) -> Series<'a> {
        self.samples.series([self.panel, self.series], None, Some("node"))
    }

    /// The median, averaged over seeds.
    pub fn median(&self) -> Estimate {
        self.drawn().mean(median)
    }

    /// The ratio of this scheme's median to another's.
    pub fn gain(&self, under: &Self) -> Estimate {
        self.drawn().ratio(median, &under.drawn(), median)
    }

    /// All throughputs, each receiver's averaged over seeds, as the paper averages over runs.
    pub fn throughputs(&self) -> Vec<f64> {
        let seeds = self.samples.by_seed(self.panel, self.series, "kbps");
        let receivers = seeds.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |at| seeds.iter().map(|it| it[at]).sum::<f64>() / seeds.len() as f64;
        (0..receivers).map(mean).collect()
    }

    /// A figure of each receiver in the first order, in the order of the requests.
    pub fn each(&self, column: &str) -> Vec<(f64, Estimate)> {
        let nodes = self.samples.by_seed(self.panel, self.series, "node");
        let figures = self.samples.by_seed(self.panel, self.series, column);
        let Some(first) = nodes.first() else { return Vec::new() };
        let of = |node: &f64| {
            let each = nodes.iter().zip(&figures);
            let figure = |(nodes, figures): (&Vec<f64>, &Vec<f64>)| {
                let place = nodes.iter().position(|it| it == node)?;
                figures.get(place).copied()
            };
            Estimate::of(&each.filter_map(figure).collect::<Vec<_>>())
        };
        first.iter().map(|node| (*node, of(node))).collect()
    }

    /// The mean of a share over all receivers.
    pub fn mean(&self, column: &str) -> Estimate {
        let mean = |rows: &[&[f64]]| {
            rows.iter().map(|row| figure(row, column)).sum::<f64>() / rows.len().max(1) as f64
        };
        self.drawn().mean(mean)
    }

    /// Number of failed transfers.
    pub fn failed(&self) -> usize {
        let whole = self.samples.by_seed(self.panel, self.series, "whole");
        whole.into_iter().flatten().filter(|it| *it < 1.0).count()
    }
}
