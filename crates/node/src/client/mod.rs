//! Requests of clients and of peers, from their heads to the ends of their responses.
//!
//! *What this is:* the machine that owns exchanges: who asks, what for, how far the answer is, and what peers make us
//! hold for theirs. *Still in the node:* whatever of it needs a transfer, in `node/`.

pub mod budget;
pub mod exchange;
pub mod supplying;

use crate::context::Context;
use crate::hasher::{Map, Set};
use crate::http::Record;
use crate::input::{ExchangeId, FetchId};
use ::http::Method;
use budget::Budget;
use bytes::Bytes;
use exchange::{Exchange, Serving, Source, State};
use std::collections::VecDeque;
use std::rc::Rc;
use supplying::{Supplied, Supplying, Wants, requests_of};
use wire::peer::{ChunkHead, Message, Outcome, Request};
use wire::{ChunkId, NodeId};

/// See the module.
pub struct Client {
    pub exchanges: Map<ExchangeId, Exchange>,
    /// Requests of peers.
    pub supplied: Supplied,
    /// What peers make us hold.
    pub budget: Budget,
    /// The request of a peer that last had its turn to be sent units.
    pub last_turn: ExchangeId,
}

impl Client {
    /// Nobody asks yet; `memory_bytes` is the budget of the whole node.
    pub fn new(memory_bytes: u64) -> Self {
        Self {
            exchanges: Map::default(),
            supplied: Supplied::new(),
            budget: Budget::new(memory_bytes),
            last_turn: ExchangeId(0),
        }
    }

