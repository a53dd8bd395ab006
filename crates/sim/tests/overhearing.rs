//! Routers that overhear, in virtual time.

use sim::result::RunResult;
use sim::router::run::{self, Options, Watchers};
use sim::scenario::Scenario;
use wire::Scheme;

/// The gateway with two leaves, which hear it equally well.
fn leaves(settings: &[(&str, &str)]) -> Scenario {
    let text = "gateway = \"g\"\nbytes = 200_000\nrange_m = 60.0\ncarrier_sense_m = 200.0\n\
                routes = [\"g a\", \"g b\"]\n[routers]\ng = [0, 0]\na = [40, 0]\nb = [0, 40]\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leaves.toml");
    std::fs::write(&path, text).unwrap();
    let settings: Vec<_> =
        settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Scenario::load(path.to_str().unwrap(), &settings).unwrap()
}

fn run(scenario: &Scenario, scheme: Scheme) -> RunResult {
    let result =
        run::run(scenario, scheme, 1, Options::default(), Watchers::default(), |_| {}).unwrap();
    assert!(result.transfers.iter().all(|it| it.sha256_ok), "{:?}", result.transfers);
    result
}

fn share(result: &RunResult, transfer: usize, source: &str) -> f64 {
    let transfer = &result.transfers[transfer];
    let bytes = transfer.bytes_by_source.get(source).copied().unwrap_or(0);
    bytes as f64 / transfer.bytes as f64
}

#[test]
fn who_overheard_all_is_served_by_its_own_router() {
    let scenario = leaves(&[]);
    let [ditto, on_path] = [Scheme::Ditto, Scheme::PhThcp].map(|it| run(&scenario, it));
    assert_eq!(share(&ditto, 0, "origin"), 1.0);
    assert!(share(&ditto, 1, "overheard") > 0.95, "{:?}", ditto.transfers[1].bytes_by_source);
    assert!(ditto.transfers[1].seconds < on_path.transfers[1].seconds / 5.0);
    // Overheard content is not sent over the air again.
    assert!(ditto.gateway.bytes_over_air < on_path.gateway.bytes_over_air * 2 / 3);
    assert_eq!(share(&on_path, 1, "overheard"), 0.0);
}

/// Half of the frames for others are lost: hardly any chunk is complete, but much of each is received.
#[test]
fn what_was_half_heard_is_not_fetched_again() {
    let [with, without] = ["repaired", "dropped"]
        .map(|halves| run(&leaves(&[("overhear_m", "70"), ("halves", halves)]), Scheme::Ditto));
    assert!(share(&with, 1, "repaired") > 0.2, "{:?}", with.transfers[1].bytes_by_source);
    assert_eq!(share(&without, 1, "repaired"), 0.0);
    assert!(with.gateway.bytes_over_air < without.gateway.bytes_over_air);
}

/// Half of the frames for others are lost. Ditto as in its paper uses complete chunks only.
#[test]
fn as_published_what_was_half_heard_is_of_no_use() {
    let [ours, theirs] = ["none", "ditto"].map(|paper| {
        let scenario = leaves(&[("overhear_m", "70"), ("paper", paper)]);
        run(&scenario, scenario.scheme(Some(Scheme::Ditto)).unwrap())
    });
    let used = |it: &RunResult| share(it, 1, "overheard") + share(it, 1, "repaired");
    assert_eq!(share(&theirs, 1, "repaired"), 0.0);
    assert!(used(&theirs) < used(&ours), "{:?}", theirs.transfers[1].bytes_by_source);
    assert!(ours.gateway.bytes_over_air < theirs.gateway.bytes_over_air);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let scenario = leaves(&[("overhear_m", "70")]);
    let [once, again] = [(); 2].map(|()| run(&scenario, Scheme::Ditto));
    assert_eq!(once, again);
}
