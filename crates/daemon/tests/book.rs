//! Runs the steps of the operator's guide: all its pages in order, on one small mesh; and those of the pages on mirrors,
//! with registries that have what they fetch.

use std::process::Stdio;

use crate::guide::{self, Step};
use crate::registries::{MIRROR, Single, missing};
use crate::stage::Stage;
use crate::world::{World, network, skipped, wait_for};

#[test]
fn an_evening_goes_as_the_guide_says() {
    network::inside("an_evening_goes_as_the_guide_says", || {
        let world = World::new();
        let mut stage = Stage::new(&world);
        let pages = guide::summary().into_iter().filter(|it| it.starts_with("operate/"));
        for step in pages.flat_map(|page| guide::steps(&page)) {
            eprintln!("{}", step.place);
            stage.perform(&step);
        }
    });
}

#[test]
fn mirrors_answer_as_their_pages_say() {
    const NAME: &str = "mirrors_answer_as_their_pages_say";
    if let Some(program) = missing(&["curl"]) {
        return skipped(NAME, &format!("{program} is not installed: run scripts/setup"));
    }
    network::inside(NAME, || {
        let (world, _router) = (World::new(), Single::start());
        let pages = guide::summary().into_iter().filter(|it| it.starts_with("mirrors/"));
        let steps: Vec<_> = pages.flat_map(|page| guide::steps(&page)).collect();
        assert!(steps.len() >= 9, "each client's page has a check");
        steps.iter().for_each(|step| check(&world, step));
    });
}

/// Runs a step on the client's machine until it prints what its page says.
fn check(world: &World, step: &Step) {
    let host = MIRROR.trim_start_matches("http://").trim_end_matches(":3142");
    let [script, expected] = [&step.script, step.expected.as_ref().expect("what it prints")]
        .map(|it| it.replace("ROUTER", host));
    wait_for(&step.place, || {
        let output = network::CLIENT
            .command("bash")
            .args(["-c", &format!("exec 2>&1; set -eu\n{script}")])
            .current_dir(world.path(""))
            .stdin(Stdio::null())
            .output()
            .expect("bash starts");
        let printed = String::from_utf8_lossy(&output.stdout);
        let missing = guide::missing(&expected, &printed);
        if !output.status.success() || missing.is_some() {
            eprintln!("{}: no line {missing:?} in\n{printed}", step.place);
            return None;
        }
        Some(())
    });
}
