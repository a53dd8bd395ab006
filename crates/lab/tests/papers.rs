//! `docs/papers.md`: every mechanism has a command that runs, or a test that exists, or is marked as missing.

use std::path::Path;
use std::process::Command;

use crate::repro::NAMES;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const PAGE: &str = include_str!("../../../docs/papers.md");
const PAPERS: [&str; 5] = ["MeshCache", "Ditto", "Wanax", "InPCM", "WINE"];
/// Scenarios that may transfer smaller files than the paper did, with the same effect.
const OF_FILES: [&str; 3] = ["chain", "emulab8", "map21"];

/// A row of a paper's table in `docs/papers.md`.
struct Row {
    paper: &'static str,
    mechanism: &'static str,
    shown: &'static str,
}

fn rows() -> Vec<Row> {
    let (mut rows, mut paper) = (Vec::new(), "");
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            paper = heading.split_whitespace().next().unwrap_or_default();
        }
        let Some(line) = line.strip_prefix('|').and_then(|it| it.strip_suffix('|')) else {
            continue;
        };
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let is_head = cells[0] == "mechanism" || cells[0].starts_with("--");
        if let ([mechanism, _, _, shown], false, true) = (&cells[..], is_head, !paper.is_empty()) {
            rows.push(Row { paper, mechanism, shown });
        }
    }
    rows
}

/// The texts between back-ticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The words of a command as a shell splits them.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (place, part) in command.split('"').enumerate() {
        let last = words.last_mut().expect("there is one");
        if place % 2 == 1 {
            last.push_str(part);
            continue;
        }
        let mut parts = part.split(' ');
        last.push_str(parts.next().unwrap_or_default());
        words.extend(parts.map(str::to_owned));
    }
    words.retain(|it| !it.is_empty());
    words
}

/// Runs a command in a short form. `repro.rs` runs the experiments.
fn run(command: &str) {
    let mut words = words(command);
    assert_eq!(words.remove(0), "hearsay-lab", "{command}");
    if words[0] == "repro" {
        return assert!(NAMES.contains(&&words[1][..]) && words.len() == 2, "{command}");
    }
    if OF_FILES.contains(&&words[1][..]) {
        words.extend(["--set", "bytes=60000"].map(str::to_owned));
    }
    words.push("--quiet".to_owned());
    let output = Command::new(env!("CARGO_BIN_EXE_hearsay-lab")).args(&words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {said}");
}

#[test]
fn every_mechanism_is_shown_or_missing() {
    let rows = rows();
    for paper in PAPERS {
        assert!(rows.iter().filter(|row| row.paper == paper).count() > 5, "{paper}");
    }
    for Row { paper, mechanism, shown, .. } in &rows {
        let is_shown = quoted(shown).any(|it| it.starts_with("hearsay-lab ") || it.contains('/'));
        assert!(is_shown != shown.starts_with("*missing*"), "{paper}: {mechanism}: {shown}");
        for path in quoted(shown).filter(|it| !it.starts_with("hearsay-lab ")) {
            assert!(Path::new(ROOT).join(path).exists(), "{paper}: {mechanism}: {path}");
        }
    }
}

#[test]
fn every_command_runs() {
    let rows = rows();
    let all = rows.iter().flat_map(|row| quoted(row.shown));
    let mut commands: Vec<_> = all.filter(|it| it.starts_with("hearsay-lab ")).collect();
    commands.sort_unstable();
    commands.dedup();
    assert!(commands.len() > 20, "{commands:?}");
    commands.into_iter().for_each(run);
}

/// The page lists and runs all values of `paper`.
#[test]
fn every_paper_that_can_be_set_is_shown() {
    for paper in wire::Paper::ALL {
        let set = format!("paper={paper}");
        assert!(rows().iter().any(|row| row.shown.contains(&set)), "{paper}");
        assert!(PAGE.contains(&format!("`\"{paper}\"`")), "{paper}");
    }
}
