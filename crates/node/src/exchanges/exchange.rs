//! One request of a client or peer, from its head to the end of its response.

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

/// A request and the state of its response.
#[derive(Debug)]
pub struct Exchange {
    pub ask: Ask,
    /// Content bytes that the client can take; negative if it was sent more than its credit.
    pub credit: i64,
    pub state: State,
}

impl Exchange {
    /// The position in the object that it reads, if it reads one.
    pub fn position(&self) -> Option<u64> {
        match &self.state {
            State::ClientReader(client_reader) => client_reader.position(),
            State::PeerReader(peer_reader) => Some(peer_reader.position()),
            _ => None,
        }
    }

    /// The source of the object that it reads, if it reads one.
    pub fn source(&self) -> Option<&Source> {
        match &self.state {
            State::ClientReader(client_reader) => Some(&client_reader.source),
            State::PeerReader(peer_reader) => Some(&peer_reader.source),
            _ => None,
        }
    }

    /// The exchange that sends this peer loose bytes, if there is one.
    pub fn flow(&self) -> Option<ExchangeId> {
        match &self.state {
            State::PeerReader(peer_reader) => peer_reader.flow,
            _ => None,
        }
    }

    /// Whether this exchange sends a peer loose bytes.
    pub fn flows(&self) -> bool {
        let for_peer = self.ask.asker != Asker::Client && !self.ask.peer_hops.passed;
        for_peer && matches!(self.state, State::ClientReader(_))
    }

    /// Whether it receives a response as it arrives: the response's head is sent.
    pub fn passes(&self) -> bool {
        matches!(self.state, State::Passing(_))
    }

    /// Whether a peer may still want units of an object.
    pub fn may_want(&self) -> bool {
        matches!(self.state, State::PeerReader(_))
    }

    /// Whether all bytes of the object that it reads are sent.
    pub fn has_all(&self) -> bool {
        match &self.state {
            State::ClientReader(client_reader) => client_reader.pieces.is_empty(),
            State::PeerReader(_) => false,
            _ => true,
        }
    }

    /// The range of the object that it still has to read in order; the end if it is known.
    pub fn reads(&self) -> Option<(u64, Option<u64>)> {
        match &self.state {
            State::ClientReader(client_reader) => {
                Some((client_reader.position()?, client_reader.end()))
            }
            _ => None,
        }
    }

    /// The next segment of the manifest for a peer.
    pub fn told_to(&self) -> Option<u32> {
        match &self.state {
            State::PeerReader(peer_reader) => Some(peer_reader.segment),
            _ => None,
        }
    }

    /// Whether the transfer that it reads was begun for it.
    pub fn leads(&self) -> bool {
        matches!(&self.state, State::ClientReader(client_reader) if client_reader.leads)
    }

    /// The peer and its request, if a peer asks.
    pub fn peer(&self) -> Option<(NodeId, Request)> {
        match self.ask.asker {
            Asker::Client => None,
            Asker::Peer(peer, request) => Some((peer, request)),
        }
    }

    /// Whether it reads an object and waits for a read or a unit.
    pub fn waits(&self) -> bool {
        matches!(&self.state, State::ClientReader(client_reader) if client_reader.waits)
    }
}

/// What an exchange waits for or does.
#[derive(Debug)]
pub enum State {
    /// Waits for the addresses of its host.
    Resolving,
    /// Waits for its row of the catalogue.
    Looking,
    /// Nothing is stored under its URI that fits. Waits for the row of the digest that its content must have, or for the
    /// row that this one names.
    Aliased {
        /// Something is stored for other request fields.
        varies: bool,
        /// The record in the row that was named.
        record: Option<RecordId>,
    },
    /// Waits for the first segment of a stored object, to check that its units are stored. With the
    /// remaining freshness in seconds, and the `Cache-Status` detail if the origin was asked first.
    Checking(Rc<Record>, i64, Option<String>),
    /// Waits for the head of a response.
    Waiting(FetchId),
    /// Receives a response as it arrives; the response is not stored.
    Passing(FetchId),
    /// Reads an object.
    ClientReader(Box<ClientReader>),
    /// A peer that gets a manifest and wants units.
    PeerReader(Box<PeerReader>),
}

/// Reads an object in order, perhaps while it is fetched.
#[derive(Debug)]
pub struct ClientReader {
    pub source: Source,
    pub record: RecordId,
    /// The content still to be sent.
    pub pieces: VecDeque<Piece>,
    /// The place in the manifest, as far as it is known.
    pub cursor: Option<Cursor>,
    /// Units read from the disk and not sent yet.
    pub ahead: VecDeque<(ChunkId, Bytes)>,
    /// The opened unit that is being sent: kept so that it is opened only once.
    pub clear: Option<(Entry, Bytes)>,
    /// No peer can fill holes in the object; the origin must.
    pub unfillable: bool,
    /// The object's transfer was begun for this reader: its bytes count as fetched for it.
    pub leads: bool,
    /// It waits for a read or a unit.
    pub waits: bool,
    /// The request that fills a hole for it.
    pub repair: Option<FetchId>,
    /// How many of the next bytes come from a peer.
    pub from_peer: u64,
    /// How many of the next bytes were overheard, in units that a peer completed.
    pub from_repair: u64,
    /// How many of the next bytes belong to units that were overheard whole.
    pub from_air: u64,
    /// The bytes sent so far, by source.
    pub sent: Sent,
    /// The peer that was asked for the object, if any.
    pub asked: Option<NodeId>,
}

