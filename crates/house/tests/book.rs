//! The book: SUMMARY.md lists all pages, every link has a target, and a test runs each command.

use std::collections::BTreeSet;
use std::path::Path;

use crate::guide::{self, Block};
use crate::{none, root};

/// Pages or folders of them, the test that runs their commands, and the machines of these commands.
const TESTS: [(&str, &str, &[&str]); 7] = [
    ("operate/", "crates/daemon/tests/book.rs", &["client", "router", "gateway"]),
    ("mirrors/", "crates/daemon/tests/book.rs", &["client"]),
    ("research/", "crates/lab/tests/book.rs", &[]),
    ("lab.md", "crates/lab/tests/book.rs", &[]),
    ("link-plane.md", "crates/lab/tests/book.rs", &[]),
    ("simulator.md", "crates/lab/tests/book.rs", &[]),
    ("papers.md", "crates/lab/tests/book.rs", &[]),
];

/// A page that is not in the book, but whose commands are held to the same rules.
const README: &str = "../../../README.md";

/// Languages of a guide's blocks that are not commands.
const LANGUAGES: [&str; 6] = ["text", "toml", "ini", "json", "csv", "rust"];

/// Beginnings of commands that no step runs, and why. `crates/lab/src/cli.rs` parses those of `hearsay-lab`.
const NOT_RUN: [(&str, &str); 32] = [
    ("apt install ", "installs packages"),
    ("opkg install ", "installs packages"),
    ("opkg update", "needs OpenWrt"),
    ("sed -i 's|https\\{0,1\\}://downloads.openwrt.org|", "needs OpenWrt"),
    ("cargo build ", "builds what the test is a part of"),
    ("scp ", "reaches another machine"),
    ("systemctl ", "needs systemd"),
    ("sed -i '/^\\[intercept\\]/", "crates/daemon/tests/package.rs runs it"),
    ("chown hearsay: ", "needs the package's user"),
    ("chmod 600 ", "needs the file"),
    ("install -d -o hearsay ", "needs the package's user"),
    ("runuser -u hearsay ", "needs the package's user"),
    ("podman build ", "builds a container"),
    ("uci ", "needs OpenWrt"),
    ("/etc/init.d/hearsay ", "needs OpenWrt"),
    ("iw dev ", "needs a radio"),
    ("ip link set mon0 up", "needs a radio"),
    ("curl -x 127.0.0.1:3128 http://deb.debian.org/", "needs the Internet"),
    ("scripts/demo", "installs packages, and takes minutes; .ci runs it"),
    ("scripts/test", "runs the tests, this one too"),
    ("hearsay-lab run emulab8 ", "takes a minute or more in real time"),
    ("hearsay-lab compare end-to-end.json default.json ", "needs what the command above writes"),
    ("hearsay-lab run chain --keep", "ends only at Ctrl-C"),
    ("hearsay-lab run uplink --set far=pair --keep", "ends only at Ctrl-C"),
    ("hearsay check-config --far", "crates/daemon/tests/package.rs types it"),
    ("hearsay far status", "crates/daemon/tests/package.rs types it"),
    ("hearsay far --near ", "needs a gateway; crates/daemon/tests/far.rs runs both"),
    ("hearsay uplink --key", "crates/daemon/tests/far.rs runs it"),
    ("hearsay-lab repro all", "takes minutes"),
    ("hearsay-lab repro ditto", "takes minutes, with --real hours"),
    ("hearsay-lab validate --html ", "takes a minute; crates/lab/tests/validate.rs runs --quick"),
    ("hearsay-lab validate --ns3", "takes minutes, and needs ns-3"),
];

/// Programs by which a line is known to be a command.
const PROGRAMS: [&str; 14] = [
    "hearsay ",
    "hearsay-lab ",
    "cargo ",
    "scripts/",
    "apt ",
    "opkg ",
    "systemctl ",
    "curl ",
    "ip ",
    "nft ",
    "iw ",
    "scp ",
    "ssh ",
    "git ",
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
    let (mut wrong, mut pages) = (Vec::new(), guide::summary());
    let run: Vec<_> = pages.iter().flat_map(|page| guide::steps(page)).collect();
    let run: Vec<_> = run.iter().flat_map(|step| step.script.lines().map(command)).collect();
    pages.push(README.to_owned());
    for page in pages {
        let machines = TESTS.iter().find(|(pages, ..)| page.starts_with(pages)).map(|it| it.2);
        let mut may_be_output = false;
        for block in guide::blocks(&page) {
            let complaint = complaint(machines, &block, &run);
            let complaint = complaint.or_else(|| hidden(&block).filter(|_| !may_be_output));
            wrong.extend(complaint.map(|it| format!("{}: {it}", block.place)));
            may_be_output = block.words[0] == "sh";
        }
        let bare = guide::texts(&page).into_iter().flat_map(|(_, text)| indented_commands(&text));
        wrong.extend(bare.map(|line| format!("{page}: a command in no fenced block: {line}")));
    }
    let missing = TESTS.iter().filter(|(_, test, _)| !root().join(test).exists());
    wrong.extend(missing.map(|(_, test, _)| format!("{test} is not there")));
    none(&wrong, "blocks of the book that no test runs (docs/book/README.md has the rules)");
}

