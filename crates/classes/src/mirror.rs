//! What the mirror's paths stand for.
//!
//! | Path | Upstream |
//! |---|---|
//! | `/apt/HOST/…`, `/files/HOST/…` | that host |
//! | `/pypi/…`, `/npm/…`, `/go/…`, `/maven/…`, `/openwrt/…`, `/alpine/…` | the class's `[mirror] upstream` |
//! | `/cargo/…` | the sparse index; `/cargo/-/DIGITS/CRATE/VERSION` a file below `[mirror] files` |
//! | `/go/sumdb/HOST/…`, `/maven/HOST/…` | that host |
//! | `/v2/…` | a registry: `ns=`, else the name's first part if it is a host, else Docker's |
//! | `/pypi/-/DIGITS/HOST/…`, `/npm/-/DIGITS/HOST/…` | a file with this digest on that host |

mod back;
mod oci;
mod setup;

use wire::Digest;

use crate::link::Link;
use crate::path::Clean;
use crate::reach::Authority;
use crate::{Reach, Rewrite, Upstream};

pub use back::Back;
pub use setup::{SETUPS, setup};

/// What a request to the mirror stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mapped {
    /// A request to an upstream.
    Upstream(Upstreamed),
    /// The mirror's own response.
    Own(Own),
}

/// A request to an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstreamed {
    /// The absolute URL.
    pub url: String,
    /// The digest that the content must have, if the mirror's path says it and the URL does not.
    pub digest: Option<Digest>,
    /// How the links in its content are rewritten.
    pub rewrite: Option<Rewrite>,
    /// Leads references in its head back to the mirror.
    pub back: Back,
}

/// A response that needs no upstream. Its status is 200.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// `Content-Type`.
    pub content_type: &'static str,
    /// The content.
    pub body: &'static str,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status: 400, 403, 404 or 405.
    pub status: u16,
    /// A sentence for the client.
    pub text: String,
}

impl Refusal {
    fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    fn no_path(path: &str) -> Self {
        let text = format!("this mirror has no {path}: `hearsay mirror list` shows what it has");
        Self::new(404, text)
    }
}

/// What a request stands for: its method, and its path with query.
///
/// # Errors
///
/// Another method than GET and HEAD, an unclear path, a host that is not listed, and paths for uploads and logins.
pub fn map(reach: &Reach, method: &str, path: &str) -> Result<Mapped, Refusal> {
    if !matches!(method, "GET" | "HEAD") {
        let text = format!("this mirror only reads: {method} goes to the origin itself");
        return Err(Refusal::new(405, text));
    }
    let unclear = || Refusal::new(400, "this path is unclear: //, .. or an encoded slash, perhaps");
    let clean = Clean::new(path).ok_or_else(unclear)?;
    let (kind, rest) = path[1..].split_once('/').ok_or_else(|| Refusal::no_path(clean.path))?;
    let request = Request { reach, kind, rest };
    match kind {
        "apt" | "files" => request.host(rest),
        "pypi" => request.pypi(),
        "npm" => request.npm(),
        "cargo" => request.cargo(),
        "go" => request.go(),
        "maven" => request.maven(),
        "v2" => oci::map(&request, clean),
        "openwrt" | "alpine" => request.upstream(None),
        _ => Err(Refusal::no_path(clean.path)),
    }
}

/// The mirror's path for a class, or the beginning of its paths.
pub fn entry(class: &str) -> &'static str {
    match class {
        "apt" => "/apt/HOST/",
        "pypi" => "/pypi/simple/",
        "npm" => "/npm/",
        "cargo" => "/cargo/",
        "go" => "/go/",
        "maven" => "/maven/",
        "oci" => "/v2/",
        "openwrt" => "/openwrt/",
        "alpine" => "/alpine/",
        _ => "/files/HOST/",
    }
}

/// A request with a clear path `/KIND/REST`.
struct Request<'a> {
    reach: &'a Reach,
    kind: &'a str,
    rest: &'a str,
}

