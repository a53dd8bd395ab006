//! Patterns for hosts.

use std::fmt;
use std::str::FromStr;

use crate::glob::Glob;

/// The longest name of a host, in bytes (RFC 1035, section 2.3.4).
const HOST_MAX: usize = 253;

/// Hosts and a port, as tables and `[mirror] allow` name them: `pypi.org`, `*.ubuntu.com` (every name below
/// `ubuntu.com`), `cdn-*.example.org` (one label), `registry.example:5000`. Without a port, the scheme's port is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    glob: Glob,
    /// What follows the last wildcard: most hosts already differ in it.
    end: Box<str>,
    port: Option<u16>,
    text: Box<str>,
}

impl HostPattern {
    /// Whether the pattern has a host, which is in lower case, with this port.
    pub fn matches(&self, tls: bool, host: &str, port: u16) -> bool {
        let expected = self.port.unwrap_or(if tls { 443 } else { 80 });
        port == expected && self.has_host(host)
    }

    /// Whether the pattern has a host, whatever the port.
    pub fn has_host(&self, host: &str) -> bool {
        host.ends_with(&*self.end) && self.glob.matches(host.split('.'))
    }
}

/// A text that is no pattern for hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoHostPattern;

impl fmt::Display for NoHostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected a host in lower case, such as pypi.org, *.ubuntu.com or 192.0.2.1:8443",
        )
    }
}

impl std::error::Error for NoHostPattern {}

impl FromStr for HostPattern {
    type Err = NoHostPattern;

    fn from_str(text: &str) -> Result<Self, NoHostPattern> {
        let (host, port) = split_port(text).ok_or(NoHostPattern)?;
        let is_literal = host.starts_with('[') && host.ends_with(']');
        let is_name_byte = |it: u8| {
            it.is_ascii_lowercase()
                || it.is_ascii_digit()
                || b"-._*".contains(&it)
                || (is_literal && b"[]:".contains(&it))
        };
        let is_empty = host.split('.').any(str::is_empty);
        // A pattern without a fixed name would let everybody reach every host.
        let has_name = host.split('.').rev().take(2).all(|it| !it.contains('*'));
        if host.len() > HOST_MAX || is_empty || !has_name || !host.bytes().all(is_name_byte) {
            return Err(NoHostPattern);
        }
        let any =
            host.strip_prefix("*.").map(|rest| ["**", "*"].into_iter().chain(rest.split('.')));
        let glob = match any {
            Some(parts) => Glob::new(parts),
            None => Glob::new(host.split('.')),
        };
        let end = host.rsplit('*').next().unwrap_or_default();
        Ok(Self { glob, end: end.into(), port, text: text.into() })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A host and its port, if it has one; `None` if the port is none.
pub(crate) fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let is_plain = !port.starts_with(['+', '0']);
            Some((host, Some(port.parse().ok().filter(|_| is_plain)?)))
        }
        _ => Some((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_star_in_front_stands_for_one_label_or_more() {
        let ubuntu = pattern("*.ubuntu.com");
        assert!(ubuntu.has_host("de.archive.ubuntu.com") && ubuntu.has_host("archive.ubuntu.com"));
        assert!(!ubuntu.has_host("ubuntu.com") && !ubuntu.has_host("evilubuntu.com"));
        assert!(!ubuntu.has_host("ubuntu.com.evil.org"));
        let one = pattern("cdn-*.example.org");
        assert!(one.has_host("cdn-3.example.org") && !one.has_host("cdn-3.x.example.org"));
    }

    #[test]
    fn a_port_is_the_schemes_or_the_named_one() {
        let plain = pattern("pypi.org");
        assert!(plain.matches(true, "pypi.org", 443) && plain.matches(false, "pypi.org", 80));
        assert!(!plain.matches(true, "pypi.org", 80) && !plain.matches(true, "pypi.org", 8443));
        let named = pattern("127.0.0.1:8443");
        assert!(named.matches(true, "127.0.0.1", 8443) && !named.matches(true, "127.0.0.1", 443));
        assert!(pattern("[::1]:8443").matches(true, "[::1]", 8443));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "", "*", "*.*", "*.com", "**", "Pypi.org", "a..b", "a:b", "a:0", "a:99999", "a/b",
            "a b", "a.b:", "a.b:+80", "a.b:080", "a.*.b", "[::1", "::1]", "a[1].b", "a:1:2",
        ] {
            assert_eq!(text.parse::<HostPattern>(), Err(NoHostPattern), "{text}");
        }
        for text in ["localhost", "[::1]", "a_b-1.test", "a.*.b.c"] {
            assert_eq!(pattern(text).to_string(), text);
        }
        assert!(NoHostPattern.to_string().contains("such as pypi.org"));
    }

    /// RFC 1035, section 2.3.4.
    #[test]
    fn a_host_has_253_bytes_at_most() {
        let host = |length: usize| "a".repeat(length).parse::<HostPattern>().is_ok();
        assert!(host(253) && !host(254));
    }
}
