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

    /// The name of a class, for people: a token in lower case.
    pub fn name(&self, _class: ClassId) -> &str {
        "other"
    }
}
