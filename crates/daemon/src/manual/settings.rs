//! hearsay.toml(5) and hearsay-far.toml(5): the commented configuration files, as manual pages.

use std::fmt::Write as _;

use super::escaped;

/// The files that packages install.
const SETTINGS: &str = include_str!("../../../../packaging/hearsay.toml");
const FAR_SETTINGS: &str = include_str!("../../../../packaging/far.toml");

/// A part of the file.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Sentences that stand by themselves.
    Text(String),
    /// The head of a table: `mesh` of `[mesh]`.
    Table(String),
    /// Settings with the sentences before them.
    Keys(Vec<Key>, String),
}

/// A setting.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    name: String,
    value: String,
    /// Whether the value is only an example.
    is_example: bool,
}

/// A page: the file's settings, and how it is used.
struct Page {
    /// The page's name, as in `hearsay.toml(5)`.
    name: &'static str,
    path: &'static str,
    /// Whose settings they are.
    of: &'static str,
    settings: &'static str,
    /// Sections behind the settings, in the language of man(7).
    end: &'static str,
}

const PAGES: [Page; 2] = [
    Page {
        name: "hearsay.toml",
        path: "/etc/hearsay/hearsay.toml",
        of: "hearsay(1)",
        settings: SETTINGS,
        end: ".SH EXAMPLES\n.PP\n\
              A router that serves the clients of its bridge, and fetches from its neighbours in the mesh:\n\
              .PP\n.nf\n.RS\n[intercept]\ninterfaces = [\"br\\-lan\"]\n\n[mesh]\ninterfaces = [\"wl0\"]\n\
              key\\-file = \"/etc/hearsay/mesh.key\"\n.RE\n.fi\n.PP\n\
              Whether a file is right, without touching the daemon, and then to use it:\n\
              .PP\n.nf\n.RS\nhearsay check\\-config\nsystemctl reload hearsay\n.RE\n.fi\n\
              .SH \"SEE ALSO\"\nhearsay(1), hearsay\\-run(1), hearsay\\-check\\-config(1), hearsay\\-far.toml(5)\n",
    },
    Page {
        name: "hearsay-far.toml",
        path: "/etc/hearsay/far.toml",
        of: "the far end of an uplink, hearsay-far(1)",
        settings: FAR_SETTINGS,
        end: ".SH EXAMPLES\n.PP\n\
              Whether a file is right, without touching the far end, and then to use it:\n\
              .PP\n.nf\n.RS\nhearsay check\\-config \\-\\-far\nsystemctl reload hearsay\\-far\n.RE\n.fi\n\
              .SH \"SEE ALSO\"\nhearsay(1), hearsay\\-far(1), hearsay\\-check\\-config(1), hearsay.toml(5)\n",
    },
];

/// All pages: the names of their files, and their texts.
pub fn all() -> impl Iterator<Item = (String, Vec<u8>)> {
    PAGES.iter().map(|page| (format!("{}.5", page.name), page.text().into_bytes()))
}

impl Page {
    fn text(&self) -> String {
        let [name, path, of] = [self.name, self.path, self.of].map(escaped);
        let mut page = format!(
            ".TH {name} 5 \"\" \"hearsay {}\"\n.SH NAME\n{name} \\- settings of {of}\n\
             .SH SYNOPSIS\n\\fI{path}\\fR\n.SH DESCRIPTION\n\
             The file is in the language TOML. A setting belongs to the table whose head stands above it.\n",
            env!("CARGO_PKG_VERSION")
        );
        for part in parts(self.settings) {
            // Writing into a `String` cannot fail.
            let _ = match part {
                Part::Text(text) => writeln!(page, ".PP\n{}", escaped(&text)),
                Part::Table(name) => writeln!(page, ".SS \"[{}]\"", escaped(&name)),
                Part::Keys(keys, text) => write!(page, "{}", entry(&keys, &text)),
            };
        }
        page + &format!(".SH FILES\n.TP\n\\fI{path}\\fR\nThe settings.\n") + self.end
    }
}

