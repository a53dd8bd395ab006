//! `hearsay-lab repro`: its files, and that a repetition writes the same bytes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::lab::provenance::{assert_origin, lasting_of};
use crate::lab::schema::assert_valid;

/// The experiments, each of which is run here.
pub const NAMES: [&str; 18] = [
    "meshcache-fig4",
    "meshcache-fig5",
    "meshcache-fig6",
    "meshcache-table2",
    "meshcache-table3",
    "meshcache-table4",
    "meshcache-fig8",
    "meshcache-fig9",
    "meshcache-liars",
    "ditto-places",
    "ditto-calibration",
    "ditto",
    "ditto-elsewhere",
    "ditto-sensitivity",
    "ditto-fig1",
    "inpcm",
    "link-plane",
    "wine",
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
    let output = repro(&["meshcache-fig99"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("meshcache-fig4"));
}

/// Experiments that are repeated on one core: one of files by the engines, one of flows by link planes.
const REPEATED: [&str; 2] = ["meshcache-fig5", "link-plane"];

/// A short reproduction: its files, the paper's directions where a few points show them, and the same bytes
/// on one core as on two.
#[test]
fn a_short_reproduction_goes_the_papers_way_and_is_the_same_again() {
    let [once, again] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let short = |name: &str, jobs: &str, folder: &TempDir| {
        let folder = folder.path().to_str().unwrap();
        let output = repro(&[name, "--quick", "--quiet", "--jobs", jobs, "--out", folder]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    short("all", "2", &once);
    for name in REPEATED {
        short(name, "1", &again);
        files_are_the_same(name, once.path(), again.path());
    }
    for name in NAMES {
        let rows = text(&once.path().join(format!("{name}.csv")));
        assert!(rows.starts_with("# program: hearsay-lab "), "{rows}");
        assert!(rows.contains("\n# command: hearsay-lab repro all --quick "), "{rows}");
        manifest_is_of_what_is_there(once.path(), name);
    }
    let pictures = fs::read_dir(once.path()).unwrap().filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        path.extension().is_some_and(|it| it == "svg") && text(&path).starts_with("<svg")
    });
    assert_eq!(pictures.count(), 4 + 4 + 2 + 3 + 3 + 3 + 3 + 2 + 2 + 1 + 9 + 1 + 1 + 2 + 5 + 4 + 2);
    let all = fs::read_dir(once.path()).unwrap().count();
    assert_eq!(all, 51 + NAMES.len() * 5, "pictures, and five files of each");
    // Figure 4: without fading little changes. Figure 5: with losses of 30 %, per-hop wins.
    let found = |name: &str, row: &str| {
        let rows = text(&once.path().join(format!("{name}.csv")));
        rows.lines().find(|line| line.starts_with(row)).expect(row).to_owned()
    };
    for (name, row, verdict) in [
        (
            "meshcache-fig4",
            "\"throughput, per-hop over direct, no fading\",6 hops",
            "predicted,holds",
        ),
        (
            "meshcache-fig4",
            "\"throughput, ph-thcp over thcp, no fading\",3 hops",
            "predicted,holds",
        ),
        ("meshcache-fig5", "\"throughput, per-hop over direct, 6 hops\",30 %", "set,met"),
        (
            "ditto",
            "\"reassembly (figures 15, 16, section 6.3)\",\"emulab8: chunks reconstructed, ditto over each",
            "given,met",
        ),
        (
            "ditto",
            "throughput of the leaves (figures 17 to 20),\"emulab8 one by one: on-path, median",
            "predicted,open: one run",
        ),
    ] {
        let found = found(name, row);
        assert!(found.contains(&format!(",{verdict},")), "{found}");
    }
    // A row that is smaller than the paper's, or spreads too much in a short run, has no verdict that claims
    // otherwise.
    let gateway = "\"gateway load, schemes compared\",small:";
    for (name, row, unit, least, most) in [
        ("meshcache-table2", &format!("{gateway} thcp over default")[..], "", 0.5, 1.0),
        ("meshcache-table2", &format!("{gateway} ph-thcp over thcp"), "", 0.5, 1.0),
        ("meshcache-table3", &format!("{gateway} ph-bcp over default"), "", 0.1, 0.9),
        ("meshcache-table4", &format!("{gateway} ph-hints over ph-thcp"), "", 0.1, 0.98),
        ("ditto-calibration", "emulab8,53 m: observers that reconstruct anything", "%", 60.0, 80.0),
    ] {
        let found = found(name, row);
        let fields = found[row.len()..].strip_prefix(&format!(",{unit},")).expect(&found);
        let ours: f64 = fields.split(',').next().and_then(|it| it.parse().ok()).expect(&found);
        assert!(least < ours && ours < most, "{found}");
    }
    assert!(!text(&once.path().join("meshcache-table2.csv")).contains("hold"));
}

#[test]
fn the_quick_link_plane_shows_what_each_engine_does_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let output = repro(&["link-plane", "--quick", "--out", folder.path().to_str().unwrap()]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && said.contains("rows, none beside a paper's figure"),
        "{said}"
    );
    assert!(!said.contains("predicted") && said.contains("--quick makes few runs"), "{said}");
    // "PLACE: plain RATE (LOST), paced …", and so on.
    let rates = |place: &str| {
        let line =
            said.lines().find_map(|it| it.trim().strip_prefix(place)?.strip_prefix(": plain "));
        let line = line.unwrap_or_else(|| panic!("no {place} in: {said}"));
        let rate = |it: &str| it.split(' ').find_map(|it| it.parse::<f64>().ok()).unwrap();
        line.split(", ").map(rate).collect::<Vec<_>>()
    };
    let [plain, paced, _, both] = rates("8 hops, 4 flows")[..] else { panic!("{said}") };
    assert!(paced > 1.05 * plain && both > plain, "{said}");
    let [plain, paced, recovered, both] = rates("6 hops, 2 % lost")[..] else { panic!("{said}") };
    assert!(recovered > 3.0 * plain && both > 3.0 * plain && paced > 0.7 * plain, "{said}");
}

