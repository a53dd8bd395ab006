//! The book as tests read it: the pages of `docs/book/src`, their fenced blocks, and the steps among these. A step
//! is a shell script and its expected output.

#![allow(dead_code, reason = "no test file uses all of it")]

use std::fs;
use std::path::{Path, PathBuf};

/// The first and the last line of a fenced block begin with this.
const FENCE: &str = "```";

/// Stands for any text in expected output.
pub const ANYTHING: char = '…';

/// A fenced block.
pub struct Block {
    /// The page, and the line of the opening fence in it.
    pub place: String,
    /// The words after the fence: a language, then instructions for a test.
    pub words: Vec<String>,
    /// The lines between the fences.
    pub text: String,
}

/// How a step is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Once; it must succeed.
    Once,
    /// Once; it must fail.
    Fails,
    /// Repeated until it succeeds and prints the expected output.
    Until,
    /// As in a second terminal, where it keeps running.
    Background,
}

/// A script, and its expected output.
pub struct Step {
    /// The page, and the line in it.
    pub place: String,
    /// The machine that runs it; `None` is the reader's own.
    pub machine: Option<String>,
    pub way: Way,
    pub script: String,
    pub expected: Option<String>,
}

/// The folder of the pages.
pub fn pages_dir() -> PathBuf {
    // The users of this file stand at several depths.
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut pages = folders.map(|it| it.join("docs/book/src"));
    pages.find(|it| it.is_dir()).expect("the book is part of the repository")
}

/// The pages that SUMMARY.md names, in its order.
pub fn summary() -> Vec<String> {
    let text = fs::read_to_string(pages_dir().join("SUMMARY.md")).expect("SUMMARY.md");
    let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    links.map(|(path, _)| path.to_owned()).collect()
}

/// A page and the files that it includes: the name and the text of each.
pub fn texts(page: &str) -> Vec<(String, String)> {
    let path = pages_dir().join(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    let names = text.lines().filter_map(|it| it.strip_prefix("{{#include ")?.strip_suffix("}}"));
    // After a colon, mdBook's include names lines or an anchor.
    let names = names.map(|name| name.split(':').next().unwrap_or_default());
    let included = names.map(|name| {
        let text = fs::read_to_string(path.with_file_name(name));
        (name.to_owned(), text.unwrap_or_else(|error| panic!("{page}: {name}: {error}")))
    });
    let included: Vec<_> = included.collect();
    [vec![(page.to_owned(), text)], included].concat()
}

/// The blocks of a page, and of the files that it includes.
pub fn blocks(page: &str) -> Vec<Block> {
    texts(page).iter().flat_map(|(name, text)| in_text(name, text)).collect()
}

fn in_text(page: &str, text: &str) -> Vec<Block> {
    let (mut blocks, mut open) = (Vec::new(), None::<Block>);
    for (number, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix(FENCE), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(words), None) => {
                let words = words.split(',').map(|it| it.trim().to_owned()).collect();
                let place = format!("{page}:{}", number + 1);
                open = Some(Block { place, words, text: String::new() });
            }
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{page}: a fence is not closed");
    blocks
}

/// The steps of a page: its `sh` blocks, each with the `text` block that follows it.
pub fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::<Step>::new();
    let mut may_expect = false;
    for block in blocks(page) {
        match block.words[0].as_str() {
            "sh" => steps.push(step(&block)),
            "text" if may_expect => {
                steps.last_mut().expect("the one before").expected = Some(block.text);
            }
            _ => {}
        }
        may_expect = block.words[0] == "sh";
    }
    steps
}

/// Reads an `sh` block as a step, without its expected output.
pub fn step(block: &Block) -> Step {
    let (mut machine, mut way) = (None, Way::Once);
    for word in &block.words[1..] {
        match word.as_str() {
            "fails" => way = Way::Fails,
            "until" => way = Way::Until,
            "background" => way = Way::Background,
            name => machine = Some(name.to_owned()),
        }
    }
    let (place, script) = (block.place.clone(), block.text.clone());
    Step { place, machine, way, script, expected: None }
}

/// The first expected line that was not printed. Each printed line matches at most one expected line, in any
/// order. The guide may leave out lines, and the width of gaps between words does not matter.
pub fn missing<'a>(expected: &'a str, printed: &str) -> Option<&'a str> {
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut printed: Vec<_> = printed.lines().map(squeeze).collect();
    expected.lines().filter(|line| !line.trim().is_empty()).find(|line| {
        let found = printed.iter().position(|it| is_like(&squeeze(line), it));
        found.map(|at| printed.remove(at)).is_none()
    })
}

/// Whether a line contains the fixed parts of an expected line, in their order.
fn is_like(expected: &str, line: &str) -> bool {
    let parts: Vec<_> = expected.split(ANYTHING).map(str::trim).collect();
    let [first, .., last] = parts[..] else { return line == expected };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in &parts[1..parts.len() - 1] {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}
