//! Sends an object's bytes to a client, within its credit.

use super::{Client, Value, Values};
use crate::catalogue::segment_number;
use crate::chunks::Unit;
use crate::client::miss::Miss;
use crate::context::Context;
use crate::events::{Event, RequestEnd, Stale};
use crate::exchanges::exchange::{ClientReader, Cursor, Exchange, Piece, Sent, Source, State};
use crate::input::{ExchangeId, FetchId};
use crate::output::{ClientOutput, Output};
use crate::pursuits::{Pursuit, Pursuits};
use crate::report::{Recent, Report};
use crate::transfers::transfer::Transfer;
use crate::turns::Fresh;
use bytes::Bytes;
use content::Segment;
use std::rc::Rc;
use store::Provenance;
use wire::peer::{Message, Outcome};

/// The most that one read of the disk fetches, in bytes.
const READ_BYTES: u64 = 128 * 1024;
/// The report lists this many of the latest responses with their sources.
const RECENT_MAX: usize = 16;

/// The next step for a reader.
enum Step {
    /// Send these bytes of the object.
    Send(Bytes),
    /// Wait for a read, a unit or credit.
    Wait,
    /// All bytes are sent.
    Finish,
    /// Missing bytes cannot be had.
    Abort,
}

impl Client {
    /// Access to an exchange in order to send it content.
    pub fn reading<'a>(&'a mut self, cx: &'a mut Context, id: ExchangeId) -> Reading<'a> {
        Reading { cx, id, values: &mut self.values }
    }

