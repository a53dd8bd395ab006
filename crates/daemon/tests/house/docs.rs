//! The pages of figures: each is short, and every table has the command that makes it and its date.

use crate::{none, read, root};

const PAGES: [&str; 2] = ["docs/performance.md", "docs/reproduction.md"];

/// The largest number of words on a page, tables included.
const WORDS_MAX: usize = 2_000;

/// Parts of commands that measure; each such command contains one.
const MEASURES: [&str; 5] =
    ["scripts/bench", "scripts/demo", "cargo bench", "cargo test", "hearsay-lab "];

#[test]
fn pages_of_figures_are_short() {
    let words = PAGES.map(|page| (page, words(&read(&root().join(page)))));
    let long = words.into_iter().filter(|&(_, words)| words >= WORDS_MAX);
    none(&long.map(|(page, words)| format!("{page}: {words}")).collect::<Vec<_>>(), "long pages");
}

#[test]
fn tables_say_command_and_date() {
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
}
