//! Who is to go on before an input is done with: readers of objects, and transfers.
//!
//! *What this is:* two queues. Whatever may let a reader or a transfer go on marks it here, and calls nothing; one
//! loop at the end of [`Node::handle_input`](crate::Node::handle_input) then lets each look for itself what there is
//! to do, until nobody is marked. *Order:* readers before transfers, each by number. What readers have taken decides
//! what a transfer may ask for next, so that one turn of it is enough. *Rule:* who has had a turn marks itself again
//! only if it got on.

use crate::input::{ExchangeId, FetchId};
use bytes::Bytes;
use std::collections::VecDeque;

/// After this many turns in one input something marks itself without getting on.
pub const TURNS_MAX: u32 = 10_000;
/// After this many values between two turns machines talk without end: a peer may have 16,384 units lost at once.
pub const VALUES_MAX: u32 = 1_000_000;

/// What a transfer is to do when it has its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// Go on: ask whom it has to ask, grant what may come, let its readers read what is stored.
    #[default]
    GoOn,
    /// End, if nobody wants it any more.
    End,
}

/// What has just come of an object, and where it begins.
pub type Fresh = (u64, Bytes);

/// See the module.
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

    /// These may.
    pub fn all_ready(&mut self, readers: impl IntoIterator<Item = ExchangeId>) {
        readers.into_iter().for_each(|reader| self.ready(reader));
    }

    /// This has just come for a reader: one that has all before it gets it as it is.
    pub fn hand(&mut self, reader: ExchangeId, fresh: Fresh) {
        mark(&mut self.readers, reader).get_or_insert(fresh);
    }

    /// A transfer may be able to go on.
    pub fn dirty(&mut self, transfer: FetchId) {
        mark(&mut self.transfers, transfer);
    }

    /// A transfer may be of use to nobody any more.
    pub fn end(&mut self, transfer: FetchId) {
        *mark(&mut self.transfers, transfer) = Turn::End;
    }

    /// The reader whose turn it is.
    pub fn next_reader(&mut self) -> Option<(ExchangeId, Option<Fresh>)> {
        self.readers.pop_front()
    }

    /// The transfer whose turn it is.
    pub fn next_transfer(&mut self) -> Option<(FetchId, Turn)> {
        self.transfers.pop_front()
    }
}

/// Who is marked, each once, in order. It keeps its memory: most inputs mark one or two, and would have to allocate
/// for them.
type Queue<K, V> = VecDeque<(K, V)>;

/// Marks somebody, who may be marked already; answers what is noted with it. Those who come together mostly come in
/// order: nothing has to move for them.
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
