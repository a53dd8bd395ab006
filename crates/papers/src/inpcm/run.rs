//! One run: a chain or a grid, what it loses, and who recovers it.

use std::time::Duration;

use link::recover::{Beta, Config, OnNotice, Timer};
use report::provenance::Setting;
use sim::scenario::Scenario;
use sim::world::{Fetching, Outcome, Setup, flows_of};

use super::COLUMNS;
use crate::experiment::{Key, Point};

/// The size of a segment, in bytes: ns-2's.
pub(super) const SEGMENT: u32 = 1000;

/// 1 Mb (figure 10), in bytes.
const FETCH_BYTES: u64 = 125_000;

/// The radio and TCP, which the paper leaves open but for Reno and the range: ns-2's, where frames interfere 2.2 times
/// as far as they are received, and RTS precedes each packet.
const NS2: [(&str, &str); 13] = [
    ("range_m", "200"),
    ("carrier_sense_m", "440"),
    ("receiver", "lock"),
    ("reception", "capture"),
    ("dcf", "standard"),
    ("data_mbps", "2"),
    ("basic_mbps", "1"),
    ("rts", "true"),
    ("tcp_recovery", "reno"),
    ("mss", "1000"),
    ("delayed_ack", "1"),
    ("receive_buffer", "20000"),
    ("rto_min_s", "0.2"),
];

/// Who recovers, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Series {
    /// Its name in tables.
    pub name: &'static str,
    /// The value of the key `recover`.
    pub recover: &'static str,
    /// What differs from it.
    pub change: Change,
}

/// A mechanism that is left out, or another one in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    None,
    NoEldd,
    NoRed,
    NoSuppression,
    NoNotices,
    Doubling,
    NoTimer,
    TcpLike,
    Contention,
    SenderTimeout,
    NoOverhearing,
    NoMacTrigger,
}

impl Change {
    fn apply(self, it: &mut Config) {
        match self {
            Self::None => {}
            Self::NoEldd => it.eldd = false,
            Self::NoRed => it.link_red = None,
            Self::NoSuppression => it.suppress = false,
            Self::NoNotices => it.notify = false,
            Self::Doubling => it.on_notice = OnNotice::Double,
            Self::NoTimer => it.timer = Timer::Off,
            Self::TcpLike => it.timer = Timer::TcpLike,
            Self::Contention => it.timer = Timer::Esrto { beta: Beta::Contention },
            Self::SenderTimeout => it.timer = Timer::Esrto { beta: Beta::SenderTimeout },
            Self::NoOverhearing => it.overheard_loss = false,
            Self::NoMacTrigger => it.mac_trigger = false,
        }
    }
}

/// What runs where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ground {
    /// One flow over a chain of this many hops (figure 5).
    Chain(usize),
    /// Fetches over such a chain, one after the other.
    Fetch(usize),
    /// Four flows over the grid (figure 6).
    Grid,
}

/// A run but for its seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub ground: Ground,
    pub series: Series,
    /// The share of packets that each router loses above its MAC.
    pub loss: &'static str,
    /// How long it runs, in seconds.
    pub seconds: u32,
}

impl Case {
    /// The point of this case.
    pub fn point(self, panel: &'static str, x: f64, rank: usize) -> Point {
        let key = Key { panel, series: self.series.name, x, rank };
        Point::single(key, move |seed| self.run(seed)).within(move |seed| self.setting(seed))
    }

    /// Its scenario.
    pub fn scenario(&self, seed: u64) -> Result<Scenario, String> {
        let mut settings: Vec<_> = NS2.map(|(key, value)| (key, value.to_owned())).into();
        let name = match self.ground {
            Ground::Chain(hops) | Ground::Fetch(hops) => {
                settings.push(("hops", hops.to_string()));
                settings.push(("spacing_m", "200".to_owned()));
                "chain"
            }
            Ground::Grid => "inpcm-grid",
        };
        match self.ground {
            Ground::Chain(_) => settings.push(("traffic", "tcp".to_owned())),
            Ground::Fetch(_) => {
                settings.push(("traffic", "fetches".to_owned()));
                settings.push(("bytes", FETCH_BYTES.to_string()));
            }
            Ground::Grid => {}
        }
        settings.push(("seconds", self.seconds.to_string()));
        settings.push(("recover", self.series.recover.to_owned()));
        settings.push(("loss_above_mac", self.loss.to_owned()));
        let settings: Vec<_> =
            settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Scenario::load_seeded(name, &settings, seed).map_err(|it| it.to_string())
    }

    fn setting(&self, seed: u64) -> Result<Setting, String> {
        let mut setting = self.scenario(seed)?.setting(None);
        setting
            .keys
            .insert("recovery is changed by".to_owned(), format!("{:?}", self.series.change));
        Ok(setting)
    }

    fn run(&self, seed: u64) -> Result<Vec<f64>, String> {
        let scenario = self.scenario(seed)?;
        let mut setup = Setup::of(&scenario);
        if let Some(recover) = &mut setup.plane.recover {
            self.series.change.apply(recover);
        }
        let outcome = match self.ground {
            Ground::Chain(_) | Ground::Grid => setup.run_flows(&flows_of(&scenario), seed, None),
            Ground::Fetch(hops) => {
                let (bytes, think) = (FETCH_BYTES, Duration::from_secs(1));
                let fetching =
                    Fetching { server: scenario.gateway, clients: vec![hops], bytes, think };
                setup.run_fetches(&fetching, seed, None)
            }
        };
        Ok(figures(&outcome))
    }
}

/// The figures of a run, in the order of the columns. What it does not have is NaN.
fn figures(outcome: &Outcome) -> Vec<f64> {
    let senders = || outcome.flows.iter().filter_map(|it| it.tcp);
    let acked: u64 = senders().map(|it| it.acked_bytes).sum();
    let slow: f64 = senders().map(|it| it.slow_start_s).sum();
    let avoiding: f64 = senders().map(|it| it.congestion_avoidance_s).sum();
    let timeouts: u64 = senders().map(|it| it.timeouts).sum();
    let flows = |figure: f64| if outcome.flows.is_empty() { f64::NAN } else { figure };
    let plane = outcome.link_plane.as_ref();
    let deviation = plane.and_then(|it| it.rtt_deviation_ms);
    let fetches = outcome.fetches.as_ref().filter(|it| it.count > 0);
    let figures = vec![
        flows(acked as f64 / f64::from(SEGMENT)),
        flows(100.0 * slow / (slow + avoiding)),
        flows(timeouts as f64),
        plane.map_or(0, |it| it.resent) as f64,
        fetches.map_or(f64::NAN, |it| it.mean_s),
        deviation.unwrap_or(f64::NAN),
    ];
    debug_assert_eq!(figures.len(), COLUMNS.len());
    figures
}
