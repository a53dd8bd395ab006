//! What a link becomes.

use wire::Digest;

use super::Rewrite;
use crate::Reach;
use crate::link;
use crate::path::Clean;

/// What all links of a content become.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) rewrite: Rewrite,
    base: Box<str>,
    /// `HOST[:PORT]` of the content itself, if it is within reach.
    own: Option<String>,
    reach: Reach,
    /// The host that was asked for last, and whether it is within reach: links of one content have few hosts.
    last: (String, bool),
}

/// What replaces the first bytes of a link.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    /// How many of its bytes are replaced.
    pub(super) length: usize,
    pub(super) by: String,
}

impl Target {
    pub(super) fn new(rewrite: Rewrite, base: &str, url: &str, reach: Reach) -> Self {
        let authority = url.strip_prefix("https://").and_then(|it| it.split('/').next());
        let own = authority.map(str::to_owned).filter(|it| is_upstream(&reach, it));
        Self { rewrite, base: base.into(), own, reach, last: <_>::default() }
    }

    /// Where Cargo is to fetch files.
    pub(super) fn crates(&self) -> String {
        format!("{}/cargo/-/{{sha256-checksum}}/{{crate}}/{{version}}", self.base)
    }

    /// What replaces the beginning of a link, as it is written in the content: scheme and host, or nothing. `None` if
    /// the link stays.
    pub(super) fn replaced(&mut self, link: &[u8], digest: Option<Digest>) -> Option<Replaced> {
        let (authority, length) = match absolute(link) {
            Some((begin, end)) => {
                (std::str::from_utf8(&link[begin..end]).ok()?.to_lowercase(), end)
            }
            None if slash(link, 0)? == link.len() => return None,
            None => (self.own.clone()?, 0),
        };
        if !self.is_upstream(&authority) || !is_clear(&link[length..]) {
            return None;
        }
        let by = link::prefix(&self.base, self.rewrite.kind(), digest) + &authority;
        Some(Replaced { length, by })
    }

    fn is_upstream(&mut self, authority: &str) -> bool {
        if self.last.0 != authority {
            self.last = (authority.to_owned(), is_upstream(&self.reach, authority));
        }
        self.last.1
    }
}

/// Whether a host is reached by TLS.
fn is_upstream(reach: &Reach, authority: &str) -> bool {
    reach.authority(authority).is_some_and(|it| it.tls)
}

/// Where the authority of a link is that begins with `https://`, `http://` or `//`.
fn absolute(link: &[u8]) -> Option<(usize, usize)> {
    let scheme = link.iter().position(|it| *it == b':').map(|at| &link[..at]);
    let is_http =
        |it: &&[u8]| it.eq_ignore_ascii_case(b"https") || it.eq_ignore_ascii_case(b"http");
    let after = scheme.filter(is_http).map_or(0, |it| it.len() + 1);
    let begin = slash(link, slash(link, after)?)?;
    let length = link[begin..].iter().position(|it| matches!(it, b'/' | b'\\'))?;
    Some((begin, begin + length))
}

/// The end of the slash at a place. JSON may escape it.
fn slash(text: &[u8], at: usize) -> Option<usize> {
    match text.get(at..)? {
        [b'/', ..] => Some(at + 1),
        [b'\\', b'/', ..] => Some(at + 2),
        _ => None,
    }
}

/// Whether the mirror would take this path.
fn is_clear(path: &[u8]) -> bool {
    let path = path.split(|it| *it == b'#').next().unwrap_or_default();
    let Ok(path) = std::str::from_utf8(path) else { return false };
    Clean::new(&path.replace("\\/", "/")).is_some()
}