impl Request<'_> {
    /// A file on a host: `HOST[:PORT]/PATH`.
    fn host(&self, text: &str) -> Result<Mapped, Refusal> {
        let Some(slash) = text.find('/') else {
            return Err(Refusal::no_path(&format!("/{}/{text}", self.kind)));
        };
        let (authority, path) = text.split_at(slash);
        let before = self.rest.strip_suffix(text).unwrap_or_default();
        let here = format!("/{}/{before}{authority}/", self.kind);
        let authority = self.allowed(authority)?;
        Ok(Mapped::Upstream(at(&authority, path, "", here)))
    }

    /// A path of the class's own upstream.
    fn upstream(&self, rewrite: Option<Rewrite>) -> Result<Mapped, Refusal> {
        let upstream = self.reach.classes.upstream(self.kind);
        let upstream = upstream.ok_or_else(|| Refusal::no_path(&format!("/{}/", self.kind)))?;
        let upstreamed = self.below(upstream, self.rest);
        Ok(Mapped::Upstream(Upstreamed { rewrite, ..upstreamed }))
    }

    fn pypi(&self) -> Result<Mapped, Refusal> {
        if let Some(link) = self.rest.strip_prefix("-/") {
            return self.link(link);
        }
        if self.rest.starts_with("legacy") {
            return Err(Refusal::new(
                403,
                "this mirror takes no uploads: upload to the index itself",
            ));
        }
        let is_index = self.rest.starts_with("simple/") && !has_file_name(self.rest);
        self.upstream(is_index.then_some(Rewrite::Pypi))
    }

    fn npm(&self) -> Result<Mapped, Refusal> {
        if ["-/user", "-/whoami", "-/npm/v1/tokens", "-/v1/login"]
            .iter()
            .any(|it| self.rest.starts_with(it))
        {
            return Err(Refusal::new(
                403,
                "this mirror has no accounts: log in to the registry itself",
            ));
        }
        // The registry's own paths after `-/` do not begin with a digest.
        if let Some(link) = self.rest.strip_prefix("-/").filter(|it| Link::parse(it).is_some()) {
            return self.link(link);
        }
        let is_packument = !self.rest.starts_with("-/") && !self.rest.contains("/-/");
        self.upstream(is_packument.then_some(Rewrite::Npm))
    }

    fn cargo(&self) -> Result<Mapped, Refusal> {
        if let Some(file) = self.rest.strip_prefix("-/") {
            return self.crate_file(file);
        }
        if self.rest.starts_with("api/") || self.rest == "me" {
            return Err(Refusal::new(
                403,
                "this mirror has no accounts: publish to the registry itself",
            ));
        }
        self.upstream((self.rest == "config.json").then_some(Rewrite::Cargo))
    }

    /// `DIGITS/CRATE/VERSION`, as the rewritten `config.json` tells Cargo to ask for files.
    fn crate_file(&self, text: &str) -> Result<Mapped, Refusal> {
        let parts: Vec<_> = text.split('/').collect();
        let wrong = || Refusal::no_path(&format!("/cargo/-/{text}"));
        let (&[digits, name, version], Some(files)) =
            (&*parts, self.reach.classes.files(self.kind))
        else {
            return Err(wrong());
        };
        let digest = Digest::from_hex(digits).map_err(|_| wrong())?;
        let upstreamed = self.below(files, &format!("{name}/{name}-{version}.crate"));
        Ok(Mapped::Upstream(Upstreamed { digest: Some(digest), ..upstreamed }))
    }

    fn go(&self) -> Result<Mapped, Refusal> {
        let Some(sums) = self.rest.strip_prefix("sumdb/") else { return self.upstream(None) };
        // The `go` command asks whether the proxy also serves this database of sums.
        if let Some(host) = sums.strip_suffix("/supported") {
            self.allowed(host)?;
            return Ok(Mapped::Own(Own { content_type: "text/plain", body: "" }));
        }
        self.host(sums)
    }

    /// Folders of groups have no dots; hosts have.
    fn maven(&self) -> Result<Mapped, Refusal> {
        let first = self.rest.split_once('/').map(|it| it.0);
        if first.is_some_and(|it| it.contains(['.', ':'])) {
            return self.host(self.rest);
        }
        self.upstream(None)
    }

    /// `DIGEST/HOST[:PORT]/PATH`.
    fn link(&self, text: &str) -> Result<Mapped, Refusal> {
        let wrong = || Refusal::no_path(&format!("/{}/-/{text}", self.kind));
        let link = Link::parse(text).ok_or_else(wrong)?;
        let authority = self.allowed(link.authority)?;
        let here = format!("/files/{}/", link.authority);
        let upstreamed = at(&authority, link.path, "", here);
        // The metadata beside a wheel (PEP 658) has a digest of its own, which the link does not say.
        let is_beside = link.path.ends_with(".metadata") || link.path.ends_with(".asc");
        let digest = (!is_beside).then_some(link.digest);
        Ok(Mapped::Upstream(Upstreamed { digest, ..upstreamed }))
    }

    fn below(&self, upstream: &Upstream, rest: &str) -> Upstreamed {
        let Upstream { host, port, root } = upstream;
        let authority = Authority { tls: true, host: host.to_string(), port: *port };
        at(&authority, &format!("{root}/{rest}"), root, format!("/{}/", self.kind))
    }

    fn allowed(&self, authority: &str) -> Result<Authority, Refusal> {
        self.reach.authority(authority).ok_or_else(|| {
            let text = format!(
                "{authority} is in no table of this mirror: add it to its configuration, `[mirror] allow = [\"{authority}\"]`"
            );
            Refusal::new(403, text)
        })
    }
}

/// A path on a host, below a folder there (without `/` at its end) that is `here` on the mirror.
fn at(authority: &Authority, path: &str, folder: &str, here: String) -> Upstreamed {
    let folder = format!("{}{folder}/", authority.url());
    let back = Back { folder, path: here, query: String::new() };
    Upstreamed { url: authority.url() + path, digest: None, rewrite: None, back }
}

/// Whether a path below `simple/PROJECT/` names a file.
fn has_file_name(rest: &str) -> bool {
    rest.split('/').nth(2).is_some_and(|it| !it.is_empty() && !it.starts_with('?'))
}

#[cfg(test)]
mod tests;
