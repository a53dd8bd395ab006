//! What the content classes say of what is stored.

use std::sync::Arc;

use classes::{Classes, Proven, Verdict};
use node::Target;

/// What the classes say of stored URLs, as they do of requests.
pub struct Judge {
    /// The classes.
    pub classes: Arc<Classes>,
    /// The archives that were found by their indexes.
    pub proven: Proven,
}

impl Judge {
    /// The name of a verdict's class.
    pub fn class(&self, verdict: &Verdict) -> &str {
        self.classes.name(verdict.class)
    }

    /// Whether there is a class with this name.
    pub fn has_class(&self, name: &str) -> bool {
        self.classes.names().any(|it| it == name)
    }

    /// Of a URL that is hidden or cannot be read, nothing.
    pub fn of(&self, url: &str) -> Verdict {
        let target = url.parse().ok().and_then(|uri| Target::read(&uri));
        let judged = target.map(|it| self.classes.judge_proven(&self.proven, it.url()));
        judged.unwrap_or_default()
    }
}
