//! Confidence intervals of figures that depend on more random factors than seeds: orders, receivers and seeds
//! are resampled together, each with replacement (a bootstrap of crossed factors).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use report::stats;

use super::estimate::Intervals;
use super::{Clock, Estimate};

/// Number of resamples.
const TIMES: usize = 1_000;

/// The rows of a series; empty if it was not run.
#[derive(Clone, Debug)]
pub(crate) struct Series<'a> {
    /// The rows of each seed, each with its index among the orders and among the receivers.
    pub(super) seeds: Vec<Vec<([usize; 2], &'a [f64])>>,
    /// Number of orders and of receivers in all series of the panel.
    pub(super) sizes: [usize; 2],
    /// Number of orders times number of seeds.
    pub(super) runs: usize,
    pub(super) clock: Clock,
}

/// A resample: how often each order and each receiver was drawn, and which seeds.
struct Draw {
    counts: [Vec<usize>; 2],
    seeds: Vec<usize>,
}

/// Computes a figure from the rows of one seed.
pub(crate) trait Figure: Fn(&[&[f64]]) -> f64 {}
impl<F: Fn(&[&[f64]]) -> f64> Figure for F {}

impl Series<'_> {
    /// The mean of a figure over seeds.
    pub fn mean(&self, figure: impl Figure) -> Estimate {
        let chance = &mut Xoshiro256PlusPlus::seed_from_u64(0);
        let drawn = (0..TIMES).map(|_| self.of(&Draw::new(self, chance), &figure));
        self.estimate(self.of(&Draw::all(self), &figure), self.runs, drawn)
    }

    /// A figure divided by a figure of this or another series. Both use the same orders and receivers. In
    /// virtual time they use the same seeds too, because runs with the same seed share randomness; runs of
    /// real daemons do not.
    pub fn ratio(&self, figure: impl Figure, under: &Self, other: impl Figure) -> Estimate {
        let chance = &mut Xoshiro256PlusPlus::seed_from_u64(0);
        let is_same = std::ptr::eq(self, under);
        let is_paired =
            is_same || self.clock == Clock::Virtual && self.seeds.len() == under.seeds.len();
        let drawn = (0..TIMES).map(|_| {
            let above = Draw::new(self, chance);
            let seeds = if is_paired { above.seeds.clone() } else { seeds(under, chance) };
            let ours = self.of(&above, &figure);
            ours / under.of(&Draw { seeds, ..above }, &other)
        });
        let ratio = self.of(&Draw::all(self), &figure) / under.of(&Draw::all(under), &other);
        self.estimate(ratio, self.runs.min(under.runs), drawn)
    }

    fn of(&self, draw: &Draw, figure: &impl Figure) -> f64 {
        let mut rows = Vec::new();
        let mut sum = 0.0;
        for seed in &draw.seeds {
            rows.clear();
            for ([order, receiver], row) in &self.seeds[*seed] {
                let times = draw.counts[0][*order] * draw.counts[1][*receiver];
                rows.extend(std::iter::repeat_n(*row, times));
            }
            sum += figure(&rows);
        }
        sum / draw.seeds.len() as f64
    }

    fn estimate(&self, mean: f64, runs: usize, drawn: impl Iterator<Item = f64>) -> Estimate {
        if runs < 2 {
            return Estimate { mean, sure: None, runs };
        }
        // A ratio is NaN for a resample in which nothing was heard, and is left out.
        let all = stats::sorted(drawn);
        let at = |share: f64| all[(share * (all.len() - 1) as f64).round() as usize];
        let sure = (all.len() >= TIMES / 2)
            .then(|| Intervals { wide: [at(0.025), at(0.975)], narrow: [at(0.05), at(0.95)] });
        Estimate { mean, sure, runs }
    }
}

impl Draw {
    /// Every order, receiver and seed once.
    fn all(series: &Series<'_>) -> Self {
        let counts = series.sizes.map(|size| vec![1; size]);
        Self { counts, seeds: (0..series.seeds.len()).collect() }
    }

    fn new(series: &Series<'_>, chance: &mut Xoshiro256PlusPlus) -> Self {
        let counts = series.sizes.map(|size| {
            let mut counts = vec![0; size];
            (0..size).for_each(|_| counts[below(size, chance)] += 1);
            counts
        });
        Self { counts, seeds: seeds(series, chance) }
    }
}

