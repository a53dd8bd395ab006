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
    // The commands have sections of this page, not pages of their own as clap_mangen has it.
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

/// Each command below this one, and those below it.
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

/// Without the section headings, and what stands before each for old versions of roff.
fn without_headings(text: &str) -> String {
    let is_kept = |line: &&str| ![".SH ", ".ie ", ".el "].iter().any(|it| line.starts_with(it));
    text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

/// A hyphen that is typed is a minus for roff; no text of ours begins with a dot or has a backslash.
fn escaped(text: &str) -> String {
    text.replace('-', "\\-")
}