fn entry(keys: &[Key], text: &str) -> String {
    let mut entry = String::new();
    for (at, key) in keys.iter().enumerate() {
        let (name, value) = (escaped(&key.name), escaped(&key.value));
        let tag = if at == 0 { ".TP" } else { ".TQ" };
        let _ = match key.is_example {
            true => writeln!(entry, "{tag}\n\\fB{name}\\fR, for example {value}"),
            false => writeln!(entry, "{tag}\n\\fB{name}\\fR, by default {value}"),
        };
    }
    entry + &escaped(text) + "\n"
}

/// The file's parts. `#key = value` is a setting with its default, `# key = value` an example, other lines after `#` are
/// sentences about the settings below them.
fn parts(file: &str) -> Vec<Part> {
    let (mut parts, mut text, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for line in file.lines().chain([""]) {
        if let Some(key) = key(line) {
            keys.push(key);
        } else if let Some(sentence) = line.strip_prefix('#') {
            text.push(sentence.trim());
        } else {
            let sentences = std::mem::take(&mut text).join("\n").trim().to_owned();
            let keys = std::mem::take(&mut keys);
            match (keys.is_empty(), sentences.is_empty()) {
                (true, true) => {}
                (true, false) => parts.extend(paragraphs(&sentences).map(Part::Text)),
                (false, _) => parts.push(Part::Keys(keys, sentences)),
            }
            let table = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
            parts.extend(table.map(|name| Part::Table(name.to_owned())));
        }
    }
    parts
}

fn paragraphs(text: &str) -> impl Iterator<Item = String> {
    text.split("\n\n").map(str::to_owned)
}

fn key(line: &str) -> Option<Key> {
    let setting = line.strip_prefix('#')?;
    let (is_example, setting) = match setting.strip_prefix(' ') {
        Some(example) => (true, example),
        None => (false, setting),
    };
    let (name, value) = setting.split_once(" = ")?;
    let is_name = |c: char| c.is_ascii_lowercase() || c == '-';
    name.chars().all(is_name).then(|| Key { name: name.into(), value: value.into(), is_example })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{FAR_KEYS, KEYS};

    #[test]
    fn a_file_is_taken_apart() {
        let key = |name: &str, is_example| Key { name: name.into(), value: "1".into(), is_example };
        assert_eq!(
            parts(
                "# One.\n#\n# Two.\n\n# Of a.\n#a = 1\n[t]\n# Of b\n# and c.\n# b = 1\n#c-d = 1\n"
            ),
            [
                Part::Text("One.".into()),
                Part::Text("Two.".into()),
                Part::Keys(vec![key("a", false)], "Of a.".into()),
                Part::Table("t".into()),
                Part::Keys(vec![key("b", true), key("c-d", false)], "Of b\nand c.".into()),
            ]
        );
    }

    #[test]
    fn every_setting_is_on_its_page() {
        shows_all(SETTINGS, &KEYS);
        shows_all(FAR_SETTINGS, &FAR_KEYS);
    }

    fn shows_all(settings: &str, all: &[(&str, &[&str])]) {
        let parts = parts(settings);
        for &(table, keys) in all {
            let is_table = |key: &str| all.iter().any(|(table, _)| *table == key);
            let from = match table {
                "" => 0,
                table => parts.iter().position(|it| *it == Part::Table(table.into())).unwrap() + 1,
            };
            let of_table = parts[from..].iter().take_while(|it| !matches!(it, Part::Table(_)));
            let there: Vec<_> = of_table
                .filter_map(|part| match part {
                    Part::Keys(keys, _) => Some(keys),
                    _ => None,
                })
                .flatten()
                .map(|key| key.name.as_str())
                .collect();
            for key in keys.iter().filter(|key| !table.is_empty() || !is_table(key)) {
                assert!(there.contains(key), "[{table}] {key}");
            }
        }
    }
}
