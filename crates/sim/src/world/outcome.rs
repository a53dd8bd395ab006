//! The outcome of a run of flows or fetches.

use serde::Serialize;

use super::flow_outcome::FlowOutcome;
use super::times::Times;

/// The outcome of a run of flows or fetches.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// The seed of all random numbers.
    pub seed: u64,
    /// Bytes that applications received, over the run's time, in kbit/s.
    pub goodput_kbps: f64,
    /// Packets lost because all transmissions on a hop failed.
    pub retry_drops: u64,
    /// Packets lost to full queues: the sum of the next two.
    pub queue_drops: u64,
    /// Of these, at the first station of the route.
    pub queue_drops_source: u64,
    /// Of these, at later stations.
    pub queue_drops_relays: u64,
    /// Packets lost above the MAC, which had acknowledged them. `None` if `loss_above_mac` is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above_mac_drops: Option<u64>,
    /// Packets dropped after 64 hops, the largest number allowed.
    pub expired: u64,
    /// Mean of |(t1 - t2) - (t2 - t3)| over the arrival times of three consecutive packets. `None` for
    /// fetches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_variation_ms: Option<f64>,
    /// Data frames sent, retransmissions included.
    pub data_frames: u64,
    /// The share of data frames that were not acknowledged.
    pub data_fail_share: f64,
    /// The goodput of each flow, in kbit/s; empty for fetches.
    pub flow_kbps: Vec<f64>,
    /// What each flow achieved, if the scenario lists its flows one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowOutcome>,
    /// Figures of fetches, if the traffic is fetches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetches: Option<Fetches>,
    /// What the stations' link planes did, if any has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_plane: Option<LinkPlane>,
    /// A line for each failed flow or client.
    pub failed: Vec<String>,
    /// Duration of the run in virtual time, in seconds.
    pub simulated_seconds: f64,
    /// Number of events: steps of the loop, frames that stations received, packets that the medium has
    /// finished, and packets that machines received.
    pub events: u64,
}

/// Figures of fetches.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fetches {
    /// Number of successful fetches.
    pub count: u64,
    /// Mean duration, in seconds.
    pub mean_s: f64,
    /// Median duration, in seconds.
    pub p50_s: f64,
    /// 95th percentile of the duration, in seconds.
    pub p95_s: f64,
}

/// What all link planes of a run did together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkPlane {
    /// Packets that waited for their time before they were sent.
    pub held: u64,
    /// Packets dropped because a queue of pacing was full.
    pub queue_drops: u64,
    /// Pure ACKs dropped because a newer one took their place.
    pub acks_thinned: u64,
    /// Probes of paths.
    pub probes: u64,
    /// Data packets sent again by routers.
    pub resent: u64,
    /// ACKs sent again by routers.
    pub acks_resent: u64,
    /// Data packets dropped by Link-RED.
    pub red_drops: u64,
    /// The standard deviation of round trips from the router that is farthest from a receiver, in milliseconds, as its
    /// recovery has it in the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_deviation_ms: Option<f64>,
}

impl LinkPlane {
    /// The sum over stations, and a deviation in seconds.
    pub(super) fn of(stations: &[link::Counters], rtt_deviation_s: Option<f64>) -> Self {
        let sum = |each: fn(&link::Counters) -> u64| stations.iter().map(each).sum();
        Self {
            held: sum(|it| it.pace.held),
            queue_drops: sum(|it| it.pace.dropped + it.pace.dropped_active),
            acks_thinned: sum(|it| it.pace.acks_thinned),
            probes: sum(|it| it.pace.probes_sent),
            resent: sum(|it| it.recover.data_resent()),
            acks_resent: sum(|it| it.recover.acks_resent + it.recover.acks_answered),
            red_drops: sum(|it| it.recover.red_dropped),
            rtt_deviation_ms: rtt_deviation_s.map(|it| it * 1e3),
        }
    }
}

impl Fetches {
    /// The figures of these durations.
    pub(super) fn of(times: &Times) -> Self {
        Self {
            count: times.count(),
            mean_s: times.mean_s(),
            p50_s: times.quantile_s(0.5),
            p95_s: times.quantile_s(0.95),
        }
    }
}

/// A figure over seeds: mean and standard deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stat {
    /// Its mean.
    pub mean: f64,
    /// The sample standard deviation, with the number of seeds less one as divisor.
    pub sd: f64,
}

impl Stat {
    /// Mean and deviation of some values; 0 without values.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count();
        let mean = values.clone().sum::<f64>() / count.max(1) as f64;
        let square = values.map(|it| (it - mean) * (it - mean)).sum::<f64>();
        let sd = if count < 2 { 0.0 } else { (square / (count - 1) as f64).sqrt() };
        Self { mean, sd }
    }
}

impl Outcome {
    /// The figures that are reported over seeds, by name.
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
        figures.extend(self.above_mac_drops.map(|drops| ("above_mac_drops", drops as f64)));
        figures.extend(self.delay_variation_ms.map(|ms| ("delay_variation_ms", ms)));
        if let Some(plane) = &self.link_plane {
            figures.extend([
                ("pace_held", plane.held as f64),
                ("pace_queue_drops", plane.queue_drops as f64),
                ("acks_thinned", plane.acks_thinned as f64),
                ("probes", plane.probes as f64),
                ("resent", plane.resent as f64),
                ("acks_resent", plane.acks_resent as f64),
                ("red_drops", plane.red_drops as f64),
            ]);
        }
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

    #[test]
    fn a_page_of_runs_fits_a_screen_of_1200_pixels() {
        let fetches = Fetches { count: 123_456, mean_s: 12.3, p50_s: 12.3, p95_s: 123.4 };
        let fetching = Outcome {
            goodput_kbps: 54_321.0,
            retry_drops: 123_456,
            queue_drops: 123_456,
            queue_drops_source: 123_456,
            queue_drops_relays: 123_456,
            expired: 123_456,
            data_frames: 12_345_678,
            data_fail_share: 0.1234,
            fetches: Some(fetches),
            ..Outcome::default()
        };
        let flowing =
            Outcome { delay_variation_ms: Some(123.4), fetches: None, ..fetching.clone() };
        let link_plane = LinkPlane {
            held: 1_234_567,
            queue_drops: 123_456,
            acks_thinned: 1_234_567,
            probes: 12_345,
            resent: 123_456,
            acks_resent: 123_456,
            red_drops: 123_456,
            rtt_deviation_ms: Some(123.4),
        };
        let both = Outcome {
            link_plane: Some(link_plane),
            above_mac_drops: Some(123_456),
            ..flowing.clone()
        };
        for outcome in [fetching, flowing, both] {
            let over_seeds = over_seeds(std::slice::from_ref(&outcome)).into_iter();
            let values = outcome.figures().into_iter().map(|(_, value)| value).collect();
            let figures = report::Figures {
                over_seeds: over_seeds.map(|(name, it)| (name, [it.mean, it.sd])).collect(),
                runs: vec![("seed\u{a0}100".to_owned(), values)],
                ..report::Figures::default()
            };
            let page = report::figures(&figures, &report::testing::chain(3));
            let widths = report::testing::table_widths(&page);
            assert!(widths.len() > 1);
            assert!(widths.iter().all(|it| *it <= report::testing::TABLE_MAX), "{widths:?}");
        }
    }
}
