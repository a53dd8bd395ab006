//! The canonical URI and the key made of it.

use http::uri::{Authority, PathAndQuery};
use std::net::IpAddr;
use wire::ObjectKey;

/// Whom a request is for: host, port and path, in canonical form (RFC 3986 §6.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    host: String,
    port: u16,
    path: String,
}

impl Target {
    /// Takes an authority and a path apart; `None` if there is no host, or user information.
    pub fn new(authority: &Authority, path: Option<&PathAndQuery>) -> Option<Self> {
        let path = path.map_or("/", |path| match path.as_str() {
            "" => "/",
            path => path,
        });
        let host = authority.host().trim_end_matches('.');
        if host.is_empty() || authority.as_str().contains('@') {
            return None;
        }
        let port = match authority.port() {
            None => 80,
            Some(port) => port.as_u16(),
        };
        Some(Self { host: host.to_ascii_lowercase(), port, path: absolute(path) })
    }

    /// The same host and port, another path.
    pub fn with_path(&self, path: &str) -> Self {
        Self { path: absolute(path), ..self.clone() }
    }

    /// The host: a name or an address literal, the latter with brackets if it is IPv6.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; 80 unless it was named.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query, beginning with `/` (or `*` for `OPTIONS *`).
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What stands in a `Host` header.
    pub fn authority(&self) -> String {
        match self.port {
            80 => self.host.clone(),
            port => format!("{}:{port}", self.host),
        }
    }

    /// The address, where the host is a literal one.
    pub fn address(&self) -> Option<IpAddr> {
        self.host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }

    /// Whether it means the machine that asks, and so another one for everybody who asks.
    fn is_inward(&self) -> bool {
        match self.address() {
            Some(IpAddr::V4(v4)) => v4.is_loopback() || v4.is_unspecified() || v4.is_link_local(),
            Some(IpAddr::V6(v6)) => {
                v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local()
            }
            None => self.host == "localhost" || self.host.ends_with(".localhost"),
        }
    }

    /// The key of the object: keyed BLAKE3 of the canonical URI. What this machine serves to itself
    /// has a key of its own, so that nobody else is given it.
    pub fn key(&self, secret: &[u8; 32], client: IpAddr) -> ObjectKey {
        let own = self.is_inward() && client.to_canonical().is_loopback();
        let secret = if own { blake3::derive_key(OWN_CONTEXT, secret) } else { *secret };
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

const OWN_CONTEXT: &str = "hearsay 2026-11 objects that a machine serves to itself";

/// `?q` alone is a query on the root.
fn absolute(path: &str) -> String {
    if path.starts_with(['/', '*']) { path.to_owned() } else { format!("/{path}") }
}

/// The key of keyed BLAKE3 where there is no mesh key: anybody can compute it, and that is fine,
/// because without a mesh key URLs are no secret.
pub const OPEN_KEY: [u8; 32] = *b"hearsay object key, no mesh key!";

#[cfg(test)]
mod tests {
    use super::*;

    fn target(authority: &str, path: &str) -> Target {
        Target::new(&authority.parse().unwrap(), Some(&path.parse().unwrap())).unwrap()
    }

    #[test]
    fn spellings_of_one_uri_have_one_key() {
        let key = |t: Target| t.key(&OPEN_KEY, [10, 0, 0, 1].into());
        let one = key(target("Example.org:80", "/a?b"));
        assert_eq!(one, key(target("example.org", "/a?b")));
        assert_eq!(one, key(target("example.org.", "/a?b")));
        assert_ne!(one, key(target("example.org:81", "/a?b")));
        assert_ne!(one, key(target("example.org", "/A?b")));
    }

    #[test]
    fn the_key_is_keyed() {
        let t = target("example.org", "/");
        let client = [10, 0, 0, 1].into();
        assert_ne!(t.key(&OPEN_KEY, client), t.key(&[1; 32], client));
    }

    #[test]
    fn what_a_machine_serves_to_itself_is_nobody_elses() {
        let (own, other) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([10, 0, 0, 1]));
        for host in ["127.0.0.1", "[::1]", "localhost:8000", "x.localhost", "0.0.0.0", "[fe80::1]"]
        {
            let t = target(host, "/");
            assert_ne!(t.key(&OPEN_KEY, own), t.key(&OPEN_KEY, other), "{host}");
        }
        let t = target("10.0.0.2", "/");
        assert_eq!(t.key(&OPEN_KEY, own), t.key(&OPEN_KEY, other));
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
