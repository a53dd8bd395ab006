//! A small experiment: its plan, its runs, and what is told of them.

use std::collections::BTreeMap;

use report::provenance::Setting;
use sim::result::{Gateway, Radio, RunResult};
use wire::Scheme;

use super::*;

/// Two curves: a run has one row of the first, and two of the second.
pub(super) const SMALL: Experiment = Experiment {
    name: "small",
    title: "A small one",
    about: "One figure is measured at one place",
    columns: &["kbps"],
    runs: Runs { simulated: 3, real: 2, quick: 5 },
    short: Short::Smaller,
    plan: |_| {
        vec![
            Point::single(key("one"), |seed| Ok(vec![10.0 * seed as f64])),
            Point::simulated(key("two"), |seed| Ok(vec![vec![seed as f64], vec![0.5]])),
        ]
    },
    summarise: |samples| {
        let row = |series| {
            let ours = samples.mean("a panel", series, 2.5, "kbps");
            Comparison::predicted("", series, ours, "kbit/s", Expectation::Figure(15.0))
        };
        Findings { rows: ["one", "two", "three"].map(row).into(), ..Findings::default() }
    },
};

/// One that real daemons can run.
const TRIED: Experiment = Experiment {
    plan: |_| {
        let trial = |seed| {
            let settings = vec![("bytes".to_owned(), "4000".to_owned())];
            let scheme = Scheme::Ditto;
            Ok(Trial { scenario: "emulab8", settings, scheme, seed, is_observed: false })
        };
        let rows = |scenario: &Scenario, outcome: &Outcome| {
            vec![vec![scenario.routers.len() as f64], vec![outcome.result.wall_seconds]]
        };
        vec![Point::tried(key("one"), trial, rows)]
    },
    ..SMALL
};

fn key(series: &'static str) -> Key {
    Key { panel: "a panel", series, x: 2.5, rank: usize::from(series != "one") }
}

fn rows(experiment: &Experiment, seeds: u64) -> Vec<Row> {
    let plan = experiment.plan(Extent::Full, Clock::Virtual, Some(seeds));
    plan.jobs().iter().flat_map(|it| it.run().unwrap()).collect()
}

#[test]
fn each_point_has_the_runs_that_were_decided_on_or_asked_for() {
    for (extent, clock, asked, seeds) in [
        (Extent::Quick, Clock::Virtual, None, 5),
        (Extent::Quick, Clock::Real, None, 5),
        (Extent::Full, Clock::Virtual, None, 3),
        (Extent::Full, Clock::Real, None, 2),
        (Extent::Full, Clock::Real, Some(4), 4),
    ] {
        let plan = SMALL.plan(extent, clock, asked);
        assert_eq!((plan.seeds(), plan.jobs().len() as u64), (seeds, 2 * seeds));
    }
}

#[test]
fn a_job_is_named_by_its_point_and_its_seed() {
    let plan = SMALL.plan(Extent::Full, Clock::Real, None);
    let jobs = plan.jobs();
    let names: Vec<_> = jobs.iter().map(Job::name).collect();
    assert_eq!(
        names,
        ["a-panel.one.2.5.1", "a-panel.one.2.5.2", "a-panel.two.2.5.1", "a-panel.two.2.5.2"]
    );
    let told: Vec<_> = jobs.iter().map(|it| (it.curve(), it.seed())).collect();
    assert_eq!(told[1], (("a panel", "one"), 2));
    assert_eq!(told[2], (("a panel", "two"), 1));
}

#[test]
fn a_run_gives_its_rows_in_order() {
    let told: Vec<_> =
        rows(&SMALL, 2).into_iter().map(|it| (it.key, it.seed, it.figures)).collect();
    let expected = [
        ("one", 1, 10.0),
        ("one", 2, 20.0),
        ("two", 1, 1.0),
        ("two", 1, 0.5),
        ("two", 2, 2.0),
        ("two", 2, 0.5),
    ];
    assert_eq!(told, expected.map(|(series, seed, figure)| (key(series), seed, vec![figure])));
}