fn seeds(series: &Series<'_>, chance: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    let count = series.seeds.len();
    (0..count).map(|_| below(count, chance)).collect()
}

fn below(count: usize, chance: &mut Xoshiro256PlusPlus) -> usize {
    (chance.next_u64() % count.max(1) as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A series with 20 orders, 20 receivers and some seeds.
    fn series(rows: &[f64], seeds: usize, clock: Clock) -> Series<'_> {
        let of_seed = |seed: usize| {
            let rows = rows[seed * 400..][..400].chunks(1).enumerate();
            rows.map(|(at, row)| ([at / 20, at % 20], row)).collect()
        };
        let seeds = (0..seeds).map(of_seed).collect::<Vec<_>>();
        Series { runs: 20 * seeds.len(), seeds, sizes: [20, 20], clock }
    }

    fn mean(rows: &[&[f64]]) -> f64 {
        rows.iter().map(|it| it[0]).sum::<f64>() / rows.len() as f64
    }

    fn width(estimate: Estimate) -> f64 {
        estimate.interval().map_or(f64::NAN, |[low, high]| high - low)
    }

    #[test]
    fn what_differs_by_order_or_receiver_alone_is_unsure_by_that() {
        // Figures from 0 to 19, by order or by receiver: the deviation of the mean of 20 such is 5.77 /
        // sqrt(20).
        let by_order: Vec<_> = (0..800).map(|it| f64::from(it % 400 / 20)).collect();
        let by_receiver: Vec<_> = (0..800).map(|it| f64::from(it % 20)).collect();
        for rows in [by_order, by_receiver] {
            let estimate = series(&rows, 2, Clock::Virtual).mean(mean);
            assert_eq!((estimate.mean, estimate.runs), (9.5, 40));
            let expected = 2.0 * 1.96 * 5.77 / 20_f64.sqrt();
            assert!((width(estimate) / expected - 1.0).abs() < 0.1, "{estimate:?}");
            let Intervals { wide, narrow } = estimate.sure.unwrap();
            assert!(wide[0] < narrow[0] && narrow[1] < wide[1]);
        }
    }

    #[test]
    fn what_both_have_in_common_does_not_widen_a_ratio_and_seeds_are_common_in_virtual_time() {
        let by_seed: Vec<_> = (0..1600).map(|it| f64::from(1 + it / 400)).collect();
        let twice: Vec<_> = by_seed.iter().map(|it| 2.0 * it).collect();
        let ratio = |clock| series(&twice, 4, clock).ratio(mean, &series(&by_seed, 4, clock), mean);
        assert_eq!(ratio(Clock::Virtual).mean, 2.0);
        assert_eq!(ratio(Clock::Virtual).interval(), Some([2.0, 2.0]));
        assert!(width(ratio(Clock::Real)) > 1.0);
        let one = series(&by_seed, 4, Clock::Real);
        assert_eq!(width(one.ratio(mean, &one, mean)), 0.0);
    }

    #[test]
    fn one_run_is_not_sure_of_anything() {
        let series = Series { runs: 1, ..series(&[1.0; 400], 1, Clock::Real) };
        assert_eq!(series.mean(mean).sure, None);
        let series = Series { runs: 2, ..series };
        assert!(series.mean(mean).sure.is_some());
    }

    #[test]
    fn as_many_resamples_are_left_out_at_each_end() {
        let series = series(&[1.0; 400], 1, Clock::Real);
        // One fortieth, and one twentieth, of a thousand.
        let drawn = (0..1000).rev().map(f64::from);
        let Intervals { wide, narrow } = series.estimate(500.0, 2, drawn).sure.unwrap();
        assert_eq!((wide, narrow), ([25.0, 974.0], [50.0, 949.0]));
    }

    #[test]
    fn half_of_the_resamples_must_have_a_value() {
        let series = series(&[1.0; 400], 1, Clock::Real);
        let is_sure = |values: usize| {
            let drawn = (0..1000).map(|it| if it < values { 1.0 } else { f64::NAN });
            series.estimate(1.0, 2, drawn).sure.is_some()
        };
        assert!(is_sure(500) && !is_sure(499));
    }
}
