//! The project's rules that a machine can check. ARCHITECTURE.md gives their reasons.

mod book;
mod code;
mod docs;
#[path = "../../daemon/tests/guide/mod.rs"]
mod guide;
mod metrics;
mod places;
mod shape;
mod suite;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Dependencies that do I/O, and the crates of ours that may use them directly.
const TOUCHES_THE_WORLD: [(&str, &[&str]); 11] = [
    ("tokio", &["host", "daemon"]),
    ("tokio-rustls", &["host"]),
    ("hyper", &["host", "daemon"]),
    ("hyper-util", &["host", "daemon"]),
    ("http-body-util", &["host", "daemon"]),
    ("libc", &["host", "store", "daemon"]),
    ("nix", &["host", "store", "daemon"]),
    ("rustix", &["host", "store", "daemon", "lab"]),
    ("socket2", &["host", "store", "daemon"]),
    ("rtnetlink", &["host"]),
    ("redb", &["store"]),
];

/// Licences that require no more than a notice.
const LICENCES: [&str; 16] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
    "bzip2-1.0.6",
];

/// Crates whose own lints differ from the workspace's, so that these files may have `unsafe`: a packet
/// socket and its ring, an option of TCP sockets, and two ioctls of a TAP device, which no library offers safely.
const OWN_LINTS: [(&str, &str); 3] = [
    ("host", "crates/host/src/capture/ring.rs"),
    ("host", "crates/host/src/timeouts.rs"),
    ("lab", "crates/lab/src/realtime/tap.rs"),
];

/// A longer file has more than one job.
const PRODUCT_LINES_MAX: usize = 600;

#[test]
fn crates_import_only_what_the_table_grants() {
    let granted = granted_imports();
    let ours: BTreeSet<_> = granted.keys().cloned().collect();
    let mut packages = workspace_packages();
    packages.retain(is_product);
    let found: BTreeSet<_> = packages.iter().map(name).collect();
    assert_eq!(ours, found, "ARCHITECTURE.md's table (left) and the workspace (right) differ");
    let mut wrong = Vec::new();
    for package in &packages {
        for import in imports(package).intersection(&ours) {
            if !granted[&name(package)].contains(import) {
                wrong.push(format!("{} -> {import}", name(package)));
            }
        }
    }
    none(&wrong, "arrows that ARCHITECTURE.md does not grant");
}

#[test]
fn only_drivers_depend_on_what_touches_the_world() {
    let mut wrong = Vec::new();
    for package in workspace_packages().iter().filter(|it| is_product(it)) {
        let imports = imports(package);
        for (dependency, allowed) in TOUCHES_THE_WORLD {
            if imports.contains(dependency) && !allowed.contains(&name(package).as_str()) {
                wrong.push(format!("{} -> {dependency} (allowed: {allowed:?})", name(package)));
            }
        }
    }
    none(&wrong, "dependencies in the wrong place");
}

#[test]
fn files_are_short() {
    let mut wrong = Vec::new();
    for path in sources() {
        let lines = product_lines(&read(&path));
        if lines > PRODUCT_LINES_MAX {
            wrong.push(format!("{}: {lines} lines", shown(&path)));
        }
    }
    none(&wrong, "files of more than 600 lines before their tests: split along a natural seam");
}

#[test]
fn every_crate_says_what_it_is() {
    let is_head = |path: &PathBuf| {
        path.parent().is_some_and(|it| it.ends_with("src"))
            && path.file_name().is_some_and(|it| it == "lib.rs" || it == "main.rs")
    };
    let wrong: Vec<_> = sources()
        .iter()
        .filter(|path| is_head(path) && !read(path).starts_with("//!"))
        .map(|path| shown(path))
        .collect();
    none(&wrong, "crates that do not begin with //!");
}

