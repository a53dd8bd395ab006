//! One request of one client, from its head to the end of its response.

use crate::exchanges::peer_reader::PeerReader;
use crate::http::Record;
use crate::input::{ExchangeId, FetchId};
use crate::request::{Ask, Asker};
use bytes::Bytes;
use content::{Entry, Segment};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use wire::peer::Request;
use wire::{ChunkId, NodeId, RecordId};

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
            State::ClientReader(client_reader) => client_reader.position(),
            State::PeerReader(peer_reader) => Some(peer_reader.position()),
            _ => None,
        }
    }

    /// Where what it reads comes from, if it reads.
    pub fn source(&self) -> Option<&Source> {
        match &self.state {
            State::ClientReader(client_reader) => Some(&client_reader.source),
            State::PeerReader(peer_reader) => Some(&peer_reader.source),
            _ => None,
        }
    }

    /// The exchange by which a peer gets what is in no unit, if it does.
    pub fn flow(&self) -> Option<ExchangeId> {
        match &self.state {
            State::PeerReader(peer_reader) => peer_reader.flow,
            _ => None,
        }
    }

    /// Whether it is the one by which a peer gets what is in no unit.
    pub fn flows(&self) -> bool {
        matches!(self.state, State::ClientReader(_)) && self.ask.asker != Asker::Client
    }

    /// Whether a peer may want anything more of an object, if it reads one.
    pub fn may_want(&self) -> bool {
        matches!(self.state, State::PeerReader(_))
    }

    /// Whether all is sent that it reads of an object, if it reads one.
    pub fn has_all(&self) -> bool {
        match &self.state {
            State::ClientReader(client_reader) => client_reader.pieces.is_empty(),
            State::PeerReader(_) => false,
            _ => true,
        }
    }

    /// Where it reads as a client does, and where that ends if it is known.
    pub fn reads(&self) -> Option<(u64, Option<u64>)> {
        match &self.state {
            State::ClientReader(client_reader) => {
                Some((client_reader.position()?, client_reader.end()))
            }
            _ => None,
        }
    }

    /// The next segment of the manifest that a peer is to be told.
    pub fn told_to(&self) -> Option<u32> {
        match &self.state {
            State::PeerReader(peer_reader) => Some(peer_reader.segment),
            _ => None,
        }
    }

    /// Whether the transfer that it reads from was begun for it.
    pub fn leads(&self) -> bool {
        matches!(&self.state, State::ClientReader(client_reader) if client_reader.leads)
    }

    /// The peer that asks, and its request, if it is one that asks.
    pub fn peer(&self) -> Option<(NodeId, Request)> {
        match self.ask.asker {
            Asker::Client => None,
            Asker::Peer(peer, request) => Some((peer, request)),
        }
    }

    /// Whether it reads an object, and waits for something that it has asked for.
    pub fn waits(&self) -> bool {
        matches!(&self.state, State::ClientReader(client_reader) if client_reader.waits)
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
    ClientReader(Box<ClientReader>),
    /// A peer, which is told of an object and asks for units.
    PeerReader(Box<PeerReader>),
}

/// Reading an object, perhaps while it grows.
#[derive(Debug)]
pub struct ClientReader {
    pub source: Source,
    pub record: RecordId,
    /// What is still to be sent.
    pub pieces: VecDeque<Piece>,
    /// Where it reads in the manifest, as far as that is known.
    pub cursor: Option<Cursor>,
    /// Units that the disk gave for it and that are not sent yet.
    pub ahead: VecDeque<(ChunkId, Bytes)>,
    /// The unit that it reads, clear: it is opened once, however many pieces it is taken in.
    pub clear: Option<(Entry, Bytes)>,
    /// Holes in it are for the origin to fill: no peer can.
    pub unfillable: bool,
    /// The transfer that the object comes from was begun for it: what it gets crossed the uplink.
    pub leads: bool,
    /// It has asked for something and waits.
    pub waits: bool,
    /// The transfer that fills a hole for it.
    pub repair: Option<FetchId>,
    /// Bytes of what comes next that come from a peer.
    pub from_peer: u64,
    /// Bytes of what comes next that were overheard of units of which a peer sent the rest.
    pub from_repair: u64,
    /// Bytes of what comes next that are of an overheard unit.
    pub from_air: u64,
    /// What it was sent so far, by source.
    pub sent: Sent,
    /// The peer that was asked for it, if one was.
    pub asked: Option<NodeId>,
}

/// Bytes that a client was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    pub local: u64,
    pub peer: u64,
    pub origin: u64,
    pub overheard: u64,
    pub repaired: u64,
}

impl Sent {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.local + self.peer + self.origin + self.overheard + self.repaired
    }
}

/// Where the rest of an object comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A transfer that is under way.
    Incoming(FetchId),
    /// A closed record.
    Closed(Rc<Record>),
}

impl Source {
    /// The transfer that is under way, if one is.
    pub fn incoming(&self) -> Option<FetchId> {
        match self {
            Self::Incoming(fetch) => Some(*fetch),
            Self::Closed(_) => None,
        }
    }
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

    /// What is listed from here to the end of the segment.
    pub fn entries(&self) -> &[Entry] {
        &self.segment.entries[self.entry..]
    }
}

impl ClientReader {
    pub fn new(source: Source, record: RecordId, pieces: VecDeque<Piece>) -> Self {
        Self {
            source,
            record,
            pieces,
            cursor: None,
            ahead: VecDeque::new(),
            clear: None,
            unfillable: false,
            leads: false,
            waits: false,
            repair: None,
            from_peer: 0,
            from_repair: 0,
            from_air: 0,
            sent: Sent::default(),
            asked: None,
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
    pub fn advance(&mut self, count: u64) {
        if let Some(Piece::Object(range)) = self.pieces.front_mut() {
            range.start += count;
            if range.start >= range.end {
                self.pieces.pop_front();
            }
        }
    }

    /// Where the last byte of the object that is wanted ends; `None` if that is not known.
    pub fn end(&self) -> Option<u64> {
        let ends = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Object(range) => Some(range.end),
            Piece::Literal(_) => None,
        });
        ends.max().filter(|end| *end < u64::MAX)
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