/// What is wrong with a block; `None` if it is right. `machines`: where a test runs the page's commands, `None`
/// without such a test. `run`: the commands of all steps.
fn complaint(machines: Option<&[&str]>, block: &Block, run: &[&str]) -> Option<String> {
    let (language, machine) = (block.words[0].as_str(), guide::step(block).machine);
    let is_excused = |line: &str| NOT_RUN.iter().any(|(it, _)| line.starts_with(it));
    let is_run = |line: &str| run.iter().any(|it| is_like(line, it));
    match (language, machines) {
        ("sh", None) => Some("no test runs this page".into()),
        ("sh", Some(machines)) => {
            let is_there = |name| machines.contains(&name);
            let is_there = machine.as_deref().map_or(machines.is_empty(), is_there);
            let wrong = || format!("runs on {machine:?}, not on one of {machines:?}");
            (!is_there).then(wrong)
        }
        ("console", _) => {
            let mut lines = block.text.lines().map(command).filter(|line| !line.is_empty());
            let line = lines.find(|line| !is_excused(line) && !is_run(line))?;
            Some(format!("a test could run this: {line}"))
        }
        _ => (!LANGUAGES.contains(&language)).then(|| format!("what is {language:?}?")),
    }
}

/// A command in a block that is neither a step, nor a list of commands, nor what a step prints.
fn hidden(block: &Block) -> Option<String> {
    let is_command = |line: &&str| PROGRAMS.iter().any(|it| line.trim_start().starts_with(it));
    let line = block.text.lines().find(is_command).filter(|_| block.words[0] == "text")?;
    Some(format!("a command that no test looks for: {line}"))
}

/// A line of a script without its comment.
fn command(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default().trim()
}

/// Whether a step's command is the one shown, in which a word in capitals stands for any word.
fn is_like(shown: &str, run: &str) -> bool {
    let any = |word: &str| word.chars().all(|it| it.is_ascii_uppercase());
    let (shown, run) = (shown.split_whitespace(), run.split_whitespace());
    shown.clone().count() == run.clone().count()
        && shown.zip(run).all(|(shown, run)| shown == run || any(shown))
}

/// Commands that a page shows in an indented block, where no test looks for them.
fn indented_commands(page: &str) -> Vec<String> {
    let (mut commands, mut is_fenced, mut after_gap) = (Vec::new(), false, true);
    for line in page.lines() {
        is_fenced ^= line.trim_start().starts_with("```");
        let is_code = line.starts_with("    ") && after_gap && !is_fenced;
        let is_command = PROGRAMS.iter().any(|it| line.trim_start().starts_with(it));
        commands.extend((is_code && is_command).then(|| line.trim().to_owned()));
        // An indented block begins after an empty line; elsewhere indentation continues a paragraph.
        after_gap = line.is_empty() || is_code;
    }
    commands
}

#[test]
fn commands_outside_of_steps_are_found() {
    let page = "Text:\n\n    hearsay status\n    ls\n\n- item\n    hearsay peers\n\n```sh\n    curl x\n```\n";
    assert_eq!(indented_commands(page), ["hearsay status"]);
    assert!(is_like("hearsay get OID -o FILE", "hearsay get $oid -o lesson.pdf"));
    assert!(
        !is_like("hearsay get OID", "hearsay put FILE") && !is_like("hearsay put", "hearsay put x")
    );
    let block = |words: &str, text: &str| Block {
        place: String::new(),
        words: words.split(',').map(str::to_owned).collect(),
        text: text.to_owned(),
    };
    let run = ["hearsay status"];
    let is_right = |machines, block| complaint(machines, &block, &run).is_none();
    assert!(is_right(None, block("console", "hearsay status  # what it saved\n\nscp a b\n")));
    assert!(!is_right(None, block("console", "hearsay peers\n")));
    assert!(!is_right(Some(&[]), block("console", "hearsay peers\n")));
    assert!(!is_right(None, block("sh", "hearsay status\n")));
    assert!(is_right(Some(&["router"]), block("sh,router", "hearsay peers\n")));
    assert!(hidden(&block("text", "one\n  hearsay peers\n")).is_some());
    assert!(hidden(&block("text", "prints\n")).is_none());
    assert!(hidden(&block("console", "hearsay peers\n")).is_none());
    assert!(!is_right(Some(&["router"]), block("sh", "hearsay peers\n")));
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
