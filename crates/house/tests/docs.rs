//! The pages of figures: each is short, and every table has the command that makes it, its date, the machine, and
//! how much the figures vary.

use crate::{none, read, root};

const PAGES: [&str; 5] = [
    "docs/flows.md",
    "docs/performance.md",
    "docs/redundancy.md",
    "docs/reproduction.md",
    "docs/searches.md",
];

/// The largest number of words on a page, tables included.
const WORDS_MAX: usize = 2_000;

/// Parts of commands that measure; each such command contains one.
const MEASURES: [&str; 5] =
    ["scripts/bench", "scripts/demo", "cargo bench", "cargo test", "hearsay-lab "];

/// Words that say how much figures vary, or that it is not known because there was one run. A range of figures says
/// it, too.
const SPREADS: [&str; 6] = ["±", "within", "interval", "standard error", "deviation", "one run"];

#[test]
fn pages_of_figures_are_short() {
    let words = PAGES.map(|page| (page, words(&read(&root().join(page)))));
    let long = words.into_iter().filter(|&(_, words)| words >= WORDS_MAX);
    none(&long.map(|(page, words)| format!("{page}: {words}")).collect::<Vec<_>>(), "long pages");
}

#[test]
fn tables_say_command_date_machine_and_spread() {
    let mut wrong = Vec::new();
    for page in PAGES {
        let text = read(&root().join(page));
        for section in sections(&text).filter(|it| has_table(it)) {
            let title = section.lines().next().unwrap_or_default();
            if !has_command(section) {
                wrong.push(format!("{page}: {title}: no command"));
            }
            if !has_date(section) {
                wrong.push(format!("{page}: {title}: no date"));
            }
            if !has_machine(&text, section) {
                wrong.push(format!("{page}: {title}: no machine"));
            }
            if !has_spread(section) {
                wrong.push(format!("{page}: {title}: no spread"));
            }
        }
    }
    none(&wrong, "tables that do not say where they come from");
}

/// The number of words; the rules of tables do not count.
fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// The page's sections. The text before the first heading is not one: it only summarises them.
fn sections(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n##").skip(1)
}

fn has_table(section: &str) -> bool {
    section.lines().any(|line| line.starts_with('|'))
}

/// Whether a measuring command stands in backticks, which may span lines.
fn has_command(section: &str) -> bool {
    section.split('`').skip(1).step_by(2).any(|code| MEASURES.iter().any(|it| code.contains(it)))
}

/// Whether the section has a date of the form 20YY-MM-DD.
fn has_date(section: &str) -> bool {
    section.as_bytes().windows(10).any(|it| {
        let is_date = |(at, byte): (usize, &u8)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        };
        it.starts_with(b"20") && it.iter().enumerate().all(is_date)
    })
}

/// Whether the letter of a machine that the page describes follows a date, as in `2026-11-20, A`. What is measured in
/// virtual time is the same on each machine.
fn has_machine(page: &str, section: &str) -> bool {
    let letters = page.split("**").skip(1).step_by(2).filter(|it| it.len() == 1);
    let is_named = |letter: &str| {
        section.match_indices(&format!(", {letter}")).any(|(at, mark)| {
            let after = section[at + mark.len()..].chars().next();
            has_date(&section[at.saturating_sub(10)..at])
                && !after.is_some_and(char::is_alphanumeric)
        })
    };
    letters.into_iter().any(is_named) || section.contains("virtual time")
}

fn has_spread(section: &str) -> bool {
    let is_range = |dash: &str| {
        section.match_indices(dash).any(|(at, _)| {
            let before = section[..at].chars().next_back();
            let after = section[at + dash.len()..].chars().next();
            [before, after].iter().all(|it| it.is_some_and(|it| it.is_ascii_digit()))
        })
    };
    SPREADS.iter().any(|it| section.contains(it)) || is_range("–") || is_range(" to ")
}

#[test]
fn what_tables_lack_is_found() {
    let page = "# Page\n| sum |\n\n## One\n`scripts/bench hit`, 2026-11-20\n| a |\n### Two\nno table\n## Three\n| a |\n";
    let lacking: Vec<_> = sections(page)
        .filter(|it| has_table(it))
        .map(|it| (has_command(it), has_date(it)))
        .collect();
    assert_eq!(lacking, [(true, true), (false, false)]);
    assert!(!has_date("2026-1-20, 1926-11-20") && !has_command("scripts/bench hit"));
    assert_eq!(words("| a | 1.5 (2–3) | – |"), 3);
    let page = "**A**: fast";
    assert!(has_machine(page, "2026-11-20, A: x") && has_machine(page, "in virtual time"));
    assert!(!has_machine(page, "2026-11-20, B") && !has_machine(page, "2026-11-20, As, or, A"));
    assert!(has_spread("1.5 (1.2–1.7)") && has_spread("(1.2 to 1.7)") && has_spread("±2 %"));
    assert!(!has_spread("1.5 – 1.7") && !has_spread("from a to b"));
}