    /// Sends what can be sent. `before` is the reader's position when its turn began.
    pub fn go_on(&mut self, cx: &mut Context, id: ExchangeId, before: Option<u64>) {
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return };
        let incoming = match &mut exchange.state {
            State::PeerReader(_) => return self.peer_readers.supply(cx, id, &mut self.values),
            State::ClientReader(client_reader) => {
                let incoming = client_reader.source.incoming();
                let pursuit = incoming.and_then(|fetch| cx.pursuits.get(&fetch));
                client_reader.asked = pursuit.and_then(Pursuit::peer).or(client_reader.asked);
                incoming
            }
            _ => return,
        };
        loop {
            match self.reading(cx, id).step() {
                Step::Send(bytes) => self.reading(cx, id).send(bytes),
                Step::Wait => break,
                Step::Finish => return self.finish(cx, id),
                Step::Abort => return self.abandon(cx, id),
            }
        }
        // The transfer may fetch ahead as its reader advances.
        if cx.exchanges.get(&id).is_some_and(|it| it.position() != before) {
            incoming.into_iter().for_each(|fetch| cx.turns.dirty(fetch));
        }
    }

    /// The client grants credit.
    pub fn credit(&mut self, cx: &mut Context, id: ExchangeId, bytes: u64) {
        let Some(exchange) = cx.exchanges.get_mut(&id) else {
            return cx.events.stale(Stale::ClientCredit);
        };
        exchange.credit = exchange.credit.saturating_add_unsigned(bytes);
        match exchange.state {
            State::Passing(fetch) => {
                let pass = self.misses.get_mut(&fetch).and_then(Miss::pass);
                if pass.is_some_and(|pass| pass.over.is_none()) {
                    self.misses.grant(fetch, bytes, &mut self.values);
                }
                self.let_go(cx, fetch);
            }
            State::ClientReader(_) => {
                cx.turns.ready(id);
                if let Some(fetch) = cx.exchanges.reads_growing(id) {
                    cx.turns.dirty(fetch);
                }
            }
            _ => {}
        }
    }

    /// The response is complete.
    pub fn finish(&mut self, cx: &mut Context, id: ExchangeId) {
        if !self.peer_readers.end(cx, id, Outcome::Complete) {
            self.reading(cx, id).remember();
            cx.out.push_back(Output::Client(ClientOutput::Finish(id)));
        }
        self.close_exchange(cx, id, RequestEnd::Complete);
    }

    /// The rest of a reader's object cannot be had: a stored record is removed.
    pub fn abandon(&mut self, cx: &mut Context, reader: ExchangeId) {
        if let Some(exchange) = cx.exchanges.get(&reader)
            && let Some(Source::Closed(record)) = exchange.source()
        {
            let (key, record) = (exchange.ask.key, record.id);
            if cx.forget_record(key, record) {
                self.values.push_back(Value::Forgotten(record));
            }
        }
        self.abort(cx, reader);
    }

    /// The response cannot be completed.
    pub fn abort(&mut self, cx: &mut Context, id: ExchangeId) {
        if !cx.exchanges.contains_key(&id) {
            return;
        }
        if !self.peer_readers.end(cx, id, Outcome::Truncated) {
            cx.out.push_back(Output::Client(ClientOutput::Abort(id)));
        }
        // Loose bytes for a peer belong to its request: that one ends too.
        let of = cx.exchanges.get(&id).filter(|exchange| exchange.flows());
        let told = of.and_then(|exchange| exchange.peer());
        let told = told.and_then(|(peer, request)| self.peer_readers.get(peer, request));
        self.close_exchange(cx, id, RequestEnd::Broken);
        if let Some(told) = told {
            self.leave(cx, told, RequestEnd::Broken);
        }
    }

    /// A request ends before its response does, mostly because the client has left.
    pub fn leave(&mut self, cx: &mut Context, id: ExchangeId, how: RequestEnd) {
        let waiting = match cx.exchanges.get(&id).map(|exchange| &exchange.state) {
            Some(State::Waiting(fetch) | State::Passing(fetch)) => Some(*fetch),
            _ => None,
        };
        self.close_exchange(cx, id, how);
        let Some(fetch_id) = waiting else { return };
        let Some(fetch) = self.misses.get_mut(&fetch_id) else { return };
        fetch.waiters.retain(|waiter| *waiter != id);
        fetch.joined.retain(|(_, waiter)| *waiter != id);
        if fetch.waiters.is_empty() {
            cx.turns.end(fetch_id);
        }
    }

    fn close_exchange(&mut self, cx: &mut Context, id: ExchangeId, how: RequestEnd) {
        let incoming = cx.exchanges.reads_growing(id);
        let exchange = cx.exchanges.remove(&id);
        self.peer_readers.budget.end(id);
        let of_peer = exchange.as_ref().is_some_and(|exchange| exchange.peer().is_some());
        if let Some(exchange) = &exchange {
            cx.in_flight.leave(id);
            // A peer's loose bytes are an exchange of their own, which may end while units before
            // them are still being sent.
            if !exchange.flows() {
                exchange.peer().and_then(|request| self.peer_readers.requests.remove(&request));
            }
            if let Some(flow) = exchange.flow() {
                self.leave(cx, flow, how);
            }
        }
        let Some(exchange) = exchange else { return };
        cx.events.emit(|| Event::RequestEnds { exchange: id, how });
        if let State::ClientReader(client_reader) = &exchange.state
            && let Some(repair) = client_reader.repair
        {
            cx.turns.end(repair);
        }
        cx.linger_no_more(&exchange);
        if let Some(fetch) = incoming {
            self.values.push_back(Value::Left(fetch, id, of_peer));
        }
    }
}

/// An exchange that content is sent to.
pub struct Reading<'a> {
    cx: &'a mut Context,
    id: ExchangeId,
    values: &'a mut Values,
}

