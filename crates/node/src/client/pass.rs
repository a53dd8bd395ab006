//! Responses that are passed on as they arrive and not stored.

use super::{Client, Value};
use crate::client::miss::{Miss, Stage};
use crate::context::Context;
use crate::events::Stale;
use crate::exchanges::exchange::State;
use crate::input::{FetchError, FetchId};
use bytes::Bytes;

impl Client {
    /// Content of a response has arrived.
    pub fn handle_body(&mut self, cx: &mut Context, id: FetchId, bytes: Bytes) {
        let Some(pass) = self.misses.get_mut(&id).and_then(Miss::pass) else {
            return cx.events.stale(Stale::OriginBody);
        };
        pass.received += bytes.len() as u64;
        cx.report.not_stored.of(pass.reason).bytes += bytes.len() as u64;
        pass.held.push_back(bytes);
        self.let_go(cx, id);
    }

    /// The upstream has ended a response, completely or with an error.
    pub fn handle_end(&mut self, cx: &mut Context, id: FetchId, result: Result<(), FetchError>) {
        let Some(miss) = self.misses.get_mut(&id) else {
            return cx.events.stale(Stale::OriginEnd);
        };
        match &mut miss.stage {
            // The client still has bytes to take: the end is handled after them.
            Stage::Passing(pass) if !pass.held.is_empty() => {
                pass.over = Some(result);
                self.values.push_back(Value::Done(id));
            }
            Stage::Passing(pass) => {
                let client = pass.client;
                self.misses.end(id, &mut self.values);
                let exchange = cx.exchanges.get(&client);
                let answered = exchange.is_some_and(|it| matches!(it.state, State::Passing(_)));
                match result {
                    Ok(()) if answered => self.finish(cx, client),
                    Err(_) if answered => self.abort(cx, client),
                    result => self.unreachable(cx, client, result.err()),
                }
            }
            Stage::Asking => self.unanswered(cx, id, result.err()),
            Stage::Object => {}
        }
    }

    /// Sends a client as much of a response that is not stored as its credit allows.
    pub fn let_go(&mut self, cx: &mut Context, id: FetchId) {
        while let Some(pass) = self.misses.get_mut(&id).and_then(Miss::pass) {
            let client = pass.client;
            let credit = cx.exchanges.get(&client).map_or(0, |exchange| exchange.credit);
            let over = pass.over;
            match pass.held.pop_front() {
                Some(mut bytes) if credit > 0 => {
                    let rest = bytes.split_off(bytes.len().min(credit as usize));
                    if !rest.is_empty() {
                        pass.held.push_front(rest);
                    }
                    self.reading(cx, client).send(bytes);
                }
                Some(bytes) => return pass.held.push_front(bytes),
                None => {
                    return over.into_iter().for_each(|result| self.handle_end(cx, id, result));
                }
            }
        }
    }
}
