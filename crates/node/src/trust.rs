//! Whether the store is used.

use crate::events::{Event, Events, StoreState};
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
    /// The store is in another state.
    pub fn turn(&mut self, to: Self, events: &mut Events) {
        *self = to;
        let state = match to {
            Self::Works => StoreState::Works,
            Self::Failed(_) => StoreState::Failed,
            Self::Tried => StoreState::Tried,
            Self::Doubted => StoreState::Doubted,
        };
        events.emit(|| Event::Store { state });
    }

    /// When it is to be tried again, if it failed.
    pub fn tried_at(self) -> Option<Instant> {
        match self {
            Self::Failed(until) => Some(until),
            Self::Works | Self::Tried | Self::Doubted => None,
        }
    }
}