impl Reading<'_> {
    /// Sends bytes that have just arrived directly to a reader that has all bytes before them.
    /// Other readers take them from the unit.
    pub fn feed(&mut self, (at, bytes): Fresh) {
        let Some(exchange) = self.cx.exchanges.get_mut(&self.id) else { return };
        let State::ClientReader(client_reader) = &mut exchange.state else { return };
        if client_reader.position() == Some(at) && exchange.credit > 0 {
            let count = bytes.len().min(exchange.credit as usize);
            client_reader.advance(count as u64);
            self.send(bytes.slice(..count));
        }
    }

    fn step(&mut self) -> Step {
        let Some(exchange) = self.cx.exchanges.get_mut(&self.id) else { return Step::Wait };
        let credit = exchange.credit;
        let State::ClientReader(client_reader) = &mut exchange.state else { return Step::Wait };
        match client_reader.pieces.front() {
            None => Step::Finish,
            Some(_) if credit <= 0 || client_reader.waits => Step::Wait,
            Some(Piece::Literal(bytes)) => {
                let bytes = bytes.clone();
                client_reader.pieces.pop_front();
                Step::Send(bytes)
            }
            Some(Piece::Object(range)) => {
                let (position, count) = (range.start, (range.end - range.start).min(credit as u64));
                match client_reader.source {
                    Source::Incoming(fetch) => self.step_growing(fetch, position, count),
                    Source::Closed(_) => self.step_unit(position, count),
                }
            }
        }
    }

    /// Takes bytes from an object that is still being fetched, up to what has arrived.
    fn step_growing(&mut self, fetch: FetchId, position: u64, count: u64) -> Step {
        let Some(incoming) = self.cx.transfers.get(&fetch) else { return Step::Abort };
        // A length that only a peer has told may be false: the last byte waits for proof (decision
        // 0023).
        let end = incoming.frontier().min(incoming.limit());
        if position >= end {
            return Step::Wait;
        }
        let count = count.min(end - position);
        // Bytes before this offset are in listed units; only those after it are in the tail.
        if position < incoming.known_bytes() {
            return self.step_unit(position, count);
        }
        let (bytes, from_peer) = match &incoming.transfer {
            Transfer::Cutting(cutting) => (cutting.tail_from(position, count as usize), false),
            Transfer::Listing(listing) => match listing.tail.from(position, count as usize) {
                Some(bytes) => (bytes, true),
                None => return Step::Abort,
            },
            Transfer::Filling(_) | Transfer::Closed(_) => return Step::Abort,
        };
        self.cx.exchanges.with_serving(self.id, |client_reader| {
            let length = bytes.len() as u64;
            client_reader.from_peer += if client_reader.leads && from_peer { length } else { 0 };
            client_reader.advance(length);
        });
        Step::Send(bytes)
    }

    /// Takes bytes from the unit that contains a position.
    fn step_unit(&mut self, position: u64, count: u64) -> Step {
        if !self.find(position) {
            // If the segment in hand does not cover the position, no later read will change that.
            let waits = self.cx.exchanges.get(&self.id).is_some_and(Exchange::waits);
            return if waits { Step::Wait } else { Step::Abort };
        }
        let Some(exchange) = self.cx.exchanges.get_mut(&self.id) else { return Step::Wait };
        let State::ClientReader(client_reader) = &mut exchange.state else { return Step::Wait };
        let Some(cursor) = &client_reader.cursor else { return Step::Wait };
        let (entry, offset) = (cursor.segment.entries[cursor.entry], cursor.offset);
        // Units read ahead may have been skipped, because they arrived another way.
        while client_reader.ahead.front().is_some_and(|(ahead, _)| *ahead != entry.id) {
            client_reader.ahead.pop_front();
        }
        // Credit may end inside a unit: the rest of the opened unit is kept for the next step.
        let mut clear = client_reader.clear.take().filter(|(of, _)| *of == entry);
        if clear.is_none() {
            let ahead = client_reader.ahead.front().map(|(_, bytes)| bytes.clone());
            // First what was read for this reader: the cache may have evicted it already.
            if let Some(unit) = ahead.or_else(|| self.cx.chunks.get(&entry.id)) {
                let opened = self.cx.opener.unseal(self.cx.sealer.as_ref(), &entry, unit);
                clear = opened.map(|unit| (entry, unit));
                if clear.is_none() {
                    return self.misled();
                }
            }
        }
        if let Some((_, unit)) = &clear {
            let from = (position - cursor.offset) as usize;
            let to = unit.len().min(from + count as usize);
            let bytes = unit.slice(from..to);
            // Where the bytes came from is asked now, because an eviction forgets it.
            if self.cx.ear.is_some()
                && self.cx.chunks.provenance(&entry.id) == Some(Provenance::Overheard)
            {
                client_reader.from_air += bytes.len() as u64;
            }
            client_reader.advance(bytes.len() as u64);
            if to == unit.len() {
                client_reader.ahead.pop_front();
            } else {
                client_reader.clear = clear;
            }
            return Step::Send(bytes);
        }
        // The disk reads a run of units at once, as far as the client can take them.
        let units = cursor.entries().iter().map(|entry| (entry.id, entry.length));
        let wanted = self.cx.chunks.want(
            units,
            true,
            count.min(READ_BYTES),
            self.id,
            &mut self.cx.ids,
            &mut self.cx.out,
        );
        client_reader.waits = wanted;
        // The unit is gone from the store: peers or the origin still have it.
        if !wanted {
            let unit = Unit::listed(&entry, offset + u64::from(entry.length));
            self.values.push_back(Value::Missing(self.id, (entry.id, unit)));
        }
        Step::Wait
    }

    /// The unit's name is true, but its bytes do not match its entry: the manifest is false, and is
    /// not kept.
    fn misled(&mut self) -> Step {
        self.cx.report.units_false += 1;
        let source = self.cx.exchanges.get(&self.id).and_then(Exchange::source);
        if let Some(fetch) = source.and_then(Source::incoming) {
            self.values.push_back(Value::Misled(fetch));
        }
        Step::Abort
    }

    /// Moves the reader's cursor to a position; false if its segment has to be read first.
    fn find(&mut self, position: u64) -> bool {
        let Some(exchange) = self.cx.exchanges.get_mut(&self.id) else { return false };
        let State::ClientReader(client_reader) = &mut exchange.state else { return false };
        // Mostly the position is in the segment at hand.
        if client_reader.cursor.as_mut().is_some_and(|cursor| cursor.advance(position)) {
            return true;
        }
        let (number, segment) = match &client_reader.source {
            Source::Closed(record) => (segment_number(&record.offsets, position), None),
            Source::Incoming(fetch) => match self.cx.transfers.get(fetch) {
                Some(incoming) => incoming.segment_at(position),
                None => return false,
            },
        };
        match segment.or_else(|| self.cx.manifests.get(client_reader.record, number)) {
            Some(segment) => client_reader.turn_to(segment, position),
            None => {
                client_reader.waits = true;
                self.cx.manifests.read((client_reader.record, number), self.id, &mut self.cx.out);
                false
            }
        }
    }

    /// Sends content to a client or peer, and counts it.
    pub fn send(&mut self, bytes: Bytes) {
        let Some(exchange) = self.cx.exchanges.get_mut(&self.id) else { return };
        let length = bytes.len() as u64;
        exchange.credit -= length as i64;
        if exchange.peer().is_some() {
            return self.send_opaque(&bytes);
        }
        match &mut exchange.state {
            State::ClientReader(client_reader) => {
                let sent = client_reader.count(length, &self.cx.pursuits, &mut self.cx.report);
                let fetch = client_reader.source.incoming();
                let crossed = self.cx.pursuits.crossed(fetch, sent.origin);
                self.cx.account.served(&exchange.ask, &sent, crossed);
            }
            State::Passing(fetch) => {
                let fetch = *fetch;
                self.cx.report.served_origin_bytes += length;
                let sent = match self.cx.pursuits.is_at_origin(fetch) {
                    true => Sent { origin: length, ..Sent::default() },
                    false => Sent { peer: length, ..Sent::default() },
                };
                let crossed = self.cx.pursuits.crossed(Some(fetch), sent.origin);
                self.cx.account.served(&exchange.ask, &sent, crossed);
            }
            _ => self.cx.report.served_origin_bytes += length,
        }
        self.cx.out.push_back(Output::Client(ClientOutput::Data(self.id, bytes)));
    }

    /// Sends a peer content of a response that is not stored.
    fn send_opaque(&mut self, bytes: &Bytes) {
        let Some(exchange) = self.cx.exchanges.get_mut(&self.id) else { return };
        let Some((peer, request)) = exchange.peer() else { return };
        self.cx.report.relayed_opaque_bytes += bytes.len() as u64;
        self.cx.account.given_to_peer(exchange.ask.verdict.class, bytes.len() as u64);
        let mut offset = exchange.ask.peer_hops.given;
        exchange.ask.peer_hops.given += bytes.len() as u64;
        for part in bytes.chunks(Message::BYTES_MAX) {
            self.cx.say(peer, Message::Bytes(request, offset, part.to_vec()));
            offset += part.len() as u64;
        }
    }

    /// Adds this response to the report's list of recent ones, with the source of its bytes.
    fn remember(&mut self) {
        let Some(exchange) = self.cx.exchanges.get(&self.id) else { return };
        let State::ClientReader(client_reader) = &exchange.state else { return };
        // With a mesh key, addresses are confidential and not listed.
        if self.cx.config.secret != crate::http::OPEN_KEY {
            return;
        }
        let Sent { local, peer, origin, overheard, repaired } = client_reader.sent;
        let asked = self.cx.mesh.as_ref().zip(client_reader.asked);
        let source = asked.and_then(|(mesh, peer)| mesh.peers.hello(peer));
        let recent = Recent {
            uri: exchange.ask.target.to_string(),
            when: self.cx.date(),
            bytes: client_reader.sent.total(),
            local_bytes: local,
            peer_bytes: peer,
            origin_bytes: origin,
            overheard_bytes: overheard,
            repaired_bytes: repaired,
            source: source.map(|hello| hello.name.clone()).unwrap_or_default(),
        };
        // The oldest makes room: the list is for a person who looks at it.
        if self.cx.report.recent.len() >= RECENT_MAX {
            self.cx.report.recent.remove(0);
        }
        self.cx.report.recent.push(recent);
    }
}

