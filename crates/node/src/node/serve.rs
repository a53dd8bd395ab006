//! Giving an object's bytes to a client, within its credit.

use super::Node;
use crate::catalogue::segment_number;
use crate::client::exchange::{Cursor, Exchange, Piece, Sent, Serving, Source, State};
use crate::input::{ExchangeId, FetchId, Ticket};
use crate::object::storing::Inflow;
use crate::output::{ClientOutput, Output};
use crate::report::Recent;
use crate::turns::Fresh;
use bytes::Bytes;
use content::Segment;
use std::rc::Rc;
use store::Provenance;
use wire::peer::Outcome;
use wire::{ChunkId, RecordId};

/// One read of the disk, at most, in bytes.
const READ_BYTES: u64 = 128 * 1024;
/// Objects whose sources are remembered.
const RECENT_MAX: usize = 16;

/// What to do next for a reader.
enum Step {
    /// Send these bytes of the object.
    Send(Bytes),
    /// Nothing before something else happens.
    Wait,
    /// All is sent.
    Finish,
    /// What is missing cannot be had.
    Abort,
}

impl Node {
    /// Sends what can be sent.
    pub(super) fn pump(&mut self, id: ExchangeId, fresh: Option<Fresh>) {
        let before = match self.client.exchanges.get(&id).map(|exchange| &exchange.state) {
            Some(State::Supplying(_)) => return self.supply(id),
            Some(State::Serving(serving)) => serving.position(),
            _ => return,
        };
        fresh.into_iter().for_each(|fresh| self.feed(id, fresh));
        self.want_for(id);
        loop {
            match self.step(id) {
                Step::Send(bytes) => self.send(id, bytes),
                Step::Wait => break,
                Step::Finish => return self.finish(id),
                Step::Abort => return self.abandon(id),
            }
        }
        let Some(exchange) = self.client.exchanges.get(&id).filter(|it| it.position() != before)
        else {
            return;
        };
        let growing = exchange.source().and_then(Source::growing);
        growing.into_iter().for_each(|fetch| self.cx.turns.dirty(fetch));
    }

