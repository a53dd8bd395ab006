//! Requests of clients and peers, from the request's head to the end of its response.
//!
//! *What it owns:* each exchange: who asked, for what, and how much of the response is sent
//! (`exchanges`, which every machine may read); misses, the requests that this node sends because
//! nothing stored answers (`misses.rs`); the memory that peers' requests take (`peer_readers.rs`).
//! *Values in:* what `object` reports about readers, how responses end. *Values out:* [`Value`].
//! *What it never does:* store an object, or choose a peer or origin to ask. *Where to start:*
//! `request.rs`, `lookup.rs`.

mod alias;
pub mod budget;
mod charge;
mod claims;
mod classified;
mod companions;
mod elsewhere;
mod forwards;
mod head;
mod lookup;
pub mod miss;
mod misses;
mod overdue;
mod pass;
mod pauses;
mod peer_head;
mod peer_readers;
mod peer_request;
mod purge;
mod read;
mod request;
mod response;
mod serve_client;
mod serve_peer;

use crate::chunks::Unit;
use crate::context::Context;

use crate::events::{RequestEnd, Stale};
use crate::exchanges::exchange::Exchange;
use crate::input::{ExchangeId, FetchId};
use crate::pursuits::Quest;
use crate::transfers::incoming::Incoming;
use crate::transfers::reader::{Joins, Reader};
use misses::Misses;
use pauses::Pauses;
use peer_readers::PeerReaders;
use std::collections::VecDeque;
use wire::peer::{Message, Request, Want};
use wire::{ChunkId, NodeId, ObjectKey, RecordId};

/// What this machine tells the others.
#[derive(Debug)]
pub enum Value {
    /// Send this request to a peer or an origin.
    Seek(FetchId, Quest),
    /// The response's head has arrived, and the response becomes an object.
    Begin(FetchId, Box<Incoming>),
    /// Another peer has sent the head of the same record: the transfer continues.
    GoesOn(FetchId),
    /// The peer offers another version. Two versions must not be spliced, so the transfer fails.
    Broken(FetchId),
    /// Let the peer or origin send this many more bytes. True: its silence counts from now on.
    Grant(FetchId, u64, bool),
    /// This peer's answer to that request was accepted: answers from others are ignored.
    Accept(FetchId, (NodeId, Request)),
    /// The peer's answer cannot be used: ask another.
    Disregard(FetchId),
    /// Ask the gateway itself instead of the peer that this request went to.
    TurnToGateway(FetchId, (NodeId, Request)),
    /// The upstream has ended a response that is not stored.
    Done(FetchId),
    /// No client waits for the response, but the transfer may run for a while without one.
    Orphan(FetchId),
    /// A request of this node has ended and is removed.
    Over(FetchId),
    /// An exchange begins to read an object.
    Join(FetchId, Reader, Joins),
    /// A reader has left an object. True: it belonged to a peer.
    Left(FetchId, ExchangeId, bool),
    /// A reader needs a unit that is not stored.
    Missing(ExchangeId, (ChunkId, Unit)),
    /// A peer wants these units of an object; request the missing ones.
    Forward(ExchangeId, FetchId, Vec<Want>),
    /// A reader accepts the manifest up to this offset in bytes.
    ManifestCredit(FetchId, u64),
    /// The manifest of an object is false: a unit with the right name does not match its entry.
    Misled(FetchId),
    /// A record was taken out of its row.
    Forgotten(RecordId),
}

/// Values not handed over yet, oldest first.
type Values = VecDeque<Value>;

/// The machine; see the module.
pub struct Client {
    /// Requests that nothing stored answers.
    pub misses: Misses,
    /// Peers' requests, and the memory that they take.
    pub peer_readers: PeerReaders,
    /// Origins that are not waited for.
    pauses: Pauses,
    values: Values,
}

impl Client {
    /// No requests yet; `memory_bytes` is the budget of the whole node.
    pub fn new(memory_bytes: u64) -> Self {
        Self {
            misses: Misses::default(),
            peer_readers: PeerReaders::new(memory_bytes),
            pauses: Pauses::default(),
            values: Values::new(),
        }
    }

    /// Takes the next value.
    pub fn poll(&mut self) -> Option<Value> {
        self.values.pop_front()
    }

    /// A peer has disconnected: its requests end.
    pub fn peer_is_gone(&mut self, cx: &mut Context, peer: NodeId) {
        let mut supplied: Vec<ExchangeId> = self.peer_readers.of(peer).collect();
        supplied.sort_unstable();
        for id in supplied {
            self.leave(cx, id, RequestEnd::Left);
        }
    }

    /// A unit that this reader needs cannot be had.
    pub fn lacks(&mut self, cx: &mut Context, id: ExchangeId) {
        if cx.exchanges.get(&id).is_some_and(Exchange::may_want) {
            self.peer_readers.lose_first(cx, id);
            self.peer_readers.supply(cx, id, &mut self.values);
        } else {
            self.abandon(cx, id);
        }
    }

    /// The connection to a peer has room for more units.
    pub fn supply_peer(&mut self, cx: &mut Context, peer: NodeId) {
        self.peer_readers.supply_peer(cx, peer, &mut self.values);
    }

    /// Handles a peer's message about one of its own requests.
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

    /// A row has been read from the catalogue; `None` if there is none.
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
