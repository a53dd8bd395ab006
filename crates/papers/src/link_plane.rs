//! What the link plane does for packets that no cache can help: chains plain, paced, recovered, and both. No paper
//! has it.
//!
//! *What this is:* an experiment of our own. Flows of TCP run from end to end over a chain whose routers have no
//! engine, pacing, recovery, or both, as Hearsay sets them. *Who calls it:* the [list of experiments](crate::all).
//! *What it never does:* give one series another chain than the others.

use report::provenance::Setting;
use report::{Bars, Chart, Group, text};
use sim::scenario::Scenario;

use crate::experiment::parameters::keys;
use crate::experiment::{
    Chosen, Comparison, Expectation, Experiment, Extent, Findings, Key, Parameter, Picture, Point,
    Runs, Samples, Short, Standing,
};

/// The figures of a run: the rate of all flows together; packets lost to tries at the MAC and to queues of relays, and to
/// queues of link planes, each per second; packets that link planes sent again, per second.
const COLUMNS: &[&str] = &["kbps", "drops", "plane_drops", "resent"];

/// A number of flows over eight hops.
const FLOWS: &str = "8 hops";
/// A share of packets lost above the MAC, over six hops, with one flow.
const LOSSES: &str = "6 hops";

/// What routers do: a series' name, and the values of `pace` and `recover`.
const SERIES: [(&str, [&str; 2]); 4] = [
    (PLAIN, ["off", "off"]),
    (PACED, ["on", "off"]),
    ("recovered", ["off", "on"]),
    ("both", ["on", "on"]),
];
const PLAIN: &str = "plain";
const PACED: &str = "paced";
/// A note names what costs more than 3 %.
const LEAST: f64 = 0.97;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "link-plane",
    title: "The link plane",
    about: "TCP over chains whose routers pace, recover, do both, or do neither, with and without losses; no paper has it",
    columns: COLUMNS,
    runs: Runs { simulated: 10, real: 0, quick: 3 },
    short: Short::Smaller,
    plan,
    summarise,
};

/// A chain and its traffic.
#[derive(Clone, Copy, Debug)]
struct Case {
    panel: &'static str,
    /// Number of flows, or per cent of packets lost.
    x: f64,
    engines: [&'static str; 2],
    seconds: u32,
}

impl Case {
    /// The radio and the spacing are those of the chain that is built in for WINE.
    fn scenario(self, seed: u64) -> Result<Scenario, String> {
        let (hops, flows, loss) = match self.panel {
            FLOWS => (8, self.x as u32, 0.0),
            _ => (6, 1, self.x / 100.0),
        };
        let flow = |number| format!("0:{hops}:tcp:{number}");
        let [pace, recover] = self.engines.map(str::to_owned);
        let keys = [
            ("hops", hops.to_string()),
            ("between", (0..flows).map(flow).collect::<Vec<_>>().join(" ")),
            ("seconds", self.seconds.to_string()),
            ("loss_above_mac", loss.to_string()),
            ("pace", pace),
            ("recover", recover),
        ];
        let keys: Vec<_> = keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Scenario::load_seeded("wine-chain", &keys, seed).map_err(|error| error.to_string())
    }

    fn run(self, seed: u64) -> Result<Vec<f64>, String> {
        let scenario = self.scenario(seed)?;
        let run = sim::world::run(&scenario, seed, None).ok_or("the scenario has no flows")?;
        let plane = run.link_plane.unwrap_or_default();
        let per_second = |count: u64| count as f64 / run.simulated_seconds;
        Ok(vec![
            run.goodput_kbps,
            per_second(run.retry_drops + run.queue_drops_relays),
            per_second(plane.queue_drops),
            per_second(plane.resent),
        ])
    }

