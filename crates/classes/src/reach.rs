//! Which hosts a mirror may dial.

use std::sync::Arc;

use crate::Classes;
use crate::host::{HostPattern, split_port};

/// The hosts of the tables, and those of `[mirror] allow`. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// The tables.
    pub classes: Arc<Classes>,
    /// Further hosts.
    pub allow: Arc<[HostPattern]>,
}

/// A host that a mirror may dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    /// Whether TLS leads to it.
    pub(crate) tls: bool,
    /// In lower case.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Authority {
    /// The scheme, the host, and the port if it is not the scheme's.
    pub(crate) fn url(&self) -> String {
        let Self { tls, host, port } = self;
        match (tls, port) {
            (true, 443) => format!("https://{host}"),
            (true, port) => format!("https://{host}:{port}"),
            (false, 80) => format!("http://{host}"),
            (false, port) => format!("http://{host}:{port}"),
        }
    }
}

impl Reach {
    /// Whether the mirror may dial a host, or follow a redirect to it. The host is in lower case.
    pub fn may(&self, tls: bool, host: &str, port: u16) -> bool {
        let is_allowed = || tls && self.allow.iter().any(|it| it.matches(tls, host, port));
        self.classes.may_reach(tls, host, port) || is_allowed()
    }

    /// The host that a text `HOST[:PORT]` names, if the mirror may dial it. TLS leads to it unless a table says that it
    /// has none.
    pub(crate) fn authority(&self, text: &str) -> Option<Authority> {
        let (host, port) = split_port(text)?;
        let host = host.to_ascii_lowercase();
        let secure = port.unwrap_or(443);
        if self.may(true, &host, secure) && !self.classes.is_plain(&host, port.unwrap_or(80)) {
            return Some(Authority { tls: true, host, port: secure });
        }
        let port = port.unwrap_or(80);
        self.may(false, &host, port).then_some(Authority { tls: false, host, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach() -> Reach {
        let allow = ["127.0.0.1:8443", "*.example.org"].map(|it| it.parse().unwrap());
        Reach { classes: Arc::new(Classes::builtin()), allow: Arc::new(allow) }
    }

    #[test]
    fn hosts_are_dialled_by_tls_unless_a_table_says_otherwise() {
        let url = |text| reach().authority(text).map(|it| it.url());
        assert_eq!(url("pypi.org").as_deref(), Some("https://pypi.org"));
        assert_eq!(url("PyPI.org:443").as_deref(), Some("https://pypi.org"));
        assert_eq!(url("127.0.0.1:8443").as_deref(), Some("https://127.0.0.1:8443"));
        assert_eq!(url("a.example.org").as_deref(), Some("https://a.example.org"));
        assert_eq!(url("archive.ubuntu.com").as_deref(), Some("http://archive.ubuntu.com"));
        for refused in ["127.0.0.1", "pypi.org:80", "pypi.org:8443", "evil.test", "", "pypi.org:"] {
            assert_eq!(url(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_host_without_tls_may_have_a_port_of_its_own() {
        let text = "name = \"a\"\n[mirror]\nplain = [\"a.test:8080\"]";
        let classes = Classes::default().with("a.toml", text).unwrap();
        let reach = Reach { classes: Arc::new(classes), ..Reach::default() };
        let url = |text| reach.authority(text).map(|it| it.url());
        assert_eq!(url("a.test:8080").as_deref(), Some("http://a.test:8080"));
        assert_eq!((url("a.test"), url("a.test:80"), url("a.test:8081")), (None, None, None));
    }

    #[test]
    fn redirects_to_other_hosts_and_without_tls_are_refused() {
        assert!(reach().may(true, "production.cloudflare.docker.com", 443));
        assert!(!reach().may(false, "production.cloudflare.docker.com", 80));
        assert!(!reach().may(false, "a.example.org", 80));
        assert!(!reach().may(true, "10.0.0.1", 443));
    }
}
