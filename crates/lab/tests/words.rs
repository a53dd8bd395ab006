//! Commands that only print something.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::lab::{Ended, World, can_run};

#[track_caller]
fn said(args: &[&str]) -> String {
    let world = World::new();
    let Ended { out, err, .. } = world.run(args).expect(0);
    assert_eq!(err, "");
    world.nothing_is_left();
    out
}

#[test]
fn the_list_has_a_line_for_each_scenario() {
    let text = said(&["list"]);
    let (scenarios, note) = text.split_once("\n\n").expect("lines and a note");
    let all: Value = serde_json::from_str(&said(&["list", "--json"])).expect("JSON");
    let all = all.as_array().expect("a list");
    assert_eq!(scenarios.lines().count(), all.len(), "{text}");
    for (line, scenario) in scenarios.lines().zip(all) {
        let (name, description) = line.split_once("  ").expect("a name and a description");
        assert_eq!(scenario["name"], name);
        assert_eq!(scenario["description"], description.trim_start());
    }
    assert!(note.contains("hearsay-lab list SCENARIO"), "{note}");
}

#[test]
fn the_list_of_one_scenario_has_its_keys() {
    for (name, keys) in [
        ("chain", &["hops = 4 ", "bytes = 1000000 ", "range_m = 250 ", "carrier_sense_m = 550 "]),
        ("emulab8", &["gateway = 8 ", "receivers = 1 2 3 4 5 6 7 ", "loss = ", "bytes = "]),
        (
            "uplink",
            &[
                "receivers = gateway ",
                "uplink_up_mbps = 0.128 ",
                "uplink_loss = 0 ",
                "uplink_queue = 1000 ",
            ],
        ),
        ("map21", &["gateway = 11 ", "routing = static ", "uplink_mbps = ", "uplink_delay_ms = "]),
    ] {
        let text = said(&["list", name]);
        assert!(text.starts_with(&format!("{name}: ")) && text.contains("--set"), "{text}");
        for key in keys {
            assert!(text.contains(&format!("\n  {key}")), "no {key} in: {text}");
        }
        let one: Value = serde_json::from_str(&said(&["list", name, "--json"])).expect("JSON");
        let all: Value = serde_json::from_str(&said(&["list", "--json"])).expect("JSON");
        let in_all = all.as_array().expect("a list").iter().find(|it| it["name"] == name);
        assert_eq!(one, Value::from(vec![in_all.expect("it is there").clone()]));
    }
}

#[test]
fn the_list_shows_a_file_of_ones_own_and_helps_with_names() {
    let world = World::new();
    std::fs::write(world.path("mine.toml"), "description = \"Mine.\"\nhops = 3\n")
        .expect("written");
    let text = world.run(&["list", "./mine.toml"]).expect(0).out;
    assert!(text.starts_with("mine: Mine.\n") && text.contains("\n  hops = 3 "), "{text}");
    world.run(&["list", "chian"]).expect_refusal(&["chian", "did you mean `chain`?"]);
}

#[test]
fn the_list_is_there_for_programs_too() {
    let list: Value = serde_json::from_str(&said(&["list", "--json"])).expect("JSON");
    let list = list.as_array().expect("a list");
    let names: Vec<_> = list.iter().filter_map(|it| it["name"].as_str()).collect();
    let ours = ["chain", "emulab8", "map21", "bulk", "mesh50"];
    let papers = ["meshcache-s1", "meshcache-s2", "meshcache-s3"];
    let link_plane = ["wine-chain", "wine-cross", "inpcm-grid"];
    assert_eq!(names, [&ours[..], &papers, &["uplink", "ring8"], &link_plane].concat());
    for scenario in list {
        assert!(scenario["description"].as_str().is_some_and(|it| !it.is_empty()));
        let keys = scenario["keys"].as_array().expect("keys");
        let rate = if scenario["name"] == "inpcm-grid" { "2" } else { "11" };
        let radio = |it: &&Value| it["name"] == "data_mbps" && it["value"] == rate;
        assert!(keys.iter().any(|it| radio(&it)));
        assert!(keys.iter().all(|it| it["meaning"].as_str().is_some_and(|it| it.len() > 10)));
    }
}

