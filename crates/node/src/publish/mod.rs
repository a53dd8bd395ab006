//! Publishing: files that are put here get a name, are kept, and others are told of them.
//!
//! *What this is:* a machine. It owns what is on its way to being published or taken back, and the walk through the
//! manifests of what is published, by which its units are kept; what is published stands in
//! [`Published`](crate::catalogue::Published), which it alone writes. *Who calls it:* `node.rs`, by `handle_*`; what
//! it wants of others is polled. *What it never does:* hold a file's bytes, or more of its manifest than one digest
//! for each segment; see a transfer, or who asks for what is published.
//!
//! *What survives a crash:* what was answered for. The list, the row and the manifest of an object are
//! changed together; units are written before, and are marked to be kept anew at each start.

mod list;
mod pin;
mod put;

use crate::catalogue::Object;
use crate::context::Context;
use crate::hasher::Map;
use crate::input::{ExchangeId, FetchId, PutError, Ticket};
use crate::output::{ClientOutput, Output};
use list::List;
use pin::Walk;
use put::Put;
use std::collections::VecDeque;
use wire::Oid;

/// See the module.
#[derive(Debug, Default)]
pub struct Publish {
    list: List,
    /// Files that are being put.
    puts: Map<FetchId, Put>,
    /// Changes that the catalogue was asked for.
    changes: Map<Ticket, Waiter>,
    /// Objects whose units are to be marked.
    to_walk: VecDeque<Oid>,
    walk: Option<Walk>,
    /// Who waits for an object to be walked through.
    unwalked: Vec<Waiter>,
    /// Units are marked that no object needs any more.
    overmarked: bool,
    /// Who waits until all that was written is durable, and for which sync.
    undurable: VecDeque<(u64, Waiter)>,
    values: VecDeque<Value>,
}

/// What is wanted of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A file of so many bytes comes in by this transfer.
    Begin(FetchId, u64),
    /// A file is not to come in any more.
    End(FetchId),
}

/// Somebody who waits until something is done about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiter {
    exchange: ExchangeId,
    name: Oid,
    /// It is taken back; else published.
    withdraws: bool,
    /// The object as it was published before, which is what the catalogue has if it fails.
    before: Option<Object>,
}

impl Publish {
    /// Gives out one thing that is wanted of others; drain it until `None`.
    pub fn poll(&mut self) -> Option<Value> {
        self.values.pop_front()
    }

    /// Files that come in.
    pub fn coming(&self) -> usize {
        self.puts.len()
    }

    /// Whether a file comes in by a transfer.
    pub fn has(&self, id: FetchId) -> bool {
        self.puts.contains_key(&id)
    }

    /// Whoever wanted to publish, or to take something back, has left: nobody is to be told.
    pub fn handle_gone(&mut self, exchange: ExchangeId) {
        if let List::Asked(early) = &mut self.list {
            early.retain(|(other, _)| *other != exchange);
        }
        let of = |(id, put): (&FetchId, &Put)| (put.exchange == exchange).then_some(*id);
        self.values.extend(self.puts.iter().find_map(of).map(Value::End));
    }

    /// Bytes that are published, or will be when what is under way has come.
    pub fn bytes(&self, cx: &Context) -> u64 {
        let puts = self.puts.values().map(|put| put.bytes);
        puts.fold(cx.published.bytes(), u64::saturating_add)
    }

    /// Whether files are on their way to being published: their units are marked, and no object has them yet.
    fn is_busy(&self) -> bool {
        let is_entered = self.changes.values().all(|waiter| waiter.withdraws);
        !self.puts.is_empty() || !is_entered || !self.unwalked.is_empty()
    }
}

fn answer(cx: &mut Context, exchange: ExchangeId, result: Result<Oid, PutError>) {
    cx.out.push_back(Output::Client(ClientOutput::Published(exchange, result)));
}
