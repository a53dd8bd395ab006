//! Requests of clients and of peers, from their heads to the ends of their responses.
//!
//! *What this is:* the machine that owns exchanges: who asks, what for, how far the answer is, and what peers make us
//! hold for theirs. *Still in the node:* whatever of it needs a transfer, in `node/`.

pub mod budget;
mod charge;
mod claims;
mod forwards;
mod head;
mod lookup;
pub mod miss;
mod pass;
mod peer_head;
mod peer_request;
mod read;
mod request;
mod response;
mod serve;
mod supply;

use crate::chunks::Unit;
use crate::client::miss::Stage;
use crate::context::Context;
use crate::exchanges::exchange::{Exchange, Source, State};
use crate::exchanges::supplying::{Supplied, Supplying, Wants, requests_of};
use crate::growing::reader::{Joins, Reader};
use crate::growing::storing::Storing;
use crate::hasher::{Map, Set};
use crate::http::Record;
use crate::input::{ExchangeId, FetchId};
use crate::pursuits::Quest;
use budget::Budget;
use bytes::Bytes;
use miss::Miss;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;
use wire::peer::{ChunkHead, Message, Outcome, Request, Want};
use wire::{ChunkId, NodeId, ObjectKey, RecordId};

pub use response::dialled_in_vain;

/// What the machine says.
#[derive(Debug)]
pub enum Value {
    /// This is to be asked of others.
    Seek(FetchId, Quest),
    /// What is asked has a head, and is an object from now on.
    Begin(FetchId, Box<Storing>),
    /// The record that a transfer is of is told of once more, by another peer.
    GoesOn(FetchId),
    /// Two versions would be spliced: what has come is for nobody.
    Broken(FetchId),
    /// Whoever was asked may send so many bytes more. True: whoever waits for it waits from now on.
    Grant(FetchId, u64, bool),
    /// This peer was believed by that request: nobody else is listened to.
    Heed(FetchId, (NodeId, Request)),
    /// What a peer says is of no use here: it is asked elsewhere.
    Disregard(FetchId),
    /// The gateway itself is to be asked, and not who was by that request.
    TurnToGateway(FetchId, (NodeId, Request)),
    /// All of a response that is not stored has come.
    Done(FetchId),
    /// Nobody waits for it, but it may go on for a while.
    Orphan(FetchId),
    /// A request is over, and gone.
    Over(FetchId),
    /// Somebody reads an object.
    Join(FetchId, Reader, Joins),
    /// A reader has left an object. True: it was a peer's.
    Left(FetchId, ExchangeId, bool),
    /// A reader has come to a unit that is not here.
    Missing(ExchangeId, (ChunkId, Unit)),
    /// A peer's reader wants these, which may have to be asked for.
    Forward(ExchangeId, FetchId, Vec<Want>),
    /// More of a manifest is welcome to a reader, up to there.
    Welcome(FetchId, u64),
    /// What lists an object is false.
    Misled(FetchId),
    /// A record was taken out of its row.
    Forgotten(RecordId),
}

/// See the module.
pub struct Client {
    /// Requests that nothing stored would do for, by the numbers of ours.
    pub misses: Map<FetchId, Miss>,
    /// Which of them others may join.
    pub joinable: Map<ObjectKey, FetchId>,
    /// Requests of peers.
    pub supplied: Supplied,
    /// What peers make us hold.
    pub budget: Budget,
    /// The request of a peer that last had its turn to be sent units.
    pub last_turn: ExchangeId,
    values: VecDeque<Value>,
}

impl Client {
    /// Nobody asks yet; `memory_bytes` is the budget of the whole node.
    pub fn new(memory_bytes: u64) -> Self {
        Self {
            misses: Map::default(),
            joinable: Map::default(),
            supplied: Supplied::new(),
            budget: Budget::new(memory_bytes),
            last_turn: ExchangeId(0),
            values: VecDeque::new(),
        }
    }