#[test]
fn every_key_can_be_set_to_what_the_list_says() {
    if !can_run("every_key_can_be_set_to_what_the_list_says") {
        return;
    }
    let list: Value = serde_json::from_str(&said(&["list", "--json"])).expect("JSON");
    let world = World::new();
    // Scenarios with other traffic are for the simulator.
    let is_files = |key: &Value| key["name"] == "traffic" && key["value"] == "files";
    let is_ours = |it: &&Value| it["keys"].as_array().is_some_and(|keys| keys.iter().any(is_files));
    for scenario in list.as_array().expect("a list").iter().filter(is_ours) {
        let name = scenario["name"].as_str().expect("a name");
        let mut args = vec!["run".to_owned(), name.to_owned()];
        for key in scenario["keys"].as_array().expect("keys") {
            let text = |it: &Value| it.as_str().expect("text").to_owned();
            args.extend([
                "--set".to_owned(),
                format!("{}={}", text(&key["name"]), text(&key["value"])),
            ]);
        }
        // All keys are accepted: the refusal is about the unknown router.
        args.extend(["--pcap".to_owned(), "nobody=x".to_owned()]);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        world.run(&args).expect_refusal(&["--pcap", "nobody"]);
    }
}

#[test]
fn help_names_every_option_and_hides_what_is_inner() {
    let help = said(&["--help"]);
    for part in ["run", "sim", "list", "completions", "man", "Exit codes"] {
        assert!(help.contains(part), "no {part} in: {help}");
    }
    assert!(!help.contains("inside"), "{help}");
    let help = said(&["run", "--help"]);
    for part in ["--scheme", "--set", "--seed", "--json", "--html", "--pcap", "--keep", "--quiet"] {
        assert!(help.contains(part), "no {part} in: {help}");
    }
    assert!(help.contains("end-to-end") && help.contains("default"), "{help}");
    assert!(said(&["--version"]).starts_with("hearsay-lab "));
}

#[test]
fn completions_and_manual_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(said(&["completions", shell]).contains("hearsay-lab"));
    }
    let manual = said(&["man"]);
    assert!(manual.contains(".TH hearsay-lab") && manual.contains("keep"), "{manual}");
}

/// Runs a command whose standard output nobody reads; returns how it ended, and standard error.
fn unread(command: &mut Command) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).output();
    let output = output.expect("it starts");
    (output.status.signal(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    let pipe = Some(rustix::process::Signal::PIPE.as_raw());
    for args in [
        &["list"][..],
        &["list", "chain"],
        &["list", "--json"],
        &["man"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let ended = unread(Command::new(env!("CARGO_BIN_EXE_hearsay-lab")).args(args));
        assert_eq!(ended, (pipe, String::new()), "{args:?}");
    }
    let world = World::new();
    let ended = unread(&mut world.lab(&[
        "sim",
        "chain",
        "--set",
        "bytes=1000",
        "--quiet",
        "--events",
        "/dev/stdout",
    ]));
    assert_eq!(ended, (pipe, String::new()));
}

#[test]
fn a_run_whose_result_nobody_reads_writes_its_files_and_ends_quietly() {
    if !can_run("a_run_whose_result_nobody_reads_writes_its_files_and_ends_quietly") {
        return;
    }
    let world = World::new();
    let args = ["run", "chain", "--set", "hops=1", "--set", "bytes=1000", "--json", "r.json"];
    let (signal, said) = unread(&mut world.lab(&args));
    assert_eq!(signal, Some(rustix::process::Signal::PIPE.as_raw()), "{said}");
    assert!(!said.contains("ended") && !said.contains("panicked"), "{said}");
    assert!(world.path("r.json").exists());
    world.nothing_is_left();
}

#[test]
fn a_run_whose_words_nobody_reads_ends_well() {
    if !can_run("a_run_whose_words_nobody_reads_ends_well") {
        return;
    }
    let world = World::new();
    let mut command =
        world.lab(&["run", "chain", "--set", "hops=1", "--set", "bytes=1000", "--json", "r.json"]);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stderr.take());
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    assert!(world.path("r.json").exists());
    world.nothing_is_left();
}
