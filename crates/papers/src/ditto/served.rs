//! What receivers got under one scheme, seed by seed.

use crate::experiment::{Estimate, Samples};
use report::stats;

/// Receivers of one picture under one scheme, in all its orders.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served<'a> {
    samples: &'a Samples,
    panel: &'a str,
    series: &'a str,
}

impl<'a> Served<'a> {
    pub fn new(samples: &'a Samples, panel: &'a str, series: &'a str) -> Self {
        Self { samples, panel, series }
    }

    /// The median throughput over receivers and orders, of each seed.
    fn medians(&self) -> Vec<f64> {
        let seeds = self.samples.by_seed(self.panel, self.series, "kbps");
        seeds.into_iter().filter_map(stats::median).collect()
    }

    /// Its mean over the seeds.
    pub fn median(&self) -> Estimate {
        Estimate::of(&self.medians())
    }

    /// One scheme's median over another's.
    pub fn gain(&self, under: &Self) -> Estimate {
        Estimate::ratio(&self.medians(), &under.medians())
    }

    /// All throughputs, each receiver's mean over the seeds, as the paper's averages over runs.
    pub fn throughputs(&self) -> Vec<f64> {
        let seeds = self.samples.by_seed(self.panel, self.series, "kbps");
        let receivers = seeds.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |at| seeds.iter().map(|it| it[at]).sum::<f64>() / seeds.len() as f64;
        (0..receivers).map(mean).collect()
    }

    /// A figure of each receiver, and the receivers in the order in which they asked; of the first order.
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
        let seeds = self.samples.by_seed(self.panel, self.series, column);
        let mean = |all: &Vec<f64>| all.iter().sum::<f64>() / all.len().max(1) as f64;
        Estimate::of(&seeds.iter().map(mean).collect::<Vec<_>>())
    }

    /// How many transfers did not end well.
    pub fn failed(&self) -> usize {
        let whole = self.samples.by_seed(self.panel, self.series, "whole");
        whole.into_iter().flatten().filter(|it| *it < 1.0).count()
    }
}
