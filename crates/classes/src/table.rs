//! The tables, and what they say of a URL.

mod builtin;
mod file;
mod problem;

use std::sync::Arc;

use wire::Digest;

use crate::host::HostPattern;
use crate::path::{Clean, PathPattern};
use crate::proven::{Proof, Proven, Site};
use crate::{ClassId, Heeds, IndexFormat, Keep, Kind, Url, Verdict};

pub use problem::Problem;

/// All tables of a node. [`Classes::default`] has none: it knows only [`ClassId::OTHER`].
#[derive(Clone, Debug, Default)]
pub struct Classes {
    /// Class `n` is at `n - 1`.
    tables: Vec<Table>,
}

/// One class.
#[derive(Clone, Debug, Default)]
struct Table {
    name: Arc<str>,
    hosts: Vec<HostPattern>,
    redirects: Vec<HostPattern>,
    proof: Vec<PathPattern>,
    /// Names of files that belong together, in one folder.
    companions: Vec<Vec<String>>,
    /// The first rule that has a path counts: those of files that never change are first.
    rules: Vec<Rule>,
    mirror: MirrorTable,
}

/// What a table says of the mirror's paths.
#[derive(Clone, Debug, Default)]
struct MirrorTable {
    upstream: Option<Upstream>,
    files: Option<Upstream>,
    plain: Vec<HostPattern>,
}

/// Where a mirror's paths lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The host, in lower case.
    pub host: Box<str>,
    /// The port.
    pub port: u16,
    /// What precedes the path: empty, or from `/` on, without a `/` at its end.
    pub root: Box<str>,
}

/// What a table says of some paths.
#[derive(Clone, Debug)]
struct Rule {
    paths: Vec<PathPattern>,
    except: Vec<PathPattern>,
    query: bool,
    has_digest: bool,
    kind: Kind,
    keep: Keep,
    heeds: Heeds,
    negotiated: bool,
    index: Option<IndexFormat>,
}

impl Rule {
    fn has(&self, path: Clean<'_>) -> bool {
        (self.query || path.query.is_none())
            && self.paths.iter().any(|it| it.matches(path))
            && !self.except.iter().any(|it| it.matches(path))
    }

    fn verdict(&self, class: ClassId, path: Clean<'_>) -> Verdict {
        let kind = match self.kind {
            Kind::Immutable { .. } if self.has_digest => {
                Kind::Immutable { digest: digest(path.last()) }
            }
            kind => kind,
        };
        let Self { keep, heeds, negotiated, index, .. } = *self;
        Verdict { class, kind, keep, heeds, negotiated, index }
    }
}

/// The digest that a segment of a path is: `sha256:HEX`, or the digits alone. Another one, as of MD5, is none.
fn digest(segment: &str) -> Option<Digest> {
    segment.parse().or_else(|_| Digest::from_hex(segment)).ok()
}

impl Classes {
    /// The most tables.
    pub const MAX: usize = 64;

    /// The tables that the program carries.
    pub fn builtin() -> Self {
        let mut classes = Self::default();
        for (name, text) in builtin::TABLES {
            // A test reads each of them: none is refused.
            if let Ok(more) = classes.clone().with(name, text) {
                classes = more;
            }
        }
        classes
    }

    /// These tables and one more. If a table has its name already, that one is extended: hosts are added, and the new
    /// paths precede the old ones. `file_name` only names the place of an error.
    ///
    /// # Errors
    ///
    /// The first problem of the text.
    pub fn with(mut self, file_name: &str, text: &str) -> Result<Self, Problem> {
        let table = file::read(file_name, text)?;
        let is_full = self.tables.len() == Self::MAX;
        match self.tables.iter_mut().find(|it| it.name == table.name) {
            Some(known) => known.extend(table, file_name)?,
            None if is_full => {
                let text = format!("more than {} classes", Self::MAX);
                return Err(Problem { place: file_name.to_owned(), text });
            }
            None => self.tables.push(table),
        }
        Ok(self)
    }

    /// What the tables say of a URL, without archives that were found by their indexes.
    pub fn judge(&self, url: Url<'_>) -> Verdict {
        self.judge_proven(&Proven::default(), url)
    }

    /// What the tables say of a URL.
    pub fn judge_proven(&self, proven: &Proven, url: Url<'_>) -> Verdict {
        let Some(path) = Clean::new(url.path) else { return Verdict::default() };
        let listed = self.known().filter(|(_, it)| it.has_host(url)).map(|(id, it)| (id, it, path));
        let proven = proven
            .of(url)
            .filter_map(|(class, root)| Some((class, self.table(class)?, path.below(root)?)));
        let mut of_host = Verdict::default();
        for (class, table, path) in listed.chain(proven) {
            if let Some(rule) = table.rules.iter().find(|it| it.has(path)) {
                return rule.verdict(class, path);
            }
            if of_host.class == ClassId::OTHER {
                of_host.class = class;
            }
        }
        of_host
    }

