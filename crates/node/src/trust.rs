//! Whether the store is used.

use wire::Instant;

/// Whether the store is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It is.
    Works,
    /// It failed, and is left alone until then.
    Failed(Instant),
    /// It failed, and is asked whether it can be written again.
    Tried,
    /// It is used again. Nothing is said to be stored before it has taken something.
    Doubted,
}

impl Trust {
    /// When it is to be tried again, if it failed.
    pub fn tried_at(self) -> Option<Instant> {
        match self {
            Self::Failed(until) => Some(until),
            Self::Works | Self::Tried | Self::Doubted => None,
        }
    }
}
