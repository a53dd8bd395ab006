//! Whether the store is used.

use crate::events::{Event, Events, StoreState};
use wire::Instant;

/// Whether the store is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It is used.
    Works,
    /// It has failed, and is not used until this time.
    Failed(Instant),
    /// It has failed; a sync tests whether it can be written again.
    Tried,
    /// It is used again, but has not taken a write yet: no response is reported as stored.
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

    /// When a failed store is to be tried again.
    pub fn tried_at(self) -> Option<Instant> {
        match self {
            Self::Failed(until) => Some(until),
            Self::Works | Self::Tried | Self::Doubted => None,
        }
    }
}
