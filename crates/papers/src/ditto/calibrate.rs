//! How far observers hear: the one parameter of each testbed that is fitted to what the paper's observers
//! reconstructed (section 6.2). In `map21` only values count at which router 7 hears all three senders on the
//! route to router 1 (decision 0019).

use super::heard::Heard;
use super::observe::{DITTO, WAYS};
use super::summary::EFFICIENCY;
use super::{COLUMNS, TESTBEDS, Testbed, parameters, targets};
use crate::experiment::{
    Chosen, Comparison, Estimate, Expectation, Experiment, Extent, Findings, Parameter, Picture,
    Point, Runs, Samples, Short, Standing,
};
use report::{Chart, Curve};
use sim::scenario::Scenario;

/// A value of `overhear_m` to try.
#[derive(Clone, Copy, Debug)]
struct Trial {
    scenario: &'static str,
    panel: &'static str,
    metres: f64,
}

const fn trial(scenario: &'static str, panel: &'static str, metres: f64) -> Trial {
    Trial { scenario, panel, metres }
}

const TRIALS: [Trial; 23] = [
    trial("map21", "map21 at 75 m", 75.0),
    trial("map21", "map21 at 80 m", 80.0),
    trial("map21", "map21 at 84 m", 84.0),
    trial("map21", "map21 at 86 m", 86.0),
    trial("map21", "map21 at 87 m", 87.0),
    trial("map21", "map21 at 88 m", 88.0),
    trial("map21", "map21 at 89 m", 89.0),
    trial("map21", "map21 at 90 m", 90.0),
    trial("map21", "map21 at 92 m", 92.0),
    trial("map21", "map21 at 96 m", 96.0),
    trial("emulab8", "emulab8 at 45 m", 45.0),
    trial("emulab8", "emulab8 at 48 m", 48.0),
    trial("emulab8", "emulab8 at 50 m", 50.0),
    trial("emulab8", "emulab8 at 52 m", 52.0),
    trial("emulab8", "emulab8 at 52.5 m", 52.5),
    trial("emulab8", "emulab8 at 53 m", 53.0),
    trial("emulab8", "emulab8 at 54 m", 54.0),
    trial("emulab8", "emulab8 at 55 m", 55.0),
    trial("emulab8", "emulab8 at 56 m", 56.0),
    trial("emulab8", "emulab8 at 57 m", 57.0),
    trial("emulab8", "emulab8 at 58 m", 58.0),
    trial("emulab8", "emulab8 at 60 m", 60.0),
    trial("emulab8", "emulab8 at 63 m", 63.0),
];

pub(crate) const CALIBRATION: Experiment = Experiment {
    name: "ditto-calibration",
    title: "Ditto, how far observers hear",
    about: "The shares of observers that reconstruct anything, and more than half, for several values of overhear_m: how its values in map21 and emulab8 were found",
    columns: COLUMNS,
    runs: Runs { simulated: 6, real: 3, quick: 1 },
    short: Short::SameSize,
    plan,
    summarise,
};

fn plan(extent: Extent) -> Vec<Point> {
    let mut points = Vec::new();
    for trial in TRIALS.iter().filter(|it| extent == Extent::Full || it.panel == "emulab8 at 53 m")
    {
        let Some(testbed) = testbed(trial) else { continue };
        let settings = [("overhear_m", trial.metres.to_string())];
        points.extend(WAYS[0].points(testbed, trial.panel, &settings, points.len()));
    }
    points
}

fn testbed(trial: &Trial) -> Option<&'static Testbed> {
    TESTBEDS.iter().find(|it| it.scenario == trial.scenario)
}

/// What observers reconstruct with one value.
struct Tried<'a> {
    trial: &'a Trial,
    any: Estimate,
    half: Estimate,
    /// Distance of both shares from the paper's, in percentage points.
    off: f64,
    paper: [f64; 2],
}