/// Bytes sent to a client, by source.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    pub local: u64,
    pub peer: u64,
    pub origin: u64,
    pub overheard: u64,
    pub repaired: u64,
}

impl Sent {
    /// The sum of all sources.
    pub fn total(&self) -> u64 {
        self.local + self.peer + self.origin + self.overheard + self.repaired
    }
}

/// The source of the rest of an object.
#[derive(Clone, Debug)]
pub enum Source {
    /// A transfer under way.
    Incoming(FetchId),
    /// A stored record.
    Closed(Rc<Record>),
}

impl Source {
    /// The transfer, if one is under way.
    pub fn incoming(&self) -> Option<FetchId> {
        match self {
            Self::Incoming(fetch) => Some(*fetch),
            Self::Closed(_) => None,
        }
    }
}

/// A part of a response's content.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// This range of the object; the end is [`u64::MAX`] while it is unknown.
    Object(Range<u64>),
    /// Text between ranges.
    Literal(Bytes),
}

/// An entry of a segment, and the offset of its unit in the object.
#[derive(Clone, Debug)]
pub struct Cursor {
    pub segment: Rc<Segment>,
    pub entry: usize,
    pub offset: u64,
}

impl Cursor {
    /// A cursor at the first entry.
    pub fn begin(segment: Rc<Segment>) -> Self {
        let offset = segment.first_offset;
        Self { segment, entry: 0, offset }
    }

    /// Moves to the entry that covers a position; false if none does.
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

    /// The entries from here to the end of the segment.
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

    /// Its position in the object; `None` between ranges and at the end.
    pub fn position(&self) -> Option<u64> {
        match self.pieces.front() {
            Some(Piece::Object(range)) => Some(range.start),
            _ => None,
        }
    }

    /// This many bytes of the object were sent.
    pub fn advance(&mut self, count: u64) {
        if let Some(Piece::Object(range)) = self.pieces.front_mut() {
            range.start += count;
            if range.start >= range.end {
                self.pieces.pop_front();
            }
        }
    }

    /// The end of the last byte that it reads; `None` if unknown.
    pub fn end(&self) -> Option<u64> {
        let ends = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Object(range) => Some(range.end),
            Piece::Literal(_) => None,
        });
        ends.max().filter(|end| *end < u64::MAX)
    }

    /// The object ends at this offset.
    pub fn ends(&mut self, length: u64) {
        for piece in &mut self.pieces {
            if let Piece::Object(range) = piece {
                range.end = range.end.min(length);
            }
        }
        self.pieces.retain(|piece| !matches!(piece, Piece::Object(range) if range.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cursor at the beginning of a segment that lists 10 bytes from 100 on, then 20.
    fn cursor() -> Cursor {
        let entry = |length: u32| {
            let id = content::name(&length.to_le_bytes());
            Entry { id, length, parent_end: false, key: None }
        };
        Cursor::begin(Rc::new(Segment {
            profile: content::Profile::DEFAULT,
            number: 1,
            first_offset: 100,
            first_unit: 9,
            previous: [0; 32],
            entries: vec![entry(10), entry(20)],
            closing: None,
        }))
    }

    #[test]
    fn a_cursor_finds_the_unit_that_has_a_position() {
        let found = [(100, (0, 100)), (109, (0, 100)), (110, (1, 110)), (129, (1, 110))];
        for (position, expected) in found {
            let mut cursor = cursor();
            assert!(cursor.advance(position), "{position}");
            assert_eq!((cursor.entry, cursor.offset), expected, "{position}");
        }
        for outside in [0, 99, 130] {
            assert!(!cursor().advance(outside), "{outside}");
        }
        let mut cursor = cursor();
        assert!(cursor.advance(129) && cursor.advance(109), "it goes back, too");
        assert_eq!((cursor.entry, cursor.offset, cursor.entries().len()), (0, 100, 2));
    }

    fn reader(pieces: impl IntoIterator<Item = Piece>) -> ClientReader {
        let pieces = pieces.into_iter().collect();
        ClientReader::new(Source::Incoming(FetchId(1)), RecordId([0; 16]), pieces)
    }

    #[test]
    fn a_reader_goes_on_to_its_next_piece_at_the_end_of_a_range() {
        let text = Piece::Literal(Bytes::from_static(b"text"));
        let mut reader = reader([Piece::Object(5..8), text.clone(), Piece::Object(20..30)]);
        reader.advance(2);
        assert_eq!((reader.position(), reader.end()), (Some(7), Some(30)));
        reader.advance(1);
        assert_eq!((reader.position(), &reader.pieces[0]), (None, &text));
    }

    #[test]
    fn a_reader_whose_end_is_unknown_learns_it() {
        let mut reader = reader([Piece::Object(0..u64::MAX)]);
        assert_eq!(reader.end(), None);
        reader.ends(50);
        assert_eq!(reader.end(), Some(50));
        // Nothing is left of a range that begins there.
        reader.pieces = VecDeque::from([Piece::Object(49..60), Piece::Object(50..60)]);
        reader.ends(50);
        assert_eq!(reader.pieces, [Piece::Object(49..50)]);
    }
}
