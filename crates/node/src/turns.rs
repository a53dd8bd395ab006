//! Who is to go on before an input is done with: readers of objects, and transfers.
//!
//! *What this is:* two queues. Whatever may let a reader or a transfer go on marks it here, and calls nothing; one
//! loop at the end of [`Node::handle_input`](crate::Node::handle_input) then lets each look for itself what there is
//! to do, until nobody is marked. *Order:* readers before transfers, each by number. What readers have taken decides
//! what a transfer may ask for next, so that one turn of it is enough. *Rule:* who has had a turn marks itself again
//! only if it got on.

use crate::input::{ExchangeId, FetchId};
use bytes::Bytes;
use std::collections::BTreeMap;

/// After this many turns in one input something marks itself without getting on.
pub const TURNS_MAX: u32 = 10_000;

/// What a transfer is to do when it has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// Go on: ask whom it has to ask, grant what may come, let its readers read what is stored.
    GoOn,
    /// End, if nobody wants it any more.
    End,
}

/// What has just come of an object, and where it begins.
pub type Fresh = (u64, Bytes);

/// See the module.
#[derive(Debug, Default)]
pub struct Turns {
    readers: BTreeMap<ExchangeId, Option<Fresh>>,
    transfers: BTreeMap<FetchId, Turn>,
}

impl Turns {
    /// A reader may be able to go on.
    pub fn ready(&mut self, reader: ExchangeId) {
        self.readers.entry(reader).or_default();
    }

    /// These may.
    pub fn all_ready(&mut self, readers: impl IntoIterator<Item = ExchangeId>) {
        readers.into_iter().for_each(|reader| self.ready(reader));
    }

    /// This has just come for a reader: one that has all before it gets it as it is.
    pub fn hand(&mut self, reader: ExchangeId, fresh: Fresh) {
        self.readers.entry(reader).or_default().get_or_insert(fresh);
    }

    /// A transfer may be able to go on.
    pub fn dirty(&mut self, transfer: FetchId) {
        self.transfers.entry(transfer).or_insert(Turn::GoOn);
    }

    /// A transfer may be of use to nobody any more.
    pub fn end(&mut self, transfer: FetchId) {
        self.transfers.insert(transfer, Turn::End);
    }

    /// The reader whose turn it is.
    pub fn next_reader(&mut self) -> Option<(ExchangeId, Option<Fresh>)> {
        self.readers.pop_first()
    }

    /// The transfer whose turn it is.
    pub fn next_transfer(&mut self) -> Option<(FetchId, Turn)> {
        self.transfers.pop_first()
    }
}
