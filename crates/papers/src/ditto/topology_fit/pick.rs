//! Draws the routers' places many times, simulates the promising draws, and picks the draw that fits best.

use std::fmt::Write as _;
use std::sync::OnceLock;

use super::expect;
use super::ground::{Ground, Places, ROUTERS};
use super::objective::{
    FIGURES, Figures, MEANINGS, Observed, Table, figures, objective, paper, shares_off,
};
use super::search::{Spot, out_of_hearing_m, search};
use crate::ditto::observe::{WAYS, Way};
use crate::ditto::{figure, parameters};
use crate::experiment::{
    Chosen, Comparison, Estimate, Expectation, Experiment, Extent, Findings, Key, Parameter, Point,
    Runs, Samples, Short, Standing,
};
use sim::scenario::Scenario;

pub(super) const SCENARIO: &str = "map21";
const SERIES: &str = "places";
/// Number of draws, counted from 1. Draw 0 is the scenario's own places.
const DRAWS: u32 = 120;
/// The number of rotations of one or two routers that are tried to improve a draw.
pub(super) const TURNS: usize = 3_000;
/// The expected objective, in percentage points, above which a draw is not simulated.
const PROMISING: f64 = 80.0;
/// Values of `overhear_m` to simulate, in metres relative to the value that is expected to be best.
const AROUND_M: [f64; 3] = [-2.0, 0.0, 2.0];

/// The columns of a row: keys, then the [`FIGURES`] in their order.
pub(super) const COLUMNS: &[&str] = &[
    "overhear_m",
    "simulated",
    "out_of_hearing_m",
    "any",
    "half",
    "best_8",
    "best_32",
    "overhead_8",
    "overhead_32",
    "streams_7",
    "near_below_half",
    "far_median",
    "far_silent",
    "misfit",
];

pub(crate) const PLACES: Experiment = Experiment {
    name: "ditto-places",
    title: "Ditto, where the campus's routers stand",
    about: "Places drawn by chance under the campus's routes, and how near what observers reconstruct there is to the paper's: how those of map21 were found",
    columns: COLUMNS,
    runs: Runs { simulated: 1, real: 0, quick: 1 },
    short: Short::Smaller,
    plan,
    summarise,
};

fn plan(extent: Extent) -> Vec<Point> {
    let draws = if extent == Extent::Full { DRAWS } else { 0 };
    let point = |draw: u32| {
        let key = Key { panel: SCENARIO, series: SERIES, x: f64::from(draw), rank: 0 };
        // Places are the same for all seeds, and finding them takes longer than simulating them.
        let found = OnceLock::new();
        let run = move |seed| match found.get_or_init(|| find(draw)) {
            Ok(spot) => try_out(draw, spot, seed, extent),
            Err(error) => Err(error.clone()),
        };
        // These keys vary within a point: each row has its `overhear_m`, and transfers go to each router,
        // with chunks of both sizes.
        let beside = ["overhear_m", "receivers", "units"];
        Point::simulated(key, run).within(move |_| {
            let scenario = Scenario::load(SCENARIO, &[]).map_err(|error| error.to_string())?;
            let mut setting = scenario.setting(Some(WAYS[0].scheme));
            setting.keys.retain(|key, _| !beside.contains(&key.as_str()));
            Ok(setting)
        })
    };
    (0..=draws).map(point).collect()
}

/// The scenario's own places for draw 0, else the places that the search finds.
fn find(draw: u32) -> Result<Spot, String> {
    let ground = Ground::new();
    match draw {
        0 => Ok(Spot::at(&ground, &own(&ground)?)),
        _ => Ok(search(&ground, u64::from(draw), TURNS)),
    }
}

/// A row with the expected figures of a draw, and a row for each simulated value of `overhear_m`.
fn try_out(draw: u32, spot: &Spot, seed: u64, extent: Extent) -> Result<Vec<Vec<f64>>, String> {
    let ground = Ground::new();
    let expected = expect::figures(&ground, &expect::table(&ground, &spot.places, spot.overhear_m));
    let far_m = |overhear_m| out_of_hearing_m(&ground, &spot.places, overhear_m);
    let row = |overhear_m, is_simulated, figures: &Figures| {
        let head = [overhear_m, f64::from(u8::from(is_simulated)), far_m(overhear_m)];
        head.iter().chain(figures).copied().chain([objective(figures)]).collect()
    };
    let mut rows = vec![row(spot.overhear_m, false, &expected)];
    if draw == 0 || spot.objective <= PROMISING {
        let values = AROUND_M.map(|it| spot.overhear_m + it);
        for overhear_m in if extent == Extent::Full { &values[..] } else { &values[1..2] } {
            let table = simulate(&ground, &spot.places, *overhear_m, seed, extent)?;
            rows.push(row(*overhear_m, true, &figures(&ground, &table)));
        }
    }
    Ok(rows)
}

/// The scenario's places.
pub(super) fn own(ground: &Ground) -> Result<Places, String> {
    let scenario = Scenario::load(SCENARIO, &[]).map_err(|error| error.to_string())?;
    let mut places = [(0.0, 0.0); ROUTERS];
    for router in &scenario.routers {
        let name = router.name.parse().map_err(|_| format!("no such router: {}", router.name))?;
        places[ground.find(name)] = (router.x_m, router.y_m);
    }
    Ok(places)
}