impl ClientReader {
    /// Counts bytes sent to a client by their source, and returns the sources.
    fn count(&mut self, bytes: u64, pursuits: &Pursuits, report: &mut Report) -> Sent {
        // Each byte counts once: as overheard, else repaired, else a peer's; the rest as local or
        // the origin's.
        let mut rest = bytes;
        let mut part = |of: &mut u64| {
            let part = rest.min(*of);
            (rest, *of) = (rest - part, *of - part);
            part
        };
        let overheard = part(&mut self.from_air);
        let repaired = part(&mut self.from_repair);
        let peer = part(&mut self.from_peer);
        let from_peers = match self.source {
            Source::Incoming(fetch) => !pursuits.is_at_origin(fetch),
            Source::Closed(_) => true,
        };
        let (local, origin) = if self.leads && !from_peers { (0, rest) } else { (rest, 0) };
        self.sent.overheard += overheard;
        self.sent.repaired += repaired;
        report.served_overheard_bytes += overheard;
        report.served_repaired_bytes += repaired;
        self.sent.peer += peer;
        self.sent.local += local;
        self.sent.origin += origin;
        report.served_peer_bytes += peer;
        report.served_local_bytes += local;
        report.served_origin_bytes += origin;
        Sent { local, peer, origin, overheard, repaired }
    }

