//! Turns: the readers and transfers that may be able to go on in this input.
//!
//! *What it is:* two queues. An event that may let a reader or a transfer go on marks it here and
//! calls nothing. One loop at the end of [`Node::handle_input`](crate::Node::handle_input) then
//! gives each its turn, until the queues are empty. *Order:* readers before transfers, each by
//! number: what readers have taken decides what a transfer may request next, so one turn is enough.
//! *Rule:* a reader or transfer marks itself again only if it made progress.

use crate::input::{ExchangeId, FetchId};
use bytes::Bytes;
use std::collections::VecDeque;

/// More turns than this in one input mean that one marks itself without progress.
pub const TURNS_MAX: u32 = 10_000;
/// More values than this between two turns mean that machines exchange values endlessly. A peer may
/// lose 16,384 units at once.
pub const VALUES_MAX: u32 = 1_000_000;

/// What a transfer does in its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// Goes on: sends requests, grants credit, lets its readers continue from the store.
    #[default]
    GoOn,
    /// Ends, if it has no reader.
    End,
}

/// Bytes that have just arrived of an object, with their offset.
pub type Fresh = (u64, Bytes);

/// The queues; see the module.
#[derive(Debug, Default)]
pub struct Turns {
    readers: Queue<ExchangeId, Option<Fresh>>,
    transfers: Queue<FetchId, Turn>,
}

impl Turns {
    /// A reader may be able to go on.
    pub fn ready(&mut self, reader: ExchangeId) {
        mark(&mut self.readers, reader);
    }

    /// These readers may be able to go on.
    pub fn all_ready(&mut self, readers: impl IntoIterator<Item = ExchangeId>) {
        readers.into_iter().for_each(|reader| self.ready(reader));
    }

    /// Bytes have just arrived for a reader: it gets them directly if it has all before them.
    pub fn hand(&mut self, reader: ExchangeId, fresh: Fresh) {
        mark(&mut self.readers, reader).get_or_insert(fresh);
    }

    /// A transfer may be able to go on.
    pub fn dirty(&mut self, transfer: FetchId) {
        mark(&mut self.transfers, transfer);
    }

    /// A transfer may have no reader any more.
    pub fn end(&mut self, transfer: FetchId) {
        *mark(&mut self.transfers, transfer) = Turn::End;
    }

    /// The next reader in turn.
    pub fn next_reader(&mut self) -> Option<(ExchangeId, Option<Fresh>)> {
        self.readers.pop_front()
    }

    /// The next transfer in turn.
    pub fn next_transfer(&mut self) -> Option<(FetchId, Turn)> {
        self.transfers.pop_front()
    }
}

/// Marked entries, each once, in order. The queue keeps its memory: most inputs mark only one or
/// two, and would otherwise allocate for them.
type Queue<K, V> = VecDeque<(K, V)>;

/// Marks an entry, if it is not marked yet; returns its note. Entries are mostly marked in order,
/// so few have to move.
fn mark<K: Copy + Ord, V: Default>(queue: &mut Queue<K, V>, key: K) -> &mut V {
    let at = match queue.back() {
        Some((last, _)) if *last >= key => {
            queue.binary_search_by_key(&key, |(other, _)| *other).unwrap_or_else(|at| {
                queue.insert(at, (key, V::default()));
                at
            })
        }
        _ => {
            queue.push_back((key, V::default()));
            queue.len() - 1
        }
    };
    &mut queue[at].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_one_turn_by_number_and_the_first_piece_stays() {
        let mut turns = Turns::default();
        let piece = |at| (at, Bytes::from_static(b"piece"));
        turns.all_ready([5, 2, 9, 2, 5].map(ExchangeId));
        turns.hand(ExchangeId(5), piece(10));
        turns.hand(ExchangeId(5), piece(20));
        turns.hand(ExchangeId(3), piece(30));
        turns.ready(ExchangeId(3));
        let taken: Vec<_> = std::iter::from_fn(|| turns.next_reader()).collect();
        let expected = [(2, None), (3, Some(piece(30))), (5, Some(piece(10))), (9, None)];
        assert_eq!(taken, expected.map(|(id, fresh)| (ExchangeId(id), fresh)));
    }

    #[test]
    fn a_transfer_that_may_end_does_not_just_go_on() {
        let mut turns = Turns::default();
        turns.dirty(FetchId(4));
        turns.end(FetchId(4));
        turns.dirty(FetchId(4));
        turns.dirty(FetchId(1));
        let taken: Vec<_> = std::iter::from_fn(|| turns.next_transfer()).collect();
        assert_eq!(taken, [(FetchId(1), Turn::GoOn), (FetchId(4), Turn::End)]);
    }
}
