//! Holes: units missing from stored objects because they were evicted or damaged. They are
//! requested from a peer by name; if no peer can supply them, from the origin by range. Each is
//! checked against its name before a client gets it.

use super::repair::Repairing;
use super::{Objects, Part, Value};
use crate::chunks::Unit;
use crate::context::Context;
use crate::exchanges::exchange::{Exchange, Source, State};
use crate::http;
use crate::http::{ContentRange, Record};
use crate::input::{ExchangeId, FetchId};
use crate::pursuits::{Goal, Quest};
use crate::request::Ask;
use crate::transfers::incoming::{Incoming, Label};
use crate::transfers::reader::Reader;
use crate::transfers::transfer::Transfer;
use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use content::Entry;
use std::collections::VecDeque;
use std::rc::Rc;
use store::Provenance;
use wire::ChunkId;

/// One request to an origin covers at most this many bytes of a hole. They are held in memory.
const HOLE_BYTES: u64 = 256 * 1024;

impl Objects {
    /// A reader needs a unit that is not held. Waits for it if it is in flight; otherwise requests
    /// it from the object's supplier, from a peer that fills holes, or, for a client's reader, from
    /// the origin. If none can supply it, says [`Value::Lacks`].
    pub fn find(&mut self, cx: &mut Context, reader: ExchangeId, (name, unit): (ChunkId, Unit)) {
        let source = cx.exchanges.get(&reader).and_then(Exchange::source);
        let incoming = source.and_then(Source::incoming);
        let fetch = incoming.or_else(|| self.reopen(cx, reader));
        let comes = fetch.is_some_and(|fetch| self.await_unit(cx, reader, fetch, name, unit));
        if !comes && !self.repair(cx, reader) {
            self.says(Value::Lacks(reader));
        }
    }

    /// Gives the reader of a stored record a transfer that fills its holes from peers.
    fn reopen(&mut self, cx: &mut Context, id: ExchangeId) -> Option<FetchId> {
        let exchange = cx.exchanges.get(&id)?;
        let (source, unfillable) = match &exchange.state {
            State::ClientReader(client_reader) => (&client_reader.source, client_reader.unfillable),
            State::PeerReader(peer_reader) => (&peer_reader.source, peer_reader.unfillable),
            _ => return None,
        };
        // A reader of an object under way has a transfer already.
        let Source::Closed(record) = source else { return None };
        let record = Rc::clone(record);
        let stays = exchange.ask.stays_here();
        let named = exchange.ask.named;
        let has_sources = cx.mesh.as_ref().is_some_and(|mesh| mesh.has_sources(named));
        if unfillable || !has_sources || stays {
            return None;
        }
        let begins = exchange.reads().map_or(0, |(position, _)| position);
        let reader = Reader::new(id, exchange.leads(), begins);
        // All readers of a record share one transfer.
        let fetch = match cx.transfers.filling(&record) {
            Some(fetch) => fetch,
            None => self.begin_filling(cx, id, &record)?,
        };
        cx.transfers.get_mut(&fetch)?.readers.push(reader);
        self.says(Value::Reopened(id, fetch));
        Some(fetch)
    }

    fn begin_filling(
        &mut self,
        cx: &mut Context,
        reader: ExchangeId,
        record: &Rc<Record>,
    ) -> Option<FetchId> {
        let ask = cx.exchanges.get(&reader)?.ask.clone();
        let (key, uri, named) = (ask.key, ask.target.to_string(), ask.named);
        let mut incoming = Incoming::filling(record);
        incoming.label = Some(Label { key, uri, named, alias: None });
        let id = self.seek(cx, ask.headers.clone(), Rc::new(ask), Goal::Holes);
        self.begin(cx, id, incoming);
        Some(id)
    }

    /// No peer can fill a record's holes: its readers turn to the origin. False if this transfer
    /// does not fill holes.
    pub fn cannot_fill(&mut self, cx: &mut Context, id: FetchId) -> bool {
        let incoming = cx.transfers.get(&id);
        let Some(Transfer::Filling(record)) = incoming.map(|it| &it.transfer) else {
            return false;
        };
        let record = Rc::clone(record);
        let Some(incoming) = self.remove(cx, id) else { return true };
        for reader in self.end_storing(cx, id, incoming, Part::Dropped) {
            self.says(Value::Closed(reader, Rc::clone(&record), true));
            cx.turns.ready(reader);
        }
        true
    }