    pub fn put_state(&mut self, id: ExchangeId, state: State) {
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.state = state;
        }
    }

    /// How much may be read for a request of a peer, at most `most`; `None` if it has to wait. Reading takes at
    /// most half of what is free, so that what is asked and wanted next finds room. However
    /// short memory is, a peer may have one unit in it: it gets on as long as it takes what it asked for.
    pub fn room_to_read(&self, id: ExchangeId, most: u64) -> Option<u64> {
        let (peer, _) = self.exchanges.get(&id)?.peer()?;
        let room = (self.budget.free() / 2).min(most);
        let unit = u64::from(ChunkHead::TOTAL_MAX);
        if room >= unit {
            return Some(room);
        }
        let has_read = |id| match self.exchanges.get(&id).map(|exchange| &exchange.state) {
            Some(State::Supplying(supplying)) => supplying.read_bytes() > 0,
            _ => false,
        };
        let mut requests = requests_of(&self.supplied, peer);
        (!requests.any(has_read)).then_some(unit)
    }

    /// A request that has waited for memory and need not any more.
    pub fn can_read_now(&mut self) -> Option<ExchangeId> {
        if !self.budget.has_more() {
            return None;
        }
        let may = |id: &ExchangeId| self.room_to_read(*id, u64::MAX).is_some();
        let next = self.budget.waiting().find(may);
        match next {
            Some(next) => self.budget.goes_on(next),
            None => self.budget.was_looked_at(),
        }
        next
    }

    pub fn wants_head(&self, client: ExchangeId) -> bool {
        self.exchanges.get(&client).is_some_and(|exchange| exchange.ask.method == Method::HEAD)
    }

    pub fn is_peer(&self, id: ExchangeId) -> bool {
        self.exchanges.get(&id).is_some_and(|exchange| exchange.peer().is_some())
    }

    pub fn supplied(&self, peer: NodeId, request: Request) -> Option<ExchangeId> {
        self.supplied.get(&(peer, request)).copied()
    }

    pub fn with_serving(&mut self, id: ExchangeId, change: impl FnOnce(&mut Serving)) {
        if let Some(exchange) = self.exchanges.get_mut(&id)
            && let State::Serving(serving) = &mut exchange.state
        {
            change(serving);
        }
    }

    /// A growing object turns out to end here.
    pub fn object_ends(&mut self, id: ExchangeId, length: u64) {
        if let Some(exchange) = self.exchanges.get_mut(&id)
            && let State::Serving(serving) = &mut exchange.state
        {
            serving.ends(length);
        }
    }

    /// A growing object is closed: its readers go on from the store.
    pub fn read_closed(&mut self, id: ExchangeId, record: &Rc<Record>) {
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            match &mut exchange.state {
                State::Serving(it) => it.source = Source::Closed(Rc::clone(record)),
                State::Supplying(it) => it.source = Source::Closed(Rc::clone(record)),
                _ => {}
            }
        }
    }

    /// The transfer that a client reads from while it grows.
    pub fn reads_growing(&self, id: ExchangeId) -> Option<FetchId> {
        match &self.exchanges.get(&id)?.state {
            State::Serving(serving) => serving.source.growing(),
            State::Supplying(supplying) => supplying.source.growing(),
            _ => None,
        }
    }

    pub fn begin_supply(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        source: Source,
        record: wire::RecordId,
    ) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some((peer, _)) = exchange.peer() else { return };
        let trail = &exchange.ask.trail;
        let supplying = Supplying {
            source,
            record,
            peer,
            segment: trail.resume.map_or(0, |resume| resume.segment),
            told: false,
            cover: trail.cover,
            moved: cx.now,
            wants: Wants::default(),
            unlisted: Set::default(),
            claimed: 0,
            ahead: VecDeque::new(),
            reserved: 0,
            flow: None,
            unfillable: false,
            reading: false,
            turning: false,
        };
        exchange.state = State::Supplying(Box::new(supplying));
        cx.turns.ready(id);
    }

    /// A peer is told that the unit which it wants first cannot be had here.
    pub fn lose_first(&mut self, cx: &mut Context, id: ExchangeId) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some((peer, request)) = exchange.peer() else { return };
        let State::Supplying(supplying) = &mut exchange.state else { return };
        let Some(name) = supplying.wants.front().map(|want| want.name) else { return };
        supplying.wants.pop_front();
        cx.say(peer, Message::Lost(request, vec![name]));
    }

    /// A unit could not be read with the length that a peer alone says it has: who said so is told.
    pub fn lose_unread(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        unread: Option<(ChunkId, u32)>,
    ) {
        let Some(State::Supplying(supplying)) = self.exchanges.get(&id).map(|it| &it.state) else {
            return;
        };
        let first = supplying.wants.front().map(|want| (want.name, want.length));
        if unread.is_some() && unread == first {
            self.lose_first(cx, id);
        }
    }

    /// A peer has got units elsewhere: what was not sent yet will not be. What was asked of the next one
    /// for them comes all the same, and is kept.
    pub fn peer_unwants(&mut self, cx: &mut Context, id: ExchangeId, names: &[ChunkId]) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let State::Supplying(supplying) = &mut exchange.state else { return };
        let before = supplying.wants.len();
        let names: Set<&ChunkId> = names.iter().collect();
        supplying.wants.retain(|want| !names.contains(&want.name));
        supplying.ahead.retain(|(name, _)| !names.contains(name));
        supplying.moved = cx.now;
        cx.report.wants_taken_back += (before - supplying.wants.len()) as u64;
        cx.turns.ready(id);
    }

    /// How many units a peer wants, of all that it has asked for.
    pub fn wants_of(&self, peer: NodeId) -> usize {
        let wants = |id| match self.exchanges.get(&id).map(|exchange| &exchange.state) {
            Some(State::Supplying(supplying)) => supplying.wants.len(),
            _ => 0,
        };
        requests_of(&self.supplied, peer).map(wants).sum()
    }

    /// Content of a response for a peer that is not stored.
    pub fn send_opaque(&mut self, cx: &mut Context, id: ExchangeId, bytes: &Bytes) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some((peer, request)) = exchange.peer() else { return };
        cx.report.relayed_opaque_bytes += bytes.len() as u64;
        let mut offset = exchange.ask.trail.given;
        exchange.ask.trail.given += bytes.len() as u64;
        for part in bytes.chunks(Message::BYTES_MAX) {
            cx.say(peer, Message::Bytes(request, offset, part.to_vec()));
            offset += part.len() as u64;
        }
    }

    /// Tells a peer that its response has ended; false if it is no peer that asked.
    pub fn end_supply(&mut self, cx: &mut Context, id: ExchangeId, outcome: Outcome) -> bool {
        let Some((peer, request)) = self.exchanges.get(&id).and_then(|it| it.peer()) else {
            return false;
        };
        cx.say(peer, Message::End(request, outcome));
        true
    }

    /// A reader counts a unit that is on its way, or has just come, as a peer's.
    pub fn count_from_peer(
        &mut self,
        cx: &mut Context,
        reader: ExchangeId,
        name: &ChunkId,
        length: u32,
    ) {
        self.with_serving(reader, |serving| serving.from_peer += u64::from(length));
        cx.flights.count_for(name, reader);
    }
}
