//! Publishing: files put here get a name and are kept, and neighbours are told of them.
//!
//! *What it owns:* files being published or withdrawn, and the walk through the manifests of
//! published objects, which marks their units as kept. The published objects are in
//! [`Published`](crate::catalogue::Published), which only this machine writes. *Who calls it:*
//! `node.rs`, by `handle_*`; its values are polled. *What it never does:* hold a file's bytes, or
//! more of its manifest than a digest for each segment; look at a transfer, or at requests for
//! published objects.
//!
//! *What survives a crash:* every object whose publication was confirmed. An object's list entry,
//! row and manifest are changed together; its units are written before, and marked as kept again at
//! each start.

mod list;
mod pin;
mod put;

use crate::catalogue::Object;
use crate::context::Context;
use crate::events::Event;
use crate::hasher::Map;
use crate::input::{ExchangeId, FetchId, PutError, Ticket};
use crate::output::{ClientOutput, Output};
use list::List;
use pin::Walk;
use put::Put;
use std::collections::VecDeque;
use wire::Oid;

/// The machine; see the module.
#[derive(Debug, Default)]
pub struct Publish {
    list: List,
    /// Files being put.
    puts: Map<FetchId, Put>,
    /// Changes requested from the catalogue.
    changes: Map<Ticket, Waiter>,
    /// Objects whose units are still to be marked.
    to_walk: VecDeque<Oid>,
    walk: Option<Walk>,
    /// Requests that wait for an object's walk.
    unwalked: Vec<Waiter>,
    /// Units may be marked that no object needs any more.
    overmarked: bool,
    /// Requests that wait for a sync, with its number.
    undurable: VecDeque<(u64, Waiter)>,
    values: VecDeque<Value>,
}

/// What this machine tells the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Begin to take in a file of this many bytes by this transfer.
    Begin(FetchId, u64),
    /// Stop taking in a file.
    End(FetchId),
}

/// A request that waits for an object to be published or withdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiter {
    exchange: ExchangeId,
    name: Oid,
    /// True: the object is withdrawn. False: it is published.
    withdraws: bool,
    /// The object's entry before, which is restored if the catalogue fails.
    before: Option<Object>,
}

impl Publish {
    /// Takes the next value; call until `None`.
    pub fn poll(&mut self) -> Option<Value> {
        self.values.pop_front()
    }

    /// The number of files being put.
    pub fn coming(&self) -> usize {
        self.puts.len()
    }

    /// Whether this transfer takes in a file.
    pub fn has(&self, id: FetchId) -> bool {
        self.puts.contains_key(&id)
    }

    /// A client that was publishing or withdrawing has left, and needs no answer.
    pub fn handle_gone(&mut self, exchange: ExchangeId) {
        if let List::Asked(early) = &mut self.list {
            early.retain(|(other, _)| *other != exchange);
        }
        let of = |(id, put): (&FetchId, &Put)| (put.exchange == exchange).then_some(*id);
        self.values.extend(self.puts.iter().find_map(of).map(Value::End));
    }

    /// Bytes of all published objects and of those being put.
    pub fn bytes(&self, cx: &Context) -> u64 {
        let puts = self.puts.values().map(|put| put.bytes);
        puts.fold(cx.published.bytes(), u64::saturating_add)
    }

    /// Whether a file is being published: its units are marked, but no object lists them yet.
    fn is_busy(&self) -> bool {
        let is_entered = self.changes.values().all(|waiter| waiter.withdraws);
        !self.puts.is_empty() || !is_entered || !self.unwalked.is_empty()
    }
}

fn answer(cx: &mut Context, exchange: ExchangeId, result: Result<Oid, PutError>) {
    if let Err(error) = result {
        cx.events.emit(|| Event::NotPublished { exchange, why: error.into() });
    }
    cx.out.push_back(Output::Client(ClientOutput::Published(exchange, result)));
}
