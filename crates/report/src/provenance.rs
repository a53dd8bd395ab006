//! The origin of figures: what a reader needs to make them again, in the form that each kind of file has for it.
//!
//! Pictures, tables and pages are made without it, so that the same values give the same bytes. Drivers have clocks
//! and command lines, and add it to the files that they write ([`Provenance::on_csv`] and the others).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use maud::html;
use serde::{Deserialize, Serialize};

use crate::text;

/// Where figures come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The program, the command, the date and the machine.
    #[serde(flatten)]
    pub origin: Origin,
    /// The names of the scenarios.
    pub scenarios: Vec<String>,
    /// The schemes; empty for traffic that no router can cache.
    pub schemes: Vec<String>,
    /// The seeds of all runs, ascending.
    pub seeds: Vec<u64>,
    /// The keys that had the same value in all runs, with the value, set or not.
    pub keys: BTreeMap<String, String>,
    /// The other keys, with all their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub varied: BTreeMap<String, BTreeSet<String>>,
}

/// The program that makes a file, the command, the date and the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The program.
    pub program: Program,
    /// The command line, quoted for a shell.
    pub command: String,
    /// The date and time in UTC, in the form of RFC 3339.
    pub date: String,
    /// The machine.
    pub machine: Machine,
}

/// A build of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit that it was built from, followed by `-dirty` if files had changed since. `unknown` if it was
    /// built without git.
    pub commit: String,
}

/// A kind of machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model.
    pub cpu: String,
    /// The number of processors.
    pub cores: usize,
    /// The kernel and its release.
    pub kernel: String,
}

/// The setting of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The scenario's name.
    pub scenario: String,
    /// The scheme; `None` for traffic that no router can cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// All keys with their values, set or not.
    pub keys: BTreeMap<String, String>,
}

/// The content of a JSON file, with its schema and its origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stamped<T> {
    /// The name of its schema, and its version: `hearsay/run/1` is in `docs/schema/run-1.json`.
    pub schema: String,
    /// The origin of the content.
    pub provenance: Provenance,
    /// The content. Its members stand beside the two above.
    #[serde(flatten)]
    pub content: T,
}

impl Setting {
    /// The setting with only those keys that have the same value in another one, for runs that differ by their seeds.
    pub fn common(mut self, other: &Self) -> Self {
        self.keys.retain(|key, value| other.keys.get(key) == Some(value));
        self
    }
}

impl Provenance {
    /// The origin of runs in these settings.
    pub fn new(origin: Origin, settings: &[Setting], seeds: impl IntoIterator<Item = u64>) -> Self {
        let names: BTreeSet<_> = settings.iter().flat_map(|it| it.keys.keys()).collect();
        let (mut keys, mut varied) = (BTreeMap::new(), BTreeMap::new());
        for name in names {
            let values: BTreeSet<_> = settings.iter().map(|it| it.keys.get(name)).collect();
            let is_same = values.len() == 1;
            let values: BTreeSet<_> = values.into_iter().flatten().cloned().collect();
            if is_same {
                keys.extend(values.into_iter().map(|it| (name.clone(), it)));
            } else {
                varied.insert(name.clone(), values);
            }
        }
        let seeds: BTreeSet<_> = seeds.into_iter().collect();
        Self {
            origin,
            scenarios: distinct(settings.iter().map(|it| &it.scenario)),
            schemes: distinct(settings.iter().filter_map(|it| it.scheme.as_ref())),
            seeds: seeds.into_iter().collect(),
            keys,
            varied,
        }
    }

    /// A JSON file of this schema with its origin.
    pub fn on<T>(self, schema: &str, content: T) -> Stamped<T> {
        Stamped { schema: schema.to_owned(), provenance: self, content }
    }

    /// A table with its origin, in lines before it that begin with `#`.
    pub fn on_csv(&self, csv: &str) -> String {
        let mut whole = String::new();
        for (name, value) in self.lines() {
            let _ = writeln!(whole, "# {name}: {value}");
        }
        whole + csv
    }

    /// A picture with its origin as `metadata` after the first tag.
    pub fn on_svg(&self, svg: &str) -> String {
        let lines = html! {
            metadata { @for (name, value) in self.lines() { (name) ": " (value) "\n" } }
        };
        let (tag, rest) = svg.split_once('>').unwrap_or((svg, ""));
        format!("{tag}>{}{rest}", lines.into_string())
    }

    /// A page with its origin at the foot.
    pub fn on_html(&self, page: &str) -> String {
        let footer = html! {
            footer {
                dl { @for (name, value) in self.lines() { dt { (name) } dd { (value) } } }
            }
        };
        let (page, end) = page.rsplit_once("</body>").unwrap_or((page, ""));
        format!("{page}{}</body>{end}", footer.into_string())
    }

