//! `hearsay man`: manual pages, in the language of man(7).
//!
//! *What this is:* [`print()`], one page for the program and all its commands; [`write_pages`], what a package installs:
//! a page for each command (`manual/pages.rs`), hearsay.toml(5) and hearsay-far.toml(5) (`manual/settings.rs`).

use std::io::{self, Write};
use std::path::Path;

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::cli::{Cli, EXIT_CODES};
use crate::exit::Failure;
use crate::out;

mod examples;
mod pages;
mod settings;

/// Prints one page for the program and all its commands.
pub fn print() -> Result<(), Failure> {
    out::print(page().map_err(Failure::failed)?)
}

fn page() -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let program = program();
    let page = Man::new(program.clone());
    begin(&page, &mut text)?;
    commands(&program, "hearsay", &mut text)?;
    end(&page, &mut text)?;
    Ok(text)
}

/// Writes `hearsay.1`, `hearsay-COMMAND.1` for each command, `hearsay.toml.5` and `hearsay-far.toml.5` into a directory.
pub fn write_pages(dir: &Path) -> io::Result<()> {
    let write = |(name, page): (String, Vec<u8>)| {
        let path = dir.join(name);
        let named = |error| io::Error::other(format!("{}: {error}", path.display()));
        std::fs::write(&path, page).map_err(named)
    };
    pages::all(&program())?.into_iter().chain(settings::all()).try_for_each(write)
}

fn program() -> Command {
    let mut program = Cli::command();
    program.build();
    program
}

/// What a page of the program begins with, up to its commands.
fn begin(page: &Man, out: &mut impl Write) -> io::Result<()> {
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    writeln!(out, ".SH COMMANDS")
}

/// Writes the sections at a page's end.
fn end(page: &Man, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, ".SH \"EXIT STATUS\"\n{}", escaped(EXIT_CODES))?;
    page.render_version_section(out)
}

/// Writes a section for each subcommand, recursively.
fn commands(above: &Command, path: &str, out: &mut impl Write) -> io::Result<()> {
    for command in above.get_subcommands().filter(|it| it.get_name() != "help") {
        let path = format!("{path} {}", command.get_name());
        writeln!(out, ".SS \"{}\"", escaped(&path))?;
        if let Some(about) = command.get_about() {
            writeln!(out, "{}\n.PP", escaped(&about.to_string()))?;
        }
        let manual = Man::new(command.clone());
        let mut text = Vec::new();
        manual.render_synopsis_section(&mut text)?;
        writeln!(text, ".PP")?;
        manual.render_options_section(&mut text)?;
        out.write_all(without_headings(&String::from_utf8_lossy(&text)).as_bytes())?;
        commands(command, &path, out)?;
    }
    Ok(())
}

/// Removes the section headings, and the conditionals that clap_mangen writes before each for old
/// versions of roff.
fn without_headings(text: &str) -> String {
    let is_kept = |line: &&str| ![".SH ", ".ie ", ".el "].iter().any(|it| line.starts_with(it));
    text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

/// Escapes what roff would take for its own: backslashes, hyphens (which it would print as typographic ones), and a dot
/// or an apostrophe at the beginning of a line.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let line = |line: &str| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_taken_for_requests() {
        assert_eq!(escaped("a-b\n.c \\d\n'e"), "a\\-b\n\\&.c \\ed\n\\&'e");
    }
}
