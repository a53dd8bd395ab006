//! What an origin's silence means for those who wait for it.

use super::{Client, Value};
use crate::context::Context;
use crate::http;
use crate::input::{ExchangeId, FetchError, FetchId};
use crate::pursuits::Upstream;
use ::http::header;
use std::rc::Rc;

impl Client {
    /// Nothing has come of an origin for so long that it may be out of reach: those who may have what is stale get it now, and the
    /// request goes on for the next ones. While nothing outside is reached, the others wait no longer.
    pub fn overdue(&mut self, cx: &mut Context, id: FetchId) {
        let Some(pursuit) = cx.pursuits.get(&id).filter(|it| it.via == Upstream::Origin) else {
            return;
        };
        let ask = Rc::clone(&pursuit.quest.ask);
        cx.outside.failed(&ask, FetchError::TimedOut, cx.now, &mut cx.out);
        if !self.misses.is_asking(id) {
            return;
        }
        self.pauses.fail(&ask.target, Some(FetchError::TimedOut), cx.now);
        let Some(miss) = self.misses.get_mut(&id) else { return };
        // The answer to a part is for the one who asks for it.
        let old = miss.old.clone().filter(|_| !ask.headers.contains_key(header::RANGE));
        // A slow origin is no reason to serve what only a lost one permits (RFC 9111 §4.2.4).
        let (now, is_down) = (cx.date(), cx.outside.is_down());
        let may = |waiter: &ExchangeId| {
            old.as_ref().zip(cx.exchanges.get(waiter)).is_some_and(|(old, it)| {
                http::stale_permitted(old, &it.ask.headers, &it.ask.verdict, now, !is_down)
            })
        };
        let (served, mut others): (Vec<_>, Vec<_>) = miss.waiters.drain(..).partition(may);
        // Nothing outside is reached: who waits for this would wait in vain.
        let refused = if is_down { std::mem::take(&mut others) } else { Vec::new() };
        miss.joined.retain(|(_, waiter)| others.contains(waiter));
        miss.starter = miss.starter.filter(|starter| others.contains(starter));
        miss.waiters = others;
        if miss.waiters.is_empty() && !served.is_empty() {
            // Without readers it would be cancelled.
            self.values.push_back(Value::Orphan(id));
        } else if miss.waiters.is_empty() {
            cx.turns.end(id);
        }
        for waiter in refused {
            self.unreachable(cx, waiter, Some(FetchError::TimedOut));
        }
        let Some(old) = old else { return };
        for waiter in served {
            let forwarded = Some("fwd=stale; detail=unreachable".to_owned());
            self.check(cx, waiter, Rc::clone(&old), -1, forwarded);
        }
    }
}
