//! Holes in stored objects: units that eviction or decay took. A peer is asked for them by name; where no peer can
//! give them, the origin is asked for the range. Each is held against its name before a client sees it.

use super::Node;
use crate::client::exchange::{Source, State};
use crate::http::{self, Audience, ContentRange, Record, Row};
use crate::input::{ExchangeId, FetchId};
use crate::object::fetch::{self, Fetch, Repairing};
use crate::object::storing::Storing;
use crate::source::Goal;
use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use content::Entry;
use std::collections::VecDeque;
use std::rc::Rc;
use store::Provenance;
use wire::ObjectKey;

/// One request to an origin asks for so many bytes of a hole, at most, and so holds as much memory.
const HOLE_BYTES: u64 = 256 * 1024;

/// By peers.
impl Node {
    /// A client's reader has come to a unit that is gone: has it filled by a peer, if there may be one; it is woken if
    /// there is none after all.
    pub(super) fn fill(&mut self, reader: ExchangeId) -> bool {
        self.reopen(reader).is_some() && self.wait_for_unit(reader)
    }

    /// Turns the reader of a closed record into one of a transfer that fills its holes.
    pub(super) fn reopen(&mut self, reader: ExchangeId) -> Option<FetchId> {
        let exchange = self.client.exchanges.get(&reader)?;
        let (source, unfillable) = match &exchange.state {
            State::Serving(serving) => (&serving.source, serving.unfillable),
            State::Supplying(supplying) => (&supplying.source, supplying.unfillable),
            _ => return None,
        };
        let Source::Closed(record) = source else { return None };
        let record = Rc::clone(record);
        let stays = exchange.ask.audience != Audience::Everyone;
        if unfillable || !self.has_sources(&exchange.ask) || stays {
            return None;
        }
        let fetch = match self.object.reopened(&record) {
            Some(fetch) => fetch,
            None => self.begin_filling(reader, &record)?,
        };
        let storing = self.object.fetches.get_mut(&fetch)?.storing()?;
        storing.readers.push(reader);
        match &mut self.client.exchanges.get_mut(&reader)?.state {
            State::Serving(serving) => {
                serving.source = Source::Growing(fetch);
                serving.wanted_to = serving.position().unwrap_or_default();
                serving.wanted.clear();
            }
            State::Supplying(supplying) => supplying.source = Source::Growing(fetch),
            _ => {}
        }
        Some(fetch)
    }

    fn begin_filling(&mut self, reader: ExchangeId, record: &Rc<Record>) -> Option<FetchId> {
        let ask = self.client.exchanges.get(&reader)?.ask.clone();
        let headers = ask.headers.clone();
        let fetch = Fetch {
            unstorable: Some("repair"),
            state: fetch::State::Storing(Box::new(Storing::reopened(record))),
            ..Fetch::new(Rc::new(ask), self.cx.date(), "partial", Vec::new())
        };
        Some(self.start(fetch, headers, Goal::Holes))
    }

    /// No peer can fill the holes of a record: its readers turn to the origin. False if that is not what
    /// the transfer was for.
    pub(super) fn cannot_fill(&mut self, id: FetchId) -> bool {
        let storing = self.object.fetches.get_mut(&id).and_then(Fetch::storing);
        let Some(record) = storing.filter(|it| it.is_reopened()).and_then(|it| it.whole.clone())
        else {
            return false;
        };
        let Some(fetch) = self.remove_fetch(id) else { return true };
        for reader in self.object.drop_storing(&mut self.cx, id, fetch) {
            self.client.read_closed(reader, &record);
            match self.client.exchanges.get_mut(&reader).map(|exchange| &mut exchange.state) {
                Some(State::Serving(serving)) => serving.unfillable = true,
                Some(State::Supplying(supplying)) => supplying.unfillable = true,
                _ => {}
            }
            self.cx.turns.ready(reader);
        }
        true
    }
}

