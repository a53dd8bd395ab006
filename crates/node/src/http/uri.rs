//! The canonical URI, and the object key derived from it.

use http::Uri;
use http::uri::{Authority, PathAndQuery};
use std::net::IpAddr;
use wire::ObjectKey;

/// The scheme of a URI (RFC 9110 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`.
    Http,
    /// `https`.
    Https,
}

impl Scheme {
    /// The scheme of an absolute URI; `None` if it is neither of the two.
    pub fn of(uri: &Uri) -> Option<Self> {
        match uri.scheme_str()? {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port of a URI that names none.
    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The target of a request: scheme, host, port and path, in canonical form (RFC 3986 §6.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    scheme: Scheme,
    host: String,
    port: u16,
    path: String,
}

impl Target {
    /// The target of an absolute URI; `None` if `Target::new` refuses it, or if its scheme is neither `http`
    /// nor `https`.
    pub fn read(uri: &Uri) -> Option<Self> {
        Self::new(Scheme::of(uri)?, uri.authority()?, uri.path_and_query())
    }

    /// The target with this scheme, authority and path. `None` if the authority has no host, has user
    /// information, or names an invalid port.
    pub(crate) fn new(
        scheme: Scheme,
        authority: &Authority,
        path: Option<&PathAndQuery>,
    ) -> Option<Self> {
        let path = path.map_or("/", PathAndQuery::as_str);
        let host = authority.host().trim_end_matches('.');
        if host.is_empty() || authority.as_str().contains('@') {
            return None;
        }
        // The parser of the crate `http` accepts invalid ports.
        let port = match authority.as_str().strip_prefix(authority.host())? {
            "" | ":" => scheme.port(),
            port => port.strip_prefix(':')?.parse().ok().filter(|port| *port > 0)?,
        };
        Some(Self { scheme, host: host.to_ascii_lowercase(), port, path: absolute(path) })
    }

    /// The same host and port with another path.
    pub fn with_path(&self, path: &str) -> Self {
        Self { path: absolute(path), ..self.clone() }
    }

    /// Whether scheme, host and port are the same (RFC 6454 §5).
    pub fn is_same_origin(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }

    /// Whether only TLS leads to it: its scheme is `https`.
    pub fn is_tls(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// The host: a name or an address literal, the latter with brackets if it is IPv6.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port: the one that the URI named, or that of its scheme.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query, beginning with `/` (or `*` for `OPTIONS *`).
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its parts, as the content classes read them.
    pub fn url(&self) -> classes::Url<'_> {
        classes::Url { tls: self.is_tls(), host: &self.host, port: self.port, path: &self.path }
    }

    /// The value of the `Host` field.
    pub fn authority(&self) -> String {
        match self.port {
            port if port == self.scheme.port() => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }

    /// The IP address, if the host is an address literal.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }

    /// The object key: keyed BLAKE3 of the canonical URI. Each audience has its own BLAKE3 key.
    pub fn key(&self, secret: &[u8; 32], audience: Audience) -> ObjectKey {
        let own = |context: &str| blake3::derive_key(context, secret);
        let secret = audience.context().map_or(*secret, own);
        let mut hasher = blake3::Hasher::new_keyed(&secret);
        for part in [self.scheme.name(), "://", &self.authority(), &self.path] {
            hasher.update(part.as_bytes());
        }
        ObjectKey(*hasher.finalize().as_bytes())
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}{}", self.scheme.name(), self.authority(), self.path)
    }
}

/// The requesters that may get a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Audience {
    /// All clients and peers.
    Everyone,
    /// Clients of the explicit proxy: the origin is one that only they may reach (`[access] private`).
    Site,
    /// Programs on this machine: the origin may be on the machine itself, where no client may connect.
    ThisMachine,
}

impl Audience {
    /// All audiences.
    pub const ALL: [Self; 3] = [Self::Everyone, Self::Site, Self::ThisMachine];

    /// The context for BLAKE3's `derive_key`, if the audience has a key of its own.
    fn context(self) -> Option<&'static str> {
        match self {
            Self::Everyone => None,
            Self::Site => {
                Some("hearsay 2026-11 objects that explicit clients fetch within the site")
            }
            Self::ThisMachine => Some("hearsay 2026-11 objects that a machine fetches for itself"),
        }
    }
}

/// Adds a leading `/` if it is missing: `?q` alone is a query on the root.
fn absolute(path: &str) -> String {
    if path.starts_with(['/', '*']) { path.to_owned() } else { format!("/{path}") }
}

/// The BLAKE3 key if there is no mesh key. It is public, so anyone can compute object keys; without a
/// mesh key URLs are not secret anyway.
pub const OPEN_KEY: [u8; 32] = *b"hearsay object key, no mesh key!";

#[cfg(test)]
mod tests {
    use super::*;

    fn target(authority: &str, path: &str) -> Target {
        of(Scheme::Http, authority, path)
    }

    fn of(scheme: Scheme, authority: &str, path: &str) -> Target {
        Target::new(scheme, &authority.parse().unwrap(), Some(&path.parse().unwrap())).unwrap()
    }

