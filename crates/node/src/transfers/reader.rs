//! Who reads an object while it comes, and what of it was wanted for that one.

use crate::input::ExchangeId;
use std::collections::VecDeque;

/// One reader.
#[derive(Debug)]
pub struct Reader {
    pub id: ExchangeId,
    /// The transfer was begun for it: what it gets crossed the uplink.
    pub leads: bool,
    /// How far in the object units that are missing have been asked of a peer.
    pub wanted_to: u64,
    /// Where units end that were missing or on their way then and that it has not read yet, and what each
    /// takes of its window.
    wanted: VecDeque<(u64, u64)>,
}

impl Reader {
    /// Nothing is wanted for it yet; it begins there.
    pub fn new(id: ExchangeId, leads: bool, begins: u64) -> Self {
        Self { id, leads, wanted_to: begins, wanted: VecDeque::new() }
    }

    /// What units take of its window that were asked of a peer and lie ahead of where it reads, in bytes.
    pub fn wanted_ahead(&mut self, position: u64) -> u64 {
        while self.wanted.front().is_some_and(|(end, _)| *end <= position) {
            self.wanted.pop_front();
        }
        self.wanted.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Units were looked at up to there; these, which end there and take so much, were missing or on their way.
    pub fn wants(&mut self, to: u64, ahead: Vec<(u64, u64)>) {
        self.wanted_to = to;
        self.wanted.extend(ahead);
    }
}

/// What somebody who begins to read an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
    /// A client; it may want the head alone.
    Client { head_alone: bool },
    /// A peer, to which the manifest is welcome up to there.
    Peer { manifest_credit: u64 },
    /// A peer, for bytes that are in no unit.
    Flow,
}
