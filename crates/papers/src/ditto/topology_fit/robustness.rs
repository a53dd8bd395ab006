//! Throughput at other places at which observers reconstruct about as much: how far gains depend on the
//! choice of places. The choice was made before any of this was run.

use std::sync::Arc;

use super::ground::Ground;
use super::pick::{SCENARIO, TURNS, own};
use super::search::search;
use crate::ditto::fetch::{SERVED, Served, receivers};
use crate::ditto::served::median;
use crate::ditto::summary::paper_gain;
use crate::ditto::{COLUMNS, FETCHINGS, parameters};
use crate::experiment::{
    Chosen, Comparison, Estimate, Expectation, Experiment, Extent, Findings, Key, Parameter,
    Picture, Point, Runs, Samples, Short, Standing, trial,
};
use report::stats;
use report::{Distribution, Series};
use sim::scenario::{Router, Scenario};

/// The panel whose gains are shown.
const PANEL: &str = "map21 one by one";
const GAINS: [[&str; 2]; 2] = [["ditto", "end-to-end"], ["ditto", "on-path"]];

/// The draws of `ditto-places` with the smallest expected objective, best first, each with its `overhear_m`. For
/// draw 93 that is the scenario's; for other simulated draws the nearest value; for the rest 2 m below the
/// expected value, as it was for nearly all simulated draws.
const FITTING: [(u32, f64); 24] = [
    (15, 90.0),
    (93, 88.0),
    (78, 86.0),
    (23, 86.0),
    (65, 86.0),
    (94, 86.0),
    (68, 86.0),
    (115, 86.0),
    (82, 86.0),
    (120, 90.0),
    (97, 86.0),
    (66, 86.0),
    (18, 90.0),
    (86, 86.0),
    (10, 82.0),
    (20, 86.0),
    (119, 90.0),
    (33, 90.0),
    (92, 86.0),
    (63, 86.0),
    (38, 90.0),
    (35, 86.0),
    (67, 86.0),
    (50, 86.0),
];

pub(crate) const ELSEWHERE: Experiment = Experiment {
    name: "ditto-elsewhere",
    title: "Ditto, gains in other places",
    about: "What clients get in the places that fit best beside those of map21: how far gains depend on where routers stand",
    columns: COLUMNS,
    runs: Runs { simulated: 3, real: 0, quick: 1 },
    short: Short::Smaller,
    plan,
    summarise,
};

fn plan(extent: Extent) -> Vec<Point> {
    let ground = Ground::new();
    match extent {
        Extent::Quick => {
            let routers = own(&ground).map(|it| ground.routers(&it)).unwrap_or_default();
            let keys = [("bytes".to_owned(), "20_000".to_owned())];
            points(0, routers, &keys)
        }
        Extent::Full => {
            let each = FITTING.iter().flat_map(|(draw, overhear_m)| {
                let places = search(&ground, u64::from(*draw), TURNS).places;
                let keys = [("overhear_m".to_owned(), overhear_m.to_string())];
                points(*draw, ground.routers(&places), &keys)
            });
            each.collect()
        }
    }
}

/// Each scheme whose gains are shown, at one draw's places.
fn points(draw: u32, routers: Vec<Router>, keys: &[(String, String)]) -> Vec<Point> {
    let routers = Arc::new(routers);
    let is_shown = |it: &Served| GAINS.iter().flatten().any(|series| *series == it.series);
    let point = |(rank, served): (usize, Served)| {
        let key = Key { panel: PANEL, series: served.series, x: f64::from(draw), rank };
        let (routers, keys) = (Arc::clone(&routers), keys.to_vec());
        let scenario = move || scenario(&routers, &keys);
        let within = scenario.clone();
        Point::simulated(key, move |seed| serve(served, &scenario()?, seed))
            .within(move |_| Ok(within()?.setting(Some(served.scheme))))
    };
    SERVED.into_iter().filter(is_shown).enumerate().map(point).collect()
}

fn scenario(routers: &[Router], keys: &[(String, String)]) -> Result<Scenario, String> {
    let fetching = FETCHINGS.into_iter().find(|it| it.panel == PANEL);
    let fetching = fetching.ok_or("no such order of receivers")?;
    let mut settings = fetching.settings(fetching.orders[0])?;
    settings.extend(keys.iter().cloned());
    let scenario = Scenario::load_placed(SCENARIO, &settings, routers.to_vec());
    scenario.map_err(|error| error.to_string())
}

fn serve(served: Served, scenario: &Scenario, seed: u64) -> Result<Vec<Vec<f64>>, String> {
    Ok(receivers(scenario, &trial::simulate(scenario, served.scheme, seed, false)?))
}

fn summarise(samples: &Samples) -> Findings {
    let gains = GAINS.map(|names| (names, gains(samples, names)));
    let series = gains.iter().map(|([over, under], all)| Series {
        name: format!("{over} over {under}"),
        values: all.iter().map(|(_, it)| it.mean).collect(),
        paper: paper_gain(PANEL, over, under).map(|it| (it, 0.5)).into_iter().collect(),
    });
    let caption = format!("{PANEL}: gains, by where routers stand");
    let picture = Distribution {
        label: caption.clone(),
        x: "gain of the median".to_owned(),
        until: None,
        of: "places".to_owned(),
        series: series.collect(),
    };
    Findings {
        pictures: vec![Picture { name: "gains".to_owned(), caption, svg: picture.svg() }],
        rows: gains.iter().flat_map(|(names, all)| rows(names, all)).collect(),
        parameters: [Parameter {
            name: "places",
            value: "the draws of ditto-places of which least is expected to be off, each with its own overhear_m"
                .to_owned(),
            chosen: Chosen::Fitted,
            why: "chosen by what observers reconstruct, as those of the scenario (decision 0019), before any gain there was known",
        }]
        .into_iter()
        .chain(parameters::parameters())
        .collect(),
        medium: "as the scenario has it".to_owned(),
        notes: gains.iter().filter_map(|(names, all)| spread(names, all)).collect(),
    }
}

/// The ratio of median throughputs at each draw's places.
fn gains(samples: &Samples, names: [&str; 2]) -> Vec<(f64, Estimate)> {
    let of = |draw: f64| {
        let [over, under] =
            names.map(|series| samples.series([PANEL, series], Some(draw), Some("node")));
        (draw, over.ratio(median, &under, median))
    };
    samples.xs(PANEL).into_iter().map(of).collect()
}

fn rows([over, under]: &[&str; 2], gains: &[(f64, Estimate)]) -> Vec<Comparison> {
    let paper = paper_gain(PANEL, over, under);
    let row = |(draw, ours): &(f64, Estimate)| Comparison {
        heading: format!("{over} over {under}"),
        what: format!("draw {draw}"),
        ours: *ours,
        unit: "",
        expected: paper.map_or(Expectation::Nothing, Expectation::Ratio),
        standing: Standing::Predicted,
    };
    gains.iter().map(row).collect()
}

/// The median and the range over all draws.
fn spread([over, under]: &[&str; 2], gains: &[(f64, Estimate)]) -> Option<String> {
    let all = stats::sorted(gains.iter().map(|(_, it)| it.mean));
    let (least, most, median) = (all.first()?, all.last()?, stats::median(all.iter().copied())?);
    let at = |share: f64| all[(share * (all.len() - 1) as f64).round() as usize];
    Some(format!(
        "{over} over {under}: {median:.1} in the median of {} places, {:.1} to {:.1} in half of them, \
         {least:.1} to {most:.1} in all",
        all.len(),
        at(0.25),
        at(0.75)
    ))
}