/// By the origin.
impl Node {
    /// A reader has come to a unit that is gone: asks the origin for it. False if that cannot be done.
    pub(super) fn repair(&mut self, reader: ExchangeId) -> bool {
        let Some(exchange) = self.client.exchanges.get(&reader) else { return false };
        let State::Serving(serving) = &exchange.state else { return false };
        if exchange.ask.named.is_some() {
            // There is no origin.
            return false;
        }
        if serving.repair.is_some() {
            // It has used up what has come of the hole so far.
            self.client.with_serving(reader, |serving| serving.waits = true);
            return true;
        }
        let (status, validator) = match &serving.source {
            Source::Closed(record) => {
                (record.status, http::strong_validator(&record.headers).cloned())
            }
            Source::Growing(fetch) => {
                match self.object.fetches.get(fetch).map(|fetch| &fetch.state) {
                    Some(fetch::State::Storing(growing)) => {
                        (growing.status, http::strong_validator(&growing.headers).cloned())
                    }
                    _ => return false,
                }
            }
        };
        let Some(cursor) = serving.cursor.as_ref().filter(|_| status == StatusCode::OK) else {
            return false;
        };
        let units: VecDeque<_> = self.hole(cursor.entries());
        let length: u64 = units.iter().map(|unit| u64::from(unit.length)).sum();
        let (first, ask) = (cursor.offset, exchange.ask.clone());
        let mut headers = ask.headers.clone();
        // Other bytes than those that are missing are found out by their names in any case.
        http::make_ranged(&mut headers, first, Some(first + length - 1), validator);
        let fetch = Fetch {
            unstorable: Some("repair"),
            state: fetch::State::Repairing(Box::new(Repairing::new(reader, first, units))),
            ..Fetch::new(Rc::new(ask), self.cx.date(), "partial", Vec::new())
        };
        let id = self.start(fetch, headers, Goal::Range);
        self.source.dial_origin(&mut self.cx, id);
        self.client.with_serving(reader, |serving| {
            serving.waits = true;
            serving.repair = Some(id);
        });
        true
    }

    fn hole(&self, units: &[Entry]) -> VecDeque<Entry> {
        let mut left = HOLE_BYTES;
        units
            .iter()
            .enumerate()
            .take_while(|(position, unit)| {
                let fits = u64::from(unit.length) <= left;
                left = left.saturating_sub(u64::from(unit.length));
                *position == 0 || (fits && !self.cx.chunks.holds(&unit.id))
            })
            .map(|(_, unit)| *unit)
            .collect()
    }

    /// The head of an answer to a repair: it must be the very bytes of the very version.
    pub(super) fn repair_head(&mut self, id: FetchId, status: StatusCode, headers: &HeaderMap) {
        let Some(fetch) = self.object.fetches.get(&id) else { return };
        let fetch::State::Repairing(repairing) = &fetch.state else { return };
        let begins = |part: ContentRange| part.range.start == repairing.first;
        let fits =
            status == StatusCode::PARTIAL_CONTENT && ContentRange::of(headers).is_some_and(begins);
        if fits {
            // One more, so that the end can be seen.
            let bytes = repairing.wanted() + 1;
            self.grant(id, bytes);
        } else {
            self.give_up(id);
        }
    }

    /// Content of a repair.
    pub(super) fn repair_body(&mut self, id: FetchId, bytes: &Bytes) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let fetch::State::Repairing(repairing) = &mut fetch.state else { return };
        let reader = repairing.reader;
        let Ok(units) = repairing.take(bytes) else { return self.give_up(id) };
        let complete = repairing.units.is_empty();
        // What is on its way to a reader need not be stored: where memory or the store fails, it is not.
        let stores = self.cx.store_works() && self.cx.chunks.pinned_bytes() <= self.cx.pinned_max();
        let mut group = Vec::new();
        for (unit, bytes) in &units {
            let (tickets, out) = (&mut self.cx.tickets, &mut self.cx.out);
            if stores && self.cx.chunks.enter(id, (*unit, bytes), Provenance::Own, tickets, out) {
                group.push((*unit, bytes.clone()));
            }
        }
        self.cx.append(Some(id), group);
        self.client.with_serving(reader, |serving| {
            serving.waits &= units.is_empty();
            serving.ahead.extend(units);
            if complete {
                serving.repair = None;
            }
        });
        if complete {
            self.remove_fetch(id);
        }
        self.cx.turns.ready(reader);
    }

    /// A hole cannot be mended: the client's transfer breaks off, and the record goes.
    pub(super) fn give_up(&mut self, id: FetchId) {
        let Some(fetch) = self.object.fetches.get(&id) else { return };
        let fetch::State::Repairing(repairing) = &fetch.state else { return };
        let reader = repairing.reader;
        self.cx.turns.end(id);
        self.abandon(reader);
    }

    /// A reader's object cannot be completed: as if it had never been stored.
    pub(super) fn abandon(&mut self, reader: ExchangeId) {
        if let Some(exchange) = self.client.exchanges.get(&reader)
            && let Some(Source::Closed(record)) = exchange.source()
        {
            let (key, record) = (exchange.ask.key, Rc::clone(record));
            self.forget_record(key, &record);
        }
        self.abort(reader);
    }

    /// Takes a record out of its row.
    pub(super) fn forget_record(&mut self, key: ObjectKey, record: &Rc<Record>) {
        if let Some(row) = self.cx.rows.get(&key) {
            let mut rest = Row::clone(&row);
            rest.records.retain(|kept| kept.id != record.id);
            self.write_row(key, rest);
            self.publish.handle_forgotten(&mut self.cx, record.id);
        }
    }
}
