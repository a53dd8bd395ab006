//! `hearsay-lab plan interlay`.

use std::fs;

use crate::lab::schema::assert_valid;
use crate::lab::{self, World};

/// WINE's chain (section 5.1).
const CHAIN: [&str; 9] = [
    "plan",
    "interlay",
    "bulk",
    "--set",
    "hops=8",
    "--set",
    "spacing_m=240",
    "--set",
    "basic_mbps=2",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    CHAIN.iter().chain(more).copied().collect()
}

#[test]
fn the_papers_chain_gives_the_papers_nodes() {
    let world = World::new();
    let picture = world.text("mesh.svg");
    let ended = world.run(&with(&["--picture", &picture])).expect(0);
    for part in [
        "two-flow model",
        "algorithm 1",
        "0>1 1>2 2>3\n",
        "\ninterlay = [\"0\", \"3\", \"6\", \"8\"]\n",
    ] {
        assert!(ended.out.contains(part), "no {part}: {}", ended.out);
    }
    let svg = fs::read_to_string(picture).expect("the picture");
    assert!(svg.starts_with("<svg") && svg.contains("plan interlay"), "{svg}");
    assert_eq!(svg.matches(", interlay node<").count(), 4);
}

#[test]
fn what_goes_to_standard_output_stands_there_alone() {
    let world = World::new();
    // Of the test's own: /dev/stdout is the machine's.
    std::os::unix::fs::symlink("/proc/self/fd/1", world.path("stdout")).expect("a link");
    assert_valid(&world.run(&with(&["--json", "stdout"])).expect(0).json());
    let svg = world.run(&with(&["--picture", "stdout"])).expect(0).out;
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with('>'), "{svg}");
}

#[test]
fn json_follows_its_schema() {
    let world = World::new();
    let json = world.run(&with(&["--json", "-"])).expect(0).json();
    assert_valid(&json);
    assert_eq!(json["interlay"], serde_json::json!(["0", "3", "6", "8"]));
    assert_eq!((&json["method"], &json["matrix"]), (&"exact".into(), &"model".into()));
}

#[test]
fn a_simulated_matrix_is_planned_with_and_shows_progress() {
    let world = World::new();
    let args = ["--matrix", "simulate", "--set", "hops=3", "--json", "r.json"];
    let mut command = world.lab(&with(&args));
    command.current_dir(world.path(""));
    let ended = lab::Run::start(command).end().expect(0);
    assert!(ended.err.contains("pairs"), "{}", ended.err);
    assert!(ended.out.contains("simulated pair by pair"), "{}", ended.out);
    let json = fs::read_to_string(world.path("r.json")).expect("the JSON");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_valid(&json);
    // Three links within range of each other, each with the two others.
    assert_eq!(json["interference"].as_array().map(Vec::len), Some(6));
}

#[test]
fn a_dense_mesh_is_planned_by_the_heuristic_and_says_so() {
    let ended = World::new().run(&["plan", "interlay", "map21"]).expect(0);
    for part in ["two-hop heuristic", "within interference range of", "at most 16"] {
        assert!(ended.out.contains(part), "no {part}: {}", ended.out);
    }
}

#[test]
fn a_matrix_in_a_file_is_planned_with() {
    let world = World::new();
    let file = world.text("mine.txt");
    fs::write(&file, "a>b\nb>c\na>b b>c 0.4\nb>c a>b 0.4\n").expect("a file");
    let picture = world.text("mine.svg");
    let ended = world.run(&["plan", "interlay", &file, "--picture", &picture]).expect(0);
    assert!(ended.out.contains("interlay = [\"a\", \"c\"]"), "{}", ended.out);
    assert!(world.path("mine.svg").exists());
}

#[test]
fn what_cannot_be_planned_is_refused_in_one_line() {
    let world = World::new();
    let files = [
        ("empty.txt", "", &["empty.txt", "there is no link"][..]),
        ("twice.txt", "a>b\nb>c\na>b b>c 0.5\na>b b>c 0.6\n", &["twice.txt: line 4", "line 3"]),
        ("value.txt", "a>b\nb>c\na>b b>c 2\n", &["value.txt: line 3", "from 0 to 1"]),
        ("unknown.txt", "a>b\na>b b>c 0.5\n", &["unknown.txt: line 2", "no link b>c"]),
    ];
    for (name, text, parts) in files {
        let file = world.text(name);
        fs::write(&file, text).expect("a file");
        world.run(&["plan", "interlay", &file]).expect_refusal(parts);
    }
    let file = world.text("good.txt");
    fs::write(&file, "a>b\n").expect("a file");
    let missing = world.text("missing.txt");
    for (args, parts) in [
        (&["chian"][..], &["did you mean `chain`?"][..]),
        (&[&missing], &["missing.txt", "No such file"]),
        (&[&file, "--matrix", "model"], &["--matrix is for scenarios"]),
        (&[&file, "--set", "hops=2"], &["--set is for scenarios"]),
        (&["chain", "--picture", "/nowhere/x.svg"], &["/nowhere/x.svg"]),
    ] {
        world.run(&[&["plan", "interlay"], args].concat()).expect_refusal(parts);
    }
}
