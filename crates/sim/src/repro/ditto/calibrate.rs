//! What observers lose: the numbers that are set by what the paper's observers reconstructed (section 6.2),
//! and by nothing else.

use super::super::{
    Comparison, Estimate, Expectation, Experiment, Extent, Findings, Parameter, Picture, Point,
    Samples, targets,
};
use super::heard::Heard;
use super::observe::{COARSE, DITTO, WAYS};
use super::tell::{EFFICIENCY, OVERHEAD};
use super::{COLUMNS, TESTBEDS, Testbed};
use crate::report::{Chart, Curve};
use crate::scenario::Scenario;

/// One setting that is tried.
#[derive(Clone, Copy, Debug)]
struct Trial {
    scenario: &'static str,
    panel: &'static str,
    metres: f64,
    /// What both testbeds have in common.
    shared: Shared,
}

/// `overhear_exponent` and `overhear_spell_ms`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shared {
    exponent: f64,
    spell_ms: f64,
}

/// The keys that are tried, in the order of [`Trial::values`].
const KEYS: [&str; 3] = ["overhear_m", "overhear_exponent", "overhear_spell_ms"];

/// Trials that differ in metres only.
macro_rules! trials {
    ($scenario:literal, $exponent:literal, $spell_ms:literal, [$($metres:literal),*]) => {
        &[$(Trial {
            scenario: $scenario,
            panel: concat!($scenario, ", ", $metres, " m, exponent ", $exponent, ", ", $spell_ms, " ms"),
            metres: $metres as f64,
            shared: Shared { exponent: $exponent as f64, spell_ms: $spell_ms as f64 },
        }),*]
    };
}

const TRIALS: &[&[Trial]] = &[
    trials!("map21", 3, 0, [90, 110]),
    trials!("map21", 3, 40, [80, 90, 100]),
    trials!("map21", 4, 40, [78, 82]),
    trials!("map21", 6, 0, [75]),
    trials!("map21", 6, 20, [75, 78]),
    trials!("map21", 6, 40, [73, 74, 75, 76]),
    trials!("map21", 6, 80, [73, 75]),
    trials!("map21", 8, 40, [72, 74]),
    trials!("emulab8", 3, 0, [52, 54]),
    trials!("emulab8", 3, 40, [43, 44, 45]),
    trials!("emulab8", 4, 40, [39, 40, 41]),
    trials!("emulab8", 6, 0, [40, 42]),
    trials!("emulab8", 6, 20, [37, 38]),
    trials!("emulab8", 6, 40, [35, 36, 37]),
    trials!("emulab8", 6, 80, [34, 35]),
    trials!("emulab8", 8, 40, [34, 35]),
];

/// What tests run.
const QUICK: &str = "emulab8, 36 m, exponent 6, 40 ms";

pub(in super::super) const CALIBRATION: Experiment = Experiment {
    name: "ditto-calibration",
    title: "Ditto, what observers lose",
    about: "What observers reconstruct with several values of overhear_m, overhear_exponent and overhear_spell_ms: how those of map21 and emulab8 were found",
    columns: COLUMNS,
    seeds: [3, 1],
    plan,
    tell,
};

impl Trial {
    fn values(&self) -> [f64; 3] {
        [self.metres, self.shared.exponent, self.shared.spell_ms]
    }

    fn testbed(&self) -> Option<&'static Testbed> {
        TESTBEDS.iter().find(|it| it.scenario == self.scenario)
    }
}

fn trials() -> impl Iterator<Item = &'static Trial> {
    TRIALS.iter().flat_map(|it| it.iter())
}

fn plan(extent: Extent) -> Vec<Point> {
    let mut points = Vec::new();
    for trial in trials().filter(|it| extent == Extent::Full || it.panel == QUICK) {
        let Some(testbed) = trial.testbed() else { continue };
        let values = trial.values().map(|it| it.to_string());
        let settings: Vec<_> = KEYS.into_iter().zip(values).collect();
        let ways = WAYS.iter().filter(|way| figures(testbed).any(|it| it.series == way.series));
        for way in ways {
            points.extend(way.points(testbed, trial.panel, &settings, points.len()));
        }
    }
    points
}

