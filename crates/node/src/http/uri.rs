//! The canonical URI, and the object key derived from it.

use http::uri::{Authority, PathAndQuery};
use std::net::IpAddr;
use wire::ObjectKey;

/// The target of a request: host, port and path, in canonical form (RFC 3986 §6.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    host: String,
    port: u16,
    path: String,
}

impl Target {
    /// The target with this authority and path. `None` if the authority has no host, has user information, or
    /// names an invalid port.
    pub fn new(authority: &Authority, path: Option<&PathAndQuery>) -> Option<Self> {
        let path = path.map_or("/", |path| match path.as_str() {
            "" => "/",
            path => path,
        });
        let host = authority.host().trim_end_matches('.');
        if host.is_empty() || authority.as_str().contains('@') {
            return None;
        }
        // The parser of the crate `http` accepts invalid ports.
        let port = match authority.as_str().strip_prefix(authority.host())? {
            "" | ":" => 80,
            port => port.strip_prefix(':')?.parse().ok().filter(|port| *port > 0)?,
        };
        Some(Self { host: host.to_ascii_lowercase(), port, path: absolute(path) })
    }

    /// The same host and port with another path.
    pub fn with_path(&self, path: &str) -> Self {
        Self { path: absolute(path), ..self.clone() }
    }

    /// The host: a name or an address literal, the latter with brackets if it is IPv6.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; 80 unless the URI named one.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query, beginning with `/` (or `*` for `OPTIONS *`).
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of the `Host` field.
    pub fn authority(&self) -> String {
        match self.port {
            80 => self.host.clone(),
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
        hasher.update(b"http://").update(self.authority().as_bytes()).update(self.path.as_bytes());
        ObjectKey(*hasher.finalize().as_bytes())
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.path)
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
        Target::new(&authority.parse().unwrap(), Some(&path.parse().unwrap())).unwrap()
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
        let read = |text: &str| Target::new(&text.parse().unwrap(), None).map(|t| t.port());
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
        assert_eq!(Target::new(&"user@host".parse().unwrap(), None), None);
    }
}