/// Simulates every transfer once, with chunks of both sizes.
fn simulate(
    ground: &Ground,
    places: &Places,
    overhear_m: f64,
    seed: u64,
    extent: Extent,
) -> Result<Table, String> {
    let mut table: Table = [[None; ROUTERS]; ROUTERS];
    for (receiver, observers) in table.iter_mut().enumerate().skip(1) {
        let mut settings = vec![
            ("overhear_m".to_owned(), overhear_m.to_string()),
            ("receivers".to_owned(), ground.names[receiver].to_string()),
        ];
        if extent == Extent::Quick {
            settings.push(("bytes".to_owned(), "30_000".to_owned()));
        }
        let scenario = Scenario::load_placed(SCENARIO, &settings, ground.routers(places))
            .map_err(|error| error.to_string())?;
        let [fine, coarse] = [WAYS[0], WAYS[1]].map(|way: Way| way.watch(&scenario, seed));
        for (size, rows) in [fine?, coarse?].iter().enumerate() {
            for row in rows {
                let observer = ground.find(figure(row, "node") as u8);
                note(observers[observer].get_or_insert_default(), size, row);
            }
        }
    }
    Ok(table)
}

/// Enters the shares of an observer for chunks of one size into the table.
fn note(it: &mut Observed, size: usize, row: &[f64]) {
    let share = |name| figure(row, name) / 100.0;
    it.efficiency[size] = share("efficiency_first");
    it.overhead[size] = share("overhead_first");
    if size == 0 {
        it.alone = share("efficiency_alone");
        it.has_heard = figure(row, "heard_kb") > 0.0;
    }
}

/// A draw at its best value of `overhear_m`, averaged over seeds.
struct Tried {
    draw: u32,
    overhear_m: f64,
    figures: [Estimate; FIGURES.len()],
    objective: f64,
    /// Whether router 7 is in the range of all three senders.
    hears: bool,
}

impl Tried {
    /// Selects the value of `overhear_m` at which the two shares of observers are nearest to the paper's;
    /// `None` if the draw was not simulated.
    fn new(samples: &Samples, x: f64) -> Option<Self> {
        let column = |name| samples.values(SCENARIO, SERIES, x, name);
        let (metres, simulated) = (column("overhear_m"), column("simulated"));
        let far_m = column("out_of_hearing_m");
        let ran = || (0..metres.len()).filter(|it| simulated[*it] > 0.0);
        let mut values: Vec<_> = ran().map(|it| metres[it]).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let at = |overhear_m: f64| {
            FIGURES.map(|name| {
                let all = column(name);
                let rows = ran().filter(|it| metres[*it] == overhear_m);
                Estimate::of(&rows.map(|it| all[it]).collect::<Vec<_>>())
            })
        };
        let means = |figures: &[Estimate; FIGURES.len()]| figures.map(|it| it.mean);
        let tried = values.into_iter().map(|it| (it, at(it)));
        let (overhear_m, figures) = tried.min_by(|(_, one), (_, other)| {
            shares_off(&means(one)).total_cmp(&shares_off(&means(other)))
        })?;
        let hears = ran().all(|it| metres[it] != overhear_m || far_m[it] == 0.0);
        let objective = objective(&means(&figures));
        Some(Self { draw: x as u32, overhear_m, figures, objective, hears })
    }
}

fn summarise(samples: &Samples) -> Findings {
    let xs = samples.xs(SCENARIO).into_iter();
    let mut tried: Vec<_> = xs.filter_map(|x| Tried::new(samples, x)).collect();
    tried.sort_by(|a, b| b.hears.cmp(&a.hears).then(a.objective.total_cmp(&b.objective)));
    let own = tried.iter().find(|it| it.draw == 0);
    let best = tried.iter().find(|it| it.draw > 0);
    let list = tried.iter().filter(|it| it.draw > 0 && it.hears).map(|it| {
        let Tried { draw, overhear_m, objective, .. } = it;
        format!("draw {draw}: {objective:.1} points off at {overhear_m} m")
    });
    Findings {
        pictures: Vec::new(),
        rows: own.into_iter().chain(best).flat_map(rows).collect(),
        parameters: [Parameter {
            name: "what places are chosen by",
            value: "the sum of all figures' distances from the paper's, weighed".to_owned(),
            chosen: Chosen::Fitted,
            why: "figures of reconstruction alone (decision 0019); not by throughput",
        }]
        .into_iter()
        .chain(parameters::parameters())
        .collect(),
        medium: "as the scenario has it".to_owned(),
        notes: best.map(text).into_iter().chain(list).collect(),
    }
}

fn rows(tried: &Tried) -> Vec<Comparison> {
    let heading = match tried.draw {
        0 => format!("the scenario's places, {} m", tried.overhear_m),
        draw => format!("the best, draw {draw}, {} m", tried.overhear_m),
    };
    let row = |what: &str, ours, unit, expected| Comparison {
        heading: heading.clone(),
        what: what.to_owned(),
        ours,
        unit,
        expected,
        standing: Standing::Set("this is what places were chosen by (decision 0019)"),
    };
    let each = MEANINGS.iter().zip(tried.figures).zip(paper());
    let figures = each.map(|((what, ours), paper)| {
        let expected = if paper > 0.0 { Expectation::Figure(paper) } else { Expectation::Nothing };
        row(what, ours, "%", expected)
    });
    let off = row("misfit", Estimate::of(&[tried.objective]), "points", Expectation::Nothing);
    figures.chain([off]).collect()
}

/// The best places in the form of a scenario file.
fn text(best: &Tried) -> String {
    let ground = Ground::new();
    let mut text = format!("draw {}, as a scenario's `[routers]`:", best.draw);
    for router in ground.routers(&search(&ground, u64::from(best.draw), TURNS).places) {
        let _ = write!(text, " {} = [{:.1}, {:.1}]", router.name, router.x_m, router.y_m);
    }
    text
}