#[test]
fn real_daemons_run_trials_alone() {
    assert!(TRIED.is_for_daemons() && !SMALL.is_for_daemons());
    let result = RunResult {
        scenario: "emulab8".to_owned(),
        scheme: "ditto".to_owned(),
        seed: 2,
        mode: "lab".to_owned(),
        valid: true,
        began_unix_s: 0.0,
        transfers: Vec::new(),
        share_by_source: BTreeMap::new(),
        gateway: Gateway::default(),
        radio: Radio::default(),
        wall_seconds: 7.5,
    };
    let outcome = Outcome { keys: BTreeMap::new(), result, observers: Vec::new() };
    let plan = TRIED.plan(Extent::Full, Clock::Real, None);
    let job = &plan.jobs()[1];
    let trial = job.trial().unwrap().unwrap();
    assert_eq!((trial.scenario, trial.scheme, trial.seed), ("emulab8", Scheme::Ditto, 2));
    let scenario = trial.scenario().unwrap();
    assert_eq!(scenario.key("bytes"), "4000");
    let row = |figure| Row { key: key("one"), seed: 2, figures: vec![figure] };
    let expected = [row(scenario.routers.len() as f64), row(7.5)];
    assert_eq!(job.rows_of(&trial, &outcome).unwrap(), expected);
    let plan = SMALL.plan(Extent::Full, Clock::Real, None);
    let refused = plan.jobs()[0].rows_of(&trial, &outcome).unwrap_err();
    assert_eq!(refused, "a-panel.one.2.5.1 is of the simulator alone");
}

#[test]
fn runs_are_listed_by_rank_place_and_seed_in_whatever_order_they_were_made() {
    let mut rows = rows(&SMALL, 2);
    rows.push(Row { key: Key { x: 1.0, ..key("two") }, seed: 9, figures: vec![7.0] });
    rows.rotate_left(2);
    let of_one = rows.pop().unwrap();
    rows.insert(0, of_one);
    let summary = SMALL.summarise(rows, Extent::Full, Clock::Virtual);
    assert_eq!(
        summary.runs_csv,
        "panel,series,x,seed,kbps\na panel,one,2.5,1,10\na panel,one,2.5,2,20\na panel,two,1,9,7\n\
         a panel,two,2.5,1,1\na panel,two,2.5,1,0.5\na panel,two,2.5,2,2\na panel,two,2.5,2,0.5\n"
    );
}

#[test]
fn what_was_not_run_is_left_out_and_a_smaller_case_is_compared_with_nothing() {
    let expected = |experiment: &Experiment, extent| {
        let summary = experiment.summarise(rows(&SMALL, 2), extent, Clock::Virtual);
        let rows = summary.findings.rows;
        assert_eq!(rows.iter().map(|it| &it.what[..]).collect::<Vec<_>>(), ["one", "two"]);
        assert!(summary.rows_csv.contains(",one,kbit/s,15,"), "{}", summary.rows_csv);
        rows[0].expected
    };
    let same = Experiment { short: Short::SameSize, ..SMALL };
    assert_eq!(expected(&SMALL, Extent::Quick), Expectation::Nothing);
    assert_eq!(expected(&SMALL, Extent::Full), Expectation::Figure(15.0));
    assert_eq!(expected(&same, Extent::Quick), Expectation::Figure(15.0));
    // One run is enough to be told.
    let summary = SMALL.summarise(rows(&SMALL, 1), Extent::Full, Clock::Virtual);
    assert_eq!(summary.findings.rows.len(), 2);
}

#[test]
fn a_points_setting_has_the_keys_that_are_the_same_for_all_seeds() {
    let setting = |seed: u64| {
        let keys = [("hops", "4".to_owned()), ("order", seed.to_string())];
        let keys = keys.map(|(key, value)| (key.to_owned(), value));
        Ok(Setting { scenario: "chain".to_owned(), scheme: None, keys: keys.into() })
    };
    let mut plan = SMALL.plan(Extent::Full, Clock::Virtual, Some(3));
    let second = plan.points.pop().unwrap().within(setting);
    plan.points.push(second);
    plan.points.extend(TRIED.plan(Extent::Full, Clock::Virtual, None).points);
    let played = plan.played().unwrap();
    assert_eq!(played.iter().map(|it| it.key.series).collect::<Vec<_>>(), ["one", "two", "one"]);
    assert!(played[0].setting.is_none());
    let keys = BTreeMap::from([("hops".to_owned(), "4".to_owned())]);
    let expected = Setting { scenario: "chain".to_owned(), scheme: None, keys };
    assert_eq!(played[1].setting, Some(expected));
    // A trial has the setting of its scenario.
    let tried = played[2].setting.as_ref().unwrap();
    assert_eq!((&*tried.scenario, tried.scheme.as_deref()), ("emulab8", Some("ditto")));
    assert_eq!(tried.keys["bytes"], "4000");
}
