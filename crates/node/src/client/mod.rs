//! Requests of clients and of peers, from their heads to the ends of their responses.
//!
//! *What this is:* the machine that owns who asks, what for, and how far the answer is (`exchanges`, which all may
//! read); requests of ours that nothing stored would do for (`misses.rs`); what peers make us hold (`supplies.rs`).
//! *Values in:* what `object` says of readers, how responses end. *Values out:* [`Value`]. *What it never does:* keep an
//! object, or choose whom to ask. *Where to start:* `request.rs`, `lookup.rs`.

pub mod budget;
mod charge;
mod claims;
mod forwards;
mod head;
mod lookup;
pub mod miss;
mod misses;
mod pass;
mod peer_head;
mod peer_request;
mod read;
mod request;
mod response;
mod serve;
mod supplies;
mod supply;

use crate::chunks::Unit;
use crate::context::Context;
use crate::events::{RequestEnd, Stale};
use crate::exchanges::exchange::Exchange;
use crate::input::{ExchangeId, FetchId};
use crate::pursuits::Quest;
use crate::transfers::incoming::Incoming;
use crate::transfers::reader::{Joins, Reader};
use misses::Misses;
use std::collections::VecDeque;
use std::net::IpAddr;
use supplies::Supplies;
use wire::peer::{Message, Request, Want};
use wire::{ChunkId, NodeId, ObjectKey, RecordId};

pub use response::dialled_in_vain;

/// What the machine says.
#[derive(Debug)]
pub enum Value {
    /// This is to be asked of others.
    Seek(FetchId, Quest),
    /// What is asked has a head, and is an object from now on.
    Begin(FetchId, Box<Incoming>),
    /// The record that a transfer is of is told of once more, by another peer.
    GoesOn(FetchId),
    /// Two versions would be spliced: what has come is for nobody.
    Broken(FetchId),
    /// The peer or origin that was asked may send this many bytes more. True: its silence counts from now on.
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
    ManifestCredit(FetchId, u64),
    /// What lists an object is false.
    Misled(FetchId),
    /// A record was taken out of its row.
    Forgotten(RecordId),
}

/// What was said and is not handed over yet, in order.
type Values = VecDeque<Value>;

/// See the module.
pub struct Client {
    /// Requests that nothing stored would do for.
    pub misses: Misses,
    /// Requests of peers, and what they make us hold.
    pub supplies: Supplies,
    values: Values,
}

impl Client {
    /// Nobody asks yet; `memory_bytes` is the budget of the whole node.
    pub fn new(memory_bytes: u64) -> Self {
        Self {
            misses: Misses::default(),
            supplies: Supplies::new(memory_bytes),
            values: Values::new(),
        }
    }

    /// Gives out one value.
    pub fn poll(&mut self) -> Option<Value> {
        self.values.pop_front()
    }

    /// A peer is gone, and wants nothing any more.
    pub fn peer_is_gone(&mut self, cx: &mut Context, peer: NodeId) {
        let mut supplied: Vec<ExchangeId> = self.supplies.of(peer).collect();
        supplied.sort_unstable();
        for id in supplied {
            self.leave(cx, id, RequestEnd::Left);
        }
    }

    /// A unit for which somebody came cannot be had.
    pub fn lacks(&mut self, cx: &mut Context, id: ExchangeId) {
        if cx.exchanges.get(&id).is_some_and(Exchange::may_want) {
            self.supplies.lose_first(cx, id);
            self.supplies.supply(cx, id, &mut self.values);
        } else {
            self.abandon(cx, id);
        }
    }

    /// A peer can take more units.
    pub fn supply_peer(&mut self, cx: &mut Context, peer: NodeId) {
        self.supplies.supply_peer(cx, peer, &mut self.values);
    }

    /// A peer says something of a request of its own.
    pub fn peer_says(&mut self, cx: &mut Context, id: ExchangeId, message: Message) {
        match message {
            Message::Credit(_, bytes, manifest_credit) => {
                self.peer_credit(cx, id, bytes, manifest_credit)
            }
            Message::Want(_, wants) => self.peer_wants(cx, id, wants),
            Message::CancelWant(_, names) => {
                let Some(peer_reader) = cx.exchanges.supplying_mut(id) else { return };
                cx.report.wants_taken_back += peer_reader.unwant(&names, cx.now) as u64;
                cx.turns.ready(id);
            }
            Message::Cancel(_) => self.leave(cx, id, RequestEnd::Left),
            _ => {}
        }
    }

    /// The addresses of a host are known, or that it has none.
    pub fn handle_name(&mut self, cx: &mut Context, host: String, addresses: Option<Vec<IpAddr>>) {
        for id in cx.dns.handle_resolved(cx.now, host, addresses) {
            if !cx.exchanges.contains_key(&id) {
                cx.events.stale(Stale::Name);
            }
            self.look(cx, id);
        }
    }

    /// A row of the catalogue has come, or is not to be had.
    pub fn handle_row(&mut self, cx: &mut Context, key: ObjectKey, bytes: Option<&[u8]>) {
        let (waiters, row) = cx.rows.handle_row(key, bytes);
        row.records.iter().filter(|it| it.clocked).for_each(|it| cx.clock.seen(it.received));
        for id in waiters {
            if !cx.exchanges.contains_key(&id) {
                cx.events.stale(Stale::Row);
            }
            self.decide(cx, id, &row);
        }
    }
}
