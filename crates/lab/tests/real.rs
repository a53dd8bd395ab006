//! `hearsay-lab repro --real`: each run is made once, and its outcome kept.
//!
//! Whether a run counts depends on what else the machine does, so one test makes a run and takes either verdict.
//! The others find an outcome that was measured earlier: what `real/` has, under today's version and keys.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::provenance::assert_origin;
use crate::lab::schema::assert_valid;
use crate::lab::{Run, World, can_run};

/// The only run that these tests make or keep: the transfer to router 2 with chunks of 32 KiB, heard by the seven
/// others.
const ONE: &str = "emulab8.ditto-32-KiB.2.1";
/// `result` and `observers` of its outcome on 28 November 2026.
const MEASURED: &str = include_str!("real/emulab8.ditto-32-KiB.2.1.json");
/// The settings of its scenario.
const SETTINGS: [&str; 4] = ["--set", "receivers=2", "--set", "units=32KiB"];

fn args<'a>(out: &'a str, only: &'a str) -> [&'a str; 10] {
    ["repro", "ditto", "--real", "--quiet", "--seeds", "1", "--only", only, "--out", out]
}

/// Where the outcome of the one run is kept.
fn kept(world: &World) -> PathBuf {
    world.path(&format!("out/ditto-real/{ONE}.json"))
}

/// Keeps the measured outcome as if this program had made it. Returns the file's text.
fn keep_measured(world: &World) -> String {
    let measured: Value = serde_json::from_str(MEASURED).unwrap();
    let result = &measured["result"];
    let scheme = result["scheme"].as_str().unwrap();
    let seed = result["seed"].to_string();
    // A simulation of the same scenario has the same provenance, but for the command.
    let simulation =
        ["sim", "emulab8", "--scheme", scheme, "--seed", &seed, "--quiet", "--json", "-"];
    let simulated = world.run(&[&simulation[..], &SETTINGS].concat()).expect(0).json();
    let provenance = &simulated["provenance"];
    let outcome = json!({
        "schema": "hearsay/outcome/1",
        "provenance": provenance,
        "keys": provenance["keys"],
        "result": result,
        "observers": measured["observers"],
    });
    assert_valid(&outcome);
    let text = serde_json::to_string_pretty(&outcome).unwrap();
    let path = kept(world);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, &text).unwrap();
    text
}

#[test]
fn a_run_is_kept_or_was_late() {
    if !can_run("a_run_is_kept_or_was_late") {
        return;
    }
    let world = World::new();
    let out = world.text("out");
    // A user may want it elsewhere.
    fs::create_dir_all(world.path("out/ditto-real")).unwrap();
    let elsewhere = world.path("elsewhere.json");
    symlink(&elsewhere, kept(&world)).unwrap();
    // All others are missing from the page.
    let ended = world.run(&args(&out, ONE)).expect(1);
    assert!(ended.err.contains("not made, because --only left them out"), "{}", ended.err);
    // Only the outcome is kept, if anything: no captures, no result beside it.
    assert_eq!(fs::read_dir(world.path("out/ditto-real")).unwrap().count(), 1);
    assert!(kept(&world).is_symlink());
    world.nothing_is_left();
    if ended.err.contains("failed, or the machine was too busy") {
        let late = ended.err.matches(&format!("{ONE}: not valid\n")).count();
        assert_eq!((late, elsewhere.exists()), (3, false), "{}", ended.err);
        assert!(ended.is_late(), "{}", ended.err);
        return;
    }
    let outcome: Value = serde_json::from_slice(&fs::read(elsewhere).unwrap()).unwrap();
    assert_valid(&outcome);
    assert_eq!(outcome["result"]["valid"], true);
    assert_eq!(outcome["result"]["transfers"][0]["sha256_ok"], true);
    // 1 MB in units of 24 to 32 KiB, except for the last.
    let cut = outcome["result"]["gateway"]["units_cut"].as_u64().unwrap();
    assert!((31..=42).contains(&cut), "{cut}");
    let observers = outcome["observers"].as_array().unwrap();
    assert_eq!(observers.len(), 8);
    let heard = observers.iter().filter(|it| it[0]["chunks"].as_u64() > Some(0)).count();
    assert!((3..=8).contains(&heard), "{outcome:#}");
    assert_origin(
        &outcome["provenance"],
        "hearsay-lab run emulab8 --quiet --scheme ph-thcp --seed ",
    );
    let command = outcome["provenance"]["command"].as_str().unwrap();
    assert!(command.contains(&SETTINGS.join(" ")), "the other tests keep another run: {command}");
}

#[test]
fn a_kept_run_is_not_made_again() {
    let world = World::new();
    let text = keep_measured(&world);
    // Without a daemon no run is possible, and none is needed here.
    let mut again = world.lab(&args(&world.text("out"), ONE));
    again.env("HEARSAY_BIN", "/nowhere");
    let again = Run::start(again).end().expect(1);
    assert_eq!((again.out.as_str(), again.err.lines().count()), ("", 1), "{}", again.err);
    assert!(again.err.contains("not made, because --only left them out"), "{}", again.err);
    assert_eq!(fs::read_to_string(kept(&world)).unwrap(), text);
    let page = fs::read_to_string(world.path("out/ditto-real.html")).unwrap();
    assert!(page.contains("By real daemons"), "{page}");
}

#[test]
fn an_outcome_of_another_commit_or_other_keys_is_refused() {
    let world = World::new();
    let text = keep_measured(&world);
    let refused = |kept_text: &str, parts: &[&str]| {
        fs::write(kept(&world), kept_text).unwrap();
        let ended = world.run(&args(&world.text("out"), "nothing"));
        ended.expect_refusal(&[&[ONE, "remove it"], parts].concat());
    };
    let outcome: Value = serde_json::from_str(&text).unwrap();
    let commit = outcome["provenance"]["program"]["commit"].as_str().unwrap();
    let ours = format!("\"commit\": \"{commit}\"");
    let older = text.replace(&ours, "\"commit\": \"0123456789ab\"");
    refused(&older, &["commit 0123456789ab, and this is", commit]);
    let units = "was made with another `units` than this run";
    refused(&text.replace("\"32KiB\"", "\"8KiB\""), &[units]);
    refused("{}", &["is not an outcome of a run"]);
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
