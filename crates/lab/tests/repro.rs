//! `hearsay-lab repro`: what it writes, and that it writes the same again.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const NAMES: [&str; 8] = [
    "meshcache-fig4",
    "meshcache-fig5",
    "meshcache-fig6",
    "meshcache-table2",
    "ditto-places",
    "ditto-calibration",
    "ditto",
    "ditto-elsewhere",
];

fn repro(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hearsay-lab")).arg("repro").args(args).output().unwrap()
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn without_a_name_it_lists_them() {
    let output = repro(&[]);
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    let first = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    let names: Vec<_> = listed.lines().map(first).collect();
    assert_eq!(names, [&NAMES[..], &["all"]].concat());
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    let output = repro(&["meshcache-fig9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("meshcache-fig4"));
}

/// A short reproduction: files, the directions of the paper where a few points show them, and the same
/// bytes on one core as on all.
#[test]
fn a_short_reproduction_goes_the_papers_way_and_is_the_same_again() {
    let [once, again] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for (folder, jobs) in [(&once, "2"), (&again, "1")] {
        let folder = folder.path().to_str().unwrap();
        let output = repro(&["all", "--quick", "--quiet", "--jobs", jobs, "--out", folder]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for name in NAMES {
        for ending in [".csv", "-runs.csv", ".html"] {
            let file = format!("{name}{ending}");
            let [a, b] = [&once, &again].map(|folder| text(&folder.path().join(&file)));
            assert!(!a.is_empty() && a == b, "{file} differs");
        }
    }
    let pictures = fs::read_dir(once.path()).unwrap().filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        path.extension().is_some_and(|it| it == "svg") && text(&path).starts_with("<svg")
    });
    assert_eq!(pictures.count(), 4 + 4 + 2 + 3 + 1 + 9 + 1);
    // Figure 4: nothing changes much without fading. Figure 5: with losses of 30 % per-hop wins.
    let rows = |name: &str| text(&once.path().join(format!("{name}.csv")));
    for (name, row) in [
        ("meshcache-fig4", "\"throughput, per-hop over direct, no fading\",6 hops"),
        ("meshcache-fig4", "\"throughput, ph-thcp over thcp, no fading\",6 hops"),
        ("meshcache-fig5", "\"throughput, per-hop over direct, 6 hops\",30 %"),
        ("meshcache-table2", "\"gateway load, schemes compared\",small: thcp over default"),
        ("meshcache-table2", "\"gateway load, schemes compared\",small: ph-thcp over thcp"),
        ("ditto-calibration", "emulab8,53 m: observers that reconstruct anything"),
        (
            "ditto",
            "\"reassembly (figures 15, 16, section 6.3)\",\"emulab8: chunks reconstructed, ditto over each",
        ),
    ] {
        let rows = rows(name);
        let found = rows.lines().find(|line| line.starts_with(row)).expect(row);
        assert!(found.contains(",holds"), "{found}");
    }
}
