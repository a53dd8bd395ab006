//! Content that is stored under another URI: found by the digest that it must have.

use super::miss::Forward;
use crate::context::Context;
use crate::exchanges::exchange::State;
use crate::http::{Record, Row};
use crate::input::ExchangeId;
use std::rc::Rc;
use wire::ObjectKey;

/// What is known of content under its digest.
pub enum Found {
    /// A row is being read; [`step`] is next.
    Later,
    /// This record has it.
    Record(Rc<Record>),
    /// Nothing has it; the request is forwarded for this reason.
    Nothing(Forward),
}

/// Nothing that is stored under a request's own URI fits. `varies`: something is stored for other request fields.
pub fn begin(cx: &mut Context, id: ExchangeId, varies: bool) -> Found {
    let key = cx.exchanges.get(&id).and_then(|it| it.ask.alias(&cx.config.secret));
    let Some(key) = key else { return Found::Nothing(reason(varies)) };
    cx.exchanges.put_state(id, State::Aliased { varies, record: None });
    look_up(cx, id, key)
}

/// A row is known that may lead to the content: that of the digest, or the one that it names.
pub fn step(cx: &mut Context, id: ExchangeId, row: &Row) -> Found {
    let Some(exchange) = cx.exchanges.get_mut(&id) else { return Found::Later };
    let State::Aliased { varies, record: wanted } = exchange.state else { return Found::Later };
    let Some(wanted) = wanted else {
        let Some((key, record)) = row.alias() else { return Found::Nothing(reason(varies)) };
        exchange.state = State::Aliased { varies, record: Some(record) };
        return look_up(cx, id, key);
    };
    // Another router's signature covers the URI, so it says nothing about this one to a peer.
    let for_peer = exchange.peer().is_some();
    let serves = |it: &&Rc<Record>| !(for_peer && it.record_signature.is_some());
    match row.records.iter().filter(|it| it.id == wanted).find(serves) {
        Some(record) => {
            cx.report.aliases += 1;
            let ask = &exchange.ask;
            if let (Some(format), Some(digest)) = (ask.verdict.index, ask.expected) {
                cx.promises.same(format, ask.target.url(), digest);
            }
            Found::Record(Rc::clone(record))
        }
        None => Found::Nothing(reason(varies)),
    }
}

fn look_up(cx: &mut Context, id: ExchangeId, key: ObjectKey) -> Found {
    match cx.rows.get(&key) {
        Some(row) => step(cx, id, &row),
        None => {
            cx.rows.look_up(key, id, &mut cx.out);
            Found::Later
        }
    }
}

fn reason(varies: bool) -> Forward {
    if varies { Forward::VaryMiss } else { Forward::UriMiss }
}
