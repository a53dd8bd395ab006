//! A manual page for each command, with its options, files and examples.

use std::io::{self, Write};

use clap::Command;
use clap_mangen::Man;

use super::examples::{COMPLETIONS, EXAMPLES};
use super::{begin, commands, end, escaped};

/// What the program reads and writes: path, and what it is.
const FILES: [(&str, &str); 9] = [
    (
        "/etc/hearsay/hearsay.toml",
        "The settings: hearsay.toml(5). A user other than root, without a service manager, has the same file, but a store \
         of his own.",
    ),
    ("/etc/hearsay/classes.d/", "More tables of content classes, in files that end in .toml."),
    (
        "/etc/hearsay/mesh.key",
        "Where [mesh] key-file may keep the mesh's secret. It must belong to the user hearsay, with mode 600.",
    ),
    (
        "/var/cache/hearsay/",
        "The store, the published files, the ledger and this node's identity. Other users cannot read them. \
         ~/.cache/hearsay of an ordinary user.",
    ),
    (
        "/run/hearsay/control.sock",
        "By this socket, commands reach the daemon. Members of the group hearsay may use it.",
    ),
    (
        "/usr/lib/systemd/system/hearsay.service",
        "The unit of the service; `systemctl edit hearsay` changes it.",
    ),
    (
        "/etc/hearsay/far.toml",
        "The settings of a far end: hearsay-far.toml(5). Its unit is hearsay-far.service, which is not enabled.",
    ),
    (
        "/var/lib/hearsay-far/",
        "A far end's key, and what has crossed. ~/.cache/hearsay-far of an ordinary user.",
    ),
    ("/run/hearsay-far/control.sock", "By this socket, `hearsay far status` reaches a far end."),
];

/// All pages: the names of their files, and their texts.
pub fn all(program: &Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let is_ours = |command: &&Command| command.get_name() != "help";
    let mut pages = vec![("hearsay.1".to_owned(), of_program(program)?)];
    for command in program.get_subcommands().filter(is_ours) {
        pages.push((format!("hearsay-{}.1", command.get_name()), of_command(command)?));
    }
    Ok(pages)
}

fn of_program(program: &Command) -> io::Result<Vec<u8>> {
    let (page, mut out) = (Man::new(program.clone()), Vec::new());
    begin(&page, &mut out)?;
    for command in program.get_subcommands().filter(|it| it.get_name() != "help") {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let name = escaped(command.get_name());
        writeln!(out, ".TP\n\\fBhearsay\\-{name}\\fR(1)\n{}", escaped(&about))?;
    }
    files(&mut out)?;
    examples("", &mut out)?;
    writeln!(out, ".SH \"SEE ALSO\"\nhearsay.toml(5), hearsay\\-far.toml(5)")?;
    end(&page, &mut out)?;
    Ok(out)
}

fn of_command(command: &Command) -> io::Result<Vec<u8>> {
    let name = command.get_name();
    // clap calls it by its full name, with which man(1) finds the page: hearsay-status.
    let page = Man::new(command.clone().version(env!("CARGO_PKG_VERSION")))
        .title(format!("hearsay-{name}"))
        .source(concat!("hearsay ", env!("CARGO_PKG_VERSION")));
    let mut out = Vec::new();
    page.render_title(&mut out)?;
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    writeln!(out, ".SH NAME\nhearsay\\-{} \\- {}", escaped(name), escaped(&about))?;
    page.render_synopsis_section(&mut out)?;
    page.render_options_section(&mut out)?;
    if command.get_subcommands().any(|it| it.get_name() != "help") {
        writeln!(out, ".SH COMMANDS")?;
        commands(command, &format!("hearsay {name}"), &mut out)?;
    }
    files(&mut out)?;
    examples(name, &mut out)?;
    writeln!(out, ".SH \"SEE ALSO\"\nhearsay(1), hearsay.toml(5), hearsay\\-far.toml(5)")?;
    end(&page, &mut out)?;
    Ok(out)
}

fn files(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, ".SH FILES")?;
    for (path, what) in FILES {
        writeln!(out, ".TP\n\\fI{}\\fR\n{}", escaped(path), escaped(what))?;
    }
    Ok(())
}

fn examples(command: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, ".SH EXAMPLES")?;
    let listed = EXAMPLES.iter().filter(|(of, _)| *of == command).flat_map(|(_, all)| all.iter());
    let of_shell = (command == "completions").then_some(&COMPLETIONS);
    for (at, (what, line)) in listed.chain(of_shell).enumerate() {
        // A heading begins a paragraph itself.
        if at > 0 {
            writeln!(out, ".PP")?;
        }
        if !what.is_empty() {
            writeln!(out, "{}", escaped(what))?;
        }
        writeln!(out, ".RS\n.nf\n{}\n.fi\n.RE", escaped(line))?;
    }
    Ok(())
}