    fn setting(self, seed: u64) -> Result<Setting, String> {
        Ok(self.scenario(seed)?.setting(None))
    }
}

fn plan(extent: Extent) -> Vec<Point> {
    let (flows, losses, seconds): (&[f64], &[f64], _) = match extent {
        Extent::Full => (&[1.0, 4.0], &[0.0, 1.0, 2.0, 5.0], 100),
        Extent::Quick => (&[4.0], &[2.0], 50),
    };
    let mut points = Vec::new();
    for (panel, xs) in [(FLOWS, flows), (LOSSES, losses)] {
        for (series, engines) in SERIES {
            let rank = points.len();
            points.extend(xs.iter().map(|x| {
                let case = Case { panel, x: *x, engines, seconds };
                let key = Key { panel, series, x: *x, rank };
                Point::single(key, move |seed| case.run(seed))
                    .within(move |seed| case.setting(seed))
            }));
        }
    }
    points
}

/// What a place on a panel's axis is.
fn place(panel: &str, x: f64) -> String {
    match (panel, x) {
        (FLOWS, 1.0) => "1 flow".to_owned(),
        (FLOWS, _) => format!("{x} flows"),
        _ => format!("{x} % lost"),
    }
}

fn summarise(samples: &Samples) -> Findings {
    let each = samples.panels().into_iter();
    let places: Vec<_> =
        each.flat_map(|panel| samples.xs(panel).into_iter().map(move |x| (panel, x))).collect();
    let mut rows = Vec::new();
    let mut row = |heading: &str, (panel, x): (&str, f64), series: &str, ours, unit| {
        let of = if series.is_empty() { String::new() } else { format!(", {series}") };
        rows.push(Comparison {
            heading: heading.to_owned(),
            what: format!("{panel}, {}{of}", place(panel, x)),
            ours,
            unit,
            expected: Expectation::Nothing,
            standing: Standing::Predicted,
        });
    };
    let over_plain = |(panel, x), series| samples.ratio(panel, [series, PLAIN], x, "kbps");
    for (heading, column, unit) in [
        ("throughput", "kbps", "kbit/s"),
        ("packets given up by MACs or dropped by queues of relays", "drops", "/s"),
    ] {
        for (panel, x) in &places {
            for (series, _) in SERIES {
                let ours = samples.mean(panel, series, *x, column);
                row(heading, (panel, *x), series, ours, unit);
            }
        }
    }
    for (series, _) in &SERIES[1..] {
        for at in &places {
            row(&format!("throughput, {series} over plain"), *at, "", over_plain(*at, series), "");
        }
    }
    let what = "kbit/s of all flows together (and packets a second that MACs gave up or relays' queues dropped)";
    let notes = places.iter().flat_map(|at| notes(samples, *at));
    let notes = [what.to_owned()].into_iter().chain(notes).collect();
    Findings {
        pictures: pictures(samples),
        rows,
        parameters: parameters(),
        medium: "receiver lock (an idle one follows the first signal that it senses), reception capture (a frame \
                 arrives if it is 10 dB above all else together); 802.11b at 11 Mbit/s, basic rate 2 Mbit/s, 240 m \
                 between neighbours, received up to 250 m, sensed up to 550 m, no RTS"
            .to_owned(),
        notes,
    }
}

/// All series of a place side by side; and those that cost much there.
fn notes(samples: &Samples, (panel, x): (&'static str, f64)) -> Vec<String> {
    let place = place(panel, x);
    let side_by_side = SERIES.map(|(series, _)| {
        let of = |column| samples.mean(panel, series, x, column).mean;
        format!("{series} {:.0} ({:.1})", of("kbps"), of("drops"))
    });
    let mut notes = vec![format!("{panel}, {place}: {}", side_by_side.join(", "))];
    for (series, _) in &SERIES[1..] {
        let mean = samples.ratio(panel, [series, PLAIN], x, "kbps").mean;
        if mean < LEAST {
            let cost = (1.0 - mean) * 100.0;
            let why = match *series {
                PACED => {
                    ": pacing thins acknowledgements, so that TCP alone repairs losses more slowly"
                }
                _ => "",
            };
            notes.push(format!(
                "{panel}, {place}: {series} costs {cost:.0} % of plain's throughput{why}"
            ));
        }
    }
    notes
}

fn parameters() -> Vec<Parameter> {
    let case = Case { panel: FLOWS, x: 1.0, engines: ["off", "off"], seconds: 100 };
    let scenario: Vec<_> = case.scenario(1).into_iter().collect();
    let stated = ["hops", "between", "seconds", "loss_above_mac", "pace", "recover"];
    let flows = Parameter {
        name: "flows",
        value: "NewReno, each a second after the one before, to the end of the run".to_owned(),
        chosen: Chosen::Once,
        why: "long ones, so that slow start does not count",
    };
    [flows].into_iter().chain(keys(&scenario, &stated, &[])).collect()
}

fn pictures(samples: &Samples) -> Vec<Picture> {
    let kinds = [
        ("kbps", "throughput", "throughput of all flows, kbit/s"),
        ("drops", "drops", "given up by MACs, dropped by queues of relays, per second"),
    ];
    let mut pictures = Vec::new();
    for (column, name, y) in kinds {
        for panel in samples.panels() {
            let svg = match panel {
                FLOWS => bars(samples, panel, column, y),
                _ => curves(samples, panel, column, y),
            };
            pictures.push(Picture {
                name: format!("{name}-{}", panel.replace(' ', "-")),
                caption: format!("{}, {panel}", text::capital(name)),
                svg,
            });
        }
    }
    pictures
}

fn bars(samples: &Samples, panel: &str, column: &str, y: &str) -> String {
    let group = |x: f64| Group {
        name: place(panel, x),
        bars: SERIES
            .map(|(series, _)| (samples.mean(panel, series, x, column).into(), None))
            .into(),
    };
    let bars = Bars {
        label: format!("{y}, {panel}"),
        y: y.to_owned(),
        x: String::new(),
        series: SERIES.map(|(series, _)| series.to_owned()).into(),
        groups: samples.xs(panel).into_iter().map(group).collect(),
    };
    bars.svg()
}

fn curves(samples: &Samples, panel: &str, column: &str, y: &str) -> String {
    let chart = Chart {
        label: format!("{y}, {panel}"),
        x: "packets lost above the MAC at each hop, %".to_owned(),
        y: y.to_owned(),
        curves: SERIES.map(|(series, _)| samples.curve(panel, series, column)).into(),
    };
    chart.svg()
}