    /// Gives a reader who is up to date what has just come; the others find it in its unit.
    fn feed(&mut self, id: ExchangeId, (at, bytes): Fresh) {
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return };
        let State::Serving(serving) = &mut exchange.state else { return };
        if serving.position() == Some(at) && exchange.credit > 0 {
            let count = bytes.len().min(exchange.credit as usize);
            serving.advance(count as u64);
            self.send(id, bytes.slice(..count));
        }
    }

    fn step(&mut self, id: ExchangeId) -> Step {
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return Step::Wait };
        let credit = exchange.credit;
        let State::Serving(serving) = &mut exchange.state else { return Step::Wait };
        match serving.pieces.front() {
            None => Step::Finish,
            Some(_) if credit <= 0 || serving.waits => Step::Wait,
            Some(Piece::Literal(bytes)) => {
                let bytes = bytes.clone();
                serving.pieces.pop_front();
                Step::Send(bytes)
            }
            Some(Piece::Object(range)) => {
                let (position, count) = (range.start, (range.end - range.start).min(credit as u64));
                match serving.source {
                    Source::Growing(fetch) => self.step_growing(id, fetch, position, count),
                    Source::Closed(_) => self.step_unit(id, position, count),
                }
            }
        }
    }

    /// Takes bytes out of an object that is still coming, where it has come so far.
    fn step_growing(&mut self, id: ExchangeId, fetch: FetchId, position: u64, count: u64) -> Step {
        let Some(fetch) = self.object.fetches.get_mut(&fetch) else { return Step::Abort };
        let frontier = fetch.frontier();
        let Some(storing) = fetch.storing() else { return Step::Abort };
        let end = frontier.min(storing.limit());
        if position >= end {
            return Step::Wait;
        }
        let count = count.min(end - position);
        if position < storing.known_bytes() {
            return self.step_unit(id, position, count);
        }
        let (bytes, from_peer) = match &storing.inflow {
            Inflow::Cut(cutting) => (cutting.tail_from(position, count as usize), false),
            Inflow::Listed(listed) => match listed.tail.from(position, count as usize) {
                Some(bytes) => (bytes, true),
                None => return Step::Abort,
            },
        };
        self.client.with_serving(id, |serving| {
            let length = bytes.len() as u64;
            serving.from_peer += if serving.leads && from_peer { length } else { 0 };
            serving.advance(length);
        });
        Step::Send(bytes)
    }

    /// Takes bytes out of the unit that covers a position.
    fn step_unit(&mut self, id: ExchangeId, position: u64, count: u64) -> Step {
        if !self.find(id, position) {
            // A segment that does not list what it should never will.
            let waits = self.client.exchanges.get(&id).is_some_and(Exchange::waits);
            return if waits { Step::Wait } else { Step::Abort };
        }
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return Step::Wait };
        let State::Serving(serving) = &mut exchange.state else { return Step::Wait };
        let Some(cursor) = &serving.cursor else { return Step::Wait };
        let entry = cursor.segment.entries[cursor.entry];
        while serving.ahead.front().is_some_and(|(ahead, _)| *ahead != entry.id) {
            serving.ahead.pop_front();
        }
        let mut clear = serving.clear.take().filter(|(of, _)| *of == entry);
        if clear.is_none() {
            let ahead = serving.ahead.front().map(|(_, bytes)| bytes.clone());
            if let Some(unit) = ahead.or_else(|| self.cx.chunks.get(&entry.id)) {
                let opened = self.cx.opener.unseal(self.cx.sealer.as_ref(), &entry, unit);
                clear = opened.map(|unit| (entry, unit));
                if clear.is_none() {
                    return self.misled(id);
                }
            }
        }
        if let Some((_, unit)) = &clear {
            let from = (position - cursor.offset) as usize;
            let to = unit.len().min(from + count as usize);
            let bytes = unit.slice(from..to);
            if self.cx.ear.is_some()
                && self.cx.chunks.provenance(&entry.id) == Some(Provenance::Overheard)
            {
                serving.from_air += bytes.len() as u64;
            }
            serving.advance(bytes.len() as u64);
            if to == unit.len() {
                serving.ahead.pop_front();
            } else {
                serving.clear = clear;
            }
            return Step::Send(bytes);
        }
        let units = cursor.entries().iter().map(|entry| (entry.id, entry.length));
        let wanted = self.cx.chunks.want(
            units,
            true,
            count.min(READ_BYTES),
            id,
            &mut self.cx.tickets,
            &mut self.cx.out,
        );
        serving.waits = wanted;
        let waits = wanted || self.wait_for_unit(id) || self.fill(id) || self.repair(id);
        if waits { Step::Wait } else { Step::Abort }
    }

    /// A unit is not what its entry says, though its name is true: so what lists it is false, and not kept.
    fn misled(&mut self, id: ExchangeId) -> Step {
        self.cx.report.units_false += 1;
        let source = self.client.exchanges.get(&id).and_then(Exchange::source);
        if let Some(fetch) = source.and_then(Source::growing) {
            self.fail_storing(fetch, &[]);
        }
        Step::Abort
    }

    /// Moves a reader's cursor to a position; false if its segment has to be read first.
    fn find(&mut self, id: ExchangeId, position: u64) -> bool {
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return false };
        let State::Serving(serving) = &mut exchange.state else { return false };
        if serving.cursor.as_mut().is_some_and(|cursor| cursor.advance(position)) {
            return true;
        }
        let (number, segment) = match &serving.source {
            Source::Closed(record) => (segment_number(&record.offsets, position), None),
            Source::Growing(fetch) => {
                match self.object.fetches.get_mut(fetch).and_then(|f| f.storing()) {
                    Some(storing) => storing.segment_at(position),
                    None => return false,
                }
            }
        };
        match segment.or_else(|| self.cx.manifests.get(serving.record, number)) {
            Some(segment) => serving.turn_to(segment, position),
            None => {
                serving.waits = true;
                self.cx.manifests.read((serving.record, number), id, &mut self.cx.out);
                false
            }
        }
    }

    /// A segment of a manifest has come, or is gone.
    pub(super) fn segment_read(&mut self, record: RecordId, number: u32, bytes: Option<Vec<u8>>) {
        let at = (record, number);
        let bytes = bytes.filter(|bytes| self.is_certified(at, bytes));
        let (waiters, segment) = self.cx.manifests.handle_segment(at, bytes.as_deref());
        for id in waiters {
            let Some(exchange) = self.client.exchanges.get_mut(&id) else { continue };
            match (&mut exchange.state, &segment) {
                (State::Checking(..), segment) => self.checked(id, segment.as_deref()),
                (State::Serving(serving), Some(segment)) => {
                    serving.waits = false;
                    let position = serving.position().unwrap_or_default();
                    if serving.turn_to(Rc::clone(segment), position) {
                        self.cx.turns.ready(id);
                    } else {
                        self.abandon(id);
                    }
                }
                (State::Serving(_), None) => self.abandon(id),
                (State::Supplying(supplying), Some(_)) => {
                    supplying.turning = false;
                    self.cx.turns.ready(id);
                }
                (State::Supplying(_), None) => self.abandon(id),
                _ => {}
            }
        }
    }

    /// Units have come from the disk.
    pub(super) fn units_read(&mut self, ticket: Ticket, units: Option<Vec<(ChunkId, Bytes)>>) {
        let doubt = self.cx.chunks.handle_doubt(
            ticket,
            units.as_deref(),
            &mut self.cx.tickets,
            &mut self.cx.out,
        );
        if let Some(concerned) = doubt {
            self.cx.dirty();
            for fetch in concerned {
                self.cx.turns.dirty(fetch);
            }
            return;
        }
        let arrived =
            self.cx.chunks.handle_units(ticket, units, &mut self.cx.tickets, &mut self.cx.out);
        let Some(arrived) = arrived else { return };
        for id in arrived.waiters {
            let Some(exchange) = self.client.exchanges.get_mut(&id) else { continue };
            let ahead = arrived.units.iter().cloned();
            match &mut exchange.state {
                State::Serving(serving) => {
                    serving.waits = false;
                    serving.ahead = ahead.collect();
                }
                State::Supplying(supplying) => {
                    supplying.reading = false;
                    supplying.reserved = 0;
                    supplying.ahead = ahead.collect();
                    self.client.lose_unread(&mut self.cx, id, arrived.unread);
                }
                _ => continue,
            }
            self.charge(id);
            self.cx.turns.ready(id);
        }
    }

    /// The client can take more.
    pub(super) fn credit(&mut self, id: ExchangeId, bytes: u64) {
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return };
        exchange.credit = exchange.credit.saturating_add_unsigned(bytes);
        match exchange.state {
            State::Passing(fetch) => {
                if self.object.fetches.get(&fetch).is_some_and(|fetch| fetch.over.is_none()) {
                    self.grant(fetch, bytes);
                }
                self.let_go(fetch);
            }
            State::Serving(_) => {
                self.cx.turns.ready(id);
                if let Some(fetch) = self.client.reads_growing(id) {
                    self.cx.turns.dirty(fetch);
                }
            }
            _ => {}
        }
    }

    /// Sends content, and counts it.
    pub(super) fn send(&mut self, id: ExchangeId, bytes: Bytes) {
        let Some(exchange) = self.client.exchanges.get_mut(&id) else { return };
        exchange.credit -= bytes.len() as i64;
        if exchange.peer().is_some() {
            return self.client.send_opaque(&mut self.cx, id, &bytes);
        }
        self.count_sent(id, bytes.len() as u64);
        self.cx.out.push_back(Output::Client(ClientOutput::Data(id, bytes)));
    }

    /// Counts bytes that a client gets, by where they came from.
    fn count_sent(&mut self, id: ExchangeId, bytes: u64) {
        let report = &mut self.cx.report;
        let State::Serving(serving) =
            &mut self.client.exchanges.get_mut(&id).expect("it gets bytes").state
        else {
            report.served_origin_bytes += bytes;
            return;
        };
        let mut rest = bytes;
        let mut part = |of: &mut u64| {
            let part = rest.min(*of);
            (rest, *of) = (rest - part, *of - part);
            part
        };
        let overheard = part(&mut serving.from_air);
        let repaired = part(&mut serving.from_repair);
        let peer = part(&mut serving.from_peer);
        let from_peers = match serving.source {
            Source::Growing(fetch) => !self.source.is_at_origin(fetch),
            Source::Closed(_) => true,
        };
        let (local, origin) = if serving.leads && !from_peers { (0, rest) } else { (rest, 0) };
        serving.sent.overheard += overheard;
        serving.sent.repaired += repaired;
        report.served_overheard_bytes += overheard;
        report.served_repaired_bytes += repaired;
        serving.sent.peer += peer;
        serving.sent.local += local;
        serving.sent.origin += origin;
        report.served_peer_bytes += peer;
        report.served_local_bytes += local;
        report.served_origin_bytes += origin;
    }

    /// The response is complete.
    pub(super) fn finish(&mut self, id: ExchangeId) {
        if !self.client.end_supply(&mut self.cx, id, Outcome::Complete) {
            self.remember(id);
            self.cx.out.push_back(Output::Client(ClientOutput::Finish(id)));
        }
        self.close_exchange(id);
    }

    /// Notes where the bytes of an object came from that a client has got.
    fn remember(&mut self, id: ExchangeId) {
        let Some(exchange) = self.client.exchanges.get(&id) else { return };
        let State::Serving(serving) = &exchange.state else { return };
        if self.cx.config.secret != crate::http::OPEN_KEY {
            return;
        }
        let Sent { local, peer, origin, overheard, repaired } = serving.sent;
        let asked = self.cx.mesh.as_ref().zip(serving.asked);
        let source = asked.and_then(|(mesh, peer)| mesh.peers.hello(peer));
        let recent = Recent {
            uri: exchange.ask.target.to_string(),
            when: self.cx.date(),
            bytes: serving.sent.total(),
            local_bytes: local,
            peer_bytes: peer,
            origin_bytes: origin,
            overheard_bytes: overheard,
            repaired_bytes: repaired,
            source: source.map(|hello| hello.name.clone()).unwrap_or_default(),
        };
        if self.cx.report.recent.len() >= RECENT_MAX {
            self.cx.report.recent.remove(0);
        }
        self.cx.report.recent.push(recent);
    }

    /// The response cannot be completed.
    pub(super) fn abort(&mut self, id: ExchangeId) {
        if !self.client.exchanges.contains_key(&id) {
            return;
        }
        if !self.client.end_supply(&mut self.cx, id, Outcome::Truncated) {
            self.cx.out.push_back(Output::Client(ClientOutput::Abort(id)));
        }
        let of = self.client.exchanges.get(&id).filter(|exchange| exchange.flows());
        let told = of.and_then(|exchange| self.client.supplied.get(&exchange.peer()?));
        let told = told.copied();
        self.close_exchange(id);
        if let Some(told) = told {
            self.leave(told);
        }
    }

    /// The client has left.
    pub(super) fn leave(&mut self, id: ExchangeId) {
        let waiting = match self.client.exchanges.get(&id).map(|exchange| &exchange.state) {
            Some(State::Waiting(fetch) | State::Passing(fetch)) => Some(*fetch),
            _ => None,
        };
        self.close_exchange(id);
        let Some(fetch_id) = waiting else { return };
        let Some(fetch) = self.object.fetches.get_mut(&fetch_id) else { return };
        fetch.waiters.retain(|waiter| *waiter != id);
        fetch.joined.retain(|(_, waiter)| *waiter != id);
        if fetch.waiters.is_empty() {
            self.cx.turns.end(fetch_id);
        }
    }

    fn close_exchange(&mut self, id: ExchangeId) {
        let growing = self.client.reads_growing(id);
        let exchange = self.client.exchanges.remove(&id);
        self.client.budget.end(id);
        let of_peer = exchange.as_ref().is_some_and(|exchange| exchange.peer().is_some());
        if let Some(exchange) = &exchange {
            self.cx.flights.leave(id);
            // What flows may end before the units that came before it are sent.
            if !exchange.flows() {
                exchange.peer().and_then(|request| self.client.supplied.remove(&request));
            }
            if let Some(flow) = exchange.flow() {
                self.leave(flow);
            }
        }
        let Some(exchange) = exchange else { return };
        if let State::Serving(serving) = &exchange.state
            && let Some(repair) = serving.repair
        {
            self.cx.turns.end(repair);
        }
        self.linger_no_more(&exchange);
        if let Some(fetch) = growing {
            self.unread(fetch, id, of_peer);
        }
    }
}

impl Serving {
    /// Reads on in another segment; false if that does not cover the position.
    fn turn_to(&mut self, segment: Rc<Segment>, position: u64) -> bool {
        let mut cursor = Cursor::begin(segment);
        let covers = cursor.advance(position);
        self.cursor = covers.then_some(cursor);
        covers
    }
}
