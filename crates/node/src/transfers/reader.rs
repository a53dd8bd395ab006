//! A reader of an object under way, and the units requested for it.

use crate::input::ExchangeId;
use std::collections::VecDeque;

/// One reader.
#[derive(Debug)]
pub struct Reader {
    pub id: ExchangeId,
    /// The transfer was begun for this reader: its bytes count as fetched for it.
    pub leads: bool,
    /// Missing units before this offset have been requested from a peer.
    pub wanted_to: u64,
    /// Units that were missing or in flight when looked at, and that it has not read yet: each
    /// one's end, and its weight in the window.
    wanted: VecDeque<(u64, u64)>,
}

impl Reader {
    /// A reader that begins at this offset, with nothing requested yet.
    pub fn new(id: ExchangeId, leads: bool, begins: u64) -> Self {
        Self { id, leads, wanted_to: begins, wanted: VecDeque::new() }
    }

    /// The weight in bytes of units requested ahead of its position.
    pub fn wanted_ahead(&mut self, position: u64) -> u64 {
        while self.wanted.front().is_some_and(|(end, _)| *end <= position) {
            self.wanted.pop_front();
        }
        self.wanted.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Units up to this offset were looked at. `ahead`: those missing or in flight, by end and
    /// weight.
    pub fn wants(&mut self, to: u64, ahead: Vec<(u64, u64)>) {
        self.wanted_to = to;
        self.wanted.extend(ahead);
    }
}

/// The kind of reader that joins an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
    /// A client; with HEAD it reads no content.
    Client { head_alone: bool },
    /// A peer; it accepts the manifest up to this offset.
    Peer { manifest_credit: u64 },
    /// A peer, for loose bytes.
    Flow,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_ahead_until_its_reader_has_come_to_its_end() {
        let mut reader = Reader::new(ExchangeId(1), true, 0);
        reader.wants(30, vec![(10, 1), (20, 2), (30, 4)]);
        let ahead = [0, 9, 10, 29, 30].map(|position| reader.wanted_ahead(position));
        assert_eq!(ahead, [7, 7, 6, 4, 0]);
        reader.wants(50, vec![(50, 8)]);
        assert_eq!((reader.wanted_to, reader.wanted_ahead(30)), (50, 8));
    }
}
