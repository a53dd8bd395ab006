//! `hearsay-lab repro --real`: each run is made once, and its outcome kept.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::process::Signal;
use serde_json::Value;

use crate::lab::provenance::assert_origin;
use crate::lab::schema::assert_valid;
use crate::lab::{Run, World, can_run};

/// The only run that this test makes: the transfer to router 2 with chunks of 32 KiB, heard by the five
/// others.
const ONE: &str = "emulab8.ditto-32-KiB.2.1";
/// Attempts: a machine that is busy with other tests makes some runs late, and they do not count.
const TRIES_MAX: usize = 5;

fn args<'a>(out: &'a str, only: &'a str) -> [&'a str; 10] {
    ["repro", "ditto", "--real", "--quiet", "--seeds", "1", "--only", only, "--out", out]
}

#[test]
fn a_run_is_kept_and_not_made_again() {
    if !can_run("a_run_is_kept_and_not_made_again") {
        return;
    }
    let world = World::new();
    let out = world.text("out");
    let kept = world.path(&format!("out/ditto-real/{ONE}.json"));
    // A user may want it elsewhere.
    fs::create_dir_all(world.path("out/ditto-real")).unwrap();
    symlink(world.path("elsewhere.json"), &kept).unwrap();
    let mut tries = 0;
    while !kept.exists() {
        assert!(tries < TRIES_MAX, "no run was in time");
        tries += 1;
        let ended = world.run(&args(&out, ONE));
        // All others are missing from the page.
        let ended = ended.expect(1);
        assert_eq!(ended.err.contains("failed, or the machine was too busy"), !kept.exists());
        assert!(ended.err.contains("not made, because --only left them out"), "{}", ended.err);
    }
    let text = fs::read_to_string(&kept).unwrap();
    let outcome: Value = serde_json::from_str(&text).unwrap();
    assert_valid(&outcome);
    assert_eq!(outcome["result"]["transfers"][0]["sha256_ok"], true);
    // 1 MB in units of 24 to 32 KiB, except for the last.
    let cut = outcome["result"]["gateway"]["units_cut"].as_u64().unwrap();
    assert!((31..=42).contains(&cut), "{cut}");
    let observers = outcome["observers"].as_array().unwrap();
    assert_eq!(observers.len(), 8);
    let heard = observers.iter().filter(|it| it[0]["chunks"].as_u64() > Some(0)).count();
    assert!((3..=8).contains(&heard), "{outcome:#}");
    // Only the outcome is kept: no captures, no result beside it.
    let entries = fs::read_dir(world.path("out/ditto-real")).unwrap();
    assert_eq!(entries.count(), 1);
    assert!(kept.is_symlink() && world.path("elsewhere.json").is_file());

    // Without a daemon no run is possible, and none is needed here.
    let mut again = world.lab(&args(&out, ONE));
    again.env("HEARSAY_BIN", "/nowhere");
    let again = Run::start(again).end().expect(1);
    assert_eq!((again.out.as_str(), again.err.lines().count()), ("", 1), "{}", again.err);
    assert_eq!(fs::read_to_string(&kept).unwrap(), text);
    let page = fs::read_to_string(world.path("out/ditto-real.html")).unwrap();
    assert!(page.contains("By real daemons"), "{page}");

    let program = &outcome["provenance"]["program"];
    assert_origin(
        &outcome["provenance"],
        "hearsay-lab run emulab8 --quiet --scheme ph-thcp --seed ",
    );
    let commit = format!("\"commit\": {}", program["commit"]);
    let older = text.replace(&commit, "\"commit\": \"0123456789ab\"");
    fs::write(&kept, older).unwrap();
    let versions = ["commit 0123456789ab, and this is", program["commit"].as_str().unwrap()];
    world.run(&args(&out, "nothing")).expect_refusal(&[&[ONE], &versions[..]].concat());
    for (changed, why) in [
        (text.replace("\"32KiB\"", "\"8KiB\""), "was made with another `units` than this run"),
        ("{}".to_owned(), "is not an outcome of a run"),
    ] {
        fs::write(&kept, changed).unwrap();
        world.run(&args(&out, "nothing")).expect_refusal(&[ONE, why, "remove it"]);
    }
    world.nothing_is_left();
}

#[test]
fn what_another_version_made_is_refused_with_both_named() {
    let world = World::new();
    let out = world.text("out");
    fs::create_dir_all(world.path("out/ditto-real")).unwrap();
    let made = r#"{"provenance": {"program": {"name": "hearsay-lab", "version": "0.0.9", "commit": "unknown"},
        "command": "", "date": "", "machine": {"cpu": "", "cores": 1, "kernel": ""},
        "scenarios": [], "schemes": [], "seeds": [], "keys": {}}, "of that version": true}"#;
    fs::write(world.path(&format!("out/ditto-real/{ONE}.json")), made).unwrap();
    let ours = concat!("this is hearsay-lab ", env!("CARGO_PKG_VERSION"));
    let versions = ["made by hearsay-lab 0.0.9, commit unknown", ours];
    let refused = world.run(&args(&out, "nothing"));
    refused.expect_refusal(&[&[ONE], &versions[..], &["remove it", "--out"]].concat());
}

#[test]
fn ctrl_c_ends_all_runs_and_what_was_begun_is_not_kept() {
    if !can_run("ctrl_c_ends_all_runs_and_what_was_begun_is_not_kept") {
        return;
    }
    let world = World::new();
    let out = world.text("out");
    let mut args = args(&out, "emulab8-one-by-one").to_vec();
    args.extend(["--jobs", "2"]);
    let mut run = world.start(&args);
    run.wait_for_program("curl");
    run.signal(Signal::INT);
    let ended = run.end().expect(130);
    assert_eq!(ended.err.lines().last(), Some("hearsay-lab: interrupted"), "{}", ended.err);
    assert_eq!(fs::read_dir(world.path("out/ditto-real")).unwrap().count(), 0);
    world.nothing_is_left();
}

#[test]
fn what_the_simulator_alone_can_do_is_refused() {
    let world = World::new();
    let refused = world.run(&["repro", "ditto-places", "--real", "--out", &world.text("out")]);
    refused.expect_refusal(&["ditto-places runs in the simulator only", "leave out --real"]);
    for key in ["pace=on", "pace=wine", "recover=on", "recover=inpcm"] {
        let refused = world.run(&["run", "chain", "--set", key]);
        refused.expect_refusal(&["chain: `pace` and `recover`", "`hearsay-lab sim` can"]);
    }
}
