//! Runs the steps of the researcher's guide and of the pages on the lab and the simulator, each page in a
//! directory of its own. Where namespaces are not allowed, only the steps in real time are left out.
//!
//! On a busy machine a run in real time may say that it was late. It must succeed and print the same lines all
//! the same, but its figures may be others than the page's.

use std::path::Path;

use crate::guide::{self, ANYTHING, Step, Way, missing};
use crate::lab::{LATE, World, can_run};
use crate::repro::NAMES;

#[test]
fn the_researchers_guide_goes_as_it_says() {
    run_pages(|page| page.starts_with("research/"));
}

#[test]
fn the_pages_on_the_lab_and_the_simulator_go_as_they_say() {
    run_pages(|page| ["lab.md", "link-plane.md", "simulator.md", "papers.md"].contains(&page));
}

fn run_pages(is_meant: fn(&str) -> bool) {
    for page in guide::summary().iter().filter(|page| is_meant(page)) {
        let steps = guide::steps(page);
        let is_possible = !steps.iter().any(is_in_real_time) || can_run(page);
        let world = World::new();
        let steps = steps.iter().filter(|step| is_possible || !is_in_real_time(step));
        steps.for_each(|step| perform(&world, step));
        world.nothing_is_left();
    }
}

/// Whether a step runs real daemons, or reads what such a step wrote.
fn is_in_real_time(step: &Step) -> bool {
    ["hearsay-lab run ", "real.json", "run.json"].iter().any(|it| step.script.contains(it))
}

/// Runs a step, and compares its output with the expected one.
fn perform(world: &World, step: &Step) {
    assert_eq!(step.way, Way::Once, "{}: steps of this guide are run once", step.place);
    let (is_success, printed) = run(world, &shortened(step));
    let mut expected = step.expected.clone().unwrap_or_default();
    if is_in_real_time(step) && printed.contains(LATE) {
        expected = without_figures(&expected);
    }
    let missing = missing(&expected, &printed);
    assert!(is_success && missing.is_none(), "{}: no line {missing:?} in\n{printed}", step.place);
}

/// A step's script. If the page shows nothing that it prints, and it writes nothing that a later step reads, it makes
/// few runs, and leaves experiments to `repro.rs`.
fn shortened(step: &Step) -> String {
    if step.expected.is_some() || step.script.contains("--json") {
        return step.script.clone();
    }
    let is_experiment = |line: &&str| {
        let mut words = line.split_whitespace();
        let is_repro = words.by_ref().take(2).eq(["hearsay-lab", "repro"]);
        is_repro
            && words.next().is_some_and(|name| NAMES.contains(&name))
            && line.contains("--quick")
    };
    let lines = step.script.lines().filter(|line| !is_experiment(line)).map(with_few_seeds);
    lines.collect::<Vec<_>>().join("\n")
}

fn with_few_seeds(line: &str) -> String {
    let Some((before, after)) = line.split_once("--seeds ") else { return line.to_owned() };
    let rest = after.trim_start_matches(|it: char| it.is_ascii_digit());
    format!("{before}--seeds 2{rest}")
}

/// Expected lines of which only the first word counts.
fn without_figures(expected: &str) -> String {
    let first =
        |line: &str| line.split_whitespace().next().map(|word| format!("{word} {ANYTHING}\n"));
    expected.lines().filter_map(first).collect()
}

/// Runs a script to its end: whether it succeeded, and what it printed.
fn run(world: &World, script: &str) -> (bool, String) {
    let built = Path::new(env!("CARGO_BIN_EXE_hearsay-lab")).parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let script = format!("exec 2>&1; set -eu\n{script}");
    let mut command = world.command("bash");
    command.args(["-c", &script]).env("PATH", format!("{built}:/usr/sbin:/sbin:{path}"));
    let output = command.env("NO_COLOR", "1").output().expect("bash starts");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}