impl<'a> Tried<'a> {
    fn new(samples: &Samples, trial: &'a Trial) -> Option<Self> {
        let paper = |metric| targets::figure(testbed(trial)?.paper, "ditto", metric);
        let paper =
            [paper("observers_reconstructing_any")?, paper("observers_reconstructing_over_half")?];
        let heard = Heard::new(samples, trial.panel, DITTO);
        let (any, half) = (heard.above(EFFICIENCY, 0.0), heard.above(EFFICIENCY, 50.0));
        let off = (any.mean - paper[0]).abs() + (half.mean - paper[1]).abs();
        Some(Self { trial, any, half, off, paper })
    }
}

fn summarise(samples: &Samples) -> Findings {
    let ran = TRIALS.iter().filter(|it| samples.panels().contains(&it.panel));
    let tried: Vec<_> = ran.filter_map(|trial| Tried::new(samples, trial)).collect();
    let of = |scenario: &str| -> Vec<_> {
        tried.iter().filter(|it| it.trial.scenario == scenario).collect()
    };
    let scenarios = || TESTBEDS.iter().map(|it| it.scenario).filter(|it| !of(it).is_empty());
    Findings {
        pictures: scenarios().map(|it| picture(it, &of(it))).collect(),
        rows: tried.iter().flat_map(rows).collect(),
        parameters: [Parameter {
            name: "what is fitted",
            value: "the sum of both shares' distances from the paper's".to_owned(),
            chosen: Chosen::Fitted,
            why: "one number for two shares; in map21 of values at which router 7 can hear all three senders to 1 (decision 0019); of about equally near ones the least at which as many as the paper has reconstruct more than half, also with real daemons (decision 0015); no throughput is looked at",
        }]
        .into_iter()
        .chain(parameters::parameters())
        .collect(),
        medium: "as the scenarios have it".to_owned(),
        notes: scenarios().map(|it| verdict(it, &of(it))).collect(),
    }
}

fn rows(tried: &Tried<'_>) -> Vec<Comparison> {
    let row = |what: &str, ours, paper| Comparison {
        heading: tried.trial.scenario.to_owned(),
        what: format!("{} m: {what}", tried.trial.metres),
        ours,
        unit: "%",
        expected: Expectation::Figure(paper),
        standing: Standing::Set("this is what overhear_m was set by"),
    };
    vec![
        row("observers that reconstruct anything", tried.any, tried.paper[0]),
        row("observers that reconstruct more than half", tried.half, tried.paper[1]),
    ]
}

fn picture(scenario: &str, tried: &[&Tried<'_>]) -> Picture {
    let curve = |name: &str, of: &dyn Fn(&Tried<'_>) -> Estimate| Curve {
        name: name.to_owned(),
        points: tried.iter().map(|it| (it.trial.metres, of(it).into())).collect(),
    };
    let paper = |place: usize| {
        move |it: &Tried<'_>| Estimate { mean: it.paper[place], ..Estimate::default() }
    };
    let chart = Chart {
        label: format!("observers by overhear_m, {scenario}"),
        x: "overhear_m, in metres".to_owned(),
        y: "share of observers, %".to_owned(),
        curves: vec![
            curve("anything", &|it| it.any),
            curve("over half", &|it| it.half),
            curve("paper: anything", &paper(0)),
            curve("paper: half", &paper(1)),
        ],
    };
    Picture {
        name: scenario.to_owned(),
        caption: format!("{scenario}: observers that reconstruct anything, and more than half"),
        svg: chart.svg(),
    }
}

/// Which value is nearest to the paper, and which one the scenario has.
fn verdict(scenario: &str, tried: &[&Tried<'_>]) -> String {
    let best = tried.iter().min_by(|a, b| a.off.total_cmp(&b.off));
    let best =
        best.map_or(String::new(), |it| format!("{} m, {:.1} points off", it.trial.metres, it.off));
    let has = Scenario::load(scenario, &[]);
    let has = has.map_or(String::new(), |it| it.key("overhear_m").to_owned());
    format!("{scenario}: the nearest of those tried is {best}; the scenario has {has} m")
}