    /// What it proves that a URL was fetched with success (200 or 304).
    pub fn proves(&self, url: Url<'_>) -> Option<Proof> {
        let path = Clean::new(url.path).filter(|it| it.query.is_none())?;
        self.known().find_map(|(class, table)| {
            let proof = table.proof.iter().find(|it| it.matches(path))?;
            let root = proof.root(path).filter(|it| it.len() <= Proven::ROOT_MAX)?;
            let Url { tls, host, port, .. } = url;
            Some(Proof { class, site: Site { tls, host: host.into(), port, root: root.into() } })
        })
    }

    /// Whether a mirror may dial a host, or follow a redirect to it, for what the tables say alone.
    pub fn may_reach(&self, tls: bool, host: &str, port: u16) -> bool {
        self.tables.iter().any(|it| {
            let plain = it.mirror.plain.iter();
            let secure = it.hosts.iter().chain(&it.redirects).filter(|_| tls);
            secure.chain(plain.filter(|_| !tls)).any(|it| it.matches(tls, host, port))
        })
    }

    /// Whether a host is reached without TLS, because it offers none and its clients check signatures.
    pub fn is_plain(&self, host: &str, port: u16) -> bool {
        self.tables.iter().any(|it| it.mirror.plain.iter().any(|it| it.matches(false, host, port)))
    }

    /// The names of all classes, by their number. The first is `other`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once("other").chain(self.tables.iter().map(|it| &*it.name))
    }

    /// The name of a class, for people: a token in lower case.
    pub fn name(&self, class: ClassId) -> &str {
        self.table(class).map_or("other", |it| &it.name)
    }

    /// The class with a name.
    pub fn find(&self, name: &str) -> Option<ClassId> {
        self.known().find(|(_, it)| &*it.name == name).map(|(id, _)| id)
    }

    /// The hosts of a class, as its tables write them.
    pub fn hosts(&self, class: ClassId) -> impl Iterator<Item = &HostPattern> {
        self.table(class).into_iter().flat_map(|it| &it.hosts)
    }

    /// The paths of a class, as its tables write them: those whose content never changes, or those whose content
    /// changes.
    pub fn paths(&self, class: ClassId, changing: bool) -> impl Iterator<Item = &str> {
        let rules = self.table(class).into_iter().flat_map(|it| &it.rules);
        let rules = rules.filter(move |it| matches!(it.kind, Kind::Changing { .. }) == changing);
        rules.flat_map(|it| &it.paths).map(PathPattern::text)
    }

    /// The paths of the files that belong to the one at a path of a class, as a signature to its index.
    pub fn companions(&self, class: ClassId, path: &str) -> Vec<String> {
        let Some(table) = self.table(class) else { return Vec::new() };
        let Some(clean) = Clean::new(path).filter(|it| it.query.is_none()) else {
            return Vec::new();
        };
        let name = clean.last();
        let folder = &path[..path.len() - name.len()];
        let groups = table.companions.iter().filter(|it| it.iter().any(|it| it == name));
        groups.flatten().filter(|it| *it != name).map(|it| format!("{folder}{it}")).collect()
    }

    /// Where the mirror's paths of a class lead.
    pub fn upstream(&self, class: &str) -> Option<&Upstream> {
        self.named(class)?.mirror.upstream.as_ref()
    }

    /// Where the files of a class are, if not beside its index.
    pub fn files(&self, class: &str) -> Option<&Upstream> {
        self.named(class)?.mirror.files.as_ref()
    }

    fn named(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|it| &*it.name == name)
    }

    fn known(&self) -> impl Iterator<Item = (ClassId, &Table)> {
        (1..).map(ClassId).zip(&self.tables)
    }

    fn table(&self, class: ClassId) -> Option<&Table> {
        self.tables.get(usize::from(class.0).checked_sub(1)?)
    }
}

impl Table {
    fn has_host(&self, url: Url<'_>) -> bool {
        self.hosts.iter().any(|it| it.matches(url.tls, url.host, url.port))
    }

    /// Adds what another table with the same name says.
    fn extend(&mut self, more: Self, file_name: &str) -> Result<(), Problem> {
        self.hosts.extend(more.hosts);
        self.redirects.extend(more.redirects);
        self.proof.extend(more.proof);
        self.companions.extend(more.companions);
        let old = std::mem::replace(&mut self.rules, more.rules);
        self.rules.extend(old);
        self.mirror.upstream = more.mirror.upstream.or(self.mirror.upstream.take());
        self.mirror.files = more.mirror.files.or(self.mirror.files.take());
        self.mirror.plain.extend(more.mirror.plain);
        self.check_size().map_err(|text| Problem { place: file_name.to_owned(), text })
    }

    /// Refuses more patterns than a table may have.
    fn check_size(&self) -> Result<(), String> {
        let hosts = self.hosts.len() + self.redirects.len() + self.mirror.plain.len();
        let rules = self.rules.iter().map(|it| it.paths.len() + it.except.len());
        let companions = self.companions.iter().map(Vec::len).sum::<usize>();
        let paths = rules.sum::<usize>() + self.proof.len() + companions;
        let max = file::PATTERNS_MAX;
        match hosts.max(paths) > max {
            true => Err(format!("class `{}` has more than {max} hosts, or patterns", self.name)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
