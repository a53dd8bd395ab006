//! A table as text: TOML.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, advice};
use super::{MirrorTable, Rule, Table, Upstream};
use crate::host::{HostPattern, split_port};
use crate::path::{Clean, PathPattern};
use crate::{Heeds, IndexFormat, Keep, Kind};

/// The longest text, in bytes.
const TEXT_MAX: usize = 64 << 10;

/// The most hosts, and the most patterns of paths, of a class.
pub(super) const PATTERNS_MAX: usize = 256;

/// The longest name of a class, in bytes.
const NAME_MAX: usize = 32;

/// The keys of each part of a table.
const TOP: [&str; 8] =
    ["name", "hosts", "proof", "redirects", "companions", "mirror", "immutable", "changing"];
const MIRROR: [&str; 3] = ["upstream", "files", "plain"];
const IMMUTABLE: [&str; 7] = ["paths", "except", "query", "digest", "index", "keep", "heeds"];
const CHANGING: [&str; 9] =
    ["paths", "except", "query", "lifetime", "stale", "index", "keep", "heeds", "negotiated"];

#[derive(Deserialize)]
struct File {
    name: Spanned<String>,
    #[serde(default)]
    hosts: Texts,
    #[serde(default)]
    proof: Texts,
    #[serde(default)]
    redirects: Texts,
    #[serde(default)]
    companions: Vec<Texts>,
    #[serde(default)]
    mirror: Mirror,
    #[serde(default)]
    immutable: Vec<Immutable>,
    #[serde(default)]
    changing: Vec<Changing>,
}

type Texts = Vec<Spanned<String>>;

#[derive(Default, Deserialize)]
struct Mirror {
    upstream: Option<Spanned<String>>,
    files: Option<Spanned<String>>,
    #[serde(default)]
    plain: Texts,
}

#[derive(Deserialize)]
struct Immutable {
    paths: Texts,
    #[serde(default)]
    except: Texts,
    #[serde(default)]
    query: bool,
    digest: Option<Spanned<String>>,
    index: Option<Spanned<String>>,
    keep: Option<Spanned<String>>,
    heeds: Option<Spanned<String>>,
}

#[derive(Deserialize)]
struct Changing {
    paths: Texts,
    #[serde(default)]
    except: Texts,
    #[serde(default)]
    query: bool,
    lifetime: Spanned<String>,
    stale: Spanned<String>,
    #[serde(default)]
    negotiated: bool,
    index: Option<Spanned<String>>,
    keep: Option<Spanned<String>>,
    heeds: Option<Spanned<String>>,
}

/// A text and its name, so that errors can name the place.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

/// Reads a table.
pub(super) fn read(name: &str, text: &str) -> Result<Table, Problem> {
    let source = Source { name, text };
    if text.len() > TEXT_MAX {
        let text = format!("longer than {} KiB", TEXT_MAX >> 10);
        return Err(Problem { place: name.to_owned(), text });
    }
    let parsed = DeTable::parse(text).map_err(|error| source.refused(&error))?;
    source.check_keys(parsed.get_ref())?;
    let file: File = toml::from_str(text).map_err(|error| source.refused(&error))?;
    source.table(file)
}