#[test]
fn unsafe_code_is_where_it_is_said_to_be() {
    let workspace = read(&root().join("Cargo.toml"));
    assert!(workspace.contains("unsafe_code = \"forbid\""), "the workspace allows unsafe code");
    let mut wrong = Vec::new();
    for package in &workspace_packages() {
        let manifest = read(Path::new(text(&package["manifest_path"])));
        let manifest: toml::Table = manifest.parse().expect("cargo has read it");
        let inherits = manifest.get("lints").and_then(|it| it.get("workspace")?.as_bool());
        let own = OWN_LINTS.iter().any(|(own, _)| *own == name(package));
        let denies =
            manifest.get("lints").and_then(|it| it.get("rust")?.get("unsafe_code")?.as_str());
        if inherits != Some(true) && !(own && denies == Some("deny")) {
            wrong.push(name(package));
        }
    }
    none(&wrong, "crates without `[lints] workspace = true`");
    let allows = ["allow(", "unsafe_code"].concat();
    let wrong: Vec<_> = sources()
        .iter()
        .filter(|path| read(path).contains(&allows))
        .map(|path| shown(path))
        .filter(|path| OWN_LINTS.iter().all(|(_, file)| file != path))
        .collect();
    none(&wrong, "files that allow unsafe code");
}

#[test]
fn what_is_left_to_do_has_an_issue() {
    let words = [["TO", "DO"].concat(), ["FIX", "ME"].concat()];
    let wrong = lines_that(|line| {
        words.iter().any(|word| contains_word(line, word)) && !has_issue_number(line)
    });
    none(&wrong, "open ends without an issue's number (#12)");
}

#[test]
fn files_name_no_place_outside_the_project() {
    let absolute = ["/wo", "rk/"].concat();
    let relative = ["../sha", "red"].concat();
    let wrong = lines_that(|line| {
        line.contains(&relative)
            || line.match_indices(&absolute).any(|(at, _)| {
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | '}'))
            })
    });
    none(&wrong, "paths that exist on one machine only");
}

#[test]
fn every_licence_in_the_tree_is_permissive() {
    let packages = metadata(&[]);
    let mut wrong = Vec::new();
    for package in packages["packages"].as_array().expect("packages") {
        let licence = package["license"].as_str().unwrap_or("none named");
        if !is_permissive(licence) {
            wrong.push(format!("{}: {licence}", name(package)));
        }
    }
    none(&wrong, "dependencies under other licences");
}

#[test]
fn licence_expressions_are_understood() {
    for good in [
        "MIT",
        "MIT/Apache-2.0",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "MIT OR GPL-3.0-only",
        "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
    ] {
        assert!(is_permissive(good), "{good}");
    }
    for bad in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "none named", "(MIT OR ISC) AND MPL-2.0"] {
        assert!(!is_permissive(bad), "{bad}");
    }
}

#[test]
fn decisions_are_numbered_uniquely() {
    let mut seen: BTreeMap<u32, String> = BTreeMap::new();
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root().join("docs/decisions")).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        if !file.ends_with(".md") || file == "README.md" {
            continue;
        }
        let digits: String = file.chars().take_while(char::is_ascii_digit).collect();
        let Ok(number) = digits.parse() else {
            wrong.push(format!("{file}: no number"));
            continue;
        };
        if let Some(other) = seen.insert(number, file.clone()) {
            wrong.push(format!("{number}: {file} and {other}"));
        }
    }
    none(&wrong, "decisions with no number or with another's");
}