/// A figure of the paper's section 6.2.
#[derive(Clone, Copy, Debug)]
struct Figure {
    what: &'static str,
    /// As `data/targets` calls it.
    scheme: &'static str,
    metric: &'static str,
    /// Which of our ways it is of.
    series: &'static str,
    ours: fn(&Heard<'_>) -> Estimate,
    /// Whether values are set by it; the others are there to check them.
    is_fitted: bool,
}

const BEST: &str = "chunks_reconstructed_by_best_20pct_observers";
const UNUSED: &str = "memory_overhead_of_60pct_observers_below";

const FIGURES: [Figure; 6] = [
    Figure {
        what: "observers that reconstruct anything",
        scheme: "ditto",
        metric: "observers_reconstructing_any",
        series: DITTO,
        ours: |it| it.above(EFFICIENCY, 0.0),
        is_fitted: true,
    },
    Figure {
        what: "observers that reconstruct more than half",
        scheme: "ditto",
        metric: "observers_reconstructing_over_half",
        series: DITTO,
        ours: |it| it.above(EFFICIENCY, 50.0),
        is_fitted: true,
    },
    Figure {
        what: "of 8 KiB chunks, the best fifth reconstructs at least",
        scheme: "ditto-8KB",
        metric: BEST,
        series: DITTO,
        ours: |it| it.quantile(EFFICIENCY, 0.8),
        is_fitted: true,
    },
    Figure {
        what: "of 32 KiB chunks, the best fifth reconstructs at least",
        scheme: "ditto-32KB",
        metric: BEST,
        series: COARSE,
        ours: |it| it.quantile(EFFICIENCY, 0.8),
        is_fitted: true,
    },
    Figure {
        what: "8 KiB, memory overhead of 60 % of those that heard anything, below",
        scheme: "ditto-8KB",
        metric: UNUSED,
        series: DITTO,
        ours: |it| it.quantile_of_hearers(OVERHEAD, 0.6),
        is_fitted: false,
    },
    Figure {
        what: "32 KiB, memory overhead of 60 % of those that heard anything, below",
        scheme: "ditto-32KB",
        metric: UNUSED,
        series: COARSE,
        ours: |it| it.quantile_of_hearers(OVERHEAD, 0.6),
        is_fitted: false,
    },
];

impl Figure {
    fn paper(&self, testbed: &Testbed) -> Option<f64> {
        targets::ditto(testbed.paper, self.scheme, self.metric)
    }
}

/// Those that the paper has of a testbed.
fn figures(testbed: &'static Testbed) -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().filter(|it| it.paper(testbed).is_some())
}

/// What observers reconstruct with one setting.
struct Tried {
    trial: &'static Trial,
    /// Each with ours and the paper's.
    figures: Vec<(&'static Figure, Estimate, f64)>,
    /// How far the fitted ones are from the paper's, in points, added up.
    off: f64,
}

impl Tried {
    fn new(samples: &Samples, trial: &'static Trial) -> Option<Self> {
        let testbed = trial.testbed()?;
        let figure = |it: &'static Figure| {
            let heard = Heard::new(samples, trial.panel, it.series);
            Some((it, (it.ours)(&heard), it.paper(testbed)?))
        };
        let figures: Vec<_> = figures(testbed).filter_map(figure).collect();
        let fitted = figures.iter().filter(|(it, ..)| it.is_fitted);
        let off = fitted.map(|(_, ours, paper)| (ours.mean - paper).abs()).sum();
        Some(Self { trial, figures, off })
    }

