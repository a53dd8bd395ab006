//! `hearsay man`: one page for the program and all its commands, in the language of man(7).

use std::io::{self, Write};

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;

use crate::cli::{Cli, EXIT_CODES};

/// Prints the page.
pub fn print() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut program = Cli::command();
    program.build();
    // One page with a section for each command, where clap_mangen would make a page for each.
    let page = Man::new(program.clone());
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    page.render_options_section(&mut out)?;
    writeln!(out, ".SH COMMANDS")?;
    commands(&program, "hearsay", &mut out)?;
    writeln!(out, ".SH \"EXIT STATUS\"\n{}", escaped(EXIT_CODES))?;
    page.render_version_section(&mut out)
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

/// Escapes hyphens, which roff would otherwise print as typographic ones. Our texts need no other
/// escapes: none has a leading dot or a backslash.
fn escaped(text: &str) -> String {
    text.replace('-', "\\-")
}
