//! Bodies that pause: what is in no unit yet is given to peers as it is, so that nobody waits for a
//! boundary (protocol: A body that pauses).
//!
//! Who dialled the origin goes on cutting and keeps the object; those behind get bytes that they do not
//! keep.

use super::Node;
use crate::client::exchange::{Exchange, Piece, Serving, Source, State};
use crate::input::{ExchangeId, FetchId};
use crate::object::fetch::{self, Fetch};
use crate::object::storing::Storing;
use crate::source::CREDIT;
use bytes::Bytes;
use std::time::Duration;
use wire::NodeId;
use wire::peer::Request;

/// A body whose end nobody knows pauses if nothing of it comes for so long: it may be a stream, and somebody
/// waits for each word of it.
const PAUSE: Duration = Duration::from_millis(200);
/// A body of known length is a download: a lost packet on the uplink, or a satellite's first round trips,
/// must not keep the routers on its way from keeping it.
const DOWNLOAD_PAUSE: Duration = Duration::from_secs(2);
/// Bytes in no unit that may be on their way or kept for the slowest reader.
const LOOSE_MAX: u32 = 64 * 1024;

impl Node {
    /// Something of a body has come: from now on its pause counts, if peers read it.
    pub(super) fn watch(&mut self, id: FetchId) {
        let read_by_peers = self.is_read_by_peers(id);
        let Some(storing) = self.object.fetches.get_mut(&id).and_then(Fetch::storing) else {
            return;
        };
        storing.pauses = false;
        if let Some(at) = storing.pause_at.take() {
            self.object.pauses.remove(&(at, id));
        }
        if read_by_peers && !storing.ended {
            let pause = if storing.announced.is_some() { DOWNLOAD_PAUSE } else { PAUSE };
            let at = self.cx.now + pause;
            storing.pause_at = Some(at);
            self.object.pauses.insert((at, id));
        }
    }

    /// Nothing of a body has come for a while.
    pub(super) fn paused(&mut self, id: FetchId) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        // An origin that waits for us does not pause.
        let owes = fetch.granted > fetch.received;
        let Some(storing) = fetch.storing() else { return };
        storing.pause_at = None;
        storing.pauses = owes;
        self.list_open(id);
        self.object.readers_ready(&mut self.cx, id);
    }

    /// A peer that has all units gets the bytes that are in none, if it would have to wait for them.
    pub(super) fn flow(&mut self, id: ExchangeId) {
        let Some(exchange) = self.client.exchanges.get(&id) else { return };
        let State::Supplying(supplying) = &exchange.state else { return };
        let Some(fetch_id) = supplying.source.growing() else { return };
        if supplying.flow.is_some() || !supplying.wants.is_empty() {
            return;
        }
        let Some(fetch) = self.object.fetches.get(&fetch_id) else { return };
        let fetch::State::Storing(storing) = &fetch.state else { return };
        let told = storing.offset_of(supplying.segment).is_none();
        let Some(from) = storing.loose_from(fetch.received).filter(|_| told) else { return };
        let end = storing.announced.unwrap_or(u64::MAX);
        let pieces = [Piece::Object(from..end)].into();
        let serving = Serving::new(Source::Growing(fetch_id), storing.record, pieces);
        let mut ask = exchange.ask.clone();
        ask.trail.given = from;
        let state = State::Serving(Box::new(serving));
        let Some(mesh) = &mut self.cx.mesh else { return };
        let flow = mesh.draw_exchange();
        let credit = ask.trail.credit;
        self.client.exchanges.insert(flow, Exchange { ask, credit, state });
        if let Some(State::Supplying(supplying)) =
            self.client.exchanges.get_mut(&id).map(|exchange| &mut exchange.state)
        {
            supplying.flow = Some(flow);
        }
        if let Some(storing) = self.object.fetches.get_mut(&fetch_id).and_then(Fetch::storing) {
            storing.readers.push(flow);
        }
        self.cx.turns.ready(flow);
    }

    /// A peer gives bytes that are in no unit: the object is not kept here.
    pub(super) fn loose_bytes(
        &mut self,
        id: FetchId,
        (peer, request): (NodeId, Request),
        offset: u64,
        bytes: Bytes,
    ) {
        if !self.takes_unsigned(id, (peer, request)) {
            return;
        }
        self.object.retire(id);
        self.source.came(id, self.cx.now);
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let Some(listed) = fetch.storing().and_then(Storing::listed) else { return };
        let first = listed.tail.end().is_none();
        let in_place = !first || offset == listed.end;
        let crowded = listed.tail.kept() + bytes.len() as u64 > u64::from(LOOSE_MAX);
        listed.hollow = true;
        if !in_place || crowded || !listed.tail.push(offset, bytes) {
            return self
                .cx
                .expel(peer, "bytes that are out of place, or that nobody gave credit for");
        }
        if first {
            self.source.credit(&mut self.cx, id, LOOSE_MAX - CREDIT);
        }
        self.object.readers_ready(&mut self.cx, id);
        self.cx.turns.dirty(id);
    }

    /// Readers have moved on: what all of them have is let go, and as much more may come.
    pub(super) fn loose_passed(&mut self, id: FetchId) {
        let Some(fetch) = self.object.fetches.get(&id) else { return };
        let fetch::State::Storing(storing) = &fetch.state else { return };
        let positions = storing.readers.iter();
        let slowest = positions.filter_map(|reader| {
            let exchange = self.client.exchanges.get(reader)?;
            // Who is told of units has its bytes by another exchange.
            exchange.flow().is_none().then(|| exchange.position()).flatten()
        });
        let slowest = slowest.min().unwrap_or(u64::MAX);
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let Some(listed) = fetch.storing().and_then(Storing::listed) else { return };
        let passed = listed.tail.pass(slowest);
        if passed > 0 {
            let credit = u32::try_from(passed).unwrap_or(u32::MAX);
            self.source.credit(&mut self.cx, id, credit);
        }
    }

    /// A peer says that a response is complete.
    pub(super) fn all_came(&mut self, id: FetchId) {
        let Some(fetch) = self.object.fetches.get_mut(&id) else { return };
        let length = fetch.frontier();
        let Some(storing) = fetch.storing() else { return };
        let listed_only = storing.listed().is_none_or(|listed| listed.tail.end().is_none());
        if listed_only || storing.announced.is_some_and(|announced| announced != length) {
            return self.broken(id);
        }
        storing.announced = Some(length);
        storing.ended = true;
        let readers = storing.readers.clone();
        for reader in readers {
            self.client.object_ends(reader, length);
            self.cx.turns.ready(reader);
        }
    }
}