    fn rows(&self) -> Vec<Comparison> {
        let row = |(figure, ours, paper): &(&Figure, Estimate, f64)| Comparison {
            heading: self.trial.panel.to_owned(),
            what: figure.what.to_owned(),
            ours: *ours,
            unit: "%",
            expected: Expectation::Figure(*paper),
        };
        self.figures.iter().map(row).collect()
    }
}

fn tell(samples: &Samples) -> Findings {
    let ran = trials().filter(|it| samples.panels().contains(&it.panel));
    let tried: Vec<_> = ran.filter_map(|trial| Tried::new(samples, trial)).collect();
    let of = |scenario: &str| -> Vec<_> {
        tried.iter().filter(|it| it.trial.scenario == scenario).collect()
    };
    let scenarios = || TESTBEDS.iter().map(|it| it.scenario).filter(|it| !of(it).is_empty());
    let parameter = |name, value: &str, why| Parameter { name, value: value.to_owned(), why };
    let mut notes: Vec<_> = shared(&tried).iter().map(|it| together(&tried, *it)).collect();
    notes.extend(scenarios().map(has));
    Findings {
        pictures: scenarios().map(|it| picture(it, &of(it))).collect(),
        rows: tried.iter().flat_map(Tried::rows).collect(),
        parameters: vec![
            parameter(
                "what is fitted",
                "the sum of the distances of ours from the paper's: anything, over half, and in map21 the best fifth at 8 and at 32 KiB",
                "what section 6.2 says of reconstruction; no throughput is looked at",
            ),
            parameter(
                "what is shared",
                "overhear_exponent and overhear_spell_ms",
                "overhear_m is the one number of each testbed",
            ),
        ],
        medium: "as the scenarios have it".to_owned(),
        notes,
    }
}

/// What testbeds may share, each once.
fn shared(tried: &[Tried]) -> Vec<Shared> {
    let mut all: Vec<Shared> = Vec::new();
    for it in tried {
        if !all.contains(&it.trial.shared) {
            all.push(it.trial.shared);
        }
    }
    all
}

/// How near both testbeds come with this in common, each at its best distance.
fn together(tried: &[Tried], shared: Shared) -> String {
    let nearest = |scenario: &str| {
        let of = tried.iter().filter(|it| it.trial.scenario == scenario);
        of.filter(|it| it.trial.shared == shared).min_by(|a, b| a.off.total_cmp(&b.off))
    };
    let best: Vec<_> = TESTBEDS.iter().filter_map(|it| nearest(it.scenario)).collect();
    let sum: f64 = best.iter().map(|it| it.off).sum();
    let one = |it: &&Tried| format!("{} {:.1} at {} m", it.trial.scenario, it.off, it.trial.metres);
    let all: Vec<_> = best.iter().map(one).collect();
    let Shared { exponent, spell_ms } = shared;
    format!("exponent {exponent}, {spell_ms} ms: {sum:.1} points off ({})", all.join(", "))
}

/// What the scenario has.
fn has(scenario: &str) -> String {
    let has = Scenario::load(scenario, &[]);
    let values =
        KEYS.map(|key| has.as_ref().map_or(String::new(), |it| format!("{key} {}", it.key(key))));
    format!("{scenario} has {}", values.join(", "))
}

fn picture(scenario: &str, tried: &[&Tried]) -> Picture {
    let curve = |shared: Shared| {
        let of = tried.iter().filter(|it| it.trial.shared == shared);
        let estimate = |mean| Estimate { mean, half: None, runs: 0 };
        Curve {
            name: format!("exponent {}, {} ms", shared.exponent, shared.spell_ms),
            points: of.map(|it| (it.trial.metres, estimate(it.off))).collect(),
        }
    };
    let mut all: Vec<Shared> = tried.iter().map(|it| it.trial.shared).collect();
    all.dedup();
    let chart = Chart {
        label: format!("distance from the paper's figures, {scenario}"),
        x: "overhear_m, in metres".to_owned(),
        y: "points off, all fitted figures together".to_owned(),
        curves: all.into_iter().map(curve).collect(),
    };
    Picture {
        name: scenario.to_owned(),
        caption: format!("{scenario}: how far what observers reconstruct is from the paper's"),
        svg: chart.svg(),
    }
}
