//! All experiments by name.

use crate::experiment::Experiment;
use crate::{ditto, inpcm, link_plane, meshcache, wine};

/// All experiments, in the order in which they are listed.
pub static ALL: [Experiment; 18] = [
    meshcache::FIG4,
    meshcache::FIG5,
    meshcache::FIG6,
    meshcache::TABLE2,
    meshcache::TABLE3,
    meshcache::TABLE4,
    meshcache::FIG8,
    meshcache::FIG9,
    meshcache::LIARS,
    ditto::PLACES,
    ditto::CALIBRATION,
    ditto::ALL,
    ditto::ELSEWHERE,
    ditto::SENSITIVITY,
    ditto::FIG1,
    inpcm::EXPERIMENT,
    link_plane::EXPERIMENT,
    wine::EXPERIMENT,
];

/// The experiment of this name.
pub fn named(name: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|it| it.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::trial::simulate;
    use crate::experiment::{Clock, Extent, Summary};

    #[test]
    fn of_what_was_not_run_nothing_is_told() {
        let ditto = named("ditto").unwrap();
        let plan = ditto.plan(Extent::Quick, Clock::Virtual, Some(1));
        let jobs = plan.jobs();
        let ran = jobs.iter().filter(|it| it.curve() == ("emulab8 one by one", "end-to-end"));
        let rows = ran.flat_map(|it| it.run().unwrap()).collect();
        let Summary { findings, rows_csv, html, .. } =
            ditto.summarise(rows, Extent::Full, Clock::Real);
        let rows: Vec<_> = findings.rows.iter().map(|it| &it.what[..]).collect();
        assert_eq!(rows, ["emulab8 one by one: end-to-end, median"]);
        assert!(!rows_csv.contains("NaN") && !html.contains("NaN"));
        assert!(html.contains("By real daemons"));
    }

    #[test]
    fn a_trial_says_the_same_of_an_outcome_as_of_a_run() {
        let ditto = named("ditto").unwrap();
        let plan = ditto.plan(Extent::Quick, Clock::Virtual, Some(1));
        let jobs = plan.jobs();
        let job = jobs.iter().find(|it| it.name() == "emulab8.ditto-32-KiB.2.1").unwrap();
        let trial = job.trial().unwrap().unwrap();
        let scenario = trial.scenario().unwrap();
        let outcome = simulate(&scenario, trial.scheme, trial.seed, true).unwrap();
        let text = serde_json::to_string(&outcome).unwrap();
        let read = serde_json::from_str(&text).unwrap();
        // Columns without a value are NaN, which is not equal to itself, so the text is compared.
        let [read, run] = [job.rows_of(&trial, &read), job.run()].map(|it| format!("{it:?}"));
        assert_eq!(read, run);
        assert_eq!(outcome.observers.len(), scenario.routers.len());
    }
}