    #[test]
    fn spellings_of_one_uri_have_one_key() {
        let key = |t: Target| t.key(&OPEN_KEY, Audience::Everyone);
        let one = key(target("Example.org:80", "/a?b"));
        assert_eq!(one, key(target("example.org", "/a?b")));
        assert_eq!(one, key(target("example.org.", "/a?b")));
        assert_ne!(one, key(target("example.org:81", "/a?b")));
        assert_ne!(one, key(target("example.org", "/A?b")));
    }

    #[test]
    fn https_has_keys_and_a_port_of_its_own() {
        let key = |t: &Target| t.key(&OPEN_KEY, Audience::Everyone);
        let (plain, tls) = (target("a", "/"), of(Scheme::Https, "a", "/"));
        assert!(tls.is_tls() && !plain.is_tls());
        assert_eq!((plain.port(), tls.port()), (80, 443));
        assert_ne!(key(&tls), key(&plain));
        // The same host and port by the other scheme.
        assert_ne!(key(&tls), key(&target("a:443", "/")));
        assert_ne!(key(&of(Scheme::Https, "a:80", "/")), key(&plain));
        assert_eq!(key(&tls), key(&of(Scheme::Https, "A.:443", "/")));
        assert_eq!(of(Scheme::Https, "a:80", "/b").to_string(), "https://a:80/b");
        assert_eq!((tls.to_string(), tls.authority()), ("https://a/".into(), "a".into()));
    }

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        let origin = of(Scheme::Https, "a.test", "/");
        assert!(origin.is_same_origin(&of(Scheme::Https, "A.test:443", "/b?c")));
        for other in [
            target("a.test:443", "/"),
            of(Scheme::Https, "b.test", "/"),
            of(Scheme::Https, "a.test:444", "/"),
        ] {
            assert!(!origin.is_same_origin(&other), "{other}");
        }
    }

    #[test]
    fn only_absolute_uris_of_the_web_are_read() {
        let read = |text: &str| Target::read(&text.parse().unwrap()).map(|it| it.to_string());
        assert_eq!(read("HTTPS://A:443/b?c"), Some("https://a/b?c".into()));
        assert_eq!(read("http://a"), Some("http://a/".into()));
        for other in ["ftp://a/b", "/b", "a:80", "https://user@a/"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn the_key_is_keyed() {
        let t = target("example.org", "/");
        assert_ne!(t.key(&OPEN_KEY, Audience::Everyone), t.key(&[1; 32], Audience::Everyone));
    }

    #[test]
    fn each_audience_has_keys_of_its_own() {
        let t = target("router.lan", "/");
        let [everyone, site, home] = Audience::ALL.map(|audience| t.key(&OPEN_KEY, audience));
        assert!(everyone != site && site != home && home != everyone);
    }

    #[test]
    fn a_port_is_a_port() {
        let read =
            |text: &str| Target::new(Scheme::Http, &text.parse().unwrap(), None).map(|t| t.port());
        assert_eq!(read("a:"), Some(80));
        assert_eq!(read("a:8080"), Some(8080));
        assert_eq!(read("[::1]:81"), Some(81));
        assert_eq!((read("a:99999"), read("a:0"), read("a:x1")), (None, None, None));
    }

    #[test]
    fn literal_addresses_are_recognised() {
        assert_eq!(target("[2001:DB8::1]:8080", "/").address(), "2001:db8::1".parse().ok());
        assert_eq!(target("10.0.0.1", "/").address(), "10.0.0.1".parse().ok());
        assert_eq!(target("host", "/").address(), None);
        assert_eq!(target("[2001:DB8::1]:8080", "/").to_string(), "http://[2001:db8::1]:8080/");
    }

    #[test]
    fn user_information_is_refused() {
        assert_eq!(Target::new(Scheme::Http, &"user@host".parse().unwrap(), None), None);
    }

    #[test]
    fn a_path_begins_with_a_slash() {
        let path = |path: Option<&str>| {
            let path = path.map(|it| it.parse().unwrap());
            Target::new(Scheme::Http, &"a".parse().unwrap(), path.as_ref())
                .unwrap()
                .path()
                .to_owned()
        };
        assert_eq!([path(None), path(Some("/b?c"))], ["/", "/b?c"]);
        assert_eq!([path(Some("?q")), path(Some("*"))], ["/?q", "*"]);
        let other = of(Scheme::Https, "a:81", "/b").with_path("c");
        assert_eq!(other.to_string(), "https://a:81/c");
        assert_eq!(target("a", "/b").with_path("/c?d").path(), "/c?d");
    }

    #[test]
    fn classes_are_asked_for_all_parts() {
        let target = of(Scheme::Https, "A.test:81", "/b?c");
        let expected = classes::Url { tls: true, host: "a.test", port: 81, path: "/b?c" };
        assert_eq!((target.url(), target.host()), (expected, "a.test"));
        assert_eq!(target.authority(), "a.test:81");
    }
}
