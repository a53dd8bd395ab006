//! Examples of the manual's pages: what a command line does, and the line.

/// By command (empty: the program itself).
pub const EXAMPLES: [(&str, &[(&str, &str)]); 15] = [
    (
        "",
        &[
            ("See what was saved, and whether all is well:", "hearsay status"),
            ("See what a configuration file means:", "hearsay check-config"),
        ],
    ),
    (
        "run",
        &[
            ("As the service does, with the settings of hearsay.toml(5):", "hearsay run"),
            (
                "On a router, for the clients of its bridge and with its neighbours in the mesh:",
                "hearsay run --intercept br-lan --mesh wl0 --store /mnt/stick/hearsay",
            ),
            (
                "To try it as an ordinary user, with a store in memory:",
                "hearsay run --listen 127.0.0.1:3128 --store memory",
            ),
        ],
    ),
    ("status", &[("", "hearsay status"), ("For a program:", "hearsay status --json")]),
    ("peers", &[("", "hearsay peers")]),
    (
        "uplink",
        &[
            ("What has crossed the uplink:", "hearsay uplink"),
            ("The key that the far end wants to know:", "hearsay uplink --key"),
        ],
    ),
    (
        "far",
        &[
            (
                "On a server, for one gateway:",
                "hearsay far --near 3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29",
            ),
            ("As the service does, with the settings of hearsay-far.toml(5):", "hearsay far"),
            ("Which gateways are connected, and what was saved:", "hearsay far status"),
        ],
    ),
    (
        "ledger",
        &[
            ("All that was ever given and saved:", "hearsay ledger"),
            ("The last month, for a spreadsheet:", "hearsay ledger --since 30d --csv"),
        ],
    ),
    (
        "cache",
        &[
            ("The ten objects that were fetched last:", "hearsay cache --limit 10"),
            ("Fetch a file anew:", "hearsay cache rm http://origin.example/lesson.pdf"),
            (
                "See how much of a host is older than a month, before it is removed:",
                "hearsay cache rm --host origin.example --older 30d --dry-run",
            ),
        ],
    ),
    (
        "get",
        &[
            ("", "hearsay get http://origin.example/lesson.pdf"),
            (
                "Under another name, and only if it is the right file:",
                "hearsay get http://origin.example/a.iso -o /tmp/a.iso --sha256 \
                 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
        ],
    ),
    (
        "put",
        &[
            ("Publish a file; its name is printed:", "hearsay put lesson.pdf"),
            ("List what is published here:", "hearsay put --list"),
        ],
    ),
    (
        "intercept",
        &[
            ("Whether the daemon's rules are all set:", "hearsay intercept check"),
            (
                "Remove what a daemon left that was killed for good:",
                "hearsay intercept remove --interface br-lan",
            ),
        ],
    ),
    (
        "mirror",
        &[
            ("What pip needs to use this router's mirror:", "hearsay mirror setup pip"),
            ("Which archives there are:", "hearsay mirror list"),
        ],
    ),
    (
        "doctor",
        &[("Why is nothing saved:", "hearsay doctor"), ("For a program:", "hearsay doctor --json")],
    ),
    (
        "check-config",
        &[
            ("", "hearsay check-config /etc/hearsay/hearsay.toml"),
            ("Of a far end:", "hearsay check-config --far"),
        ],
    ),
    ("man", &[("Read it without installing it:", "hearsay man")]),
];

/// An example with pipes and redirections, which only a shell understands.
pub const COMPLETIONS: (&str, &str) = (
    "For Bash, for this user:",
    "hearsay completions bash >~/.local/share/bash-completion/completions/hearsay",
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser as _;

    #[test]
    fn every_example_is_right() {
        for (_, line) in EXAMPLES.iter().flat_map(|(_, examples)| examples.iter()) {
            let parsed = Cli::try_parse_from(line.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn every_command_has_an_example() {
        for command in super::super::program().get_subcommands() {
            let name = command.get_name();
            let known = EXAMPLES.iter().any(|(of, all)| *of == name && !all.is_empty());
            assert!(known || ["help", "completions"].contains(&name), "{name}");
        }
    }
}
