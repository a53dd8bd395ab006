//! The configuration file before its values are checked: its keys, and the line of each.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use strsim::osa_distance;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::intercept::Ports;
use super::problem::ConfigError;
use super::size::Size;

/// The file; a key that it lacks is `None` or empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct File {
    pub listen: Option<Vec<Spanned<String>>>,
    pub allow: Vec<Spanned<String>>,
    pub name: Option<Spanned<String>>,
    pub memory: Option<Spanned<Size>>,
    pub drain: Option<Spanned<String>>,
    pub control: Option<Spanned<String>>,
    pub store: Store,
    pub access: Access,
    pub intercept: Intercept,
    pub mirror: Mirror,
    pub mesh: Mesh,
    pub overhear: Overhear,
    pub uplink: Uplink,
    pub metrics: Metrics,
    pub ledger: Ledger,
    pub log: Log,
    pub experiment: Experiment,
}

/// Table `[store]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Store {
    pub path: Option<Spanned<String>>,
    pub size: Option<Spanned<Size>>,
    pub policy: Option<Spanned<String>>,
    #[serde(rename = "object-max")]
    pub object_max: Option<Spanned<Size>>,
}

/// Table `[access]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Access {
    pub out: Vec<String>,
    pub private: Vec<Spanned<String>>,
    pub ports: Vec<Spanned<u16>>,
}

/// Table `[intercept]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Intercept {
    pub interfaces: Option<Vec<String>>,
    pub port: Option<u16>,
    pub ports: Option<Ports>,
    pub http: Vec<u16>,
}

/// Table `[mirror]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Mirror {
    pub listen: Vec<Spanned<String>>,
    pub allow: Vec<Spanned<String>>,
}

/// Table `[mesh]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Mesh {
    pub interfaces: Option<Vec<String>>,
    pub babeld: Option<Spanned<String>>,
    pub gateway: Option<Spanned<String>>,
    pub scheme: Option<Spanned<String>>,
    pub key: Option<Spanned<String>>,
    #[serde(rename = "key-file")]
    pub key_file: Option<Spanned<String>>,
    pub gateways: Vec<Spanned<String>>,
    pub port: Option<Spanned<u16>>,
    pub direct: Vec<Spanned<String>>,
}

/// Table `[overhear]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Overhear {
    pub mode: Option<Spanned<String>>,
    pub interface: Option<String>,
    pub memory: Option<Spanned<Size>>,
}

/// Table `[uplink]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Uplink {
    pub far: Option<Spanned<String>>,
    #[serde(rename = "far-key")]
    pub far_key: Option<Spanned<String>>,
}

/// Table `[metrics]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Metrics {
    pub listen: Option<Spanned<String>>,
}

/// Table `[ledger]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Ledger {
    pub hosts: Option<bool>,
}

/// Table `[log]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Log {
    pub level: Option<Spanned<String>>,
    pub requests: Option<Spanned<String>>,
    pub format: Option<Spanned<String>>,
    pub clients: Option<Spanned<String>>,
    pub size: Option<Spanned<Size>>,
    pub keep: Option<Spanned<u32>>,
}

/// Table `[experiment]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Experiment {
    pub paper: Option<Spanned<String>>,
    pub units: Option<Spanned<String>>,
    pub streams: Option<Spanned<String>>,
    pub halves: Option<Spanned<String>>,
    pub heads: Option<Spanned<String>>,
    pub cancel: Option<Spanned<String>>,
    pub locate: Option<Spanned<String>>,
    #[serde(rename = "search-timeout")]
    pub search_timeout: Option<Spanned<String>>,
    pub squares: Vec<Spanned<String>>,
    pub uplink: Option<Spanned<String>>,
    pub degree: Option<Spanned<u32>>,
    pub smallest: Option<Spanned<Size>>,
    pub http: Option<Spanned<String>>,
}

const TOP: [&str; 17] = [
    "listen",
    "allow",
    "name",
    "memory",
    "drain",
    "control",
    "store",
    "access",
    "intercept",
    "mirror",
    "mesh",
    "overhear",
    "uplink",
    "metrics",
    "ledger",
    "log",
    "experiment",
];

const MESH: [&str; 9] =
    ["interfaces", "babeld", "gateway", "scheme", "key", "key-file", "gateways", "port", "direct"];

const EXPERIMENT: [&str; 13] = [
    "paper",
    "units",
    "streams",
    "halves",
    "heads",
    "cancel",
    "locate",
    "search-timeout",
    "squares",
    "uplink",
    "degree",
    "smallest",
    "http",
];

