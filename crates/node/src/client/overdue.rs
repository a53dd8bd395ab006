//! What an origin's silence means for those who wait for it.

use super::{Client, Value};
use crate::context::Context;
use crate::http;
use crate::input::{ExchangeId, FetchError, FetchId};
use crate::pursuits::Upstream;
use ::http::header;
use std::rc::Rc;

impl Client {
    /// Nothing has come of an origin for so long that it may be out of reach: those who may have what is stale get it now. The
    /// request goes on, for the next ones.
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
        let Some(old) = miss.old.clone().filter(|_| !ask.headers.contains_key(header::RANGE))
        else {
            return;
        };
        // A slow origin is no reason to serve what only a lost one permits (RFC 9111 §4.2.4).
        let (now, reached) = (cx.date(), !cx.outside.is_down());
        let may = |waiter: &ExchangeId| {
            cx.exchanges.get(waiter).is_some_and(|it| {
                http::stale_permitted(&old, &it.ask.headers, &it.ask.verdict, now, reached)
            })
        };
        let (served, waiters): (Vec<_>, Vec<_>) = miss.waiters.drain(..).partition(may);
        miss.joined.retain(|(_, waiter)| waiters.contains(waiter));
        miss.starter = miss.starter.filter(|starter| waiters.contains(starter));
        miss.waiters = waiters;
        if miss.waiters.is_empty() && !served.is_empty() {
            // Without readers it would be cancelled.
            self.values.push_back(Value::Orphan(id));
        }
        for waiter in served {
            let forwarded = Some("fwd=stale; detail=unreachable".to_owned());
            self.check(cx, waiter, Rc::clone(&old), -1, forwarded);
        }
    }
}
