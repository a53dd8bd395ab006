//! The book: SUMMARY.md lists all pages, every link has a target, and a test runs each command.

use std::collections::BTreeSet;
use std::path::Path;

use crate::guide::{self, Block};
use crate::{none, root};

/// Folders of pages, the test that runs their commands, and the machines of these commands.
const TESTS: [(&str, &str, &[&str]); 2] = [
    ("operate/", "crates/daemon/tests/book.rs", &["client", "router", "gateway"]),
    ("research/", "crates/lab/tests/book.rs", &[]),
];

/// Languages of a guide's blocks that are not commands.
const LANGUAGES: [&str; 6] = ["text", "toml", "ini", "json", "csv", "rust"];

/// Prefixes of commands that no test can run: they install, reach another machine, need a radio, or take minutes.
const NOT_RUN: [&str; 10] = [
    "apt install ",
    "opkg install ",
    "cargo build ",
    "cargo install ",
    "git clone ",
    "scp ",
    "systemctl ",
    "iw dev ",
    "ip link set mon0 up",
    "hearsay-lab repro ditto --real ",
];

#[test]
fn pages_are_the_ones_that_the_summary_lists() {
    let listed = guide::summary();
    let unique: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), unique.len(), "SUMMARY.md lists a page twice");
    let mut there = BTreeSet::new();
    add_pages(&guide::pages_dir(), "", &mut there);
    there.remove("SUMMARY.md");
    assert_eq!(there, unique, "pages of docs/book/src (left) and SUMMARY.md (right)");
}

/// Adds the pages in a folder and its subfolders. Symbolic links are followed.
fn add_pages(folder: &Path, before: &str, pages: &mut BTreeSet<String>) {
    for entry in folder.read_dir().expect("a folder of the book").flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            add_pages(&path, &format!("{before}{name}/"), pages);
        } else if name.ends_with(".md") {
            pages.insert(format!("{before}{name}"));
        }
    }
}

#[test]
fn links_of_the_book_lead_to_pages() {
    let mut wrong = Vec::new();
    for page in guide::summary() {
        let path = guide::pages_dir().join(&page);
        for line in guide::texts(&page).iter().flat_map(|(_, text)| text.lines()) {
            let links = line.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            let files = links.map(|(link, _)| link.split('#').next().unwrap_or_default());
            let files = files.filter(|link| !link.is_empty() && !link.contains("://"));
            let missing = files.filter(|link| !path.with_file_name(link).exists());
            wrong.extend(missing.map(|link| format!("{page}: {link}")));
        }
    }
    none(&wrong, "links that lead nowhere");
}

#[test]
fn every_command_of_the_book_is_run() {
    let mut wrong = Vec::new();
    for page in guide::summary() {
        let machines = TESTS.iter().find(|(pages, ..)| page.starts_with(pages)).map(|it| it.2);
        for block in guide::blocks(&page) {
            let complaint = complaint(machines, &block);
            wrong.extend(complaint.map(|it| format!("{}: {it}", block.place)));
        }
    }
    let missing = TESTS.iter().filter(|(_, test, _)| !root().join(test).exists());
    wrong.extend(missing.map(|(_, test, _)| format!("{test} is not there")));
    none(&wrong, "blocks of the book that no test runs (docs/book/README.md has the rules)");
}

/// What is wrong with a block; `None` if it is right. `machines`: where a test runs the page's commands, `None`
/// without such a test.
fn complaint(machines: Option<&[&str]>, block: &Block) -> Option<String> {
    let (language, machine) = (block.words[0].as_str(), guide::step(block).machine);
    let Some(machines) = machines else {
        return (language == "sh").then(|| "no test runs this page".into());
    };
    let is_there = machine.as_deref().map_or(machines.is_empty(), |it| machines.contains(&it));
    let is_not_run = |line: &str| NOT_RUN.iter().any(|it| line.starts_with(it));
    match language {
        "sh" if is_there => None,
        "sh" => Some(format!("runs on {machine:?}, not on one of {machines:?}")),
        "console" => {
            let line = block.text.lines().find(|line| !is_not_run(line))?;
            Some(format!("a test could run this: {line}"))
        }
        _ => (!LANGUAGES.contains(&language)).then(|| format!("what is {language:?}?")),
    }
}

#[test]
fn expected_output_is_found_among_what_is_printed() {
    let printed = "a  b 12 c\nsecond\n  third: 5.0 MiB of it";
    for good in ["a b … c", "a b 12 c\n\nthird: … of it", "", "second", "…MiB…", "…\n…\n…"]
    {
        assert_eq!(guide::missing(good, printed), None, "{good}");
    }
    for (bad, line) in [("b 12 c", "b 12 c"), ("second\nsecond", "second"), ("a … d", "a … d")]
    {
        assert_eq!(guide::missing(bad, printed), Some(line));
    }
}