/// The keys of a file, by table; those of the first entry are outside any table.
pub type Keys = [(&'static str, &'static [&'static str])];

/// Every key of hearsay.toml.
pub const KEYS: [(&str, &[&str]); 12] = [
    ("", &TOP),
    ("store", &["path", "size", "policy", "object-max"]),
    ("access", &["out", "private", "ports"]),
    ("intercept", &["interfaces", "port", "ports", "http"]),
    ("mirror", &["listen", "allow"]),
    ("mesh", &MESH),
    ("overhear", &["mode", "interface", "memory"]),
    ("uplink", &["far", "far-key"]),
    ("metrics", &["listen"]),
    ("ledger", &["hosts"]),
    ("log", &["level", "requests", "format", "clients", "size", "keep"]),
    ("experiment", &EXPERIMENT),
];

/// A text and its name, so that errors can name the place.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// `file:line` of a byte.
    pub fn place(&self, at: usize) -> String {
        let before = self.text.as_bytes().iter().take(at);
        format!("{}:{}", self.name, 1 + before.filter(|byte| **byte == b'\n').count())
    }

    /// `file:line` of a value.
    pub fn place_of<T>(&self, value: &Spanned<T>) -> String {
        self.place(value.span().start)
    }
}

/// Reads hearsay.toml.
pub fn read(source: Source<'_>) -> Result<File, ConfigError> {
    read_as(source, &KEYS)
}

/// Reads a file with these keys; keys that do not exist are errors, because a misspelt one would do nothing.
pub fn read_as<T: DeserializeOwned>(source: Source<'_>, keys: &Keys) -> Result<T, ConfigError> {
    let mut wrong = ConfigError::default();
    let table = match DeTable::parse(source.text) {
        Ok(table) => table,
        Err(error) => return refuse(source, &error),
    };
    let is_table = |name: &str| keys.iter().any(|(table, _)| !table.is_empty() && *table == name);
    for (key, value) in table.get_ref().iter() {
        let name: &str = key.get_ref();
        check_key(&mut wrong, (source, keys), "", name, key.span().start);
        if let (true, DeValue::Table(inner)) = (is_table(name), value.get_ref()) {
            for key in inner.keys() {
                check_key(&mut wrong, (source, keys), name, key.get_ref(), key.span().start);
            }
        }
    }
    wrong.unless(())?;
    toml::from_str(source.text).or_else(|error| refuse(source, &error))
}

fn refuse<T>(source: Source<'_>, error: &toml::de::Error) -> Result<T, ConfigError> {
    let mut wrong = ConfigError::default();
    let place = error.span().map_or(source.name.to_owned(), |span| source.place(span.start));
    let text = error.message().replace('\n', "; ");
    wrong.add(place, text.replace("expected a sequence", "expected a list in brackets"));
    Err(wrong)
}

fn check_key(
    wrong: &mut ConfigError,
    (source, keys): (Source<'_>, &Keys),
    table: &str,
    key: &str,
    at: usize,
) {
    let known = keys.iter().find(|(name, _)| *name == table).map_or(&[][..], |(_, keys)| keys);
    if !known.contains(&key) {
        let advice = advice(keys, table, known, key);
        wrong.add(source.place(at), format!("unknown key `{key}`{}: {advice}", within(table)));
    }
}

/// Suggests the known word that was probably meant, else `others`.
pub fn meant<'a>(word: &str, known: impl Iterator<Item = &'a str>, others: String) -> String {
    nearest(word, known).map_or(others, |near| format!("did you mean {near:?}?"))
}

fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (distance, near) = known.map(|known| (osa_distance(word, known), known)).min()?;
    (distance <= (word.len() / 3).max(1)).then_some(near)
}

/// Suggests the nearest key of the table, else the same key in another table, else lists all keys.
fn advice(keys: &Keys, table: &str, known: &[&str], key: &str) -> String {
    if let Some(near) = nearest(key, known.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let elsewhere = keys.iter().find(|(other, keys)| *other != table && keys.contains(&key));
    match elsewhere {
        Some((other, _)) => format!("did you mean `{key}`{}?", within(other)),
        None => format!("known here: {}", known.join(", ")),
    }
}

fn within(table: &str) -> String {
    if table.is_empty() { String::new() } else { format!(" in [{table}]") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> String {
        read(Source { name: "h.toml", text }).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_names_file_line_and_the_nearest_known_one() {
        assert_eq!(
            complaint("# x\nlistne = []"),
            "h.toml:2: unknown key `listne`: did you mean `listen`?"
        );
        assert_eq!(
            complaint("[store]\n\nsizes = 1"),
            "h.toml:3: unknown key `sizes` in [store]: did you mean `size`?"
        );
        assert_eq!(
            complaint("policy = \"lru\""),
            "h.toml:1: unknown key `policy`: did you mean `policy` in [store]?"
        );
        assert_eq!(
            complaint("[intercept]\nwombat = 1"),
            "h.toml:2: unknown key `wombat` in [intercept]: known here: interfaces, port, ports, http"
        );
        assert!(complaint("[stroe]\npath = 1").ends_with("did you mean `store`?"));
    }

    #[test]
    fn all_unknown_keys_are_told_at_once() {
        assert_eq!(complaint("lisen = []\nmemry = 1").lines().count(), 2);
    }

    #[test]
    fn a_wrong_type_or_broken_text_names_the_line() {
        assert_eq!(
            complaint("\nlisten = \"127.0.0.1:1\""),
            "h.toml:2: invalid type: string \"127.0.0.1:1\", expected a list in brackets"
        );
        assert_eq!(
            complaint("\nmemory = \"lots\""),
            "h.toml:2: \"lots\" is not a size: expected something like 16MiB, 1.5GB or 4096 (bytes)"
        );
        assert!(complaint("\n\nlisten = [").starts_with("h.toml:3: "));
        assert!(complaint("memory = 1\nmemory = 2").starts_with("h.toml:2: duplicate key"));
        assert!(complaint("store = 1").starts_with("h.toml:1: invalid type"));
        assert!(complaint("[intercept]\nport = 70000").starts_with("h.toml:2: invalid value"));
    }

    #[test]
    fn distance_counts_single_slips() {
        for (a, b, expected) in
            [("", "ab", 2), ("size", "size", 0), ("szie", "size", 1), ("siz", "sizes", 2)]
        {
            assert_eq!(osa_distance(a, b), expected, "{a} {b}");
        }
    }
}