impl Source<'_> {
    fn refused(&self, error: &toml::de::Error) -> Problem {
        let at = error.span().map_or(0, |span| span.start);
        self.problem(at, error.message().replace('\n', "; "))
    }

    fn problem(&self, at: usize, text: String) -> Problem {
        let before = self.text.as_bytes().iter().take(at);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        Problem { place: format!("{}:{line}", self.name), text }
    }

    /// Keys that do not exist are errors, because a misspelt one would do nothing.
    fn check_keys(&self, table: &DeTable<'_>) -> Result<(), Problem> {
        self.check_table("", &TOP, table)?;
        for (name, known) in
            [("mirror", &MIRROR[..]), ("immutable", &IMMUTABLE), ("changing", &CHANGING)]
        {
            match table.get(name).map(Spanned::get_ref) {
                Some(DeValue::Table(inner)) => self.check_table(name, known, inner)?,
                Some(DeValue::Array(rules)) => {
                    let tables = rules.iter().filter_map(|it| it.get_ref().as_table());
                    tables.into_iter().try_for_each(|it| self.check_table(name, known, it))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_table(&self, name: &str, known: &[&str], table: &DeTable<'_>) -> Result<(), Problem> {
        let unknown = table.keys().find(|it| !known.contains(&&**it.get_ref()));
        unknown.map_or(Ok(()), |key| {
            let within = if name.is_empty() { String::new() } else { format!(" in [{name}]") };
            let text = &**key.get_ref();
            let text = format!("unknown key `{text}`{within}: {}", advice(known, text));
            Err(self.problem(key.span().start, text))
        })
    }

    fn table(&self, file: File) -> Result<Table, Problem> {
        let is_token = |it: &str| {
            let is_token_byte =
                |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
            (1..=NAME_MAX).contains(&it.len()) && it.bytes().all(is_token_byte) && it != "other"
        };
        let expected = "expected a name of lower-case letters, digits and hyphens, not `other`";
        let name = self.value(&file.name, expected, |it| is_token(it).then(|| it.into()))?;
        let expected = "expected a path such as **/dists/**/InRelease, with a name after **/";
        let is_proof = |it: &str| PathPattern::new(it).filter(PathPattern::has_root);
        let mut table = Table {
            name,
            hosts: self.hosts(&file.hosts)?,
            redirects: self.hosts(&file.redirects)?,
            proof: self.values(&file.proof, expected, is_proof)?,
            companions: self.companions(&file.companions)?,
            rules: Vec::new(),
            mirror: self.mirror(&file.mirror)?,
        };
        for Upstream { host, port, .. } in table.mirror.upstream.iter().chain(&table.mirror.files) {
            // Most tables name these hosts themselves.
            if !table.hosts.iter().any(|it| it.matches(true, host, *port)) {
                table.hosts.extend(format!("{host}:{port}").parse::<HostPattern>());
            }
        }
        for it in &file.immutable {
            table.rules.push(self.immutable(it)?);
        }
        for it in &file.changing {
            table.rules.push(self.changing(it)?);
        }
        table.check_size().map_err(|text| self.problem(file.name.span().start, text))?;
        Ok(table)
    }

    fn companions(&self, groups: &[Texts]) -> Result<Vec<Vec<String>>, Problem> {
        let expected = "expected the name of a file, such as Packages.sig";
        let is_name = |it: &str| !it.is_empty() && !it.contains(['/', '*', '?']);
        let read = |it: &str| is_name(it).then(|| it.to_owned());
        groups.iter().map(|it| self.values(it, expected, read)).collect()
    }

    fn mirror(&self, mirror: &Mirror) -> Result<MirrorTable, Problem> {
        let upstream = |it: &Option<Spanned<String>>| {
            let expected = "expected an address such as https://pypi.example:8443";
            it.as_ref().map(|it| self.value(it, expected, upstream)).transpose()
        };
        Ok(MirrorTable {
            upstream: upstream(&mirror.upstream)?,
            files: upstream(&mirror.files)?,
            plain: self.hosts(&mirror.plain)?,
        })
    }

    fn immutable(&self, it: &Immutable) -> Result<Rule, Problem> {
        let expected = "expected \"last-segment\"";
        let digest = it.digest.as_ref();
        let digest =
            digest.map(|it| self.value(it, expected, |it| (it == "last-segment").then_some(())));
        Ok(Rule {
            paths: self.paths(&it.paths)?,
            except: self.paths(&it.except)?,
            query: it.query,
            has_digest: digest.transpose()?.is_some(),
            kind: Kind::Immutable { digest: None },
            keep: self.keep(it.keep.as_ref())?,
            heeds: self.heeds(it.heeds.as_ref())?.unwrap_or(Heeds::Nothing),
            negotiated: false,
            index: self.index(it.index.as_ref())?,
        })
    }

    fn changing(&self, it: &Changing) -> Result<Rule, Problem> {
        let expected = "expected a time such as 30s, 5m, 12h or 30d";
        let lifetime = self.value(&it.lifetime, expected, seconds)?;
        let stale = self.value(&it.stale, expected, seconds)?;
        Ok(Rule {
            paths: self.paths(&it.paths)?,
            except: self.paths(&it.except)?,
            query: it.query,
            has_digest: false,
            kind: Kind::Changing { lifetime, stale },
            keep: self.keep(it.keep.as_ref())?,
            heeds: self.heeds(it.heeds.as_ref())?.unwrap_or(Heeds::All),
            negotiated: it.negotiated,
            index: self.index(it.index.as_ref())?,
        })
    }

    fn hosts(&self, texts: &Texts) -> Result<Vec<HostPattern>, Problem> {
        let expected =
            "expected a host in lower case, such as pypi.org, *.ubuntu.com or 192.0.2.1:8443";
        self.values(texts, expected, |it| it.parse().ok())
    }

    fn paths(&self, texts: &Texts) -> Result<Vec<PathPattern>, Problem> {
        let expected = "expected a path such as /simple/*/ or **/pool/**/*.deb";
        self.values(texts, expected, PathPattern::new)
    }

    fn index(&self, text: Option<&Spanned<String>>) -> Result<Option<IndexFormat>, Problem> {
        let expected = "expected \"apt-release\", \"apt-packages\" or \"openwrt-packages\"";
        text.map(|it| self.value(it, expected, index)).transpose()
    }

    fn keep(&self, text: Option<&Spanned<String>>) -> Result<Keep, Problem> {
        let expected = "expected \"never\", \"always\" or a size such as 16MiB";
        text.map_or(Ok(Keep::Default), |it| self.value(it, expected, keep))
    }

    fn heeds(&self, text: Option<&Spanned<String>>) -> Result<Option<Heeds>, Problem> {
        let expected = "expected \"all\", \"no-cache\" or \"nothing\"";
        text.map(|it| self.value(it, expected, heeds)).transpose()
    }

    fn values<T>(
        &self,
        texts: &Texts,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, Problem> {
        texts.iter().map(|it| self.value(it, expected, &read)).collect()
    }

    fn value<T>(
        &self,
        text: &Spanned<String>,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Problem> {
        let wrong = || self.problem(text.span().start, format!("`{}`: {expected}", text.get_ref()));
        read(text.get_ref()).ok_or_else(wrong)
    }
}

fn index(text: &str) -> Option<IndexFormat> {
    match text {
        "apt-release" => Some(IndexFormat::AptRelease),
        "apt-packages" => Some(IndexFormat::AptPackages),
        "openwrt-packages" => Some(IndexFormat::OpenwrtPackages),
        _ => None,
    }
}

fn keep(text: &str) -> Option<Keep> {
    match text {
        "never" => Some(Keep::Never),
        "always" => Some(Keep::Always),
        size => bytes(size).map(Keep::UpTo),
    }
}

fn heeds(text: &str) -> Option<Heeds> {
    match text {
        "all" => Some(Heeds::All),
        "no-cache" => Some(Heeds::NoCache),
        "nothing" => Some(Heeds::Nothing),
        _ => None,
    }
}

/// A size: a number, and the unit `KiB`, `MiB` or `GiB`; without unit, bytes.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text);
    let shift = match unit {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    number?.checked_mul(1 << shift)
}

/// A time in seconds: a number, and the unit `s`, `m`, `h` or `d`.
fn seconds(text: &str) -> Option<u32> {
    let (number, unit) = split_unit(text);
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return None,
    };
    number?.checked_mul(unit)?.try_into().ok()
}

fn split_unit(text: &str) -> (Option<u64>, &str) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    (number.parse().ok(), unit)
}

/// An upstream: `https://HOST[:PORT][/ROOT]`.
fn upstream(text: &str) -> Option<Upstream> {
    let rest = text.strip_prefix("https://")?;
    let at = rest.find('/').unwrap_or(rest.len());
    let (authority, root) = rest.split_at(at);
    let root = root.strip_suffix('/').unwrap_or(root);
    let is_clean = root.is_empty() || Clean::new(root).is_some_and(|it| it.query.is_none());
    let (host, port) = split_port(authority)?;
    let is_host = !host.contains('*') && authority.parse::<HostPattern>().is_ok();
    (is_clean && is_host).then(|| Upstream {
        host: host.into(),
        port: port.unwrap_or(443),
        root: root.into(),
    })
}