    /// Names and values for people, each value on one line.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let Origin { program, command, date, machine } = &self.origin;
        let Program { name, version, commit } = program;
        let pair = |(name, value): (&String, &String)| format!("{name}={}", quoted(value));
        let several = |(name, values): (&String, &BTreeSet<String>)| {
            let values: Vec<_> = values.iter().map(|it| quoted(it)).collect();
            format!("{name}={}", values.join(","))
        };
        let lines = [
            ("program", format!("{name} {version}, commit {commit}")),
            ("command", command.clone()),
            ("date", date.clone()),
            ("machine", format!("{}, {} cores, {}", machine.cpu, machine.cores, machine.kernel)),
            ("scenario", self.scenarios.join(", ")),
            ("scheme", self.schemes.join(", ")),
            ("seed", text::ranges(&self.seeds)),
            ("keys", self.keys.iter().map(pair).collect::<Vec<_>>().join(" ")),
            ("keys that differ", self.varied.iter().map(several).collect::<Vec<_>>().join(" ")),
        ];
        let told = lines.into_iter().filter(|(_, value)| !value.is_empty());
        let on_one_line = |value: String| text::clean(&value.replace(['\n', '\r'], " "));
        told.map(|(name, value)| (name, on_one_line(value))).collect()
    }
}

/// Each text once, in the order of first appearance.
fn distinct<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = Vec::new();
    for text in texts {
        if !seen.contains(text) {
            seen.push(text.clone());
        }
    }
    seen
}

/// A word quoted for a shell, if it needs it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-+./:@%=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_well_formed;

    fn origin() -> Origin {
        Origin {
            program: Program {
                name: "hearsay-lab".to_owned(),
                version: "0.1.0".to_owned(),
                commit: "abc-dirty".to_owned(),
            },
            command: "hearsay-lab sim './a<b>.toml'".to_owned(),
            date: "2026-11-23T19:00:00Z".to_owned(),
            machine: Machine { cpu: "A&B".to_owned(), cores: 2, kernel: "Linux 6".to_owned() },
        }
    }

    fn setting(scenario: &str, keys: &[(&str, &str)]) -> Setting {
        let keys = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Setting {
            scenario: scenario.to_owned(),
            scheme: Some("default".to_owned()),
            keys: keys.collect(),
        }
    }

    fn provenance() -> Provenance {
        let settings = [
            setting("chain", &[("hops", "4"), ("loss", "0.1"), ("receivers", "1 2")]),
            setting("chain", &[("hops", "8"), ("loss", "0.1")]),
        ];
        Provenance::new(origin(), &settings, [1, 2, 3, 7])
    }

    #[test]
    fn keys_are_told_apart_by_whether_they_were_the_same_for_all() {
        let it = provenance();
        assert_eq!(it.keys, BTreeMap::from([("loss".to_owned(), "0.1".to_owned())]));
        assert_eq!(it.varied.keys().collect::<Vec<_>>(), ["hops", "receivers"]);
        assert_eq!((it.scenarios.len(), it.schemes.len()), (1, 1));
        let lines = it.lines();
        let line = |name| &lines.iter().find(|it| it.0 == name).unwrap().1;
        assert_eq!(line("keys that differ"), "hops=4,8 receivers='1 2'");
        assert_eq!(line("seed"), "1–3, 7");
        assert_eq!(line("program"), "hearsay-lab 0.1.0, commit abc-dirty");
    }

    #[test]
    fn each_kind_of_file_has_it_and_keeps_what_it_was() {
        let it = provenance();
        let csv = it.on_csv("a,b\n1,2\n");
        assert!(csv.starts_with("# program: hearsay-lab 0.1.0") && csv.ends_with("\na,b\n1,2\n"));
        let svg = it.on_svg("<svg class=\"pic\"><style></style></svg>");
        assert_well_formed(&svg);
        assert!(svg.starts_with("<svg class=\"pic\"><metadata>program: "), "{svg}");
        assert!(svg.contains("a&lt;b&gt;") && svg.ends_with("</metadata><style></style></svg>"));
        let page = it.on_html("<body><main></main></body></html>");
        assert!(page.starts_with("<body><main></main><footer>"), "{page}");
        assert!(page.contains("<dd>A&amp;B, 2 cores, Linux 6</dd>"), "{page}");
        assert!(page.ends_with("</footer></body></html>"), "{page}");
    }

    #[test]
    fn what_is_stamped_reads_back() {
        let stamped = provenance().on("hearsay/run/1", setting("chain", &[("hops", "4")]));
        let text = serde_json::to_string(&stamped).unwrap();
        assert!(
            text.starts_with(r#"{"schema":"hearsay/run/1","provenance":{"program":"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Stamped<Setting>>(&text).unwrap(), stamped);
        // Readers that do not ask for it need not know of it.
        let bare: Setting = serde_json::from_str(&text).unwrap();
        assert_eq!(bare, stamped.content);
    }

    #[test]
    fn words_are_as_a_shell_takes_them() {
        for (word, shown) in [
            ("--set", "--set"),
            ("hops=4", "hops=4"),
            ("1 2", "'1 2'"),
            ("", "''"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(word), shown);
        }
    }
}