#[test]
fn rows_that_no_row_of_a_paper_can_judge_are_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let output = repro(&["meshcache-fig5", "--quick", "--out", folder.path().to_str().unwrap()]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("meshcache-fig5: no row is predicted; 8 set, 0 given; "), "{said}");
}

fn files_are_the_same(name: &str, once: &Path, again: &Path) {
    for ending in [".csv", "-runs.csv", ".html", ".json"] {
        let file = format!("{name}{ending}");
        let [a, b] = [once, again].map(|folder| lasting_of(&file, &text(&folder.join(&file))));
        assert!(!a.is_empty() && a == b, "{file} differs");
    }
}

/// The manifest lists all files of a reproduction with their digests, and each file has its provenance.
fn manifest_is_of_what_is_there(folder: &Path, name: &str) {
    let manifest = text(&folder.join(format!("{name}-manifest.json")));
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_valid(&manifest);
    let told: Value = serde_json::from_str(&text(&folder.join(format!("{name}.json")))).unwrap();
    assert_valid(&told);
    assert!(told["points"].as_array().unwrap().iter().all(|it| it["scenario"].is_string()));
    assert_origin(&manifest["provenance"], "hearsay-lab repro all --quick --quiet --jobs 2 --out");
    let keys = manifest["provenance"]["keys"].as_object().unwrap();
    assert_eq!(keys["receiver"], if name.starts_with("meshcache") { "nolock" } else { "lock" });
    let files = manifest["files"].as_array().unwrap();
    let listed = |it: &&Value| it["path"].as_str().unwrap().starts_with(name);
    assert!(files.len() > 3 && files.iter().filter(listed).count() == files.len());
    for file in files {
        let content = text(&folder.join(file["path"].as_str().unwrap()));
        assert_eq!(file["blake3"], blake3::hash(content.as_bytes()).to_hex().as_str(), "{file}");
        assert_eq!(file["bytes"], content.len());
        assert!(content.contains("hearsay-lab repro all --quick"), "{file}");
    }
}
