use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};

use super::Cli;

#[path = "../../../daemon/tests/guide/mod.rs"]
mod guide;

/// Words of the pages that stand for a value of a fixed set, and such a value.
const PLACEHOLDERS: [(&str, &str); 3] =
    [("SCHEME", "ph-thcp"), ("NAME", "ph-thcp"), ("$scheme", "ph-thcp")];

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

/// Also those that no test runs: in the text, in tables, and in blocks whose runs take minutes.
#[test]
fn commands_in_the_book_are_parsed() {
    let mut pages = guide::summary();
    pages.push("../../../README.md".to_owned());
    // A page of the notebook keeps the commands of its day.
    pages.retain(|page| !page.starts_with("notebook/"));
    let (mut count, mut wrong) = (0, Vec::new());
    for (page, text) in pages.iter().flat_map(|page| guide::texts(page)) {
        for command in commands(&text) {
            count += 1;
            wrong.extend(complaint(&command).map(|why| format!("{page}: {command}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 100, "{count} commands found");
}

#[test]
fn commands_are_found_and_judged() {
    let text = "Run `hearsay-lab sim\nbulk` or:\n```sh\nx=1; hearsay-lab list | grep a # b\n```\n";
    assert_eq!(commands(text), ["hearsay-lab sim bulk", "hearsay-lab list"]);
    for good in
        ["hearsay-lab sim", "hearsay-lab sim x --set 'a=b c' --scheme SCHEME", "hearsay-lab"]
    {
        assert_eq!(complaint(good), None);
    }
    for bad in ["hearsay-lab simulate", "hearsay-lab sim x --sed 1", "hearsay-lab sim x --set a"] {
        assert!(complaint(bad).is_some(), "{bad}");
    }
}

/// The commands of a page: texts between back-ticks, and lines of blocks, up to the end of a shell's command.
fn commands(page: &str) -> Vec<String> {
    let (mut commands, mut is_fenced) = (Vec::new(), false);
    let mut paragraphs = vec![String::new()];
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        match is_fenced && !is_fence {
            true => commands.extend(line.find("hearsay-lab ").map(|at| line[at..].to_owned())),
            false if line.is_empty() || is_fence => paragraphs.push(String::new()),
            false => paragraphs.last_mut().expect("one").extend([line.trim(), " "]),
        }
    }
    let spans = paragraphs.iter().flat_map(|text| text.split('`').skip(1).step_by(2));
    let spans = spans.filter(|span| span.split(' ').next() == Some("hearsay-lab"));
    let commands = spans.map(str::to_owned).chain(commands);
    let ends = [" #", " |", " >", ";", "\"", ")", " &&"];
    let up_to_end = |text: String| {
        let end = ends.iter().filter(|end| !(**end == "\"" && text.matches('"').count() > 1));
        let end = end.filter_map(|it| text.find(it)).min().unwrap_or(text.len());
        text[..end].trim().to_owned()
    };
    commands.map(up_to_end).collect()
}

/// Why clap refuses a command; `None` if it accepts it, or would accept it with more words.
fn complaint(command: &str) -> Option<String> {
    let words =
        words(command).into_iter().filter(|it| !["…", "...", "$how"].contains(&it.as_str()));
    let value = |word: String| {
        let found = PLACEHOLDERS.iter().find(|(placeholder, _)| *placeholder == word);
        found.map_or(word, |(_, value)| (*value).to_owned())
    };
    let error = Cli::try_parse_from(words.map(value)).err()?;
    let is_beginning = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::MissingSubcommand,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
    ];
    (!is_beginning.contains(&error.kind())).then(|| error.to_string())
}

/// The words of a command as a shell splits them.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for letter in command.chars() {
        match (letter, quote) {
            (' ', None) => words.push(String::new()),
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if open == letter => quote = None,
            _ => words.last_mut().expect("one").push(letter),
        }
    }
    words.retain(|it| !it.is_empty());
    words
}