fn none(wrong: &[String], what: &str) {
    assert!(wrong.is_empty(), "{what}:\n  {}", wrong.join("\n  "));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn read(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Every file of the project, also those that are not tracked yet.
fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the project").flatten() {
            let skipped = [".git", "target", "artifacts", "corpus", "__pycache__", "Cargo.lock"];
            let is_skipped = skipped.iter().any(|name| entry.file_name() == *name);
            match entry.file_type() {
                _ if is_skipped => {}
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// The Rust files of the product and of its unit tests.
fn sources() -> Vec<PathBuf> {
    let crates = root().join("crates");
    files()
        .into_iter()
        .filter(|path| path.starts_with(&crates) && is_rust(path))
        .filter(|path| path.components().any(|it| it.as_os_str() == "src"))
        .collect()
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "rs")
}

/// The number of lines before the unit tests at a file's end.
fn product_lines(source: &str) -> usize {
    let lines: Vec<_> = source.lines().collect();
    let is_tail = |pair: &[&str]| {
        pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{')
    };
    lines.windows(2).position(is_tail).unwrap_or(lines.len())
}

fn lines_that(is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for path in files() {
        for (number, line) in read(&path).lines().enumerate() {
            if is_wrong(line) {
                wrong.push(format!("{}:{}: {}", shown(&path), number + 1, line.trim()));
            }
        }
    }
    wrong
}

fn contains_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}

fn has_issue_number(line: &str) -> bool {
    line.split('#').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn metadata(options: &[&str]) -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(options)
        .current_dir(root())
        .output()
        .expect("cargo starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {said}\nRun scripts/setup first.");
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

fn workspace_packages() -> Vec<Value> {
    let packages = metadata(&["--no-deps"])["packages"].take();
    serde_json::from_value(packages).expect("a list")
}

/// Whether a package of `crates/` holds a library or a program, and not only tests.
fn is_product(package: &Value) -> bool {
    let is_test = |target: &Value| target["kind"][0] == "test";
    let is_below = text(&package["manifest_path"]).contains("/crates/");
    is_below && !package["targets"].as_array().expect("a list").iter().all(is_test)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn name(package: &Value) -> String {
    text(&package["name"]).to_owned()
}

/// A crate's dependencies, without those of its tests only.
fn imports(package: &Value) -> BTreeSet<String> {
    let dependencies = package["dependencies"].as_array().expect("dependencies");
    dependencies.iter().filter(|it| it["kind"].as_str() != Some("dev")).map(name).collect()
}

/// The table in ARCHITECTURE.md: each crate, and the crates that it may import.
fn granted_imports() -> BTreeMap<String, BTreeSet<String>> {
    let page = read(&root().join("ARCHITECTURE.md"));
    let mut rows = page.lines().skip_while(|line| !line.starts_with("| Crate |"));
    let head: Vec<_> = cells(rows.next().expect("the table of crates in ARCHITECTURE.md"));
    assert_eq!(head, ["Crate", "One line", "Touches", "May import"], "ARCHITECTURE.md's table");
    rows.skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let row = cells(line);
            let [name, _, _, imports] = row[..] else { panic!("not four cells: {line}") };
            (quoted(name).next().expect("a crate's name").to_owned(), {
                quoted(imports).map(str::to_owned).collect()
            })
        })
        .collect()
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// The words between backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Whether an SPDX expression permits use under the licences in [`LICENCES`]. `/` is an old spelling of OR.
fn is_permissive(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let (verdict, rest) = any_of(&words);
    verdict && rest.is_empty()
}

fn any_of<'a>(words: &'a [&'a str]) -> (bool, &'a [&'a str]) {
    let (mut verdict, mut rest) = all_of(words);
    while let ["OR", more @ ..] = rest {
        let (other, after) = all_of(more);
        (verdict, rest) = (verdict | other, after);
    }
    (verdict, rest)
}

fn all_of<'a>(words: &'a [&'a str]) -> (bool, &'a [&'a str]) {
    let (mut verdict, mut rest) = one(words);
    while let ["AND", more @ ..] = rest {
        let (other, after) = one(more);
        (verdict, rest) = (verdict & other, after);
    }
    (verdict, rest)
}

fn one<'a>(words: &'a [&'a str]) -> (bool, &'a [&'a str]) {
    match words {
        ["(", inner @ ..] => match any_of(inner) {
            (verdict, [")", rest @ ..]) => (verdict, rest),
            (_, rest) => (false, rest),
        },
        [licence, "WITH", exception, rest @ ..] => {
            (LICENCES.contains(&format!("{licence} WITH {exception}").as_str()), rest)
        }
        [licence, rest @ ..] => (LICENCES.contains(licence), rest),
        [] => (false, words),
    }
}