    /// Continues reading in another segment; false if it does not cover the position.
    pub fn turn_to(&mut self, segment: Rc<Segment>, position: u64) -> bool {
        let mut cursor = Cursor::begin(segment);
        let covers = cursor.advance(position);
        self.cursor = covers.then_some(cursor);
        covers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::ClassBytes;
    use crate::context::tests::context;
    use crate::crossed::Crossed;
    use crate::pursuits::{Goal, Quest, Upstream};
    use crate::request::tests::ask;
    use std::collections::VecDeque;
    use wire::RecordId;

    const READER: ExchangeId = ExchangeId(1);
    const FETCH: FetchId = FetchId(2);

    /// A client that reads an object for which its transfer was begun, asked of an origin.
    fn reading_from_an_origin() -> Context {
        let mut cx = context();
        let ask = ask("http://o.test/a");
        let (source, record) = (Source::Incoming(FETCH), RecordId([3; 16]));
        let mut reader = ClientReader::new(source, record, VecDeque::new());
        reader.leads = true;
        let state = State::ClientReader(Box::new(reader));
        cx.exchanges.insert(READER, Exchange { ask: ask.clone(), credit: 1 << 20, state });
        let (headers, goal) = (ask.headers.clone(), Goal::Object);
        let quest = Quest { ask: Rc::new(ask), headers, have: None, content: None, goal };
        crate::source::Source::new(crate::select::none()).begin(&mut cx, FETCH, quest);
        is_at(&mut cx, Upstream::Origin);
        cx
    }

    fn is_at(cx: &mut Context, via: Upstream) {
        cx.pursuits.get_mut(&FETCH).expect("it was begun").via = via;
    }

    fn send(cx: &mut Context, bytes: usize) {
        Client::new(1 << 20).reading(cx, READER).send(vec![0; bytes].into());
    }

    #[test]
    fn each_byte_is_booked_once_by_where_it_came_from() {
        let mut cx = reading_from_an_origin();
        // Each figure is another power of two, so a wrong sum shows what was added.
        let far = Crossed { reference: 8, difference: 16 };
        cx.pursuits.get_mut(&FETCH).expect("it was begun").far.comes(far);
        cx.exchanges.with_serving(READER, |it| {
            (it.from_air, it.from_repair, it.from_peer) = (1, 2, 4);
        });
        send(&mut cx, 1 + 2 + 4 + 8 + 16 + 32);
        // Its origin has sent all: the rest comes from the store.
        is_at(&mut cx, Upstream::Done);
        send(&mut cx, 64);
        let expected = ClassBytes {
            served_overheard_bytes: 1,
            served_repaired_bytes: 2,
            served_peer_bytes: 4,
            served_far_reference_bytes: 8,
            served_far_difference_bytes: 16,
            served_origin_bytes: 32,
            served_local_bytes: 64,
            ..ClassBytes::default()
        };
        assert_eq!(cx.account.by_name()["other"], expected);
        let report = &cx.report;
        assert_eq!((report.served_overheard_bytes, report.served_repaired_bytes), (1, 2));
        assert_eq!((report.served_peer_bytes, report.served_local_bytes), (4, 64));
        assert_eq!(report.served_origin_bytes, 8 + 16 + 32, "however it crossed the uplink");
        Client::new(1 << 20).reading(&mut cx, READER).remember();
        let expected = Recent {
            uri: "http://o.test/a".into(),
            when: cx.date(),
            bytes: 127,
            overheard_bytes: 1,
            repaired_bytes: 2,
            peer_bytes: 4,
            origin_bytes: 8 + 16 + 32,
            local_bytes: 64,
            source: String::new(),
        };
        assert_eq!(cx.report.recent, [expected]);
    }

    #[test]
    fn an_origins_bytes_are_local_to_a_reader_for_which_it_was_not_asked() {
        let mut cx = reading_from_an_origin();
        cx.exchanges.with_serving(READER, |it| it.leads = false);
        send(&mut cx, 5);
        assert_eq!((cx.report.served_local_bytes, cx.report.served_origin_bytes), (5, 0));
    }

    #[test]
    fn bytes_count_as_overheard_then_repaired_then_a_peers_then_the_origins() {
        let mut cx = reading_from_an_origin();
        cx.exchanges.with_serving(READER, |it| {
            (it.from_air, it.from_repair, it.from_peer) = (10, 10, 10);
        });
        for expected in [[9, 0, 0, 0], [10, 8, 0, 0], [10, 10, 7, 0], [10, 10, 10, 6]] {
            send(&mut cx, 9);
            let row = cx.account.by_name()["other"];
            let heard = [row.served_overheard_bytes, row.served_repaired_bytes];
            let fetched = [row.served_peer_bytes, row.served_origin_bytes];
            assert_eq!([heard, fetched].concat(), expected);
        }
    }

    #[test]
    fn the_latest_16_responses_are_remembered() {
        let mut cx = reading_from_an_origin();
        for _ in 0..17 {
            send(&mut cx, 1);
            Client::new(1 << 20).reading(&mut cx, READER).remember();
        }
        let bytes: Vec<_> = cx.report.recent.iter().map(|recent| recent.bytes).collect();
        assert_eq!(bytes, (2..=17).collect::<Vec<_>>(), "the newest last");
    }

    #[test]
    fn fresh_bytes_are_sent_as_far_as_credit_goes() {
        let mut cx = reading_from_an_origin();
        let pieces = VecDeque::from([Piece::Object(0..10)]);
        cx.exchanges.with_serving(READER, |it| it.pieces = pieces);
        let feed = |cx: &mut Context, credit| {
            let exchange = cx.exchanges.get_mut(&READER).expect("it was begun");
            exchange.credit = credit;
            let at = exchange.position().expect("there is more");
            Client::new(1 << 20).reading(cx, READER).feed((at, Bytes::from_static(b"abcdef")));
            let sent = std::iter::from_fn(|| cx.out.pop_front());
            sent.map(|output| match output {
                Output::Client(ClientOutput::Data(READER, bytes)) => bytes.len(),
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
        };
        assert!(feed(&mut cx, 0).is_empty() && feed(&mut cx, -1).is_empty());
        assert_eq!((feed(&mut cx, 1), feed(&mut cx, 99)), (vec![1], vec![6]));
        assert_eq!(cx.exchanges[&READER].position(), Some(7));
    }
}