    /// A reader needs a unit that is gone: requests it from the origin. False if that is not
    /// possible.
    pub fn repair(&mut self, cx: &mut Context, reader: ExchangeId) -> bool {
        let Some(exchange) = cx.exchanges.get(&reader) else { return false };
        let State::ClientReader(client_reader) = &exchange.state else { return false };
        if exchange.ask.named.is_some() {
            // A named object has no origin.
            return false;
        }
        if let Some(id) = client_reader.repair {
            // The reader has used all units of the hole that have arrived so far.
            self.says(Value::Mends(reader, id));
            return true;
        }
        let (status, validator) = match &client_reader.source {
            Source::Closed(record) => {
                (record.status, http::strong_validator(&record.headers).cloned())
            }
            Source::Incoming(fetch) => match cx.transfers.get(fetch) {
                Some(incoming) => {
                    (incoming.status, http::strong_validator(&incoming.headers).cloned())
                }
                _ => return false,
            },
        };
        // Only a 200 can be asked for in ranges.
        let Some(cursor) = client_reader.cursor.as_ref().filter(|_| status == StatusCode::OK)
        else {
            return false;
        };
        // Neighbouring units that are missing too come with the same request.
        let units: VecDeque<_> = self.hole(cx, cursor.entries());
        let length: u64 = units.iter().map(|unit| u64::from(unit.length)).sum();
        let (first, ask) = (cursor.offset, exchange.ask.clone());
        let mut headers = ask.headers.clone();
        // Without a validator the origin may send another version: the units' names will show it.
        http::make_ranged(&mut headers, first, Some(first + length - 1), validator);
        let id = self.seek(cx, headers, Rc::new(ask), Goal::Range);
        self.repairs.insert(id, Repairing::new(reader, first, units));
        self.says(Value::Mends(reader, id));
        true
    }

    /// Sends a request for missing parts of a stored object.
    fn seek(&mut self, cx: &mut Context, headers: HeaderMap, ask: Rc<Ask>, goal: Goal) -> FetchId {
        let id = cx.ids.fetch();
        let quest = Quest { ask, headers, have: None, content: None, goal };
        self.says(Value::Seek(id, quest));
        id
    }

    fn hole(&self, cx: &Context, units: &[Entry]) -> VecDeque<Entry> {
        let mut left = HOLE_BYTES;
        units
            .iter()
            .enumerate()
            .take_while(|(position, unit)| {
                let fits = u64::from(unit.length) <= left;
                left = left.saturating_sub(u64::from(unit.length));
                *position == 0 || (fits && !cx.chunks.holds(&unit.id))
            })
            .map(|(_, unit)| *unit)
            .collect()
    }

    /// The head of a repair's response, which must begin at the requested byte of the same version.
    /// False if this is no repair.
    pub fn repair_head(
        &mut self,
        cx: &mut Context,
        id: FetchId,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> bool {
        let Some(repairing) = self.repairs.get(&id) else { return false };
        let begins = |part: ContentRange| part.range.start == repairing.first;
        let fits =
            status == StatusCode::PARTIAL_CONTENT && ContentRange::of(headers).is_some_and(begins);
        if fits {
            // One byte more than requested, so that the end of the response is seen.
            let bytes = repairing.wanted() + 1;
            self.grant(cx, id, bytes);
        } else {
            self.give_up(cx, id);
        }
        true
    }

    /// Content of a repair has arrived.
    pub fn repair_body(&mut self, cx: &mut Context, id: FetchId, bytes: &Bytes) {
        let Some(repairing) = self.repairs.get_mut(&id) else { return };
        let reader = repairing.reader;
        let Ok(units) = repairing.take(bytes) else { return self.give_up(cx, id) };
        let complete = repairing.units.is_empty();
        // The reader gets these units in any case; they are stored only if memory and store allow.
        let stores = cx.store_works() && cx.chunks.pinned_bytes() <= cx.pinned_max();
        let mut group = Vec::new();
        for (unit, bytes) in &units {
            let (ids, out) = (&mut cx.ids, &mut cx.out);
            if stores && cx.chunks.enter(id, (*unit, bytes), Provenance::Own, ids, out) {
                group.push((*unit, bytes.clone()));
            }
        }
        cx.append(Some(id), group);
        self.says(Value::Mended(reader, units, complete));
        if complete {
            self.repairs.remove(&id);
            self.says(Value::Over(id));
        }
    }

    /// A hole cannot be repaired: the client's response breaks off, and the record is removed.
    pub fn give_up(&mut self, cx: &mut Context, id: FetchId) {
        let Some(repairing) = self.repairs.get(&id) else { return };
        let reader = repairing.reader;
        cx.turns.end(id);
        self.says(Value::Unmendable(reader));
    }
}
