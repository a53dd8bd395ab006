//! The interference of two links, simulated pair by pair: two saturated UDP flows of one hop each.
//!
//! An entry is the first flow's rate beside the second, divided by its rate alone; at most 1. Links have no
//! direction, so it is the mean over the directions of both.

use std::time::Duration;

use radio::Station;
use sim::scenario::Scenario;
use sim::world::flows::{Flow, Kind};
use sim::world::{Routes, Setup};
use wire::Instant;

use crate::{Matrix, Mesh};

/// How long flows last. A link of 5 Mbit/s carries some 800 packets in this time.
const LASTS: Duration = Duration::from_secs(2);

/// A sender and a receiver.
type Way = (usize, usize);

/// Runs that fill a matrix. They can be made in any order.
#[derive(Clone, Debug)]
pub struct Simulation {
    setup: Setup,
    bits_per_second: u64,
    /// Both directions of each link, in the order of links.
    ways: Vec<Way>,
    /// Two directions, by their places in `ways`, that contend in a run of their own. Those of each way alone
    /// come first.
    pairs: Vec<(usize, usize)>,
    links: usize,
}

impl Simulation {
    /// The runs for a scenario's mesh: each direction alone, then with each of another link of which some station
    /// senses one of the first. Links change with time in none of them.
    pub fn new(scenario: &Scenario, mesh: &Mesh) -> Self {
        let (links, stations) = (mesh.links().len(), mesh.names().len());
        let routes = Routes::over(stations, mesh.links().iter().copied());
        let setup = Setup { routes, changes: None, lasts: LASTS, ..Setup::of(scenario) };
        let senses = |a: usize, b: usize| {
            let signals = &scenario.links;
            a == b || signals.get(Station(a as u16), Station(b as u16)).is_some()
        };
        let is_near = |one: usize, other: usize| {
            let ((a, b), (c, d)) = (mesh.links()[one], mesh.links()[other]);
            let pairs = [(a, c), (a, d), (b, c), (b, d)];
            pairs.into_iter().any(|(it, its)| senses(it, its) || senses(its, it))
        };
        let near = (0..links).flat_map(|a| (a + 1..links).map(move |b| (a, b)));
        let near = near.filter(|&(one, other)| is_near(one, other));
        let pairs = near
            .flat_map(|(one, other)| [0, 1, 2, 3].map(|it| (2 * one + it / 2, 2 * other + it % 2)));
        Self {
            bits_per_second: (scenario.radio.data_rate.mbps() * 1e6) as u64,
            ways: mesh.links().iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect(),
            pairs: pairs.collect(),
            links,
            setup,
        }
    }

    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.ways.len() + self.pairs.len()
    }

    /// The rates of a run's flows, in kbit/s; the second is zero if there is one flow only.
    ///
    /// # Panics
    ///
    /// If there are not that many runs.
    pub fn run(&self, at: usize, seed: u64) -> [f64; 2] {
        let ways = match at.checked_sub(self.ways.len()) {
            None => vec![self.ways[at]],
            Some(pair) => vec![self.ways[self.pairs[pair].0], self.ways[self.pairs[pair].1]],
        };
        let kind = Kind::Udp { bits_per_second: self.bits_per_second };
        let flow = |(from, to)| Flow { from, to, starts: Instant::ZERO, ends: None, kind };
        let flows: Vec<_> = ways.into_iter().map(flow).collect();
        let rates = self.setup.run_flows(&flows, seed, None).flow_kbps;
        [rates[0], rates.get(1).copied().unwrap_or(0.0)]
    }

    /// The matrix, from the rates of all runs in order.
    ///
    /// # Panics
    ///
    /// If these are not the rates of all runs.
    pub fn matrix(&self, rates: &[[f64; 2]]) -> Matrix {
        assert_eq!(rates.len(), self.runs(), "the rates of all runs");
        let (alone, pairs) = rates.split_at(self.ways.len());
        // A link that carries nothing alone cannot lose anything.
        let share = |rate: f64, way: usize| {
            if alone[way][0] > 0.0 { (rate / alone[way][0]).min(1.0) } else { 1.0 }
        };
        let mut matrix = Matrix::new(self.links);
        // The four runs of two links are together.
        for (pairs, rates) in self.pairs.chunks(4).zip(pairs.chunks(4)) {
            let (one, other) = (pairs[0].0 / 2, pairs[0].1 / 2);
            let runs = || pairs.iter().zip(rates);
            let mean = |sum: f64| sum / 4.0;
            matrix.set(one, other, mean(runs().map(|(it, rate)| share(rate[0], it.0)).sum()));
            matrix.set(other, one, mean(runs().map(|(it, rate)| share(rate[1], it.1)).sum()));
        }
        matrix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simulated(hops: &str) -> Matrix {
        let keys = [("hops", hops), ("spacing_m", "240")];
        let keys = keys.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Scenario::load("bulk", &keys).unwrap();
        let simulation = Simulation::new(&scenario, &Mesh::of(&scenario));
        let rates: Vec<_> = (0..simulation.runs()).map(|at| simulation.run(at, 1)).collect();
        simulation.matrix(&rates)
    }

    /// Neighbours share the channel; what is out of range is not run at all.
    #[test]
    fn links_of_a_chain_disturb_each_other_by_distance() {
        let matrix = simulated("5");
        for link in 0..4 {
            let share = matrix.get(link, link + 1) + matrix.get(link + 1, link);
            assert!((0.8..1.2).contains(&share), "{link}: {share}");
        }
        // 0>1 and 4>5 are 720 m apart, and sense only up to 550 m.
        assert_eq!((matrix.get(0, 4), matrix.get(4, 0)), (1.0, 1.0));
        assert!(matrix.get(0, 3) > matrix.get(0, 1), "far links disturb less");
    }

    #[test]
    fn shares_are_means_over_directions() {
        let scenario = Scenario::load("bulk", &[("hops".to_owned(), "2".to_owned())]).unwrap();
        let simulation = Simulation::new(&scenario, &Mesh::of(&scenario));
        assert_eq!(simulation.runs(), 8);
        let alone = [[100.0, 0.0], [200.0, 0.0], [0.0, 0.0], [50.0, 0.0]];
        let pairs = [[50.0, 10.0], [25.0, 20.0], [50.0, 0.0], [300.0, 50.0]];
        let matrix = simulation.matrix(&[alone, pairs].concat());
        // 0>1 beside 1>2 and 2>1, then 1>0 beside both: 1/2, 1/4, 1/4, and no more than 1.
        assert_eq!(matrix.get(0, 1), 0.5);
        // 1>2 has no rate alone; 2>1 has 50: 1, 20/50, 1, 1.
        assert_eq!(matrix.get(1, 0), 0.85);
    }
}
