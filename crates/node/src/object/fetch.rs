//! One request of ours, to an origin or to a peer, and what becomes of its response.

use crate::http::Record;
use crate::input::{ExchangeId, FetchError};
use crate::object::storing::{Inflow, Storing};
use crate::request::Ask;
use bytes::Bytes;
use content::Entry;
use std::collections::VecDeque;
use std::rc::Rc;
use wire::{ChunkId, Date, Instant};

/// A request to an origin or to a peer.
#[derive(Debug)]
pub struct Fetch {
    /// The request that began it.
    pub ask: Rc<Ask>,
    /// The stale record that may stand in for the origin.
    pub old: Option<Rc<Record>>,
    /// Whether it asks the origin to confirm that record.
    pub confirms: bool,
    /// Why the response may not be stored, where that is known from the start.
    pub unstorable: Option<&'static str>,
    /// `Cache-Status` of the caches before us.
    pub status_line: String,
    /// Why we ask, in the words of RFC 9211 §2.2.
    pub why: &'static str,
    /// Whose request it was made of; a response that may not be shared is for nobody else.
    pub starter: Option<ExchangeId>,
    /// Who waits for the head.
    pub waiters: Vec<ExchangeId>,
    /// Those of them that joined, and when.
    pub joined: Vec<(Instant, ExchangeId)>,
    /// When it was asked.
    pub requested: Date,
    /// Content bytes granted to the origin so far, and received.
    pub granted: u64,
    pub received: u64,
    /// Content that its client cannot take yet.
    pub held: VecDeque<Bytes>,
    /// How it ended, if that was before its client had all.
    pub over: Option<Result<(), FetchError>>,
    pub state: State,
}

/// How far a response is.
#[derive(Debug)]
pub enum State {
    /// No head yet.
    Asking,
    /// Given on as it comes; not stored for this reason.
    Passing(ExchangeId, &'static str),
    /// Cut, named, stored, and given to whoever reads it.
    Storing(Box<Storing>),
    /// Fills a hole in a stored object.
    Repairing(Box<Repairing>),
}

/// Units that are missing from a stored object, side by side, on their way from the origin.
#[derive(Debug)]
pub struct Repairing {
    /// Who waits for them.
    pub reader: ExchangeId,
    /// Where the first begins in the object.
    pub first: u64,
    /// Those that are still to come, as the manifest lists them.
    pub units: VecDeque<Entry>,
    tail: Vec<u8>,
}

/// The origin's bytes are not those that the manifest names.
#[derive(Debug)]
pub struct OtherBytes;

impl Repairing {
    pub fn new(reader: ExchangeId, first: u64, units: VecDeque<Entry>) -> Self {
        Self { reader, first, units, tail: Vec::new() }
    }

    /// Bytes that are still to come.
    pub fn wanted(&self) -> u64 {
        self.units.iter().map(|unit| u64::from(unit.length)).sum::<u64>() - self.tail.len() as u64
    }

    /// Takes in content, and gives out the units that it completes as they are kept: sealed anew where they
    /// were sealed, and each held against its name.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<(ChunkId, Bytes)>, OtherBytes> {
        self.tail.extend_from_slice(bytes);
        let (mut whole, mut used) = (Vec::new(), 0);
        while let Some(Entry { id, length, key, .. }) = self.units.front().copied()
            && let Some(unit) = self.tail.get(used..used + length as usize)
        {
            let mut unit = unit.to_vec();
            if let Some(key) = key {
                content::cipher(&key, &mut unit);
            }
            if content::name(&unit) != id {
                return Err(OtherBytes);
            }
            whole.push((id, unit.into()));
            used += length as usize;
            self.units.pop_front();
        }
        self.tail.drain(..used);
        Ok(whole)
    }
}

impl Fetch {
    /// One that has no head yet.
    pub fn new(ask: Rc<Ask>, requested: Date, why: &'static str, waiters: Vec<ExchangeId>) -> Self {
        Self {
            ask,
            old: None,
            confirms: false,
            unstorable: None,
            status_line: String::new(),
            why,
            starter: waiters.first().copied(),
            waiters,
            joined: Vec::new(),
            requested,
            granted: 0,
            received: 0,
            held: VecDeque::new(),
            over: None,
            state: State::Asking,
        }
    }

    /// Content bytes that may come at any time, to be kept until they are written.
    pub fn promised(&self) -> u64 {
        match self.state {
            State::Storing(_) => self.granted.saturating_sub(self.received),
            _ => 0,
        }
    }

    /// The object that is being stored, if it is.
    pub fn storing(&mut self) -> Option<&mut Storing> {
        match &mut self.state {
            State::Storing(storing) => Some(storing),
            _ => None,
        }
    }

    /// How far bytes of the object can be given out: what came from the origin, or what a peer's
    /// manifest lists.
    pub fn frontier(&self) -> u64 {
        match &self.state {
            State::Storing(storing) => match &storing.inflow {
                Inflow::Cut(_) => self.received,
                Inflow::Listed(listed) => listed.tail.end().unwrap_or(listed.end),
            },
            _ => 0,
        }
    }
}
