//! The cost of the tests, as far as it can be counted. Seconds depend on the machine: `scripts/test` prints them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::{
    files, is_rust, metadata, name, none, read, root, shown, sources, text, workspace_packages,
};

/// The number of test programs. Each is linked with all that it tests.
const PROGRAMS: usize = 30;

/// The largest number of packages that the workspace is made of, ours included.
const PACKAGES_MAX: usize = 320;

/// The packages that the tests' profile optimises: each takes several times as long to compile as it would otherwise.
const OPTIMISED: [(&str, i64); 12] = [
    ("blake3", 3),
    ("classes", 1),
    ("content", 2),
    ("curve25519-dalek", 3),
    ("link", 1),
    ("node", 1),
    ("plan", 1),
    ("radio", 2),
    ("sim", 1),
    ("snow", 3),
    ("store", 1),
    ("wire", 1),
];

/// Lines of tests that need no package of their own.
const SMALL_TESTS: usize = 40;

/// Reasons for which a test may be ignored: `scripts/test --long` runs it, or it is a tool of another test.
const IGNORED: [&str; 3] = [
    "scripts/test --long runs it",
    "writes the committed corpus",
    "run by the test below, as a process to be killed",
];

#[test]
fn test_programs_are_few() {
    let metadata = metadata(&["--no-deps"]);
    let tested = metadata["workspace_default_members"].as_array().expect("a list");
    let packages = metadata["packages"].as_array().expect("a list");
    let targets = packages
        .iter()
        .filter(|it| tested.contains(&it["id"]))
        .flat_map(|it| it["targets"].as_array().expect("a list"));
    let programs = targets.filter(|it| it["test"] == true).count();
    assert_eq!(programs, PROGRAMS, "test programs, and the number in this file");
}

#[test]
fn dependencies_are_few() {
    let packages = metadata(&[])["packages"].as_array().expect("a list").len();
    assert!(packages <= PACKAGES_MAX, "{packages} packages");
}

#[test]
fn the_tests_profile_optimises_what_is_listed_here() {
    let manifest: toml::Table =
        read(&root().join("Cargo.toml")).parse().expect("cargo has read it");
    let profile = manifest["profile"]["dev"].as_table().expect("the tests' profile");
    assert!(!profile.contains_key("opt-level"), "all is optimised");
    let optimised = profile["package"].as_table().expect("a table").iter();
    let optimised: BTreeMap<_, _> = optimised
        .filter_map(|(name, it)| Some((name.as_str(), it.get("opt-level")?.as_integer()?)))
        .collect();
    assert_eq!(optimised, BTreeMap::from(OPTIMISED));
}

/// Integration tests in the package of an optimised library would be optimised, too.
#[test]
fn tests_of_optimised_libraries_are_packages_of_their_own() {
    let is_optimised = |package: &Value| OPTIMISED.iter().any(|(it, _)| *it == name(package));
    let mut wrong = Vec::new();
    for package in workspace_packages().iter().filter(|it| is_optimised(it)) {
        let targets = package["targets"].as_array().expect("a list").iter();
        for target in targets.filter(|it| it["kind"][0] == "test") {
            let folder = Path::new(text(&target["src_path"])).parent().expect("its folder");
            let tests = files().into_iter().filter(|it| it.starts_with(folder) && is_rust(it));
            let lines = tests.map(|it| read(&it).lines().count()).sum::<usize>();
            if lines > SMALL_TESTS {
                wrong.push(format!("{}: {lines} lines", shown(folder)));
            }
        }
    }
    none(&wrong, "tests that the tests' profile optimises");
}

/// `cargo test -p CRATE` then needs the same features of dependencies as `cargo test`.
#[test]
fn every_package_with_tests_unites_its_features() {
    let mut wrong = Vec::new();
    for package in &workspace_packages() {
        let dependencies = package["dependencies"].as_array().expect("a list");
        let is_united = dependencies.iter().any(|it| it["name"] == "workspace-hack");
        let uses_criterion = dependencies.iter().any(|it| it["name"] == "criterion");
        match name(package).as_str() {
            "benches" | "workspace-hack" => {}
            other if !is_united => {
                wrong.push(format!("{other} has no dev-dependency workspace-hack"))
            }
            other if uses_criterion => {
                wrong.push(format!("{other} has benchmarks: they are in benches/"))
            }
            _ => {}
        }
    }
    none(&wrong, "packages whose tests build more than they need");
}

#[test]
fn ignored_tests_say_who_runs_them() {
    let mark = ["#[ign", "ore"].concat();
    let mut wrong = Vec::new();
    for path in files().iter().filter(|it| is_rust(it)) {
        for line in read(path).lines().filter(|it| it.trim_start().starts_with(&mark)) {
            if !IGNORED.iter().any(|reason| line.contains(reason)) {
                wrong.push(format!("{}: {}", shown(path), line.trim()));
            }
        }
    }
    none(&wrong, "tests that nothing runs");
}

/// Crates without examples do not start rustdoc to look for them.
#[test]
fn crates_with_examples_run_them() {
    let mut wrong = Vec::new();
    for package in workspace_packages() {
        let targets = package["targets"].as_array().expect("a list").iter();
        let runs = targets.into_iter().any(|it| it["doctest"] == true);
        let folder = Path::new(text(&package["manifest_path"])).with_file_name("src");
        let files = sources().into_iter().filter(|it| it.starts_with(&folder));
        let has = files.into_iter().any(|it| has_example(&read(&it)));
        if has != runs {
            wrong.push(format!("{}: examples: {has}, run: {runs}", name(&package)));
        }
    }
    none(&wrong, "crates whose `doctest` in Cargo.toml is wrong");
}

/// Whether a doc comment has a block that rustdoc runs.
fn has_example(source: &str) -> bool {
    let docs = source
        .lines()
        .map(str::trim_start)
        .filter(|it| it.starts_with("///") || it.starts_with("//!"));
    let mut fences = docs.filter_map(|it| it[3..].trim_start().strip_prefix("```"));
    // Every other fence begins a block.
    std::iter::from_fn(|| {
        let begin = fences.next()?;
        fences.next();
        Some(begin)
    })
    .any(|words| words.is_empty() || words == "rust")
}