    /// Gives out one value.
    pub fn poll(&mut self) -> Option<Value> {
        self.values.pop_front()
    }

    fn says(&mut self, value: Value) {
        self.values.push_back(value);
    }

    /// How much may be read for a request of a peer, at most `most`; `None` if it has to wait. Reading takes at
    /// most half of what is free, so that what is asked and wanted next finds room. However
    /// short memory is, a peer may have one unit in it: it gets on as long as it takes what it asked for.
    pub fn room_to_read(&self, cx: &Context, id: ExchangeId, most: u64) -> Option<u64> {
        let (peer, _) = cx.exchanges.get(&id)?.peer()?;
        let room = (self.budget.free() / 2).min(most);
        let unit = u64::from(ChunkHead::TOTAL_MAX);
        if room >= unit {
            return Some(room);
        }
        let has_read = |id| match cx.exchanges.get(&id).map(|exchange| &exchange.state) {
            Some(State::Supplying(supplying)) => supplying.read_bytes() > 0,
            _ => false,
        };
        let mut requests = requests_of(&self.supplied, peer);
        (!requests.any(has_read)).then_some(unit)
    }

    /// A request that has waited for memory and need not any more.
    pub fn can_read_now(&mut self, cx: &Context) -> Option<ExchangeId> {
        if !self.budget.has_more() {
            return None;
        }
        let may = |id: &ExchangeId| self.room_to_read(cx, *id, u64::MAX).is_some();
        let next = self.budget.waiting().find(may);
        match next {
            Some(next) => self.budget.goes_on(next),
            None => self.budget.was_looked_at(),
        }
        next
    }

    /// Nobody may join any more; answers who waits.
    pub fn retire(&mut self, id: FetchId) -> Vec<ExchangeId> {
        let Some(miss) = self.misses.get_mut(&id) else { return Vec::new() };
        let key = miss.ask.key;
        let waiters = std::mem::take(&mut miss.waiters);
        miss.joined.clear();
        if self.joinable.get(&key) == Some(&id) {
            self.joinable.remove(&key);
        }
        waiters
    }

    pub fn supplied(&self, peer: NodeId, request: Request) -> Option<ExchangeId> {
        self.supplied.get(&(peer, request)).copied()
    }

