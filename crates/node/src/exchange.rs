//! One request of one client, from its head to the end of its response.

use crate::http::{CacheControl, Target};
use crate::input::{Entrance, FetchId};
use crate::output::Dial;
use bytes::Bytes;
use content::Segment;
use http::{HeaderMap, Method, header};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;
use wire::{ChunkId, ObjectKey, RecordId};

use crate::http::{CONDITIONS, Record};

/// What a client asks, understood.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: Method,
    pub target: Target,
    pub key: ObjectKey,
    /// End-to-end fields, with our `Via` but without `Host`.
    pub headers: HeaderMap,
    pub client: IpAddr,
    pub at_home: bool,
    pub entrance: Entrance,
    pub dial: Dial,
    pub has_body: bool,
    pub upgrade: bool,
    /// Fetches for itself from now on: joining others did not work out.
    pub alone: bool,
    /// The host is known to be the one that was dialled: it may speak for its URIs.
    pub verified: bool,
}

impl Ask {
    /// Why a stored response is of no use to it, nor its response to others; known from the
    /// request alone (protocol: What cannot be cached).
    pub fn bypass(&self) -> Option<&'static str> {
        if self.upgrade {
            Some("upgrade")
        } else if !matches!(self.method, Method::GET | Method::HEAD) {
            Some("method")
        } else if self.has_body {
            Some("body")
        } else if self.headers.contains_key(header::AUTHORIZATION) {
            Some("authorization")
        } else if CacheControl::of_request(&self.headers).no_store {
            Some("no-store")
        } else if self.headers.contains_key(header::IF_MATCH)
            || self.headers.contains_key(header::IF_UNMODIFIED_SINCE)
        {
            Some("precondition")
        } else {
            None
        }
    }

    /// The same for nobody in particular: the whole of the current version, from wherever.
    pub fn in_background(mut self) -> Self {
        self.method = Method::GET;
        for name in CONDITIONS {
            self.headers.remove(name);
        }
        for name in [header::RANGE, header::CACHE_CONTROL, header::PRAGMA] {
            self.headers.remove(name);
        }
        self
    }

    /// Whether it asks for the whole of the current version, as others do.
    pub fn is_plain(&self) -> bool {
        self.method == Method::GET
            && !self.headers.contains_key(header::RANGE)
            && !CONDITIONS.iter().any(|name| self.headers.contains_key(name))
    }

    /// Whether it will have nothing but what the origin says from now on.
    pub fn is_insistent(&self) -> bool {
        let control = CacheControl::of_request(&self.headers);
        control.no_cache || control.max_age == Some(0)
    }
}

/// A request and how far its answer is.
#[derive(Debug)]
pub struct Exchange {
    pub ask: Ask,
    /// Content bytes that the client can take; less than nothing while it digests a surplus.
    pub credit: i64,
    pub state: State,
}

impl Exchange {
    /// Where it reads in an object, if it does.
    pub fn position(&self) -> Option<u64> {
        match &self.state {
            State::Serving(serving) => serving.position(),
            _ => None,
        }
    }

    /// Whether it reads an object, and waits for something that it has asked for.
    pub fn waits(&self) -> bool {
        matches!(&self.state, State::Serving(serving) if serving.waits)
    }
}

/// What an exchange waits for, or does.
#[derive(Debug)]
pub enum State {
    /// For the addresses of its host.
    Resolving,
    /// For its row of the catalogue.
    Looking,
    /// For the first segment of a stored object, to see whether its units are there. The freshness
    /// left, and what is said if the origin was asked first.
    Checking(Rc<Record>, i64, Option<String>),
    /// For the head of an origin's response.
    Waiting(FetchId),
    /// It gets an origin's content as it comes, unstored.
    Passing(FetchId),
    /// It reads an object.
    Serving(Box<Serving>),
}

/// Reading an object, perhaps while it grows.
#[derive(Debug)]
pub struct Serving {
    pub source: Source,
    pub record: RecordId,
    /// What is still to be sent.
    pub pieces: VecDeque<Piece>,
    /// Where it reads in the manifest, as far as that is known.
    pub cursor: Option<Cursor>,
    /// Units that the disk gave for it and that are not sent yet.
    pub ahead: VecDeque<(ChunkId, Bytes)>,
    /// The transfer that the object comes from was begun for it: what it gets crossed the uplink.
    pub leads: bool,
    /// It has asked for something and waits.
    pub waits: bool,
    /// The transfer that fills a hole for it.
    pub repair: Option<FetchId>,
}

/// Where the rest of an object comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A transfer that is under way.
    Growing(FetchId),
    /// A closed record.
    Closed(Rc<Record>),
}

/// Part of a response's content.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// These bytes of the object; the end is [`u64::MAX`] as long as it is not known.
    Object(Range<u64>),
    /// Bytes between parts.
    Literal(Bytes),
}

/// An entry of a segment, and where its unit begins in the object.
#[derive(Clone, Debug)]
pub struct Cursor {
    pub segment: Rc<Segment>,
    pub entry: usize,
    pub offset: u64,
}

impl Cursor {
    /// At the first entry.
    pub fn begin(segment: Rc<Segment>) -> Self {
        let offset = segment.first_offset;
        Self { segment, entry: 0, offset }
    }

    /// Moves forward to the entry that covers a position; false if none does.
    pub fn advance(&mut self, position: u64) -> bool {
        if position < self.offset {
            (self.entry, self.offset) = (0, self.segment.first_offset);
        }
        while let Some(entry) = self.segment.entries.get(self.entry) {
            if position < self.offset + u64::from(entry.length) {
                return position >= self.offset;
            }
            self.offset += u64::from(entry.length);
            self.entry += 1;
        }
        false
    }

    /// Names and lengths from here to the end of the segment.
    pub fn units(&self) -> impl Iterator<Item = (ChunkId, u32)> + '_ {
        self.segment.entries[self.entry..].iter().map(|entry| (entry.id, entry.length))
    }
}

impl Serving {
    pub fn new(source: Source, record: RecordId, pieces: VecDeque<Piece>) -> Self {
        Self {
            source,
            record,
            pieces,
            cursor: None,
            ahead: VecDeque::new(),
            leads: false,
            waits: false,
            repair: None,
        }
    }

    /// Where it reads in the object; `None` between parts and at the end.
    pub fn position(&self) -> Option<u64> {
        match self.pieces.front() {
            Some(Piece::Object(range)) => Some(range.start),
            _ => None,
        }
    }

    /// So many bytes of the object were sent.
    pub fn sent(&mut self, count: u64) {
        if let Some(Piece::Object(range)) = self.pieces.front_mut() {
            range.start += count;
            if range.start >= range.end {
                self.pieces.pop_front();
            }
        }
    }

    /// The object has turned out to end here.
    pub fn ends(&mut self, length: u64) {
        for piece in &mut self.pieces {
            if let Piece::Object(range) = piece {
                range.end = range.end.min(length);
            }
        }
        self.pieces.retain(|piece| !matches!(piece, Piece::Object(range) if range.is_empty()));
    }
}
