//! What a run of flows or fetches gave.

use serde::Serialize;

use super::times::Times;

/// What a run of flows or fetches gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// All chance came from here.
    pub seed: u64,
    /// Bytes that applications got, over the time, in kbit/s.
    pub goodput_kbps: f64,
    /// Packets that no try brought over a hop.
    pub retry_drops: u64,
    /// Packets for which a queue had no room: the sum of the next two.
    pub queue_drops: u64,
    /// At the first station on their way.
    pub queue_drops_source: u64,
    /// At a later one.
    pub queue_drops_relays: u64,
    /// Packets that had passed as many hops as a packet may, 64.
    pub expired: u64,
    /// Mean of |(t1 - t2) - (t2 - t3)| over the arrival times of three packets in a row.
    /// None of fetches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_variation_ms: Option<f64>,
    /// Data frames that were sent, repetitions counted.
    pub data_frames: u64,
    /// The share of them that was not acknowledged.
    pub data_fail_share: f64,
    /// The bytes of each flow, in kbit/s; none of fetches.
    pub flow_kbps: Vec<f64>,
    /// Fetches, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetches: Option<Fetches>,
    /// What failed, by name.
    pub failed: Vec<String>,
    /// How long the run lasted in virtual time.
    pub simulated_seconds: f64,
    /// Steps of the loop; frames of the medium that stations heard, and packets that it is done with; and
    /// packets that machines got.
    pub events: u64,
}

/// What came of fetches.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fetches {
    /// How many ended well.
    pub count: u64,
    /// How long those took.
    pub mean_s: f64,
    /// The median of that.
    pub p50_s: f64,
    /// 95 % took no longer.
    pub p95_s: f64,
}

impl Fetches {
    /// Of fetches that took so long.
    pub(super) fn of(times: &Times) -> Self {
        Self {
            count: times.count(),
            mean_s: times.mean_s(),
            p50_s: times.quantile_s(0.5),
            p95_s: times.quantile_s(0.95),
        }
    }
}

/// A figure over seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stat {
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation, as of a sample: over the number of seeds less one.
    pub sd: f64,
}

impl Stat {
    /// Of some values; 0 without any.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count();
        let mean = values.clone().sum::<f64>() / count.max(1) as f64;
        let square = values.map(|it| (it - mean) * (it - mean)).sum::<f64>();
        let sd = if count < 2 { 0.0 } else { (square / (count - 1) as f64).sqrt() };
        Self { mean, sd }
    }
}

impl Outcome {
    /// The figures that are told over seeds, by their names.
    pub fn figures(&self) -> Vec<(&'static str, f64)> {
        let mut figures = vec![
            ("goodput_kbps", self.goodput_kbps),
            ("retry_drops", self.retry_drops as f64),
            ("queue_drops", self.queue_drops as f64),
            ("queue_drops_source", self.queue_drops_source as f64),
            ("queue_drops_relays", self.queue_drops_relays as f64),
            ("expired", self.expired as f64),
            ("data_frames", self.data_frames as f64),
            ("data_fail_share", self.data_fail_share),
        ];
        figures.extend(self.delay_variation_ms.map(|ms| ("delay_variation_ms", ms)));
        if let Some(fetches) = &self.fetches {
            figures.extend([
                ("fetches", fetches.count as f64),
                ("fetch_mean_s", fetches.mean_s),
                ("fetch_p50_s", fetches.p50_s),
                ("fetch_p95_s", fetches.p95_s),
            ]);
        }
        figures
    }
}

/// Each figure over several runs of one scenario, in the order of [`Outcome::figures`].
pub fn over_seeds(outcomes: &[Outcome]) -> Vec<(&'static str, Stat)> {
    let runs: Vec<_> = outcomes.iter().map(Outcome::figures).collect();
    let places = 0..runs.first().map_or(0, Vec::len);
    places.map(|it| (runs[0][it].0, Stat::of(runs.iter().map(|run| run[it].1)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_over_seeds_have_mean_and_deviation() {
        assert_eq!(Stat::of([2.0, 4.0, 9.0].into_iter()).mean, 5.0);
        assert!((Stat::of([2.0, 4.0, 9.0].into_iter()).sd - 13_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Stat::of([3.0].into_iter()), Stat { mean: 3.0, sd: 0.0 });
        assert_eq!(Stat::of(std::iter::empty()), Stat::default());
        let run = |goodput_kbps| Outcome { goodput_kbps, ..Outcome::default() };
        let stats = over_seeds(&[run(1.0), run(3.0)]);
        assert_eq!(stats[0], ("goodput_kbps", Stat { mean: 2.0, sd: 2_f64.sqrt() }));
    }
}