    pub fn begin_supply(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        source: Source,
        record: RecordId,
    ) {
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return };
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
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return };
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
        let Some(State::Supplying(supplying)) = cx.exchanges.get(&id).map(|it| &it.state) else {
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
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return };
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
    pub fn wants_of(&self, cx: &Context, peer: NodeId) -> usize {
        let wants = |id| match cx.exchanges.get(&id).map(|exchange| &exchange.state) {
            Some(State::Supplying(supplying)) => supplying.wants.len(),
            _ => 0,
        };
        requests_of(&self.supplied, peer).map(wants).sum()
    }

    /// Content of a response for a peer that is not stored.
    pub fn send_opaque(&mut self, cx: &mut Context, id: ExchangeId, bytes: &Bytes) {
        let Some(exchange) = cx.exchanges.get_mut(&id) else { return };
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
        let Some((peer, request)) = cx.exchanges.get(&id).and_then(|it| it.peer()) else {
            return false;
        };
        cx.say(peer, Message::End(request, outcome));
        true
    }

    /// A request of ours is over.
    fn remove(&mut self, id: FetchId) -> Option<Miss> {
        let miss = self.misses.remove(&id)?;
        self.says(Value::Over(id));
        Some(miss)
    }

    /// What was asked for is over, or nothing of it is wanted any more.
    pub fn forget(&mut self, id: FetchId) {
        self.retire(id);
        self.misses.remove(&id);
    }

    /// Whether nobody waits for a response, or reads it as it comes.
    pub fn is_unwanted(&self, cx: &Context, id: FetchId) -> bool {
        self.misses.get(&id).is_some_and(|miss| match &miss.stage {
            Stage::Asking => miss.waiters.is_empty(),
            Stage::Passing(pass) => !cx.exchanges.contains_key(&pass.client),
            Stage::Object => false,
        })
    }

    /// Whether nothing of a response has come.
    pub fn is_asking(&self, id: FetchId) -> bool {
        self.misses.get(&id).is_some_and(|miss| matches!(miss.stage, Stage::Asking))
    }

    /// Takes a record out of its row.
    fn forget_record(&mut self, cx: &mut Context, key: ObjectKey, record: &Record) {
        if cx.forget_record(key, record.id) {
            self.says(Value::Forgotten(record.id));
        }
    }

    /// A peer is gone, and wants nothing any more.
    pub fn peer_is_gone(&mut self, cx: &mut Context, peer: NodeId) {
        let mut supplied: Vec<ExchangeId> = requests_of(&self.supplied, peer).collect();
        supplied.sort_unstable();
        for id in supplied {
            self.leave(cx, id);
        }
    }

    /// A unit for which somebody came cannot be had.
    pub fn lacks(&mut self, cx: &mut Context, id: ExchangeId) {
        if cx.exchanges.get(&id).is_some_and(Exchange::may_want) {
            self.lose_first(cx, id);
            cx.turns.ready(id);
        } else {
            self.abandon(cx, id);
        }
    }

    /// An object is closed, and a reader goes on from the store; perhaps no peer can fill holes in it.
    pub fn go_on_closed(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        record: &Rc<Record>,
        unfillable: bool,
    ) {
        cx.exchanges.read_closed(id, record);
        match cx.exchanges.get_mut(&id).map(|exchange| &mut exchange.state) {
            Some(State::Serving(serving)) => serving.unfillable |= unfillable,
            Some(State::Supplying(supplying)) => supplying.unfillable |= unfillable,
            _ => {}
        }
    }

    /// Units of a hole have come for a reader from the origin; perhaps all.
    pub fn handle_mended(
        &mut self,
        cx: &mut Context,
        id: ExchangeId,
        units: Vec<(ChunkId, Bytes)>,
        all: bool,
    ) {
        cx.exchanges.with_serving(id, |serving| {
            serving.waits &= units.is_empty();
            serving.ahead.extend(units);
            if all {
                serving.repair = None;
            }
        });
        cx.turns.ready(id);
    }

    /// So many bytes do not come from a peer, as these readers count it; so many were added to what was overheard.
    pub fn handle_not_from_peer(
        &mut self,
        cx: &mut Context,
        readers: &[ExchangeId],
        bytes: u64,
        mended: u64,
    ) {
        for reader in readers {
            cx.exchanges.with_serving(*reader, |serving| {
                serving.from_peer = serving.from_peer.saturating_sub(bytes);
                serving.from_repair += mended;
            });
        }
    }

    /// A peer says something of a request of its own.
    pub fn peer_says(&mut self, cx: &mut Context, id: ExchangeId, message: Message) {
        match message {
            Message::Credit(_, bytes, cover) => self.peer_credit(cx, id, bytes, cover),
            Message::Want(_, wants) => self.peer_wants(cx, id, wants),
            Message::Unwant(_, names) => self.peer_unwants(cx, id, &names),
            Message::Cancel(_) => self.leave(cx, id),
            _ => {}
        }
    }

    /// The addresses of a host are known, or that it has none.
    pub fn handle_name(&mut self, cx: &mut Context, host: String, addresses: Option<Vec<IpAddr>>) {
        for id in cx.names.handle_resolved(cx.now, host, addresses) {
            self.look(cx, id);
        }
    }

    /// A row of the catalogue has come, or is not to be had.
    pub fn handle_row(&mut self, cx: &mut Context, key: ObjectKey, bytes: Option<&[u8]>) {
        let (waiters, row) = cx.rows.handle_row(key, bytes);
        row.records.iter().filter(|it| it.clocked).for_each(|it| cx.clock.seen(it.received));
        for id in waiters {
            self.decide(cx, id, &row);
        }
    }
}
