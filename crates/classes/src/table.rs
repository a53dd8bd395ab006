//! The tables.

use crate::{ClassId, Url, Verdict};

/// All tables of a node.
#[derive(Clone, Debug, Default)]
pub struct Classes {}

impl Classes {
    /// What the tables say of a URL.
    pub fn judge(&self, _url: Url<'_>) -> Verdict {
        Verdict::default()
    }

    /// Whether a mirror may send requests to this host and port, by TLS.
    pub fn may_reach(&self, _host: &str, _port: u16) -> bool {
        false
    }

    /// The name of a class, for people: a token in lower case.
    pub fn name(&self, _class: ClassId) -> &str {
        "other"
    }
}
